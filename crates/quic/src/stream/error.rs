//! Errors: violations by the peer, which close the connection, and errors of the application, which it can handle.

use std::fmt;

use lastbyte_wire::{TransportError, VarInt};

/// The peer violated a rule: the connection must be closed (RFC 9000 §11.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamError {
    /// The code of the close.
    pub code: TransportError,
    /// The violated rule, and whose limit it is.
    pub reason: &'static str,
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.reason)
    }
}

impl std::error::Error for StreamError {}

impl StreamError {
    pub(super) const fn flow_control(reason: &'static str) -> Self {
        Self {
            code: TransportError::FLOW_CONTROL_ERROR,
            reason,
        }
    }

    pub(super) const fn final_size(reason: &'static str) -> Self {
        Self {
            code: TransportError::FINAL_SIZE_ERROR,
            reason,
        }
    }

    pub(super) const fn state(reason: &'static str) -> Self {
        Self {
            code: TransportError::STREAM_STATE_ERROR,
            reason,
        }
    }
}

/// Why a stream cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteError {
    /// The stream does not exist, is finished, or only the peer sends on it.
    UnknownStream,
    /// The stream was finished or reset.
    Finished,
    /// The peer asked to stop sending, with this code; the stream is or will be reset.
    Stopped(VarInt),
    /// Too many unacknowledged parts. A writable event follows.
    Blocked,
    /// A stream has at most 2^62 − 1 bytes.
    TooLong,
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownStream => f.write_str("no such stream to send on"),
            Self::Finished => f.write_str("the stream was finished or reset"),
            Self::Stopped(code) => write!(f, "the peer asked to stop (code {:#x})", code.get()),
            Self::Blocked => f.write_str("too many parts wait to be acknowledged"),
            Self::TooLong => f.write_str("no stream is longer than 2^62 - 1 bytes"),
        }
    }
}

impl std::error::Error for WriteError {}

/// Why a stream cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// The stream does not exist, was read to its end, or only we send on it.
    UnknownStream,
    /// The peer reset the stream with this code.
    Reset(VarInt),
    /// We asked the peer to stop.
    Stopped,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownStream => f.write_str("no such stream to read from"),
            Self::Reset(code) => write!(f, "the peer reset the stream (code {:#x})", code.get()),
            Self::Stopped => f.write_str("the peer was asked to stop sending"),
        }
    }
}

impl std::error::Error for ReadError {}

/// The stream does not exist, or has no such part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownStream;

impl fmt::Display for UnknownStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no such stream")
    }
}

impl std::error::Error for UnknownStream {}
