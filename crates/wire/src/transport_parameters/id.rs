//! Transport parameter IDs (RFC 9000 §18.2 and extensions).

use core::fmt;

use crate::{VarInt, varint::contains_varint};

/// A transport parameter ID. Every value can be represented; unknown parameters are ignored (RFC 9000 §7.4.2).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ParameterId(VarInt);

/// Declares the parameters: a constant for each ID, and the table of their names.
macro_rules! parameters {
    ($($(#[$doc:meta])* $id:ident = $value:literal, $name:literal;)*) => {
        impl ParameterId {
            $($(#[$doc])* pub const $id: Self = Self(VarInt::from_u32($value));)*
        }

        static TABLE: &[(ParameterId, &str)] = &[$((ParameterId::$id, $name),)*];
    };
}

parameters! {
    /// `original_destination_connection_id` (RFC 9000 §18.2). Servers only.
    ORIGINAL_DESTINATION_CONNECTION_ID = 0x00, "original_destination_connection_id";
    /// `max_idle_timeout` (RFC 9000 §18.2).
    MAX_IDLE_TIMEOUT = 0x01, "max_idle_timeout";
    /// `stateless_reset_token` (RFC 9000 §18.2). Servers only.
    STATELESS_RESET_TOKEN = 0x02, "stateless_reset_token";
    /// `max_udp_payload_size` (RFC 9000 §18.2).
    MAX_UDP_PAYLOAD_SIZE = 0x03, "max_udp_payload_size";
    /// `initial_max_data` (RFC 9000 §18.2).
    INITIAL_MAX_DATA = 0x04, "initial_max_data";
    /// `initial_max_stream_data_bidi_local` (RFC 9000 §18.2).
    INITIAL_MAX_STREAM_DATA_BIDI_LOCAL = 0x05, "initial_max_stream_data_bidi_local";
    /// `initial_max_stream_data_bidi_remote` (RFC 9000 §18.2).
    INITIAL_MAX_STREAM_DATA_BIDI_REMOTE = 0x06, "initial_max_stream_data_bidi_remote";
    /// `initial_max_stream_data_uni` (RFC 9000 §18.2).
    INITIAL_MAX_STREAM_DATA_UNI = 0x07, "initial_max_stream_data_uni";
    /// `initial_max_streams_bidi` (RFC 9000 §18.2).
    INITIAL_MAX_STREAMS_BIDI = 0x08, "initial_max_streams_bidi";
    /// `initial_max_streams_uni` (RFC 9000 §18.2).
    INITIAL_MAX_STREAMS_UNI = 0x09, "initial_max_streams_uni";
    /// `ack_delay_exponent` (RFC 9000 §18.2).
    ACK_DELAY_EXPONENT = 0x0a, "ack_delay_exponent";
    /// `max_ack_delay` (RFC 9000 §18.2).
    MAX_ACK_DELAY = 0x0b, "max_ack_delay";
    /// `disable_active_migration` (RFC 9000 §18.2).
    DISABLE_ACTIVE_MIGRATION = 0x0c, "disable_active_migration";
    /// `preferred_address` (RFC 9000 §18.2). Servers only.
    PREFERRED_ADDRESS = 0x0d, "preferred_address";
    /// `active_connection_id_limit` (RFC 9000 §18.2).
    ACTIVE_CONNECTION_ID_LIMIT = 0x0e, "active_connection_id_limit";
    /// `initial_source_connection_id` (RFC 9000 §18.2).
    INITIAL_SOURCE_CONNECTION_ID = 0x0f, "initial_source_connection_id";
    /// `retry_source_connection_id` (RFC 9000 §18.2). Servers only.
    RETRY_SOURCE_CONNECTION_ID = 0x10, "retry_source_connection_id";
    /// `version_information` (RFC 9368 §3).
    VERSION_INFORMATION = 0x11, "version_information";
    /// `grease_quic_bit` (RFC 9287 §3).
    GREASE_QUIC_BIT = 0x2ab2, "grease_quic_bit";
    /// `min_ack_delay` (draft-ietf-quic-ack-frequency §3).
    MIN_ACK_DELAY = 0xff04_de1b, "min_ack_delay";
}

impl ParameterId {
    /// The ID as an integer.
    pub const fn get(self) -> u64 {
        self.0.get()
    }

    /// The RFC's name, if this crate supports the parameter.
    pub fn name(self) -> Option<&'static str> {
        let row = TABLE.get(self.index()?)?;
        Some(row.1)
    }

    /// Whether only servers may send the parameter (RFC 9000 §18.2).
    pub const fn is_server_only(self) -> bool {
        matches!(
            self,
            Self::ORIGINAL_DESTINATION_CONNECTION_ID
                | Self::STATELESS_RESET_TOKEN
                | Self::PREFERRED_ADDRESS
                | Self::RETRY_SOURCE_CONNECTION_ID
        )
    }

    /// The index in [`TABLE`], if this crate supports the parameter.
    pub(super) fn index(self) -> Option<usize> {
        TABLE.iter().position(|row| row.0 == self)
    }
}

contains_varint!(ParameterId);

impl fmt::Display for ParameterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "transport parameter {:#x}", self.get()),
        }
    }
}

impl fmt::Debug for ParameterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
