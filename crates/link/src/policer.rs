//! A policer: packets above a rate are dropped immediately, without a queue.

use crate::{Rate, Time, rate::work_of};

#[cfg(test)]
mod tests;

/// A token bucket. It is initially full and refills at `rate` up to `burst`. A packet passes and takes tokens if there
/// are enough for all its bytes; otherwise it is dropped and takes none.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Policer {
    /// The rate at which the bucket refills.
    pub rate: Rate,
    /// The size of the bucket in bytes. Packets larger than it never pass.
    pub burst: u64,
}

/// The state of a policer.
#[derive(Debug)]
pub(crate) struct TokenBucket {
    rate: Rate,
    /// In nanobits, like `tokens`: a rate of *r* bit/s adds exactly *r* nanobits per nanosecond.
    size: u128,
    tokens: u128,
    filled_at: Time,
}

impl TokenBucket {
    pub(crate) const fn new(config: &Policer) -> Self {
        let size = config.burst as u128 * work_of(1);
        Self {
            rate: config.rate,
            size,
            tokens: size,
            filled_at: Time::ZERO,
        }
    }

    /// Whether a packet passes. Takes its tokens if so.
    pub(crate) fn admits(&mut self, now: Time, bytes: u32) -> bool {
        let span = u128::from(now.nanos_since(self.filled_at));
        let fill = u128::from(self.rate.bits_per_second()) * span;
        self.tokens = self.tokens.saturating_add(fill).min(self.size);
        self.filled_at = now;
        let passes = work_of(bytes) <= self.tokens;
        if passes {
            self.tokens -= work_of(bytes);
        }
        passes
    }
}
