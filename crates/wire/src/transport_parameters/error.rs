//! What can be wrong with transport parameters.

use core::fmt;

use super::ParameterId;
use crate::{TransportError, UnexpectedEnd};

/// Transport parameters that a peer may not send. The connection is to be closed with
/// [`TransportParameterError::transport_error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransportParameterError {
    /// What is wrong.
    pub fault: TransportParameterFault,
    /// With which parameter, if that could be read.
    pub id: Option<ParameterId>,
}

/// What is wrong with a transport parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransportParameterFault {
    /// The parameters end inside it.
    Truncated,
    /// It comes more than once (RFC 9000 §7.4).
    Duplicate,
    /// A client sent what only servers send (RFC 9000 §18.2).
    NotPermittedFromClient,
    /// The value is shorter or longer than a value of it can be.
    Length,
    /// The value is a number out of range (RFC 9000 §18.2).
    OutOfRange,
    /// `min_ack_delay` above `max_ack_delay` (draft-ietf-quic-ack-frequency §3).
    AboveMaxAckDelay,
    /// A version of 0 (RFC 9368 §4).
    VersionZero,
    /// A client's chosen version is not among its available ones (RFC 9368 §4).
    ChosenVersionNotAvailable,
    /// It has to be there, and is not (RFC 9000 §7.3).
    Missing,
    /// Not the connection ID that was used in the handshake (RFC 9000 §7.3).
    ConnectionIdMismatch,
    /// A server accepted 0-RTT, and lowers what it promised before (RFC 9000 §7.4.1, RFC 9221 §3).
    Reduced,
}

impl TransportParameterError {
    /// The code to close the connection with.
    #[must_use]
    pub const fn transport_error(&self) -> TransportError {
        match self.fault {
            TransportParameterFault::Reduced => TransportError::PROTOCOL_VIOLATION,
            _ => TransportError::TRANSPORT_PARAMETER_ERROR,
        }
    }

    pub(super) const fn new(fault: TransportParameterFault, id: ParameterId) -> Self {
        Self {
            fault,
            id: Some(id),
        }
    }
}

impl TransportParameterFault {
    /// What is wrong, for the reason phrase of a `CONNECTION_CLOSE` frame.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Truncated => "the parameters end inside it",
            Self::Duplicate => "comes more than once",
            Self::NotPermittedFromClient => "only servers send it",
            Self::Length => "the value has a wrong length",
            Self::OutOfRange => "the value is out of range",
            Self::AboveMaxAckDelay => "the value is above max_ack_delay",
            Self::VersionZero => "a version is 0",
            Self::ChosenVersionNotAvailable => "the chosen version is not among the available",
            Self::Missing => "is missing",
            Self::ConnectionIdMismatch => "is not the connection ID of the handshake",
            Self::Reduced => "is lower than what 0-RTT was promised",
        }
    }
}

impl From<UnexpectedEnd> for TransportParameterFault {
    /// The value ends inside a field: the parameters as a whole do not.
    fn from(_: UnexpectedEnd) -> Self {
        Self::Length
    }
}

impl fmt::Display for TransportParameterFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason())
    }
}

impl fmt::Display for TransportParameterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.id {
            Some(id) => write!(f, "{id}: {}", self.fault),
            None => write!(f, "transport parameters: {}", self.fault),
        }
    }
}

impl core::error::Error for TransportParameterFault {}
impl core::error::Error for TransportParameterError {}
