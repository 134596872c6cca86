//! Errors of frames and packets.

use crate::{
    TransportError, UnexpectedEnd,
    packet::{packet_type::PacketType, version::VersionNumber},
};

/// The error of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.reason())]
pub enum FrameErrorKind {
    /// The payload ends inside the frame.
    Truncated,
    /// The frame type is not encoded in the minimum number of bytes (RFC 9000 §12.4).
    TypeNotShortest,
    /// The frame type is unknown (RFC 9000 §12.4).
    UnknownType,
    /// The packet contains no frames (RFC 9000 §12.4).
    NoFrames,
    /// The frame is not permitted in packets of this type (RFC 9000 §12.4, §12.5).
    NotPermittedIn(PacketType),
    /// A client sent a frame that only a server may send (RFC 9000 §19.7, §19.20).
    NotPermittedFromClient,
    /// A range of an ACK frame extends below packet number 0 (RFC 9000 §19.3.1).
    AckRangeBelowZero,
    /// The stream count exceeds 2^60 (RFC 9000 §19.11, §19.14).
    StreamCountAboveLimit,
    /// The STREAM or CRYPTO data ends beyond offset 2^62 − 1 (RFC 9000 §19.6, §19.8).
    OffsetAboveLimit,
    /// The token of a `NEW_TOKEN` frame is empty (RFC 9000 §19.7).
    EmptyToken,
    /// The connection ID is empty or longer than 20 bytes (RFC 9000 §19.15).
    ConnectionIdLength,
    /// Retire Prior To is greater than the sequence number of the connection ID (RFC 9000 §19.15).
    RetirePriorToAboveSequence,
    /// The requested max ack delay is 2^14 ms or more (draft-ietf-quic-ack-frequency §4).
    MaxAckDelayAboveLimit,
}

impl FrameErrorKind {
    /// The error code with which to close the connection.
    pub const fn transport_error(self) -> TransportError {
        match self {
            Self::Truncated
            | Self::UnknownType
            | Self::AckRangeBelowZero
            | Self::StreamCountAboveLimit
            | Self::OffsetAboveLimit
            | Self::EmptyToken
            | Self::ConnectionIdLength
            | Self::RetirePriorToAboveSequence => TransportError::FRAME_ENCODING_ERROR,
            Self::TypeNotShortest
            | Self::NoFrames
            | Self::NotPermittedIn(_)
            | Self::NotPermittedFromClient
            | Self::MaxAckDelayAboveLimit => TransportError::PROTOCOL_VIOLATION,
        }
    }

    /// A description of the error, suitable as the reason phrase of a `CONNECTION_CLOSE` frame.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Truncated => "the payload ends inside the frame",
            Self::TypeNotShortest => "the frame type is not encoded in the minimum number of bytes",
            Self::UnknownType => "unknown frame type",
            Self::NoFrames => "the packet contains no frames",
            Self::NotPermittedIn(PacketType::Initial) => "not permitted in an Initial packet",
            Self::NotPermittedIn(PacketType::ZeroRtt) => "not permitted in a 0-RTT packet",
            Self::NotPermittedIn(PacketType::Handshake) => "not permitted in a Handshake packet",
            Self::NotPermittedIn(PacketType::OneRtt) => "not permitted in a 1-RTT packet",
            Self::NotPermittedFromClient => "not permitted from a client",
            Self::AckRangeBelowZero => "a range extends below packet number 0",
            Self::StreamCountAboveLimit => "more than 2^60 streams",
            Self::OffsetAboveLimit => "the data ends beyond offset 2^62 - 1",
            Self::EmptyToken => "the token is empty",
            Self::ConnectionIdLength => "the connection ID is not 1 to 20 bytes long",
            Self::RetirePriorToAboveSequence => {
                "Retire Prior To is greater than the sequence number"
            }
            Self::MaxAckDelayAboveLimit => "the requested max ack delay is 2^14 ms or more",
        }
    }
}

impl From<UnexpectedEnd> for FrameErrorKind {
    fn from(_: UnexpectedEnd) -> Self {
        Self::Truncated
    }
}

/// The error of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PacketErrorKind {
    /// The datagram ends inside the packet.
    #[error("the datagram ends inside the packet")]
    Truncated,
    /// The version is unknown, so neither the rest of the packet nor its end can be parsed.
    #[error("unknown version {0}")]
    UnknownVersion(VersionNumber),
    /// A connection ID is longer than 20 bytes (RFC 9000 §17.2).
    #[error("a connection ID is longer than 20 bytes")]
    ConnectionIdTooLong,
    /// The fixed bit is 0, although the local endpoint did not send `grease_quic_bit` (RFC 9000 §17.2, RFC 9287 §3).
    #[error("the fixed bit is 0")]
    FixedBit,
    /// The packet is too short for a header protection sample (RFC 9001 §5.4.2).
    #[error("too short for a header protection sample")]
    TooShort,
    /// The destination connection ID differs from that of the first packet in the datagram (RFC 9000 §12.2).
    #[error("the connection ID differs from the first packet in the datagram")]
    ConnectionIdMismatch,
    /// The token of a Retry packet is empty (RFC 9000 §17.2.5.2).
    #[error("the Retry token is empty")]
    EmptyRetryToken,
    /// The version list of a Version Negotiation packet is empty, or not a multiple of four bytes long (RFC 8999 §6).
    #[error("the version list is empty or truncated")]
    VersionList,
    /// The reserved bits of an authenticated packet are not 0 (RFC 9000 §17.2, §17.3.1).
    #[error("the reserved bits are not 0")]
    ReservedBits,
}
