//! Periodic updates of an AQM, computed when the queue is used.
//!
//! A link has no timers. Between two operations of a queue its packets do not change, so what a periodic update finds is
//! known later, and updates that are due are made up for before the next operation.

use core::time::Duration;

use lastbyte_units::nanos;

use crate::Time;

#[cfg(test)]
mod tests;

/// Updates that are made up for at once. If more are due, because the queue was unused or stalled for long, the others are
/// skipped: by then the state of an AQM has settled.
const UPDATES_MAX: u32 = 4096;

/// The times of a periodic update.
#[derive(Clone, Copy, Debug)]
pub(super) struct Updates {
    period: u64,
    next: Time,
}

impl Updates {
    /// An update each `period`, longer than zero; the first one period after the epoch.
    pub(super) const fn new(period: Duration) -> Self {
        Self {
            period: nanos(period),
            next: Time::from_nanos(nanos(period)),
        }
    }

    /// Calls `update` with the delay of the queue in seconds, for each time that is due at or before `now`. `head` is when the
    /// packet at the front was queued. `update` returns whether the next call with the same delay would change anything.
    pub(super) fn on_delay(
        &mut self,
        now: Time,
        head: Option<Time>,
        mut update: impl FnMut(f64) -> bool,
    ) {
        self.catch_up(now, |at| {
            // Nothing changes any more if the queue is empty; otherwise its head still ages.
            let delay = head.map_or(0.0, |since| at.since(since).as_secs_f64());
            update(delay) || head.is_some()
        });
    }

    /// Calls `update` for each time that is due at or before `now`, until it returns `false`: then it would change nothing
    /// until the queue is used.
    fn catch_up(&mut self, now: Time, mut update: impl FnMut(Time) -> bool) {
        let mut left = UPDATES_MAX;
        while self.next <= now && self.next < Time::MAX {
            let at = self.next;
            self.next = at.plus(self.period);
            left -= 1;
            if !update(at) || left == 0 {
                let periods = now.nanos_since(self.next) / self.period;
                if self.next <= now {
                    self.next = self
                        .next
                        .plus(periods.saturating_add(1).saturating_mul(self.period));
                }
                return;
            }
        }
    }
}
