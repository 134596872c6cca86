//! How many connections an experiment needs to detect a change, from the variance of a log.
//!
//! The standard error of a change falls with the square root of the number of connections. A change δ is detected with probability
//! [`POWER`] if its standard error is |ln(1 + δ)| / (z + z₈₀), so an experiment needs
//!
//! ```text
//! connections of the log × (standard error in the log × (z + z₈₀) / ln(1 + δ))²
//! ```
//!
//! Standard errors are on the logarithmic scale, from 95 % intervals: of the median from the bootstrap, of the mean from the delta
//! method, as on the page. The test is two-sided, at 5 % for this value of all arms together (Bonferroni).
//!
//! Assumed: further connections are like those of the log, arms have equal shares, and the variance does not depend on δ.

use crate::statistics::{
    Counts, Z_95,
    bootstrap::{self, BaselineComparison, Measure, Pairs},
    tests_of::{self, Estimate},
};

/// The probability of detecting the change.
pub(super) const POWER: f64 = 0.8;
/// The standard normal quantile of [`POWER`].
const Z_POWER: f64 = 0.841_621_233_572_914;
/// More resamples do not change a standard error by much.
const REPLICATES_MAX: usize = 500;

/// Standard errors of an arm's changes in the log, on the logarithmic scale: of the median and of the mean.
#[derive(Clone, Copy, Debug, Default)]
struct Errors {
    median: Option<f64>,
    mean: Option<f64>,
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
        };
        let medians = |resampled| -> Vec<Option<f64>> {
            let intervals = comparison.intervals(&resampled).into_iter();
            intervals
                .map(|cells| error(cells.first()?.alone?))
                .collect()
        };
        let errors = |medians: Vec<Option<f64>>, mean: &dyn Fn(usize) -> Option<Estimate>| {
            let arms = medians.into_iter().enumerate();
            arms.map(|(arm, median)| {
                let mean = (arm > 0).then(|| mean(arm)).flatten();
                Errors {
                    median: median.filter(|_| arm > 0),
                    mean: mean.and_then(|one| error(one.interval)),
                }
            })
            .collect()
        };
        let unpaired = medians(bootstrap::apart(&groups, &shares, replicates, seed));
        Self {
            connections: times.iter().map(Counts::total).sum(),
            paired: pairs.map_or_else(Vec::new, |pairs| {
                let medians = medians(bootstrap::paired(pairs, &shares, replicates, seed));
                errors(medians, &|arm| {
                    let both: Vec<_> = pairs.of(arm, 0).collect();
                    tests_of::mean_change_paired(both.into_iter(), Z_95)
                })
            }),
            unpaired: errors(unpaired, &|arm| {
                tests_of::mean_change(&times[arm], &times[0], Z_95)
            }),
        }
    }

    /// The numbers of connections that detect this change of an arm.
    pub(super) fn needed(&self, arm: usize, change: f64) -> SampleSize {
        let arms = self.unpaired.len();
        let z = tests_of::simultaneous(arms.saturating_sub(1)) + Z_POWER;
        let factor = z / change.ln_1p().abs();
        let of = |error: Option<f64>| {
            let needed = self.connections as f64 * (error? * factor).powi(2);
            // Each arm has the same number.
            let each = (needed / arms as f64).ceil().max(1.0);
            (each < 1e15).then_some(each as u64 * arms as u64)
        };
        let paired = self.paired.get(arm).copied().unwrap_or_default();
        let unpaired = self.unpaired.get(arm).copied().unwrap_or_default();
        SampleSize {
            median_paired: of(paired.median),
            median_unpaired: of(unpaired.median),
            mean_paired: of(paired.mean),
            mean_unpaired: of(unpaired.mean),
        }
    }
}

/// The standard error on the logarithmic scale, of a 95 % interval of a change.
fn error((low, high): (f64, f64)) -> Option<f64> {
    let width = high.ln_1p() - low.ln_1p();
    (width.is_finite() && width >= 0.0).then_some(width / (2.0 * Z_95))
}
