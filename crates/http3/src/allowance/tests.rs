use super::*;

fn at(millis: u64) -> Time {
    Time::from_nanos(millis * 1_000_000)
}

#[test]
fn a_burst_passes_then_the_rate_applies() {
    let mut allowance = Allowance::new(Rate::new(3, 2));
    assert!((0..3).all(|_| allowance.take(1, at(0))));
    assert!(!allowance.take(1, at(0)));
    assert!(!allowance.take(1, at(499)));
    assert!(allowance.take(1, at(500)));
    assert!(!allowance.take(1, at(999)));
    assert!(allowance.take(1, at(1000)));
}

#[test]
fn credit_never_exceeds_the_burst() {
    let mut allowance = Allowance::new(Rate::new(3, 1000));
    assert!(allowance.take(3, at(0)));
    allowance.give(10);
    assert!(allowance.take(3, at(0)));
    assert!(!allowance.take(4, at(1_000_000)));
    assert!(allowance.take(3, at(1_000_000)));
}

#[test]
fn decreasing_time_adds_no_credit() {
    let mut allowance = Allowance::new(Rate::new(1, 1));
    assert!(allowance.take(1, at(5000)));
    assert!(!allowance.take(1, at(1000)));
    assert!(!allowance.take(1, at(5000)));
}
