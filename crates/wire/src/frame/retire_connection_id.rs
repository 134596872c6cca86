//! `RETIRE_CONNECTION_ID` frames (RFC 9000 §19.16).

use super::{FrameFault, FrameType, fields};
use crate::{BufferFull, Encode, Reader, VarInt, Writer};

/// One of the receiver's connection IDs will not be used any more (RFC 9000 §19.16).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetireConnectionId {
    /// Its sequence number (§5.1.1).
    pub sequence: VarInt,
}

impl RetireConnectionId {
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, FrameFault> {
        Ok(Self {
            sequence: reader.varint()?,
        })
    }

    fn fields(self) -> [VarInt; 1] {
        [self.sequence]
    }
}

impl Encode for RetireConnectionId {
    fn encoded_len(&self) -> usize {
        fields::encoded_len(FrameType::RETIRE_CONNECTION_ID, self.fields())
    }

    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), BufferFull> {
        fields::encode(writer, FrameType::RETIRE_CONNECTION_ID, self.fields())
    }
}
