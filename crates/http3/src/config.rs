//! The configuration of a connection (RFC 9114 §7.2.4, §10.5).

use core::time::Duration;

use crate::allowance::Rate;

/// The configuration of an HTTP/3 connection. The limits on concurrent requests and their flow control are those of the
/// transport: [`lastbyte_quic::stream::Config`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The largest field section that is accepted, in bytes, uncompressed and with 32 bytes added per field:
    /// `SETTINGS_MAX_FIELD_SECTION_SIZE` (RFC 9114 §4.2.2). Default: 64 KiB. A larger request is answered with 431, a larger
    /// response is malformed. A field section uses up to that much memory while it is received.
    pub field_section_size_max: u32,
    /// The most fields in a section. Default: 256. A section with more counts as too large.
    pub fields_max: u16,
    /// The memory for insertions of the peer's QPACK encoder, in bytes: `SETTINGS_QPACK_MAX_TABLE_CAPACITY` (RFC 9204 §5).
    /// Default: 4096; 0 for none.
    pub qpack_table_capacity: u32,
    /// The most requests that may wait for insertions: `SETTINGS_QPACK_BLOCKED_STREAMS`. Default: 32.
    pub qpack_blocked_streams: u16,
    /// The most bytes of the peer's table that our own QPACK encoder uses. Default: 4096; 0 for static compression only.
    pub qpack_encoder_capacity: u32,
    /// The most messages of ours that may wait for insertions at the same time, if the peer permits it. Messages at the start
    /// of a connection are smaller with it, and later if packets are lost. Default: 4.
    pub qpack_encoder_blocked_streams: u16,
    /// Whether a server accepts extended CONNECT: `SETTINGS_ENABLE_CONNECT_PROTOCOL` (RFC 9220). Default: no.
    pub extended_connect: bool,
    /// The seed of the reserved settings and frames that are sent, so that peers keep ignoring unknown ones (RFC 9114 §7.2.8).
    /// Default: 0; `None` to send none.
    pub grease: Option<u64>,
    /// Limits on the work that a peer can cause.
    pub limits: Limits,
}

/// Limits on the work that a peer can cause without effect (RFC 9114 §10.5). A connection that exceeds one is closed with
/// `H3_EXCESSIVE_LOAD`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The number of requests that a connection serves before it shuts down, so that the client opens another. Default: no
    /// limit.
    pub requests: u64,
    /// Time limit for the header of a request, from when its stream is opened; after that it is reset. Default: 10 s.
    pub head_timeout: Duration,
    /// When a server cancels a request, with `H3_REQUEST_CANCELLED`, because its client neither reads the response nor sends
    /// the body. Default: fewer than 3000 bytes in 30 s. `None`: never.
    pub stall: Option<StallLimit>,
    /// Requests cancelled by the client before they were answered ("rapid reset"), by `RESET_STREAM` or `STOP_SENDING` with
    /// any code. A request that is answered completely returns one. Default: 200 at once, 20 a second.
    pub resets: Rate,
    /// `PRIORITY_UPDATE` frames. A request returns two, since browsers send one with each. Default: 500 at once, 100 a second.
    pub priority_updates: Rate,
    /// `PRIORITY_UPDATE` frames that are kept before their streams are opened. Default: 128. Each takes 40 bytes; further ones
    /// have no effect.
    pub early_priorities: u16,
    /// Unknown frames, streams and settings, and frames without effect. A completed exchange returns two. Default: 200 at
    /// once, 20 a second.
    pub unknown: Rate,
    /// Bytes of those. A completed exchange returns 1024. Default: 256 KiB at once, 64 KiB a second.
    pub unknown_bytes: Rate,
    /// DATA frames with fewer than 64 bytes, of which a tunnel of single bytes has many. A completed exchange returns two.
    /// Default: 10,000 at once, 1000 a second.
    pub tiny_data: Rate,
    /// Bytes on the QPACK encoder stream. A completed exchange returns the capacity of the table. Default:
    /// 1 MiB at once, 128 KiB a second.
    pub encoder_bytes: Rate,
    /// Interim responses to one request. Default: 100.
    pub informational: u16,
    /// Bytes of a SETTINGS frame. Default: 1024.
    pub settings_size: u16,
}

/// The minimum rate of a body. Time counts only while the peer is expected to act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StallLimit {
    /// The interval over which the rate is measured. A body is cancelled after 1 to 1.25 times this interval.
    pub timeout: Duration,
    /// The bytes that must be transferred in that interval, unless fewer remain. At least 1.
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
            informational: 100,
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
            grease: Some(0),
            limits: Limits::default(),
        }
    }
}
