//! `STOP_SENDING` frames (RFC 9000 §19.5).

use super::{FrameErrorKind, FrameType, fields::Fields};
use crate::{Reader, StreamId, VarInt};

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
}

impl Fields for StopSending {
    fn fields(&self) -> (FrameType, impl AsRef<[VarInt]>) {
        (
            FrameType::STOP_SENDING,
            [self.stream_id.into(), self.error_code],
        )
    }
}
