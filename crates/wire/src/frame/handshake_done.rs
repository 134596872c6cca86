//! `HANDSHAKE_DONE` frames (RFC 9000 §19.20).

use super::{FrameType, fields::Fields};
use crate::VarInt;

/// Confirms the handshake; sent only by servers (RFC 9000 §19.20).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandshakeDone;

impl Fields for HandshakeDone {
    fn fields(&self) -> (FrameType, impl AsRef<[VarInt]>) {
        (FrameType::HANDSHAKE_DONE, [VarInt::ZERO; 0])
    }
}
