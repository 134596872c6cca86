//! PING frames (RFC 9000 §19.2).

use super::{FrameType, fields};
use crate::{BufferFull, Encode, Writer};

/// Elicits an acknowledgment and carries no data (RFC 9000 §19.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ping;

impl Encode for Ping {
    fn encoded_len(&self) -> usize {
        fields::encoded_len(FrameType::PING, [])
    }

    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), BufferFull> {
        fields::encode(writer, FrameType::PING, [])
    }
}
