//! `DATA_BLOCKED` frames (RFC 9000 §19.12).

use super::{FrameErrorKind, FrameType, fields};
use crate::{BufferFull, Encode, Reader, VarInt, Writer};

/// The sender has data to send, but is blocked by connection-level flow control (RFC 9000 §19.12).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataBlocked {
    /// The connection-level limit at which blocking occurred, in bytes.
    pub limit: VarInt,
}

impl DataBlocked {
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, FrameErrorKind> {
        Ok(Self {
            limit: reader.varint()?,
        })
    }

    fn fields(self) -> [VarInt; 1] {
        [self.limit]
    }
}

impl Encode for DataBlocked {
    fn encoded_len(&self) -> usize {
        fields::encoded_len(FrameType::DATA_BLOCKED, self.fields())
    }

    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), BufferFull> {
        fields::encode(writer, FrameType::DATA_BLOCKED, self.fields())
    }
}
