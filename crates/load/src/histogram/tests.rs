use proptest::prelude::*;

use super::*;

fn of(values: &[u64]) -> Histogram {
    let mut histogram = Histogram::default();
    for value in values {
        histogram.record(*value);
    }
    histogram
}

#[test]
fn every_value_is_in_a_bucket_that_is_narrow_enough() {
    let powers = (0..VALUE_BITS).map(|bits| 1_u64 << bits);
    let values =
        powers.flat_map(|power| [power.saturating_sub(1), power, power + 1, power * 3 / 2]);
    for value in values.filter(|value| *value < 1 << VALUE_BITS) {
        let top = SCALE.highest(SCALE.of(value));
        assert!(top >= value, "{value} {top}");
        assert!(top - value <= value / 1024, "{value} {top}");
        assert_eq!(SCALE.of(top), SCALE.of(value), "{value}");
    }
    assert_eq!(SCALE.of((1 << VALUE_BITS) - 1), SCALE.count() - 1);
}

#[test]
fn a_value_beyond_the_range_counts_as_the_largest() {
    let histogram = of(&[u64::MAX]);
    assert_eq!(histogram.quantile(0.5), Some((1 << VALUE_BITS) - 1));
    assert_eq!(histogram.count(), 1);
}

#[test]
fn without_values_there_is_nothing_to_print() {
    let histogram = Histogram::default();
    assert_eq!(histogram.quantile(0.5), None);
    assert_eq!(histogram.summary(), None);
    assert_eq!(Summary::of(&[]), None);
}

#[test]
fn histogram_summary_matches_the_values() {
    let values = [1000, 1010, 1020, 1990];
    let summary = of(&values).summary().expect("values");
    let exact = Summary::of(&values.map(|value| value as f64)).expect("values");
    assert!(
        (summary.sd - exact.sd).abs() < 1e-6,
        "{summary:?} {exact:?}"
    );
    assert_eq!(Summary { sd: 0.0, ..summary }, Summary { sd: 0.0, ..exact });
    assert!((exact.within_sd - 0.75).abs() < f64::EPSILON);
}

/// At least ten values are beyond a percentile that is printed: 1000 requests have a P99, and 100,000 a P99.99.
#[test]
fn a_percentile_needs_ten_values_beyond_it() {
    for (share, enough) in [
        (0.5, 20),
        (0.9, 100),
        (0.99, 1000),
        (0.999, 10_000),
        (0.9999, 100_000),
    ] {
        let mut histogram = Histogram::default();
        for value in 1..enough {
            histogram.record(value);
        }
        assert_eq!(histogram.supported_quantile(share), None, "{share}");
        histogram.record(enough);
        assert!(histogram.supported_quantile(share).is_some(), "{share}");
    }
}

proptest! {
    #[test]
    fn quantiles_match_the_sorted_values(
        mut values in prop::collection::vec(0_u64..1 << 41, 1..200),
        share in 0.0_f64..=1.0,
        cut in 0_usize..200,
    ) {
        let (first, second) = values.split_at(cut.min(values.len()));
        let mut histogram = of(first);
        histogram.merge(&of(second));
        prop_assert_eq!(&histogram, &of(&values));
        values.sort_unstable();
        let rank = ((share * values.len() as f64).ceil() as usize).clamp(1, values.len());
        let exact = values[rank - 1];
        let found = histogram.quantile(share).expect("values");
        prop_assert!(found >= exact && found - exact <= exact / 1024, "{} {}", found, exact);
        prop_assert_eq!(histogram.iter().map(|(_, count)| count).sum::<u64>(), values.len() as u64);
    }
}

#[test]
fn a_percentile_exists_from_the_needed_number_on() {
    for (share, expected) in [
        (0.5, 20),
        (0.75, 40),
        (0.9, 100),
        (0.99, 1000),
        (0.999, 10_000),
    ] {
        assert_eq!(needed_for(share), expected, "{share}");
        let of = |count: u64| {
            let mut histogram = Histogram::default();
            (0..count).for_each(|value| histogram.record(value));
            histogram.supported_quantile(share)
        };
        assert_eq!(of(expected - 1), None, "{share}");
        assert!(of(expected).is_some(), "{share}");
    }
}
