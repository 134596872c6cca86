use super::*;

#[test]
fn nothing_overflows_or_divides_by_zero() {
    assert!(Bandwidth::from_delivery(1, Duration::ZERO).is_unlimited());
    assert_eq!(
        Bandwidth::from_delivery(u64::MAX, Duration::from_nanos(1)),
        Bandwidth::MAX
    );
    assert_eq!(Bandwidth::MAX.bytes_in(Duration::ZERO), 0);
    assert_eq!(Bandwidth::MAX.bytes_in(Duration::from_nanos(1)), u64::MAX);
    assert_eq!(Bandwidth::MAX.time_for(u64::MAX), Duration::ZERO);
    assert_eq!(Bandwidth::ZERO.time_for(0), Duration::ZERO);
    assert_eq!(Bandwidth::ZERO.time_for(1), Duration::from_nanos(u64::MAX));
    assert_eq!(
        Bandwidth::from_bytes_per_second(9).scaled(-1.0),
        Bandwidth::ZERO
    );
    assert_eq!(
        Bandwidth::from_bytes_per_second(9).scaled(f64::NAN),
        Bandwidth::ZERO
    );
}

#[test]
fn time_for_rounds_up_so_that_nothing_leaves_early() {
    let rate = Bandwidth::from_bytes_per_second(3);
    assert_eq!(rate.time_for(1), Duration::from_nanos(333_333_334));
    assert!(rate.bytes_in(rate.time_for(1)) >= 1);
}

#[test]
fn displayed_like_rates_in_tc() {
    let shown = |bits| Bandwidth::from_bits_per_second(bits).to_string();
    assert_eq!(shown(800), "800bit");
    assert_eq!(shown(64_000), "64kbit");
    assert_eq!(shown(55_000_000), "55mbit");
    assert_eq!(shown(1_500_000_000), "1.5gbit");
    assert_eq!(Bandwidth::MAX.to_string(), "unlimited");
}
