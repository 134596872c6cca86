//! `MAX_STREAM_DATA` frames (RFC 9000 §19.10).

use super::{FrameErrorKind, FrameType, fields::Fields};
use crate::{Reader, StreamId, VarInt};

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
}

impl Fields for MaxStreamData {
    fn fields(&self) -> (FrameType, impl AsRef<[VarInt]>) {
        (
            FrameType::MAX_STREAM_DATA,
            [self.stream_id.into(), self.maximum],
        )
    }
}
