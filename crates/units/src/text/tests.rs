use super::*;

fn bits(text: &str) -> Option<u64> {
    rate(text).ok().map(Rate::bits_per_second)
}

#[test]
fn spans_have_a_unit() {
    for (text, nanos) in [
        ("39ms", 39_000_000),
        ("1.5 s", 1_500_000_000),
        ("250us", 250_000),
        ("250µs", 250_000),
        ("7ns", 7),
        ("1_000ms", 1_000_000_000),
        ("5min", 300_000_000_000),
        ("24h", 86_400_000_000_000),
        ("1d", 86_400_000_000_000),
        ("0", 0),
        ("0.0", 0),
        ("0ms", 0),
        (".5s", 500_000_000),
    ] {
        assert_eq!(span(text), Ok(Duration::from_nanos(nanos)), "{text}");
    }
    for (text, expected) in [
        ("5", "a span of time with its unit, such as `5s` or `5ms`"),
        (
            "1.5",
            "a span of time with its unit, such as `1.5s` or `1.5ms`",
        ),
        ("5m", "a span of time with its unit: `5min` or `5ms`"),
        ("ms", "a span of time, such as `39ms`, `1.5s` or `5min`"),
        ("", "a span of time, such as `39ms`, `1.5s` or `5min`"),
        ("-1ms", "a span of time, such as `39ms`, `1.5s` or `5min`"),
        ("1e3ms", "a span of time, such as `39ms`, `1.5s` or `5min`"),
        ("NaNms", "a span of time, such as `39ms`, `1.5s` or `5min`"),
        ("1.2.3s", "a span of time, such as `39ms`, `1.5s` or `5min`"),
        (
            "99999999999999s",
            "a span of time, such as `39ms`, `1.5s` or `5min`",
        ),
        (
            "5 parsecs",
            "a span of time, such as `39ms`, `1.5s` or `5min`",
        ),
    ] {
        let error = span(text).expect_err(text);
        assert_eq!(error.to_string(), format!("expected {expected}"), "{text}");
        assert_eq!((error.text(), error.expected()), (text, expected));
    }
}

#[test]
fn rates_require_a_unit_of_bits_or_bytes() {
    for (text, wanted) in [
        ("55Mb/s", 55_000_000),
        ("55Mbps", 55_000_000),
        ("55mbps", 55_000_000),
        ("55mbit", 55_000_000),
        ("55Mbit", 55_000_000),
        ("55Mbit/s", 55_000_000),
        ("55MBIT", 55_000_000),
        ("55 mb/s", 55_000_000),
        ("1Gbit", 1_000_000_000),
        ("1.5Gb/s", 1_500_000_000),
        ("800kbit", 800_000),
        ("800kb/s", 800_000),
        ("7b/s", 7),
        ("7MB/s", 56_000_000),
        ("7mB/s", 56_000_000),
        ("7KB/s", 56_000),
        ("7B/s", 56),
        ("1MiB/s", 8_388_608),
    ] {
        assert_eq!(bits(text), Some(wanted), "{text}");
    }
    for (text, expected) in [
        (
            "55",
            "expected a rate with its unit, such as `55Mb/s` (or `55mbit`), or `55MB/s` for bytes",
        ),
        (
            "55M",
            "expected a rate above zero: `55Mb/s` for bits, or `55MB/s` for bytes",
        ),
        (
            "55MBps",
            "expected a rate above zero: `55Mb/s` for bits, or `55MB/s` for bytes",
        ),
        (
            "64k",
            "expected a rate above zero: `64kb/s` for bits, or `64kB/s` for bytes",
        ),
    ] {
        assert_eq!(rate(text).expect_err(text).to_string(), expected);
    }
    for text in [
        "0",
        "0mbit",
        "55mb",
        "55MB",
        "-1mbit",
        "99999999gbit",
        "",
        "mbit",
        "55MBPS",
    ] {
        assert!(rate(text).is_err(), "{text}");
    }
}

#[test]
fn sizes_are_decimal_unless_the_unit_is_binary() {
    for (text, wanted) in [
        ("1600000", 1_600_000),
        ("1_600_000", 1_600_000),
        ("1200B", 1200),
        ("1.6MB", 1_600_000),
        ("400kB", 400_000),
        ("400KB", 400_000),
        ("400 kB", 400_000),
        ("64KiB", 65_536),
        ("64kiB", 65_536),
        ("1MiB", 1_048_576),
        ("2GB", 2_000_000_000),
        ("1TB", 1_000_000_000_000),
        ("0", 0),
        ("9007199254740993", 9_007_199_254_740_993),
        ("9007199254740993B", 9_007_199_254_740_993),
    ] {
        assert_eq!(bytes(text), Ok(wanted), "{text}");
    }
    for (text, expected) in [
        (
            "400k",
            "expected a size with its unit: `400kB` (decimal) or `400KiB` (binary)",
        ),
        (
            "1M",
            "expected a size with its unit: `1MB` (decimal) or `1MiB` (binary)",
        ),
        (
            "1m",
            "expected a size with its unit: `1MB` (decimal) or `1MiB` (binary)",
        ),
        (
            "1Mb",
            "expected a size in bytes: `1MB` or `1MiB`; a small b stands for bits",
        ),
        (
            "1mbit",
            "expected a size in bytes: `1MB` or `1MiB`; a small b stands for bits",
        ),
        (
            "1.6",
            "expected a whole number of bytes, or a unit: `1.6kB` or `1.6MB`",
        ),
        (
            "x",
            "expected a size, such as `1600000`, `1.6MB` or `64KiB`",
        ),
    ] {
        assert_eq!(bytes(text).expect_err(text).to_string(), expected);
    }
    for text in [
        "",
        "-1",
        "1e6",
        "9999999999999GB",
        "99999999999999999999",
        "1PB",
        "1.6.2MB",
    ] {
        assert!(bytes(text).is_err(), "{text}");
    }
}

#[test]
fn shares_above_one_half_need_a_percent_sign() {
    for (text, wanted) in [
        ("2%", 0.02),
        ("0.5%", 0.005),
        ("0.02", 0.02),
        ("0.5", 0.5),
        ("0", 0.0),
        ("100%", 1.0),
        ("60 %", 0.6),
    ] {
        assert_eq!(probability(text), Ok(wanted), "{text}");
    }
    for (text, expected) in [
        (
            "1",
            "expected a percent sign: `1%`, or `100%` if 1 is meant as a share of one",
        ),
        (
            "0.6",
            "expected a percent sign: `0.6%`, or `60%` if 0.6 is meant as a share of one",
        ),
        ("5", "expected a percent sign: `5%`"),
        (
            "101%",
            "expected a share from 0% to 100%, such as `2%` or `0.02`",
        ),
    ] {
        assert_eq!(probability(text).expect_err(text).to_string(), expected);
    }
    for text in ["2 percent", "", "-1%", "101", "NaN", "1e-2"] {
        assert!(probability(text).is_err(), "{text}");
    }
}

#[test]
fn counts_and_seeds_are_integers() {
    for (text, wanted) in [
        ("20000", 20_000),
        ("20_000", 20_000),
        ("2e4", 20_000),
        ("0", 0),
    ] {
        assert_eq!(count(text), Ok(wanted), "{text}");
    }
    for text in [
        "",
        "x",
        "1.5",
        "-1",
        "+1",
        "e6",
        "1e",
        "1e99",
        "20k",
        "99999999999999999999",
    ] {
        assert!(count(text).is_err(), "{text}");
    }
    assert_eq!(
        count("20k").expect_err("a k").to_string(),
        "expected a whole number: `20000` or `20e3`"
    );
    assert_eq!(seed("9007199254740991"), Ok(SEED_END - 1));
    assert_eq!(
        seed("9007199254740992").expect_err("too large").to_string(),
        "expected a whole number from 0 to 9007199254740991 (2^53 - 1)"
    );
    // What a reader with floats makes of the largest seed is that seed.
    assert_eq!((SEED_END - 1) as f64 as u64, SEED_END - 1);
}

#[test]
fn displayed_values_parse_back() {
    for count in [0, 999, 1000, 200_000, 1_600_000, 3_210_000_000] {
        assert_eq!(bytes(&show_bytes(count)), Ok(count));
    }
    for text in [
        "39ms", "0.25ms", "1500ms", "9000ms", "10s", "10001ms", "60s", "90500ms", "600s",
    ] {
        assert_eq!(span(text).map(show_span), Ok(text.to_owned()));
    }
    for text in ["55mbit", "800kbit", "1.5gbit", "7bit"] {
        assert_eq!(rate(text).map(show_rate), Ok(text.to_owned()));
    }
    for text in ["1%", "0.05%", "100%", "33.3%"] {
        assert_eq!(probability(text).map(show_share), Ok(text.to_owned()));
    }
}
