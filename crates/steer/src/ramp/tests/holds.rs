//! What holds a stage: values beyond a limit, and values that are not known.

use super::*;

/// Two hours of an arm that is faster and loses more packets than the guard rail permits, but not significantly more; or lacks
/// lines, but not so many that it is an alarm.
#[test]
fn what_was_seen_beyond_a_guard_rail_or_against_the_shares_holds_the_stage() {
    for (lossy, lines, rule) in [
        (10, 200, None),
        (16, 200, Some("loss is above its limit")),
        (10, 164, None),
        (
            10,
            146,
            Some("numbers of connections may contradict the shares"),
        ),
    ] {
        let mut log = Log::new();
        log.hour = 1;
        for (arm, count, lossy) in [(0, 1800, 10), (1, lines, lossy)] {
            for number in 0..count {
                log.add(&Line {
                    experiment: Some("x"),
                    arm: Some(["a", "b"][arm]),
                    config: Some("00ff-1"),
                    time_ms: Some(number % 3 * HOUR_MS),
                    size: Some(1000),
                    is_complete: Some(true),
                    ttlb_ms: Some([400.0, 300.0][arm] + (number % 9) as f64),
                    sent: Some(100.0),
                    lost: Some(if number % 100 < lossy { 10.0 } else { 0.0 }),
                    ..Line::default()
                });
            }
        }
        let look = log
            .ramp
            .look(&subject(&log.plan), &log.tally, log.tally.until_ms);
        let look = look.expect("not over");
        let expected = (
            rule.map_or(Action::Ramp, |_| Action::Hold),
            rule.unwrap_or(&look.rule),
        );
        assert_eq!((look.action, &*look.rule), expected, "{look:?}");
    }
}

/// Lines without numbers of packets or times: what cannot be checked is not within its limit. Slow transfers of the arm without a
/// time would make it faster.
#[test]
fn what_is_not_known_holds_the_stage() {
    for (lost, ttlb, rule) in [
        (0.0, 400.0, None),
        (
            101.0,
            400.0,
            Some("loss of more than 0.1% of the lines is not known"),
        ),
        (
            0.0,
            -1.0,
            Some("TTLB of more than 0.1% of the lines is not known"),
        ),
    ] {
        let mut log = Log::new();
        log.hour = 1;
        for number in 0..6000 {
            let is_odd = number % 1000 < 2;
            log.add(&Line {
                experiment: Some("x"),
                arm: Some(if number % 10 == 0 { "b" } else { "a" }),
                config: Some("00ff-1"),
                time_ms: Some(number % 3 * HOUR_MS),
                size: Some(1000),
                is_complete: Some(true),
                ttlb_ms: Some(if is_odd {
                    ttlb
                } else {
                    [400.0, 300.0][usize::from(number % 10 == 0)] + (number % 9) as f64
                }),
                sent: Some(100.0),
                lost: Some(if is_odd { lost } else { 0.0 }),
                ..Line::default()
            });
        }
        let look = log
            .ramp
            .look(&subject(&log.plan), &log.tally, log.tally.until_ms);
        let look = look.expect("not over");
        let expected = (
            rule.map_or(Action::Ramp, |_| Action::Hold),
            rule.unwrap_or(&look.rule),
        );
        assert_eq!((look.action, &*look.rule), expected, "{look:?}");
    }
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
