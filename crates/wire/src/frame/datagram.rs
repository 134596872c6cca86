//! DATAGRAM frames (RFC 9221 §4).

use super::{FrameErrorKind, FrameType, LengthField};
use crate::{BufferFull, Encode, Reader, VarInt, Writer};

/// A DATAGRAM frame: application data that is not retransmitted (RFC 9221 §4). Send only to peers whose
/// `max_datagram_frame_size` is at least the frame's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// The data.
    pub data: &'a [u8],
}

impl<'a> Datagram<'a> {
    /// The maximum length of data in a frame of `space` bytes, or `None` if not even the type and length fit.
    #[must_use]
    pub fn data_len_max(space: usize, length: LengthField) -> Option<usize> {
        let fields_len = Self::frame_type(length).encoded_len();
        length.data_len_max(space.checked_sub(fields_len)?)
    }

    /// Writes the type and length, and returns the slice of the packet to which the caller must copy the data. Writes
    /// nothing if the frame does not fit.
    ///
    /// # Errors
    ///
    /// Returns [`BufferFull`] if type, length and data do not fit.
    pub fn begin<'w>(
        writer: &'w mut Writer<'_>,
        data_len: usize,
        length: LengthField,
    ) -> Result<&'w mut [u8], BufferFull> {
        writer.atomically(|writer| {
            Self::frame_type(length).encode(writer)?;
            if length == LengthField::Present {
                writer.varint(VarInt::try_from(data_len).map_err(|_| BufferFull)?)?;
            }
            if writer.remaining() < data_len {
                return Err(BufferFull);
            }
            Ok(())
        })?;
        writer.reserve(data_len)
    }

    pub(super) fn decode(
        reader: &mut Reader<'a>,
        length: LengthField,
    ) -> Result<Self, FrameErrorKind> {
        let data = match length {
            LengthField::Present => reader.varint_prefixed()?,
            LengthField::Absent => reader.take_rest(),
        };
        Ok(Self { data })
    }

    const fn frame_type(length: LengthField) -> FrameType {
        match length {
            LengthField::Present => FrameType::DATAGRAM_LEN,
            LengthField::Absent => FrameType::DATAGRAM,
        }
    }
}

impl Encode for Datagram<'_> {
    fn encoded_len(&self) -> usize {
        FrameType::DATAGRAM_LEN.encoded_len()
            + LengthField::Present.encoded_len(self.data.len())
            + self.data.len()
    }

    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), BufferFull> {
        Self::begin(writer, self.data.len(), LengthField::Present)?.copy_from_slice(self.data);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
