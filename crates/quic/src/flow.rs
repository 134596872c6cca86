//! Flow control of one stream or of the whole connection, in both directions (RFC 9000 §4).
//!
//! Owns two counters: [`SendCredit`], which the peer raises, and [`ReceiveWindow`], which we raise as the application
//! consumes; and [`WindowBudget`], which bounds the growth of all windows of a process. None knows frames; the stream module writes `MAX_DATA`, `DATA_BLOCKED` and the like.
//!
//! Invariants: the peer may never send more than `consumed + window`, and a limit never decreases (§4.1).
//!
//! Decisions: a new limit is due when half the window is consumed, so that it arrives before the other half is used up,
//! unless the path is longer than the window; in that case the window grows. It doubles when half of it was used in
//! less than two round trips, up to its maximum: a window of four bandwidth-delay products never blocks a sender, and
//! idle or slow streams keep the small one. A blocked sender reports it once per limit (§4.1), and again only if that
//! frame was lost (§13.3).

use core::time::Duration;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use lastbyte_congestion::Time;
use lastbyte_wire::VarInt;

#[cfg(test)]
mod tests;

/// Sending credit: the peer's limit, and its use (RFC 9000 §4.1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SendCredit {
    /// Bytes from the start.
    limit: u64,
    /// Bytes from the start; never above `limit`.
    pub(crate) used: u64,
    /// The limit that was reported in a `DATA_BLOCKED` frame.
    reported: Option<u64>,
}

impl SendCredit {
    /// Credit up to `limit` bytes.
    #[must_use]
    pub const fn new(limit: u64) -> Self {
        Self {
            limit,
            used: 0,
            reported: None,
        }
    }

    /// Bytes that may be sent now.
    pub const fn available(&self) -> u64 {
        self.limit.saturating_sub(self.used)
    }

    /// The limit, in bytes from the start.
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// This many bytes were sent for the first time. Retransmitted ones do not count (§4.1).
    pub fn consume(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.available(), "sent beyond the peer's limit");
        self.used = self.used.saturating_add(bytes);
    }

    /// The peer announces a limit. One that is not higher is ignored, since frames can be reordered (§4.1). Returns
    /// whether it increased.
    pub fn raise(&mut self, limit: u64) -> bool {
        let rises = limit > self.limit;
        if rises {
            self.limit = limit;
        }
        rises
    }

    /// The limit for a `DATA_BLOCKED` frame, if nothing may be sent and this was not reported yet.
    pub fn blocked_to_send(&self) -> Option<u64> {
        (self.available() == 0 && self.reported != Some(self.limit)).then_some(self.limit)
    }

    /// A `DATA_BLOCKED` frame is sent.
    pub const fn on_blocked_sent(&mut self) {
        self.reported = Some(self.limit);
    }

    /// A `DATA_BLOCKED` frame was lost: it is sent again if it still applies (§13.3).
    pub const fn on_blocked_lost(&mut self) {
        self.reported = None;
    }

    /// Resets the credit: the peer rejected 0-RTT, so nothing counts as sent and no limit is known (RFC 9001 §4.6.2).
    pub fn restart(&mut self) {
        *self = Self::default();
    }
}

/// Receive window sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowSize {
    /// Initial window, announced in a transport parameter. 0 forbids data, since it is never raised.
    pub initial: u64,
    /// Maximum window. A value below `initial` counts as `initial`.
    ///
    /// It bounds the memory held for an application that does not read, in bytes.
    pub maximum: u64,
}

/// Bytes by which the windows of many connections may exceed their initial sizes, in total. Clones share them.
///
/// A connection gets no more than a sixteenth of what is left, so the next one can always grow as well. It keeps them until
/// it is dropped, since a limit is never lowered (RFC 9000 §4.1).
#[derive(Clone, Debug)]
pub struct WindowBudget {
    total: u64,
    used: Arc<AtomicU64>,
}

impl WindowBudget {
    /// The share of the remaining bytes that a connection may have.
    const PART: u64 = 16;

    /// A budget of this many bytes.
    #[must_use]
    pub fn new(total: u64) -> Self {
        Self {
            total,
            used: Arc::default(),
        }
    }

    /// Bytes in use.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }
}

impl PartialEq for WindowBudget {
    /// Whether they are clones of one.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.used, &other.used)
    }
}

impl Eq for WindowBudget {}

/// What a connection has of a [`WindowBudget`].
#[derive(Debug)]
pub struct WindowShare {
    budget: WindowBudget,
    bytes: u64,
}

impl WindowShare {
    /// Nothing yet.
    #[must_use]
    pub const fn new(budget: WindowBudget) -> Self {
        Self { budget, bytes: 0 }
    }

    /// Takes as many bytes as there are, at most `wanted`.
    pub fn take(&mut self, wanted: u64) -> u64 {
        let total = self.budget.total;
        let mut taken = 0;
        let take = |used: u64| {
            let most = total.saturating_sub(used) / WindowBudget::PART;
            taken = wanted.min(most.saturating_sub(self.bytes));
            Some(used + taken)
        };
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        let _ = self.budget.used.fetch_update(set, fetch, take);
        self.bytes += taken;
        taken
    }

    /// Returns bytes that were taken and not used.
    pub fn give_back(&mut self, bytes: u64) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        self.budget.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Drop for WindowShare {
    fn drop(&mut self) {
        self.give_back(self.bytes);
    }
}

/// The peer exceeded its limit (RFC 9000 §4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitExceeded;

/// Receiving credit: the announced limit, and the growth of the window (RFC 9000 §4.1, §4.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiveWindow {
    /// Bytes received, by their highest offset.
    pub(crate) received: u64,
    /// Bytes that the application has read or discarded.
    pub(crate) consumed: u64,
    /// The announced limit.
    limit: u64,
    /// The difference of `limit` and `consumed` when it is sent.
    size: u64,
    size_max: u64,
    /// When the last limit became due, or the first data arrived.
    since: Option<Time>,
    due: bool,
}

impl ReceiveWindow {
    /// A window that was announced in our transport parameters.
    #[must_use]
    pub fn new(size: WindowSize) -> Self {
        let initial = size.initial.min(VarInt::MAX.get());
        Self {
            received: 0,
            consumed: 0,
            limit: initial,
            size: initial,
            size_max: size.maximum.clamp(initial, VarInt::MAX.get()),
            since: None,
            due: false,
        }
    }

    /// This many new bytes arrived.
    ///
    /// # Errors
    ///
    /// Returns [`LimitExceeded`] if they exceed the limit: `FLOW_CONTROL_ERROR`.
    pub fn on_received(&mut self, bytes: u64, now: Time) -> Result<(), LimitExceeded> {
        let received = self.received.saturating_add(bytes);
        if received > self.limit {
            return Err(LimitExceeded);
        }
        self.received = received;
        self.since.get_or_insert(now);
        Ok(())
    }

    /// The application consumed or discarded this many bytes. Returns whether a new limit is due.
    pub fn on_consumed(&mut self, bytes: u64, now: Time, rtt: Duration) -> bool {
        self.on_consumed_within(bytes, now, rtt, |growth| growth)
    }

    /// As [`ReceiveWindow::on_consumed`], where the window grows by what `permit` returns of the growth it is given.
    pub fn on_consumed_within(
        &mut self,
        bytes: u64,
        now: Time,
        rtt: Duration,
        permit: impl FnOnce(u64) -> u64,
    ) -> bool {
        self.consumed = self.consumed.saturating_add(bytes);
        debug_assert!(self.consumed <= self.received, "consumed what never came");
        let is_half_gone = self.limit.saturating_sub(self.consumed) <= self.size / 2;
        if bytes > 0 && is_half_gone && !self.due {
            self.due = true;
            let is_fast = self
                .since
                .is_some_and(|since| now.since(since) < rtt.saturating_mul(2));
            let growth = self.size.min(self.size_max.saturating_sub(self.size));
            if is_fast && growth > 0 {
                self.size = self.size.saturating_add(permit(growth));
            }
            self.since = Some(now);
        }
        self.due
    }

    /// Whether a new limit should be announced.
    pub const fn is_due(&self) -> bool {
        self.due
    }

    /// The limit to announce now: never lower than the last.
    pub fn next_limit(&self) -> VarInt {
        VarInt::saturating(self.limit.max(self.consumed.saturating_add(self.size)))
    }

    /// [`ReceiveWindow::next_limit`] is sent.
    pub fn on_limit_sent(&mut self) {
        self.limit = self.next_limit().get();
        self.due = false;
    }

    /// An announcement was lost: the current limit must be announced (§13.3).
    pub const fn on_lost(&mut self) {
        self.due = true;
    }

    /// The last limit announced.
    pub const fn limit(&self) -> u64 {
        self.limit
    }
}
