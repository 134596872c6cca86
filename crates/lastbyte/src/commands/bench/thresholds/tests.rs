use super::*;

#[test]
fn limits_of_errors_are_numbers_or_shares() {
    for (text, expected) in [
        ("0", Some(MostErrors::Count(0))),
        ("12", Some(MostErrors::Count(12))),
        ("1%", Some(MostErrors::Share(0.01))),
        ("0.5%", Some(MostErrors::Share(0.005))),
        ("100 %", Some(MostErrors::Share(1.0))),
        ("101%", None),
        ("-1%", None),
        ("NaN%", None),
        ("%", None),
        ("0.5", None),
        ("-1", None),
        ("", None),
    ] {
        assert_eq!(text.parse().ok(), expected, "{text}");
    }
}

#[test]
fn a_percentile_above_its_limit_or_unknown_fails() {
    let mut latency = Histogram::default();
    (1..=999).for_each(|millis| latency.record(millis * 1_000_000));
    let of = |name, share, millis, latency: &Histogram| {
        percentile(
            name,
            share,
            Some(Duration::from_millis(millis)),
            "--max-p",
            latency,
        )
    };
    assert_eq!(of("P50", 0.5, 501, &latency), None);
    let p50 = of("P50", 0.5, 499, &latency).expect("a failure");
    assert!(
        p50.starts_with("P50 500.") && p50.ends_with("ms (expected at most 499.00 ms: --max-p)"),
        "{p50}"
    );
    assert_eq!(
        of("P99", 0.99, 5000, &latency).as_deref(),
        Some(
            "P99 is unknown: it needs 1000 responses, and there were 999 (expected at most 5000.00 ms: --max-p)"
        )
    );
    latency.record(1);
    assert_eq!(of("P99", 0.99, 5000, &latency), None);
    assert_eq!(
        percentile("P99", 0.99, None, "", &Histogram::default()),
        None
    );
}
