//! Random numbers addressed by index.
//!
//! Each number of a [`SplitMix64`] can be computed without its predecessors. Each component of a link has its own stream,
//! indexed by packet number. The decision of a component about the *n*-th packet therefore depends only on
//! the seed, the component's settings and *n*, not on other components.

use lastbyte_units::SplitMix64;

#[cfg(test)]
mod tests;

/// The component of a link that uses a stream. The discriminants must not change, because they determine the result of
/// a seed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Component {
    Duplication = 1,
    Jitter = 2,
    Reordering = 3,
    Release = 4,
    Hash = 5,
    Contention = 6,
    Aqm = 7,
    Wifi = 8,
    /// The first loss model; the others use the following values.
    Loss = 0x1000,
    /// The seed of the first hop after the first; the others use the following values.
    Hop = 0x1000_0000,
}

/// A stream of random numbers addressed by index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Random(SplitMix64);

impl Random {
    /// The stream of the `index`-th component of this kind in a link with this seed.
    pub(crate) const fn new(seed: u64, piece: Component, index: u64) -> Self {
        Self(SplitMix64::stream(seed, (piece as u64).wrapping_add(index)))
    }

    /// The number at `index`.
    pub(crate) const fn at(self, index: u64) -> u64 {
        self.0.at(index)
    }

    /// Uniformly distributed in [0, 1), in steps of 2⁻⁵³.
    pub(crate) fn unit(self, index: u64) -> f64 {
        (self.at(index) >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// `true` with this probability.
    pub(crate) fn happens(self, index: u64, probability: f64) -> bool {
        self.unit(index) < probability
    }

    /// Exponentially distributed with mean 1. At most 37.
    pub(crate) fn exponential(self, index: u64) -> f64 {
        -libm::log(1.0 - self.unit(index))
    }

    /// Uniformly distributed over 0 to `max`, inclusive.
    pub(crate) const fn up_to(self, index: u64, max: u64) -> u64 {
        // The upper half of the product avoids a division. The bias is below 2⁻⁶⁴ × max.
        ((self.at(index) as u128 * (max as u128 + 1)) >> 64) as u64
    }
}
