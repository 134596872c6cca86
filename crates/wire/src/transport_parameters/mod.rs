//! Transport parameters (RFC 9000 §7.4, §18; RFC 9221 §3; RFC 9287 §3; RFC 9368 §3; draft-ietf-quic-ack-frequency §3).
//!
//! They travel once in each direction, within the TLS handshake. [`TransportParameters::decode`] checks all that one
//! side's parameters tell by themselves; [`TransportParameters::authenticate`] compares them with the handshake's
//! connection IDs, and [`TransportParameters::check_not_reduced`] with what was remembered for 0-RTT.

mod authentication;
mod decode;
mod encode;
mod error;
mod id;
mod preferred_address;
mod remembered;
mod reserved;
#[cfg(test)]
mod tests;
mod version_information;

pub use authentication::HandshakeConnectionIds;
pub use error::{TransportParameterError, TransportParameterFault};
pub use id::ParameterId;
pub use preferred_address::PreferredAddress;
pub use reserved::ReservedParameter;
pub use version_information::VersionInformation;

use crate::{ConnectionId, StatelessResetToken, StreamCount, VarInt};

/// What one end of a connection tells the other about itself (RFC 9000 §18.2).
///
/// The default is what holds for parameters that are not sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransportParameters {
    /// The destination connection ID of the client's first Initial packet. Servers send it, clients may not.
    pub original_destination_connection_id: Option<ConnectionId>,
    /// After how many milliseconds of silence the sender gives the connection up. Default 0: never.
    pub max_idle_timeout_ms: VarInt,
    /// The token of the stateless reset for the connection ID of the handshake. Servers may send it, clients may not.
    pub stateless_reset_token: Option<StatelessResetToken>,
    /// The largest UDP payload the sender takes, in bytes. Default 65527, at least 1200; above 65527 it means nothing.
    pub max_udp_payload_size: VarInt,
    /// How many bytes may be sent on all streams together, to begin with. Default 0.
    pub initial_max_data: VarInt,
    /// How many bytes may be sent on each bidirectional stream that the sender of the parameter opens. Default 0.
    pub initial_max_stream_data_bidi_local: VarInt,
    /// How many bytes may be sent on each bidirectional stream that its receiver opens. Default 0.
    pub initial_max_stream_data_bidi_remote: VarInt,
    /// How many bytes may be sent on each unidirectional stream that its receiver opens. Default 0.
    pub initial_max_stream_data_uni: VarInt,
    /// How many bidirectional streams its receiver may open. Default 0.
    pub initial_max_streams_bidi: StreamCount,
    /// How many unidirectional streams its receiver may open. Default 0.
    pub initial_max_streams_uni: StreamCount,
    /// The power of two, in microseconds, in which the sender's ACK frames tell delays. Default 3, at most 20.
    pub ack_delay_exponent: u8,
    /// By how many milliseconds the sender may delay an acknowledgment. Default 25, below 2^14.
    pub max_ack_delay_ms: VarInt,
    /// Whether the sender wants the peer to stay on the address of the handshake. Default false.
    pub disable_active_migration: bool,
    /// Where the server would rather be spoken to. Servers may send it, clients may not.
    pub preferred_address: Option<PreferredAddress>,
    /// How many of the peer's connection IDs the sender keeps. Default 2, and not less.
    pub active_connection_id_limit: VarInt,
    /// The source connection ID of the sender's first Initial packet. Both have to send it.
    pub initial_source_connection_id: Option<ConnectionId>,
    /// The source connection ID of the Retry packet. Servers that sent one have to send it, others may not.
    pub retry_source_connection_id: Option<ConnectionId>,
    /// Which version is in use and which could be (RFC 9368 §3).
    pub version_information: Option<VersionInformation>,
    /// The largest DATAGRAM frame the sender takes, in bytes, type and length included. Default 0: none (RFC 9221 §3).
    pub max_datagram_frame_size: VarInt,
    /// Whether the fixed bit of packets to the sender may be 0 (RFC 9287 §3). Default false.
    pub grease_quic_bit: bool,
    /// The shortest delay, in microseconds, that the sender may be asked for by `ACK_FREQUENCY` frames. Without it none
    /// may be sent, nor `IMMEDIATE_ACK` (draft-ietf-quic-ack-frequency §3).
    pub min_ack_delay_us: Option<VarInt>,
    /// A parameter without meaning, to be sent along. None is ever received: they are ignored.
    pub reserved: Option<ReservedParameter>,
}

impl TransportParameters {
    /// The smallest value of `max_udp_payload_size` (RFC 9000 §18.2).
    pub const MAX_UDP_PAYLOAD_SIZE_MIN: u64 = 1200;
    /// The largest value of `ack_delay_exponent` (RFC 9000 §18.2).
    pub const ACK_DELAY_EXPONENT_MAX: u8 = 20;
    /// The first value of `max_ack_delay`, in milliseconds, that is too large (RFC 9000 §18.2).
    pub const MAX_ACK_DELAY_MS_END: u64 = 1 << 14;
    /// The smallest value of `active_connection_id_limit` (RFC 9000 §18.2).
    pub const ACTIVE_CONNECTION_ID_LIMIT_MIN: u64 = 2;

    /// Whether the numbers are in range.
    fn check_ranges(&self) -> Result<(), TransportParameterError> {
        use TransportParameterFault::{AboveMaxAckDelay, OutOfRange};
        let max_ack_delay_us = self.max_ack_delay_ms.get().saturating_mul(1000);
        let rules = [
            (
                self.max_udp_payload_size.get() >= Self::MAX_UDP_PAYLOAD_SIZE_MIN,
                OutOfRange,
                ParameterId::MAX_UDP_PAYLOAD_SIZE,
            ),
            (
                self.ack_delay_exponent <= Self::ACK_DELAY_EXPONENT_MAX,
                OutOfRange,
                ParameterId::ACK_DELAY_EXPONENT,
            ),
            (
                self.max_ack_delay_ms.get() < Self::MAX_ACK_DELAY_MS_END,
                OutOfRange,
                ParameterId::MAX_ACK_DELAY,
            ),
            (
                self.active_connection_id_limit.get() >= Self::ACTIVE_CONNECTION_ID_LIMIT_MIN,
                OutOfRange,
                ParameterId::ACTIVE_CONNECTION_ID_LIMIT,
            ),
            (
                self.min_ack_delay_us
                    .is_none_or(|min_ack_delay_us| min_ack_delay_us.get() <= max_ack_delay_us),
                AboveMaxAckDelay,
                ParameterId::MIN_ACK_DELAY,
            ),
        ];
        match rules.into_iter().find(|(is_kept, ..)| !is_kept) {
            Some((_, fault, id)) => Err(TransportParameterError::new(fault, id)),
            None => Ok(()),
        }
    }
}

impl Default for TransportParameters {
    fn default() -> Self {
        Self {
            original_destination_connection_id: None,
            max_idle_timeout_ms: VarInt::ZERO,
            stateless_reset_token: None,
            max_udp_payload_size: VarInt::from_u32(65_527),
            initial_max_data: VarInt::ZERO,
            initial_max_stream_data_bidi_local: VarInt::ZERO,
            initial_max_stream_data_bidi_remote: VarInt::ZERO,
            initial_max_stream_data_uni: VarInt::ZERO,
            initial_max_streams_bidi: StreamCount::ZERO,
            initial_max_streams_uni: StreamCount::ZERO,
            ack_delay_exponent: 3,
            max_ack_delay_ms: VarInt::from_u32(25),
            disable_active_migration: false,
            preferred_address: None,
            active_connection_id_limit: VarInt::from_u32(2),
            initial_source_connection_id: None,
            retry_source_connection_id: None,
            version_information: None,
            max_datagram_frame_size: VarInt::ZERO,
            grease_quic_bit: false,
            min_ack_delay_us: None,
            reserved: None,
        }
    }
}
