//! How much better an arm must be to win, or how much slower it may be.

use super::*;
use crate::standing::Standing;

/// A ramp under this limit, of an arm whose TTLB is a multiple of the baseline's.
fn end(win: f64, factor: f64) -> (Look, Ramp) {
    let mut log = Log::new();
    log.plan.win = win;
    log.plan.most_time = Duration::from_secs(12 * 3600);
    let start = Ramp::default().start(&subject(&log.plan), "hash", 0, 0);
    log.ramp = Ramp::new(vec![start]);
    let look = log.until_end(4000, [400.0, 400.0 * factor], [0.01; 2], [0.01; 2]);
    (look, log.ramp)
}

#[test]
fn a_win_exceeds_its_limit() {
    for (win, factor, action, rule) in [
        (
            0.0,
            0.97,
            Action::Win,
            "TTLB of the last stage is lower, by ",
        ),
        // Better, by less than enough.
        (0.04, 0.97, Action::Futile, "TTLB is not 5% lower"),
        (
            0.02,
            0.85,
            Action::Win,
            "TTLB of the last stage is lower, by ",
        ),
        // No effect, which is enough.
        (0.0, 1.0, Action::Futile, "TTLB is not 5% lower"),
        (
            -0.04,
            1.0,
            Action::Win,
            "TTLB of the last stage is at most ",
        ),
        // Slower, by no more than is accepted, and by more.
        (0.0, 1.04, Action::Futile, "TTLB is not 5% lower"),
        (
            -0.1,
            1.04,
            Action::Win,
            "TTLB of the last stage is at most ",
        ),
        (-0.02, 1.1, Action::Futile, "TTLB is higher by more than 2%"),
        (
            -0.02,
            1.5,
            Action::StopHarm,
            "TTLB is higher by more than 2%",
        ),
        (0.0, 1.5, Action::StopHarm, "TTLB is higher"),
    ] {
        let (look, _) = end(win, factor);
        let case = format!("{win} {factor}: {look:?}");
        assert_eq!(look.action, action, "{case}");
        assert!(look.rule.starts_with(rule), "{case}");
        if action == Action::Win {
            let high = look.stage_ttlb.and_then(|of| of.high).expect("a bound");
            assert!(high < -win, "{case}");
            assert_eq!(look.rule.contains("higher"), high > 0.0, "{case}");
        }
    }
}

#[test]
fn the_last_stage_says_what_it_waits_for() {
    for (win, rule) in [
        (0.0, "no significant difference yet"),
        (
            0.02,
            "TTLB of the last stage is not significantly lower by more than 2% yet",
        ),
        (
            -0.01,
            "TTLB of the last stage may be higher by more than 1%",
        ),
    ] {
        let mut log = Log::new();
        log.plan.win = win;
        log.plan.stages = vec![0.5];
        let look = (0..3).map(|_| log.hour(600, [400.0, 398.0], [0.01; 2], [0.0; 2]));
        let last = look.last().expect("three");
        assert_eq!((last.action, &*last.rule), (Action::Hold, rule));
    }
}

#[test]
fn the_limit_of_a_win_is_in_the_first_look_and_drawn() {
    let drawn = |win: f64| {
        let (_, ramp) = end(win, 1.0);
        let setup = serde_json::to_string(&ramp.looks()[0].setup).expect("a setup");
        let page = Standing::of(&ramp).expect("a setup").page();
        let of = |place: usize| page.sequences[place].boundaries.clone();
        (setup, of(1), of(2))
    };
    let at = |value: f64, name: &str| (value, name.to_owned());
    let none = || at(0.0, "no change");
    let (setup, whole, stage) = drawn(0.0);
    assert!(!setup.contains("win"), "{setup}");
    assert_eq!(whole, [at(-5.0, "planned effect"), none()]);
    assert_eq!(stage, [none()]);
    let (setup, whole, stage) = drawn(0.02);
    assert!(setup.contains("\"win\":0.02"), "{setup}");
    assert_eq!(whole, [at(-5.0, "planned effect"), none()]);
    assert_eq!(stage, [at(-2.0, "limit of a win")]);
    let (_, whole, stage) = drawn(-0.01);
    assert_eq!(whole, [at(1.0, "limit of a win")]);
    assert_eq!(stage, whole);
}
