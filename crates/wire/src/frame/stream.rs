//! STREAM frames (RFC 9000 §19.8).

use super::{FrameErrorKind, FrameType, LengthField};
use crate::{BufferFull, Encode, Reader, StreamId, VarInt, Writer};

#[cfg(test)]
mod tests;

/// The OFF bit of the type: the frame has an Offset field.
const OFF: u64 = 0x04;
/// The LEN bit of the type: the frame has a Length field.
const LEN: u64 = 0x02;
/// The FIN bit of the type: the stream ends with this frame.
const FIN: u64 = 0x01;

/// A STREAM frame with its data (RFC 9000 §19.8).
///
/// The data ends at offset 2^62 − 1 or below. [`Encode`] writes a Length field; to omit it, or to write the data in
/// place, use [`StreamHeader`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream<'a> {
    /// The stream, the offset and the FIN bit.
    pub header: StreamHeader,
    /// The data.
    pub data: &'a [u8],
}

/// The header of a STREAM frame.
///
/// To send data without an extra copy, determine how much fits, write the header, and copy the data directly into the
/// packet:
///
/// ```
/// use lastbyte_wire::{StreamId, VarInt, Writer, frame::{LengthField, StreamHeader}};
///
/// let source = b"hello, world";
/// let mut packet = [0; 10];
/// let mut writer = Writer::new(&mut packet);
///
/// let mut header = StreamHeader { id: StreamId::from(VarInt::from_u32(4)), offset: VarInt::ZERO, fin: false };
/// let fits = header.data_len_max(writer.remaining(), LengthField::Absent).expect("the header fits");
/// let len = fits.min(source.len());
/// header.fin = len == source.len();
/// header.begin(&mut writer, len, LengthField::Absent)?.copy_from_slice(&source[..len]);
/// assert_eq!(packet, *b"\x08\x04hello, w");
/// # Ok::<(), lastbyte_wire::BufferFull>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamHeader {
    /// The stream.
    pub id: StreamId,
    /// The offset of the data in the stream, in bytes.
    pub offset: VarInt,
    /// The FIN bit: whether the stream ends with this frame.
    pub fin: bool,
}

impl StreamHeader {
    /// The maximum length of data in a frame of `space` bytes, or `None` if not even the header fits. A frame without
    /// data is useful only with `fin`.
    #[inline]
    pub fn data_len_max(&self, space: usize, length: LengthField) -> Option<usize> {
        let room = length.data_len_max(space.checked_sub(self.fields_len())?)?;
        let stream_room = VarInt::MAX.get() - self.offset.get();
        Some(usize::try_from(stream_room).map_or(room, |stream_room| room.min(stream_room)))
    }

    /// The length in bytes of a frame with `data_len` bytes of data.
    pub fn encoded_len(&self, data_len: usize, length: LengthField) -> usize {
        self.fields_len() + length.encoded_len(data_len) + data_len
    }

    /// Writes the header, and returns the slice of the packet to which the caller must copy the data. Writes nothing if
    /// the frame does not fit.
    ///
    /// # Errors
    ///
    /// Returns [`BufferFull`] if header and data do not fit.
    #[inline]
    pub fn begin<'w>(
        &self,
        writer: &'w mut Writer<'_>,
        data_len: usize,
        length: LengthField,
    ) -> Result<&'w mut [u8], BufferFull> {
        debug_assert!(
            self.offset.checked_add(data_len as u64).is_some(),
            "stream data must end at offset 2^62 - 1 or below"
        );
        writer.atomically(|writer| {
            writer.u8(self.type_byte(length))?;
            writer.varint(self.id.into())?;
            if self.offset != VarInt::ZERO {
                writer.varint(self.offset)?;
            }
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

    /// Length in bytes of the Type, Stream ID and Offset fields.
    fn fields_len(&self) -> usize {
        let offset_len = match self.offset {
            VarInt::ZERO => 0,
            offset => offset.encoded_len(),
        };
        1 + VarInt::from(self.id).encoded_len() + offset_len
    }

    /// The frame type with its flag bits, 0x08 to 0x0f.
    fn type_byte(&self, length: LengthField) -> u8 {
        let mut byte = FrameType::STREAM.get();
        if self.offset != VarInt::ZERO {
            byte |= OFF;
        }
        if length == LengthField::Present {
            byte |= LEN;
        }
        if self.fin {
            byte |= FIN;
        }
        byte as u8
    }
}

impl<'a> Stream<'a> {
    #[inline]
    pub(super) fn decode(
        reader: &mut Reader<'a>,
        frame_type: FrameType,
    ) -> Result<Self, FrameErrorKind> {
        let bits = frame_type.get();
        let id = reader.varint()?.into();
        let offset = match bits & OFF {
            0 => VarInt::ZERO,
            _ => reader.varint()?,
        };
        let data = match bits & LEN {
            0 => reader.take_rest(),
            _ => reader.varint_prefixed()?,
        };
        if offset.checked_add(data.len() as u64).is_none() {
            return Err(FrameErrorKind::OffsetAboveLimit);
        }
        Ok(Self {
            header: StreamHeader {
                id,
                offset,
                fin: bits & FIN != 0,
            },
            data,
        })
    }
}

impl Encode for Stream<'_> {
    fn encoded_len(&self) -> usize {
        self.header
            .encoded_len(self.data.len(), LengthField::Present)
    }

    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), BufferFull> {
        self.header
            .begin(writer, self.data.len(), LengthField::Present)?
            .copy_from_slice(self.data);
        Ok(())
    }
}
