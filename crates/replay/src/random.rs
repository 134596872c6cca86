//! Random numbers from a seed.

use lastbyte_units::SplitMix64;

/// A generator of one purpose.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Random(SplitMix64);

impl Random {
    pub(crate) const fn new(seed: u64, purpose: u64) -> Self {
        Self(SplitMix64::stream(seed, purpose))
    }

    /// From 0 to below 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.0.number() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// From 0 to below `end`, which is above 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        ((self.unit() * end as f64) as usize).min(end.saturating_sub(1))
    }

    /// Of the standard normal distribution (Box and Muller).
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.unit()));
        radius * libm::cos(core::f64::consts::TAU * self.unit())
    }
}
