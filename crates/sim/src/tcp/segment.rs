//! Segments, without payload.

use lastbyte_units::Time;

/// A TCP segment. Sequence numbers count payload bytes from 0 and do not wrap; those of SYN and FIN are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Number of the first payload byte.
    pub sequence: u64,
    /// Payload, in bytes.
    pub len: u32,
    /// Size of the IP packet on a link, in bytes.
    pub wire_bytes: u32,
    /// Its flags.
    pub flags: Flags,
    /// All payload below was received.
    pub ack: u64,
    /// Receive window of this segment's sender, in bytes from `ack` on.
    pub window: u64,
    /// SACK blocks as half-open ranges, the newest first (RFC 2018 §4).
    pub sack: [(u64, u64); Self::SACK_BLOCKS],
    /// The number of valid entries in `sack`.
    pub sack_count: u8,
    /// Whether the first SACK block reports a duplicate (RFC 2883).
    pub is_dsack: bool,
    /// When it was sent: the timestamp option (RFC 7323 §3).
    pub sent_at: Time,
    /// The timestamp that it echoes (RFC 7323 §3).
    pub echo: Option<Time>,
    /// The progress at the end of its payload.
    pub progress: Progress,
}

impl Segment {
    /// SACK blocks that fit beside the timestamp option (RFC 2018 §3).
    pub const SACK_BLOCKS: usize = 3;

    /// Number of the byte after the payload.
    pub const fn end(&self) -> u64 {
        self.sequence + self.len as u64
    }
}

/// Flags of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// SYN: opens the connection.
    pub syn: bool,
    /// ACK: `Segment::ack` is valid.
    pub ack: bool,
    /// PSH: the end of the application's data (Linux `tcp_push`).
    pub push: bool,
}

/// The content of a stream up to some byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Progress {
    /// Whole flights of the TLS handshake.
    pub flights: u8,
    /// Application data of whole TLS records, in bytes.
    pub application: u64,
}
