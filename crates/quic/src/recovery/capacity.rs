//! The capacity of a path, observed for a later connection (RFC 9959 §3.1).
//!
//! `saved_cwnd` is the largest number of bytes that were acknowledged in a round trip, scaled from the length of that round trip,
//! which a queue may have extended, to the minimum round-trip time: a queue is not capacity (§4.1). It is offered once it is
//! four initial windows (§3.1), and again whenever it has doubled, so that a connection saves it a few times only.

use lastbyte_congestion::{Rtt, SavedPath, Time};

/// An observed path.
#[derive(Clone, Debug)]
pub(super) struct Capacity {
    /// When the present round trip started, and how many bytes had been acknowledged by then.
    round: Option<(Time, u64)>,
    window: u64,
    /// The window that is offered next.
    next_offer: u64,
    /// The last offer.
    offered: Option<(Time, SavedPath)>,
}

impl Capacity {
    /// Nothing is known of the path; `initial` is the initial window.
    pub(super) const fn new(initial: u64) -> Self {
        Self {
            round: None,
            window: 0,
            next_offer: initial.saturating_mul(4),
            offered: None,
        }
    }

    /// An ACK frame was processed; `acked` bytes are acknowledged so far.
    pub(super) fn on_ack(&mut self, now: Time, acked: u64, rtt: &Rtt) {
        let Some((start, before)) = self.round else {
            self.round = Some((now, acked));
            return;
        };
        let elapsed = now.since(start);
        if elapsed.is_zero() || elapsed < rtt.smoothed() {
            return;
        }
        let bytes = u128::from(acked.saturating_sub(before));
        let window = bytes.saturating_mul(rtt.min().as_nanos()) / elapsed.as_nanos();
        self.window = self.window.max(u64::try_from(window).unwrap_or(u64::MAX));
        self.round = Some((now, acked));
    }

    /// The measurements to save, if they are worth saving now.
    pub(super) fn take_offer(&mut self, now: Time, rtt: &Rtt) -> Option<SavedPath> {
        if self.window < self.next_offer {
            return None;
        }
        self.next_offer = self.window.saturating_mul(2);
        let saved = SavedPath {
            window: self.window,
            rtt: rtt.min(),
        };
        self.offered = Some((now, saved));
        Some(saved)
    }

    /// The last offer, and when it was taken.
    pub(super) const fn offered(&self) -> Option<(Time, SavedPath)> {
        self.offered
    }
}

#[cfg(test)]
mod tests;
