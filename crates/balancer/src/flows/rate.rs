//! The rate of new flows: a token bucket of two seconds, counted in time.

use lastbyte_units::Time;

pub(super) const SECOND: u64 = 1_000_000_000;
/// How much may be saved, in nanoseconds.
const SAVED_MAX: u64 = 2 * SECOND;

#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    /// Nanoseconds for each flow.
    interval: u64,
    /// When the next flow is due at this rate. In the past, if time was saved.
    due: Time,
}

impl Rate {
    pub(super) const fn new(interval: u64) -> Self {
        Self {
            interval,
            due: Time::ZERO,
        }
    }

    /// Whether at least this time is saved.
    pub(super) fn has(&self, now: Time, nanos: u64) -> bool {
        self.due.plus(nanos) <= now
    }

    /// Counts a flow if at least `kept` nanoseconds are saved.
    pub(super) fn take(&mut self, now: Time, kept: u64) -> bool {
        let oldest = now.as_nanos().saturating_sub(SAVED_MAX);
        let due = self.due.max(Time::from_nanos(oldest));
        let is_permitted = due.plus(kept) <= now;
        if is_permitted {
            self.due = due.plus(self.interval);
        }
        is_permitted
    }
}
