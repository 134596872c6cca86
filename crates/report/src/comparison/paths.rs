//! The change of each path: the time of an arm relative to the baseline's over the same path. Only paired connections have it.
//!
//! The other charts compare the percentiles of two groups, so a path that became slower and another that became faster cancel.
//! Here each path counts on its own, which shows how many an arm harms. A path on which neither transfer completed is
//! unchanged; a transfer that never completed is slower than any that did.

use super::queries::{QueryBuilder, Subgroup, chart_shares};
use crate::statistics::{
    Z_95,
    bootstrap::{Absent, BEYOND_MIN, Interval, Pairs},
    counts::rank,
    tests_of::{self, Estimate},
};

/// A path is slower or faster if its time changes by more than this share.
pub(super) const NOTABLE: f64 = 0.05;

/// The changes of paths, by arm. The baseline has none.
#[derive(Clone, Debug)]
pub(super) struct Paths {
    /// Paths with a connection of the arm and one of the baseline.
    pub(super) counts: Vec<u64>,
    /// The percentiles 1 to 99 of the change.
    pub(super) curves: Vec<Vec<Interval>>,
    /// The share of paths that are slower by more than [`NOTABLE`], in an interval that is simultaneous with the others here.
    pub(super) slower: Vec<Option<Estimate>>,
    /// The share of paths that are faster by more than [`NOTABLE`], likewise.
    pub(super) faster: Vec<Option<Estimate>>,
    /// The query for the percentiles of each arm.
    pub(super) queries: Vec<String>,
}

impl Paths {
    pub(super) fn new(
        pairs: &Pairs,
        names: &[&str],
        queries: &QueryBuilder<'_>,
        looks: u32,
    ) -> Self {
        let arms = names.len();
        let z = tests_of::simultaneous(2 * arms.saturating_sub(1) * looks as usize);
        let mut paths = Self {
            counts: vec![0; arms],
            curves: vec![Vec::new(); arms],
            slower: vec![None; arms],
            faster: vec![None; arms],
            queries: vec![String::new(); arms],
        };
        for (arm, name) in names.iter().enumerate().skip(1) {
            let mut changes: Vec<f64> = pairs.of(arm, 0).map(change).collect();
            changes.sort_by(f64::total_cmp);
            let total = changes.len() as u64;
            let count = |wanted: fn(f64) -> bool| {
                changes.iter().filter(|change| wanted(**change)).count() as u64
            };
            paths.counts[arm] = total;
            paths.slower[arm] = tests_of::share(count(|change| change > NOTABLE), total, z);
            paths.faster[arm] = tests_of::share(count(|change| change < -NOTABLE), total, z);
            paths.curves[arm] = curve(&changes);
            paths.queries[arm] = queries.paths(&Subgroup::All, name);
        }
        paths
    }
}

/// The change from a value of zero to one above it: above all numbers, and below that of a transfer that never completed.
const FROM_ZERO: f64 = f64::MAX;

fn change((ours, base): (Option<u64>, Option<u64>)) -> f64 {
    match (ours, base) {
        (Some(0), Some(0)) | (None, None) => 0.0,
        (Some(_), Some(0)) => FROM_ZERO,
        (Some(ours), Some(base)) => ours as f64 / base as f64 - 1.0,
        (None, Some(_)) => f64::INFINITY,
        (Some(_), None) => -1.0,
    }
}

/// The percentiles 1 to 99 of changes in ascending order.
pub(super) fn curve(changes: &[f64]) -> Vec<Interval> {
    let shares = chart_shares().into_iter();
    shares.map(|share| percentile(changes, share)).collect()
}

/// A percentile by nearest rank. Its interval is between two of the values, whose ranks follow from the binomial distribution
/// (normal approximation), so it assumes nothing of the distribution of the changes. It has no upper end where that is a path that the
/// arm did not complete.
fn percentile(changes: &[f64], share: f64) -> Interval {
    let total = changes.len() as f64;
    let at = |rank: usize| changes.get(rank.checked_sub(1)?).copied();
    let (estimate, absent) = match at(rank(changes.len() as u64, share) as usize) {
        None => (None, Some(Absent::NoMembers)),
        Some(f64::INFINITY) => (None, Some(Absent::Unfinished)),
        Some(FROM_ZERO) => (None, Some(Absent::BaselineZero)),
        some => (some, None),
    };
    let end = |change: f64| {
        if change < FROM_ZERO {
            change
        } else {
            f64::INFINITY
        }
    };
    let (middle, half) = (total * share, Z_95 * (total * share * (1.0 - share)).sqrt());
    let is_wide = total * share.min(1.0 - share) >= BEYOND_MIN && middle - half >= 1.0;
    Interval {
        estimate,
        absent,
        alone: at((middle - half) as usize)
            .zip(at((middle + half).ceil() as usize + 1))
            .map(|(low, high)| (low, end(high)))
            .filter(|_| is_wide && estimate.is_some()),
        together: None,
    }
}
