//! `DATA_BLOCKED` frames (RFC 9000 §19.12).

use super::{FrameErrorKind, FrameType, fields::Fields};
use crate::{Reader, VarInt};

/// The sender has data to send, but is blocked by connection-level flow control (RFC 9000 §19.12).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataBlocked {
    /// The connection-level limit at which blocking occurred, in bytes.
    pub limit: VarInt,
}

impl DataBlocked {
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, FrameErrorKind> {
        Ok(Self {
            limit: reader.varint()?,
        })
    }
}

impl Fields for DataBlocked {
    fn fields(&self) -> (FrameType, impl AsRef<[VarInt]>) {
        (FrameType::DATA_BLOCKED, [self.limit])
    }
}
