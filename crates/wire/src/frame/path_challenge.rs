//! `PATH_CHALLENGE` frames (RFC 9000 §19.17).

use super::{FrameErrorKind, FrameType};
use crate::{BufferFull, Encode, Reader, Writer};

/// Checks that the peer is reachable on a path (RFC 9000 §19.17, §8.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathChallenge {
    /// Unpredictable bytes, different in each frame.
    pub data: [u8; 8],
}

impl PathChallenge {
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, FrameErrorKind> {
        Ok(Self {
            data: reader.array()?,
        })
    }
}

impl Encode for PathChallenge {
    fn encoded_len(&self) -> usize {
        FrameType::PATH_CHALLENGE.encoded_len() + self.data.len()
    }

    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), BufferFull> {
        writer.atomically(|writer| {
            FrameType::PATH_CHALLENGE.encode(writer)?;
            writer.bytes(&self.data)
        })
    }
}
