//! A histogram of delays, of fixed size.

use core::time::Duration;

#[cfg(test)]
mod tests;

/// A histogram of durations. Buckets are at most an eighth of their value wide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lateness {
    buckets: Box<[u64; BUCKETS]>,
    count: u64,
    max: Duration,
}

/// The number of buckets per power of two nanoseconds.
const STEPS: u32 = 8;
const BUCKETS: usize = 64 * STEPS as usize;

impl Default for Lateness {
    fn default() -> Self {
        Self {
            buckets: Box::new([0; BUCKETS]),
            count: 0,
            max: Duration::ZERO,
        }
    }
}

impl Lateness {
    /// Records a duration.
    pub fn record(&mut self, late: Duration) {
        let nanos = u64::try_from(late.as_nanos()).unwrap_or(u64::MAX);
        self.buckets[bucket(nanos)] += 1;
        self.count += 1;
        self.max = self.max.max(late);
    }

    /// Adds the durations of another histogram.
    pub fn merge(&mut self, other: &Self) {
        for (count, more) in self.buckets.iter_mut().zip(other.buckets.iter()) {
            *count += more;
        }
        self.count += other.count;
        self.max = self.max.max(other.max);
    }

    /// The number of recorded durations.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The longest recorded duration.
    pub const fn max(&self) -> Duration {
        self.max
    }

    /// The quantile for `share`, 0 to 1. The result exceeds the exact value by at most an eighth. Zero if nothing has
    /// been recorded.
    pub fn quantile(&self, share: f64) -> Duration {
        let rank = (share.clamp(0.0, 1.0) * self.count as f64).ceil().max(1.0);
        let mut seen = 0;
        for (index, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen as f64 >= rank {
                return Duration::from_nanos(upper(index)).min(self.max);
            }
        }
        Duration::ZERO
    }
}

/// Values below 8 have one bucket each. For larger values, the three bits after the most significant one select the
/// bucket.
const fn bucket(nanos: u64) -> usize {
    if nanos < STEPS as u64 {
        return nanos as usize;
    }
    let exponent = nanos.ilog2();
    let step = (nanos >> (exponent - 3)) as u32 & (STEPS - 1);
    ((exponent - 2) * STEPS + step) as usize
}

/// The largest value in a bucket.
const fn upper(index: usize) -> u64 {
    let index = index as u64;
    let steps = STEPS as u64;
    if index < steps {
        return index;
    }
    let exponent = index / steps + 2;
    let next = steps + index % steps + 1;
    // The last bucket ends at `u64::MAX`.
    match next.checked_shl(exponent as u32 - 3) {
        Some(end) if end >> (exponent - 3) == next => end - 1,
        _ => u64::MAX,
    }
}
