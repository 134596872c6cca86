//! Predictions in a small world whose rule is known: no simulation.

use super::*;
use crate::{BankPath, line::KEYS};

fn effort() -> Effort {
    Effort {
        trees: 40,
        lines: 40,
    }
}

fn line(numbers: &[(Column, f64)]) -> Line {
    let mut all = vec![f64::NAN; KEYS.len()];
    for (column, number) in numbers {
        all[*column as usize] = *number;
    }
    Line::of_numbers(all)
}

/// A path: of a population that has more or fewer deep queues, in tenths.
struct World {
    random: Random,
    deep: f64,
}

impl World {
    fn new(seed: u64, deep: f64) -> Self {
        Self {
            random: Random::new(seed, 99),
            deep,
        }
    }

    /// The lines of a path under the old and the new arm: on shallow queues the old one loses packets, and the new one is faster; on
    /// deep queues it is slower. Most paths with deep queues show it by their smoothed round-trip time.
    fn path(&mut self) -> (Line, Line) {
        let random = &mut self.random;
        let rtt = 10.0 + 90.0 * random.unit();
        let is_deep = random.unit() < self.deep;
        let lost = if is_deep {
            0.0
        } else {
            4.0 + 8.0 * random.unit()
        };
        let smoothed = rtt
            * if is_deep {
                1.5 + random.unit()
            } else {
                1.1 + 0.6 * random.unit()
            };
        let time = rtt * (6.0 + 0.1 * lost + random.unit());
        let effect = if is_deep { 0.2 } else { -0.03 * lost } + 0.04 * random.normal();
        let row = |ttlb: f64, lost: f64| {
            line(&[
                (Column::Size, 3e5),
                (Column::Ttlb, ttlb),
                (Column::Sent, 250.0),
                (Column::Lost, lost),
                (Column::RttMinimum, rtt),
                (Column::RttSmoothed, smoothed),
            ])
        };
        (row(time, lost), row(time * libm::exp(effect), lost * 0.5))
    }
}

/// A bank of 24 populations, each with another share of deep queues.
fn bank(paths: usize) -> Bank {
    let (mut old, mut new, mut all) = (Vec::new(), Vec::new(), Vec::new());
    for path in 0..paths {
        let population = path % 24;
        let mut world = World::new(path as u64, (population as f64 + 0.5) / 24.0);
        let (one, other) = world.path();
        old.push(Some(one));
        new.push(Some(other));
        all.push(BankPath {
            seed: path as u64,
            population: population as u32,
            class: "any".to_owned(),
        });
    }
    let mut bank = Bank::new(all);
    bank.add_arm("again", old.clone());
    bank.add_arm("old", old);
    bank.add_arm("new", new);
    bank
}

/// A log, and the true change of the geometric mean.
fn log(seed: u64, deep: f64, lines: usize) -> (Vec<LogLine>, f64) {
    let mut world = World::new(1_000_000 + seed, deep);
    let mut change = 0.0;
    let log = (0..lines).map(|number| {
        let (old, new) = world.path();
        change += new.log_ttlb().expect("a time") - old.log_ttlb().expect("a time");
        LogLine {
            arm: "old".to_owned(),
            site: Some(["a", "b"][number % 2].to_owned()),
            line: old,
        }
    });
    let log: Vec<LogLine> = log.collect();
    let lines = log.len() as f64;
    (log, libm::expm1(change / lines))
}

#[test]
fn populations_unlike_the_bank_are_predicted_within_intervals_that_cover_the_truth() {
    let bank = bank(1200);
    let mut covered = 0;
    for (seed, deep) in [0.1, 0.9, 0.3, 0.7, 0.5, 0.0, 1.0, 0.2, 0.8, 0.4]
        .into_iter()
        .enumerate()
    {
        let (log, truth) = log(seed as u64, deep, 200);
        let prediction = predict(&bank, &log, "old", "new", effort(), 7).expect("a prediction");
        let mean = prediction.groups[0].mean;
        assert!(
            (mean.value - truth).abs() < 0.04,
            "{deep}: {mean:?}, {truth}"
        );
        covered += u32::from(mean.contains(truth));
        assert!(
            prediction
                .groups
                .iter()
                .any(|group| group.kind == GroupKind::Site)
        );
    }
    assert!(covered >= 8, "{covered} of 10");
}

#[test]
fn an_arm_that_is_the_logged_one_changes_nothing() {
    let bank = bank(600);
    for seed in 0..5 {
        let (log, _) = log(seed, 0.4, 150);
        let prediction =
            predict(&bank, &log, "old", "again", effort(), seed).expect("a prediction");
        let all = &prediction.groups[0];
        assert!(
            all.mean.value.abs() < 1e-9 && all.mean.contains(0.0),
            "{all:?}"
        );
        assert!(
            all.slower.value < 1e-9 && all.loss.value.abs() < 1e-9,
            "{all:?}"
        );
    }
}

#[test]
fn the_same_seed_gives_the_same_prediction_and_another_one_other_draws() {
    let bank = bank(600);
    let (log, _) = log(3, 0.4, 150);
    let of = |seed| format!("{:?}", predict(&bank, &log, "old", "new", effort(), seed));
    assert_eq!(of(1), of(1));
    assert_ne!(of(1), of(2));
}

#[test]
fn a_check_holds_for_the_stack_of_the_bank_and_fails_for_a_slower_one() {
    let bank = bank(1200);
    let (mut log, _) = log(5, 0.4, 200);
    let kind = CheckKind::Own {
        arm: "old".to_owned(),
    };
    let holds = check(&bank, &log, &kind, effort(), 1).expect("a check");
    assert_eq!(holds.outcome(), Outcome::Holds, "{holds:?}");
    for line in &mut log {
        let ttlb = line.line.get(Column::Ttlb).map(|ttlb| ttlb * 1.5);
        let numbers = line.line.numbers().enumerate();
        let numbers = numbers.map(|(at, number)| {
            let number = if at == Column::Ttlb as usize {
                ttlb
            } else {
                number
            };
            number.unwrap_or(f64::NAN)
        });
        line.line = Line::of_numbers(numbers.collect::<Vec<_>>());
    }
    let fails = check(&bank, &log, &kind, effort(), 1).expect("a check");
    assert_eq!(fails.outcome(), Outcome::Fails, "{fails:?}");
}

#[test]
fn wide_intervals_exclude_nothing_and_small_errors_that_chance_does_not_explain_are_doubtful() {
    let estimate = |value: f64, half: f64| Estimate {
        value,
        low: value - half,
        high: value + half,
    };
    let check = |mean, loss| Check {
        kind: CheckKind::Own {
            arm: "old".to_owned(),
        },
        lines: 1000,
        predicted_ms: 100.0,
        true_ms: 100.0,
        mean,
        loss,
        percentiles: Vec::new(),
    };
    let outcome = |mean, loss| check(mean, loss).outcome();
    assert_eq!(outcome(estimate(-0.01, 0.03), None), Outcome::Holds);
    assert_eq!(outcome(estimate(-0.03, 0.02), None), Outcome::Doubtful);
    assert_eq!(outcome(estimate(0.06, 0.05), None), Outcome::Fails);
    let good = estimate(0.01, 0.02);
    assert_eq!(outcome(good, Some(estimate(0.0, 0.009))), Outcome::Holds);
    // An interval that contains 0 and an error of 5 %, or of a percentage point of loss, excludes nothing.
    assert_eq!(outcome(estimate(-0.2, 0.3), None), Outcome::Unclear);
    assert_eq!(outcome(estimate(0.01, 0.05), None), Outcome::Unclear);
    assert_eq!(outcome(good, Some(estimate(0.0, 0.02))), Outcome::Unclear);
    assert_eq!(
        outcome(estimate(-0.2, 0.3), Some(estimate(0.008, 0.001))),
        Outcome::Doubtful
    );
    assert_eq!(
        outcome(good, Some(estimate(0.008, 0.001))),
        Outcome::Doubtful
    );
    assert_eq!(outcome(good, Some(estimate(0.012, 0.001))), Outcome::Fails);
    assert_eq!(
        outcome(estimate(0.06, 0.05), Some(estimate(0.0, 0.1))),
        Outcome::Fails
    );
}

#[test]
fn lines_that_resemble_no_path_are_counted_and_many_of_them_are_a_refusal() {
    let bank = bank(600);
    let strange = |log: &mut [LogLine], count: usize| {
        for one in log.iter_mut().take(count) {
            one.line = line(&[
                (Column::Size, 3e5),
                (Column::Ttlb, 90_000.0),
                (Column::Sent, 250.0),
                (Column::Lost, 200.0),
                (Column::RttMinimum, 30.0),
                (Column::RttSmoothed, 900.0),
            ]);
        }
    };
    let (mut log, _) = log(1, 0.4, 200);
    strange(&mut log, 10);
    let prediction = predict(&bank, &log, "old", "new", effort(), 1).expect("a prediction");
    assert!(
        (0..10).all(|line| prediction.unsupported.contains(&line)),
        "{:?}",
        prediction.unsupported
    );
    strange(&mut log, 60);
    let refusal = predict(&bank, &log, "old", "new", effort(), 1).expect_err("a refusal");
    assert!(matches!(refusal, Refusal::NoSupport { .. }), "{refusal}");
}

#[test]
fn refusals_name_what_lacks() {
    let bank = bank(600);
    let (log, _) = log(1, 0.4, 200);
    let few = predict(&bank, &log[..50], "old", "new", effort(), 1).expect_err("too few");
    assert_eq!(
        few.to_string(),
        "the arm `old` has 50 usable lines (expected 100 or more)"
    );
    let no_bank = predict(&bank, &log, "old", "other", effort(), 1).expect_err("no arm");
    assert!(matches!(no_bank, Refusal::NoBank { arm } if arm == "other"));
    let bare: Vec<LogLine> = log
        .into_iter()
        .map(|one| LogLine {
            line: line(&[(Column::Ttlb, 100.0), (Column::Size, 3e5)]),
            ..one
        })
        .collect();
    let columns = predict(&bank, &bare, "old", "new", effort(), 1).expect_err("no columns");
    assert_eq!(
        columns.to_string(),
        "lines lack `num-packets.sent`, `num-packets.lost`, `rtt.minimum` (expected lines with statistics of the connection)"
    );
}

#[test]
fn arms_at_different_sites_are_not_in_balance() {
    let (log, _) = log(1, 0.4, 400);
    let with = |arm: fn(usize, &LogLine) -> bool| -> Vec<LogLine> {
        let lines = log.iter().enumerate().map(|(number, line)| LogLine {
            arm: if arm(number, line) { "x" } else { "y" }.to_owned(),
            ..line.clone()
        });
        lines.collect()
    };
    assert_eq!(imbalance(&with(|number, _| number % 4 < 2)), None);
    let by_site = imbalance(&with(|number, line| {
        line.site.as_deref() == Some("a") || number % 8 == 1
    }));
    assert!(by_site.is_some_and(|p| p < 1e-9));
}
