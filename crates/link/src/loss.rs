//! Packets that are lost for reasons other than a full queue.
//!
//! Each model decides about each packet handed to the link, also about those that another piece drops anyway: so the fate
//! of the *n*-th packet by one model depends on nothing that other pieces do.

use alloc::vec::Vec;
use core::time::Duration;

use crate::{
    Time,
    random::{Piece, Random},
    time::nanos,
};

/// A model of loss. A link may have several; a packet is lost if any of them says so.
#[derive(Clone, PartialEq, Debug)]
pub enum Loss {
    /// Each packet is lost with this probability, whatever happened to others.
    Bernoulli(f64),
    /// Losses come in bursts of packets.
    GilbertElliott(GilbertElliott),
    /// These packets are lost: numbers of packets handed to the link, from zero, in any order.
    Packets(Vec<u64>),
    /// Losses come in bursts at instants of time, as with handovers.
    Bursts(Bursts),
}

/// A Markov chain of two states, good and bad, that steps with each packet: netem's `gemodel` (Salsano, Ludovici, Ordine:
/// "Definition of a general and intuitive loss model for packet networks and its implementation in the Netem module in the
/// Linux kernel", 2009). It begins in the good state. The state before the step decides about the packet.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct GilbertElliott {
    /// Probability of a step from good to bad; *p*.
    pub to_bad: f64,
    /// Probability of a step from bad to good; *r*.
    pub to_good: f64,
    /// Probability of loss in the bad state; *1 − h*. In the simple Gilbert model 1.
    pub loss_in_bad: f64,
    /// Probability of loss in the good state; *1 − k*. In the simple Gilbert model 0.
    pub loss_in_good: f64,
}

impl GilbertElliott {
    /// The simple Gilbert model with this mean loss and this mean length of a burst, in packets. It exists for a loss below
    /// one and a burst of one or more; [`Link::new`](crate::Link::new) refuses what does not exist.
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

    /// The share of packets lost in the long run: each state's loss by the share of packets that see it.
    #[must_use]
    pub fn mean_loss(&self) -> f64 {
        let sum = self.to_bad + self.to_good;
        if sum == 0.0 {
            return self.loss_in_good;
        }
        (self.to_bad * self.loss_in_bad + self.to_good * self.loss_in_good) / sum
    }
}

/// From certain instants on, the next packets are lost, however long they take to come. An instant that comes before the
/// burst of the one before it is over adds nothing to that; several that pass between two packets count as one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bursts {
    /// When.
    pub spacing: Spacing,
    /// The probability that anything is lost at such an instant.
    pub probability: f64,
    /// How much is lost then.
    pub length: BurstLength,
}

/// The instants of a process in time. The first comes a spacing after the epoch of [`Time`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Spacing {
    /// This far apart. More than zero.
    Fixed(Duration),
    /// Exponentially distributed with this mean: a Poisson process. More than zero.
    Random(Duration),
}

/// How many packets a burst has.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum BurstLength {
    /// So many.
    Fixed(u64),
    /// Geometrically distributed with this mean, one or more.
    Random(f64),
}

/// A model at work.
#[derive(Debug)]
pub(crate) enum Losses {
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
        /// Largest first.
        numbers: Vec<u64>,
    },
    Bursts {
        model: Bursts,
        next: Time,
        /// How many instants were drawn.
        drawn: u64,
        /// How many packets are still to be lost.
        left: u64,
        random: Random,
    },
}

impl Losses {
    pub(crate) fn new(model: &Loss, seed: u64, index: usize) -> Self {
        let random = Random::new(seed, Piece::Loss, index as u64);
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

    /// Whether the packet of this number is lost. To be asked about each, in order.
    pub(crate) fn takes(&mut self, now: Time, number: u64) -> bool {
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
                    // Three numbers for each instant: when, whether, how much.
                    let index = drawn.wrapping_mul(3);
                    if random.happens(index.wrapping_add(1), model.probability) {
                        *left = (*left).max(length(model.length, *random, index.wrapping_add(2)));
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

/// The first instant after `now`. A Poisson process has no memory, so those in between need not be drawn.
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

fn length(length: BurstLength, random: Random, index: u64) -> u64 {
    match length {
        BurstLength::Fixed(packets) => packets,
        BurstLength::Random(mean) if mean <= 1.0 => 1,
        // The inverse of the distribution: one more for each time that a coin with the odds 1 − 1/mean goes on.
        BurstLength::Random(mean) => {
            1 + (-random.exponential(index) / libm::log(1.0 - 1.0 / mean)) as u64
        }
    }
}

#[cfg(test)]
mod tests;
