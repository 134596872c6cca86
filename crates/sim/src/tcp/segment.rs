//! A segment: what one end sends to the other, without payload.

use lastbyte_units::Time;

/// A TCP segment. Sequence numbers count payload bytes from 0 and do not wrap; those of SYN and FIN are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Number of the first payload byte.
    pub sequence: u64,
    /// Payload, in bytes.
    pub len: u32,
    /// Size of the IP packet, in bytes: what a link carries.
    pub wire_bytes: u32,
    /// What it is.
    pub flags: Flags,
    /// All payload below has been received.
    pub ack: u64,
    /// How many bytes from `ack` on the sender of this segment accepts.
    pub window: u64,
    /// SACK blocks, from first byte to behind the last; the newest first (RFC 2018 §4).
    pub sack: [(u64, u64); Self::SACK_BLOCKS],
    /// How many of `sack` exist.
    pub sack_count: u8,
    /// Whether the first SACK block reports a duplicate (RFC 2883).
    pub is_dsack: bool,
    /// When it was sent: the timestamp option (RFC 7323 §3).
    pub sent_at: Time,
    /// The timestamp that it echoes (RFC 7323 §3).
    pub echo: Option<Time>,
    /// What is complete at the end of its payload.
    pub progress: Progress,
}

impl Segment {
    /// SACK blocks that fit beside the timestamp option (RFC 2018 §3).
    pub const SACK_BLOCKS: usize = 3;

    /// Number of the byte behind the payload.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.sequence + self.len as u64
    }
}

/// What a segment is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// SYN: opens the connection.
    pub syn: bool,
    /// ACK: `Segment::ack` is valid.
    pub ack: bool,
    /// PSH: the end of what the application has written (Linux `tcp_push`).
    pub push: bool,
}

/// What the bytes of a stream up to some point contain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Progress {
    /// Whole flights of the TLS handshake.
    pub flights: u8,
    /// Application data of whole TLS records, in bytes.
    pub application: u64,
}
