//! `RESET_STREAM` frames (RFC 9000 §19.4).

use super::{FrameErrorKind, FrameType, fields::Fields};
use crate::{Reader, StreamId, VarInt};

/// Abruptly terminates the sending part of a stream (RFC 9000 §19.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResetStream {
    /// The stream being terminated.
    pub stream_id: StreamId,
    /// The application error code (§20.2).
    pub error_code: VarInt,
    /// The final size of the stream in bytes (§4.5).
    pub final_size: VarInt,
}

impl ResetStream {
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, FrameErrorKind> {
        Ok(Self {
            stream_id: reader.varint()?.into(),
            error_code: reader.varint()?,
            final_size: reader.varint()?,
        })
    }
}

impl Fields for ResetStream {
    fn fields(&self) -> (FrameType, impl AsRef<[VarInt]>) {
        (
            FrameType::RESET_STREAM,
            [self.stream_id.into(), self.error_code, self.final_size],
        )
    }
}
