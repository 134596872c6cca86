//! The requests of an access log by arm: latency by percentile, and the success ratio, with intervals.
//!
//! Requests of one connection are not independent: they have its path, its losses and its server. So the connection is the
//! unit of resampling: a resample of an arm draws as many connections as the arm has, each with all of its requests.
//!
//! # Decisions
//!
//! - A request *succeeds* if its response is complete and its status is below 500: other errors are the client's.
//!   Percentiles are of successful requests, beside the success ratio. An arm whose slow requests fail would look faster, so the
//!   ratio is to be read first.
//! - *Intervals are those of a normal distribution with the deviation of the resamples*, on a logarithmic scale for changes. All of
//!   a report hold at once in 95 % of experiments (Bonferroni). A ratio without any failure in both arms has none.
//! - Two requests are of one connection if address and port of the client, worker, number and transport are the same.
//! - *A line is a copy* if one with the same values was read before, and the log went on for a while since: lines are written when
//!   responses end. Two requests of a connection may well have the same values in the same millisecond.

use core::ops::ControlFlow;
use std::collections::{BTreeMap, BTreeSet};

use lastbyte_query::{AbsentKey, Input, Options, Query, Value};

use crate::{
    comparison::{Seen, hash_of, several_experiments},
    statistics::{
        random::Random,
        tests_of::{Estimate, chi_squared, simultaneous},
    },
};

/// The percentiles that are compared, as shares.
pub const SHARES: [f64; 8] = [0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99];
/// The most requests that all resamples together draw: about ten seconds. Of a larger log there are fewer resamples.
const DRAWS_MAX: u64 = 4_000_000_000;
/// The fewest resamples.
const REPLICATES_MIN: u64 = 200;
/// The fewest connections of an arm for intervals.
const CONNECTIONS_MIN: usize = 30;
/// The fewest requests beyond a percentile for it to be compared.
const BEYOND_MIN: f64 = 5.0;
/// Sample ratios with a smaller p are not by chance.
const RATIO_P: f64 = 0.001;
/// Two lines with the same values are of two requests if their responses ended within this time of the newest line, in ms.
const COPY_DELAY: f64 = 100.0;
/// The share of copies beyond which a log is refused, in percent.
const COPIES_MAX: u64 = 1;
/// The most arms: more are values of an expression that names no arms.
const ARMS_MAX: usize = 64;

/// What to compare, and how.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The arm that the others are compared with. Default: `baseline` or `slow-start` if there is such an arm, else the first of the log.
    pub baseline: Option<String>,
    /// The intended share of connections of each arm, in any unit. Arms that are not listed have 1. `None` if arms were not assigned at
    /// random.
    pub shares: Option<Vec<(String, f64)>>,
    /// Selects lines: an expression of the query language. Default: all lines of requests.
    pub filter: Option<String>,
    /// An expression for a line's arm. Default: the key `arm`.
    pub arm: Option<String>,
    /// The key or expression that is compared. Default: `ms`.
    pub metric: String,
    /// The number of planned looks at the experiment, for all of which intervals hold at once.
    pub looks: u32,
    /// Random seed of the bootstrap.
    pub seed: u64,
    /// The number of bootstrap resamples.
    pub replicates: usize,
    /// The number of threads that read the log.
    pub threads: usize,
}

/// Why there is no comparison.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// An expression is invalid.
    #[error("{0}")]
    Expression(String),
    /// The log cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// No line is of a request of an arm, with the number of lines of requests, and the keys of the settings that no line has.
    #[error("{}", empty(*.0, .1))]
    Empty(u64, Vec<AbsentKey>),
    /// A time that cannot be one, as text.
    #[error("`ms` of a line is {0} (expected a number of milliseconds from 0 on)")]
    Time(String),
    /// The log has lines of several experiments, with these names; `None` for lines without one.
    #[error("{}", several_experiments(.0))]
    SeveralExperiments(Vec<Option<String>>),
    /// Lines were read before: their share, in percent.
    #[error(
        "about {0} % of the lines are copies of others (expected each request once): give each log once, or remove the copies"
    )]
    Copies(u64),
    /// More arms than an experiment has.
    #[error("more than {} arms (expected an expression with few values)", ARMS_MAX)]
    TooManyArms,
    /// No such arm, with those of the log.
    #[error("unknown arm `{0}` (expected {arms})", arms = .1.join(", "))]
    UnknownArm(String, Vec<String>),
}

fn empty(lines: u64, absent: &[AbsentKey]) -> String {
    let absent = absent.iter().map(|key| format!("; {key}"));
    let absent = absent.collect::<String>();
    if lines == 0 {
        return format!("the log has no lines of requests that are selected{absent}");
    }
    format!(
        "none of {lines} requests has an arm and a value (expected HTTP/3 of an experiment, or --arm-by){absent}"
    )
}

/// The result.
#[derive(Clone, Debug)]
pub struct Requests {
    /// The arms, the baseline first.
    pub arms: Vec<ArmRequests>,
    /// Requests that are left out, since they have no arm.
    pub left_out: u64,
    /// Requests that are left out, since they have no value, by arm.
    pub without_value: BTreeMap<String, u64>,
    /// Whether arms have other shares of requests without a value than by chance.
    pub values_differ: bool,
    /// The number of resamples.
    pub replicates: usize,
    /// The p of the numbers of connections against the shares, unless there is only one arm or no share.
    pub ratio_p: Option<f64>,
    /// Keys of the settings that no line has.
    pub absent: Vec<AbsentKey>,
    /// Why the log could not be read to its end, if so.
    pub trouble: Option<String>,
}

/// The requests of an arm.
#[derive(Clone, Debug)]
pub struct ArmRequests {
    /// Its name.
    pub name: String,
    /// The number of connections.
    pub connections: usize,
    /// The number of requests.
    pub requests: usize,
    /// The share of requests that succeed.
    pub success: f64,
    /// The difference from the baseline, as a share, with an interval.
    pub success_difference: Option<Estimate>,
    /// Percentiles of successful requests, in the order of [`SHARES`].
    pub percentiles: [Option<f64>; SHARES.len()],
    /// Their changes from the baseline, as shares, with intervals.
    pub changes: [Option<Estimate>; SHARES.len()],
}

impl Requests {
    /// Whether the numbers of connections cannot be by chance, so that the arms cannot be compared.
    pub fn ratio_fails(&self) -> bool {
        self.ratio_p.is_some_and(|p| p < RATIO_P)
    }

    /// Reads an access log.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Expression`] if an expression is invalid, [`Error::Unreadable`] if nothing can be read, [`Error::UnknownArm`] if
    /// the settings name an arm that the log has not, and another [`Error`] if it cannot be compared.
    pub fn read(inputs: Vec<Input>, settings: &Settings) -> Result<Self, Error> {
        let (gathered, absent, trouble) = gather(inputs, settings)?;
        let Gathered {
            mut arms,
            left_out,
            lines,
            copies,
            experiments,
            ..
        } = gathered;
        let without_value = arms.iter().filter(|arm| arm.without_value > 0);
        let without_value = without_value
            .map(|arm| (arm.name.clone(), arm.without_value))
            .collect();
        let lacking: Vec<u64> = arms.iter().map(|arm| arm.without_value).collect();
        let all = arms
            .iter()
            .map(|arm| arm.without_value as f64 + arm.requests.len() as f64);
        let values_differ = chi_squared(&lacking, &all.collect::<Vec<_>>());
        arms.retain(|arm| !arm.requests.is_empty());
        if arms.is_empty() {
            return Err(match trouble {
                Some(trouble) => Error::Unreadable(trouble),
                None => Error::Empty(lines, absent),
            });
        }
        if experiments.len() > 1 {
            return Err(Error::SeveralExperiments(experiments.into_iter().collect()));
        }
        if copies * 100 > lines * COPIES_MAX {
            return Err(Error::Copies(copies * 100 / lines));
        }
        let names: Vec<String> = arms.iter().map(|arm| arm.name.clone()).collect();
        let place = |name: &str| names.iter().position(|known| known == name);
        let unknown = |name: &str| Error::UnknownArm(name.to_owned(), names.clone());
        let baseline = match &settings.baseline {
            Some(name) => place(name).ok_or_else(|| unknown(name))?,
            None => place("baseline")
                .or_else(|| place("slow-start"))
                .unwrap_or(0),
        };
        let known = settings.shares.as_deref().unwrap_or_default();
        for (name, _) in known {
            place(name).ok_or_else(|| unknown(name))?;
        }
        arms[..=baseline].rotate_right(1);
        let share = |arm: &Arm| {
            let given = known.iter().find(|(name, _)| *name == arm.name);
            given.map_or(1.0, |(_, share)| *share)
        };
        let counts: Vec<u64> = arms.iter().map(|arm| arm.clusters as u64).collect();
        let shares: Vec<f64> = arms.iter().map(share).collect();
        let ratio_p = chi_squared(&counts, &shares).map(|(_, p)| p);
        let drawn: u64 = arms.iter().map(|arm| arm.requests.len() as u64).sum();
        let replicates = (DRAWS_MAX / drawn.max(1)).max(REPLICATES_MIN);
        let replicates = settings.replicates.min(replicates as usize);
        Ok(Self {
            ratio_p: ratio_p.filter(|_| arms.len() > 1 && settings.shares.is_some()),
            arms: compare(&mut arms, settings, replicates),
            left_out,
            without_value,
            values_differ: values_differ.is_some_and(|(_, p)| p < RATIO_P),
            replicates,
            absent,
            trouble,
        })
    }
}

/// A request of an arm.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Request {
    /// The index of its connection in the arm.
    cluster: u32,
    /// `None` if it failed.
    value: Option<f64>,
}

/// An arm, as it is read.
#[derive(Debug, Default)]
struct Arm {
    name: String,
    requests: Vec<Request>,
    without_value: u64,
    clusters: usize,
}

#[derive(Default)]
struct Gathered {
    arms: Vec<Arm>,
    /// Connections by a hash of what identifies them: the index in their arm.
    clusters: BTreeMap<(usize, u64), u32>,
    /// The experiments of lines with an arm.
    experiments: BTreeSet<Option<String>>,
    left_out: u64,
    lines: u64,
    seen: Seen,
    copies: u64,
    /// When the newest response ended, in ms.
    newest: f64,
}

/// The number of columns that tell connections apart.
const CONNECTION: usize = 5;

impl Gathered {
    /// Counts a line that was read before.
    fn find_copy(&mut self, time: &Value, ms: &Value, line: &[Value]) {
        let (Some(time), Some(ms)) = (time.as_f64(), ms.as_f64()) else {
            return;
        };
        let end = time + ms;
        self.newest = self.newest.max(end);
        if self.seen.add(hash_of(line), 0).is_some() && self.newest - end > COPY_DELAY {
            self.copies += self.seen.weight();
        }
    }

    /// A row of the query.
    fn add(&mut self, row: &[Value], settings: &Settings) -> Result<(), Error> {
        let [arm, value, line @ ..] = row else {
            return Ok(());
        };
        let [experiment, is_complete, status, time, ms, connection @ ..] = line else {
            return Ok(());
        };
        self.lines += 1;
        self.find_copy(time, ms, line);
        let connection = &connection[..CONNECTION.min(connection.len())];
        let is_time = ms.is_null() || ms.as_f64().is_some_and(|ms| ms >= 0.0);
        if settings.metric == "ms" && !is_time {
            return Err(Error::Time(ms.to_string()));
        }
        let number = match value {
            Value::Integer(number) => Some(*number as f64),
            Value::Float(number) => Some(*number).filter(|number| number.is_finite()),
            _ => None,
        };
        let name = match arm {
            Value::String(name) => Some(name.clone()),
            Value::Integer(number) => Some(number.to_string()),
            Value::Bool(value) => Some(value.to_string()),
            _ => None,
        };
        let Some(name) = name else {
            self.left_out += 1;
            return Ok(());
        };
        let experiment = experiment.as_str().map(str::to_owned);
        // An arm of another definition may have lines without an experiment, as those over TCP.
        if experiment.is_some() || settings.arm.is_none() {
            self.experiments.insert(experiment);
        }
        let known = self.arms.iter().position(|arm| arm.name == name);
        let place = known.unwrap_or(self.arms.len());
        if place == self.arms.len() {
            if place == ARMS_MAX {
                return Err(Error::TooManyArms);
            }
            self.arms.push(Arm {
                name,
                ..Arm::default()
            });
        }
        let Some(number) = number else {
            self.arms[place].without_value += 1;
            return Ok(());
        };
        let is_success = *is_complete == Value::Bool(true)
            && matches!(status, Value::Integer(status) if (100..500).contains(status));
        let Some(arm) = self.arms.get_mut(place) else {
            return Ok(());
        };
        let cluster = self.clusters.entry((place, hash_of(connection)));
        let cluster = *cluster.or_insert_with(|| {
            arm.clusters += 1;
            arm.clusters as u32 - 1
        });
        arm.requests.push(Request {
            cluster,
            value: is_success.then_some(number),
        });
        Ok(())
    }
}

fn gather(
    inputs: Vec<Input>,
    settings: &Settings,
) -> Result<(Gathered, Vec<AbsentKey>, Option<String>), Error> {
    let of = |text: &str| crate::comparison::expression_of(text);
    let compile = |text: &str| {
        let options = Options {
            threads: settings.threads,
            ..Options::default()
        };
        Query::compile(text, &[], options).map_err(|error| Error::Expression(error.to_string()))
    };
    let arm = settings.arm.clone().unwrap_or_else(|| of("arm"));
    let metric = of(&settings.metric);
    let filter = settings.filter.as_deref().unwrap_or("true");
    let mut keys = Vec::new();
    for text in [arm.as_str(), &metric, filter] {
        let query = compile(text)?;
        keys.extend(query.keys());
        if let Some(effect) = query.effect() {
            let why = format!("`{text}` has {effect} (expected an expression of the line)");
            return Err(Error::Expression(why));
        }
    }
    let query = compile(&format!(
        "select(_[\"type\"] == \"request\" && ({filter})) >> \
         [({arm}), ({metric}), _[\"experiment\"], _[\"complete\"], _[\"status\"], _[\"time\"], _[\"ms\"], _[\"remote\"], _[\"port\"], _[\"worker\"], \
         _[\"conn_id\"], _[\"http\"] == \"HTTP/3\", _[\"path\"], _[\"method\"], _[\"bytes\"]]"
    ))?;
    let mut gathered = Gathered::default();
    let mut wrong = None;
    let outcome = query.for_each(inputs, |row| match gathered.add(row, settings) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            wrong = Some(error);
            ControlFlow::Break(())
        }
    });
    if let Some(wrong) = wrong {
        return Err(wrong);
    }
    let absent = crate::comparison::among(&outcome.absent, &keys);
    let trouble = outcome.into_result().err().map(|error| error.to_string());
    Ok((gathered, absent, trouble))
}

/// What is estimated of an arm: its success ratio, and the logarithms of its percentiles.
#[derive(Clone, Copy, Debug, Default)]
struct Values {
    success: f64,
    percentiles: [Option<f64>; SHARES.len()],
}

/// The values of an arm in which each connection counts as often as `weights` has it. Requests are sorted: failures last.
fn values(arm: &Arm, successes: u64, weights: &[u32]) -> Values {
    let weight = |request: &Request| u64::from(weights[request.cluster as usize]);
    let mut values = Values::default();
    let all: u64 = arm.requests.iter().map(weight).sum();
    let (ok, _) = arm.requests.split_at(successes as usize);
    let of_ok: u64 = ok.iter().map(weight).sum();
    values.success = of_ok as f64 / all.max(1) as f64;
    let mut ranks = SHARES.map(|share| (share * of_ok as f64).ceil().max(1.0) as u64);
    if of_ok == 0 {
        ranks = [u64::MAX; SHARES.len()];
    }
    let (mut seen, mut next) = (0, 0);
    for request in ok {
        seen += weight(request);
        while next < ranks.len() && seen >= ranks[next] {
            values.percentiles[next] = request.value;
            next += 1;
        }
        if next == ranks.len() {
            break;
        }
    }
    values
}

/// The variance of values.
fn variance(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    squares / (count - 1.0).max(1.0)
}

/// An arm's values, and the variances of its success ratio and of the logarithms of its percentiles.
struct Measured {
    observed: Values,
    successes: usize,
    success: f64,
    percentiles: [Option<f64>; SHARES.len()],
}

fn measure(arm: &mut Arm, random: &mut Random, replicates: usize) -> Measured {
    arm.requests.sort_by(|one, other| {
        let key = |request: &Request| request.value.unwrap_or(f64::INFINITY);
        key(one).total_cmp(&key(other))
    });
    let successes = arm.requests.iter().filter(|one| one.value.is_some());
    let successes = successes.count();
    let observed = values(arm, successes as u64, &vec![1; arm.clusters]);
    let mut draws = Vec::with_capacity(replicates);
    if arm.clusters >= CONNECTIONS_MIN {
        let mut weights = vec![0; arm.clusters];
        for _ in 0..replicates {
            weights.fill(0);
            for _ in 0..arm.clusters {
                weights[random.below(arm.clusters as u64) as usize] += 1;
            }
            draws.push(values(arm, successes as u64, &weights));
        }
    }
    let percentile = |place: usize| {
        let beyond = successes as f64 * SHARES[place].min(1.0 - SHARES[place]);
        let draws = draws.iter().map(|draw| draw.percentiles[place]);
        let logs: Option<Vec<f64>> = draws
            .map(|value| value.filter(|value| *value > 0.0).map(libm::log))
            .collect();
        let logs = logs.filter(|logs| beyond >= BEYOND_MIN && logs.len() > 1);
        logs.map(|logs| variance(&logs))
    };
    let ratios: Vec<f64> = draws.iter().map(|draw| draw.success).collect();
    Measured {
        observed,
        successes,
        success: if ratios.len() > 1 {
            variance(&ratios)
        } else {
            f64::NAN
        },
        percentiles: core::array::from_fn(percentile),
    }
}

fn compare(arms: &mut [Arm], settings: &Settings, replicates: usize) -> Vec<ArmRequests> {
    let measured: Vec<Measured> = (1..)
        .zip(arms.iter_mut())
        .map(|(stream, arm)| measure(arm, &mut Random::new(settings.seed, stream), replicates))
        .collect();
    let looks = settings.looks.max(1) as usize;
    let z = simultaneous((SHARES.len() + 1) * arms.len().saturating_sub(1) * looks);
    let mut compared = Vec::new();
    for (place, (arm, of)) in arms.iter().zip(&measured).enumerate() {
        let base = measured.first().filter(|_| place > 0);
        let difference = |base: &Measured| {
            let is_known =
                base.successes < arms[0].requests.len() || of.successes < arm.requests.len();
            let value = of.observed.success - base.observed.success;
            let half = z * (of.success + base.success).sqrt();
            let interval = (value - half, value + half);
            (is_known && half.is_finite()).then_some(Estimate { value, interval })
        };
        let change = |base: &Measured, share: usize| {
            let ratio = of.observed.percentiles[share]? / base.observed.percentiles[share]?;
            let half = z * (of.percentiles[share]? + base.percentiles[share]?).sqrt();
            let log = libm::log(ratio);
            let unscaled = libm::expm1;
            Some(Estimate {
                value: ratio - 1.0,
                interval: (unscaled(log - half), unscaled(log + half)),
            })
        };
        compared.push(ArmRequests {
            name: arm.name.clone(),
            connections: arm.clusters,
            requests: arm.requests.len(),
            success: of.observed.success,
            success_difference: base.and_then(difference),
            percentiles: of.observed.percentiles,
            changes: core::array::from_fn(|share| base.and_then(|base| change(base, share))),
        });
    }
    compared
}

#[cfg(test)]
mod tests;
