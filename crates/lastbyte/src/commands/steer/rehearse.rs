//! `--rehearse`: a plan over simulated connections.

use core::num::NonZeroUsize;
use std::process::ExitCode;

use lastbyte_scenario::{Experiment, RampPlan};
use lastbyte_steer::{
    Subject,
    ramp::Action,
    rehearsal::{BankPath, Outcome, Rehearsal, Run, SCENARIOS, Scenario, Truth},
    tally::rtt_ratio,
};
use lastbyte_units as units;
use serde_json::Value;

use crate::{
    commands::ab,
    failure::Failure,
    jobs::{Interrupt, run_all},
    table::Table,
    terminal::{notice, print},
};

/// Each is simulated once in both arms.
const PATHS_MAX: u64 = 1000;

/// Rehearses the plan so many times in each scenario, and prints a table.
pub(super) fn run(
    experiment: &Experiment,
    subject: Subject<'_>,
    repeats: u32,
    seed: u64,
    jobs: Option<NonZeroUsize>,
) -> Result<ExitCode, Failure> {
    let interrupt = Interrupt::listen();
    let interrupted = || {
        notice("interrupted: the rehearsal is not complete");
        Ok(ExitCode::from(130))
    };
    let indices: Vec<u64> = (0..2 * experiment.connections.min(PATHS_MAX)).collect();
    let lines = run_all(&indices, jobs, &interrupt, |index| {
        ab::line(experiment, *index, true)
    });
    if lines.len() < indices.len() {
        return interrupted();
    }
    let lines = lines
        .into_iter()
        .collect::<Result<Vec<String>, Failure>>()?;
    let bank = bank(&lines, experiment.baseline)?;
    let week = experiment.connections;
    let rehearsal = Rehearsal::new(subject, &bank, week)
        .ok_or_else(|| Failure::Run("no simulated path".to_owned()))?;
    let ramps: Vec<(&Scenario, u64)> = SCENARIOS
        .iter()
        .flat_map(|scenario| (0..u64::from(repeats)).map(move |repeat| (scenario, repeat)))
        .collect();
    let runs = run_all(&ramps, jobs, &interrupt, |(scenario, repeat)| {
        rehearsal.run(scenario, units::SplitMix64::stream(seed, *repeat).at(0))
    });
    if runs.len() < ramps.len() {
        return interrupted();
    }
    let mut table = Table::new([
        "scenario",
        "win",
        "harm",
        "futile",
        "ratio",
        "wrong",
        "ramped",
        "days P50",
        "P90",
        "conns/week",
        "in the arm",
        "most",
        "harm",
    ]);
    for (scenario, runs) in SCENARIOS.iter().zip(runs.chunks(repeats as usize)) {
        table.row(row(scenario.name, scenario.truth(subject.plan), runs, week));
    }
    let fixed = rehearsal.fixed_design().map_or_else(String::new, |fixed| {
        format!(
            "A fixed design that {} at one look, with a power of 80%, needs {fixed} connections in two equal arms: {:.2} of a week.\n",
            shown(subject.plan),
            fixed as f64 / week as f64
        )
    });
    print(format!(
        "{}\n\n{repeats} ramps in each scenario, with {week} connections a week. wrong: decisions that contradict the scenario. ramped: ramps beyond the first stage. \
         conns/week: mean connections until the decision, by those of a week; in the arm: those of the arm, most: in any ramp. harm of a worse arm (its connections × what each loses): by that of a fixed week of two equal arms, \
         which has 50% of a week's connections in the arm.\n{fixed}{}",
        table.text(),
        long_stages(subject.plan, week)
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// What a fixed design is for.
fn shown(plan: &RampPlan) -> String {
    let [detect, win] = [plan.detect, plan.win.abs()].map(units::show_share);
    if plan.win > 0.0 {
        format!("shows an improvement of more than {win}, where it is {detect},")
    } else if plan.win < 0.0 {
        format!("shows that an arm without an effect is not slower by more than {win}")
    } else {
        format!("detects {detect}")
    }
}

/// A sentence on the stages that last longer than their least time, because the arm has too few connections; empty if none does.
fn long_stages(plan: &RampPlan, week: u64) -> String {
    let stages = plan.stages.iter().filter_map(|share| {
        let weeks = plan.least_connections as f64 / (share * week as f64);
        let days = weeks * 7.0;
        (days * 86_400.0 > plan.least_time.as_secs_f64())
            .then(|| format!("{days:.1} days at {}", units::show_share(*share)))
    });
    let stages: Vec<String> = stages.collect();
    if stages.is_empty() {
        return String::new();
    }
    format!(
        "Until the arm has {} connections in a stage, it takes {}. Larger shares decide earlier.\n",
        plan.least_connections,
        stages.join(", ")
    )
}

/// The paths of lines that follow each other in pairs.
fn bank(lines: &[String], baseline: usize) -> Result<Vec<BankPath>, Failure> {
    let mut bank = Vec::new();
    for pair in lines.chunks_exact(2) {
        let mut outcomes = [Outcome::default(); 2];
        let mut site = String::new();
        for (index, line) in pair.iter().enumerate() {
            let line: Value = serde_json::from_str(line).map_err(Failure::run)?;
            let number = |key: &str| line.get(key).and_then(Value::as_f64);
            let sent = number("num-packets.sent").filter(|sent| *sent > 0.0);
            let of = usize::from(index != baseline);
            outcomes[of] = Outcome {
                ttlb_ms: number("ttlb"),
                loss: sent
                    .zip(number("num-packets.lost"))
                    .map(|(sent, lost)| lost / sent),
                rtt: rtt_ratio([number("rtt.minimum"), number("rtt.smoothed")]),
            };
            line.get("site")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .clone_into(&mut site);
        }
        bank.push(BankPath { site, outcomes });
    }
    Ok(bank)
}

fn row(name: &str, truth: Truth, runs: &[Run], week: u64) -> Vec<String> {
    let count = runs.len().max(1) as f64;
    let share = |of: &dyn Fn(&Run) -> bool| {
        let share = runs.iter().filter(|run| of(run)).count() as f64 / count;
        format!("{:.1}%", share * 100.0)
    };
    let mut hours: Vec<u64> = runs.iter().map(|run| run.hours).collect();
    hours.sort_unstable();
    let days = |percent: usize| {
        let at = (hours.len() * percent).div_ceil(100).saturating_sub(1);
        hours
            .get(at)
            .map_or_else(String::new, |hours| format!("{:.1}", *hours as f64 / 24.0))
    };
    let mean = |of: usize| {
        let sum: u64 = runs.iter().map(|run| run.connections[of]).sum();
        sum as f64 / count / week as f64
    };
    let harm = match truth {
        Truth::Worse => format!("{:.2}%", mean(1) * 200.0),
        _ => "–".to_owned(),
    };
    let most = runs.iter().map(|run| run.connections[1]).max().unwrap_or(0);
    let wrong = if truth == Truth::Unknown {
        "–".to_owned()
    } else {
        share(&|run| run.is_wrong)
    };
    vec![
        name.to_owned(),
        share(&|run| run.action == Action::Win),
        share(&|run| run.action == Action::StopHarm),
        share(&|run| run.action == Action::Futile),
        share(&|run| run.action == Action::AlarmRatio),
        wrong,
        share(&|run| run.ramps > 0),
        days(50),
        days(90),
        format!("{:.2}", mean(0)),
        format!("{:.2}%", mean(1) * 100.0),
        format!("{:.2}%", most as f64 / week as f64 * 100.0),
        harm,
    ]
}
