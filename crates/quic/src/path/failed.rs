//! How many path validations may fail (RFC 9000 §9.3.1).
//!
//! A copy of a packet, sent on from an address that is not the peer's, makes us validate that address. After a hundred that
//! failed, new addresses are not looked at, until some time has passed: with each [`FailedPaths::FORGOTTEN_EVERY`] one of
//! them is forgotten, so that no attack ends migration for the rest of the connection.

use core::time::Duration;

use lastbyte_congestion::Time;

/// Validations that failed of late.
#[derive(Clone, Copy, Debug)]
pub struct FailedPaths {
    count: u32,
    /// Up to when failures were forgotten.
    since: Time,
}

impl FailedPaths {
    /// The most that may fail at once.
    pub const MAX: u32 = 100;
    /// In the long run, one may fail in each such span.
    pub const FORGOTTEN_EVERY: Duration = Duration::from_secs(5);

    /// None so far.
    #[must_use]
    pub const fn new(now: Time) -> Self {
        Self {
            count: 0,
            since: now,
        }
    }

    /// One more failed.
    pub fn on_failed(&mut self, now: Time) {
        self.forget(now);
        self.count = self.count.saturating_add(1);
    }

    /// Whether too many failed for another address to be looked at.
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
    fn failures_are_forgotten_with_time() {
        let mut now = Time::from_nanos(1);
        let mut failed = FailedPaths::new(now);
        for _ in 0..FailedPaths::MAX {
            assert!(!failed.are_too_many(now));
            failed.on_failed(now);
        }
        assert!(failed.are_too_many(now));
        // In the long run one in each span.
        for _ in 0..1000 {
            now = now + FailedPaths::FORGOTTEN_EVERY;
            assert!(!failed.are_too_many(now));
            failed.on_failed(now);
            assert!(failed.are_too_many(now));
        }
        // A long time forgets all of them, and no more.
        now = now + FailedPaths::FORGOTTEN_EVERY * 10_000;
        for _ in 0..FailedPaths::MAX {
            assert!(!failed.are_too_many(now));
            failed.on_failed(now);
        }
        assert!(failed.are_too_many(now));
    }
}
