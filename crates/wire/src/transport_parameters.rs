//! Transport parameters (RFC 9000 §7.4, §18; RFC 9287 §3; RFC 9368 §3; draft-ietf-quic-ack-frequency §3).
//!
//! Each endpoint sends its parameters once, in the TLS handshake. [`TransportParameters::decode`] checks everything
//! that can be checked on one endpoint's parameters alone. [`TransportParameters::authenticate`] compares them with the
//! connection IDs of the handshake, and [`TransportParameters::check_not_reduced`] with the values remembered for
//! 0-RTT.

mod authentication;
mod decode;
mod encode;
mod error;
mod id;
mod preferred_address;
mod remembered;
#[cfg(test)]
mod tests;
mod version_information;

pub use authentication::HandshakeConnectionIds;
pub use error::{TransportParameterError, TransportParameterErrorKind};
pub use id::ParameterId;
pub use preferred_address::PreferredAddress;
pub use version_information::VersionInformation;

use alloc::boxed::Box;

use crate::{ConnectionId, StatelessResetToken, StreamCount, VarInt};

/// The transport parameters of one endpoint (RFC 9000 §18.2).
///
/// `Default` has the values that apply when parameters are absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransportParameters {
    /// The destination connection ID of the client's first Initial packet. Mandatory for servers, prohibited for
    /// clients.
    pub original_destination_connection_id: Option<ConnectionId>,
    /// The sender's idle timeout in milliseconds. Default 0: no timeout.
    pub max_idle_timeout_ms: VarInt,
    /// The stateless reset token for the connection ID of the handshake. Optional for servers, prohibited for clients.
    pub stateless_reset_token: Option<StatelessResetToken>,
    /// The largest UDP payload that the sender accepts, in bytes. Default 65527, minimum 1200; values above 65527 have
    /// no additional effect.
    pub max_udp_payload_size: VarInt,
    /// The initial connection-level flow control limit in bytes. Default 0.
    pub initial_max_data: VarInt,
    /// The initial flow control limit in bytes of bidirectional streams opened by the sender of the parameter. Default
    /// 0.
    pub initial_max_stream_data_bidi_local: VarInt,
    /// The initial flow control limit in bytes of bidirectional streams opened by the receiver of the parameter.
    /// Default 0.
    pub initial_max_stream_data_bidi_remote: VarInt,
    /// The initial flow control limit in bytes of unidirectional streams opened by the receiver of the parameter.
    /// Default 0.
    pub initial_max_stream_data_uni: VarInt,
    /// The number of bidirectional streams that the receiver of the parameter may open. Default 0.
    pub initial_max_streams_bidi: StreamCount,
    /// The number of unidirectional streams that the receiver of the parameter may open. Default 0.
    pub initial_max_streams_uni: StreamCount,
    /// The exponent by which the ACK Delay of the sender's ACK frames is scaled: the unit is 2^exponent microseconds.
    /// Default 3, maximum 20.
    pub ack_delay_exponent: u8,
    /// The maximum time in milliseconds by which the sender delays acknowledgments. Default 25, below 2^14.
    pub max_ack_delay_ms: VarInt,
    /// Whether the peer must not migrate away from the address of the handshake. Default `false`.
    pub disable_active_migration: bool,
    /// The server's preferred address. Optional for servers, prohibited for clients.
    pub preferred_address: Option<Box<PreferredAddress>>,
    /// The number of the peer's connection IDs that the sender stores. Default and minimum 2.
    pub active_connection_id_limit: VarInt,
    /// The source connection ID of the sender's first Initial packet. Mandatory for both endpoints.
    pub initial_source_connection_id: Option<ConnectionId>,
    /// The source connection ID of the Retry packet. Mandatory for servers that sent one, otherwise prohibited.
    pub retry_source_connection_id: Option<ConnectionId>,
    /// The chosen and available versions (RFC 9368 §3).
    pub version_information: Option<VersionInformation>,
    /// Whether packets to the sender may have a fixed bit of 0 (RFC 9287 §3). Default `false`.
    pub grease_quic_bit: bool,
    /// The minimum delay in microseconds by which the sender can delay acknowledgments. If absent, the peer must send
    /// neither `ACK_FREQUENCY` nor `IMMEDIATE_ACK` frames (draft-ietf-quic-ack-frequency §3).
    pub min_ack_delay_us: Option<VarInt>,
}

impl TransportParameters {
    /// The smallest value of `max_udp_payload_size` (RFC 9000 §18.2).
    pub const MAX_UDP_PAYLOAD_SIZE_MIN: u64 = 1200;
    /// The largest value of `ack_delay_exponent` (RFC 9000 §18.2).
    pub const ACK_DELAY_EXPONENT_MAX: u8 = 20;
    /// The exclusive upper bound of `max_ack_delay` in milliseconds (RFC 9000 §18.2).
    pub const MAX_ACK_DELAY_MS_END: u64 = 1 << 14;
    /// The smallest value of `active_connection_id_limit` (RFC 9000 §18.2).
    pub const ACTIVE_CONNECTION_ID_LIMIT_MIN: u64 = 2;

    /// Checks that the numeric values are in range.
    fn check_ranges(&self) -> Result<(), TransportParameterError> {
        use TransportParameterErrorKind::{AboveMaxAckDelay, OutOfRange};
        let max_ack_delay_us = self.max_ack_delay_ms.get().saturating_mul(1000);
        let checks = [
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
        match checks.into_iter().find(|(is_ok, ..)| !is_ok) {
            Some((_, kind, id)) => Err(TransportParameterError::new(kind, id)),
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
            grease_quic_bit: false,
            min_ack_delay_us: None,
        }
    }
}
