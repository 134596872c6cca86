//! A limit on failed path validations (RFC 9000 §9.3.1).
//!
//! An attacker who forwards a copy of a packet from another address makes us validate that address. After a hundred
//! failures, new addresses are ignored for some time: after each [`FailedPaths::FORGOTTEN_EVERY`] one failure is
//! forgotten, so that no attack disables migration for the rest of the connection.

use core::time::Duration;

use lastbyte_congestion::Time;

/// Recent failed validations.
#[derive(Clone, Copy, Debug)]
pub struct FailedPaths {
    count: u32,
    /// Up to when failures were forgotten.
    since: Time,
}

impl FailedPaths {
    /// Maximum number of failures at once.
    pub const MAX: u32 = 100;
    /// The interval after which a failure is forgotten.
    pub const FORGOTTEN_EVERY: Duration = Duration::from_secs(5);

    /// None so far.
    #[must_use]
    pub const fn new(now: Time) -> Self {
        Self {
            count: 0,
            since: now,
        }
    }

    /// A validation failed.
    pub fn on_failed(&mut self, now: Time) {
        self.forget(now);
        self.count = self.count.saturating_add(1);
    }

    /// Whether too many failed to accept another address.
    pub fn are_too_many(&mut self, now: Time) -> bool {
        self.forget(now);
        self.count >= Self::MAX
    }

    fn forget(&mut self, now: Time) {
        while self.count > 0 && now.since(self.since) >= Self::FORGOTTEN_EVERY {
            self.count -= 1;
            self.since = self.since + Self::FORGOTTEN_EVERY;
        }
        if self.count == 0 {
            self.since = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_expire() {
        let mut now = Time::from_nanos(1);
        let mut failed = FailedPaths::new(now);
        for _ in 0..FailedPaths::MAX {
            assert!(!failed.are_too_many(now));
            failed.on_failed(now);
        }
        assert!(failed.are_too_many(now));
        // In the long run one in each interval.
        for _ in 0..1000 {
            now = now + FailedPaths::FORGOTTEN_EVERY;
            assert!(!failed.are_too_many(now));
            failed.on_failed(now);
            assert!(failed.are_too_many(now));
        }
        // After a long time all are forgotten, and no more than that.
        now = now + FailedPaths::FORGOTTEN_EVERY * 10_000;
        for _ in 0..FailedPaths::MAX {
            assert!(!failed.are_too_many(now));
            failed.on_failed(now);
        }
        assert!(failed.are_too_many(now));
    }
}
