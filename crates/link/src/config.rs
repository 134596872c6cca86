//! What a link is like, as plain data.

use alloc::vec::Vec;
use core::{fmt, time::Duration};

use crate::{
    BlackHole, BurstLength, Capacity, Departure, FqCoDel, Jitter, Loss, PathChange, Policer, Queue,
    Reordering, Spacing,
};

/// One direction of a path. The default is an ideal wire: no packet waits, and all arrive at the instant they are sent.
///
/// A packet meets the pieces in the order of the fields, up to the queue; then the bottleneck, the delay, and what may
/// happen on the way. The settings of one piece do not change what another does by chance.
///
/// ```
/// use core::time::Duration;
/// use lastbyte_link::{Capacity, Config, DropTail, Limit, Queue, Rate};
///
/// // DSL as in quicly's simulator: 30 Mb/s, 30 ms for the round trip, a queue of 50 ms.
/// let dsl = Config {
///     capacity: Capacity::Constant(Rate::from_bits_per_second(30_000_000)),
///     queue: Queue::DropTail(DropTail {
///         limit: Limit::Time(Duration::from_millis(50)),
///         mark_above: None,
///     }),
///     delay: Duration::from_millis(15),
///     ..Config::default()
/// };
/// assert_eq!(dsl.check(), Ok(()));
/// ```
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Config {
    /// Packets that are too large vanish. Default: none are.
    pub black_hole: Option<BlackHole>,
    /// Drops what comes above a rate. Default: there is none.
    pub policer: Option<Policer>,
    /// Models of loss, of which each may take a packet before it comes to the queue. Default: none.
    pub loss: Vec<Loss>,
    /// The probability that a packet is doubled. Its copy follows it into the queue at once. Default: 0.
    pub duplication: f64,
    /// What waits before the bottleneck. Default: a drop-tail queue without a limit.
    pub queue: Queue,
    /// The rate of the bottleneck. Default: unlimited.
    pub capacity: Capacity,
    /// Whether a packet leaves the bottleneck with its first bit or its last. Default: its last.
    pub departure: Departure,
    /// The propagation delay. Default: none.
    pub delay: Duration,
    /// The propagation delay becomes another. Default: it does not.
    pub path_change: Option<PathChange>,
    /// More delay, another for each packet. Default: none.
    pub jitter: Option<Jitter>,
    /// Packets that are held up while others go ahead. Default: none.
    pub reordering: Option<Reordering>,
    /// Packets gather, and arrive at these instants only, as aggregation by radio links does, to acknowledgments above all.
    /// Counts from the epoch of [`Time`](crate::Time), last of all delays. Default: each arrives by itself.
    pub release: Option<Spacing>,
}

impl Config {
    /// Whether a link can be made of this.
    ///
    /// # Errors
    ///
    /// The first setting that is outside of its range, with its value.
    pub fn check(&self) -> Result<(), ConfigError> {
        for loss in &self.loss {
            check_loss(loss)?;
        }
        probability("duplication", self.duplication)?;
        match self.queue {
            Queue::DropTail(_) => {}
            Queue::CoDel(codel) => positive("queue.interval", codel.interval)?,
            Queue::FqCoDel(FqCoDel {
                codel,
                flows,
                quantum,
            }) => {
                positive("queue.interval", codel.interval)?;
                if !(1..=65_536).contains(&flows) {
                    return Err(ConfigError::Flows { flows });
                }
                if quantum < 256 {
                    return Err(ConfigError::Quantum { quantum });
                }
            }
        }
        if let Some(reordering) = self.reordering {
            probability("reordering.probability", reordering.probability)?;
        }
        match self.release {
            Some(spacing) => check_spacing("release", spacing),
            None => Ok(()),
        }
    }
}

fn check_loss(loss: &Loss) -> Result<(), ConfigError> {
    match loss {
        Loss::Bernoulli(p) => probability("loss", *p),
        Loss::GilbertElliott(model) => {
            probability("loss.to_bad", model.to_bad)?;
            probability("loss.to_good", model.to_good)?;
            probability("loss.loss_in_bad", model.loss_in_bad)?;
            probability("loss.loss_in_good", model.loss_in_good)
        }
        Loss::Packets(_) => Ok(()),
        Loss::Bursts(bursts) => {
            check_spacing("loss.spacing", bursts.spacing)?;
            probability("loss.probability", bursts.probability)?;
            match bursts.length {
                BurstLength::Random(mean) if !(mean.is_finite() && mean >= 1.0) => {
                    Err(ConfigError::BurstLength { mean })
                }
                _ => Ok(()),
            }
        }
    }
}

fn check_spacing(field: &'static str, spacing: Spacing) -> Result<(), ConfigError> {
    let (Spacing::Fixed(span) | Spacing::Random(span)) = spacing;
    positive(field, span)
}

fn probability(field: &'static str, value: f64) -> Result<(), ConfigError> {
    if (0.0..=1.0).contains(&value) {
        Ok(())
    } else {
        Err(ConfigError::Probability { field, value })
    }
}

fn positive(field: &'static str, span: Duration) -> Result<(), ConfigError> {
    if span.is_zero() {
        Err(ConfigError::Zero { field })
    } else {
        Ok(())
    }
}

/// What is wrong with a [`Config`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ConfigError {
    /// A probability is not from 0 to 1.
    Probability {
        /// Which.
        field: &'static str,
        /// Its value.
        value: f64,
    },
    /// A span of time is zero, and must not be.
    Zero {
        /// Which.
        field: &'static str,
    },
    /// FQ-CoDel needs 1 to 65536 queues.
    Flows {
        /// How many it would have.
        flows: u32,
    },
    /// FQ-CoDel's quantum is below 256 bytes, so that a packet would take too many turns.
    Quantum {
        /// What it is, in bytes.
        quantum: u32,
    },
    /// The mean length of a burst of losses is not a number of one or more.
    BurstLength {
        /// What it is, in packets.
        mean: f64,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Probability { field, value } => {
                write!(
                    f,
                    "`{field}` is a probability, from 0 to 1, and not {value}"
                )
            }
            Self::Zero { field } => write!(f, "`{field}` must be longer than zero"),
            Self::Flows { flows } => {
                write!(f, "`queue.flows` is {flows}, and must be from 1 to 65536")
            }
            Self::Quantum { quantum } => {
                write!(
                    f,
                    "`queue.quantum` is {quantum} bytes, and must be 256 or more"
                )
            }
            Self::BurstLength { mean } => {
                write!(
                    f,
                    "`loss.length` is {mean} packets in the mean, and must be 1 or more"
                )
            }
        }
    }
}

impl core::error::Error for ConfigError {}
