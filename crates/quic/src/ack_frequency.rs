//! Requesting less frequent acknowledgments from the peer (draft-ietf-quic-ack-frequency §4 to §6).
//!
//! A startup detects queues from frequent acknowledgments, so nothing is requested before the first loss episode has
//! ended it. From then on about eight acknowledgments a round trip are sufficient, and at most ten packets stay
//! unacknowledged. The peer's `max_ack_delay` is not changed.

use core::time::Duration;

use lastbyte_congestion::Time;
use lastbyte_wire::{
    BufferFull, Encode, VarInt, Writer,
    frame::{AckFrequency, ImmediateAck},
};

use crate::receipt::Receipt;

#[cfg(test)]
mod tests;

/// The requests to the peer.
#[derive(Clone, Debug, Default)]
pub struct AckFrequencyOut {
    /// The peer's `max_ack_delay`, if it supports the frames.
    max_ack_delay: Option<Duration>,
    next_sequence: u64,
    requested: Option<Request>,
    is_to_send: bool,
    updated_at: Option<Time>,
}

/// The content of one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Request {
    /// Maximum number of unacknowledged ack-eliciting packets.
    threshold: u64,
    /// The reordering threshold; 0 for none.
    reordering: u64,
}

/// The path state from which a request is computed.
#[derive(Clone, Copy, Debug)]
pub struct PathState {
    /// The congestion window, in datagrams.
    pub window_packets: u64,
    /// Number of window reductions.
    pub loss_episodes: u64,
    /// The packet threshold of loss detection; `None` if it is no longer used.
    pub packet_threshold: Option<u64>,
    /// The probe timeout.
    pub probe_timeout: Duration,
}

impl AckFrequencyOut {
    /// Maximum number of packets that stay unacknowledged.
    pub const THRESHOLD_MAX: u64 = 10;
    /// Acknowledgments requested per round trip.
    const ACKS_PER_ROUND: u64 = 8;
    /// A smaller threshold is not worth a frame: the peer's default is 1.
    const THRESHOLD_MIN: u64 = 3;
    /// The number of probe timeouts after which a request is reconsidered.
    const PAUSE_TIMEOUTS: u32 = 4;

    /// The peer's parameters: whether it supports the frames, and its `max_ack_delay`.
    pub fn on_peer_parameters(&mut self, takes: bool, max_ack_delay: Duration) {
        self.max_ack_delay = takes.then_some(max_ack_delay);
    }

    /// Whether the peer supports `ACK_FREQUENCY` and `IMMEDIATE_ACK` frames.
    pub const fn is_allowed(&self) -> bool {
        self.max_ack_delay.is_some()
    }

    /// Whether it is time to reconsider the request.
    pub fn is_due(&self, now: Time, probe_timeout: Duration) -> bool {
        self.is_allowed()
            && self
                .updated_at
                .is_none_or(|at| now >= at + probe_timeout * Self::PAUSE_TIMEOUTS)
    }

    /// Reconsiders the request.
    pub fn update(&mut self, now: Time, path: &PathState) {
        if !self.is_due(now, path.probe_timeout) {
            return;
        }
        self.updated_at = Some(now);
        if path.loss_episodes == 0 {
            return;
        }
        let threshold = (path.window_packets / Self::ACKS_PER_ROUND).min(Self::THRESHOLD_MAX);
        let request = Request {
            threshold: if threshold < Self::THRESHOLD_MIN {
                1
            } else {
                threshold
            },
            reordering: path.packet_threshold.unwrap_or(0),
        };
        let default = Request {
            threshold: 1,
            reordering: request.reordering,
        };
        if request != self.requested.unwrap_or(default) {
            self.requested = Some(request);
            self.is_to_send = true;
        }
    }

    /// The connection uses another path, where the peer starts with its defaults (draft §7).
    pub fn on_new_path(&mut self) {
        self.is_to_send = self.requested.is_some();
    }

    /// Whether a frame is pending.
    pub const fn wants_to_send(&self) -> bool {
        self.is_to_send
    }

    /// Writes the frame, if one is pending and fits.
    pub fn write_frames(&mut self, writer: &mut Writer<'_>, receipts: &mut impl FnMut(Receipt)) {
        let (true, Some(request), Some(max_ack_delay)) =
            (self.is_to_send, self.requested, self.max_ack_delay)
        else {
            return;
        };
        let micros = u64::try_from(max_ack_delay.as_micros()).unwrap_or(u64::MAX);
        let frame = AckFrequency {
            sequence: VarInt::saturating(self.next_sequence),
            ack_eliciting_threshold: VarInt::saturating(request.threshold),
            max_ack_delay_us: VarInt::saturating(micros),
            reordering_threshold: VarInt::saturating(request.reordering),
        };
        if frame.encode(writer) != Err(BufferFull) {
            receipts(Receipt::AckFrequency(self.next_sequence));
            self.next_sequence += 1;
            self.is_to_send = false;
        }
    }

    /// Requests an immediate acknowledgment of this packet, if the peer supports it (draft §5).
    pub fn write_immediate_ack(&self, writer: &mut Writer<'_>) {
        if self.is_allowed() {
            // Without room for the frame, the acknowledgment is merely later.
            let _ = ImmediateAck.encode(writer);
        }
    }

    /// The packet with the frame of this sequence number was lost: it is sent again, unless a later one was sent.
    pub fn on_lost(&mut self, sequence: u64) {
        self.is_to_send |= sequence + 1 == self.next_sequence;
    }
}
