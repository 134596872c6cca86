use lastbyte_scenario::RampPlan;

use super::*;

/// Paths of four sites with log-normal times, rare loss and 1 % of incomplete transfers. The arm as simulated is a fifth faster.
fn bank() -> Vec<BankPath> {
    let mut random = SplitMix64::stream(9, 9);
    let paths = (0..2000_usize).map(|number| {
        let normal: f64 = (0..12).map(|_| unit(&mut random)).sum::<f64>() - 6.0;
        let site = number % 10;
        let ttlb = 400.0 * (0.8 * normal + 0.1 * site as f64).exp();
        let is_complete = unit(&mut random) < 0.99;
        let lossy = unit(&mut random);
        let outcome = |factor: f64| Outcome {
            ttlb_ms: is_complete.then_some(ttlb * factor),
            loss: Some(if lossy < 0.7 {
                0.0
            } else {
                (lossy - 0.7) * 0.1
            }),
            rtt: Some(1.0 + lossy),
        };
        BankPath {
            site: format!("site-{}", [0, 0, 0, 0, 1, 1, 1, 2, 2, 3][site]),
            outcomes: [outcome(1.0), outcome(0.8)],
        }
    });
    paths.collect()
}

fn runs(
    week: u64,
    repeats: u64,
    of: impl Fn(&Scenario) -> bool,
    mut each: impl FnMut(&Scenario, &[Run]),
) {
    let plan = RampPlan::default();
    let subject = Subject {
        name: "x",
        arms: ["a", "b"],
        plan: &plan,
    };
    let rehearsal = Rehearsal::new(subject, &bank(), week).expect("paths");
    for scenario in SCENARIOS.iter().filter(|scenario| of(scenario)) {
        let runs: Vec<Run> = (0..repeats)
            .map(|seed| rehearsal.run(scenario, seed))
            .collect();
        each(scenario, &runs);
    }
}

fn count(runs: &[Run], action: Action) -> usize {
    runs.iter().filter(|run| run.action == action).count()
}

const WEEK: u64 = 500_000;

#[test]
fn few_decisions_about_an_arm_without_an_effect_are_wrong() {
    runs(
        WEEK,
        20,
        |scenario| scenario.truth == Truth::Null,
        |scenario, runs| {
            let wrong = runs.iter().filter(|run| run.is_wrong).count();
            // 20 with 5 % of errors have 4 or fewer with a probability of 99.7 %.
            assert!(wrong <= 4, "{}: {runs:?}", scenario.name);
            assert!(
                count(runs, Action::Futile) >= 16,
                "{}: {runs:?}",
                scenario.name
            );
        },
    );
}

#[test]
fn a_restart_of_the_controller_changes_nothing() {
    let mut all = Vec::new();
    let of = |scenario: &Scenario| scenario.name == "no effect" || scenario.restarts;
    runs(WEEK, 4, of, |_, runs| all.push(runs.to_vec()));
    assert_eq!(all[0], all[1]);
}

#[test]
fn harm_is_stopped_early_and_a_gain_wins() {
    runs(
        WEEK,
        8,
        |scenario| !matches!(scenario.truth, Truth::Null),
        |scenario, runs| {
            let all = runs.len();
            let exposed = runs
                .iter()
                .map(|run| run.connections[1])
                .max()
                .unwrap_or_default();
            match scenario.name {
                "TTLB -5%" | "the arm as simulated" => {
                    assert!(count(runs, Action::Win) >= all - 1, "{runs:?}");
                }
                // What is not better either harms or is of no use.
                "TTLB +5%" | "TTLB +20%, loss +3 points at one site" => {
                    let ended = count(runs, Action::StopHarm) + count(runs, Action::Futile);
                    assert_eq!(ended, all, "{}: {runs:?}", scenario.name);
                }
                "loss +3 points" => {
                    assert_eq!(count(runs, Action::StopHarm), all, "{runs:?}");
                    assert!(exposed * 100 < WEEK, "{exposed}");
                }
                "TTLB -10%, halved each day" => assert!(count(runs, Action::Win) <= 1, "{runs:?}"),
                "the arm's slowest tenth not logged" => {
                    assert!(count(runs, Action::AlarmRatio) >= all - 1, "{runs:?}");
                }
                other => panic!("{other}"),
            }
        },
    );
}

/// Under a plan that accepts an arm without an effect, its win is right; an effect below what a win needs is not enough.
#[test]
fn what_is_right_depends_on_what_wins() {
    let truths = |win: f64| {
        let plan = RampPlan {
            win,
            detect: 0.2,
            ..RampPlan::default()
        };
        SCENARIOS.each_ref().map(|one| one.truth(&plan))
    };
    assert_eq!(truths(0.0), SCENARIOS.each_ref().map(|one| one.truth));
    let [null, .., better, slower, lossy, _, fading, _, _] = truths(-0.01);
    assert_eq!(
        [null, better, slower, lossy, fading],
        [
            Truth::Better,
            Truth::Better,
            Truth::Worse,
            Truth::Worse,
            Truth::Better
        ]
    );
    let [_, .., better, slower, _, _, _, _, _] = truths(-0.06);
    assert_eq!([better, slower], [Truth::Better; 2]);
    let [_, .., better, slower, _, _, fading, _, _] = truths(0.06);
    assert_eq!(
        [better, slower, fading],
        [Truth::Null, Truth::Worse, Truth::Worse]
    );
}

#[test]
fn a_rehearsal_needs_paths_and_has_a_fixed_design() {
    let plan = RampPlan::default();
    let subject = Subject {
        name: "x",
        arms: ["a", "b"],
        plan: &plan,
    };
    assert!(Rehearsal::new(subject, &[], 1000).is_none());
    let rehearsal = Rehearsal::new(subject, &bank(), 1000).expect("paths");
    let fixed = rehearsal.fixed_design().expect("variance");
    assert!((5_000..20_000).contains(&fixed), "{fixed}");
}
