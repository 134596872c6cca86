//! `MAX_STREAMS` frames (RFC 9000 §19.11).

use super::{FrameErrorKind, FrameType, fields::Fields};
use crate::{Direction, Reader, StreamCount, VarInt};

/// Sets the number of streams of one type that the receiver of the frame may open (RFC 9000 §19.11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaxStreams {
    /// The type of streams.
    pub direction: Direction,
    /// The cumulative number of streams over the lifetime of the connection.
    pub maximum: StreamCount,
}

impl MaxStreams {
    pub(super) fn decode(
        reader: &mut Reader<'_>,
        direction: Direction,
    ) -> Result<Self, FrameErrorKind> {
        let maximum = StreamCount::new(reader.varint()?.get())
            .ok_or(FrameErrorKind::StreamCountAboveLimit)?;
        Ok(Self { direction, maximum })
    }

    pub(super) const fn frame_type(self) -> FrameType {
        match self.direction {
            Direction::Bidirectional => FrameType::MAX_STREAMS_BIDI,
            Direction::Unidirectional => FrameType::MAX_STREAMS_UNI,
        }
    }
}

impl Fields for MaxStreams {
    fn fields(&self) -> (FrameType, impl AsRef<[VarInt]>) {
        (self.frame_type(), [VarInt::from(self.maximum)])
    }
}
