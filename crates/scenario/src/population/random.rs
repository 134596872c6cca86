//! Random numbers for a draw: a stream for each field, addressed by index.
//!
//! Each field has its own stream of [`SplitMix64`], so that its value depends on the seed only, and not on the draws of
//! other fields.

use lastbyte_units::SplitMix64;

#[cfg(test)]
mod tests;

/// The purpose of a stream. The numbers must not change: they determine what a seed draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    Site = 1,
    Class = 2,
    Rate = 3,
    AccessRtt = 4,
    PathRtt = 5,
    Queue = 6,
    Aqm = 7,
    IsLossy = 8,
    Loss = 9,
    Bursts = 10,
    IsPoliced = 11,
    PolicerRate = 12,
    PolicerBucket = 13,
    Variation = 14,
    Handover = 15,
    Cross = 16,
    CrossSpec = 17,
    CrossLead = 18,
    CrossBurst = 19,
    Acks = 20,
    Ecn = 21,
    Size = 22,
    /// Of the experiment, not of the population.
    Arm = 23,
    /// Of the experiment: the seed of the simulation.
    Simulation = 24,
    UpRate = 25,
    Contention = 26,
    WakeUp = 27,
    IsReordered = 28,
    Reordering = 29,
    ReorderingDelay = 30,
    Network = 31,
    PathChanged = 32,
    Used = 33,
    EarlierPath = 34,
    Returns = 35,
    Neighbour = 36,
    FurtherSizes = 37,
    UpQueue = 38,
    UpAqm = 39,
    IsUpLossy = 40,
    UpLoss = 41,
}

/// The random numbers of one field.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream(SplitMix64);

impl Stream {
    pub(crate) const fn new(seed: u64, field: Field) -> Self {
        Self(SplitMix64::stream(seed, field as u64))
    }

    /// The number at `index`.
    pub(crate) const fn at(self, index: u64) -> u64 {
        self.0.at(index)
    }

    /// A number between 0 and 1, both exclusive.
    pub(crate) fn unit(self, index: u64) -> f64 {
        ((self.at(index) >> 12) as f64 + 0.5) * (1.0 / (1u64 << 52) as f64)
    }

    /// Returns `true` with this probability.
    pub(crate) fn happens(self, probability: f64) -> bool {
        self.unit(0) < probability
    }

    /// Normally distributed: mean zero, variance one.
    pub(crate) fn normal(self, index: u64) -> f64 {
        quantile(self.unit(index))
    }

    /// Exponentially distributed with mean one.
    pub(crate) fn exponential(self, index: u64) -> f64 {
        -self.unit(index).ln()
    }

    /// Chooses an index with probability proportional to its weight: the last one with a weight if rounding leads past it.
    pub(crate) fn choose(self, index: u64, weights: impl Iterator<Item = f64> + Clone) -> usize {
        let mut left = self.unit(index) * weights.clone().sum::<f64>();
        let mut chosen = 0;
        for (index, weight) in weights.enumerate().filter(|(_, weight)| *weight > 0.0) {
            chosen = index;
            if left < weight {
                break;
            }
            left -= weight;
        }
        chosen
    }
}

/// Derives the seed with this number from another.
pub(crate) const fn seed_of(seed: u64, number: u64) -> u64 {
    SplitMix64::stream(seed, number).state()
}

/// The quantile function of the normal distribution, by Acklam's rational functions, with a relative error below 1.15e-9. It is
/// monotonic, so that quantiles of the argument are quantiles of the result.
fn quantile(unit: f64) -> f64 {
    const TAIL: f64 = 0.024_25;
    if unit < TAIL {
        tail(unit)
    } else if unit > 1.0 - TAIL {
        -tail(1.0 - unit)
    } else {
        let from_half = unit - 0.5;
        let square = from_half * from_half;
        let above = polynomial(
            square,
            &[
                -3.969_683_028_665_376e1,
                2.209_460_984_245_205e2,
                -2.759_285_104_469_687e2,
                1.383_577_518_672_69e2,
                -3.066_479_806_614_716e1,
                2.506_628_277_459_239,
            ],
        );
        let below = polynomial(
            square,
            &[
                -5.447_609_879_822_406e1,
                1.615_858_368_580_409e2,
                -1.556_989_798_598_866e2,
                6.680_131_188_771_972e1,
                -1.328_068_155_288_572e1,
                1.0,
            ],
        );
        above * from_half / below
    }
}

/// The lower tail of [`quantile`].
fn tail(unit: f64) -> f64 {
    let root = (-2.0 * unit.ln()).sqrt();
    let above = polynomial(
        root,
        &[
            -7.784_894_002_430_293e-3,
            -3.223_964_580_411_365e-1,
            -2.400_758_277_161_838,
            -2.549_732_539_343_734,
            4.374_664_141_464_968,
            2.938_163_982_698_783,
        ],
    );
    let below = polynomial(
        root,
        &[
            7.784_695_709_041_462e-3,
            3.224_671_290_700_398e-1,
            2.445_134_137_142_996,
            3.754_408_661_907_416,
            1.0,
        ],
    );
    above / below
}

/// Evaluates a polynomial; `factors` has the highest power first.
fn polynomial(x: f64, factors: &[f64]) -> f64 {
    factors.iter().fold(0.0, |sum, factor| sum * x + factor)
}
