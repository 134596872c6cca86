//! `MAX_STREAMS` frames (RFC 9000 §19.11).

use super::{FrameErrorKind, FrameType, fields};
use crate::{BufferFull, Direction, Encode, Reader, StreamCount, Writer};

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

impl Encode for MaxStreams {
    fn encoded_len(&self) -> usize {
        fields::encoded_len(self.frame_type(), [self.maximum.into()])
    }

    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), BufferFull> {
        fields::encode(writer, self.frame_type(), [self.maximum.into()])
    }
}
