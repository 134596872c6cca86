//! A token bucket for stateless responses: a burst, and a rate per second.

use core::time::Duration;

use lastbyte_congestion::Time;

#[cfg(test)]
mod tests;

/// Rate limit of a kind of response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// Sustained rate per second; 0 disables them.
    pub per_second: u32,
    /// Burst after a time of silence; at least one.
    pub burst: u32,
}

impl RateLimit {
    /// This many per second, with a burst of half a second's worth.
    #[must_use]
    pub const fn of(per_second: u32) -> Self {
        Self {
            per_second,
            burst: per_second.div_ceil(2),
        }
    }
}

/// The state of a [`RateLimit`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket {
    /// Time between two responses at the sustained rate.
    interval: Duration,
    /// Burst above the sustained rate.
    credit: Duration,
    /// When the next response would be due at the sustained rate.
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

    /// Whether one more may be sent now; if so, it is counted.
    pub(super) fn take(&mut self, now: Time) -> bool {
        if self.is_shut || self.next > now + self.credit {
            return false;
        }
        self.next = self.next.max(now) + self.interval;
        true
    }
}
