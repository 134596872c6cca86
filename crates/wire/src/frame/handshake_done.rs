//! `HANDSHAKE_DONE` frames (RFC 9000 §19.20).

use super::{FrameType, fields};
use crate::{BufferFull, Encode, Writer};

/// Confirms the handshake; sent only by servers (RFC 9000 §19.20).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandshakeDone;

impl Encode for HandshakeDone {
    fn encoded_len(&self) -> usize {
        fields::encoded_len(FrameType::HANDSHAKE_DONE, [])
    }

    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), BufferFull> {
        fields::encode(writer, FrameType::HANDSHAKE_DONE, [])
    }
}
