//! Fewer acknowledgments than RFC 9000 recommends, as a rule of the receiver alone.

use core::time::Duration;

/// Fewer acknowledgments after the first packets of a connection, until an `ACK_FREQUENCY` frame sets other rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckDecimation {
    /// The rule applies from this many packet numbers above the first one received.
    pub after: u64,
    /// An acknowledgment is sent once this many ack-eliciting packets wait. Values below 1 count as 1.
    pub packets: u64,
    /// The longest delay, as a fraction of the minimum round-trip time: 4 for a quarter. 0 counts as 1. The delay is at
    /// least 1 ms and at most `max_ack_delay`.
    pub rtt_divisor: u32,
    /// This many packets are acknowledged at once after a new gap, before and after the rule applies.
    pub packets_after_gap: u64,
}

impl AckDecimation {
    /// The defaults of QUICHE, Chromium's QUIC stack: every tenth packet or after a quarter of the minimum round-trip
    /// time, from the 100th packet on (`quic_received_packet_manager.cc` and `quic_constants.h`:
    /// `kMinReceivedBeforeAckDecimation`, `kMaxRetransmittablePacketsBeforeAck`, `kPeerAckDecimationDelay`,
    /// `kMaxPacketsAfterNewMissing`).
    pub const CHROMIUM: Self = Self {
        after: 100,
        packets: 10,
        rtt_divisor: 4,
        packets_after_gap: 4,
    };
    /// `kAlarmGranularity` of QUICHE.
    const DELAY_MIN: Duration = Duration::from_millis(1);

    /// The delay of an acknowledgment, where `max_ack_delay` is `longest`.
    pub fn delay(&self, longest: Duration, min_rtt: Option<Duration>) -> Duration {
        let share = min_rtt.unwrap_or_default() / self.rtt_divisor.max(1);
        share.max(Self::DELAY_MIN).min(longest)
    }
}
