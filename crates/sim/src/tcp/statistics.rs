//! Counters of an end.

/// Counters of an end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Segments sent, including those without payload.
    pub segments_sent: u64,
    /// Payload sent, including retransmissions, in bytes.
    pub bytes_sent: u64,
    /// Payload retransmitted, in bytes.
    pub bytes_retransmitted: u64,
    /// Segments declared lost.
    pub segments_lost: u64,
    /// Expiries of the retransmission timer.
    pub retransmission_timeouts: u64,
    /// Tail loss probes sent.
    pub tail_loss_probes: u64,
}
