//! `ACK_FREQUENCY` frames (draft-ietf-quic-ack-frequency §4).

use super::{FrameFault, FrameType, fields};
use crate::{BufferFull, Encode, Reader, VarInt, Writer};

/// Asks the peer to acknowledge more or less often (draft-ietf-quic-ack-frequency §4). Only for peers that sent
/// `min_ack_delay`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckFrequency {
    /// Increases with each frame sent, so that older ones that come late are ignored.
    pub sequence: VarInt,
    /// How many ack-eliciting packets may come without being acknowledged: one more is to be answered. 1 is the default
    /// of RFC 9000, 0 asks for an answer to each.
    pub ack_eliciting_threshold: VarInt,
    /// How long an acknowledgment may be delayed, in microseconds. Below 2^14 milliseconds; also not below the peer's
    /// `min_ack_delay`, which is the receiver's to check.
    pub max_ack_delay_us: VarInt,
    /// How much reordering is to be answered at once. 1 is the default of RFC 9000, 0 means none.
    pub reordering_threshold: VarInt,
}

/// `max_ack_delay` has to be less than 2^14 milliseconds (RFC 9000 §18.2).
const MAX_ACK_DELAY_US_END: u64 = (1 << 14) * 1000;

impl AckFrequency {
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, FrameFault> {
        let frame = Self {
            sequence: reader.varint()?,
            ack_eliciting_threshold: reader.varint()?,
            max_ack_delay_us: reader.varint()?,
            reordering_threshold: reader.varint()?,
        };
        if frame.max_ack_delay_us.get() >= MAX_ACK_DELAY_US_END {
            return Err(FrameFault::MaxAckDelayAboveLimit);
        }
        Ok(frame)
    }

    const fn fields(self) -> [VarInt; 4] {
        [
            self.sequence,
            self.ack_eliciting_threshold,
            self.max_ack_delay_us,
            self.reordering_threshold,
        ]
    }
}

impl Encode for AckFrequency {
    fn encoded_len(&self) -> usize {
        fields::encoded_len(FrameType::ACK_FREQUENCY, self.fields())
    }

    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), BufferFull> {
        fields::encode(writer, FrameType::ACK_FREQUENCY, self.fields())
    }
}
