//! A population of paths: sites, each a mixture of access classes.
//!
//! A draw ([`Draw`]) from a [`Population`] is a path, an object size, cross traffic, and the client's acknowledgment behaviour.
//! Each field is drawn from a random stream of its own, so that the same seed gives the same draw, and switching off or
//! scaling one ([`Sweep`]) changes no other. `docs/population.md` gives the sources of the default's figures.
//!
//! | module | responsibility |
//! |---|---|
//! | [`distribution`] | distributions as text |
//! | `text` | the keys of the file |
//! | `sweep` | factors that scale a population |
//! | `random` | random streams |
//! | `path` | the links of a draw |
//! | `networks` | given networks in place of drawn paths |
//! | `neighbours` | a neighbour on each path in place of cross traffic |
//! | `uploads` | data on the link up |

use core::time::Duration;

use lastbyte_congestion::{Registry, SavedPath, Spec};
use lastbyte_link::{Contention, Policer, Rate, Reordering, Spacing, WakeUp};

use crate::{
    client_acks::ClientAcks,
    cross::{CrossKind, CrossTraffic},
    listener::Way,
    neighbour::{Neighbour, Observation},
    scenario::{Path, Transport},
    setting::SettingError,
};

pub mod distribution;
mod neighbours;
mod networks;
mod path;
pub(crate) mod random;
mod sweep;
mod text;
mod uploads;

#[cfg(test)]
mod tests;

pub use self::sweep::Sweep;
use self::{
    distribution::Distribution,
    random::{Field, Stream},
};
pub(crate) use self::{
    random::seed_of,
    text::{ReturnsText, factor},
};

/// The file of the default population.
pub const DEFAULT: &str = include_str!("../experiments/population.toml");

/// Sites, classes of access, and all that is the same for them.
#[derive(Clone, Debug)]
pub struct Population {
    name: String,
    overhead: u32,
    queue_floor: u64,
    aqm: Discipline,
    random_loss: Distribution,
    policer_bucket: Distribution,
    up_queue: u64,
    ecn_share: f64,
    returns: Option<Returns>,
    cross: Cross,
    sizes: Sizes,
    acks: Vec<AckPolicy>,
    classes: Vec<Class>,
    sites: Vec<Site>,
    sweep: Sweep,
    /// In place of drawn paths, unless it is empty.
    networks: Vec<(String, Path)>,
    /// In place of cross traffic, unless it is empty.
    neighbours: Vec<Neighbour>,
    /// How long neighbours are observed, if it does not depend on the path.
    horizon: Option<Duration>,
    /// Which way the data go.
    way: Way,
    /// In place of this population, each as likely as the others, unless it is empty: variants with names.
    variants: Vec<(String, Self)>,
}

/// Clients with a token of an earlier connection.
#[derive(Clone, Debug)]
struct Returns {
    share: f64,
    /// The share of these that are on another path now.
    changed: f64,
    /// The share of the line that the earlier connection used.
    used: Distribution,
}

#[derive(Clone, Copy, Debug)]
enum Discipline {
    CoDel,
    FqCoDel,
    Pie,
    DualPi2,
    Cake,
}

/// A kind of access.
#[derive(Clone, Debug)]
struct Class {
    name: String,
    rate: Distribution,
    rate_follows_site: bool,
    access_rtt: Distribution,
    queue: Distribution,
    aqm_share: f64,
    is_poor: bool,
    /// Of every path, in place of the population's on some.
    loss: Option<Distribution>,
    loss_factor: f64,
    bursts: Option<Bursts>,
    handover: Option<Handover>,
    release: Option<Spacing>,
    jitter: Option<Duration>,
    contention: Option<ContentionDraw>,
    wake_up: Option<WakeUpDraw>,
    reordering: Option<ReorderingDraw>,
    variation: Option<Variation>,
    up_rate: Option<Distribution>,
    cross_factor: f64,
}

/// A medium that others use too, both ways.
#[derive(Clone, Debug)]
struct ContentionDraw {
    share: Distribution,
    busy: Duration,
}

/// A radio that sleeps: on the way up, where the first packet comes from.
#[derive(Clone, Debug)]
struct WakeUpDraw {
    after: Duration,
    delay: Distribution,
}

/// Packets held back on the way down, on some paths.
#[derive(Clone, Debug)]
struct ReorderingDraw {
    paths: f64,
    packets: Distribution,
    delay: Distribution,
}

/// Losses in bursts, on some paths.
#[derive(Clone, Copy, Debug)]
struct Bursts {
    share: f64,
    every: Duration,
    packets: f64,
}

/// Now and then nothing is sent for a while, and some of what comes meanwhile is lost.
#[derive(Clone, Copy, Debug)]
struct Handover {
    every: Every,
    stall: Duration,
    drop_share: f64,
    drop_packets: u64,
}

#[derive(Clone, Copy, Debug)]
enum Every {
    Fixed(Duration),
    /// In the mean; a Poisson process.
    Random(Duration),
}

/// The rate is another from step to step: log-normal with the line's rate as its mean.
#[derive(Clone, Copy, Debug)]
struct Variation {
    /// Standard deviation over mean.
    cv: f64,
    step: Duration,
    /// The correlation of the logarithm with that of the step before.
    memory: f64,
}

/// The location of a server, and its clients.
#[derive(Clone, Debug)]
struct Site {
    name: String,
    share: f64,
    /// For each class.
    weights: Vec<f64>,
    rate_factor: f64,
    path_rtt: Distribution,
    lossy_share: f64,
    policed_share: f64,
    policer_rate: Distribution,
}

#[derive(Clone, Debug)]
struct Cross {
    bulk_share: f64,
    bulk: Vec<Bulk>,
    /// In round trips.
    bulk_lead: Distribution,
    bursts_share: f64,
    bursts_size: Distribution,
    bursts_every: Duration,
    /// Of the connections that load pages; without one, bursts are packets at a constant rate.
    bursts_congestion: Option<Spec>,
    /// Of what gets through in the long run.
    bursts_at_most: f64,
}

#[derive(Clone, Debug)]
struct Bulk {
    weight: f64,
    /// As the file has it.
    name: String,
    kind: CrossKind,
}

#[derive(Clone, Debug)]
struct Sizes {
    bins: Vec<(u64, u64)>,
    mixes: Vec<Mix>,
    chosen: usize,
}

#[derive(Clone, Debug)]
struct Mix {
    name: String,
    /// For each bin.
    weights: Vec<f64>,
}

#[derive(Clone, Debug)]
struct AckPolicy {
    name: String,
    share: f64,
    rule: ClientAcks,
    max_ack_delay: Duration,
    ack_frequency: bool,
}

/// One client of the population: what lies between it and the site, and what it asks for.
#[derive(Clone, Debug)]
pub struct Draw {
    /// The name of the site.
    pub site: String,
    /// The name of the class of access.
    pub class: String,
    /// The two links.
    pub path: Path,
    /// How many bytes the first object has.
    pub size_bytes: u64,
    /// What else is in the way.
    pub cross: Vec<CrossTraffic>,
    /// When the transfer is to begin, so that other traffic is there before it, and handovers come at any phase.
    pub start: Duration,
    /// How the endpoints are set.
    pub transport: Transport,
    /// The neighbour to be observed, if the population has neighbours.
    pub neighbour: Option<Observation>,
    /// What was drawn, for the log.
    pub facts: DrawFacts,
}

/// What was drawn, in figures.
#[derive(Clone, Debug, PartialEq)]
pub struct DrawFacts {
    /// The rate of the line down, in the mean over time. A policer may let less through.
    pub rate: Rate,
    /// The round-trip time without queues, jitter and gathering of acknowledgments.
    pub rtt: Duration,
    /// How much the queue down holds, in bytes.
    pub queue_bytes: u64,
    /// The same in time, at the line's rate.
    pub queue: Duration,
    /// Whether the queue is managed.
    pub has_aqm: bool,
    /// The probability of a random loss; 0 if the path has none.
    pub random_loss: f64,
    /// Whether losses come in bursts, also those of handovers.
    pub has_burst_loss: bool,
    /// What polices the path.
    pub policer: Option<Policer>,
    /// How far apart handovers are.
    pub handover: Option<Duration>,
    /// How acknowledgments gather on the way back.
    pub release: Option<Spacing>,
    /// The mean of the exponential jitter down.
    pub jitter: Option<Duration>,
    /// How often others use the medium, both ways.
    pub contention: Option<Contention>,
    /// How long the radio takes to wake up, on the way up.
    pub wake_up: Option<WakeUp>,
    /// How many packets down are held back, and for how long.
    pub reordering: Option<Reordering>,
    /// Whether the rate varies.
    pub is_rate_variable: bool,
    /// The rate up, if it has a limit.
    pub up_rate: Option<Rate>,
    /// Whether the class is one of poor access.
    pub is_poor: bool,
    /// What else is in the way.
    pub cross: CrossFact,
    /// The name of the client's policy of acknowledging.
    pub ack_policy: String,
    /// Whether endpoints use ECN, and managed queues mark.
    pub ecn: bool,
}

impl DrawFacts {
    /// The least of the rates of line and policer.
    #[must_use]
    pub fn rate_in_the_long_run(&self) -> Rate {
        match self.policer {
            Some(policer) => policer.rate.min(self.rate),
            None => self.rate,
        }
    }
}

/// What else is in the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CrossFact {
    /// Nothing.
    None,
    /// A long flow, as the population file names it.
    Bulk(String),
    /// Web pages: their size and interval. Simulated as transfers if the population names a congestion control for them, else
    /// as a constant rate of the same mean.
    Bursts {
        /// Of each.
        bytes: u64,
        /// From the begin of one to that of the next.
        every: Duration,
    },
}

/// What a path is made of, before the links.
#[derive(Clone, Debug)]
struct Sketch {
    site: usize,
    class: usize,
    acks: usize,
    size_bytes: u64,
    facts: DrawFacts,
    /// Of a path with bursts of its class's own.
    bursts: Option<Bursts>,
    /// Which of the congestion controls the bulk flow has, and how long before the transfer it begins.
    bulk: Option<(usize, Duration)>,
    /// How long ago the last handover was when the transfer begins.
    handover_age: Duration,
}

/// A full datagram, in bytes: that of [`Transport::default`].
const DATAGRAM: u16 = 1280;
/// A line is no slower than this, whatever was drawn.
const RATE_MIN: f64 = 16e3;
/// A line is no faster.
const RATE_MAX: f64 = 10e9;
/// A round trip takes no less, in nanoseconds.
const RTT_MIN: f64 = 10e3;
/// A round trip takes no more.
const RTT_MAX: f64 = 10e9;
/// A queue holds no more, in nanoseconds.
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
        text::parse(text, registry)
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

    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The names of its sites, in the order of the file.
    pub fn sites(&self) -> impl Iterator<Item = &str> {
        self.sites.iter().map(|site| site.name.as_str())
    }

    /// The names of its classes, in the order of the file.
    pub fn classes(&self) -> impl Iterator<Item = &str> {
        self.classes.iter().map(|class| class.name.as_str())
    }

    /// The bins of sizes, in bytes: from, and up to.
    #[must_use]
    pub fn size_bins(&self) -> &[(u64, u64)] {
        &self.sizes.bins
    }

    /// The factors that it was scaled by.
    #[must_use]
    pub const fn sweep(&self) -> &Sweep {
        &self.sweep
    }

    /// The same with factors, on top of those that it has.
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
            scaled
                .sizes
                .choose(mix)
                .map_err(|reason| SettingError::new("sizes", reason))?;
        }
        let empty = scaled
            .sites
            .iter()
            .find(|site| scaled.class_weights(site).sum::<f64>() <= 0.0);
        match empty {
            Some(site) => Err(SettingError::new(
                "poor",
                format!(
                    "no class is left in `{}`: all its classes are poor",
                    site.name
                ),
            )),
            None => Ok(scaled),
        }
    }

    /// The same with these sites alone.
    ///
    /// # Errors
    ///
    /// Returns an error if a site is unknown, or if none of the sites has a share.
    pub fn only(&self, sites: &[String]) -> Result<Self, SettingError> {
        if let Some(unknown) = sites
            .iter()
            .find(|name| self.sites().all(|site| site != *name))
        {
            let names: Vec<&str> = self.sites().collect();
            return Err(SettingError::new(
                "sites",
                format!("unknown site `{unknown}` (expected {})", names.join(", ")),
            ));
        }
        let mut few = self.clone();
        few.sites.retain(|site| sites.contains(&site.name));
        if few.sites.iter().all(|site| site.share <= 0.0) {
            return Err(SettingError::new(
                "sites",
                "none of them has a share above zero",
            ));
        }
        Ok(few)
    }

    /// The same with each of these factors in place of itself, each as likely as the others. Sites have their names.
    ///
    /// # Errors
    ///
    /// As [`Population::scaled`].
    pub fn swept(&self, sweeps: &[(String, Sweep)]) -> Result<Self, SettingError> {
        let variants = sweeps.iter();
        let variants = variants.map(|(name, sweep)| Ok((name.clone(), self.scaled(sweep)?)));
        Ok(Self {
            variants: variants.collect::<Result<_, SettingError>>()?,
            ..self.clone()
        })
    }

    /// The variant that the client with this seed is of.
    fn variant(&self, seed: u64) -> Option<&(String, Self)> {
        let all = self.variants.iter().map(|_| 1.0);
        self.variants
            .get(Stream::new(seed, Field::Network).choose(0, all))
    }

    /// One of its clients. The same seed gives the same.
    #[must_use]
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
        match self.way {
            Way::Down => draw,
            Way::Up => uploads::draw(draw),
        }
    }

    /// The size of another object of the client with this seed, by its number: 1 or more.
    pub(crate) fn further_size(&self, seed: u64, number: u64) -> u64 {
        let population = self.variant(seed).map_or(self, |(_, variant)| variant);
        let seed = Stream::new(seed, Field::FurtherSizes).at(number);
        population.sizes.draw(Stream::new(seed, Field::Size))
    }

    /// The same with data that go this way.
    pub(crate) fn toward(self, way: Way) -> Result<Self, SettingError> {
        if way == Way::Up && !self.neighbours.is_empty() {
            return Err(SettingError::new(
                "neighbours",
                "they are observed on the link down, and data go up",
            ));
        }
        Ok(Self { way, ..self })
    }

    /// The same with a neighbour on each path in place of cross traffic, each as likely as the others. It is observed for as long as
    /// `horizon`; by default for 20 round trips and four times as long as the line takes for the object, 60 s at most.
    #[must_use]
    pub fn beside(&self, neighbours: Vec<Neighbour>, horizon: Option<Duration>) -> Self {
        Self {
            neighbours,
            horizon,
            ..self.clone()
        }
    }

    /// The same with these networks in place of its paths, each as likely as the others. Their names are those of sites and
    /// classes.
    #[must_use]
    pub fn over(&self, networks: Vec<(String, Path)>) -> Self {
        Self {
            networks,
            ..self.clone()
        }
    }

    /// The same with objects of these sizes, in bytes, each as likely as the others.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no size, or a size of 0.
    pub fn with_sizes(&self, sizes: &[u64]) -> Result<Self, SettingError> {
        if sizes.is_empty() || sizes.contains(&0) {
            return Err(SettingError::new("size", "0 (expected 1 byte or more)"));
        }
        Ok(Self {
            sizes: Sizes {
                bins: sizes.iter().map(|size| (*size, size + 1)).collect(),
                mixes: vec![Mix {
                    name: "given".to_owned(),
                    weights: vec![1.0; sizes.len()],
                }],
                chosen: 0,
            },
            ..self.clone()
        })
    }

    /// What the server saved on an earlier visit of this client (RFC 9959): of this path, or of one drawn independently.
    fn saved_path(&self, facts: &DrawFacts, seed: u64) -> Option<SavedPath> {
        let stream = |field| Stream::new(seed, field);
        let returns = self.returns.as_ref()?;
        if !stream(Field::Returns).happens(returns.share) {
            return None;
        }
        let (rate, rtt) = if stream(Field::PathChanged).happens(returns.changed) {
            let other = self.sketch(stream(Field::EarlierPath).at(0)).facts;
            (other.rate_in_the_long_run(), other.rtt)
        } else {
            (facts.rate_in_the_long_run(), facts.rtt)
        };
        let used = returns.used.draw(stream(Field::Used)).clamp(0.0, 1.0);
        let window = rate.bits_per_second() as f64 / 8.0 * used * rtt.as_secs_f64();
        Some(SavedPath {
            window: window as u64,
            rtt,
        })
    }

    /// The same with these return visits in place of its own.
    pub(crate) fn with_returns(self, text: &ReturnsText) -> Result<Self, SettingError> {
        Ok(Self {
            returns: Some(text::returns(text)?),
            ..self
        })
    }

    fn class_weights<'a>(&'a self, site: &'a Site) -> impl Iterator<Item = f64> + Clone + 'a {
        let weights = self.classes.iter().zip(&site.weights);
        weights.map(|(class, weight)| {
            if class.is_poor {
                weight * self.sweep.poor
            } else {
                *weight
            }
        })
    }

    /// All figures of a draw.
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
        let floor = self.queue_floor * (u64::from(DATAGRAM) + u64::from(self.overhead));
        let queue_bytes = queue_bytes.max(floor);

        let bursts = class
            .bursts
            .filter(|bursts| stream(Field::Bursts).happens(bursts.share));
        let (handover, handover_age) = handover(class, stream(Field::Handover));
        let (cross, bulk) = self.cross(class, rtt, seed);
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
            up_rate: class
                .up_rate
                .as_ref()
                .map(|rate| kilobits(rate.draw(stream(Field::UpRate)))),
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

    /// Other traffic; of a bulk flow which, and how long before.
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
        // More than all cannot have some: then as many have either as the two shares say.
        let all = (bulk + bursts).max(1.0);
        let place = Stream::new(seed, Field::Cross).unit(0) * all;
        if place < bulk {
            let weights = cross.bulk.iter().map(|bulk| bulk.weight);
            let which = Stream::new(seed, Field::CrossSpec).choose(0, weights);
            let rounds = cross.bulk_lead.draw(Stream::new(seed, Field::CrossLead));
            let lead = microseconds((rtt.as_nanos() as f64 * rounds).min(1e12));
            let name = cross.bulk[which].name.clone();
            (CrossFact::Bulk(name), Some((which, lead)))
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
    fn choose(&mut self, name: &str) -> Result<(), String> {
        let found = self.mixes.iter().position(|mix| mix.name == name);
        self.chosen = found.ok_or_else(|| {
            let names: Vec<&str> = self.mixes.iter().map(|mix| mix.name.as_str()).collect();
            format!("unknown mix `{name}` (expected {})", names.join(", "))
        })?;
        Ok(())
    }

    /// A bin by its weight, and within it a density that falls with the square of the size.
    fn draw(&self, stream: Stream) -> u64 {
        let weights = &self.mixes[self.chosen].weights;
        let (from, to) = self.bins[stream.choose(0, weights.iter().copied())];
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
        Every::Fixed(every) => {
            let every = every.as_nanos() as f64;
            (every, every * stream.unit(0))
        }
        Every::Random(mean) => {
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

/// Rounded, so that the last bit of a logarithm, in which computers differ, does not show.
fn kilobits(bits_per_second: f64) -> Rate {
    let bits = bits_per_second.clamp(RATE_MIN, RATE_MAX);
    Rate::from_bits_per_second((bits / 1e3).round() as u64 * 1000)
}

/// Rounded likewise.
fn microseconds(nanos: f64) -> Duration {
    Duration::from_micros((nanos / 1e3).round() as u64)
}
