use super::*;

#[test]
fn rfc9000_21_9_a_burst_passes_a_flood_does_not() {
    let mut guard = FloodGuard::new(Time::ZERO);
    for _ in 0..FloodGuard::BURST {
        assert_eq!(guard.on_useless_packet(Time::ZERO), Ok(()));
    }
    assert_eq!(guard.on_useless_packet(Time::ZERO), Err(Flooded));
    // A tenth of a second earns ten.
    let later = Time::from_nanos(100_000_000);
    for _ in 0..10 {
        assert_eq!(guard.on_useless_packet(later), Ok(()));
    }
    assert_eq!(guard.on_useless_packet(later), Err(Flooded));
}

#[test]
fn one_in_ten_milliseconds_goes_on_for_ever() {
    let mut guard = FloodGuard::new(Time::ZERO);
    for number in 1..100_000 {
        let now = Time::from_nanos(number * 10_000_000);
        assert_eq!(guard.on_useless_packet(now), Ok(()));
    }
}
