//! A population of paths: sites, each a mixture of access classes.
//!
//! A draw ([`Draw`]) from a [`Population`] is a path, an object size, cross traffic, and the client's acknowledgment behaviour.
//! Each field is drawn from a random stream of its own, so that the same seed gives the same draw, and switching off or
//! scaling one ([`Sweep`]) changes no other. `docs/population.md` gives the sources of the default's figures.
//!
//! | module | responsibility |
//! |---|---|
//! | [`distribution`] | distributions as text |
//! | `text` | the values of the file |
//! | `sweep` | factors that scale a population |
//! | `random` | random streams |
//! | `path` | the links of a draw |
//! | `networks` | given networks in place of drawn paths |
//! | `neighbours` | a neighbour on each path in place of cross traffic |
//! | `uploads` | data on the uplink |

use core::time::Duration;
use std::collections::BTreeMap;

use lastbyte_congestion::{Registry, SavedPath, Spec};
use lastbyte_link::{Contention, Policer, Rate, Reordering, Spacing, WakeUp};
use lastbyte_units::Direction;
use serde::Deserialize;

use crate::{
    client_acks::ClientAcks,
    cross::{CrossKind, CrossTraffic},
    neighbour::{Neighbour, Observation},
    scenario::{Path, Transport},
    setting::{self, SettingError},
};

pub mod distribution;
mod neighbours;
mod networks;
mod path;
pub(crate) mod random;
mod sweep;
pub(crate) mod text;
mod uploads;

#[cfg(test)]
mod tests;

pub(crate) use self::random::seed_of;
pub use self::sweep::Sweep;
use self::{
    distribution::Distribution,
    random::{Field, Stream},
};

/// The file of the default population.
pub const DEFAULT: &str = include_str!("../experiments/population.toml");

/// Sites, access classes, and the settings common to all of them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Population {
    name: String,
    #[serde(default, rename = "description")]
    _description: String,
    #[serde(default, deserialize_with = "text::overhead")]
    overhead: u32,
    queue_floor: u64,
    #[serde(deserialize_with = "text::discipline")]
    aqm: Discipline,
    #[serde(deserialize_with = "text::shares")]
    random_loss: Distribution,
    #[serde(deserialize_with = "text::sizes")]
    policer_bucket: Distribution,
    #[serde(deserialize_with = "text::bytes")]
    up_queue: u64,
    #[serde(deserialize_with = "text::share")]
    ecn_share: f64,
    returns: Option<Returns>,
    cross: Cross,
    sizes: Sizes,
    acks: Vec<AckPolicy>,
    classes: Vec<Class>,
    sites: Vec<Site>,
    #[serde(skip)]
    sweep: Sweep,
    /// Networks that replace the drawn paths, unless it is empty.
    #[serde(skip)]
    networks: Vec<(String, Path)>,
    /// Neighbours that replace the cross traffic, unless it is empty.
    #[serde(skip)]
    neighbours: Vec<Neighbour>,
    /// Observation time of neighbours; `None` if it depends on the path.
    #[serde(skip)]
    horizon: Option<Duration>,
    /// Direction of the data.
    #[serde(skip)]
    direction: Direction,
    /// Named variants that replace this population with equal probability, unless it is empty.
    #[serde(skip)]
    variants: Vec<(String, Self)>,
}

/// Clients with a token of an earlier connection.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Returns {
    #[serde(deserialize_with = "text::share")]
    share: f64,
    /// The share of these whose path has changed.
    #[serde(deserialize_with = "text::share")]
    changed: f64,
    /// The share of the line rate that the earlier connection used.
    #[serde(deserialize_with = "text::shares")]
    used: Distribution,
}

/// The queue management of managed queues.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Discipline {
    CoDel,
    FqCoDel,
    Pie,
    DualPi2,
    Cake,
}

/// A kind of access.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Class {
    name: String,
    #[serde(deserialize_with = "text::rates")]
    rate: Distribution,
    #[serde(default = "text::yes")]
    rate_follows_site: bool,
    #[serde(deserialize_with = "text::spans")]
    access_rtt: Distribution,
    #[serde(deserialize_with = "text::spans")]
    queue: Distribution,
    #[serde(deserialize_with = "text::share")]
    aqm_share: f64,
    #[serde(default, rename = "poor")]
    is_poor: bool,
    /// Random loss of every path of the class, at any site, instead of the population's on some paths.
    #[serde(default, deserialize_with = "text::shares")]
    loss: Option<Distribution>,
    #[serde(default = "text::one", deserialize_with = "text::weight")]
    loss_factor: f64,
    bursts: Option<Bursts>,
    handover: Option<Handover>,
    #[serde(default, deserialize_with = "text::spacing")]
    release: Option<Spacing>,
    #[serde(default, deserialize_with = "text::positive_span")]
    jitter: Option<Duration>,
    contention: Option<ContentionDraw>,
    wake_up: Option<WakeUpDraw>,
    reordering: Option<ReorderingDraw>,
    variation: Option<Variation>,
    /// The rate of the uplink; at most one of this and `up_share`.
    #[serde(default, deserialize_with = "text::rates")]
    up_rate: Option<Distribution>,
    /// The rate of the uplink as a share of the rate down.
    #[serde(default, deserialize_with = "text::shares")]
    up_share: Option<Distribution>,
    /// Of an uplink with a rate, in place of the population's.
    #[serde(default, deserialize_with = "text::spans")]
    up_queue: Option<Distribution>,
    #[serde(default, deserialize_with = "text::share")]
    up_aqm_share: f64,
    /// Of every path.
    #[serde(default, deserialize_with = "text::shares")]
    up_loss: Option<Distribution>,
    #[serde(default, deserialize_with = "text::positive_span")]
    up_jitter: Option<Duration>,
    #[serde(default = "text::one", deserialize_with = "text::weight")]
    cross_factor: f64,
}

/// A shared medium, in both directions.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ContentionDraw {
    #[serde(deserialize_with = "text::shares")]
    share: Distribution,
    #[serde(deserialize_with = "text::positive_span")]
    busy: Duration,
}

/// A radio that sleeps. It affects the uplink, which carries the first packet.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WakeUpDraw {
    #[serde(deserialize_with = "text::positive_span")]
    after: Duration,
    #[serde(deserialize_with = "text::spans")]
    delay: Distribution,
}

/// Packets held back on the downlink, on some paths.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReorderingDraw {
    #[serde(rename = "share", deserialize_with = "text::share")]
    paths: f64,
    #[serde(deserialize_with = "text::shares")]
    packets: Distribution,
    #[serde(deserialize_with = "text::spans")]
    delay: Distribution,
}

/// Loss bursts, on some paths.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bursts {
    #[serde(deserialize_with = "text::share")]
    share: f64,
    #[serde(rename = "per-second", deserialize_with = "text::per_second")]
    every: Duration,
    #[serde(deserialize_with = "text::packets")]
    packets: f64,
}

/// Recurring outages, during which a part of the packets is lost.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Handover {
    /// Random: a Poisson process.
    #[serde(deserialize_with = "text::spacing")]
    every: Spacing,
    /// Shorter than a quarter of `every`.
    #[serde(deserialize_with = "text::span")]
    stall: Duration,
    #[serde(deserialize_with = "text::share")]
    drop_share: f64,
    drop_packets: u64,
}

/// A rate that changes at each step: log-normal, with the line rate as its mean.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Variation {
    /// The coefficient of variation.
    #[serde(deserialize_with = "text::cv")]
    cv: f64,
    #[serde(deserialize_with = "text::step")]
    step: Duration,
    /// The correlation of the logarithm with that of the previous step.
    #[serde(deserialize_with = "text::share")]
    memory: f64,
}

/// The location of a server, and its clients.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Site {
    name: String,
    #[serde(default = "text::one", deserialize_with = "text::weight")]
    share: f64,
    /// The weights of classes, by their names.
    weights: BTreeMap<String, Weight>,
    #[serde(deserialize_with = "text::positive_factor")]
    rate_factor: f64,
    #[serde(deserialize_with = "text::spans")]
    path_rtt: Distribution,
    #[serde(deserialize_with = "text::share")]
    lossy_share: f64,
    #[serde(deserialize_with = "text::share")]
    policed_share: f64,
    #[serde(deserialize_with = "text::rates")]
    policer_rate: Distribution,
}

/// A weight, from 0 to 1000000.
#[derive(Clone, Copy, Debug, Deserialize)]
struct Weight(#[serde(deserialize_with = "text::weight")] f64);

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Cross {
    #[serde(deserialize_with = "text::share")]
    bulk_share: f64,
    /// The weights of kinds, by their text.
    bulk: BTreeMap<String, Weight>,
    /// The kinds of `bulk`, in its order.
    #[serde(skip)]
    kinds: Vec<CrossKind>,
    /// In round trips.
    #[serde(deserialize_with = "text::numbers")]
    bulk_lead: Distribution,
    #[serde(deserialize_with = "text::share")]
    bursts_share: f64,
    #[serde(deserialize_with = "text::sizes")]
    bursts_size: Distribution,
    #[serde(deserialize_with = "text::positive_span")]
    bursts_every: Duration,
    /// Congestion control of the page loads; `None`: bursts are packets at a constant rate.
    bursts_congestion: Option<String>,
    /// Parsed from `bursts_congestion`.
    #[serde(skip)]
    bursts_spec: Option<Spec>,
    /// The largest share of the long-term rate that bursts use.
    #[serde(deserialize_with = "text::share")]
    bursts_at_most: f64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sizes {
    /// Lower and upper bounds.
    #[serde(deserialize_with = "text::bins")]
    bins: Vec<(u64, u64)>,
    /// The chosen one of `mixes`.
    mix: String,
    /// The weight of each bin, by the name of the mix.
    mixes: BTreeMap<String, Vec<Weight>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct AckPolicy {
    name: String,
    #[serde(deserialize_with = "text::weight")]
    share: f64,
    #[serde(default, deserialize_with = "text::rule")]
    rule: ClientAcks,
    /// Default: that of the rule.
    #[serde(default, deserialize_with = "text::span")]
    max_ack_delay: Option<Duration>,
    #[serde(default)]
    ack_frequency: bool,
}

/// One client of the population: its path to the site, and its workload.
#[derive(Clone, Debug)]
pub struct Draw {
    /// The name of the site.
    pub site: String,
    /// The name of the class of access.
    pub class: String,
    /// The two links.
    pub path: Path,
    /// Size of the first object, in bytes.
    pub size_bytes: u64,
    /// Cross traffic.
    pub cross: Vec<CrossTraffic>,
    /// Start of the transfer, so that cross traffic precedes it, and handovers occur at any phase.
    pub start: Duration,
    /// Settings of the endpoints.
    pub transport: Transport,
    /// The observed neighbour, if the population has neighbours.
    pub neighbour: Option<Observation>,
    /// The drawn values, for the log.
    pub facts: DrawFacts,
}

/// The drawn values.
#[derive(Clone, Debug, PartialEq)]
pub struct DrawFacts {
    /// The mean rate of the line down. A policer may limit it further.
    pub rate: Rate,
    /// The round-trip time without queues, jitter and ACK batching.
    pub rtt: Duration,
    /// Size of the queue down, in bytes.
    pub queue_bytes: u64,
    /// Size of the queue down, as time at the line rate.
    pub queue: Duration,
    /// Whether the queue is managed.
    pub has_aqm: bool,
    /// The probability of a random loss; 0 if the path has none.
    pub random_loss: f64,
    /// Whether losses are bursty, including those of handovers.
    pub has_burst_loss: bool,
    /// The policer of the path.
    pub policer: Option<Policer>,
    /// The interval between handovers.
    pub handover: Option<Duration>,
    /// The batching of acknowledgments on the way back.
    pub release: Option<Spacing>,
    /// The mean of the exponential jitter down.
    pub jitter: Option<Duration>,
    /// Contention on the medium, in both directions.
    pub contention: Option<Contention>,
    /// Wake-up of the radio, on the uplink.
    pub wake_up: Option<WakeUp>,
    /// Packets held back on the downlink.
    pub reordering: Option<Reordering>,
    /// Whether the rate varies.
    pub is_rate_variable: bool,
    /// The rate up, if it has a limit.
    pub up_rate: Option<Rate>,
    /// What else limits the uplink.
    pub up: UpFacts,
    /// Whether the class is one of poor access.
    pub is_poor: bool,
    /// Cross traffic.
    pub cross: CrossFact,
    /// The name of the client's acknowledgment policy.
    pub ack_policy: String,
    /// Whether endpoints use ECN and managed queues mark.
    pub ecn: bool,
}

/// What was drawn for the uplink, beside its rate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UpFacts {
    /// How much the queue holds at the rate up; `None` for what the population says of all lines.
    pub queue: Option<Duration>,
    /// Whether the queue is managed.
    pub has_aqm: bool,
    /// The probability of a random loss.
    pub random_loss: f64,
    /// The mean of the exponential jitter.
    pub jitter: Option<Duration>,
}

impl DrawFacts {
    /// The lower of line rate and policer rate.
    pub fn long_term_rate(&self) -> Rate {
        match self.policer {
            Some(policer) => policer.rate.min(self.rate),
            None => self.rate,
        }
    }
}

/// Cross traffic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CrossFact {
    /// Nothing.
    None,
    /// A long flow, as the population file names it.
    Bulk(String),
    /// Web pages, simulated as transfers if the population names a congestion control for them, else
    /// as a constant rate with the same mean.
    Bursts {
        /// Size of a page, in bytes.
        bytes: u64,
        /// From the start of a page to the start of the next.
        every: Duration,
    },
}

/// The drawn values from which the links are made.
#[derive(Clone, Debug)]
struct Sketch {
    site: usize,
    class: usize,
    acks: usize,
    size_bytes: u64,
    facts: DrawFacts,
    /// Loss bursts of the class, if the path has them.
    bursts: Option<Bursts>,
    /// Index of the bulk flow's congestion control, and how long before the transfer it starts.
    bulk: Option<(usize, Duration)>,
    /// Time since the last handover at the start of the transfer.
    handover_age: Duration,
}

/// A full datagram, in bytes: that of [`Transport::default`].
const DATAGRAM: u16 = 1280;
/// Minimum line rate, in bits per second.
const RATE_MIN: f64 = 16e3;
/// Maximum line rate, in bits per second.
const RATE_MAX: f64 = 10e9;
/// Minimum round-trip time, in nanoseconds.
const RTT_MIN: f64 = 10e3;
/// Maximum round-trip time, in nanoseconds.
const RTT_MAX: f64 = 10e9;
/// Maximum queue size, in nanoseconds.
const QUEUE_MAX: f64 = 60e9;

impl Population {
    /// Reads a population file, with the built-in congestion controls.
    ///
    /// # Errors
    ///
    /// Returns a [`SettingError`] with the key if the text is not TOML, has an unknown key, or a value that is not
    /// valid.
    pub fn parse(text: &str) -> Result<Self, SettingError> {
        Self::parse_with(text, &Registry::builtin())
    }

    /// Reads a population file, with specs of this registry for other traffic.
    ///
    /// # Errors
    ///
    /// As [`Population::parse`].
    pub fn parse_with(text: &str, registry: &Registry) -> Result<Self, SettingError> {
        let mut population: Self = setting::read(text)?;
        let checked = population.check(registry);
        checked.map_err(|error| error.at_line_of(text))?;
        Ok(population)
    }

    /// The default: [`DEFAULT`].
    ///
    /// # Panics
    ///
    /// Never: a test reads it.
    #[must_use]
    pub fn standard() -> Self {
        Self::parse(DEFAULT).expect("the population that is built in is one")
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The names of the sites, in the order of the file.
    pub fn sites(&self) -> impl Iterator<Item = &str> {
        self.sites.iter().map(|site| site.name.as_str())
    }

    /// The names of the access classes, in the order of the file.
    pub fn classes(&self) -> impl Iterator<Item = &str> {
        self.classes.iter().map(|class| class.name.as_str())
    }

    /// The factors of [`Population::scaled`].
    pub const fn sweep(&self) -> &Sweep {
        &self.sweep
    }

    /// Returns the population scaled by these factors, in addition to earlier ones.
    ///
    /// # Errors
    ///
    /// Returns an error for an invalid factor, or an unknown mix of sizes.
    pub fn scaled(&self, sweep: &Sweep) -> Result<Self, SettingError> {
        sweep.check()?;
        let mut scaled = self.clone();
        scaled.sweep = self.sweep.and(sweep);
        scaled.sweep.check()?;
        if let Some(mix) = &sweep.sizes {
            scaled.sizes.mix.clone_from(mix);
            scaled.sizes.check_mix("sizes")?;
        }
        let is_unlimited = |class: &Class| class.up_rate.is_none() && class.up_share.is_none();
        if (sweep.up_rate - 1.0).abs() > f64::EPSILON && self.classes.iter().all(is_unlimited) {
            return Err(SettingError::because(
                "up-rate",
                "no class of the population has `up-rate` or `up-share`",
            ));
        }
        let empty = scaled
            .sites
            .iter()
            .find(|site| scaled.class_weights(site).sum::<f64>() <= 0.0);
        match empty {
            Some(site) => Err(SettingError::because(
                "poor",
                format!(
                    "no class is left in `{}`: all its classes are poor",
                    site.name
                ),
            )),
            None => Ok(scaled),
        }
    }

    /// Returns the population restricted to these sites.
    ///
    /// # Errors
    ///
    /// Returns an error if a site is unknown, or if none of the sites has a share.
    pub fn with_sites(&self, sites: &[String]) -> Result<Self, SettingError> {
        if let Some(unknown) = sites
            .iter()
            .find(|name| self.sites().all(|site| site != *name))
        {
            let names: Vec<&str> = self.sites().collect();
            return Err(SettingError::new(
                "sites",
                format!("unknown site `{unknown}`"),
                names.join(", "),
            ));
        }
        let mut few = self.clone();
        few.sites.retain(|site| sites.contains(&site.name));
        if few.sites.iter().all(|site| site.share <= 0.0) {
            return Err(SettingError::because(
                "sites",
                "none of them has a share above zero",
            ));
        }
        Ok(few)
    }

    /// Returns a mixture of variants, each scaled by one of these factors, with equal probability. Sites take the variants' names.
    ///
    /// # Errors
    ///
    /// As [`Population::scaled`].
    pub fn with_variants(&self, sweeps: &[(String, Sweep)]) -> Result<Self, SettingError> {
        let variants = sweeps.iter();
        let variants = variants.map(|(name, sweep)| Ok((name.clone(), self.scaled(sweep)?)));
        Ok(Self {
            variants: variants.collect::<Result<_, SettingError>>()?,
            ..self.clone()
        })
    }

    /// The variant of the client with this seed.
    fn variant(&self, seed: u64) -> Option<&(String, Self)> {
        let all = self.variants.iter().map(|_| 1.0);
        self.variants
            .get(Stream::new(seed, Field::Network).choose(0, all))
    }

    /// Draws a client. The same seed gives the same client.
    pub fn draw(&self, seed: u64) -> Draw {
        if let Some((name, variant)) = self.variant(seed) {
            return Draw {
                site: name.clone(),
                ..variant.draw(seed)
            };
        }
        let draw = path::draw(self, self.sketch(seed), seed);
        let draw = networks::draw(self, draw, seed);
        let draw = neighbours::draw(self, draw, seed);
        match self.direction {
            Direction::Down => draw,
            Direction::Up => uploads::draw(draw),
        }
    }

    /// The size of another object of the client with this seed, by its number: 1 or more.
    pub(crate) fn further_size(&self, seed: u64, number: u64) -> u64 {
        let population = self.variant(seed).map_or(self, |(_, variant)| variant);
        let seed = Stream::new(seed, Field::FurtherSizes).at(number);
        population.sizes.draw(Stream::new(seed, Field::Size))
    }

    /// Returns the population with data in this direction.
    pub(crate) fn with_direction(self, direction: Direction) -> Result<Self, SettingError> {
        if direction == Direction::Up && !self.neighbours.is_empty() {
            return Err(SettingError::because(
                "neighbours",
                "they are observed on the downlink, and data go up",
            ));
        }
        Ok(Self { direction, ..self })
    }

    /// Returns the population with one neighbour on each path instead of cross traffic, drawn with equal probability. It is observed
    /// for `horizon`; by default for 20 round trips and four times the transmission time of the object, 60 s at most.
    #[must_use]
    pub fn with_neighbours(&self, neighbours: Vec<Neighbour>, horizon: Option<Duration>) -> Self {
        Self {
            neighbours,
            horizon,
            ..self.clone()
        }
    }

    /// Returns the population with these networks instead of its paths, drawn with equal probability. Sites and classes take their
    /// names.
    #[must_use]
    pub fn with_networks(&self, networks: Vec<(String, Path)>) -> Self {
        Self {
            networks,
            ..self.clone()
        }
    }

    /// Returns the population with objects of these sizes, in bytes, drawn with equal probability.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no size, or a size of 0.
    pub fn with_sizes(&self, sizes: &[u64]) -> Result<Self, SettingError> {
        if sizes.is_empty() || sizes.contains(&0) {
            return Err(SettingError::new("size", "0", "1 byte or more"));
        }
        Ok(Self {
            sizes: Sizes {
                bins: sizes.iter().map(|size| (*size, size + 1)).collect(),
                mix: String::new(),
                mixes: [(String::new(), vec![Weight(1.0); sizes.len()])].into(),
            },
            ..self.clone()
        })
    }

    /// Path measurements that the server saved from an earlier connection of this client (RFC 9959): of this path, or of one drawn
    /// independently.
    fn saved_path(&self, facts: &DrawFacts, seed: u64) -> Option<SavedPath> {
        let stream = |field| Stream::new(seed, field);
        let returns = self.returns.as_ref()?;
        if !stream(Field::Returns).happens(returns.share) {
            return None;
        }
        let (rate, rtt) = if stream(Field::PathChanged).happens(returns.changed) {
            let other = self.sketch(stream(Field::EarlierPath).at(0)).facts;
            (other.long_term_rate(), other.rtt)
        } else {
            (facts.long_term_rate(), facts.rtt)
        };
        let used = returns.used.draw(stream(Field::Used)).clamp(0.0, 1.0);
        let window = rate.bits_per_second() as f64 / 8.0 * used * rtt.as_secs_f64();
        Some(SavedPath {
            window: window as u64,
            rtt,
        })
    }

    /// Returns the population with these return visits instead of its own.
    pub(crate) fn with_returns(self, returns: Returns) -> Self {
        Self {
            returns: Some(returns),
            ..self
        }
    }

    fn class_weights<'a>(&'a self, site: &'a Site) -> impl Iterator<Item = f64> + Clone + 'a {
        self.classes.iter().map(|class| {
            let weight = site.weights.get(&class.name).map_or(0.0, |weight| weight.0);
            if class.is_poor {
                weight * self.sweep.poor
            } else {
                weight
            }
        })
    }

    /// Draws all values of a client.
    fn sketch(&self, seed: u64) -> Sketch {
        let stream = |field| Stream::new(seed, field);
        let site_index = stream(Field::Site).choose(0, self.sites.iter().map(|site| site.share));
        let site = &self.sites[site_index];
        let class_index = stream(Field::Class).choose(0, self.class_weights(site));
        let class = &self.classes[class_index];
        let acks = stream(Field::Acks).choose(0, self.acks.iter().map(|policy| policy.share));

        let factor = if class.rate_follows_site {
            site.rate_factor
        } else {
            1.0
        };
        let rate = class.rate.draw(stream(Field::Rate)) * factor * self.sweep.rate;
        let rate = kilobits(rate);
        let rtt = class.access_rtt.draw(stream(Field::AccessRtt))
            + site.path_rtt.draw(stream(Field::PathRtt)) * self.sweep.path_rtt;
        let rtt = microseconds(rtt.clamp(RTT_MIN, RTT_MAX));
        let queue = class.queue.draw(stream(Field::Queue)) * self.sweep.queue;
        let queue_bytes = rate.bytes_in(microseconds(queue.min(QUEUE_MAX)));
        let queue_bytes = queue_bytes.max(self.queue_least());

        let bursts = class
            .bursts
            .filter(|bursts| stream(Field::Bursts).happens(bursts.share));
        let (handover, handover_age) = handover(class, stream(Field::Handover));
        let (cross, bulk) = self.cross(class, rtt, seed);
        let up_rate = match (&class.up_rate, &class.up_share) {
            (Some(up), _) => Some(up.draw(stream(Field::UpRate))),
            (None, Some(share)) => {
                Some(rate.bits_per_second() as f64 * share.draw(stream(Field::UpRate)))
            }
            (None, None) => None,
        };
        let facts = DrawFacts {
            rate,
            rtt,
            queue_bytes,
            queue: rate.time_for(queue_bytes),
            has_aqm: stream(Field::Aqm).happens(class.aqm_share),
            random_loss: self.random_loss(site, class, seed),
            has_burst_loss: bursts.is_some()
                || class
                    .handover
                    .is_some_and(|handover| handover.drop_share > 0.0),
            policer: self.policer(site, rate, seed),
            handover,
            release: class
                .release
                .and_then(|release| scaled(release, self.sweep.ack_batching)),
            jitter: class.jitter,
            contention: class.contention.as_ref().map(|contention| Contention {
                share: contention
                    .share
                    .draw(stream(Field::Contention))
                    .clamp(0.0, 0.95),
                busy: contention.busy,
            }),
            wake_up: class.wake_up.as_ref().map(|wake_up| WakeUp {
                after: wake_up.after,
                delay: microseconds(wake_up.delay.draw(stream(Field::WakeUp)).min(RTT_MAX)),
            }),
            reordering: class
                .reordering
                .as_ref()
                .filter(|reordering| stream(Field::IsReordered).happens(reordering.paths))
                .map(|reordering| Reordering {
                    probability: reordering
                        .packets
                        .draw(stream(Field::Reordering))
                        .clamp(0.0, 1.0),
                    extra: microseconds(
                        reordering
                            .delay
                            .draw(stream(Field::ReorderingDelay))
                            .min(RTT_MAX),
                    ),
                }),
            is_rate_variable: class.variation.is_some() || class.handover.is_some(),
            up_rate: up_rate.map(|up| kilobits(up * self.sweep.up_rate)),
            up: self.up(class, seed),
            is_poor: class.is_poor,
            cross,
            ack_policy: self.acks[acks].name.clone(),
            ecn: stream(Field::Ecn).happens(self.ecn_share),
        };
        Sketch {
            site: site_index,
            class: class_index,
            acks,
            size_bytes: self.sizes.draw(stream(Field::Size)),
            facts,
            bursts,
            bulk,
            handover_age,
        }
    }

    /// What a queue holds at least, in bytes.
    fn queue_least(&self) -> u64 {
        self.queue_floor * (u64::from(DATAGRAM) + u64::from(self.overhead))
    }

    fn up(&self, class: &Class, seed: u64) -> UpFacts {
        let stream = |field| Stream::new(seed, field);
        let loss = class.up_loss.as_ref();
        let loss = loss.filter(|_| stream(Field::IsUpLossy).happens(self.sweep.lossy));
        UpFacts {
            queue: class.up_queue.as_ref().map(|queue| {
                let depth = queue.draw(stream(Field::UpQueue)) * self.sweep.queue;
                microseconds(depth.min(QUEUE_MAX))
            }),
            has_aqm: stream(Field::UpAqm).happens(class.up_aqm_share),
            random_loss: loss.map_or(0.0, |loss| loss.draw(stream(Field::UpLoss)).clamp(0.0, 1.0)),
            jitter: class.up_jitter,
        }
    }

    fn random_loss(&self, site: &Site, class: &Class, seed: u64) -> f64 {
        let share = match class.loss {
            Some(_) => self.sweep.lossy,
            None => site.lossy_share * class.loss_factor * self.sweep.lossy,
        };
        if !Stream::new(seed, Field::IsLossy).happens(share) {
            return 0.0;
        }
        let loss = class.loss.as_ref().unwrap_or(&self.random_loss);
        loss.draw(Stream::new(seed, Field::Loss)).clamp(0.0, 1.0)
    }

    fn policer(&self, site: &Site, line: Rate, seed: u64) -> Option<Policer> {
        let share = site.policed_share * self.sweep.policing;
        Stream::new(seed, Field::IsPoliced).happens(share).then(|| {
            let rate = site
                .policer_rate
                .draw(Stream::new(seed, Field::PolicerRate));
            let bucket = self
                .policer_bucket
                .draw(Stream::new(seed, Field::PolicerBucket));
            Policer {
                rate: kilobits(rate).min(line),
                burst: bucket as u64,
            }
        })
    }

    /// Draws the cross traffic; for a bulk flow, also its index and lead.
    fn cross(
        &self,
        class: &Class,
        rtt: Duration,
        seed: u64,
    ) -> (CrossFact, Option<(usize, Duration)>) {
        let cross = &self.cross;
        let factor = class.cross_factor * self.sweep.cross;
        let bulk = cross.bulk_share * factor;
        let bursts = cross.bursts_share * factor;
        // If the shares exceed one, every path has cross traffic, divided by the two shares.
        let all = (bulk + bursts).max(1.0);
        let place = Stream::new(seed, Field::Cross).unit(0) * all;
        if place < bulk {
            let weights = cross.bulk.values().map(|weight| weight.0);
            let which = Stream::new(seed, Field::CrossSpec).choose(0, weights);
            let rounds = cross.bulk_lead.draw(Stream::new(seed, Field::CrossLead));
            let lead = microseconds((rtt.as_nanos() as f64 * rounds).min(1e12));
            let name = cross.bulk.keys().nth(which).cloned();
            (
                CrossFact::Bulk(name.unwrap_or_default()),
                Some((which, lead)),
            )
        } else if place < bulk + bursts {
            let bytes = cross.bursts_size.draw(Stream::new(seed, Field::CrossBurst));
            let burst = CrossFact::Bursts {
                bytes: bytes as u64,
                every: cross.bursts_every,
            };
            (burst, None)
        } else {
            (CrossFact::None, None)
        }
    }
}

impl Sizes {
    /// Draws a bin by its weight, and within it a size with density proportional to 1 / size².
    fn draw(&self, stream: Stream) -> u64 {
        let weights = self.mixes[&self.mix].iter().map(|weight| weight.0);
        let (from, to) = self.bins[stream.choose(0, weights)];
        let (high, low) = (1.0 / from as f64, 1.0 / to as f64);
        let size = 1.0 / (high - stream.unit(1) * (high - low));
        (size as u64).clamp(from, to - 1)
    }
}

/// The interval between handovers, and the time since the last one at a random moment: of a Poisson process, time since and
/// until are independent.
fn handover(class: &Class, stream: Stream) -> (Option<Duration>, Duration) {
    let Some(handover) = class.handover else {
        return (None, Duration::ZERO);
    };
    let (interval, age) = match handover.every {
        Spacing::Fixed(every) => {
            let every = every.as_nanos() as f64;
            (every, every * stream.unit(0))
        }
        Spacing::Random(mean) => {
            let mean = mean.as_nanos() as f64;
            let age = mean * stream.exponential(0);
            let least = 4.0 * handover.stall.as_nanos() as f64;
            ((age + mean * stream.exponential(1)).max(least), age)
        }
    };
    (Some(microseconds(interval)), microseconds(age))
}

fn scaled(spacing: Spacing, factor: f64) -> Option<Spacing> {
    let scale = |span: Duration| microseconds(span.as_nanos() as f64 * factor);
    let scaled = match spacing {
        Spacing::Fixed(span) => Spacing::Fixed(scale(span)),
        Spacing::Random(mean) => Spacing::Random(scale(mean)),
    };
    let (Spacing::Fixed(span) | Spacing::Random(span)) = scaled;
    (!span.is_zero()).then_some(scaled)
}

/// Rounds, so that platforms which differ in the last bit of a logarithm give the same rate.
fn kilobits(bits_per_second: f64) -> Rate {
    let bits = bits_per_second.clamp(RATE_MIN, RATE_MAX);
    Rate::from_bits_per_second((bits / 1e3).round() as u64 * 1000)
}

/// Rounds likewise.
fn microseconds(nanos: f64) -> Duration {
    Duration::from_micros((nanos / 1e3).round() as u64)
}
