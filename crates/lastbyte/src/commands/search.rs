//! `lastbyte search`: a race of congestion control specs on the same simulated paths.

mod race;

use core::{fmt::Write as _, num::NonZeroUsize};
use std::{path::PathBuf, process::ExitCode};

use clap::{Args, builder::ArgPredicate};
use lastbyte_congestion::Registry;
use lastbyte_report::{
    figure::Figure,
    front::{Candidate, Front},
    statistics::tests_of::Estimate,
};
use lastbyte_scenario::{
    Arm, Experiment,
    experiment::{self, Plan},
};
use lastbyte_sim::{FlowOutcome, NeighbourCounter, simulate};
use lastbyte_units as units;
use serde_json::{Value, json};

use self::race::{Limits, Means, PathResult, Race, Reason};
use super::{experiment_file, figure::FigureArguments, values};
use crate::{
    failure::Failure,
    jobs::{Interrupt, run_all},
    table::Table,
    terminal::{notice, print},
};

const EXAMPLES: &str = "\
Examples:
  # Which initial window and growth suit the built-in population?
  lastbyte search cubic --key initial-window=10p,20p,30p,40p \\
    --key growth=slow-start,hystart
  # At most 0.5 points more loss, and a CUBIC neighbour gets at most 2 % less.
  lastbyte search rapid-start --key initial-window=10p,30p,60p \\
    --key startup-beta=0.5,0.7 --max-loss 0.5% --neighbour cubic --max-harm 2%
  # Searched on one population, checked on another.
  lastbyte search cubic --key beta=0.6,0.7,0.8 --population a.toml \\
    --held-out b.toml
  # The Pareto front as a figure for a column of a paper.
  lastbyte search cubic --key beta=0.6,0.7,0.8 --figure 3.33in -o front.pdf

Each candidate is the spec with one combination of values. Candidates that are shown to be worse are dropped after each round of 50 paths. Those that are left are compared once more on paths that were not used in the search. docs/search.md explains the method and the JSON.";

/// Search for the fastest congestion control parameters.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Congestion control spec whose keys are varied
    #[arg(value_name = "SPEC")]
    spec: String,
    /// Values of a key of the spec: initial-window=10p,30p; repeatable
    #[arg(long, value_name = "KEY=VALUE,…", required = true)]
    key: Vec<String>,
    /// Spec that candidates are compared with [default: SPEC]
    #[arg(long, value_name = "SPEC")]
    baseline: Option<String>,
    /// Experiment file whose population is used [default: built-in]
    #[arg(long, value_name = "FILE")]
    population: Option<PathBuf>,
    /// Experiment file whose population checks the result [default: that of the search]
    #[arg(long, value_name = "FILE")]
    held_out: Option<PathBuf>,
    /// Neighbour on each path, whose harm is measured: cubic; repeatable
    #[arg(long, value_name = "TRAFFIC")]
    neighbour: Vec<String>,
    /// Drop candidates with more additional packet loss: 0.5% is half a point
    #[arg(long, value_name = "SHARE", value_parser = values::change)]
    max_loss: Option<f64>,
    /// Drop candidates whose neighbours get less by more than this: 2%
    #[arg(long, value_name = "SHARE", value_parser = values::change, requires = "neighbour")]
    max_harm: Option<f64>,
    /// Maximum number of paths per candidate
    #[arg(long, value_name = "N", default_value = "300", value_parser = values::count::<usize>(2..=PATHS_MAX))]
    paths: usize,
    /// Random seed
    #[arg(long, default_value = "1", value_parser = units::seed)]
    seed: u64,
    /// Parallel simulations [default: CPU cores]
    #[arg(long, value_name = "N", value_parser = values::positive(values::THREADS_MAX))]
    jobs: Option<NonZeroUsize>,
    /// Figure of the candidates and their Pareto front [default: search.pdf]
    #[arg(
        short,
        long,
        value_name = "FILE",
        requires = "figure",
        default_value_if("figure", ArgPredicate::IsPresent, "search.pdf")
    )]
    out: Vec<PathBuf>,
    #[command(flatten)]
    figure: FigureArguments,
    /// Print JSON (docs/search.md)
    #[arg(long)]
    json: bool,
}

/// Paths between two decisions.
const ROUND: usize = 50;
const PATHS_MAX: u64 = 5000;
const CANDIDATES_MAX: usize = 256;
/// A path counts as a ratio of at most this.
const RATIO_MAX: f64 = 16.0;
/// The seed of held-out paths differs in this bit.
const HELD_OUT: u64 = 1 << 51;

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, registry: &Registry) -> Result<ExitCode, Failure> {
    let candidates = candidates(arguments).map_err(Failure::Usage)?;
    arguments.figure.check("--out", &arguments.out)?;
    let search = Search::new(
        arguments,
        arguments.population.as_ref(),
        &candidates,
        registry,
    )?;
    let file = arguments
        .held_out
        .as_ref()
        .or(arguments.population.as_ref());
    let mut held_out = Search::new(arguments, file, &candidates, registry)?;
    held_out.experiment.seed ^= HELD_OUT;
    let interrupt = Interrupt::listen();
    let rounds = arguments.paths.div_ceil(ROUND);
    let limits = Limits {
        loss: arguments.max_loss.map(|share| share * 100.0),
        harm: arguments.max_harm,
    };
    let mut race = Race::new(candidates.len(), rounds, limits);
    for round in 0..rounds {
        let from = round * ROUND;
        let to = (from + ROUND).min(arguments.paths);
        let alive = race.alive();
        search.run(&mut race, &alive, from..to, arguments.jobs, &interrupt)?;
        if interrupt.is_pressed() {
            break;
        }
        race.drop_losers();
        if race.alive().len() < 2 {
            break;
        }
    }
    let front = race.front();
    // No candidate is dropped here.
    let mut check = Race::new(candidates.len(), 1, Limits::default());
    if !interrupt.is_pressed() {
        held_out.run(
            &mut check,
            &front,
            0..arguments.paths,
            arguments.jobs,
            &interrupt,
        )?;
    }
    let report = Report {
        arguments,
        spec: &search.spec,
        baseline: &search.experiment.arms[0].name,
        candidates: &candidates,
        race: &race,
        check: &check,
        front: &front,
    };
    let text = if arguments.json {
        report.json()
    } else {
        report.text()
    };
    print(text)?;
    arguments.figure.write(&arguments.out, &[report.figure()])?;
    if interrupt.is_pressed() {
        notice("interrupted: the results above are of the paths done so far");
        return Ok(ExitCode::from(130));
    }
    Ok(ExitCode::SUCCESS)
}

/// The keys and values of each candidate, in the order of the options.
fn candidates(arguments: &Arguments) -> Result<Vec<String>, String> {
    let mut all = vec![String::new()];
    let mut keys: Vec<&str> = Vec::new();
    for text in &arguments.key {
        let (key, values) = text
            .split_once('=')
            .ok_or_else(|| format!("--key: `{text}` (expected KEY=VALUE,…)"))?;
        let key = key.trim();
        if keys.contains(&key) {
            return Err(format!("--key: `{key}` is given twice (expected once)"));
        }
        keys.push(key);
        let values: Vec<&str> = values.split(',').map(str::trim).collect();
        let mut places = values.iter().enumerate();
        if let Some((_, value)) = places.find(|(place, value)| values[..*place].contains(*value)) {
            return Err(format!(
                "--key: `{key}={value}` is given twice (expected once)"
            ));
        }
        // Before the product is made, so that it stays small.
        let total = all.len().saturating_mul(values.len());
        if total > CANDIDATES_MAX {
            return Err(format!(
                "--key: {total} combinations (expected at most {CANDIDATES_MAX})"
            ));
        }
        all = all
            .iter()
            .flat_map(|before| {
                let comma = if before.is_empty() { "" } else { "," };
                values
                    .iter()
                    .map(move |value| format!("{before}{comma}{key}={value}"))
            })
            .collect();
    }
    Ok(all)
}

/// The paths, and what runs over them: the baseline first, then the candidates.
struct Search {
    /// What the candidates change.
    spec: String,
    experiment: Experiment,
}

impl Search {
    fn new(
        arguments: &Arguments,
        file: Option<&PathBuf>,
        candidates: &[String],
        registry: &Registry,
    ) -> Result<Self, Failure> {
        let mut experiment = experiment_file::read(file.map(PathBuf::as_path), registry)?;
        if !arguments.neighbour.is_empty() {
            let neighbours = experiment::neighbours(&arguments.neighbour, registry)
                .map_err(|error| Failure::Usage(format!("--neighbour: {}", error.problem())))?;
            experiment.population = experiment.population.with_neighbours(neighbours, None);
        }
        let arm = |option: &str, text: &str| {
            let arm = Arm::parse(text, registry);
            arm.map_err(|error| Failure::Usage(format!("{option}: {error}")))
        };
        let spec = arm("SPEC", &arguments.spec)?;
        let base = spec.spec.to_string();
        let colon = if base.contains(':') { "," } else { ":" };
        let mut arms = vec![match &arguments.baseline {
            Some(baseline) => arm("--baseline", baseline)?,
            None => spec,
        }];
        for candidate in candidates {
            arms.push(arm("--key", &format!("{base}{colon}{candidate}"))?);
        }
        experiment.arms = arms;
        experiment.baseline = 0;
        experiment.seed = arguments.seed;
        Ok(Self {
            spec: base,
            experiment,
        })
    }

    /// Runs these candidates, and the baseline, over these paths.
    fn run(
        &self,
        race: &mut Race,
        candidates: &[usize],
        paths: core::ops::Range<usize>,
        threads: Option<NonZeroUsize>,
        interrupt: &Interrupt,
    ) -> Result<(), Failure> {
        let arms: Vec<usize> = core::iter::once(0)
            .chain(candidates.iter().map(|candidate| candidate + 1))
            .collect();
        let jobs: Vec<(usize, usize)> = paths
            .flat_map(|path| arms.iter().map(move |arm| (path, *arm)))
            .collect();
        let outcomes = run_all(&jobs, threads, interrupt, |(path, arm)| {
            self.transfer(*path as u64, *arm)
        });
        let outcomes: Result<Vec<Transfer>, Failure> = outcomes.into_iter().collect();
        // After an interrupt, a path whose candidates are not all done does not count.
        for path in outcomes?.chunks_exact(arms.len()) {
            if let Some((baseline, transfers)) = path.split_first() {
                for (candidate, transfer) in candidates.iter().zip(transfers) {
                    race.add(*candidate, transfer.against(baseline));
                }
            }
        }
        Ok(())
    }

    fn transfer(&self, path: u64, arm: usize) -> Result<Transfer, Failure> {
        let experiment = &self.experiment;
        let index = path * experiment.arms.len() as u64 + arm as u64;
        let plan: Plan = experiment.connection(index, true);
        let mut neighbour = NeighbourCounter::new(1, plan.draw.neighbour.as_ref());
        let outcome = simulate(&experiment.scenario(&plan), &mut neighbour).map_err(|error| {
            Failure::Run(format!("path {path}, of seed {}: {error}", plan.seed))
        })?;
        let flow = outcome.flows.first();
        let server = flow.and_then(|flow| flow.server.as_ref());
        Ok(Transfer {
            // One that does not complete takes as long as it may.
            time: flow
                .and_then(FlowOutcome::last_byte)
                .unwrap_or(experiment.time_limit)
                .as_secs_f64(),
            loss: server.map_or(0.0, |server| {
                let sent = server.recovery.packets_sent.max(1) as f64;
                100.0 * server.recovery.packets_lost as f64 / sent
            }),
            neighbour: neighbour
                .outcome()
                .map_or(0.0, |outcome| outcome.delivered_bytes as f64),
        })
    }
}

/// The result of a transfer.
struct Transfer {
    /// In seconds.
    time: f64,
    /// In percent.
    loss: f64,
    /// Bytes delivered to the neighbour.
    neighbour: f64,
}

impl Transfer {
    fn against(&self, baseline: &Self) -> PathResult {
        // A neighbour that gets nothing counts as one that gets a byte.
        let ratio = |ours: f64, base: f64| {
            let ratio = ours.max(1e-6) / base.max(1e-6);
            ratio.clamp(1.0 / RATIO_MAX, RATIO_MAX).ln()
        };
        PathResult {
            time: ratio(self.time, baseline.time),
            loss: self.loss - baseline.loss,
            neighbour: ratio(self.neighbour.max(1.0), baseline.neighbour.max(1.0)),
        }
    }
}

struct Report<'a> {
    arguments: &'a Arguments,
    spec: &'a str,
    baseline: &'a str,
    candidates: &'a [String],
    race: &'a Race,
    check: &'a Race,
    front: &'a [usize],
}

/// The columns of the tables.
const HEADER: [&str; 5] = [
    "candidate",
    "paths",
    "TTLB",
    "loss, points",
    "neighbours' rate",
];

impl Report<'_> {
    fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a `String` cannot fail.
        let _ = writeln!(
            text,
            "{} {} against {}; {} left, {} on the Pareto front\n",
            self.candidates.len(),
            if self.candidates.len() == 1 {
                "candidate"
            } else {
                "candidates"
            },
            self.baseline,
            self.race.alive().len(),
            self.front.len()
        );
        let mut table = Table::with_text(HEADER.into_iter().chain([""]));
        let mut order: Vec<usize> = (0..self.candidates.len()).collect();
        order.sort_by_key(|candidate| {
            let place = self.front.iter().position(|one| one == candidate);
            (
                place.unwrap_or(usize::MAX),
                self.race.reason(*candidate).is_some(),
            )
        });
        for candidate in order {
            let note = match self.race.reason(candidate) {
                _ if self.front.contains(&candidate) => "front".to_owned(),
                None => "not on the front".to_owned(),
                Some(reason) => format!("dropped: {}", self.why(reason)),
            };
            table.row(self.cells(self.race, candidate).into_iter().chain([note]));
        }
        text.push_str(&table.text());
        text.push('\n');
        if self.front.iter().any(|one| self.check.paths(*one) > 1) {
            text.push_str("\nHeld out: the front on paths that the search did not use\n");
            let mut table = Table::new(HEADER);
            for candidate in self.front {
                table.row(self.cells(self.check, *candidate));
            }
            text.push_str(&table.text());
            text.push('\n');
        }
        text.push_str(
            "\nTTLB, at the client from its first datagram, and rate: geometric mean of the change on each path; in parentheses: 95 % simultaneous.\n",
        );
        text
    }

    /// A candidate on the paths of a race.
    fn cells(&self, race: &Race, candidate: usize) -> [String; 5] {
        let show = |one: Estimate, scale: f64, unit: &str| {
            format!(
                "{:+.2}{unit} ({:+.2} to {:+.2})",
                one.value * scale,
                one.interval.0 * scale,
                one.interval.1 * scale
            )
        };
        let [mut time, mut loss, mut neighbours] = [const { String::new() }; 3];
        if let Some(means) = race.means(candidate) {
            time = show(means.time, 100.0, " %");
            loss = show(means.loss, 1.0, "");
            neighbours = if self.arguments.neighbour.is_empty() {
                "-".to_owned()
            } else {
                show(means.neighbour, 100.0, " %")
            };
        }
        let paths = race.paths(candidate).to_string();
        [
            self.candidates[candidate].clone(),
            paths,
            time,
            loss,
            neighbours,
        ]
    }

    /// The candidates on the paths of the search.
    fn figure(&self) -> Figure {
        let others = (0..self.candidates.len()).filter(|one| !self.front.contains(one));
        let all = self.front.iter().copied().chain(others);
        let candidates = all.filter_map(|place| {
            let means = self.race.means(place)?;
            Some(Candidate {
                name: self.candidates[place].clone(),
                ttlb: means.time,
                loss: means.loss,
                is_on_front: self.front.contains(&place),
            })
        });
        let front = Front {
            baseline: self.baseline.to_owned(),
            candidates: candidates.collect(),
        };
        front.figure()
    }

    fn why(&self, reason: Reason) -> String {
        match reason {
            Reason::Loss => "more loss than --max-loss".to_owned(),
            Reason::Harm => "more harm than --max-harm".to_owned(),
            Reason::SlowerThan(other) => format!("slower than {}", self.candidates[other]),
        }
    }

    fn json(&self) -> String {
        let means = |means: Option<Means>| {
            means.map(|means| {
                let one = |one: Estimate| json!([one.value, one.interval]);
                let has_neighbours = !self.arguments.neighbour.is_empty();
                json!({
                    "ttlb_change": one(means.time),
                    "loss_difference_points": one(means.loss),
                    "neighbour_rate_change": has_neighbours.then(|| one(means.neighbour)),
                })
            })
        };
        let candidates = self.candidates.iter().enumerate().map(|(place, keys)| {
            json!({
                "keys": keys,
                "paths": self.race.paths(place),
                "result": means(self.race.means(place)),
                "front": self.front.contains(&place),
                "dropped": self.race.reason(place).map(|reason| self.why(reason)),
                "held_out_paths": self.check.paths(place),
                "held_out": means(self.check.means(place)),
            })
        });
        let value: Value = json!({
            "spec": self.spec,
            "baseline": self.baseline,
            "seed": self.arguments.seed,
            "candidates": candidates.collect::<Vec<_>>(),
        });
        format!("{value:#}\n")
    }
}
