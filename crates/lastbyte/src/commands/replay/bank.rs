//! The bank: simulates paths of the prior under each arm, and keeps them in files.
//!
//! A file has 256 paths under one spec, is written at once, and starts with what it depends on. A run that is interrupted keeps the
//! files that are complete. Each has a hash of what this version of the stack logs on the first paths, so that a file of another version
//! is not used.

use core::{
    num::NonZeroUsize,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};
use std::{
    io::{self, IsTerminal as _},
    path::PathBuf,
};

use clap::Args;
use lastbyte_congestion::{Registry, Spec};
use lastbyte_driver::Clock;
use lastbyte_record::connection_log::{self, Header};
use lastbyte_replay::{Bank, BankPath, KEYS, Line, PRIOR};
use lastbyte_scenario::{
    Arm, Draw, Population, Scenario, Sweep,
    experiment::{Experiment, Plan},
};
use lastbyte_sim::simulate;
use lastbyte_units::{self as units, SEED_END, SplitMix64, mix};
use serde_json::{Value, json};

use crate::{
    commands::{report, values},
    failure::Failure,
    files,
    jobs::{Interrupt, run_all},
    terminal::notice,
};

/// Options of the simulated paths.
#[derive(Debug, Args)]
pub(crate) struct BankArguments {
    /// Directory of the simulated paths
    #[arg(long, value_name = "DIR", default_value = "replay-bank")]
    pub(crate) bank: PathBuf,
    /// Number of simulated paths
    #[arg(long, value_name = "N", default_value = "8192", value_parser = values::count::<u32>(512..=1_000_000))]
    pub(crate) paths: u32,
    /// Random seed
    #[arg(long, default_value = "1", value_parser = units::seed)]
    pub(crate) seed: u64,
    /// Parallel simulations [default: CPU cores]
    #[arg(long, value_name = "N", value_parser = values::positive(values::THREADS_MAX))]
    pub(crate) jobs: Option<NonZeroUsize>,
}

impl BankArguments {
    /// The bank with these arms; `None` after an interrupt, with a notice.
    pub(crate) fn load(&self, store: &Store<'_>, arms: &[Arm]) -> Result<Option<Bank>, Failure> {
        let bank = store.bank(arms, self.paths as usize)?;
        if bank.is_none() {
            notice(format!(
                "interrupted: `{}` has the paths that are complete; the same command continues",
                self.bank.display()
            ));
        }
        Ok(bank)
    }
}

/// Paths in a file.
const CHUNK: usize = 256;
/// Populations of the bank.
const POPULATIONS: u64 = 64;
/// The seed of the bank: it does not depend on that of a prediction, so that all use the same files.
const SEED: u64 = 42;
/// Paths whose lines are hashed.
const COMPARED: usize = 4;

/// A spec, and what this version of the stack does with it on the first paths.
struct Kind<'a> {
    spec: &'a Spec,
    name: String,
    print: u64,
}

/// A bank in files.
pub(crate) struct Store<'a> {
    folder: PathBuf,
    experiment: Experiment,
    jobs: Option<NonZeroUsize>,
    interrupt: &'a Interrupt,
}

impl<'a> Store<'a> {
    pub(crate) fn new(
        arguments: &BankArguments,
        registry: &Registry,
        interrupt: &'a Interrupt,
    ) -> Result<Self, Failure> {
        files::create_folder(&arguments.bank)?;
        let prior = Population::parse_with(PRIOR, registry).map_err(Failure::run)?;
        let population = prior.with_variants(&sweeps()).map_err(Failure::run)?;
        Ok(Self {
            folder: arguments.bank.clone(),
            experiment: Experiment {
                population,
                ..Experiment::four_arms()
            },
            jobs: arguments.jobs,
            interrupt,
        })
    }

    /// The bank of `count` paths with these arms. Paths are simulated unless the files have them. `None` after an interrupt.
    fn bank(&self, arms: &[Arm], count: usize) -> Result<Option<Bank>, Failure> {
        let paths = (0..count).map(|index| {
            let seed = seed_of(index);
            let draw = self.experiment.population.draw(seed);
            BankPath {
                seed,
                population: draw.site.parse().unwrap_or_default(),
                class: draw.class,
            }
        });
        let mut bank = Bank::new(paths.collect());
        let kinds = arms.iter().map(|arm| self.kind(&arm.spec));
        let kinds = kinds.collect::<Result<Vec<Kind<'_>>, Failure>>()?;
        let chunks: Vec<usize> = (0..count.div_ceil(CHUNK)).collect();
        let mut different: Vec<&Kind<'_>> = Vec::new();
        for kind in &kinds {
            if different.iter().all(|other| other.name != kind.name) {
                different.push(kind);
            }
        }
        // A file of each arm in turn, as transfers of some arms take longer: the time that is left follows from the files that are there.
        let all = chunks
            .iter()
            .flat_map(|chunk| different.iter().map(move |kind| (*kind, *chunk)));
        let wanted: Vec<(&Kind<'_>, usize)> = all
            .filter(|(kind, chunk)| self.load(kind, *chunk).is_none())
            .collect();
        self.announce(wanted.len(), different.len(), count);
        let (clock, made) = (Clock::new(), AtomicUsize::new(0));
        let started = clock.now();
        // Files of all arms, and as many as are made at the same time.
        let sample = different.len().max(report::threads(self.jobs));
        let done = run_all(&wanted, self.jobs, self.interrupt, |(kind, chunk)| {
            let result = self.make(kind, *chunk);
            if made.fetch_add(1, Ordering::Relaxed) + 1 == sample {
                announce_left(clock.now().since(started), sample, wanted.len());
            }
            result
        });
        let is_complete = done.len() == wanted.len();
        done.into_iter().collect::<Result<Vec<()>, Failure>>()?;
        if !is_complete {
            return Ok(None);
        }
        for (arm, kind) in arms.iter().zip(&kinds) {
            let mut lines = Vec::new();
            for chunk in &chunks {
                lines.extend(self.load(kind, *chunk).ok_or_else(|| {
                    let file = self.file(kind, *chunk);
                    Failure::Run(format!("cannot read `{}` again", file.display()))
                })?);
            }
            lines.truncate(count);
            bank.add_arm(&arm.name, lines);
        }
        Ok(Some(bank))
    }

    /// What is simulated, before it takes its time.
    fn announce(&self, files: usize, arms: usize, paths: usize) {
        if files == 0 {
            return;
        }
        let there = match arms * paths.div_ceil(CHUNK) - files {
            0 => String::new(),
            there => format!(" ({} of them are there)", there * CHUNK),
        };
        notice(format!(
            "simulating {paths} paths under each of {arms} arms, {} transfers{there}, once: `{}` keeps them",
            paths * arms,
            self.folder.display()
        ));
    }

    /// The path with this seed.
    pub(crate) fn draw(&self, seed: u64) -> Draw {
        self.experiment.population.draw(seed)
    }

    /// The path with this seed, and a transfer over it.
    pub(crate) fn scenario(&self, spec: &Spec, seed: u64) -> (Draw, Scenario) {
        let plan = Plan {
            arm: 0,
            seed,
            draw: self.draw(seed),
        };
        let mut scenario = self.experiment.scenario(&plan);
        for flow in &mut scenario.flows {
            flow.congestion = spec.clone();
        }
        (plan.draw, scenario)
    }

    fn kind<'b>(&self, spec: &'b Spec) -> Result<Kind<'b>, Failure> {
        let rows = (0..COMPARED).map(|index| self.row(spec, index));
        Ok(Kind {
            spec,
            name: spec.to_string(),
            print: hash(&rows.collect::<Result<String, Failure>>()?),
        })
    }

    fn file(&self, kind: &Kind<'_>, chunk: usize) -> PathBuf {
        let name = format!("{:016x}-{chunk:05}.ndjson", hash(&kind.name));
        self.folder.join(name)
    }

    /// What the rows of a file depend on.
    fn head(kind: &Kind<'_>, chunk: usize) -> Value {
        json!({
            "bank": 2,
            "version": env!("CARGO_PKG_VERSION"),
            "prior": format!("{:016x}", hash(PRIOR)),
            "spec": kind.name,
            "rows": format!("{:016x}", kind.print),
            "seed": SEED,
            "first": chunk * CHUNK,
            "keys": KEYS,
        })
    }

    /// The last line of a file with this text.
    fn sum(text: &str) -> String {
        json!({ "sum": format!("{:016x}", hash(text)) }).to_string()
    }

    /// The lines of a file; `None` if it is not there, of another version, or not as it was written.
    fn load(&self, kind: &Kind<'_>, chunk: usize) -> Option<Vec<Option<Line>>> {
        let text = files::read_text(&self.file(kind, chunk)).ok()?;
        let (text, sum) = text.trim_end().rsplit_once('\n')?;
        if sum != Self::sum(text) {
            return None;
        }
        let mut rows = text.lines();
        let head: Value = serde_json::from_str(rows.next()?).ok()?;
        if head != Self::head(kind, chunk) {
            return None;
        }
        let lines: Option<Vec<Option<Line>>> = rows
            .map(|row| {
                let row: Option<Vec<Option<f64>>> = serde_json::from_str(row).ok()?;
                Some(row.map(|row| {
                    Line::of_numbers(row.into_iter().map(|one| one.unwrap_or(f64::NAN)))
                }))
            })
            .collect();
        lines.filter(|lines| lines.len() == CHUNK)
    }

    /// Simulates and writes a file.
    fn make(&self, kind: &Kind<'_>, chunk: usize) -> Result<(), Failure> {
        let mut text = format!("{}\n", Self::head(kind, chunk));
        for index in chunk * CHUNK..(chunk + 1) * CHUNK {
            text.push_str(&self.row(kind.spec, index)?);
            text.push('\n');
        }
        text.push_str(&Self::sum(text.trim_end()));
        text.push('\n');
        files::replace(&self.file(kind, chunk), text.as_bytes())
    }

    /// A row of a file: the numbers of the line, or `null`.
    fn row(&self, spec: &Spec, index: usize) -> Result<String, Failure> {
        let line = self.line(spec, index)?;
        let row = line.map(|line| line.numbers().collect::<Vec<_>>());
        Ok(json!(row).to_string())
    }

    /// The line that the simulated server would log; `None` if the transfer was not completed.
    pub(crate) fn line(&self, spec: &Spec, index: usize) -> Result<Option<Line>, Failure> {
        let (draw, scenario) = self.scenario(spec, seed_of(index));
        let outcome = simulate(&scenario, &mut ())
            .map_err(|error| Failure::Run(format!("path {index} of the bank: {error}")))?;
        let Some(server) = outcome.flows.first().and_then(|flow| flow.server.as_ref()) else {
            return Ok(None);
        };
        let Some((requested_at, acked_at)) = server.requested_at.zip(server.acked_at) else {
            return Ok(None);
        };
        let ttlb = acked_at.since(requested_at);
        let header = Header {
            time_ms: outcome.ended_at.as_nanos() / 1_000_000,
            conn_id: index as u64,
            method: "GET".to_owned(),
            content_length: draw.size_bytes,
            ttlb_ms: Some(((ttlb.as_nanos() + 500_000) / 1_000_000) as u64),
        };
        let mut text = String::new();
        let facts = connection_log::Experiment::default();
        connection_log::write(&mut text, &header, &server.snapshot, &facts);
        let row: Value = serde_json::from_str(&text).map_err(Failure::run)?;
        let number = |key: &&str| row.get(key).and_then(Value::as_f64).unwrap_or(f64::NAN);
        Ok(Some(Line::of_numbers(KEYS.iter().map(number))))
    }
}

/// The time that is left after the first files, where no progress bar shows it.
fn announce_left(passed: Duration, made: usize, files: usize) {
    if files > made && !io::stderr().is_terminal() {
        let left = passed.mul_f64((files - made) as f64 / made as f64);
        notice(format!(
            "{made} of {files} files simulated: about {} left",
            whole_span(left)
        ));
    }
}

/// A span to a second, or a minute if it is long.
fn whole_span(span: Duration) -> String {
    match span.as_secs() {
        seconds @ 0..120 => format!("{} s", seconds.max(1)),
        seconds => format!("{} min", (seconds + 30) / 60),
    }
}

pub(crate) fn seed_of(index: usize) -> u64 {
    SplitMix64::stream(SEED, index as u64).at(0) % SEED_END
}

/// The populations: the prior scaled by random factors.
fn sweeps() -> Vec<(String, Sweep)> {
    let population = |number: u64| {
        let mut random = SplitMix64::stream(SEED, u64::MAX - number);
        let mut factor = |low: f64, high: f64| {
            let unit = (random.number() >> 11) as f64 / (1_u64 << 53) as f64;
            low * (high / low).powf(unit)
        };
        let sweep = Sweep {
            queue: factor(0.25, 5.0),
            rate: factor(0.25, 3.0),
            lossy: factor(0.2, 3.0),
            cross: factor(0.2, 3.0),
            policing: factor(0.1, 20.0),
            path_rtt: factor(0.5, 2.5),
            poor: factor(0.3, 3.0),
            ack_batching: factor(0.5, 2.0),
            ..Sweep::default()
        };
        (number.to_string(), sweep)
    };
    (0..POPULATIONS).map(population).collect()
}

/// A number of a text.
pub(crate) fn hash(text: &str) -> u64 {
    text.bytes().fold(mix(text.len() as u64), |hash, byte| {
        mix(hash ^ u64::from(byte))
    })
}
