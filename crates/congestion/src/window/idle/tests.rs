use lastbyte_units::Time;

use super::*;
use crate::rtt::Rtt;

const INITIAL: u64 = 30_000;

/// The windows after a pause, from 160 kB and a threshold of 100 kB, on a path whose timeout is 1 s.
fn after(policy: IdlePolicy, idle: Duration) -> (u64, u64) {
    let rtt = Rtt::new(Duration::from_nanos(333_333_333)); // timeout: 333 + 4 × 167 ms
    let before = Windows {
        window: 160_000,
        slow_start_threshold: 100_000,
    };
    let restart = IdleRestart {
        now: Time::ZERO,
        idle,
        rtt: &rtt,
    };
    let after = after_idle(policy, before, INITIAL, &restart);
    (after.window, after.slow_start_threshold)
}

#[test]
fn table_of_policies() {
    let seconds = Duration::from_secs;
    let table = [
        (IdlePolicy::Keep, seconds(3600), (160_000, 100_000)),
        (IdlePolicy::Rfc9002, seconds(299), (160_000, 100_000)),
        (IdlePolicy::Rfc9002, seconds(300), (80_000, 120_000)),
        (IdlePolicy::Rfc9002, seconds(600), (40_000, 120_000)),
        (IdlePolicy::Rfc9002, seconds(36_000), (INITIAL, 120_000)),
        (
            IdlePolicy::Rfc5681,
            Duration::from_millis(900),
            (160_000, 100_000),
        ),
        (IdlePolicy::Rfc5681, seconds(2), (INITIAL, 100_000)),
        (
            IdlePolicy::Rfc2861,
            Duration::from_millis(900),
            (160_000, 100_000),
        ),
        (
            IdlePolicy::Rfc2861,
            Duration::from_millis(1900),
            (80_000, 120_000),
        ),
        (
            IdlePolicy::Rfc2861,
            Duration::from_millis(2900),
            (40_000, 120_000),
        ),
        (IdlePolicy::Rfc2861, Duration::MAX, (INITIAL, 120_000)),
    ];
    for (policy, idle, expected) in table {
        assert_eq!(after(policy, idle), expected, "{policy:?} after {idle:?}");
    }
}

#[test]
fn a_window_below_the_initial_one_is_not_raised() {
    let rtt = Rtt::default();
    let before = Windows {
        window: 5_000,
        slow_start_threshold: 4_000,
    };
    for policy in [
        IdlePolicy::Keep,
        IdlePolicy::Rfc9002,
        IdlePolicy::Rfc5681,
        IdlePolicy::Rfc2861,
    ] {
        let restart = IdleRestart {
            now: Time::ZERO,
            idle: Duration::MAX,
            rtt: &rtt,
        };
        assert_eq!(after_idle(policy, before, INITIAL, &restart).window, 5_000);
    }
}
