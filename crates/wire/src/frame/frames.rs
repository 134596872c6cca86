//! Iteration over the frames of a packet (RFC 9000 §12.4).

use super::{Frame, FrameError, FrameErrorKind, FrameType, decode_type};
use crate::{Reader, Side, packet::PacketType};

#[cfg(test)]
mod tests;

/// An iterator over the frames of a packet's payload. It ends after the first error, because the end of a malformed
/// frame is unknown.
#[derive(Clone, Debug)]
pub struct Frames<'a> {
    reader: Reader<'a>,
    packet_type: PacketType,
    sender: Side,
    frame_type: FrameType,
}

impl<'a> Frames<'a> {
    /// Iterates over the frames in the payload of a packet of this type sent by `sender`. Frames that are not permitted
    /// there yield an error.
    ///
    /// # Errors
    ///
    /// Returns [`FrameErrorKind::NoFrames`] if the payload is empty, which is a `PROTOCOL_VIOLATION` (RFC 9000 §12.4).
    pub const fn new(
        payload: &'a [u8],
        packet_type: PacketType,
        sender: Side,
    ) -> Result<Self, FrameError> {
        if payload.is_empty() {
            return Err(FrameError {
                kind: FrameErrorKind::NoFrames,
                offset: 0,
                frame_type: None,
            });
        }
        Ok(Self {
            reader: Reader::new(payload),
            packet_type,
            sender,
            frame_type: FrameType::PADDING,
        })
    }

    /// The type of the frame decoded last, as in the packet: with the flags of STREAM frames, which
    /// [`Frame::frame_type`] lacks.
    pub const fn frame_type(&self) -> FrameType {
        self.frame_type
    }

    #[inline]
    fn decode_next(&mut self) -> Result<Frame<'a>, FrameError> {
        let start = self.reader.position();
        let frame_type = decode_type(&mut self.reader)?;
        self.frame_type = frame_type;
        frame_type
            .check(self.packet_type, self.sender)
            .map_err(|kind| FrameError {
                kind,
                offset: start,
                frame_type: Some(frame_type),
            })?;
        Frame::decode_fields(&mut self.reader, frame_type).map_err(|kind| FrameError {
            kind,
            offset: self.reader.position(),
            frame_type: Some(frame_type),
        })
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<Frame<'a>, FrameError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.reader.is_empty() {
            return None;
        }
        let frame = self.decode_next();
        if frame.is_err() {
            self.reader.take_rest();
        }
        Some(frame)
    }
}

impl core::iter::FusedIterator for Frames<'_> {}
