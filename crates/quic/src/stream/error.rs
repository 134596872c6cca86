//! Errors: violations by the peer, which close the connection, and errors of the application, which it can handle.

use lastbyte_wire::{TransportError, VarInt};

/// The peer violated a rule: the connection must be closed (RFC 9000 §11.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {reason}")]
pub struct StreamError {
    /// The code of the close.
    pub code: TransportError,
    /// The violated rule, and whose limit it is.
    pub reason: &'static str,
}

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// The stream does not exist, is finished, or only the peer sends on it.
    #[error("no such stream to send on")]
    UnknownStream,
    /// The stream was finished or reset.
    #[error("the stream was finished or reset")]
    Finished,
    /// The peer asked to stop sending, with this code; the stream is or will be reset.
    #[error("the peer asked to stop (code {:#x})", .0.get())]
    Stopped(VarInt),
    /// Too many unacknowledged parts. A writable event follows.
    #[error("too many parts wait to be acknowledged")]
    Blocked,
    /// A stream has at most 2^62 − 1 bytes.
    #[error("no stream is longer than 2^62 - 1 bytes")]
    TooLong,
}

/// Why a stream cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The stream does not exist, was read to its end, or only we send on it.
    #[error("no such stream to read from")]
    UnknownStream,
    /// The peer reset the stream with this code.
    #[error("the peer reset the stream (code {:#x})", .0.get())]
    Reset(VarInt),
    /// We asked the peer to stop.
    #[error("the peer was asked to stop sending")]
    Stopped,
}

/// The stream does not exist, or has no such part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no such stream")]
pub struct UnknownStream;
