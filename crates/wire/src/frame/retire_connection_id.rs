//! `RETIRE_CONNECTION_ID` frames (RFC 9000 §19.16).

use super::{FrameErrorKind, FrameType, fields::Fields};
use crate::{Reader, VarInt};

/// The sender no longer uses one of the connection IDs issued by the receiver (RFC 9000 §19.16).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetireConnectionId {
    /// The sequence number of the retired connection ID (§5.1.1).
    pub sequence: VarInt,
}

impl RetireConnectionId {
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, FrameErrorKind> {
        Ok(Self {
            sequence: reader.varint()?,
        })
    }
}

impl Fields for RetireConnectionId {
    fn fields(&self) -> (FrameType, impl AsRef<[VarInt]>) {
        (FrameType::RETIRE_CONNECTION_ID, [self.sequence])
    }
}
