//! The largest number of bytes in flight, by which growth is limited while the sender is rate-limited
//! (draft-ietf-ccwg-ratelimited-increase-09).
//!
//! ```text
//! maxFS = initial window at the start; max(FlightSize, maxFS) with each packet sent; 0 at each reduction       §3
//! cwnd  ≤ limit(maxFS)                                                                                         §3
//! limit(maxFS) = 2 × maxFS in slow start, maxFS + one datagram in congestion avoidance of Reno                  §3
//! ```
//!
//! Decisions:
//! - `limit` of a startup is its factor per round trip, as its pacing gain gives it: 3 for Rapid Start. `limit` of CUBIC is 1.5 ×
//!   maxFS, since its target is at most 1.5 windows (RFC 9438 §4.4).
//! - The limit ends growth and never lowers the window, as in the example of the draft's appendix (`if (cwnd < 2 * maxFS)`).
//!   After a reduction, maxFS is the first flight measured, which may be small; the formulas of §3 by themselves would then
//!   reduce the window once more.
//! - CUBIC's clock stops while the limit prevents growth (RFC 9438 §4.2).
//! - The text is that of the draft's editors' copy after revision 03, whose rule and examples are those of 09 as far as known.

/// `maxFS`, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct MaxFlight(u64);

impl MaxFlight {
    /// `initial` is the initial window.
    pub(super) const fn new(initial: u64) -> Self {
        Self(initial)
    }

    pub(super) const fn bytes(self) -> u64 {
        self.0
    }

    pub(super) fn on_sent(&mut self, in_flight: u64) {
        self.0 = self.0.max(in_flight);
    }

    /// The window was reduced, for any reason.
    pub(super) fn on_reduction(&mut self) {
        self.0 = 0;
    }
}

#[cfg(test)]
mod tests;
