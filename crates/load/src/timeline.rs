//! Responses, failures and latencies over the time of a run, in constant memory.
//!
//! A run has at most [`INTERVALS`] intervals. When it is longer, pairs of intervals become one of twice the width. All threads
//! count from the same time, so their intervals coincide.

use core::{fmt, ops::Range, time::Duration};

use lastbyte_quic::Time;

use crate::{
    buckets::{Buckets, VALUE_BITS},
    histogram::BEYOND_MIN,
};

#[cfg(test)]
mod tests;

/// The most intervals, an even number.
pub const INTERVALS: usize = 128;
/// The width of the first intervals.
pub const WIDTH_MIN: Duration = Duration::from_millis(10);
/// A latency is known to 3 %.
const SCALE: Buckets = Buckets(4);

/// Counts of an interval.
#[derive(Clone, PartialEq, Eq)]
pub struct Interval {
    /// Complete responses.
    pub done: u64,
    /// Requests without a complete response.
    pub errored: u64,
    /// The longest latency in ns.
    pub max: u64,
    buckets: Box<[u32]>,
}

impl Default for Interval {
    fn default() -> Self {
        Self {
            done: 0,
            errored: 0,
            max: 0,
            buckets: vec![0; SCALE.count()].into_boxed_slice(),
        }
    }
}

impl fmt::Debug for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interval")
            .field("done", &self.done)
            .field("errored", &self.errored)
            .field("max", &self.max)
            .finish_non_exhaustive()
    }
}

impl Interval {
    fn record(&mut self, nanos: u64) {
        let value = nanos.min((1 << VALUE_BITS) - 1);
        self.done += 1;
        self.max = self.max.max(value);
        if let Some(count) = self.buckets.get_mut(SCALE.of(value)) {
            *count = count.saturating_add(1);
        }
    }

    /// A percentile of the latency in ns, to 3 %; `None` if fewer than 10 values are expected beyond it.
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let beyond = (1.0 - share) * self.done as f64;
        if beyond * 1.000_001 < BEYOND_MIN as f64 {
            return None;
        }
        let rank = ((share * self.done as f64).ceil() as u64).max(1);
        let mut below = 0;
        let place = self.buckets.iter().position(|count| {
            below += u64::from(*count);
            below >= rank
        });
        place.map(|place| SCALE.middle(place).min(self.max))
    }

    fn merge(&mut self, other: &Self) {
        self.done += other.done;
        self.errored += other.errored;
        self.max = self.max.max(other.max);
        for (count, more) in self.buckets.iter_mut().zip(&other.buckets) {
            *count = count.saturating_add(*more);
        }
    }

    fn clear(&mut self) {
        (self.done, self.errored, self.max) = (0, 0, 0);
        self.buckets.fill(0);
    }
}

/// The intervals of a run.
#[derive(Clone, PartialEq, Eq)]
pub struct Timeline {
    start: Time,
    width: Duration,
    intervals: Vec<Interval>,
    /// The time of the last tick: failures are counted there.
    now: Time,
    /// When something was recorded last.
    last: Time,
    /// Counts since they were last taken.
    recent: Interval,
}

impl fmt::Debug for Timeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Default for Timeline {
    fn default() -> Self {
        Self::new(Time::ZERO)
    }
}

impl Timeline {
    /// An empty timeline from this time on. All memory that it will need is allocated here.
    #[must_use]
    pub fn new(start: Time) -> Self {
        Self {
            start,
            width: WIDTH_MIN,
            intervals: vec![Interval::default(); INTERVALS],
            now: start,
            last: start,
            recent: Interval::default(),
        }
    }

    /// The width of the intervals.
    pub const fn width(&self) -> Duration {
        self.width
    }

    /// From the first to the last interval that is not empty.
    fn filled(&self) -> Range<usize> {
        let is_filled = |interval: &Interval| interval.done + interval.errored > 0;
        let first = self.intervals.iter().position(is_filled);
        let last = self.intervals.iter().rposition(is_filled);
        first
            .zip(last)
            .map_or(0..0, |(first, last)| first..last + 1)
    }

    /// From the start of the first interval that is not empty to the last response or failure.
    pub fn length(&self) -> Duration {
        let first = self.width * self.filled().start as u32;
        self.last.since(self.start + first)
    }

    /// The intervals from the first to the last that is not empty, each with its start since the start of the first.
    pub fn iter(&self) -> impl Iterator<Item = (Duration, &Interval)> + '_ {
        let filled = self.intervals[self.filled()].iter();
        (0_u32..)
            .zip(filled)
            .map(|(index, interval)| (self.width * index, interval))
    }

    /// A percentile of the latency in ns over time, with the range of intervals that each value belongs to: as many as it takes
    /// until 10 values are expected beyond it. A last range with fewer is part of the one before. Intervals without a response
    /// before a range belong to none.
    pub fn percentile(&self, share: f64) -> Vec<(Range<usize>, u64)> {
        let mut ranges: Vec<(Range<usize>, Interval)> = Vec::new();
        let mut current: Option<(Range<usize>, Interval)> = None;
        for (index, interval) in self.intervals[self.filled()].iter().enumerate() {
            if current.is_none() && interval.done == 0 {
                continue;
            }
            let (mut range, mut sum) = current
                .take()
                .unwrap_or_else(|| (index..index, Interval::default()));
            range.end = index + 1;
            sum.merge(interval);
            if sum.quantile(share).is_some() {
                ranges.push((range, sum));
            } else {
                current = Some((range, sum));
            }
        }
        if let (Some((last, sum)), Some((rest, more))) = (ranges.last_mut(), &current)
            && more.done > 0
        {
            last.end = rest.end;
            sum.merge(more);
        }
        let values = ranges.into_iter();
        values
            .filter_map(|(range, sum)| Some((range, sum.quantile(share)?)))
            .collect()
    }

    /// A response is complete.
    pub fn on_done(&mut self, now: Time, latency: u64) {
        self.at(now).record(latency);
        self.recent.record(latency);
    }

    /// Time passes.
    pub const fn on_tick(&mut self, now: Time) {
        self.now = now;
    }

    /// Requests will have no complete response. They count at the time of the last tick.
    pub fn on_failed(&mut self, requests: u64) {
        self.at(self.now).errored += requests;
    }

    /// P50 and P99 in ns since they were taken last; 0 if there were too few responses.
    pub fn take_recent(&mut self) -> (u64, u64) {
        let of = |share| self.recent.quantile(share).unwrap_or(0);
        let both = (of(0.5), of(0.99));
        self.recent.clear();
        both
    }

    /// Adds what another thread has recorded from the same start.
    pub fn merge(&mut self, other: &Self) {
        while self.width < other.width {
            self.widen();
        }
        self.last = self.last.max(other.last);
        self.recent.merge(&other.recent);
        let times = other.width.as_nanos().max(1);
        let ratio = (self.width.as_nanos() / times).max(1) as usize;
        for (index, interval) in other.intervals.iter().enumerate() {
            if let Some(own) = self.intervals.get_mut(index / ratio) {
                own.merge(interval);
            }
        }
    }

    fn at(&mut self, now: Time) -> &mut Interval {
        let since = now.since(self.start).as_nanos();
        while since >= self.width.as_nanos() * INTERVALS as u128 {
            self.widen();
        }
        self.last = self.last.max(now);
        &mut self.intervals[(since / self.width.as_nanos()) as usize]
    }

    /// Makes each pair of intervals one.
    fn widen(&mut self) {
        self.width *= 2;
        for index in 0..INTERVALS / 2 {
            let (before, after) = self.intervals.split_at_mut(2 * index + 1);
            before[2 * index].merge(&after[0]);
            self.intervals.swap(index, 2 * index);
        }
        for interval in &mut self.intervals[INTERVALS / 2..] {
            interval.clear();
        }
    }
}
