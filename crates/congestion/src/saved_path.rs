//! What one connection saves of a path for the next (RFC 9959).

use core::time::Duration;

/// Congestion control parameters of a path, saved for a later connection: those of Careful Resume (RFC 9959 §3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavedPath {
    /// `saved_cwnd`: how many bytes were acknowledged in a round trip.
    pub window: u64,
    /// `saved_rtt`: the minimum round-trip time at that time.
    pub rtt: Duration,
}

impl SavedPath {
    /// Whether a minimum round-trip time may be of the path for which these were saved (RFC 9959 §4.2.1).
    pub(crate) fn is_of_path(&self, rtt: Duration) -> bool {
        rtt > self.rtt / 2 && rtt <= self.rtt.saturating_mul(10)
    }
}
