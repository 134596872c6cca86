//! A distribution of whole numbers, as a count per value.

use std::collections::BTreeMap;

/// The count of each value, and the count of members without a value: a transfer that never completed has no time to last byte
/// and ranks behind all others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Values, each with the number of members that are not above it, in order.
    cumulative: Vec<(u64, u64)>,
    unfinished: u64,
}

impl Counts {
    /// From counts by value, and the number of members without a value.
    #[must_use]
    pub fn new(counts: &BTreeMap<u64, u64>, unfinished: u64) -> Self {
        let mut total = 0;
        let cumulative = counts
            .iter()
            .filter(|(_, count)| **count > 0)
            .map(|(value, count)| {
                total += count;
                (*value, total)
            });
        Self {
            cumulative: cumulative.collect(),
            unfinished,
        }
    }

    /// From values in any order; `None` is a member without a value.
    pub fn of(values: impl IntoIterator<Item = Option<u64>>) -> Self {
        let (mut counts, mut unfinished) = (BTreeMap::new(), 0);
        for value in values {
            match value {
                Some(value) => *counts.entry(value).or_insert(0) += 1,
                None => unfinished += 1,
            }
        }
        Self::new(&counts, unfinished)
    }

    /// The number of members.
    pub fn total(&self) -> u64 {
        self.finished() + self.unfinished
    }

    /// The number of members with a value.
    pub fn finished(&self) -> u64 {
        self.cumulative.last().map_or(0, |(_, total)| *total)
    }

    /// The number of members without a value.
    pub fn unfinished(&self) -> u64 {
        self.unfinished
    }

    /// The distribution without the members that have no value.
    #[must_use]
    pub fn finished_only(&self) -> Self {
        Self {
            unfinished: 0,
            ..self.clone()
        }
    }

    /// Values and their counts, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let before = core::iter::once(0).chain(self.cumulative.iter().map(|(_, total)| *total));
        self.cumulative
            .iter()
            .zip(before)
            .map(|((value, total), before)| (*value, total - before))
    }

    /// The nearest rank of a percentile, from one, as in the query language's `percentile`.
    pub fn rank(&self, share: f64) -> u64 {
        rank(self.total(), share)
    }

    /// The value of this rank, from one. `None` if that member has no value or there is no such rank.
    pub fn at_rank(&self, rank: u64) -> Option<u64> {
        if rank == 0 {
            return None;
        }
        let place = self.cumulative.partition_point(|(_, total)| *total < rank);
        self.cumulative.get(place).map(|(value, _)| *value)
    }

    /// The percentile of this share, from 0 to 1. `None` if there are no members, or the member of that rank has no value.
    pub fn percentile(&self, share: f64) -> Option<u64> {
        self.at_rank(self.rank(share))
    }

    /// The mean of the members with a value.
    pub fn mean(&self) -> Option<f64> {
        let count = self.finished();
        let sum: u128 = self
            .iter()
            .map(|(value, count)| u128::from(value) * u128::from(count))
            .sum();
        (count > 0).then(|| sum as f64 / count as f64)
    }

    /// The sample variance of the members with a value.
    pub fn variance(&self) -> Option<f64> {
        let (mean, count) = (self.mean()?, self.finished());
        let squares: f64 = self
            .iter()
            .map(|(value, count)| (value as f64 - mean).powi(2) * count as f64)
            .sum();
        (count > 1).then(|| squares / (count - 1) as f64)
    }

    /// The share of the members with a value that are `above` or more.
    pub fn share_from(&self, above: u64) -> Option<f64> {
        let count = self.finished();
        let below = self.cumulative.partition_point(|(value, _)| *value < above);
        let below = below
            .checked_sub(1)
            .and_then(|last| self.cumulative.get(last))
            .map_or(0, |(_, total)| *total);
        (count > 0).then(|| (count - below) as f64 / count as f64)
    }

    /// The share of the mean that the largest values have, this many of them.
    pub fn share_of_largest(&self, count: u64) -> Option<f64> {
        let (mut left, mut largest, mut sum) = (count, 0.0, 0.0);
        let values: Vec<(u64, u64)> = self.iter().collect();
        for (value, count) in values.into_iter().rev() {
            let taken = count.min(left);
            left -= taken;
            largest += value as f64 * taken as f64;
            sum += value as f64 * count as f64;
        }
        (sum > 0.0).then_some(largest / sum)
    }

    /// The union of distributions.
    #[must_use]
    pub fn joined<'a>(all: impl IntoIterator<Item = &'a Self>) -> Self {
        let (mut counts, mut unfinished) = (BTreeMap::new(), 0);
        for one in all {
            for (value, count) in one.iter() {
                *counts.entry(value).or_insert(0) += count;
            }
            unfinished += one.unfinished;
        }
        Self::new(&counts, unfinished)
    }
}

/// The nearest rank of a share of `total`, from one; zero if `total` is. The arithmetic is that of the query engine.
pub(crate) fn rank(total: u64, share: f64) -> u64 {
    if total == 0 {
        return 0;
    }
    ((share * total as f64).ceil() as u64).clamp(1, total)
}
