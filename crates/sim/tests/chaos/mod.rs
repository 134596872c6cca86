//! Chaos: transfers over paths, with faults, that one seed decides, and what must hold whatever happens.
//!
//! | module | owns |
//! |---|---|
//! | `plan` | what a seed stands for |
//! | `path` | the network: rate, queue, loss, reordering, duplication, corruption, MTU, address translation |
//! | `application` | what the two ends say to each other, and whether every byte of it arrives |
//! | `check` | what must hold of a connection at any time |
//! | `world` | the order of events, and how it all must end |

mod application;
mod check;
mod path;
mod plan;
mod world;

use lastbyte_units::SplitMix64;
pub(crate) use world::run;

/// Pseudo-random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random(SplitMix64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    pub(crate) const fn number(&mut self) -> u64 {
        self.0.number()
    }

    /// Below `bound`.
    pub(crate) const fn below(&mut self, bound: u64) -> u64 {
        self.number() % bound
    }

    /// With this probability.
    pub(crate) fn happens(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// Between 0 and 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.number() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Between two bounds, with each order of magnitude as likely as any other.
    pub(crate) fn magnitude(&mut self, least: f64, most: f64) -> f64 {
        least * (most / least).powf(self.unit())
    }

    pub(crate) const fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}
