//! Histograms of times for Prometheus.

use std::time::Duration;

/// The upper bounds of the buckets, in milliseconds, a factor of two to two and a half apart.
pub const BOUNDS_MS: [u64; 16] = [
    1, 2, 5, 10, 20, 50, 100, 200, 350, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000,
];

/// Counts of times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// By bucket; the last is for times above all bounds.
    counts: [u64; BOUNDS_MS.len() + 1],
    sum: Duration,
}

/// The index of the bucket of a time.
pub(crate) fn bucket(span: Duration) -> usize {
    BOUNDS_MS.partition_point(|bound| Duration::from_millis(*bound) < span)
}

impl Histogram {
    pub(crate) const fn of(counts: [u64; BOUNDS_MS.len() + 1], sum: Duration) -> Self {
        Self { counts, sum }
    }

    /// Counts a time.
    pub fn add(&mut self, span: Duration) {
        if let Some(count) = self.counts.get_mut(bucket(span)) {
            *count += 1;
        }
        self.sum = self.sum.saturating_add(span);
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &Self) {
        for (sum, more) in self.counts.iter_mut().zip(other.counts) {
            *sum += more;
        }
        self.sum = self.sum.saturating_add(other.sum);
    }

    /// The bounds in seconds as text, with the cumulative counts.
    pub fn cumulated(&self) -> impl Iterator<Item = (String, u64)> + '_ {
        let bounds = BOUNDS_MS.iter().map(|bound| {
            let seconds = Duration::from_millis(*bound).as_secs_f64();
            format!("{seconds}")
        });
        let mut sum = 0;
        let sums = self.counts.iter().map(move |count| {
            sum += count;
            sum
        });
        bounds.chain(["+Inf".to_owned()]).zip(sums)
    }

    /// The sum of the times.
    pub const fn sum(&self) -> Duration {
        self.sum
    }
}
