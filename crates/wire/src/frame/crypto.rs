//! CRYPTO frames (RFC 9000 §19.6).

use super::{FrameFault, FrameType, LengthField};
use crate::{BufferFull, Encode, Reader, VarInt, Writer};

#[cfg(test)]
mod tests;

/// A piece of the TLS handshake of one packet number space (RFC 9000 §19.6).
///
/// The end of the data, `offset` + length, is at most 2^62 − 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crypto<'a> {
    /// Where in the handshake data of the space the data begins.
    pub offset: VarInt,
    /// The data.
    pub data: &'a [u8],
}

impl<'a> Crypto<'a> {
    /// The most data that a frame of `space` bytes can hold; `None` if none fits.
    #[must_use]
    pub fn data_len_max(offset: VarInt, space: usize) -> Option<usize> {
        let fields_len = FrameType::CRYPTO.encoded_len() + offset.encoded_len();
        let room = LengthField::Present.data_len_max(space.checked_sub(fields_len)?)?;
        let stream_room = usize::try_from(VarInt::MAX.get() - offset.get()).unwrap_or(room);
        Some(room.min(stream_room)).filter(|len| *len > 0)
    }

    pub(super) fn decode(reader: &mut Reader<'a>) -> Result<Self, FrameFault> {
        let offset = reader.varint()?;
        let data = reader.varint_prefixed()?;
        if offset.checked_add(data.len() as u64).is_none() {
            return Err(FrameFault::OffsetAboveLimit);
        }
        Ok(Self { offset, data })
    }
}

impl Encode for Crypto<'_> {
    fn encoded_len(&self) -> usize {
        FrameType::CRYPTO.encoded_len()
            + self.offset.encoded_len()
            + LengthField::Present.encoded_len(self.data.len())
            + self.data.len()
    }

    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), BufferFull> {
        debug_assert!(
            self.offset.checked_add(self.data.len() as u64).is_some(),
            "no handshake is longer than 2^62 - 1 bytes"
        );
        writer.atomically(|writer| {
            FrameType::CRYPTO.encode(writer)?;
            writer.varint(self.offset)?;
            writer.varint_prefixed(self.data)
        })
    }
}
