use std::vec::Vec;

use proptest::{collection::vec, prelude::*};

use super::*;
use crate::rate::work_of;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn at_ms(ms: u64) -> Time {
    Time::ZERO + self::ms(ms)
}

fn mbit(mbit: u64) -> Rate {
    Rate::from_bits_per_second(mbit * 1_000_000)
}

#[test]
fn errors_name_the_problem() {
    let new = |steps: &[(Duration, Rate)], period| Schedule::new(steps, period);
    assert_eq!(new(&[], None), Err(ScheduleError::Empty));
    assert_eq!(
        new(&[(ms(1), mbit(1))], None),
        Err(ScheduleError::StartsLate)
    );
    let twice = [(ms(0), mbit(1)), (ms(5), mbit(2)), (ms(5), mbit(3))];
    let error = new(&twice, None).expect_err("equal times");
    assert_eq!(error, ScheduleError::NotInOrder { index: 2 });
    assert_eq!(
        error.to_string(),
        "step 2 of the schedule (counted from 0) must be later than its predecessor"
    );
    assert_eq!(
        new(&twice[..2], Some(ms(5))),
        Err(ScheduleError::PeriodTooShort)
    );
}

#[test]
fn work_continues_at_the_rate_of_each_step() {
    // 1 Mb/s for 10 ms, a stall of 5 ms, then 4 Mb/s: 1250 bytes, none, then 500 bytes per millisecond.
    let steps = [(ms(0), mbit(1)), (ms(10), mbit(0)), (ms(15), mbit(4))];
    let mut cursor = Cursor::new(Schedule::new(&steps, None).expect("valid steps"));
    assert_eq!(cursor.end_of(Time::ZERO, work_of(1000)), (at_ms(8), 0));
    assert_eq!(cursor.end_of(at_ms(8), work_of(250)), (at_ms(10), 0));
    assert_eq!(cursor.end_of(at_ms(10), work_of(500)), (at_ms(16), 0));
    assert_eq!(cursor.end_of(at_ms(1000), work_of(500)), (at_ms(1001), 0));
}

#[test]
fn work_never_ends_if_the_rate_stays_zero() {
    for (steps, period) in [
        ([(ms(0), mbit(1)), (ms(1), mbit(0))], None),
        ([(ms(0), mbit(0)), (ms(1), mbit(0))], Some(ms(2))),
    ] {
        let mut cursor = Cursor::new(Schedule::new(&steps, period).expect("valid steps"));
        assert_eq!(cursor.end_of(Time::ZERO, work_of(1500)).0, Time::MAX);
    }
}

#[test]
fn whole_periods_are_skipped_at_once() {
    // One nanobit per period of 2 ns: 4 GiB would take more than 2000 years, which is beyond `Time::MAX`.
    let steps = [
        (Duration::ZERO, Rate::from_bits_per_second(1)),
        (Duration::from_nanos(1), Rate::ZERO),
    ];
    let mut cursor =
        Cursor::new(Schedule::new(&steps, Some(Duration::from_nanos(2))).expect("valid steps"));
    let (end, _) = cursor.end_of(Time::ZERO, 1_000_000_007);
    assert_eq!(end.as_nanos(), 2 * 1_000_000_006 + 1);
    assert_eq!(cursor.end_of(end, work_of(u32::MAX)).0, Time::MAX);
}

proptest! {
    #[test]
    fn any_schedule_matches_a_sum_over_nanoseconds(
        steps in vec((1u64..6, 0u64..5), 1..5),
        extra in 1u64..4,
        repeats: bool,
        work in vec((0u64..20, 0u128..40), 1..10),
    ) {
        let mut from = 0;
        let mut table = Vec::new();
        for (length, rate) in steps {
            table.push((Duration::from_nanos(from), Rate::from_bits_per_second(rate)));
            from += length;
        }
        let period = nanos(table.last().expect("a step").0) + extra;
        let schedule = Schedule::new(&table, repeats.then(|| Duration::from_nanos(period))).expect("valid steps");
        let rate_at = |now: u64| {
            let now = Duration::from_nanos(if repeats { now % period } else { now });
            table.iter().rev().find(|(from, _)| *from <= now).expect("a step").1.bits_per_second()
        };
        let mut cursor = Cursor::new(schedule);
        let mut now = 0;
        for (pause, work) in work {
            now += pause;
            let mut done: u128 = 0;
            let mut end = now;
            while done < work && end < now + 10_000 {
                done += u128::from(rate_at(end));
                end += 1;
            }
            let (computed, rest) = cursor.end_of(Time::from_nanos(now), work);
            if done < work {
                prop_assert_eq!(computed, Time::MAX);
                break;
            }
            prop_assert_eq!(computed.as_nanos(), end);
            prop_assert_eq!(u128::from(rest), done - work);
            now = end;
        }
    }
}

proptest! {
    /// The capacity between two times is what a cursor finds that it takes to transmit.
    #[test]
    fn any_span_has_the_capacity_that_takes_it(
        rates in vec(1u64..1000, 1..6),
        is_periodic: bool,
        (from, span) in (0u64..100_000_000, 1u64..100_000_000),
    ) {
        let steps: Vec<(Duration, Rate)> = (0u64..).zip(&rates).map(|(at, rate)| (ms(at * 7), mbit(*rate))).collect();
        let period = is_periodic.then(|| ms(7 * rates.len() as u64));
        let schedule = Schedule::new(&steps, period).expect("a schedule");
        let (from, to) = (Time::from_nanos(from), Time::from_nanos(from + span));
        let work = schedule.bytes_between(from, to) * work_of(1) as f64;
        let (end, _) = Cursor::new(schedule).end_of(from, work as u128);
        prop_assert!(end.as_nanos().abs_diff(to.as_nanos()) <= 1 + span / 1_000_000_000, "{end:?} {to:?}");
    }
}
