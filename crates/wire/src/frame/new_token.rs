//! `NEW_TOKEN` frames (RFC 9000 §19.7).

use super::{FrameErrorKind, FrameType};
use crate::{BufferFull, Encode, Reader, Writer, varint::encoded_len_usize};

/// Provides a client with a token for a future connection to this server (RFC 9000 §19.7, §8.1.3). The token is never
/// empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewToken<'a> {
    token: &'a [u8],
}

impl<'a> NewToken<'a> {
    /// Creates a frame, or returns `None` if the token is empty.
    pub const fn new(token: &'a [u8]) -> Option<Self> {
        if token.is_empty() {
            None
        } else {
            Some(Self { token })
        }
    }

    /// The token.
    pub const fn token(&self) -> &'a [u8] {
        self.token
    }

    pub(super) fn decode(reader: &mut Reader<'a>) -> Result<Self, FrameErrorKind> {
        Self::new(reader.varint_prefixed()?).ok_or(FrameErrorKind::EmptyToken)
    }
}

impl Encode for NewToken<'_> {
    fn encoded_len(&self) -> usize {
        FrameType::NEW_TOKEN.encoded_len() + encoded_len_usize(self.token.len()) + self.token.len()
    }

    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), BufferFull> {
        writer.atomically(|writer| {
            FrameType::NEW_TOKEN.encode(writer)?;
            writer.varint_prefixed(self.token)
        })
    }
}
