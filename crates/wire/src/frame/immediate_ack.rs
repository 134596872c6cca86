//! `IMMEDIATE_ACK` frames (draft-ietf-quic-ack-frequency §5).

use super::{FrameType, fields::Fields};
use crate::VarInt;

/// Asks the peer for an immediate acknowledgment (draft-ietf-quic-ack-frequency §5). Send only to peers that sent
/// `min_ack_delay`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImmediateAck;

impl Fields for ImmediateAck {
    fn fields(&self) -> (FrameType, impl AsRef<[VarInt]>) {
        (FrameType::IMMEDIATE_ACK, [VarInt::ZERO; 0])
    }
}
