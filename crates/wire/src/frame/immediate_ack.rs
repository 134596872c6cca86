//! `IMMEDIATE_ACK` frames (draft-ietf-quic-ack-frequency §5).

use super::{FrameType, fields};
use crate::{BufferFull, Encode, Writer};

/// Asks the peer for an immediate acknowledgment (draft-ietf-quic-ack-frequency §5). Send only to peers that sent
/// `min_ack_delay`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImmediateAck;

impl Encode for ImmediateAck {
    fn encoded_len(&self) -> usize {
        fields::encoded_len(FrameType::IMMEDIATE_ACK, [])
    }

    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), BufferFull> {
        fields::encode(writer, FrameType::IMMEDIATE_ACK, [])
    }
}
