use super::*;

#[test]
fn every_value_is_in_a_bucket_of_at_most_an_eighth() {
    let mut values: Vec<u64> = (0..64).map(|exponent| 1 << exponent).collect();
    values.extend((0..64).map(|exponent| (1_u64 << exponent).wrapping_mul(13) / 8));
    values.extend([0, 3, u64::MAX, u64::MAX - 1, 999_999, 50_000]);
    for value in values {
        let upper = upper(bucket(value));
        assert!(
            upper >= value,
            "{value} exceeds the end {upper} of its bucket"
        );
        assert!(upper - value <= value / 8, "{value} is far below {upper}");
    }
    let mut before = None;
    for index in 0..BUCKETS - 3 * STEPS as usize {
        assert_eq!(bucket(upper(index)), index);
        assert!(before.is_none_or(|before| before < upper(index)));
        before = Some(upper(index));
    }
}

#[test]
fn quantiles_match_the_recorded_values() {
    let mut late = Lateness::default();
    assert_eq!(late.quantile(0.5), Duration::ZERO);
    for micros in 1..=1000 {
        late.record(Duration::from_micros(micros));
    }
    assert_eq!(late.count(), 1000);
    assert_eq!(late.max(), Duration::from_millis(1));
    for (share, micros) in [(0.5, 500.0), (0.9, 900.0), (0.99, 990.0)] {
        let found = late.quantile(share).as_secs_f64() * 1e6;
        assert!(
            (micros..=micros * 1.125).contains(&found),
            "{share}: {found}"
        );
    }
    assert_eq!(late.quantile(1.0), late.max());
    assert!(late.quantile(0.0) < Duration::from_micros(2));
}
