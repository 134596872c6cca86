//! Errors: of the connection, of one stream, or of a call by the application.

use core::fmt;

use lastbyte_quic::stream::WriteError;
use lastbyte_wire::VarInt;

use crate::Code;

/// The peer violated a rule that concerns the whole connection: it is closed with the code (RFC 9114 §8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {reason}")]
pub struct ConnectionError {
    /// The code of the close.
    pub code: Code,
    /// The violated rule.
    pub reason: &'static str,
}

impl ConnectionError {
    pub(crate) const fn new(code: Code, reason: &'static str) -> Self {
        Self { code, reason }
    }
}

/// Which side reset a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The peer did.
    Peer,
    /// We did, because of what the peer sent.
    Local,
}

/// A message will not be completed (RFC 9114 §4.1.1, §4.1.2). Other streams are not affected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamError {
    /// The code of the reset.
    pub code: Code,
    /// Which side reset it.
    pub origin: Origin,
    /// The reason, if it was this side.
    pub reason: &'static str,
}

impl StreamError {
    pub(crate) const fn local(code: Code, reason: &'static str) -> Self {
        Self {
            code,
            origin: Origin::Local,
            reason,
        }
    }

    pub(crate) const fn malformed(reason: &'static str) -> Self {
        Self::local(Code::MESSAGE_ERROR, reason)
    }

    pub(crate) const fn peer(code: VarInt) -> Self {
        Self {
            code: Code::new(code),
            origin: Origin::Peer,
            reason: "",
        }
    }

    /// Whether the server reports that it did not process the request, so that it may be retried (RFC 9114 §4.1.1).
    pub fn is_safe_to_retry(&self) -> bool {
        self.code == Code::REQUEST_REJECTED
    }
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.origin {
            Origin::Peer => write!(f, "the peer gave the stream up: {}", self.code),
            Origin::Local => write!(f, "{}: {}", self.code, self.reason),
        }
    }
}

impl core::error::Error for StreamError {}

/// Why a message cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The stream does not exist, or is finished.
    #[error("no such request, or it is over")]
    UnknownStream,
    /// Out of order: a message is a header, then a body, then trailers, and it ends once (RFC 9114 §4.1).
    #[error("not now: a message is a head, then a body, then trailers")]
    OutOfOrder,
    /// The peer requested with this code that we stop sending; the stream is reset.
    #[error("the peer asked to stop ({0})")]
    Stopped(Code),
    /// The stream's buffer is full: an event `Writable` follows. Nothing was sent.
    #[error("the stream's buffer is full: wait for `Writable`")]
    Blocked,
    /// The field section exceeds the peer's limit (RFC 9114 §4.2.2), or the stream's buffer.
    #[error("the fields are more than the peer takes: send fewer or shorter ones")]
    FieldSectionTooLarge,
    /// An invalid field: its name is not a lower-case token, its value contains a line break or NUL, it is a
    /// pseudo-header, or it is connection-specific (RFC 9114 §4.2, §4.3).
    #[error("a field that HTTP/3 does not allow: check names and values")]
    InvalidField,
    /// More or less than the `content-length` of the message (RFC 9114 §4.1.2).
    #[error("the body is not as long as its `content-length` says")]
    ContentLength,
}

impl From<WriteError> for SendError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::UnknownStream => Self::UnknownStream,
            WriteError::Finished | WriteError::TooLong => Self::OutOfOrder,
            WriteError::Stopped(code) => Self::Stopped(Code::new(code)),
            WriteError::Blocked => Self::Blocked,
        }
    }
}

/// Why a request cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The server permits no further concurrent requests: an event `RequestsAvailable` follows. Early in the handshake
    /// it permits none.
    #[error("the server permits no more requests now: wait for `RequestsAvailable`")]
    Blocked,
    /// The server accepts no further requests on this connection, or this side closed it: use another connection.
    #[error("the connection takes no more requests: use another one")]
    GoingAway,
    /// Only clients send requests.
    #[error("only clients send requests")]
    NotClient,
    /// The server does not support extended CONNECT, or has not announced it yet (RFC 9220 §3).
    #[error("the server has not said that it takes extended CONNECT")]
    ExtendedConnect,
    /// The message cannot be sent.
    #[error("{0}")]
    Send(SendError),
}

impl From<SendError> for RequestError {
    fn from(error: SendError) -> Self {
        Self::Send(error)
    }
}

/// Why a body cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The stream does not exist, or its message was read to the end.
    #[error("no such message, or it was read to its end")]
    UnknownStream,
    /// The header has not arrived yet.
    #[error("the message's head has not arrived yet")]
    NoHead,
}
