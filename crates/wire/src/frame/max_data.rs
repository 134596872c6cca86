//! `MAX_DATA` frames (RFC 9000 §19.9).

use super::{FrameErrorKind, FrameType, fields::Fields};
use crate::{Reader, VarInt};

/// Sets the connection-level flow control limit (RFC 9000 §19.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaxData {
    /// The maximum number of bytes on all streams over the lifetime of the connection.
    pub maximum: VarInt,
}

impl MaxData {
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, FrameErrorKind> {
        Ok(Self {
            maximum: reader.varint()?,
        })
    }
}

impl Fields for MaxData {
    fn fields(&self) -> (FrameType, impl AsRef<[VarInt]>) {
        (FrameType::MAX_DATA, [self.maximum])
    }
}
