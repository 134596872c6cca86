//! `STREAM_DATA_BLOCKED` frames (RFC 9000 §19.13).

use super::{FrameErrorKind, FrameType, fields::Fields};
use crate::{Reader, StreamId, VarInt};

/// The sender has data to send, but is blocked by stream-level flow control (RFC 9000 §19.13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamDataBlocked {
    /// The blocked stream.
    pub stream_id: StreamId,
    /// The stream-level limit at which blocking occurred, in bytes.
    pub limit: VarInt,
}

impl StreamDataBlocked {
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, FrameErrorKind> {
        Ok(Self {
            stream_id: reader.varint()?.into(),
            limit: reader.varint()?,
        })
    }
}

impl Fields for StreamDataBlocked {
    fn fields(&self) -> (FrameType, impl AsRef<[VarInt]>) {
        (
            FrameType::STREAM_DATA_BLOCKED,
            [self.stream_id.into(), self.limit],
        )
    }
}
