//! Packet loss for reasons other than a full queue.
//!
//! Each model decides about every packet sent, even if another component drops it. The decision about the *n*-th packet
//! therefore does not depend on other components.

use alloc::vec::Vec;
use core::time::Duration;

use lastbyte_units::nanos;

use crate::{
    Time,
    random::{Component, Random},
};

/// A loss model. A link may have several; a packet is lost if any of them drops it.
#[derive(Clone, PartialEq, Debug)]
pub enum Loss {
    /// Each packet is lost independently with this probability.
    Bernoulli(f64),
    /// Losses occur in bursts of packets.
    GilbertElliott(GilbertElliott),
    /// The packets with these numbers are lost. Numbers count packets sent, from 0, and may be in any order.
    Packets(Vec<u64>),
    /// Losses occur in bursts at points in time, as with handovers.
    Bursts(Bursts),
}

/// The Gilbert-Elliott model: a Markov chain with a good and a bad state and one step per packet. It matches netem's
/// `gemodel` (Salsano, Ludovici, Ordine: "Definition of a general and intuitive loss model for packet networks and its
/// implementation in the Netem module in the Linux kernel", 2009). It starts in the good state. The state before the
/// step decides about the packet.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct GilbertElliott {
    /// Probability of a transition from good to bad, *p*.
    pub to_bad: f64,
    /// Probability of a transition from bad to good, *r*.
    pub to_good: f64,
    /// Probability of loss in the bad state, *1 − h*; 1 in the simple Gilbert model.
    pub loss_in_bad: f64,
    /// Probability of loss in the good state, *1 − k*; 0 in the simple Gilbert model.
    pub loss_in_good: f64,
}

impl GilbertElliott {
    /// The simple Gilbert model with this mean loss and this mean burst length in packets. Requires a loss below 1 and
    /// a burst length of at least 1; [`Link::new`](crate::Link::new) rejects other values.
    #[must_use]
    pub fn simple(mean_loss: f64, mean_burst: f64) -> Self {
        let to_good = 1.0 / mean_burst;
        Self {
            to_bad: to_good * mean_loss / (1.0 - mean_loss),
            to_good,
            loss_in_bad: 1.0,
            loss_in_good: 0.0,
        }
    }
}

/// At certain points in time a burst of losses starts, and the next packets are lost, whenever they are sent. A burst
/// that starts during another one does not extend it; several starts between two packets count as one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bursts {
    /// When bursts start.
    pub spacing: Spacing,
    /// The probability that a burst occurs at such a time.
    pub probability: f64,
    /// The number of packets in the burst.
    pub length: u64,
}

/// The spacing of points in time. The first point is one interval after the epoch of [`Time`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Spacing {
    /// A fixed interval, longer than zero.
    Fixed(Duration),
    /// Exponentially distributed intervals with this mean, longer than zero: a Poisson process.
    Random(Duration),
}

/// The state of a loss model.
#[derive(Debug)]
pub(crate) enum LossProcess {
    Bernoulli {
        probability: f64,
        random: Random,
    },
    GilbertElliott {
        model: GilbertElliott,
        is_bad: bool,
        random: Random,
    },
    Packets {
        /// In descending order.
        numbers: Vec<u64>,
    },
    Bursts {
        model: Bursts,
        next: Time,
        /// The number of points in time drawn so far.
        drawn: u64,
        /// The number of packets of the current burst still to be lost.
        left: u64,
        random: Random,
    },
}

impl LossProcess {
    pub(crate) fn new(model: &Loss, seed: u64, index: usize) -> Self {
        let random = Random::new(seed, Component::Loss, index as u64);
        match model {
            Loss::Bernoulli(probability) => Self::Bernoulli {
                probability: *probability,
                random,
            },
            Loss::GilbertElliott(model) => Self::GilbertElliott {
                model: *model,
                is_bad: false,
                random,
            },
            Loss::Packets(numbers) => {
                let mut numbers = numbers.clone();
                numbers.sort_unstable_by(|a, b| b.cmp(a));
                Self::Packets { numbers }
            }
            Loss::Bursts(model) => Self::Bursts {
                model: *model,
                next: next_instant(model.spacing, random, 0, Time::ZERO),
                drawn: 1,
                left: 0,
                random,
            },
        }
    }

    /// Whether the packet with this number is lost. Call it once for every packet, in order.
    pub(crate) fn is_lost(&mut self, now: Time, number: u64) -> bool {
        match self {
            Self::Bernoulli {
                probability,
                random,
            } => random.happens(number, *probability),
            Self::GilbertElliott {
                model,
                is_bad,
                random,
            } => {
                let (loss, step) = if *is_bad {
                    (model.loss_in_bad, model.to_good)
                } else {
                    (model.loss_in_good, model.to_bad)
                };
                let index = number.wrapping_mul(2);
                *is_bad ^= random.happens(index, step);
                random.happens(index.wrapping_add(1), loss)
            }
            Self::Packets { numbers } => {
                let mut is_lost = false;
                while numbers.last().is_some_and(|lost| *lost <= number) {
                    is_lost = numbers.pop() == Some(number);
                }
                is_lost
            }
            Self::Bursts {
                model,
                next,
                drawn,
                left,
                random,
            } => {
                if now >= *next {
                    // Indices of random numbers: three per point in time, for when, whether, and a spare one.
                    let index = drawn.wrapping_mul(3);
                    if random.happens(index.wrapping_add(1), model.probability) {
                        *left = (*left).max(model.length);
                    }
                    *next = next_instant(model.spacing, *random, index, now);
                    *drawn += 1;
                }
                let is_lost = *left > 0;
                *left = left.saturating_sub(1);
                is_lost
            }
        }
    }
}

/// The first point in time after `now`. A Poisson process is memoryless, so points in between need not be drawn.
fn next_instant(spacing: Spacing, random: Random, index: u64, now: Time) -> Time {
    match spacing {
        Spacing::Fixed(spacing) => {
            let spacing = nanos(spacing);
            let passed = now.as_nanos() / spacing;
            Time::from_nanos(passed.saturating_add(1).saturating_mul(spacing))
        }
        Spacing::Random(mean) => now.plus((nanos(mean) as f64 * random.exponential(index)) as u64),
    }
}

#[cfg(test)]
mod tests;
