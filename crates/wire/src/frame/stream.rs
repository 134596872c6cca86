//! STREAM frames (RFC 9000 §19.8).

use super::{FrameFault, FrameType, LengthField};
use crate::{BufferFull, Encode, Reader, StreamId, VarInt, Writer};

#[cfg(test)]
mod tests;

/// The OFF bit of the type: the frame has an offset.
const OFF: u64 = 0x04;
/// The LEN bit of the type: the frame has a length.
const LEN: u64 = 0x02;
/// The FIN bit of the type: the stream ends with this frame.
const FIN: u64 = 0x01;

/// A piece of a stream (RFC 9000 §19.8).
///
/// The end of the data, `offset` + length, is at most 2^62 − 1. [`Encode`] writes a length field; to write none, or the
/// data in place, use [`StreamHeader`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream<'a> {
    /// Which stream, where in it, and whether it ends here.
    pub header: StreamHeader,
    /// The data.
    pub data: &'a [u8],
}

/// A STREAM frame without its data.
///
/// To send from a source that can be read again, ask how much data fits, write the header, and read the data right into
/// the packet:
///
/// ```
/// use lastbyte_wire::{StreamId, VarInt, Writer, frame::{LengthField, StreamHeader}};
///
/// let source = b"hello, world";
/// let mut packet = [0; 10];
/// let mut writer = Writer::new(&mut packet);
///
/// let mut header = StreamHeader { id: StreamId::from(VarInt::from_u32(4)), offset: VarInt::ZERO, fin: false };
/// let fits = header.data_len_max(writer.remaining(), LengthField::Absent).expect("room for a header");
/// let len = fits.min(source.len());
/// header.fin = len == source.len();
/// header.begin(&mut writer, len, LengthField::Absent)?.copy_from_slice(&source[..len]);
/// assert_eq!(packet, *b"\x08\x04hello, w");
/// # Ok::<(), lastbyte_wire::BufferFull>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamHeader {
    /// Which stream.
    pub id: StreamId,
    /// Where in the stream the data begins.
    pub offset: VarInt,
    /// Whether the stream ends with this data.
    pub fin: bool,
}

impl StreamHeader {
    /// The most data that a frame of `space` bytes can hold; `None` if not even the header fits. A frame of no data is of
    /// use with `fin` alone.
    #[must_use]
    pub fn data_len_max(&self, space: usize, length: LengthField) -> Option<usize> {
        let room = length.data_len_max(space.checked_sub(self.fields_len())?)?;
        let stream_room = VarInt::MAX.get() - self.offset.get();
        Some(usize::try_from(stream_room).map_or(room, |stream_room| room.min(stream_room)))
    }

    /// How many bytes a frame with so much data takes, the data included.
    #[must_use]
    pub fn encoded_len(&self, data_len: usize, length: LengthField) -> usize {
        self.fields_len() + length.encoded_len(data_len) + data_len
    }

    /// Writes everything but the data, and hands out the place of the data to be filled. All or nothing.
    ///
    /// # Errors
    ///
    /// Header and data do not fit.
    #[inline]
    pub fn begin<'w>(
        &self,
        writer: &'w mut Writer<'_>,
        data_len: usize,
        length: LengthField,
    ) -> Result<&'w mut [u8], BufferFull> {
        debug_assert!(
            self.offset.checked_add(data_len as u64).is_some(),
            "no stream is longer than 2^62 - 1 bytes"
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

    /// Type, stream and offset.
    fn fields_len(&self) -> usize {
        let offset_len = match self.offset {
            VarInt::ZERO => 0,
            offset => offset.encoded_len(),
        };
        1 + VarInt::from(self.id).encoded_len() + offset_len
    }

    /// The eight types are 0x08 to 0x0f.
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
    ) -> Result<Self, FrameFault> {
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
            return Err(FrameFault::OffsetAboveLimit);
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
