//! A token bucket for answers: a burst, and a rate per second.
//!
//! Owns: the permission to answer one more datagram that needed no proof. Never: reads a clock.

use core::time::Duration;

use lastbyte_congestion::Time;

#[cfg(test)]
mod tests;

/// How many answers of a kind may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// In the long run, each second; 0 for none at all.
    pub per_second: u32,
    /// At once, after a time of silence; at least one.
    pub burst: u32,
}

impl RateLimit {
    /// This many per second, and those of half a second at once.
    #[must_use]
    pub const fn of(per_second: u32) -> Self {
        Self {
            per_second,
            burst: per_second.div_ceil(2),
        }
    }
}

/// What is left of a [`RateLimit`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket {
    /// Between two answers.
    interval: Duration,
    /// How far ahead of the long run the answers may be.
    credit: Duration,
    /// When the next answer would be due in the long run.
    next: Time,
    is_shut: bool,
}

impl Bucket {
    pub(super) fn new(limit: RateLimit) -> Self {
        let interval = Duration::from_secs(1) / limit.per_second.max(1);
        Self {
            interval,
            credit: interval.saturating_mul(limit.burst.max(1) - 1),
            next: Time::ZERO,
            is_shut: limit.per_second == 0,
        }
    }

    /// Whether one more may leave now; if so, it counts.
    pub(super) fn take(&mut self, now: Time) -> bool {
        if self.is_shut || self.next > now + self.credit {
            return false;
        }
        self.next = self.next.max(now) + self.interval;
        true
    }
}
