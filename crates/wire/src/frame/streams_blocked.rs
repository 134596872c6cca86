//! `STREAMS_BLOCKED` frames (RFC 9000 §19.14).

use super::{FrameErrorKind, FrameType, fields::Fields};
use crate::{Direction, Reader, StreamCount, VarInt};

/// The sender wishes to open a stream, but has reached the limit set by `MAX_STREAMS` (RFC 9000 §19.14).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamsBlocked {
    /// The type of streams.
    pub direction: Direction,
    /// The stream limit at which blocking occurred.
    pub limit: StreamCount,
}

impl StreamsBlocked {
    pub(super) fn decode(
        reader: &mut Reader<'_>,
        direction: Direction,
    ) -> Result<Self, FrameErrorKind> {
        let limit = StreamCount::new(reader.varint()?.get())
            .ok_or(FrameErrorKind::StreamCountAboveLimit)?;
        Ok(Self { direction, limit })
    }

    pub(super) const fn frame_type(self) -> FrameType {
        match self.direction {
            Direction::Bidirectional => FrameType::STREAMS_BLOCKED_BIDI,
            Direction::Unidirectional => FrameType::STREAMS_BLOCKED_UNI,
        }
    }
}

impl Fields for StreamsBlocked {
    fn fields(&self) -> (FrameType, impl AsRef<[VarInt]>) {
        (self.frame_type(), [VarInt::from(self.limit)])
    }
}
