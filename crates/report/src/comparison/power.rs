//! How many connections an experiment needs to detect a change, from the variance of a log.
//!
//! The standard error of a change falls with the square root of the number of connections. A change δ is detected with probability
//! [`POWER`] if its standard error is |δ| / (z + z₈₀), so an experiment needs
//!
//! ```text
//! connections of the log × (standard error in the log × (z + z₈₀) / δ)²
//! ```
//!
//! Of the median, change and standard error are on the logarithmic scale, from the 95 % interval of the bootstrap. Of the mean, the
//! standard error is that of the plain difference which the page tests, relative to the baseline's mean, as if the arm's times were all changed by
//! the factor that makes its mean 1 + δ of the baseline's. The test is two-sided, at 5 % for this value of all arms together (Bonferroni).
//!
//! Assumed: further connections are like those of the log, arms have equal shares, and the variance does not depend on δ.

use crate::statistics::{
    Counts, Z_95,
    bootstrap::{BaselineComparison, Measure, Pairs, Resampled},
    tests_of::{self, MeanPair},
};

/// The probability of detecting the change.
pub(super) const POWER: f64 = 0.8;
/// The standard normal quantile of [`POWER`].
const Z_POWER: f64 = 0.841_621_233_572_914;
/// More resamples do not change a standard error by much.
const REPLICATES_MAX: usize = 500;

/// The uncertainty of an arm's changes in the log: the standard error of the median on the logarithmic scale, and the means.
#[derive(Clone, Copy, Debug, Default)]
struct Errors {
    median: Option<f64>,
    mean: Option<MeanPair>,
}

/// What a log shows about the size of experiments, by arm; the baseline has none.
#[derive(Clone, Debug)]
pub(super) struct Power {
    connections: u64,
    /// Of pairs; empty without pairs.
    paired: Vec<Errors>,
    /// As if connections were not paired.
    unpaired: Vec<Errors>,
}

/// Numbers of connections in all arms together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SampleSize {
    pub(super) median_paired: Option<u64>,
    pub(super) median_unpaired: Option<u64>,
    pub(super) mean_paired: Option<u64>,
    pub(super) mean_unpaired: Option<u64>,
}

impl Power {
    pub(super) fn new(
        times: &[Counts],
        pairs: Option<&Pairs>,
        replicates: usize,
        seed: u64,
    ) -> Self {
        let groups: Vec<&Counts> = times.iter().collect();
        let (shares, replicates) = ([0.5], replicates.min(REPLICATES_MAX));
        let comparison = BaselineComparison {
            groups: &groups,
            baseline: 0,
            shares: &shares,
            measure: Measure::Change,
            looks: 1,
        };
        let medians = |resampled: &Resampled| -> Vec<Option<f64>> {
            let intervals = comparison.intervals(resampled).into_iter();
            intervals
                .map(|cells| error(cells.first()?.alone?))
                .collect()
        };
        let errors = |resampled: &Resampled, pairs: Option<&Pairs>| {
            let arms = medians(resampled).into_iter().enumerate();
            arms.map(|(arm, median)| Errors {
                median: median.filter(|_| arm > 0),
                mean: match pairs {
                    _ if arm == 0 => None,
                    Some(pairs) => MeanPair::paired(pairs.of(arm, 0)),
                    None => MeanPair::apart(&times[arm], &times[0]),
                },
            })
            .collect()
        };
        Self {
            connections: times.iter().map(Counts::total).sum(),
            paired: pairs.map_or_else(Vec::new, |pairs| {
                errors(&comparison.paired(pairs, replicates, seed), Some(pairs))
            }),
            unpaired: errors(&comparison.apart(replicates, seed), None),
        }
    }

    /// The numbers of connections that detect this change of an arm.
    pub(super) fn needed(&self, arm: usize, change: f64, looks: u32) -> SampleSize {
        let arms = self.unpaired.len();
        let z = tests_of::simultaneous(arms.saturating_sub(1) * looks as usize) + Z_POWER;
        let of = |error: Option<f64>, change: f64| {
            let needed = self.connections as f64 * (error? * z / change).powi(2);
            // Each arm has the same number.
            let each = (needed / arms as f64).ceil().max(1.0);
            (each < 1e15).then_some(each as u64 * arms as u64)
        };
        let at_change = |means: MeanPair| means.deviation_at(1.0 + change);
        let paired = self.paired.get(arm).copied().unwrap_or_default();
        let unpaired = self.unpaired.get(arm).copied().unwrap_or_default();
        SampleSize {
            median_paired: of(paired.median, change.ln_1p()),
            median_unpaired: of(unpaired.median, change.ln_1p()),
            mean_paired: of(paired.mean.map(at_change), change),
            mean_unpaired: of(unpaired.mean.map(at_change), change),
        }
    }
}

/// The standard error on the logarithmic scale, of a 95 % interval of a change.
fn error((low, high): (f64, f64)) -> Option<f64> {
    let width = high.ln_1p() - low.ln_1p();
    (width.is_finite() && width >= 0.0).then_some(width / (2.0 * Z_95))
}
