use super::*;
use crate::population::random::Field;

fn percentiles(text: &str, quantity: Quantity) -> [f64; 3] {
    let distribution = Distribution::parse(text, quantity).expect(text);
    let mut drawn: Vec<f64> = (0..40_000)
        .map(|seed| distribution.draw(Stream::new(seed, Field::Rate)))
        .collect();
    drawn.sort_by(f64::total_cmp);
    [4_000, 20_000, 36_000].map(|rank| drawn[rank])
}

#[test]
fn the_distribution_has_the_requested_percentiles() {
    for (text, quantity, expected) in [
        ("40ms p10 14ms p90 100ms", Quantity::Span, [14e6, 40e6, 1e8]),
        ("2mbit", Quantity::Rate, [2e6; 3]),
        ("uniform 0 10", Quantity::Number, [1.0, 5.0, 9.0]),
        (
            "log-uniform 1kB 100kB",
            Quantity::Bytes,
            [1585.0, 10_000.0, 63_096.0],
        ),
        ("1% sigma 1", Quantity::Share, [0.002_776, 0.01, 0.036_02]),
        (
            "1% sigma 1 cap 2%",
            Quantity::Share,
            [0.002_776, 0.01, 0.02],
        ),
        (
            "20% of 1mbit | 80% of 5mbit",
            Quantity::Rate,
            [1e6, 5e6, 5e6],
        ),
    ] {
        let found = percentiles(text, quantity);
        for (found, expected) in found.iter().zip(expected) {
            assert!((found / expected - 1.0).abs() < 0.03, "{text}: {found}");
        }
    }
}

#[test]
fn invalid_distributions_are_rejected() {
    for text in [
        "",
        "40",
        "40mbit p10 50mbit p90 100mbit",
        "40mbit p10 14mbit",
        "uniform 5mbit 1mbit",
        "50% of 1mbit | 40% of 2mbit",
        "1mbit | 2mbit",
        "-1mbit",
        "40mbit sigma x",
        "40mbit sigma 1 cap 30mbit",
    ] {
        let error = Distribution::parse(text, Quantity::Rate).expect_err(text);
        assert!(error.to_string().contains('`'), "{error}");
    }
    assert!(Distribution::parse("0ms sigma 1", Quantity::Span).is_err());
    assert!(Distribution::parse("NaN", Quantity::Number).is_err());
}
