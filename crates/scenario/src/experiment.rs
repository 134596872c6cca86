//! An experiment: a population, and arms to which its connections are assigned.
//!
//! Responsible for the keys of an experiment file and for the assignment of connections to arms ([`Experiment::connection`]).
//! The same file and the same number give the same connection, in any order of calls. No file is opened here, and nothing is
//! simulated.
//!
//! [`Experiment`] is not read by `serde` itself: its specs need the registry, and the population another file.

use core::time::Duration;
use std::collections::BTreeSet;

use lastbyte_congestion::Registry;
use lastbyte_units::{self as units, Direction};
use serde::Deserialize;

use crate::{
    arm::Arm,
    neighbour::Neighbour,
    plan::RampPlan,
    population::{
        Draw, Population, Returns, Sweep,
        random::{Field, Stream},
        seed_of, text,
    },
    scenario::{FlowPlan, Scenario},
    setting::{self, SettingError},
    workload::Workload,
};

#[cfg(test)]
mod tests;

/// The file of the experiment of the talk.
pub const FOUR_ARMS: &str = include_str!("../experiments/four-arms.toml");

/// Reads the file of a population.
pub type ReadPopulation<'a> = &'a mut dyn FnMut(&str) -> Result<String, String>;

/// A population, and the arms that its connections are assigned to.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The name.
    pub name: String,
    /// A description for readers.
    pub description: String,
    /// The arms, in the order of the file.
    pub arms: Vec<Arm>,
    /// Index of the baseline arm in [`Experiment::arms`].
    pub baseline: usize,
    /// The population, restricted to the file's sites and scaled by its sweep.
    pub population: Population,
    /// The default number of connections.
    pub connections: u64,
    /// Random seed, below [`lastbyte_units::SEED_END`].
    pub seed: u64,
    /// Time limit of a transfer, counted from its start.
    pub time_limit: Duration,
    /// What a client transfers: objects of the population's sizes.
    pub workload: Workload,
    /// How the share of an arm grows on real servers.
    pub plan: Option<RampPlan>,
    /// The number of the shares in effect, counted by what writes the file. `lastbyte serve` logs it.
    pub epoch: Option<u32>,
}

/// One connection of an experiment.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Index in [`Experiment::arms`].
    pub arm: usize,
    /// The seed of the draw, for the log: [`Population::draw`] reproduces the draw from it.
    pub seed: u64,
    /// The drawn client.
    pub draw: Draw,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ExperimentText {
    name: String,
    #[serde(default)]
    description: String,
    baseline: Option<String>,
    #[serde(default = "connections")]
    connections: u64,
    #[serde(default = "seed")]
    seed: u64,
    #[serde(default = "population")]
    population: String,
    sites: Option<Vec<String>>,
    #[serde(default, deserialize_with = "text::span")]
    time_limit: Option<Duration>,
    requests: Option<u32>,
    parallel: Option<u32>,
    #[serde(default, deserialize_with = "text::span")]
    pause: Duration,
    #[serde(default, deserialize_with = "text::direction")]
    direction: Direction,
    #[serde(default)]
    sweep: Sweep,
    returns: Option<Returns>,
    #[serde(default)]
    neighbours: Vec<String>,
    #[serde(default, deserialize_with = "text::span")]
    horizon: Option<Duration>,
    arms: Vec<ArmText>,
    plan: Option<RampPlan>,
    epoch: Option<u32>,
    /// Of interest to what wrote the file only.
    #[serde(rename = "decision")]
    _decision: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ArmText {
    name: String,
    spec: String,
    #[serde(default = "text::one", deserialize_with = "text::weight")]
    share: f64,
}

const fn connections() -> u64 {
    20_000
}

const fn seed() -> u64 {
    1
}

fn population() -> String {
    BUILT_IN.to_owned()
}

/// The name of the built-in population.
const BUILT_IN: &str = "default";
/// Enough for 3.2 MB on all but the slowest paths (16 kb/s).
const TIME_LIMIT: Duration = Duration::from_secs(600);

impl Experiment {
    /// Reads an experiment file over the built-in population, with the built-in congestion controls.
    ///
    /// # Errors
    ///
    /// Returns a [`SettingError`] with the key if the text is not TOML, has an unknown key, or a value that is not
    /// valid; also if it names another population, which takes [`Experiment::parse_with`].
    pub fn parse(text: &str) -> Result<Self, SettingError> {
        Self::parse_with(text, &Registry::builtin(), &mut |name| {
            Err(format!(
                "unknown population `{name}` (expected the built-in `{BUILT_IN}`)"
            ))
        })
    }

    /// Reads an experiment file, the population that it names, and specs of this registry.
    ///
    /// # Errors
    ///
    /// As [`Experiment::parse`]; or the file of the population cannot be read.
    pub fn parse_with(
        text: &str,
        registry: &Registry,
        read: ReadPopulation<'_>,
    ) -> Result<Self, SettingError> {
        let file = text;
        let text: ExperimentText = setting::read(file)?;
        let arms = arms(&text.arms, registry)?;
        let baseline = match &text.baseline {
            None => 0,
            Some(name) => arms
                .iter()
                .position(|arm| arm.name == *name)
                .ok_or_else(|| {
                    let names: Vec<&str> = arms.iter().map(|arm| arm.name.as_str()).collect();
                    SettingError::new(
                        "baseline",
                        format!("unknown arm `{name}`"),
                        names.join(", "),
                    )
                })?,
        };
        if text.connections == 0 {
            return Err(SettingError::new("connections", "0", "1 or more"));
        }
        if text.seed >= units::SEED_END {
            return Err(SettingError::new(
                "seed",
                text.seed,
                format!("a whole number from 0 to {}, 2^53 - 1", units::SEED_END - 1),
            ));
        }
        let time_limit = text.time_limit.unwrap_or(TIME_LIMIT);
        if time_limit.is_zero() {
            return Err(SettingError::new("time-limit", "0", "a span above zero"));
        }
        let mut population = if text.population == BUILT_IN {
            Population::standard()
        } else {
            let file = read(&text.population)
                .map_err(|reason| SettingError::because("population", reason))?;
            Population::parse_with(&file, registry).map_err(|error| {
                SettingError::because("population", format!("`{}`: {error}", text.population))
            })?
        };
        if let Some(sites) = &text.sites {
            population = population.with_sites(sites)?;
        }
        let population = population
            .scaled(&text.sweep)
            .map_err(|error| error.within("sweep"))?;
        let population = match text.returns {
            None => population,
            Some(returns) => population.with_returns(returns),
        };
        let population = if text.neighbours.is_empty() {
            population
        } else {
            population.with_neighbours(
                neighbours(&text.neighbours, registry)?,
                text.horizon.map(horizon).transpose()?,
            )
        };
        if let Some(plan) = &text.plan {
            plan.check(arms.len())
                .map_err(|error| error.at_line_of(file))?;
        }
        let workload = Workload {
            requests: text.requests.unwrap_or(1),
            parallel: text.parallel.unwrap_or(1),
            pause: text.pause,
            direction: text.direction,
        };
        Self {
            name: text.name,
            description: text.description,
            arms,
            baseline,
            population,
            connections: text.connections,
            seed: text.seed,
            time_limit,
            workload: Workload::default(),
            plan: text.plan,
            epoch: text.epoch,
        }
        .with_workload(workload)
    }

    /// Returns the experiment with this workload.
    ///
    /// # Errors
    ///
    /// Returns a [`SettingError`] if a number is out of range, or the population has neighbours, which are observed on the downlink,
    /// beside uploads.
    pub fn with_workload(mut self, workload: Workload) -> Result<Self, SettingError> {
        workload.check()?;
        self.population = self.population.with_direction(workload.direction)?;
        self.workload = workload;
        Ok(self)
    }

    /// The experiment of the talk: [`FOUR_ARMS`].
    ///
    /// # Panics
    ///
    /// Never: a test reads it.
    #[must_use]
    pub fn four_arms() -> Self {
        Self::parse(FOUR_ARMS).expect("the experiment that is built in is one")
    }

    /// Returns the connection with this number. Each has its own draw, and an arm drawn by the shares. If `paired`, each draw is
    /// used by one connection of each arm in succession, whatever the shares: arms differ in nothing else, so fewer connections
    /// show a difference.
    pub fn connection(&self, index: u64, paired: bool) -> Plan {
        let arms = self.arms.len() as u64;
        let number = if paired { index / arms } else { index };
        let seed = self.seed_of_draw(number);
        let arm = if paired {
            (index % arms) as usize
        } else {
            Stream::new(seed, Field::Arm).choose(0, self.arms.iter().map(|arm| arm.share))
        };
        Plan {
            arm,
            seed,
            draw: self.population.draw(seed),
        }
    }

    /// The seed of a draw. It fits into the numbers of all log readers: see `units::SEED_END`.
    const fn seed_of_draw(&self, number: u64) -> u64 {
        seed_of(self.seed, number) % units::SEED_END
    }

    /// Whether one of the first `draws` draws has this seed.
    pub fn has_seed(&self, seed: u64, draws: u64) -> bool {
        (0..draws).any(|number| self.seed_of_draw(number) == seed)
    }

    /// Returns the scenario of a connection. Random events on its path depend only on the seed of the draw, so paired
    /// connections meet the same ones.
    pub fn scenario(&self, plan: &Plan) -> Scenario {
        let draw = &plan.draw;
        let requests = self.workload.requests(|number| match number {
            0 => draw.size_bytes,
            _ => self.population.further_size(plan.seed, number),
        });
        Scenario {
            path: draw.path.clone(),
            flows: vec![FlowPlan {
                congestion: self.arms[plan.arm].spec.clone(),
                start: draw.start,
                rtt: None,
                direction: self.workload.direction,
                requests,
                progress: Vec::new(),
            }],
            cross: draw.cross.clone(),
            transport: draw.transport.clone(),
            seed: Stream::new(plan.seed, Field::Simulation).at(0),
            time_limit: draw.start.saturating_add(self.time_limit),
            horizon: draw
                .neighbour
                .as_ref()
                .map_or(Duration::ZERO, |one| one.until),
        }
    }
}

/// The neighbours of an experiment.
///
/// # Errors
///
/// Returns a [`SettingError`] if a text is not a neighbour, or there are more than 64.
pub fn neighbours(texts: &[String], registry: &Registry) -> Result<Vec<Neighbour>, SettingError> {
    if texts.len() > NEIGHBOURS_MAX {
        return Err(SettingError::new(
            "neighbours",
            texts.len(),
            format!("at most {NEIGHBOURS_MAX}"),
        ));
    }
    let neighbours = texts.iter().map(|text| Neighbour::parse(text, registry));
    let neighbours: Result<Vec<Neighbour>, SettingError> = neighbours.collect();
    neighbours.map_err(|error| error.of("neighbours"))
}

/// Checks the observation time of neighbours.
///
/// # Errors
///
/// Returns a [`SettingError`] if it is zero or longer than 600 s.
pub fn horizon(span: Duration) -> Result<Duration, SettingError> {
    if span.is_zero() || span > HORIZON_MAX {
        return Err(SettingError::new(
            "horizon",
            units::show_span(span),
            "a span above zero, 600s at most",
        ));
    }
    Ok(span)
}

/// The report page has a chart for each.
const NEIGHBOURS_MAX: usize = 64;
const HORIZON_MAX: Duration = Duration::from_secs(600);

fn arms(texts: &[ArmText], registry: &Registry) -> Result<Vec<Arm>, SettingError> {
    let mut names = BTreeSet::new();
    let mut arms = Vec::new();
    for text in texts {
        let place = format!("arms.{}", text.name);
        if text.name.is_empty() {
            return Err(SettingError::because("arms", "an arm needs a `name`"));
        }
        if !names.insert(&text.name) {
            return Err(SettingError::because(place, "there are two of this name"));
        }
        arms.push(Arm {
            name: text.name.clone(),
            spec: registry
                .parse(&text.spec)
                .map_err(|error| SettingError::because(format!("{place}.spec"), error))?,
            share: text.share,
        });
    }
    if arms.iter().all(|arm| arm.share <= 0.0) {
        return Err(SettingError::because(
            "arms",
            "at least one `[[arms]]` with a `share` above zero is needed",
        ));
    }
    Ok(arms)
}
