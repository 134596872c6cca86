//! `RETIRE_CONNECTION_ID` frames (RFC 9000 §19.16).

use super::{FrameErrorKind, FrameType, fields};
use crate::{BufferFull, Encode, Reader, VarInt, Writer};

/// The sender no longer uses one of the connection IDs issued by the receiver (RFC 9000 §19.16).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetireConnectionId {
    /// The sequence number of the retired connection ID (§5.1.1).
    pub sequence: VarInt,
}

impl RetireConnectionId {
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, FrameErrorKind> {
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
