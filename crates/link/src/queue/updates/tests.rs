use super::*;

fn times(updates: &mut Updates, now_ms: u64, keep: impl Fn(u64) -> bool) -> Vec<u64> {
    let mut times = Vec::new();
    updates.catch_up(Time::from_nanos(now_ms * 1_000_000), |at| {
        let ms = at.as_nanos() / 1_000_000;
        times.push(ms);
        keep(ms)
    });
    times
}

#[test]
fn updates_happen_at_multiples_of_the_period() {
    let mut updates = Updates::new(Duration::from_millis(15));
    assert!(times(&mut updates, 14, |_| true).is_empty());
    assert_eq!(times(&mut updates, 46, |_| true), [15, 30, 45]);
    assert!(times(&mut updates, 46, |_| true).is_empty());
}

#[test]
fn updates_that_change_nothing_are_skipped_and_keep_their_phase() {
    let mut updates = Updates::new(Duration::from_millis(10));
    assert_eq!(times(&mut updates, 1_000_005, |_| false), [10]);
    assert_eq!(times(&mut updates, 1_000_010, |_| true), [1_000_010]);
}

#[test]
fn a_long_pause_costs_a_bounded_number_of_updates() {
    let mut updates = Updates::new(Duration::from_nanos(1));
    let mut count = 0;
    updates.catch_up(Time::from_nanos(u64::MAX - 1), |_| {
        count += 1;
        true
    });
    assert_eq!(count, UPDATES_MAX);
    updates.catch_up(Time::MAX, |_| {
        count += 1;
        true
    });
    assert_eq!(count, UPDATES_MAX);
}
