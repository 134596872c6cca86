//! `MAX_STREAM_DATA` frames (RFC 9000 §19.10).

use super::{FrameErrorKind, FrameType, fields};
use crate::{BufferFull, Encode, Reader, StreamId, VarInt, Writer};

/// Sets the flow control limit of a stream (RFC 9000 §19.10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaxStreamData {
    /// The affected stream.
    pub stream_id: StreamId,
    /// The maximum number of bytes on the stream over its lifetime.
    pub maximum: VarInt,
}

impl MaxStreamData {
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, FrameErrorKind> {
        Ok(Self {
            stream_id: reader.varint()?.into(),
            maximum: reader.varint()?,
        })
    }

    fn fields(self) -> [VarInt; 2] {
        [self.stream_id.into(), self.maximum]
    }
}

impl Encode for MaxStreamData {
    fn encoded_len(&self) -> usize {
        fields::encoded_len(FrameType::MAX_STREAM_DATA, self.fields())
    }

    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), BufferFull> {
        fields::encode(writer, FrameType::MAX_STREAM_DATA, self.fields())
    }
}
