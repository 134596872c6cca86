//! A token-bucket shaper: packets wait for tokens, where a policer drops them.
//!
//! This is the model of Linux's `tbf` with a peak rate, and of access lines that let the first megabytes of a transfer pass
//! faster ("`PowerBoost`").

use crate::{
    Rate, Time,
    rate::{nanos_for, work_of},
};

#[cfg(test)]
mod tests;

/// A token bucket in front of a line. It is initially full and refills at `rate` up to `burst`. A packet leaves the queue
/// when there are tokens for it, and is transmitted at `peak`.
///
/// A packet larger than the bucket waits for a full one, and leaves it in debt.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Shaper {
    /// The rate in the long run.
    pub rate: Rate,
    /// The size of the bucket in bytes.
    pub burst: u64,
    /// The rate at which a packet is transmitted.
    pub peak: Rate,
}

/// The state of a shaper.
#[derive(Debug)]
pub(crate) struct ShaperBucket {
    rate: Rate,
    peak: Rate,
    /// In nanobits, like `tokens`.
    size: i128,
    /// Negative after a packet larger than the bucket.
    tokens: i128,
    filled_at: Time,
}

impl ShaperBucket {
    pub(crate) const fn new(config: &Shaper) -> Self {
        let size = (config.burst as u128 * work_of(1)).cast_signed();
        Self {
            rate: config.rate,
            peak: config.peak,
            size,
            tokens: size,
            filled_at: Time::ZERO,
        }
    }

    /// When a packet that is next at `now` has been transmitted, rounded up to nanoseconds; [`Time::MAX`] if never. Takes
    /// its tokens.
    pub(crate) fn end_of(&mut self, now: Time, work: u128) -> Time {
        self.fill(now);
        let work = work.cast_signed();
        let missing = work.min(self.size) - self.tokens;
        let mut starts = now;
        if missing > 0 {
            let Some((wait, _)) = nanos_for(missing.unsigned_abs(), self.rate) else {
                return Time::MAX;
            };
            starts = now.plus(wait);
            self.fill(starts);
        }
        self.tokens -= work;
        match nanos_for(work.unsigned_abs(), self.peak) {
            Some((nanos, _)) => starts.plus(nanos),
            None => Time::MAX,
        }
    }

    fn fill(&mut self, now: Time) {
        let span = i128::from(now.nanos_since(self.filled_at));
        let fill = i128::from(self.rate.bits_per_second()).saturating_mul(span);
        self.tokens = self.tokens.saturating_add(fill).min(self.size);
        self.filled_at = now;
    }
}
