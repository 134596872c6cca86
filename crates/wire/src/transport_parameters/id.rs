//! Transport parameter IDs (RFC 9000 §18.2 and extensions).

use core::fmt;

use crate::VarInt;

/// A transport parameter ID. Every value can be represented; unknown parameters are ignored (RFC 9000 §7.4.2).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ParameterId(VarInt);

/// A row of [`TABLE`].
struct Row {
    id: ParameterId,
    name: &'static str,
    server_only: bool,
}

static TABLE: [Row; 21] = [
    server_only(
        ParameterId::ORIGINAL_DESTINATION_CONNECTION_ID,
        "original_destination_connection_id",
    ),
    both(ParameterId::MAX_IDLE_TIMEOUT, "max_idle_timeout"),
    server_only(ParameterId::STATELESS_RESET_TOKEN, "stateless_reset_token"),
    both(ParameterId::MAX_UDP_PAYLOAD_SIZE, "max_udp_payload_size"),
    both(ParameterId::INITIAL_MAX_DATA, "initial_max_data"),
    both(
        ParameterId::INITIAL_MAX_STREAM_DATA_BIDI_LOCAL,
        "initial_max_stream_data_bidi_local",
    ),
    both(
        ParameterId::INITIAL_MAX_STREAM_DATA_BIDI_REMOTE,
        "initial_max_stream_data_bidi_remote",
    ),
    both(
        ParameterId::INITIAL_MAX_STREAM_DATA_UNI,
        "initial_max_stream_data_uni",
    ),
    both(
        ParameterId::INITIAL_MAX_STREAMS_BIDI,
        "initial_max_streams_bidi",
    ),
    both(
        ParameterId::INITIAL_MAX_STREAMS_UNI,
        "initial_max_streams_uni",
    ),
    both(ParameterId::ACK_DELAY_EXPONENT, "ack_delay_exponent"),
    both(ParameterId::MAX_ACK_DELAY, "max_ack_delay"),
    both(
        ParameterId::DISABLE_ACTIVE_MIGRATION,
        "disable_active_migration",
    ),
    server_only(ParameterId::PREFERRED_ADDRESS, "preferred_address"),
    both(
        ParameterId::ACTIVE_CONNECTION_ID_LIMIT,
        "active_connection_id_limit",
    ),
    both(
        ParameterId::INITIAL_SOURCE_CONNECTION_ID,
        "initial_source_connection_id",
    ),
    server_only(
        ParameterId::RETRY_SOURCE_CONNECTION_ID,
        "retry_source_connection_id",
    ),
    both(ParameterId::VERSION_INFORMATION, "version_information"),
    both(
        ParameterId::MAX_DATAGRAM_FRAME_SIZE,
        "max_datagram_frame_size",
    ),
    both(ParameterId::GREASE_QUIC_BIT, "grease_quic_bit"),
    both(ParameterId::MIN_ACK_DELAY, "min_ack_delay"),
];

const fn both(id: ParameterId, name: &'static str) -> Row {
    Row {
        id,
        name,
        server_only: false,
    }
}

const fn server_only(id: ParameterId, name: &'static str) -> Row {
    Row {
        id,
        name,
        server_only: true,
    }
}

impl ParameterId {
    /// `original_destination_connection_id` (RFC 9000 §18.2). Servers only.
    pub const ORIGINAL_DESTINATION_CONNECTION_ID: Self = Self::of(0x00);
    /// `max_idle_timeout` (RFC 9000 §18.2).
    pub const MAX_IDLE_TIMEOUT: Self = Self::of(0x01);
    /// `stateless_reset_token` (RFC 9000 §18.2). Servers only.
    pub const STATELESS_RESET_TOKEN: Self = Self::of(0x02);
    /// `max_udp_payload_size` (RFC 9000 §18.2).
    pub const MAX_UDP_PAYLOAD_SIZE: Self = Self::of(0x03);
    /// `initial_max_data` (RFC 9000 §18.2).
    pub const INITIAL_MAX_DATA: Self = Self::of(0x04);
    /// `initial_max_stream_data_bidi_local` (RFC 9000 §18.2).
    pub const INITIAL_MAX_STREAM_DATA_BIDI_LOCAL: Self = Self::of(0x05);
    /// `initial_max_stream_data_bidi_remote` (RFC 9000 §18.2).
    pub const INITIAL_MAX_STREAM_DATA_BIDI_REMOTE: Self = Self::of(0x06);
    /// `initial_max_stream_data_uni` (RFC 9000 §18.2).
    pub const INITIAL_MAX_STREAM_DATA_UNI: Self = Self::of(0x07);
    /// `initial_max_streams_bidi` (RFC 9000 §18.2).
    pub const INITIAL_MAX_STREAMS_BIDI: Self = Self::of(0x08);
    /// `initial_max_streams_uni` (RFC 9000 §18.2).
    pub const INITIAL_MAX_STREAMS_UNI: Self = Self::of(0x09);
    /// `ack_delay_exponent` (RFC 9000 §18.2).
    pub const ACK_DELAY_EXPONENT: Self = Self::of(0x0a);
    /// `max_ack_delay` (RFC 9000 §18.2).
    pub const MAX_ACK_DELAY: Self = Self::of(0x0b);
    /// `disable_active_migration` (RFC 9000 §18.2).
    pub const DISABLE_ACTIVE_MIGRATION: Self = Self::of(0x0c);
    /// `preferred_address` (RFC 9000 §18.2). Servers only.
    pub const PREFERRED_ADDRESS: Self = Self::of(0x0d);
    /// `active_connection_id_limit` (RFC 9000 §18.2).
    pub const ACTIVE_CONNECTION_ID_LIMIT: Self = Self::of(0x0e);
    /// `initial_source_connection_id` (RFC 9000 §18.2).
    pub const INITIAL_SOURCE_CONNECTION_ID: Self = Self::of(0x0f);
    /// `retry_source_connection_id` (RFC 9000 §18.2). Servers only.
    pub const RETRY_SOURCE_CONNECTION_ID: Self = Self::of(0x10);
    /// `version_information` (RFC 9368 §3).
    pub const VERSION_INFORMATION: Self = Self::of(0x11);
    /// `max_datagram_frame_size` (RFC 9221 §3).
    pub const MAX_DATAGRAM_FRAME_SIZE: Self = Self::of(0x20);
    /// `grease_quic_bit` (RFC 9287 §3).
    pub const GREASE_QUIC_BIT: Self = Self::of(0x2ab2);
    /// `min_ack_delay` (draft-ietf-quic-ack-frequency §3).
    pub const MIN_ACK_DELAY: Self = Self::of(0xff04_de1b);

    const fn of(id: u32) -> Self {
        Self(VarInt::from_u32(id))
    }

    /// The ID as an integer.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0.get()
    }

    /// The RFC's name, if this crate supports the parameter.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        self.index()
            .and_then(|index| TABLE.get(index))
            .map(|row| row.name)
    }

    /// Whether only servers may send the parameter (RFC 9000 §18.2).
    #[must_use]
    pub fn is_server_only(self) -> bool {
        TABLE.iter().any(|row| row.id == self && row.server_only)
    }

    /// Whether this is a reserved ID of the form 31 × N + 27, which exercises the requirement that unknown parameters
    /// are ignored (RFC 9000 §18.1).
    #[must_use]
    pub const fn is_reserved(self) -> bool {
        self.get() % 31 == 27
    }

    /// The index in [`TABLE`], if this crate supports the parameter.
    pub(super) fn index(self) -> Option<usize> {
        TABLE.iter().position(|row| row.id == self)
    }
}

impl From<VarInt> for ParameterId {
    fn from(id: VarInt) -> Self {
        Self(id)
    }
}

impl From<ParameterId> for VarInt {
    fn from(id: ParameterId) -> Self {
        id.0
    }
}

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
