//! PING frames (RFC 9000 §19.2).

use super::{FrameType, fields::Fields};
use crate::VarInt;

/// Elicits an acknowledgment and carries no data (RFC 9000 §19.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ping;

impl Fields for Ping {
    fn fields(&self) -> (FrameType, impl AsRef<[VarInt]>) {
        (FrameType::PING, [VarInt::ZERO; 0])
    }
}
