//! What can be set for a connection (RFC 9114 §7.2.4, §10.5).

use core::time::Duration;

use crate::allowance::Rate;

/// What can be set for an HTTP/3 connection. How many requests may be open at a time, and how much of them may be under
/// way, is set for the transport: [`lastbyte_quic::stream::Config`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The largest field section that is taken, uncompressed and with 32 bytes added for each field:
    /// `SETTINGS_MAX_FIELD_SECTION_SIZE` (RFC 9114 §4.2.2). Default: 64 KiB. A larger request is answered with 431, a larger
    /// response is malformed. A field section in transit takes as much memory.
    pub field_section_size_max: u32,
    /// How many fields a section may have. Default: 256. More counts as too large a section.
    pub fields_max: u16,
    /// The memory for what the peer's QPACK encoder inserts, in bytes: `SETTINGS_QPACK_MAX_TABLE_CAPACITY` (RFC 9204 §5).
    /// Default: 4096; 0 for none.
    pub qpack_table_capacity: u32,
    /// How many requests may wait for insertions: `SETTINGS_QPACK_BLOCKED_STREAMS`. Default: 32.
    pub qpack_blocked_streams: u16,
    /// The most that our own QPACK encoder uses of the peer's table, in bytes. Default: 4096; 0 for static compression only.
    pub qpack_encoder_capacity: u32,
    /// How many of our messages may, at a time, have to wait for insertions, where the peer takes that. A message
    /// that is sent as the connection begins is smaller for it, and comes later where packets are lost. Default: 4.
    pub qpack_encoder_blocked_streams: u16,
    /// Whether a server takes extended CONNECT: `SETTINGS_ENABLE_CONNECT_PROTOCOL` (RFC 9220). Default: no.
    pub extended_connect: bool,
    /// Whether HTTP datagrams are taken: `SETTINGS_H3_DATAGRAM` (RFC 9297). Default: no. The transport's
    /// `max_datagram_frame_size` must then be set too.
    pub datagrams: bool,
    /// The seed of the reserved settings and frames that are sent, so that peers learn to ignore what they do not know
    /// (RFC 9114 §7.2.8). Default: 0; `None` for not sending any.
    pub grease: Option<u64>,
    /// What a peer may make us do.
    pub limits: Limits,
}

/// What a peer may make us do for nothing (RFC 9114 §10.5). Whoever does more is cut off with `H3_EXCESSIVE_LOAD`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many requests a connection serves; then it shuts down by itself, and the client takes another. Default: no limit.
    pub requests: u64,
    /// How long the head of a request may take to arrive, once its stream is open; then it is reset. Default: 10 s.
    pub head_timeout: Duration,
    /// When a server gives up a request whose client does not take the response or does not send the body, with
    /// `H3_REQUEST_CANCELLED`. Default: fewer than 3000 bytes in 30 s. `None`: never.
    pub stall: Option<StallLimit>,
    /// Requests given up by the client before they were answered ("rapid reset"), by `RESET_STREAM` or `STOP_SENDING` with
    /// any code. A request that is answered to the end gives one back. Default: 200 at once, 20 a second.
    pub resets: Rate,
    /// `PRIORITY_UPDATE` frames. A request gives two back: browsers send one with each. Default: 500 at once, 100 a second.
    pub priority_updates: Rate,
    /// `PRIORITY_UPDATE` frames that came before their streams, at a time. Default: 128. Each takes 40 bytes; later ones
    /// have no effect.
    pub early_priorities: u16,
    /// Frames, streams and settings that we do not know, and frames of no effect. An exchange that is completed gives two
    /// back. Default: 200 at once, 20 a second.
    pub unknown: Rate,
    /// Bytes of those. An exchange that is completed gives 1024 back. Default: 256 KiB at once, 64 KiB a second.
    pub unknown_bytes: Rate,
    /// DATA frames that carry under 64 bytes. A tunnel of single bytes has many. An exchange that is completed gives two
    /// back. Default: 10,000 at once, 1000 a second.
    pub tiny_data: Rate,
    /// Bytes on the QPACK encoder stream. An exchange that is completed gives back as many as the table can hold. Default:
    /// 1 MiB at once, 128 KiB a second.
    pub encoder_bytes: Rate,
    /// Interim responses to one request. Default: 32.
    pub informational: u16,
    /// Bytes of a SETTINGS frame. Default: 1024.
    pub settings_size: u16,
}

/// How slowly a body may move. Time counts only while the peer is expected to act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StallLimit {
    /// Over how long the speed is measured. A body is given up after 1 to 1.25 times as long.
    pub timeout: Duration,
    /// How many bytes must move in that time, unless fewer are left. At least 1.
    pub bytes: u64,
}

impl Default for StallLimit {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(30),
            bytes: 3000,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            requests: u64::MAX,
            head_timeout: Duration::from_secs(10),
            stall: Some(StallLimit::default()),
            resets: Rate::new(200, 20),
            priority_updates: Rate::new(500, 100),
            early_priorities: 128,
            unknown: Rate::new(200, 20),
            unknown_bytes: Rate::new(256 << 10, 64 << 10),
            tiny_data: Rate::new(10_000, 1000),
            encoder_bytes: Rate::new(1 << 20, 128 << 10),
            informational: 32,
            settings_size: 1024,
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            field_section_size_max: 64 << 10,
            fields_max: 256,
            qpack_table_capacity: 4096,
            qpack_blocked_streams: 32,
            qpack_encoder_capacity: 4096,
            qpack_encoder_blocked_streams: 4,
            extended_connect: false,
            datagrams: false,
            grease: Some(0),
            limits: Limits::default(),
        }
    }
}
