use proptest::prelude::*;

use super::*;

#[test]
fn nothing_overflows_or_divides_by_zero() {
    assert_eq!(Rate::ZERO.time_for(0), Duration::ZERO);
    assert_eq!(Rate::ZERO.time_for(1), Duration::from_nanos(u64::MAX));
    assert_eq!(
        Rate::from_bits_per_second(1).time_for(u64::MAX),
        Duration::from_nanos(u64::MAX)
    );
    assert_eq!(
        Rate::from_bits_per_second(u64::MAX).bytes_in(Duration::MAX),
        u64::MAX
    );
}

#[test]
fn rates_are_displayed_like_tc() {
    let shown = |bits| Rate::from_bits_per_second(bits).to_string();
    let rates = [0, 999, 64_000, 1_500_000, 1_000_000_000];
    assert_eq!(
        rates.map(shown),
        ["0bit", "999bit", "64kbit", "1500kbit", "1gbit"]
    );
}

proptest! {
    #[test]
    fn time_for_is_exact_for_any_number_of_bytes(bytes in 1u64..1 << 40, rate in 1u64..1 << 40) {
        let rate = Rate(rate);
        let time = rate.time_for(bytes);
        prop_assert!(rate.bytes_in(time) >= bytes);
        prop_assert!(rate.bytes_in(time.saturating_sub(Duration::from_nanos(1))) < bytes);
    }
}
