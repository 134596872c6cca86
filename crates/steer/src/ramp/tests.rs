use core::time::Duration;

use lastbyte_scenario::RampPlan;
use lastbyte_units::SplitMix64;

use super::*;
use crate::tally::{Line, Values};

const HOUR_MS: u64 = 3_600_000;

mod holds;
mod win;

fn plan() -> RampPlan {
    RampPlan {
        stages: vec![0.1, 0.5],
        least_time: Duration::from_secs(2 * 3600),
        least_connections: 100,
        most_time: Duration::from_secs(40 * 3600),
        ..RampPlan::default()
    }
}

/// Lines that do not count, like this one otherwise.
fn uncounted(line: Line<'_>) -> [Line<'_>; 4] {
    [
        Line {
            experiment: None,
            ..line
        },
        Line {
            config: Some("00ff-2"),
            ..line
        },
        Line {
            arm: Some("c"),
            ..line
        },
        Line {
            time_ms: None,
            ..line
        },
    ]
}

/// A log as a server writes it.
struct Log {
    plan: RampPlan,
    ramp: Ramp,
    tally: Tally,
    random: SplitMix64,
    hour: u64,
    /// The smoothed round-trip time beside the minimum, of each arm; without, it is not known.
    rtt: Option<[f64; 2]>,
}

impl Log {
    fn new() -> Self {
        let plan = plan();
        let mut ramp = Ramp::default();
        ramp.push(ramp.start(&subject(&plan), "hash", 0, 0));
        Self {
            plan,
            ramp,
            tally: Tally::default(),
            random: SplitMix64::stream(1, 2),
            hour: 0,
            rtt: Some([1.2; 2]),
        }
    }

    fn unit(&mut self) -> f64 {
        (self.random.number() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn add(&mut self, line: &Line<'_>) {
        let now = (self.hour + 1) * HOUR_MS;
        let epochs = self.ramp.epochs();
        self.tally
            .add(line, &subject(&self.plan), Some(&epochs), now);
    }

    /// An hour of connections with the shares in effect, and a look.
    fn hour(&mut self, count: u64, ttlb: [f64; 2], loss: [f64; 2], incomplete: [f64; 2]) -> Look {
        let epoch = *self.ramp.epochs().last().expect("an epoch");
        let config = format!("00ff-{}", epoch.number);
        for number in 0..count {
            let arm = usize::from(self.unit() < epoch.share);
            let spread = (self.unit() - 0.5).exp();
            let is_complete = self.unit() >= incomplete[arm];
            let share = loss[arm] * 2.0 * self.unit();
            let line = Line {
                experiment: Some("x"),
                arm: Some(["a", "b"][arm]),
                site: Some(["fra", "nrt"][(number % 2) as usize]),
                config: Some(&config),
                time_ms: Some(self.hour * HOUR_MS + number),
                size: Some(1000),
                is_complete: Some(is_complete),
                ttlb_ms: is_complete.then_some(ttlb[arm] * spread),
                sent: Some(100.0),
                lost: Some(100.0 * share),
                rtt_ms: [
                    Some(20.0),
                    self.rtt.map(|rtt| 20.0 * rtt[arm] * (0.2 * spread).exp()),
                ],
            };
            self.add(&line);
        }
        self.hour += 1;
        let look = self
            .ramp
            .look(&subject(&self.plan), &self.tally, self.tally.until_ms)
            .expect("not over");
        self.ramp.push(look.clone());
        look
    }

    fn until_end(
        &mut self,
        count: u64,
        ttlb: [f64; 2],
        loss: [f64; 2],
        incomplete: [f64; 2],
    ) -> Look {
        for _ in 0..1000 {
            let look = self.hour(count, ttlb, loss, incomplete);
            if look.action.is_end() {
                return look;
            }
        }
        panic!("no end after 1000 hours");
    }
}

fn subject(plan: &RampPlan) -> Subject<'_> {
    Subject {
        name: "x",
        arms: ["a", "b"],
        plan,
    }
}

#[test]
fn an_arm_that_is_faster_goes_through_the_stages_and_keeps_the_holdback() {
    let mut log = Log::new();
    let end = log.until_end(2000, [400.0, 340.0], [0.01; 2], [0.01; 2]);
    assert_eq!((end.action, end.share, end.epoch), (Action::Win, 0.95, 3));
    let shares: Vec<f64> = log.ramp.epochs().iter().map(|epoch| epoch.share).collect();
    assert_eq!(shares, [0.1, 0.5, 0.95]);
    // Two hours of each stage at the least, from its first line to its last one.
    let ramp = log
        .ramp
        .looks()
        .iter()
        .find(|look| look.action == Action::Ramp);
    assert_eq!(ramp.expect("a ramp").look, 3);
    assert!(end.look >= 4 && end.hours >= 2, "{end:?}");
    let change = end.ttlb.expect("known");
    assert!(
        (change.value + 0.15).abs() < 0.03 && change.high < Some(0.0),
        "{change:?}"
    );
    assert_eq!(
        log.ramp
            .look(&subject(&log.plan), &log.tally, log.tally.until_ms),
        None,
        "it is over"
    );
    let stopped = log
        .ramp
        .stop(String::new(), 0, 0)
        .expect("the arm has connections");
    assert_eq!((stopped.action, stopped.share), (Action::Stopped, 0.0));
    log.ramp.push(stopped);
    assert_eq!(log.ramp.stop(String::new(), 0, 0), None);
}

#[test]
fn no_share_grows_in_a_window_of_freeze() {
    // Each day from 03:00 on, but for the last hour of it, and the whole of the second day.
    let windows = ["Thu 03:00 to Thu 23:00", "1970-01-02 to 1970-01-02"];
    let windows = windows.map(|text| text.parse().expect("a window"));
    let mut log = Log::new();
    log.plan.freeze = windows.to_vec();
    let end = log.until_end(2000, [400.0, 340.0], [0.01; 2], [0.01; 2]);
    let of = |action| {
        let looks = log.ramp.looks().iter();
        looks
            .filter(move |look| look.action == action)
            .map(|look| (look.at / HOUR_MS, look.share))
            .collect::<Vec<_>>()
    };
    // The hour of the look is the last one with lines.
    assert_eq!(of(Action::Ramp), [(2, 0.5)]);
    assert_eq!((end.action, end.at / HOUR_MS), (Action::Win, 23));
    let frozen = log
        .ramp
        .looks()
        .iter()
        .filter(|look| look.rule.contains("frozen"));
    let frozen: Vec<&Look> = frozen.collect();
    assert_eq!(frozen.len(), 18, "from 05:00 to 22:00");
    assert_eq!(
        frozen[0].rule.split(", by").next(),
        Some("frozen from Thu 03:00 to Thu 23:00, else win: TTLB of the last stage is lower")
    );
    assert!(
        frozen
            .iter()
            .all(|look| look.action == Action::Hold && look.stage == 1)
    );
    // Harm stops at any time.
    let mut log = Log::new();
    log.plan.freeze = windows.to_vec();
    for _ in 0..3 {
        log.hour(10, [400.0; 2], [0.01; 2], [0.01; 2]);
    }
    let end = log.until_end(2000, [400.0, 500.0], [0.01; 2], [0.01; 2]);
    assert_eq!(end.action, Action::StopHarm);
    assert!(end.at / HOUR_MS < 23, "{end:?}");
}

/// Connections at one time, of an arm that is faster.
fn fill_at(log: &mut Log, time_ms: u64) {
    log.hour = time_ms / HOUR_MS;
    for number in 0..2000 {
        let is_arm = number % 10 == 0;
        log.add(&Line {
            experiment: Some("x"),
            arm: Some(if is_arm { "b" } else { "a" }),
            config: Some("00ff-1"),
            time_ms: Some(time_ms),
            size: Some(1000),
            is_complete: Some(true),
            ttlb_ms: Some(
                (400.0 + f64::from(number / 10 % 20) * 20.0) * if is_arm { 0.9 } else { 1.0 },
            ),
            sent: Some(100.0),
            lost: Some(0.0),
            ..Line::default()
        });
    }
}

#[test]
fn a_stage_lasts_its_least_time_by_the_clock_and_by_its_lines() {
    const MINUTE_MS: u64 = 60_000;
    let mut log = Log::new();
    log.plan.least_time = Duration::from_secs(3600);
    let plan = log.plan.clone();
    let subject = subject(&plan);
    log.ramp = Ramp::default();
    log.ramp
        .push(log.ramp.start(&subject, "hash", 0, 30 * MINUTE_MS));
    for (line, clock, rule) in [
        (0, 600, "1 of 60 minutes of the stage"),
        (58, 600, "59 of 60 minutes of the stage"),
        (59, 89, "59 of 60 minutes of the stage"),
        (
            59,
            90,
            "least time and connections of the stage, within limits",
        ),
    ] {
        // The clock of a look before was fast.
        let first = &log.ramp.looks()[0];
        let fast = Look {
            at: u64::MAX,
            ..first.clone()
        };
        let next = Look {
            look: 1,
            action: Action::Hold,
            ..first.clone()
        };
        let corrected = Ramp::new(vec![fast, next]);
        assert_eq!(corrected.epochs(), log.ramp.epochs());
        fill_at(&mut log, line * MINUTE_MS);
        let look = log.ramp.look(&subject, &log.tally, clock * MINUTE_MS);
        let look = look.expect("not over");
        assert_eq!(look.rule, rule, "{line} {clock}");
        assert_eq!(
            log.ramp.again(&subject, &log.tally, &look),
            Some(look.clone())
        );
    }
}

/// A clock that is a day slow when the stage begins, and is set right then.
#[test]
fn a_clock_that_is_set_right_counts_for_nothing() {
    const MINUTE_MS: u64 = 60_000;
    const DAY: u64 = 24 * 60;
    let mut log = Log::new();
    let plan = log.plan.clone();
    for (line, rule) in [
        (10, "1 of 120 minutes of the stage"),
        (20, "11 of 120 minutes of the stage"),
        (DAY + 30, "12 of 120 minutes of the stage"),
        (DAY + 65, "47 of 120 minutes of the stage"),
        (DAY + 137, "119 of 120 minutes of the stage"),
        (
            DAY + 138,
            "least time and connections of the stage, within limits",
        ),
    ] {
        fill_at(&mut log, line * MINUTE_MS);
        let look = log.ramp.look(&subject(&plan), &log.tally, line * MINUTE_MS);
        assert_eq!(look.expect("not over").rule, rule, "{line}");
    }
}

#[test]
fn lines_of_the_future_and_others_that_cannot_be_read_hold_the_stage() {
    let mut log = Log::new();
    let plan = log.plan.clone();
    for hour in 0..3 {
        fill_at(&mut log, hour * HOUR_MS);
    }
    let look = |log: &Log| {
        let look = log.ramp.look(&subject(&plan), &log.tally, 3 * HOUR_MS);
        look.expect("not over")
    };
    let ahead = Line {
        experiment: Some("x"),
        arm: Some("a"),
        config: Some("00ff-1"),
        time_ms: Some(30 * HOUR_MS),
        ..Line::default()
    };
    for _ in 0..3 {
        log.add(&ahead);
    }
    log.tally.add_unreadable(3);
    assert_eq!(
        look(&log).action,
        Action::Ramp,
        "6 of 6000 are one of a thousand"
    );
    log.add(&ahead);
    let held = look(&log);
    assert_eq!(held.action, Action::Hold);
    assert!(
        held.rule
            .starts_with("4 lines of the future and 3 that are not JSON objects, else ramp: "),
        "{}",
        held.rule
    );
    // Those lines count later, and the decision is that of then.
    log.tally.ignored = Ignored::default();
    assert_eq!(
        log.ramp.again(&subject(&plan), &log.tally, &held),
        Some(held)
    );
    let soon = Line {
        time_ms: Some(HOUR_MS + 100_000),
        ..ahead
    };
    log.hour = 0;
    log.add(&soon);
    assert_eq!(log.tally.ignored.without_time, 1);
}

#[test]
fn a_line_of_a_later_epoch_shows_that_decisions_are_missing() {
    let mut log = Log::new();
    let mut seen = Vec::new();
    for number in [0, 1, 18, 17, 2] {
        let config = format!("00ff-{number}");
        log.add(&Line {
            experiment: Some("x"),
            config: Some(&config),
            ..Line::default()
        });
        seen.push(log.tally.later_epoch());
    }
    assert_eq!(seen, [None, None, None, Some(17), Some(17)]);
}

/// Fills the stage with transfers that are complete in these shares.
fn fill_with(log: &mut Log, complete: [f64; 2]) {
    for hour in 0..3 {
        log.hour = hour;
        for number in 0..2000_u32 {
            let arm = usize::from(number % 10 == 0);
            let is_complete = f64::from(number / 10 % 10) < complete[arm] * 10.0;
            log.add(&Line {
                experiment: Some("x"),
                arm: Some(["a", "b"][arm]),
                config: Some("00ff-1"),
                time_ms: Some(hour * HOUR_MS),
                size: Some(1000),
                is_complete: Some(is_complete),
                ttlb_ms: is_complete.then_some([400.0, 360.0][arm] + f64::from(number % 20)),
                sent: Some(100.0),
                lost: Some(0.0),
                ..Line::default()
            });
        }
    }
}

#[test]
fn transfers_of_which_most_are_incomplete_hold_the_stage_and_those_of_the_arm_alone_end_it() {
    for (complete, has_bounds, action, rule) in [
        (
            [0.0, 0.0],
            false,
            Action::Hold,
            "more than half of the baseline's transfers are incomplete",
        ),
        (
            [0.4, 0.4],
            true,
            Action::Hold,
            "more than half of the baseline's transfers are incomplete",
        ),
        ([1.0, 0.0], true, Action::StopHarm, "TTLB is higher"),
        (
            [1.0, 1.0],
            false,
            Action::Ramp,
            "least time and connections of the stage, within limits",
        ),
    ] {
        let mut log = Log::new();
        let plan = log.plan.clone();
        fill_with(&mut log, complete);
        let look = log.ramp.look(&subject(&plan), &log.tally, 3 * HOUR_MS);
        let look = look.expect("not over");
        assert_eq!(
            (look.action, look.rule.as_str()),
            (action, rule),
            "{complete:?}"
        );
        let bounds = look
            .incomplete
            .map(|of| (of.low.is_some(), of.high.is_some()));
        // Equal values have none.
        assert_eq!(bounds.is_some_and(|of| of.0), has_bounds, "{complete:?}");
    }
}

#[test]
fn a_ramp_does_not_start_in_a_window_of_freeze() {
    let plan = RampPlan {
        freeze: vec!["Thu 00:00 to Thu 03:00".parse().expect("a window")],
        ..plan()
    };
    let subject = subject(&plan);
    let mut ramp = Ramp::default();
    let first = ramp.start(&subject, "hash", 0, HOUR_MS);
    assert_eq!(
        (first.action, first.share, first.epoch),
        (Action::Hold, 0.0, 1)
    );
    assert_eq!(
        first.rule,
        "frozen from Thu 00:00 to Thu 03:00, else start: first stage"
    );
    assert!(first.setup.is_some());
    ramp.push(first);
    assert!(ramp.waits() && ramp.epochs().is_empty());
    assert_eq!(ramp.look(&subject, &Tally::default(), 2 * HOUR_MS), None);
    let stopped = ramp
        .stop("enough".to_owned(), 2 * HOUR_MS, 0)
        .expect("not over");
    let ended = Ramp::new(vec![ramp.looks()[0].clone(), stopped]);
    assert!(ended.is_over() && !ended.waits() && ended.follows(&plan));
    let start = ramp.start(&subject, "hash", 3 * HOUR_MS - 1, 3 * HOUR_MS);
    assert_eq!(
        (start.action, start.share, start.epoch),
        (Action::Start, 0.1, 2)
    );
    assert_eq!((start.look, start.setup.is_none()), (1, true));
    let mut log = Log::new();
    log.ramp = ramp;
    log.ramp.push(start);
    log.hour = 3;
    // Lines from before the start are of no epoch.
    log.add(&Line {
        experiment: Some("x"),
        arm: Some("a"),
        config: Some("00ff-1"),
        time_ms: Some(5),
        ..Line::default()
    });
    assert_eq!(log.tally.ignored.other_epoch, 1);
    let end = log.until_end(2000, [400.0, 340.0], [0.01; 2], [0.01; 2]);
    assert_eq!((end.action, end.epoch), (Action::Win, 4));
    let again = Ramp::new(log.ramp.looks().to_vec());
    assert!(again.follows(&plan));
    let mut before = Ramp::default();
    for look in &again.looks()[..2] {
        let computed = before.again(&subject, &Tally::default(), look);
        assert_eq!(computed.as_ref(), Some(look));
        before.push(look.clone());
    }
}

#[test]
fn decisions_that_no_ramp_makes_are_told() {
    let mut log = Log::new();
    log.until_end(2000, [400.0, 340.0], [0.01; 2], [0.01; 2]);
    let looks = log.ramp.looks();
    assert!(log.ramp.follows(&log.plan));
    for (place, change) in [
        (
            0,
            &(|look: &mut Look| look.share = 0.5) as &dyn Fn(&mut Look),
        ),
        (2, &|look| look.share = 0.99),
        (2, &|look| look.stage = 1),
        (looks.len() - 1, &|look| look.stage = 1000),
        // A win is decided in the last stage only.
        (looks.len() - 1, &|look| look.stage = 0),
        (looks.len() - 1, &|look| look.share = 1.0),
    ] {
        let mut looks = looks.to_vec();
        change(&mut looks[place]);
        let ramp = Ramp::new(looks);
        assert!(!ramp.follows(&log.plan), "{place}");
    }
    for change in [
        &(|look: &mut Look| look.stage = usize::MAX) as &dyn Fn(&mut Look),
        &|look| look.connections = BTreeMap::from([("s".to_owned(), [0, 1 << 49])]),
        &|look| look.epoch = u32::MAX,
        &|look| look.look = u64::MAX,
    ] {
        let mut look = looks[2].clone();
        assert!(look.is_in_range());
        change(&mut look);
        assert!(!look.is_in_range());
    }
}

#[test]
fn an_arm_that_harms_has_no_connections() {
    for (ttlb, loss, incomplete, rule) in [
        ([400.0, 500.0], [0.01; 2], [0.01; 2], "TTLB is higher"),
        (
            [400.0; 2],
            [0.01, 0.04],
            [0.01; 2],
            "loss rose by more than 0.5%",
        ),
        (
            [400.0, 300.0],
            [0.01; 2],
            [0.01, 0.06],
            "the share of incomplete transfers rose by more than 0.5%",
        ),
    ] {
        let end = Log::new().until_end(2000, ttlb, loss, incomplete);
        assert_eq!(
            (end.action, end.share),
            (Action::StopHarm, 0.0),
            "{rule}: {end:?}"
        );
        assert_eq!(end.rule, rule);
    }
}

#[test]
fn a_rise_of_the_round_trip_time_ends_the_ramp_if_there_is_a_limit() {
    for (limit, rtt, action, rule) in [
        (
            Some(0.1),
            Some([1.2, 1.5]),
            Action::StopHarm,
            "the RTT beside its minimum rose by more than 10%",
        ),
        (Some(0.1), Some([1.2, 1.31]), Action::Win, ""),
        (None, Some([1.2, 1.5]), Action::Win, ""),
        (None, None, Action::Win, ""),
    ] {
        let mut log = Log::new();
        (log.plan.rtt, log.rtt) = (limit, rtt);
        let end = log.until_end(2000, [400.0, 340.0], [0.01; 2], [0.01; 2]);
        assert_eq!(end.action, action, "{end:?}");
        assert!(end.rule.starts_with(rule), "{end:?}");
        let rise = rtt.map(|rtt| rtt[1] / rtt[0] - 1.0);
        let is_near = |of: Change| (of.value - rise.unwrap_or(f64::NAN)).abs() < 0.02;
        assert_eq!(end.rtt.map(is_near), rise.map(|_| true), "{end:?}");
    }
    // What is not known holds.
    let mut log = Log::new();
    (log.plan.rtt, log.rtt) = (Some(0.1), None);
    for _ in 0..5 {
        log.hour(2000, [400.0, 340.0], [0.01; 2], [0.01; 2]);
    }
    let last = log.ramp.looks().last().expect("a look");
    assert_eq!(
        (last.action, last.rule.as_str()),
        (Action::Hold, "the RTT beside its minimum is not known")
    );
}

#[test]
fn an_arm_without_an_effect_ends() {
    let end = Log::new().until_end(2000, [400.0; 2], [0.01; 2], [0.01; 2]);
    assert_eq!((end.action, end.share), (Action::Futile, 0.0), "{end:?}");
    assert_eq!(end.rule, "TTLB is not 5% lower");
    // Few connections: the time of the plan ends first.
    let mut few = Log::new();
    few.plan.most_time = Duration::from_secs(4 * 3600);
    let end = few.until_end(1100, [400.0; 2], [0.01; 2], [0.01; 2]);
    assert_eq!(
        (end.action, end.rule.as_str()),
        (Action::Futile, "undecided after 4 hours")
    );
}

#[test]
fn an_arm_that_never_has_enough_connections_ends() {
    let mut log = Log::new();
    log.plan.most_time = Duration::from_secs(4 * 3600);
    log.plan.least_connections = 1_000_000;
    let end = log.until_end(1100, [400.0; 2], [0.01; 2], [0.01; 2]);
    assert_eq!(
        (end.action, end.share, end.rule.as_str()),
        (Action::Futile, 0.0, "undecided after 4 hours")
    );
}

#[test]
fn nothing_is_decided_below_the_least_number_of_connections() {
    let mut log = Log::new();
    // Large harm, and too few connections.
    let look = log.hour(500, [400.0, 4000.0], [0.0, 0.5], [0.0, 0.9]);
    assert_eq!((look.action, look.share), (Action::Hold, 0.1));
    assert!(
        look.rule.ends_with("of 100 connections of `b`"),
        "{}",
        look.rule
    );
    let look = log.hour(1000, [400.0, 4000.0], [0.0, 0.5], [0.0, 0.9]);
    assert_eq!(look.action, Action::StopHarm);
}

#[test]
fn an_arm_whose_lines_are_missing_is_an_alarm() {
    let mut log = Log::new();
    for number in 0..2000 {
        log.add(&Line {
            experiment: Some("x"),
            arm: Some("a"),
            config: Some("00ff-1"),
            time_ms: Some(number),
            is_complete: Some(true),
            ttlb_ms: Some(100.0),
            ..Line::default()
        });
    }
    let look = log
        .ramp
        .look(&subject(&log.plan), &log.tally, log.tally.until_ms)
        .expect("not over");
    assert_eq!(
        (look.action, look.share, look.epoch),
        (Action::AlarmRatio, 0.0, 2)
    );
}

#[test]
fn lines_of_other_experiments_epochs_and_times_do_not_count() {
    let mut log = Log::new();
    let line = Line {
        experiment: Some("x"),
        arm: Some("a"),
        config: Some("00ff-1"),
        time_ms: Some(5),
        is_complete: Some(true),
        ttlb_ms: Some(100.0),
        ..Line::default()
    };
    log.plan.min_size = 0;
    log.add(&line);
    let others = [
        Line {
            experiment: Some("y"),
            ..line
        },
        Line {
            config: Some("00ff"),
            ..line
        },
        Line {
            config: Some("-"),
            ..line
        },
        Line {
            config: None,
            ..line
        },
        Line {
            time_ms: Some(u64::MAX),
            ..line
        },
    ];
    for other in others.into_iter().chain(uncounted(line)) {
        log.add(&other);
    }
    log.plan.min_size = 10;
    log.add(&Line {
        size: Some(9),
        ..line
    });
    assert_eq!(log.tally.connections(None), [1, 0]);
    let expected = Ignored {
        other_experiment: 2,
        other_epoch: 4,
        other_arm: 1,
        without_time: 1,
        ahead: 1,
        unreadable: 0,
        short: 1,
    };
    assert_eq!(log.tally.ignored, expected);
}

#[test]
fn parts_of_a_log_add_up_and_wrong_clocks_add_an_hour() {
    let plan = RampPlan {
        min_size: 10,
        ..plan()
    };
    let (mut whole, mut parts) = (Tally::default(), [Tally::default(), Tally::default()]);
    let epochs = [Epoch {
        number: 1,
        stage: 0,
        share: 0.1,
        since_ms: 0,
        decided_ms: 0,
    }];
    for number in 0..100_u64 {
        let line = Line {
            experiment: Some("x"),
            arm: Some(["a", "b"][(number % 2) as usize]),
            site: Some(["s", "t", "u"][(number % 3) as usize]),
            config: Some("00ff-1"),
            // One in the far future of the others.
            time_ms: Some(if number == 7 { 900 * HOUR_MS } else { number }),
            is_complete: Some(number % 5 > 0),
            size: Some(1000),
            ttlb_ms: Some(100.0 + number as f64),
            sent: Some(100.0),
            lost: Some((number % 3) as f64),
            rtt_ms: [Some(20.0), Some(20.0 + (number % 9) as f64)],
        };
        let config = format!("{number:x}-1");
        // Lines of all kinds that do not count, in both parts.
        let short = Line {
            size: Some(9),
            ..line
        };
        let others = uncounted(line).into_iter().chain([short]);
        let of_kind = (number % 7) as usize;
        let line = Line {
            config: if number % 20 == 0 {
                Some(&config)
            } else {
                line.config
            },
            ..line
        };
        for line in others.skip(of_kind).take(1).chain([line]) {
            whole.add(&line, &subject(&plan), Some(&epochs), 1000 * HOUR_MS);
            parts[usize::from(number > 60)].add(
                &line,
                &subject(&plan),
                Some(&epochs),
                1000 * HOUR_MS,
            );
        }
    }
    let [mut first, second] = parts;
    first.merge(&second);
    assert_eq!(first.by_site(), whole.by_site());
    assert_eq!(
        (first.until_ms, first.hours(1), first.all_hours()),
        (900 * HOUR_MS, 2, 2)
    );
    assert_eq!(whole.until_ms, 900 * HOUR_MS);
    assert_eq!(first.ignored, whole.ignored);
    let ignored = Ignored {
        other_experiment: 15,
        other_epoch: 15,
        other_arm: 14,
        without_time: 14,
        short: 14,
        ..Ignored::default()
    };
    assert_eq!(first.ignored, ignored);
    assert_eq!(first.configs(1), whole.configs(1));
    assert_eq!(first.configs(1).len(), 6);
    for of in [
        |of: &Values| of.ttlb,
        |of: &Values| of.loss,
        |of: &Values| of.incomplete,
        |of: &Values| of.rtt,
    ] {
        let value = |tally: &Tally| {
            difference(tally.strata(None, None, of))
                .expect("both")
                .value
        };
        assert!((value(&first) - value(&whole)).abs() < 1e-12);
        let bound = |tally: &Tally| {
            let of = difference(tally.strata(None, None, of)).expect("both");
            of.below(0.05, 0.05)
        };
        let (first, whole) = (bound(&first), bound(&whole));
        // Values that are all equal have no bound, in parts or not.
        assert!((first - whole).abs() < 1e-9 || (first.is_infinite() && whole.is_infinite()));
    }
}

#[test]
fn an_operator_ends_a_ramp_once() {
    let mut log = Log::new();
    log.hour(200, [400.0; 2], [0.01; 2], [0.01; 2]);
    let stopped = log.ramp.stop(String::new(), 0, 0).expect("not over");
    assert_eq!(
        (stopped.look, stopped.action, stopped.share, stopped.epoch),
        (2, Action::Stopped, 0.0, 2)
    );
    log.ramp.push(stopped);
    assert!(log.ramp.is_over() && log.ramp.stop(String::new(), 0, 0).is_none());
}

/// Adds complete transfers of both arms at a site, in the first epoch and hour.
fn fill(log: &mut Log, site: &str, counts: [u64; 2], ttlb: [f64; 2]) {
    for (arm, count) in counts.into_iter().enumerate() {
        for number in 0..count {
            log.add(&Line {
                experiment: Some("x"),
                arm: Some(["a", "b"][arm]),
                site: Some(site),
                config: Some("00ff-1"),
                time_ms: Some(0),
                size: Some(1000),
                is_complete: Some(true),
                ttlb_ms: Some(ttlb[arm] * (1.0 + (number % 10) as f64 / 10.0)),
                ..Line::default()
            });
        }
    }
}

#[test]
fn an_arm_that_is_slower_at_a_site_with_enough_connections_is_stopped() {
    for (counts, action) in [([900, 100], Action::StopHarm), ([891, 99], Action::Hold)] {
        let mut log = Log::new();
        fill(&mut log, "fra", [18_000, 2000], [400.0, 300.0]);
        fill(&mut log, "nrt", counts, [400.0, 900.0]);
        let look = log
            .ramp
            .look(&subject(&log.plan), &log.tally, log.tally.until_ms);
        let look = look.expect("not over");
        assert_eq!(look.action, action, "{look:?}");
        let is_named = look.rule == "TTLB is higher at site `nrt`";
        assert_eq!(is_named, action == Action::StopHarm, "{look:?}");
    }
}

#[test]
fn sites_beyond_the_limit_are_told_and_configurations_are_left_out() {
    let plan = plan();
    let epochs = [Epoch {
        number: 1,
        stage: 0,
        share: 0.1,
        since_ms: 0,
        decided_ms: 0,
    }];
    let mut parts = [Tally::default(), Tally::default()];
    for number in 0..1100_usize {
        let (site, config) = (format!("site-{number}"), format!("{number:x}-1"));
        let line = Line {
            experiment: Some("x"),
            arm: Some(["a", "b"][number % 2]),
            site: Some(&site),
            config: Some(&config),
            time_ms: Some(1),
            size: Some(1000),
            ttlb_ms: Some(100.0),
            ..Line::default()
        };
        parts[usize::from(number >= 550)].add(&line, &subject(&plan), Some(&epochs), 1);
    }
    for part in &parts {
        assert_eq!((part.by_site().len(), part.excess_sites()), (550, 38));
        assert_eq!(part.configs(1).len(), 16);
    }
    let [mut sum, second] = parts;
    sum.merge(&second);
    assert_eq!((sum.by_site().len(), sum.excess_sites()), (1100, 588));
    assert_eq!(sum.connections(None), [550, 550]);
    assert_eq!(sum.configs(1).len(), 16);
}
