//! What can be wrong with bytes off the wire, and what it means for the connection.

use core::fmt;

use crate::{
    TransportError, UnexpectedEnd,
    frame::FrameType,
    packet::{PacketType, VersionNumber},
};

#[cfg(test)]
mod tests;

/// A malformed frame, or one that may not be where it is. The connection is to be closed with
/// [`FrameError::transport_error`], and [`FrameError::frame_type`] is to blame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameError {
    /// What is wrong.
    pub fault: FrameFault,
    /// How far into the payload the decoder had come.
    pub offset: usize,
    /// The frame's type, if that could be read.
    pub frame_type: Option<FrameType>,
}

/// What is wrong with a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameFault {
    /// The payload ends inside the frame.
    Truncated,
    /// The type is not in its shortest encoding (RFC 9000 §12.4).
    TypeNotShortest,
    /// No frame has this type (RFC 9000 §12.4).
    UnknownType,
    /// The packet holds no frame at all (RFC 9000 §12.4).
    NoFrames,
    /// Packets of this type do not hold such frames (RFC 9000 §12.4, §12.5).
    NotPermittedIn(PacketType),
    /// Only servers send such frames (RFC 9000 §19.7, §19.20).
    NotPermittedFromClient,
    /// An ACK goes below packet number 0 (RFC 9000 §19.3.1).
    AckRangeBelowZero,
    /// A stream count above 2^60 (RFC 9000 §19.11, §19.14).
    StreamCountAboveLimit,
    /// Stream or handshake data that ends above 2^62 − 1 (RFC 9000 §19.6, §19.8).
    OffsetAboveLimit,
    /// An empty token (RFC 9000 §19.7).
    EmptyToken,
    /// A connection ID of 0 bytes, or of more than 20 (RFC 9000 §19.15).
    ConnectionIdLength,
    /// `retire_prior_to` above the connection ID's own sequence number (RFC 9000 §19.15).
    RetirePriorToAboveSequence,
    /// A requested delay of 2^14 milliseconds or more (draft-ietf-quic-ack-frequency §4).
    MaxAckDelayAboveLimit,
}

impl FrameError {
    /// The code to close the connection with.
    #[must_use]
    pub const fn transport_error(&self) -> TransportError {
        self.fault.transport_error()
    }
}

impl FrameFault {
    /// The code to close the connection with.
    #[must_use]
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

    /// What is wrong, for the reason phrase of a `CONNECTION_CLOSE` frame.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Truncated => "the payload ends inside the frame",
            Self::TypeNotShortest => "the frame type is not in its shortest encoding",
            Self::UnknownType => "unknown frame type",
            Self::NoFrames => "the packet holds no frame",
            Self::NotPermittedIn(PacketType::Initial) => "not permitted in an Initial packet",
            Self::NotPermittedIn(PacketType::ZeroRtt) => "not permitted in a 0-RTT packet",
            Self::NotPermittedIn(PacketType::Handshake) => "not permitted in a Handshake packet",
            Self::NotPermittedIn(PacketType::OneRtt) => "not permitted in a 1-RTT packet",
            Self::NotPermittedFromClient => "only servers send this frame",
            Self::AckRangeBelowZero => "a range goes below packet number 0",
            Self::StreamCountAboveLimit => "more than 2^60 streams",
            Self::OffsetAboveLimit => "the data ends above 2^62 - 1",
            Self::EmptyToken => "the token is empty",
            Self::ConnectionIdLength => "the connection ID has not 1 to 20 bytes",
            Self::RetirePriorToAboveSequence => "Retire Prior To is above the sequence number",
            Self::MaxAckDelayAboveLimit => "the requested delay is 2^14 ms or more",
        }
    }
}

impl From<UnexpectedEnd> for FrameFault {
    fn from(_: UnexpectedEnd) -> Self {
        Self::Truncated
    }
}

impl fmt::Display for FrameFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason())
    }
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.frame_type {
            Some(frame_type) => write!(f, "{frame_type} at byte {}: {}", self.offset, self.fault),
            None => write!(f, "frame at byte {}: {}", self.offset, self.fault),
        }
    }
}

impl core::error::Error for FrameFault {}
impl core::error::Error for FrameError {}

/// A packet that cannot be read. It is to be discarded, and the connection goes on, unless
/// [`PacketError::transport_error`] says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketError {
    /// What is wrong.
    pub fault: PacketFault,
    /// How far into the packet the decoder had come.
    pub offset: usize,
}

/// What is wrong with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketFault {
    /// The datagram ends inside the packet.
    Truncated,
    /// A version this crate does not know; nothing more can be said of the packet, nor where it ends.
    UnknownVersion(VersionNumber),
    /// A connection ID of more than 20 bytes (RFC 9000 §17.2).
    ConnectionIdTooLong,
    /// The fixed bit is 0, and we did not say that it may be (RFC 9000 §17.2, RFC 9287 §3).
    FixedBit,
    /// Too short for a sample (RFC 9001 §5.4.2).
    TooShort,
    /// Another destination connection ID than that of the first packet in the datagram (RFC 9000 §12.2).
    ForeignConnectionId,
    /// A Retry packet without a token (RFC 9000 §17.2.5.2).
    EmptyRetryToken,
    /// A Version Negotiation packet with no version, or with part of one (RFC 8999 §6).
    VersionList,
    /// Reserved bits that are not 0, in a packet that is authentic (RFC 9000 §17.2, §17.3.1).
    ReservedBits,
}

impl PacketError {
    /// The code to close the connection with, or `None` if the packet is just to be discarded.
    #[must_use]
    pub const fn transport_error(&self) -> Option<TransportError> {
        match self.fault {
            PacketFault::ReservedBits => Some(TransportError::PROTOCOL_VIOLATION),
            _ => None,
        }
    }
}

impl fmt::Display for PacketFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("the datagram ends inside the packet"),
            Self::UnknownVersion(version) => write!(f, "unknown version {version}"),
            Self::ConnectionIdTooLong => f.write_str("a connection ID has more than 20 bytes"),
            Self::FixedBit => f.write_str("the fixed bit is 0"),
            Self::TooShort => f.write_str("too short for a sample"),
            Self::ForeignConnectionId => {
                f.write_str("another connection ID than the first packet of the datagram has")
            }
            Self::EmptyRetryToken => f.write_str("Retry without a token"),
            Self::VersionList => f.write_str("the list of versions is empty or cut short"),
            Self::ReservedBits => f.write_str("the reserved bits are not 0"),
        }
    }
}

impl fmt::Display for PacketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "packet at byte {}: {}", self.offset, self.fault)
    }
}

impl core::error::Error for PacketFault {}
impl core::error::Error for PacketError {}
