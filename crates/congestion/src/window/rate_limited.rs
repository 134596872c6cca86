//! The largest number of bytes in flight, by which growth is limited while the sender is rate-limited
//! (draft-ietf-ccwg-ratelimited-increase-11).
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
//! - The limit ends growth and never lowers the window: §3 says "when increasing cwnd", though its formulas by themselves would
//!   reduce the window once more after a reduction, when maxFS is the first flight measured, which may be small.
//! - CUBIC's clock stops while the limit prevents growth (§4.5; RFC 9438 §4.2 and §5.8).
//! - §3.2.1, about rate-based controllers, is not applied to BBR and C4, which have rules of their own.

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
