//! `ACK_FREQUENCY` frames (draft-ietf-quic-ack-frequency §4).

use super::{FrameErrorKind, FrameType, fields::Fields};
use crate::{Reader, VarInt};

/// Asks the peer to change how often it acknowledges (draft-ietf-quic-ack-frequency §4). Send only to peers that sent
/// `min_ack_delay`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckFrequency {
    /// Increases with each frame sent, so that the receiver can ignore reordered older frames.
    pub sequence: VarInt,
    /// The number of ack-eliciting packets the receiver may receive without sending an acknowledgment; the next one
    /// triggers one. 1 is the default of RFC 9000, 0 acknowledges every packet immediately.
    pub ack_eliciting_threshold: VarInt,
    /// The maximum acknowledgment delay in microseconds, below 2^14 ms. That it is at least the receiver's own
    /// `min_ack_delay` is for the receiver to check.
    pub max_ack_delay_us: VarInt,
    /// The reordering, in packets, that triggers an immediate acknowledgment. 1 is the default of RFC 9000; 0 means
    /// that reordering triggers none.
    pub reordering_threshold: VarInt,
}

/// Exclusive upper bound of the delay: `max_ack_delay` must be less than 2^14 ms (RFC 9000 §18.2).
const MAX_ACK_DELAY_US_END: u64 = (1 << 14) * 1000;

impl AckFrequency {
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, FrameErrorKind> {
        let frame = Self {
            sequence: reader.varint()?,
            ack_eliciting_threshold: reader.varint()?,
            max_ack_delay_us: reader.varint()?,
            reordering_threshold: reader.varint()?,
        };
        if frame.max_ack_delay_us.get() >= MAX_ACK_DELAY_US_END {
            return Err(FrameErrorKind::MaxAckDelayAboveLimit);
        }
        Ok(frame)
    }
}

impl Fields for AckFrequency {
    fn fields(&self) -> (FrameType, impl AsRef<[VarInt]>) {
        (
            FrameType::ACK_FREQUENCY,
            [
                self.sequence,
                self.ack_eliciting_threshold,
                self.max_ack_delay_us,
                self.reordering_threshold,
            ],
        )
    }
}
