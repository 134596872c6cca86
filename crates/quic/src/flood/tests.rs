use super::*;

#[test]
fn rfc9000_21_9_a_burst_passes_and_a_flood_does_not() {
    let mut guard = FloodGuard::new(Time::ZERO);
    for _ in 0..FloodGuard::BURST {
        assert_eq!(guard.on_useless_frame(Time::ZERO), Ok(()));
    }
    assert_eq!(guard.on_useless_frame(Time::ZERO), Err(FloodBudgetExceeded));
    // A tenth of a second earns ten.
    let later = Time::from_nanos(100_000_000);
    for _ in 0..10 {
        assert_eq!(guard.on_useless_frame(later), Ok(()));
    }
    assert_eq!(guard.on_useless_frame(later), Err(FloodBudgetExceeded));
}

#[test]
fn one_useless_frame_in_ten_milliseconds_is_always_permitted() {
    let mut guard = FloodGuard::new(Time::ZERO);
    for number in 1..100_000 {
        let now = Time::from_nanos(number * 10_000_000);
        assert_eq!(guard.on_useless_frame(now), Ok(()));
    }
}

#[test]
fn each_useful_frame_permits_two_useless_ones() {
    let mut guard = FloodGuard::new(Time::ZERO);
    for _ in 0..10_000 {
        guard.on_useful(1);
        assert_eq!(guard.on_useless_frame(Time::ZERO), Ok(()));
        assert_eq!(guard.on_useless_frame(Time::ZERO), Ok(()));
    }
    // With three for each it ends.
    let passed = (0..10_000)
        .take_while(|_| {
            guard.on_useful(1);
            (0..3).all(|_| guard.on_useless_frame(Time::ZERO).is_ok())
        })
        .count();
    assert!(passed <= 1000, "{passed}");
}

#[test]
fn a_window_of_repeated_data_passes() {
    let mut guard = FloodGuard::new(Time::ZERO);
    // 10 MB in datagrams of 1400 bytes arrive, and then all of them again.
    guard.on_useful(7000);
    for _ in 0..7000 {
        assert_eq!(guard.on_useless_frame(Time::ZERO), Ok(()));
    }
}

#[test]
fn the_credit_of_useful_frames_is_bounded() {
    let mut guard = FloodGuard::new(Time::ZERO);
    guard.on_useful(u64::MAX);
    let passed = (0..).take_while(|_| guard.on_useless_frame(Time::ZERO).is_ok());
    assert_eq!(passed.count() as u64, FloodGuard::SAVED_MAX);
    // Time refills the burst only.
    let later = Time::from_nanos(u64::MAX / 2);
    let passed = (0..).take_while(|_| guard.on_useless_frame(later).is_ok());
    assert_eq!(passed.count() as u64, FloodGuard::BURST);
}
