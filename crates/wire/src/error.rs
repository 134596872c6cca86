//! Decoding errors, and the transport error code with which each one closes the connection.

use core::fmt;

pub use self::kind::{FrameErrorKind, PacketErrorKind};
use crate::{TransportError, frame::frame_type::FrameType};

pub(crate) mod kind;
#[cfg(test)]
mod tests;

/// A frame that is malformed, or not permitted in its packet. Close the connection with
/// [`FrameError::transport_error`], and report [`FrameError::frame_type`] as the frame that triggered the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameError {
    /// The kind of error.
    pub kind: FrameErrorKind,
    /// Offset into the payload, in bytes, at which decoding stopped.
    pub offset: usize,
    /// The frame's type, if it could be decoded.
    pub frame_type: Option<FrameType>,
}

impl FrameError {
    /// The error code with which to close the connection.
    pub const fn transport_error(&self) -> TransportError {
        self.kind.transport_error()
    }
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.frame_type {
            Some(frame_type) => write!(f, "{frame_type} at byte {}: {}", self.offset, self.kind),
            None => write!(f, "frame at byte {}: {}", self.offset, self.kind),
        }
    }
}

impl core::error::Error for FrameError {}

/// A packet that cannot be decoded. Discard it and keep the connection; but close it with `PROTOCOL_VIOLATION` for
/// [`PacketErrorKind::ReservedBits`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("packet at byte {offset}: {kind}")]
pub struct PacketError {
    /// The kind of error.
    pub kind: PacketErrorKind,
    /// Offset into the packet, in bytes, at which decoding stopped.
    pub offset: usize,
}
