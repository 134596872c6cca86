//! Flow control, of one stream or of the whole connection: how much we may send, how much the peer may (RFC 9000 §4).
//!
//! Owns two counters: [`SendCredit`], which the peer raises, and [`ReceiveWindow`], which we raise as the application
//! consumes. Neither knows frames; the stream module writes `MAX_DATA`, `DATA_BLOCKED` and their like from what they say.
//!
//! It must never let the peer send more than `consumed + window`, nor take a limit back (§4.1).
//!
//! Decisions: a new limit is due when half the window is consumed, so that it arrives before the other half is, unless
//! the path is longer than the window; then the window itself grows. It doubles when half of it went in less than two
//! round trips, up to its maximum: a window of four bandwidth-delay products never holds a sender up, and idle or slow
//! streams keep the small one. A blocked sender says so once per limit (§4.1), again only if that was lost (§13.3).

use core::time::Duration;

use lastbyte_congestion::Time;
use lastbyte_wire::VarInt;

#[cfg(test)]
mod tests;

/// How much we may send: the peer's limit, and what of it is used (RFC 9000 §4.1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SendCredit {
    /// Bytes, counted from the beginning.
    limit: u64,
    /// Bytes, counted from the beginning; never above `limit`.
    used: u64,
    /// The limit for which the peer was told that we are blocked.
    told: Option<u64>,
}

impl SendCredit {
    /// Credit up to `limit` bytes.
    #[must_use]
    pub const fn new(limit: u64) -> Self {
        Self {
            limit,
            used: 0,
            told: None,
        }
    }

    /// How many bytes may be sent now.
    #[must_use]
    pub const fn available(&self) -> u64 {
        self.limit.saturating_sub(self.used)
    }

    /// The limit, in bytes since the beginning.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// What was sent, in bytes since the beginning.
    #[must_use]
    pub const fn used(&self) -> u64 {
        self.used
    }

    /// This many bytes were sent for the first time. Retransmitted ones do not count (§4.1).
    pub fn consume(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.available(), "sent beyond the peer's limit");
        self.used = self.used.saturating_add(bytes);
    }

    /// The peer names a limit. One that is not higher is ignored, as frames are reordered (§4.1). Returns whether it rose.
    pub fn raise(&mut self, limit: u64) -> bool {
        let rises = limit > self.limit;
        if rises {
            self.limit = limit;
        }
        rises
    }

    /// The limit to put into a `DATA_BLOCKED` frame, if nothing may be sent and the peer was not told so.
    #[must_use]
    pub fn blocked_to_tell(&self) -> Option<u64> {
        (self.available() == 0 && self.told != Some(self.limit)).then_some(self.limit)
    }

    /// The peer is being told that we are blocked.
    pub const fn on_blocked_told(&mut self) {
        self.told = Some(self.limit);
    }

    /// What told it was lost: it is to be said again, if it still holds (§13.3).
    pub const fn on_blocked_lost(&mut self) {
        self.told = None;
    }

    /// All that was sent counts as not sent, and no limit is known: the peer rejected 0-RTT (RFC 9001 §4.6.2).
    pub fn restart(&mut self) {
        *self = Self::default();
    }
}

/// How large a receive window is, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowSize {
    /// To begin with; the peer learns it as a transport parameter. 0 forbids data until it is raised, which it never is.
    pub initial: u64,
    /// What it may grow to. Below `initial` it counts as `initial`.
    ///
    /// The memory that can be held for an application that does not read, in bytes.
    pub maximum: u64,
}

/// The peer sent more than it may (RFC 9000 §4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitExceeded;

/// How much the peer may send: the limit it was told, and how the window behind it grows (RFC 9000 §4.1, §4.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiveWindow {
    /// Bytes received, by their highest offset.
    received: u64,
    /// Bytes the application has taken or given up.
    consumed: u64,
    /// The limit the peer was told.
    limit: u64,
    /// How far `limit` exceeds `consumed` when it is sent.
    size: u64,
    size_max: u64,
    /// When the last limit became due, or the first data came.
    since: Option<Time>,
    due: bool,
}

impl ReceiveWindow {
    /// A window that the peer knows of by our transport parameters.
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

    /// This many bytes beyond those seen before arrived.
    ///
    /// # Errors
    ///
    /// They go beyond the limit: `FLOW_CONTROL_ERROR`.
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
        self.consumed = self.consumed.saturating_add(bytes);
        debug_assert!(self.consumed <= self.received, "consumed what never came");
        let is_half_gone = self.limit.saturating_sub(self.consumed) <= self.size / 2;
        if bytes > 0 && is_half_gone && !self.due {
            self.due = true;
            let is_fast = self
                .since
                .is_some_and(|since| now.since(since) < rtt.saturating_mul(2));
            if is_fast {
                self.size = self.size.saturating_mul(2).min(self.size_max);
            }
            self.since = Some(now);
        }
        self.due
    }

    /// Whether the peer should be told a new limit.
    #[must_use]
    pub const fn is_due(&self) -> bool {
        self.due
    }

    /// The limit the peer should be told now: never lower than the last.
    #[must_use]
    pub fn next_limit(&self) -> VarInt {
        VarInt::saturating(self.limit.max(self.consumed.saturating_add(self.size)))
    }

    /// The peer is being told [`ReceiveWindow::next_limit`].
    pub fn on_told(&mut self) {
        self.limit = self.next_limit().get();
        self.due = false;
    }

    /// What told a limit was lost: the newest is to be told (§13.3).
    pub const fn on_lost(&mut self) {
        self.due = true;
    }

    /// Bytes received, by their highest offset.
    #[must_use]
    pub const fn received(&self) -> u64 {
        self.received
    }

    /// Bytes the application has taken or given up.
    #[must_use]
    pub const fn consumed(&self) -> u64 {
        self.consumed
    }

    /// The limit the peer was told last.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// The size of the window now, in bytes.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }
}
