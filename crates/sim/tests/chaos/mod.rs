//! Chaos tests: random paths, faults and transfers from a seed, and the invariants that must hold.
//!
//! | module | owns |
//! |---|---|
//! | `plan` | the parameters drawn from a seed |
//! | `path` | the network: rate, queue, loss, reordering, duplication, corruption, MTU, address translation |
//! | `application` | requests and responses, and the check that every byte arrives |
//! | `check` | invariants of a connection |
//! | `world` | the event loop, and the checks at the end |

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

    /// Returns `true` with this probability.
    pub(crate) fn happens(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// Between 0 and 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.number() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Log-uniform between two bounds.
    pub(crate) fn magnitude(&mut self, least: f64, most: f64) -> f64 {
        least * (most / least).powf(self.unit())
    }

    pub(crate) const fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}
