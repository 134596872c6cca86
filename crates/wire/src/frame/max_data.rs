//! `MAX_DATA` frames (RFC 9000 §19.9).

use super::{FrameErrorKind, FrameType, fields};
use crate::{BufferFull, Encode, Reader, VarInt, Writer};

/// Sets the connection-level flow control limit (RFC 9000 §19.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaxData {
    /// The maximum number of bytes on all streams over the lifetime of the connection.
    pub maximum: VarInt,
}

impl MaxData {
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, FrameErrorKind> {
        Ok(Self {
            maximum: reader.varint()?,
        })
    }

    fn fields(self) -> [VarInt; 1] {
        [self.maximum]
    }
}

impl Encode for MaxData {
    fn encoded_len(&self) -> usize {
        fields::encoded_len(FrameType::MAX_DATA, self.fields())
    }

    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), BufferFull> {
        fields::encode(writer, FrameType::MAX_DATA, self.fields())
    }
}
