//! What holds a stage: values beyond a limit, and values that are not known.

use super::*;

/// A look at three hours of 10 000 lines, of which one in ten is of an arm that is faster.
fn look_at(lines: impl Fn(u64) -> Option<(f64, f64)>) -> Look {
    let mut log = Log::new();
    log.hour = 1;
    for number in 0..10_000_u64 {
        let arm = usize::from(number.is_multiple_of(10));
        let Some((faster, lost)) = lines(number) else {
            continue;
        };
        log.add(&Line {
            experiment: Some("x"),
            arm: Some(["a", "b"][arm]),
            config: Some("00ff-1"),
            time_ms: Some(number % 3 * HOUR_MS),
            size: Some(1000),
            is_complete: Some(true),
            ttlb_ms: Some([400.0, 300.0][arm] * faster + (number % 9) as f64),
            sent: Some(100.0),
            lost: Some(lost),
            ..Line::default()
        });
    }
    let look = log
        .ramp
        .look(&subject(&log.plan), &log.tally, log.tally.until_ms);
    look.expect("not over")
}

/// An arm that is faster and loses more packets than the guard rail permits, but not significantly more; that lacks lines, but
/// not so many that it is an alarm; or that has lines which are impossible.
#[test]
fn what_was_seen_beyond_a_guard_rail_or_against_the_shares_holds_the_stage() {
    let of_arm = |number: u64| number.is_multiple_of(10);
    let lossy = |share: u64| {
        move |number: u64| {
            let share = if of_arm(number) { share } else { 10 };
            Some((1.0, if number / 10 % 100 < share { 10.0 } else { 0.0 }))
        }
    };
    let without = |missing: u64| {
        move |number: u64| {
            let is_missing = of_arm(number) && number / 10 % 100 < missing;
            (!is_missing).then_some((1.0, 0.0))
        }
    };
    let odd = |line: (f64, f64)| {
        move |number: u64| Some(if number % 1000 < 2 { line } else { (1.0, 0.0) })
    };
    let looks = [
        (look_at(lossy(10)), None),
        (look_at(lossy(16)), Some("loss is above its limit")),
        (look_at(without(5)), None),
        (
            look_at(without(10)),
            Some("numbers of connections may contradict the shares"),
        ),
        (
            look_at(odd((1.0, 101.0))),
            Some("loss of more than 0.1% of the lines is not known"),
        ),
        (
            look_at(odd((-1.0, 0.0))),
            Some("TTLB of more than 0.1% of the lines is not known"),
        ),
    ];
    for (look, rule) in looks {
        let expected = (
            rule.map_or(Action::Ramp, |_| Action::Hold),
            rule.unwrap_or(&look.rule),
        );
        assert_eq!((look.action, &*look.rule), expected, "{look:?}");
    }
}

/// Lines without numbers of packets or times: what cannot be checked is not within its limit.
#[test]
fn what_is_not_known_holds_the_stage() {
    for (loss, time, rule) in [
        (None, Some(400.0), "loss is not known"),
        (Some(0.0), None, "TTLB is not known"),
        // A clock that went back.
        (Some(0.0), Some(-400.0), "TTLB is not known"),
    ] {
        let mut log = Log::new();
        for hour in 0..4 {
            for number in 0..2000 {
                let (is_arm, spread) = (number % 10 == 0, (log.unit() - 0.5).exp());
                log.add(&Line {
                    experiment: Some("x"),
                    arm: Some(if is_arm { "b" } else { "a" }),
                    config: Some("00ff-1"),
                    time_ms: Some(hour * HOUR_MS + number),
                    size: Some(1000),
                    is_complete: Some(time != Some(400.0) || number % 100 < 98),
                    ttlb_ms: if is_arm { time } else { Some(400.0) }.map(|time| time * spread),
                    sent: loss.map(|_| 100.0),
                    lost: loss,
                    ..Line::default()
                });
            }
            log.hour += 1;
        }
        let look = log
            .ramp
            .look(&subject(&log.plan), &log.tally, log.tally.until_ms)
            .expect("not over");
        assert_eq!((look.action, &*look.rule), (Action::Hold, rule));
    }
}
