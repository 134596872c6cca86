//! `STOP_SENDING` frames (RFC 9000 §19.5).

use super::{FrameErrorKind, FrameType, fields};
use crate::{BufferFull, Encode, Reader, StreamId, VarInt, Writer};

/// Asks the peer to stop sending on a stream (RFC 9000 §19.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StopSending {
    /// The stream that is no longer read.
    pub stream_id: StreamId,
    /// The application error code (§20.2).
    pub error_code: VarInt,
}

impl StopSending {
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, FrameErrorKind> {
        Ok(Self {
            stream_id: reader.varint()?.into(),
            error_code: reader.varint()?,
        })
    }

    fn fields(self) -> [VarInt; 2] {
        [self.stream_id.into(), self.error_code]
    }
}

impl Encode for StopSending {
    fn encoded_len(&self) -> usize {
        fields::encoded_len(FrameType::STOP_SENDING, self.fields())
    }

    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), BufferFull> {
        fields::encode(writer, FrameType::STOP_SENDING, self.fields())
    }
}
