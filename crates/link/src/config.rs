//! The configuration of a link.

use alloc::vec::Vec;
use core::time::Duration;

use crate::{
    BlackHole, Capacity, Contention, Departure, FqCoDel, Jitter, Loss, PathChange, Policer, Queue,
    Rate, Reordering, Spacing, WakeUp,
};

/// The maximum number of hops of a link.
pub const HOPS_MAX: usize = 8;

/// The configuration of one direction of a path. The default is an ideal link: no packet waits, and every packet
/// arrives at the time it is sent.
///
/// A packet passes the components in the order of the fields up to the queue, then the bottleneck, the delay and the
/// impairments in transit. Each component has its own random number stream, so its settings do not change the random
/// decisions of the others.
///
/// ```
/// use core::time::Duration;
/// use lastbyte_link::{Capacity, Config, DropTail, Limit, Queue, Rate};
///
/// // DSL as in quicly's simulator: 30 Mb/s, 30 ms round-trip time, a queue of 50 ms.
/// ```
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Config {
    /// Silently drops packets above an MTU. Default: none.
    pub black_hole: Option<BlackHole>,
    /// Drops packets above a rate. Default: none.
    pub policer: Option<Policer>,
    /// Loss models, each of which may drop a packet before the queue. Default: none.
    pub loss: Vec<Loss>,
    /// The probability that a packet is duplicated. The copy enters the queue directly after the original. Default: 0.
    pub duplication: f64,
    /// The queue in front of the bottleneck. Default: drop-tail without a limit.
    pub queue: Queue,
    /// The rate of the bottleneck. Default: unlimited.
    pub capacity: Capacity,
    /// Whether a packet leaves the bottleneck with its first or its last bit. Default: last.
    pub departure: Departure,
    /// Times at which other stations use the medium, so that packets wait. Default: none.
    pub contention: Option<Contention>,
    /// The delay of the first packets after a pause. Default: none.
    pub wake_up: Option<WakeUp>,
    /// The propagation delay. Default: none.
    pub delay: Duration,
    /// A change of the propagation delay. Default: none.
    pub path_change: Option<PathChange>,
    /// Additional random delay per packet. Default: none.
    pub jitter: Option<Jitter>,
    /// Holds back random packets so that later ones overtake them. Default: none.
    pub reordering: Option<Reordering>,
    /// Aggregation: packets are held and arrive only at these times, as radio links do, above all with acknowledgments.
    /// Times count from the epoch of [`Time`](crate::Time). Applied after all other delays. Default: none.
    pub release: Option<Spacing>,
    /// Further hops, which packets pass in this order after the components above: at most [`HOPS_MAX`] hops together,
    /// and further hops have none of their own. Default: none.
    pub further: Vec<Self>,
}

impl Config {
    /// The configurations of all hops, in order.
    pub fn hops(&self) -> impl Iterator<Item = &Self> {
        core::iter::once(self).chain(&self.further)
    }

    /// The propagation delay of all hops together.
    pub fn total_delay(&self) -> Duration {
        let delays = self.hops().map(|hop| hop.delay);
        delays.fold(Duration::ZERO, Duration::saturating_add)
    }

    /// Whether a queue of any hop marks ECN-capable packets.
    pub fn marks(&self) -> bool {
        self.hops().any(|hop| hop.queue.marks())
    }

    /// The bottleneck: the hop with the lowest nominal rate, or the first of several, with its number from 0.
    pub fn bottleneck(&self) -> (usize, &Self) {
        let rate = |hop: &Self| {
            let nominal = hop.capacity.nominal();
            nominal.map_or(u64::MAX, Rate::bits_per_second)
        };
        let further = (1..).zip(&self.further);
        further.fold((0, self), |lowest, hop| {
            if rate(hop.1) < rate(lowest.1) {
                hop
            } else {
                lowest
            }
        })
    }

    /// Checks that all settings are in range.
    ///
    /// # Errors
    ///
    /// Returns a [`ConfigError`] with the name and value of the first setting that is out of range.
    pub fn check(&self) -> Result<(), ConfigError> {
        for loss in &self.loss {
            check_loss(loss)?;
        }
        probability("duplication", self.duplication)?;
        match self.queue {
            Queue::DropTail(_) | Queue::Pie(_) | Queue::DualPi2(_) => {}
            Queue::CoDel(codel) => positive("queue.interval", codel.interval)?,
            Queue::FqCoDel(FqCoDel {
                codel,
                flows,
                quantum,
            })
            | Queue::Cake(FqCoDel {
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
        if let Some(contention) = self.contention {
            probability("contention.share", contention.share)?;
            positive("contention.busy", contention.busy)?;
        }
        if let Some(spacing) = self.release {
            check_spacing("release", spacing)?;
        }
        let hops = 1 + self.further.len();
        if hops > HOPS_MAX {
            return Err(ConfigError::Hops { hops });
        }
        for hop in &self.further {
            if !hop.further.is_empty() {
                return Err(ConfigError::NestedHops);
            }
            hop.check()?;
        }
        Ok(())
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
            probability("loss.probability", bursts.probability)
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

/// An invalid setting in a [`Config`].
#[derive(Clone, Copy, PartialEq, Debug, thiserror::Error)]
pub enum ConfigError {
    /// A probability is not in the range 0 to 1.
    #[error("invalid `{field}`: {value} (expected a probability from 0 to 1)")]
    Probability {
        /// The name of the setting.
        field: &'static str,
        /// The invalid value.
        value: f64,
    },
    /// A duration is zero.
    #[error("invalid `{field}`: 0 (expected a duration longer than 0)")]
    Zero {
        /// The name of the setting.
        field: &'static str,
    },
    /// The number of FQ-CoDel queues is not 1 to 65536.
    #[error("invalid `queue.flows`: {flows} (expected 1 to 65536)")]
    Flows {
        /// The configured number of queues.
        flows: u32,
    },
    /// The FQ-CoDel quantum is below 256 bytes, so a packet would take too many rounds.
    #[error("invalid `queue.quantum`: {quantum} bytes (expected 256 or more)")]
    Quantum {
        /// The configured quantum in bytes.
        quantum: u32,
    },
    /// There are more hops than [`HOPS_MAX`].
    #[error("{hops} hops (expected at most {HOPS_MAX})")]
    Hops {
        /// The configured number of hops.
        hops: usize,
    },
    /// A further hop has further hops of its own.
    #[error("a hop with further hops (expected all in the first)")]
    NestedHops,
}
