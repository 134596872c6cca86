//! CRYPTO frames (RFC 9000 §19.6).

use super::{FrameErrorKind, FrameType, LengthField};
use crate::{BufferFull, Encode, Reader, VarInt, Writer};

#[cfg(test)]
mod tests;

/// A CRYPTO frame: TLS handshake data at one encryption level (RFC 9000 §19.6).
///
/// The data ends at offset 2^62 − 1 or below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crypto<'a> {
    /// The offset of the data in the handshake data of the encryption level, in bytes.
    pub offset: VarInt,
    /// The data.
    pub data: &'a [u8],
}

impl<'a> Crypto<'a> {
    /// The maximum length of data in a frame of `space` bytes, or `None` if no data fits.
    pub fn data_len_max(offset: VarInt, space: usize) -> Option<usize> {
        let fields_len = FrameType::CRYPTO.encoded_len() + offset.encoded_len();
        let room = LengthField::Present.data_len_max(space.checked_sub(fields_len)?)?;
        let stream_room = usize::try_from(VarInt::MAX.get() - offset.get()).unwrap_or(room);
        Some(room.min(stream_room)).filter(|len| *len > 0)
    }

    pub(super) fn decode(reader: &mut Reader<'a>) -> Result<Self, FrameErrorKind> {
        let offset = reader.varint()?;
        let data = reader.varint_prefixed()?;
        if offset.checked_add(data.len() as u64).is_none() {
            return Err(FrameErrorKind::OffsetAboveLimit);
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
            "handshake data must end at offset 2^62 - 1 or below"
        );
        writer.atomically(|writer| {
            FrameType::CRYPTO.encode(writer)?;
            writer.varint(self.offset)?;
            writer.varint_prefixed(self.data)
        })
    }
}
