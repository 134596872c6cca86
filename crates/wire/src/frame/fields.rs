//! Encoding of frames that consist only of a type and variable-length integers.

use super::FrameType;
use crate::{BufferFull, Encode, VarInt, Writer};

/// A frame without other fields than variable-length integers.
pub(super) trait Fields {
    /// The type, and the integers after it.
    fn fields(&self) -> (FrameType, impl AsRef<[VarInt]>);
}

// Inlined into the assembly of packets, which these frames are seldom in, they cost each packet 26 instructions.
impl<T: Fields> Encode for T {
    #[inline(never)]
    fn encoded_len(&self) -> usize {
        let (frame_type, fields) = self.fields();
        fields
            .as_ref()
            .iter()
            .fold(frame_type.encoded_len(), |len, field| {
                len + field.encoded_len()
            })
    }

    #[inline(never)]
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), BufferFull> {
        let (frame_type, fields) = self.fields();
        writer.atomically(|writer| {
            frame_type.encode(writer)?;
            let mut fields = fields.as_ref().iter();
            fields.try_for_each(|field| writer.varint(*field))
        })
    }
}
