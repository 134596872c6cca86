//! Encoding of frames that consist only of a type and variable-length integers.

use super::FrameType;
use crate::{BufferFull, VarInt, Writer};

pub(super) fn encoded_len<const N: usize>(frame_type: FrameType, fields: [VarInt; N]) -> usize {
    fields.iter().fold(frame_type.encoded_len(), |len, field| {
        len + field.encoded_len()
    })
}

pub(super) fn encode<const N: usize>(
    writer: &mut Writer<'_>,
    frame_type: FrameType,
    fields: [VarInt; N],
) -> Result<(), BufferFull> {
    writer.atomically(|writer| {
        frame_type.encode(writer)?;
        fields.iter().try_for_each(|field| writer.varint(*field))
    })
}
