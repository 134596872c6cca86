//! `CONNECTION_CLOSE` frames (RFC 9000 §19.19).

use super::{FrameErrorKind, FrameType};
use crate::{
    BufferFull, Encode, Reader, TransportError, VarInt, Writer, varint::encoded_len_usize,
};

#[cfg(test)]
mod tests;

/// The error code of a `CONNECTION_CLOSE` frame, by the layer that signals it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseCause {
    /// Signaled by QUIC (type 0x1c).
    Transport {
        /// The error code.
        error: TransportError,
        /// The type of the frame that triggered the error, or 0 (PADDING) if unknown.
        frame_type: FrameType,
    },
    /// Signaled by the application (type 0x1d).
    Application {
        /// The application error code (§20.2).
        error_code: VarInt,
    },
}

/// A `CONNECTION_CLOSE` frame (RFC 9000 §19.19).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionClose<'a> {
    /// The error code and its layer.
    pub cause: CloseCause,
    /// The reason phrase. It should be UTF-8, but a peer may send any bytes.
    pub reason: &'a [u8],
}

impl<'a> ConnectionClose<'a> {
    pub(super) fn decode(
        reader: &mut Reader<'a>,
        frame_type: FrameType,
    ) -> Result<Self, FrameErrorKind> {
        let code = reader.varint()?;
        let cause = if frame_type == FrameType::CONNECTION_CLOSE {
            CloseCause::Transport {
                error: code.into(),
                frame_type: reader.varint()?.into(),
            }
        } else {
            CloseCause::Application { error_code: code }
        };
        Ok(Self {
            cause,
            reason: reader.varint_prefixed()?,
        })
    }

    pub(super) const fn frame_type(&self) -> FrameType {
        match self.cause {
            CloseCause::Transport { .. } => FrameType::CONNECTION_CLOSE,
            CloseCause::Application { .. } => FrameType::APPLICATION_CLOSE,
        }
    }

    /// Truncates the reason phrase, at a character boundary, so that the frame takes at most `space` bytes. Returns
    /// `None` if the frame does not fit even with an empty reason phrase.
    pub fn fit(self, space: usize) -> Option<Self> {
        let space = space.checked_sub(self.cause_len())?;
        let len_max = super::LengthField::Present.data_len_max(space)?;
        let Some(cut) = self.reason.get(..len_max) else {
            return Some(self);
        };
        // A UTF-8 continuation byte after the cut means that the cut is inside a character.
        let is_inside = |len: &usize| self.reason.get(*len).is_some_and(|byte| byte >> 6 == 0b10);
        let len = (len_max.saturating_sub(3)..=len_max)
            .rev()
            .find(|len| !is_inside(len))
            .unwrap_or(len_max);
        Some(Self {
            reason: cut.get(..len).unwrap_or_default(),
            ..self
        })
    }

    /// Length in bytes of the fields before Reason Phrase Length.
    fn cause_len(&self) -> usize {
        let cause_len = match self.cause {
            CloseCause::Transport { error, frame_type } => {
                error.code().encoded_len() + frame_type.encoded_len()
            }
            CloseCause::Application { error_code } => error_code.encoded_len(),
        };
        self.frame_type().encoded_len() + cause_len
    }
}

impl Encode for ConnectionClose<'_> {
    fn encoded_len(&self) -> usize {
        self.cause_len() + encoded_len_usize(self.reason.len()) + self.reason.len()
    }

    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), BufferFull> {
        writer.atomically(|writer| {
            self.frame_type().encode(writer)?;
            match self.cause {
                CloseCause::Transport { error, frame_type } => {
                    writer.varint(error.code())?;
                    writer.varint(frame_type.into())?;
                }
                CloseCause::Application { error_code } => writer.varint(error_code)?,
            }
            writer.varint_prefixed(self.reason)
        })
    }
}
