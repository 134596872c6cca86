//! A histogram of durations: constant memory, and a relative error of at most 1/1024.
//!
//! Values below 2048 ns have a bucket each. Above, each power of two is divided into 1024 buckets of equal width, as in
//! `HdrHistogram` with three significant digits.

use core::fmt;

use crate::buckets::{Buckets, VALUE_BITS};

#[cfg(test)]
mod tests;

const SCALE: Buckets = Buckets(10);

/// The fewest values above a percentile that make it worth printing: with fewer, the next run gives another value.
pub const BEYOND_MIN: u64 = 10;

/// The largest relative error of a percentile.
pub const PRECISION: f64 = 1.0 / 1024.0;

/// The number of values from which on [`Histogram::supported_quantile`] of this share exists.
pub fn needed_for(share: f64) -> u64 {
    (BEYOND_MIN as f64 / ((1.0 - share) * 1.000_001)).ceil() as u64
}

/// A histogram of durations in nanoseconds.
#[derive(Clone, PartialEq, Eq)]
pub struct Histogram {
    buckets: Box<[u64]>,
    count: u64,
    min: u64,
    max: u64,
    sum: u128,
    sum_of_squares: u128,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            buckets: vec![0; SCALE.count()].into_boxed_slice(),
            count: 0,
            min: u64::MAX,
            max: 0,
            sum: 0,
            sum_of_squares: 0,
        }
    }
}

impl Histogram {
    /// Adds a value in nanoseconds. Does not allocate.
    pub fn record(&mut self, nanos: u64) {
        let value = nanos.min((1 << VALUE_BITS) - 1);
        if let Some(count) = self.buckets.get_mut(SCALE.of(value)) {
            *count += 1;
        }
        self.count += 1;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.sum += u128::from(value);
        self.sum_of_squares += u128::from(value) * u128::from(value);
    }

    /// Adds the values of another histogram.
    pub fn merge(&mut self, other: &Self) {
        for (count, more) in self.buckets.iter_mut().zip(&other.buckets) {
            *count += more;
        }
        self.count += other.count;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum += other.sum;
        self.sum_of_squares += other.sum_of_squares;
    }

    /// The number of values.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The smallest value that at least this share of the values does not exceed, up to the precision of the buckets;
    /// `None` without values.
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let rank = ((share * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        let mut below = 0;
        for (index, count) in self.buckets.iter().enumerate() {
            below += count;
            if below >= rank {
                return Some(SCALE.highest(index).clamp(self.min, self.max));
            }
        }
        None
    }

    /// The same, unless fewer than [`BEYOND_MIN`] values are expected above it: the P99.99 of 1000 values is their maximum,
    /// whatever the server does.
    pub fn supported_quantile(&self, share: f64) -> Option<u64> {
        let beyond = (1.0 - share) * self.count as f64;
        // One part in a million for the rounding of `1.0 - share`.
        let is_supported = beyond * 1.000_001 >= BEYOND_MIN as f64;
        is_supported.then(|| self.quantile(share)).flatten()
    }

    /// Minimum, maximum, mean and standard deviation; `None` without values.
    pub fn summary(&self) -> Option<Summary> {
        if self.count == 0 {
            return None;
        }
        let count = self.count as f64;
        let mean = self.sum as f64 / count;
        // The difference is exact in integers; the sample's deviation, as in h2load, divides by one less.
        let spread = self.sum_of_squares * u128::from(self.count) - self.sum * self.sum;
        let sd = (spread as f64 / count / (count - 1.0).max(1.0)).sqrt();
        let inside = |low: f64, high: f64| {
            let buckets = self.buckets.iter().enumerate();
            let inside = buckets.filter(|(index, _)| {
                let lowest = index
                    .checked_sub(1)
                    .map_or(0, |index| SCALE.highest(index) + 1);
                low <= SCALE.highest(*index) as f64 && lowest as f64 <= high
            });
            inside.map(|(_, count)| *count).sum::<u64>() as f64
        };
        Some(Summary {
            min: self.min as f64,
            max: self.max as f64,
            mean,
            sd,
            within_sd: inside(mean - sd, mean + sd) / count,
        })
    }

    /// The non-empty buckets: the largest value of each, and its count.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let buckets = self.buckets.iter().enumerate();
        let filled = buckets.filter(|(_, count)| **count > 0);
        filled.map(|(index, count)| (SCALE.highest(index), *count))
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Histogram")
            .field("count", &self.count)
            .field("min", &self.min)
            .field("max", &self.max)
            .finish_non_exhaustive()
    }
}

/// What h2load prints of a series of values. All have the unit of the values.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// The mean.
    pub mean: f64,
    /// The standard deviation of the sample.
    pub sd: f64,
    /// The share of values within one standard deviation of the mean.
    pub within_sd: f64,
}

impl Summary {
    /// The summary of a few values; `None` if there are none.
    pub fn of(values: &[f64]) -> Option<Self> {
        if values.is_empty() {
            return None;
        }
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let spread = values.iter().map(|value| (value - mean).powi(2));
        let sd = (spread.sum::<f64>() / (count - 1.0).max(1.0)).sqrt();
        let inside = values.iter().filter(|value| (*value - mean).abs() <= sd);
        Some(Self {
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            mean,
            sd,
            within_sd: inside.count() as f64 / count,
        })
    }
}
