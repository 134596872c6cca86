//! Errors in transport parameters.

use core::fmt;

use super::ParameterId;
use crate::{TransportError, UnexpectedEnd};

/// Invalid transport parameters. Close the connection with [`TransportParameterError::transport_error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransportParameterError {
    /// The kind of error.
    pub kind: TransportParameterErrorKind,
    /// The affected parameter, if its ID could be decoded.
    pub id: Option<ParameterId>,
}

/// The error of a transport parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.reason())]
pub enum TransportParameterErrorKind {
    /// The input ends inside the parameter.
    Truncated,
    /// The parameter appears more than once (RFC 9000 §7.4).
    Duplicate,
    /// A client sent a parameter that only a server may send (RFC 9000 §18.2).
    NotPermittedFromClient,
    /// The value has an invalid length.
    Length,
    /// The value is out of range (RFC 9000 §18.2).
    OutOfRange,
    /// `min_ack_delay` exceeds `max_ack_delay` (draft-ietf-quic-ack-frequency §3).
    AboveMaxAckDelay,
    /// A version is 0 (RFC 9368 §4).
    VersionZero,
    /// A client's Chosen Version is not among its Available Versions (RFC 9368 §4).
    ChosenVersionNotAvailable,
    /// A mandatory parameter is missing (RFC 9000 §7.3).
    Missing,
    /// The value differs from the connection ID used in the handshake (RFC 9000 §7.3).
    ConnectionIdMismatch,
    /// A server accepted 0-RTT, but reduced a limit that the client remembered (RFC 9000 §7.4.1).
    Reduced,
}

impl TransportParameterError {
    /// The error code with which to close the connection.
    pub const fn transport_error(&self) -> TransportError {
        match self.kind {
            TransportParameterErrorKind::Reduced => TransportError::PROTOCOL_VIOLATION,
            _ => TransportError::TRANSPORT_PARAMETER_ERROR,
        }
    }

    pub(super) const fn new(kind: TransportParameterErrorKind, id: ParameterId) -> Self {
        Self { kind, id: Some(id) }
    }
}

impl TransportParameterErrorKind {
    /// A description of the error, suitable as the reason phrase of a `CONNECTION_CLOSE` frame.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Truncated => "the input ends inside the parameter",
            Self::Duplicate => "appears more than once",
            Self::NotPermittedFromClient => "not permitted from a client",
            Self::Length => "the value has an invalid length",
            Self::OutOfRange => "the value is out of range",
            Self::AboveMaxAckDelay => "the value exceeds max_ack_delay",
            Self::VersionZero => "a version is 0",
            Self::ChosenVersionNotAvailable => {
                "the chosen version is not among the available versions"
            }
            Self::Missing => "missing",
            Self::ConnectionIdMismatch => "differs from the connection ID of the handshake",
            Self::Reduced => "lower than the value remembered for 0-RTT",
        }
    }
}

impl From<UnexpectedEnd> for TransportParameterErrorKind {
    /// The value, not the whole input, ends inside a field.
    fn from(_: UnexpectedEnd) -> Self {
        Self::Length
    }
}

impl fmt::Display for TransportParameterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.id {
            Some(id) => write!(f, "{id}: {}", self.kind),
            None => write!(f, "transport parameters: {}", self.kind),
        }
    }
}

impl core::error::Error for TransportParameterError {}
