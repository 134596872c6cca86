//! Figures with units, as people write them: `55mbit`, `39ms`, `1.6MB`, `2%`.
//!
//! Owns: their words, both ways. A figure without a unit is refused, but where zero is meant: `39` could be anything.

use core::{fmt, time::Duration};

use lastbyte_link::Rate;

/// A figure is not understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitError {
    text: String,
    wants: &'static str,
}

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not {}", self.text, self.wants)
    }
}

impl std::error::Error for UnitError {}

const SPANS: &[(&str, f64)] = &[
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
];
const RATES: &[(&str, f64)] = &[
    ("bit", 1.0),
    ("kbit", 1e3),
    ("mbit", 1e6),
    ("gbit", 1e9),
    ("bps", 1.0),
    ("kbps", 1e3),
    ("mbps", 1e6),
    ("gbps", 1e9),
];
const BYTES: &[(&str, f64)] = &[
    ("b", 1.0),
    ("kb", 1e3),
    ("mb", 1e6),
    ("gb", 1e9),
    ("kib", 1024.0),
    ("mib", 1_048_576.0),
    ("gib", 1_073_741_824.0),
];

/// The number before the unit, and the unit.
fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: f64 = number.parse().ok()?;
    number.is_finite().then_some((number, unit.trim_start()))
}

fn scaled(text: &str, units: &[(&str, f64)], wants: &'static str) -> Result<f64, UnitError> {
    let error = || UnitError {
        text: text.to_owned(),
        wants,
    };
    let (number, unit) = split(text).ok_or_else(error)?;
    let lower = unit.to_ascii_lowercase();
    if lower.is_empty() && number == 0.0 {
        return Ok(0.0);
    }
    let scale = units.iter().find(|(name, _)| *name == lower);
    let (_, scale) = scale.ok_or_else(error)?;
    Ok(number * scale)
}

/// A span of time: `39ms`, `1.5s`, `250us`.
///
/// # Errors
///
/// It is none, or longer than a century.
pub fn span(text: &str) -> Result<Duration, UnitError> {
    const WANTS: &str = "a span of time, such as `39ms`, `1.5s` or `250us`";
    let nanos = scaled(text, SPANS, WANTS)?;
    if nanos > 3.2e18 {
        return Err(UnitError {
            text: text.to_owned(),
            wants: WANTS,
        });
    }
    Ok(Duration::from_nanos(nanos.round() as u64))
}

/// A rate, in bits a second: `55mbit`, `1gbit`, `800kbit`. A thousand kbit are an mbit, as with tc; `mbps` is taken as the
/// same.
///
/// # Errors
///
/// It is none, or zero.
pub fn rate(text: &str) -> Result<Rate, UnitError> {
    const WANTS: &str = "a rate, such as `55mbit`, `800kbit` or `1gbit`";
    let bits = scaled(text, RATES, WANTS)?.round();
    if !(1.0..=1e15).contains(&bits) {
        return Err(UnitError {
            text: text.to_owned(),
            wants: WANTS,
        });
    }
    Ok(Rate::from_bits_per_second(bits as u64))
}

/// A number of bytes: `1.6MB`, `64KiB`, `1200B`. A number alone is bytes too. A thousand kB are an MB.
///
/// # Errors
///
/// It is none.
pub fn bytes(text: &str) -> Result<u64, UnitError> {
    const WANTS: &str = "a number of bytes, such as `1600000`, `1.6MB` or `64KiB`";
    if let Ok(bytes) = text.trim().replace('_', "").parse() {
        return Ok(bytes);
    }
    let bytes = scaled(text, BYTES, WANTS)?.round();
    if bytes > 1e18 {
        return Err(UnitError {
            text: text.to_owned(),
            wants: WANTS,
        });
    }
    Ok(bytes as u64)
}

/// A probability: `2%`, or `0.02`.
///
/// # Errors
///
/// It is none, or not from 0 to 1.
pub fn probability(text: &str) -> Result<f64, UnitError> {
    let error = || UnitError {
        text: text.to_owned(),
        wants: "a probability, such as `2%` or `0.02`",
    };
    let (number, unit) = split(text).ok_or_else(error)?;
    let probability = match unit {
        "%" => number / 100.0,
        "" => number,
        _ => return Err(error()),
    };
    (0.0..=1.0)
        .contains(&probability)
        .then_some(probability)
        .ok_or_else(error)
}

/// Bytes as people write them: `1.6MB`, `200kB`, `1234B`.
#[must_use]
pub fn show_bytes(bytes: u64) -> String {
    for (unit, size) in [("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1000)] {
        if bytes >= size {
            let hundredths = (bytes as f64 / size as f64 * 100.0).round() / 100.0;
            return format!("{hundredths}{unit}");
        }
    }
    format!("{bytes}B")
}

/// A span as people write it, in milliseconds: `39ms`, `0.25ms`.
#[must_use]
pub fn show_span(span: Duration) -> String {
    format!("{}ms", (span.as_secs_f64() * 1e6).round() / 1e3)
}

/// A rate as people write it: `55mbit`.
#[must_use]
pub fn show_rate(rate: Rate) -> String {
    let bits = rate.bits_per_second();
    for (unit, size) in [("gbit", 1_000_000_000), ("mbit", 1_000_000), ("kbit", 1000)] {
        if bits >= size {
            let thousandths = (bits as f64 / size as f64 * 1000.0).round() / 1000.0;
            return format!("{thousandths}{unit}");
        }
    }
    format!("{bits}bit")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_understood() {
        assert_eq!(span("39ms"), Ok(Duration::from_millis(39)));
        assert_eq!(span("1.5 s"), Ok(Duration::from_millis(1500)));
        assert_eq!(span("250us"), Ok(Duration::from_micros(250)));
        assert_eq!(span("0"), Ok(Duration::ZERO));
        assert_eq!(rate("55mbit").map(Rate::bits_per_second), Ok(55_000_000));
        assert_eq!(rate("1Gbit").map(Rate::bits_per_second), Ok(1_000_000_000));
        assert_eq!(bytes("1.6MB"), Ok(1_600_000));
        assert_eq!(bytes("64KiB"), Ok(65_536));
        assert_eq!(bytes("1_600_000"), Ok(1_600_000));
        assert_eq!(probability("2%"), Ok(0.02));
        assert_eq!(probability("0.5"), Ok(0.5));
    }

    #[test]
    fn what_is_none_is_refused_with_an_example() {
        for text in [
            "39",
            "ms",
            "",
            "-1ms",
            "1h",
            "1e3ms",
            "99999999999999s",
            "NaNms",
        ] {
            let error = span(text).expect_err(text).to_string();
            assert!(error.contains("39ms"), "{error}");
        }
        for text in ["55", "0mbit", "55mb", "-1mbit", "99999999gbit"] {
            assert!(rate(text).is_err(), "{text}");
        }
        for text in ["1.6", "x", "1.6TB", "-1", "9999999999999GB"] {
            assert!(bytes(text).is_err(), "{text}");
        }
        for text in ["101%", "1.5", "2 percent", ""] {
            assert!(probability(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_shown_can_be_read_again() {
        for count in [0, 999, 1000, 200_000, 1_600_000, 3_210_000_000] {
            assert_eq!(bytes(&show_bytes(count)), Ok(count));
        }
        for text in ["39ms", "0.25ms", "1500ms"] {
            assert_eq!(span(text).map(show_span), Ok(text.to_owned()));
        }
        for text in ["55mbit", "800kbit", "1.5gbit", "7bit"] {
            assert_eq!(rate(text).map(show_rate), Ok(text.to_owned()));
        }
    }
}
