//! `PATH_RESPONSE` frames (RFC 9000 §19.18).

use super::{FrameErrorKind, FrameType};
use crate::{BufferFull, Encode, Reader, Writer};

/// Responds to a `PATH_CHALLENGE` (RFC 9000 §19.18, §8.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathResponse {
    /// The data of the `PATH_CHALLENGE`.
    pub data: [u8; 8],
}

impl PathResponse {
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, FrameErrorKind> {
        Ok(Self {
            data: reader.array()?,
        })
    }
}

impl Encode for PathResponse {
    fn encoded_len(&self) -> usize {
        FrameType::PATH_RESPONSE.encoded_len() + self.data.len()
    }

    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), BufferFull> {
        writer.atomically(|writer| {
            FrameType::PATH_RESPONSE.encode(writer)?;
            writer.bytes(&self.data)
        })
    }
}
