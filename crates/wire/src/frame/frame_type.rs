//! Frame types and their properties (RFC 9000 §12.4, Table 3).

use core::fmt;

use crate::{
    BufferFull, Side, VarInt, Writer, error::kind::FrameErrorKind, packet::packet_type::PacketType,
    varint::contains_varint,
};

#[cfg(test)]
mod tests;

/// The type of a frame (RFC 9000 §12.4).
///
/// Every value can be represented, since a `CONNECTION_CLOSE` frame may carry any type. For types that this crate does
/// not decode, all `is_*` methods return `false`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameType(VarInt);

/// A row of [`TABLE`].
#[derive(Clone, Copy)]
struct Row {
    name: &'static str,
    /// The packet types that permit the frame, one bit each: see [`packet_bit`].
    packets: u8,
    ack_eliciting: bool,
    server_only: bool,
}

/// RFC 9000 Table 3 in its own notation: packet types as `IH01`, and the specification `N` (not ack-eliciting). `S` is an
/// addition: only a server may send the frame (§19.7, §19.20).
static TABLE: [Row; 0x20] = [
    row("PADDING", "IH01", "N"),
    row("PING", "IH01", ""),
    row("ACK", "IH_1", "N"),
    row("ACK_ECN", "IH_1", "N"),
    row("RESET_STREAM", "__01", ""),
    row("STOP_SENDING", "__01", ""),
    row("CRYPTO", "IH_1", ""),
    row("NEW_TOKEN", "___1", "S"),
    row("STREAM", "__01", ""),
    row("STREAM", "__01", ""),
    row("STREAM", "__01", ""),
    row("STREAM", "__01", ""),
    row("STREAM", "__01", ""),
    row("STREAM", "__01", ""),
    row("STREAM", "__01", ""),
    row("STREAM", "__01", ""),
    row("MAX_DATA", "__01", ""),
    row("MAX_STREAM_DATA", "__01", ""),
    row("MAX_STREAMS", "__01", ""),
    row("MAX_STREAMS", "__01", ""),
    row("DATA_BLOCKED", "__01", ""),
    row("STREAM_DATA_BLOCKED", "__01", ""),
    row("STREAMS_BLOCKED", "__01", ""),
    row("STREAMS_BLOCKED", "__01", ""),
    row("NEW_CONNECTION_ID", "__01", ""),
    row("RETIRE_CONNECTION_ID", "__01", ""),
    row("PATH_CHALLENGE", "__01", ""),
    row("PATH_RESPONSE", "___1", ""),
    // `ih` in the RFC: Initial and Handshake packets permit only the close of type 0x1c (§12.5).
    row("CONNECTION_CLOSE", "IH01", "N"),
    row("APPLICATION_CLOSE", "__01", "N"),
    row("HANDSHAKE_DONE", "___1", "S"),
    // draft-ietf-quic-ack-frequency §3: min_ack_delay is not remembered for 0-RTT, so 0-RTT packets do not permit the
    // frame.
    row("IMMEDIATE_ACK", "___1", ""),
];

/// draft-ietf-quic-ack-frequency §3 and §4.
static ACK_FREQUENCY: Row = row("ACK_FREQUENCY", "___1", "");

const fn row(name: &'static str, packets: &str, marks: &str) -> Row {
    let mut bits = 0;
    if has(packets, b'I') {
        bits |= packet_bit(PacketType::Initial);
    }
    if has(packets, b'H') {
        bits |= packet_bit(PacketType::Handshake);
    }
    if has(packets, b'0') {
        bits |= packet_bit(PacketType::ZeroRtt);
    }
    if has(packets, b'1') {
        bits |= packet_bit(PacketType::OneRtt);
    }
    Row {
        name,
        packets: bits,
        ack_eliciting: !has(marks, b'N'),
        server_only: has(marks, b'S'),
    }
}

const fn has(letters: &str, letter: u8) -> bool {
    let mut rest = letters.as_bytes();
    while let [first, tail @ ..] = rest {
        if *first == letter {
            return true;
        }
        rest = tail;
    }
    false
}

const fn packet_bit(packet_type: PacketType) -> u8 {
    match packet_type {
        PacketType::Initial => 1,
        PacketType::ZeroRtt => 2,
        PacketType::Handshake => 4,
        PacketType::OneRtt => 8,
    }
}

impl FrameType {
    /// RFC 9000 §19.1. In a `CONNECTION_CLOSE` frame, 0 also stands for an unknown frame type (§19.19).
    pub const PADDING: Self = Self::of(0x00);
    /// RFC 9000 §19.2.
    pub const PING: Self = Self::of(0x01);
    /// RFC 9000 §19.3, without ECN counts.
    pub const ACK: Self = Self::of(0x02);
    /// RFC 9000 §19.3, with ECN counts.
    pub const ACK_ECN: Self = Self::of(0x03);
    /// RFC 9000 §19.4.
    pub const RESET_STREAM: Self = Self::of(0x04);
    /// RFC 9000 §19.5.
    pub const STOP_SENDING: Self = Self::of(0x05);
    /// RFC 9000 §19.6.
    pub const CRYPTO: Self = Self::of(0x06);
    /// RFC 9000 §19.7.
    pub const NEW_TOKEN: Self = Self::of(0x07);
    /// RFC 9000 §19.8: the first of eight types, with the OFF, LEN and FIN bits clear.
    pub const STREAM: Self = Self::of(0x08);
    /// RFC 9000 §19.9.
    pub const MAX_DATA: Self = Self::of(0x10);
    /// RFC 9000 §19.10.
    pub const MAX_STREAM_DATA: Self = Self::of(0x11);
    /// RFC 9000 §19.11, for bidirectional streams.
    pub const MAX_STREAMS_BIDI: Self = Self::of(0x12);
    /// RFC 9000 §19.11, for unidirectional streams.
    pub const MAX_STREAMS_UNI: Self = Self::of(0x13);
    /// RFC 9000 §19.12.
    pub const DATA_BLOCKED: Self = Self::of(0x14);
    /// RFC 9000 §19.13.
    pub const STREAM_DATA_BLOCKED: Self = Self::of(0x15);
    /// RFC 9000 §19.14, for bidirectional streams.
    pub const STREAMS_BLOCKED_BIDI: Self = Self::of(0x16);
    /// RFC 9000 §19.14, for unidirectional streams.
    pub const STREAMS_BLOCKED_UNI: Self = Self::of(0x17);
    /// RFC 9000 §19.15.
    pub const NEW_CONNECTION_ID: Self = Self::of(0x18);
    /// RFC 9000 §19.16.
    pub const RETIRE_CONNECTION_ID: Self = Self::of(0x19);
    /// RFC 9000 §19.17.
    pub const PATH_CHALLENGE: Self = Self::of(0x1a);
    /// RFC 9000 §19.18.
    pub const PATH_RESPONSE: Self = Self::of(0x1b);
    /// RFC 9000 §19.19, signaled by QUIC.
    pub const CONNECTION_CLOSE: Self = Self::of(0x1c);
    /// RFC 9000 §19.19, signaled by the application.
    pub const APPLICATION_CLOSE: Self = Self::of(0x1d);
    /// RFC 9000 §19.20.
    pub const HANDSHAKE_DONE: Self = Self::of(0x1e);
    /// draft-ietf-quic-ack-frequency §5.
    pub const IMMEDIATE_ACK: Self = Self::of(0x1f);
    /// draft-ietf-quic-ack-frequency §4.
    pub const ACK_FREQUENCY: Self = Self::of(0xaf);

    const fn of(code: u32) -> Self {
        Self(VarInt::from_u32(code))
    }

    /// The type as an integer.
    pub const fn get(self) -> u64 {
        self.0.get()
    }

    /// The RFC's name, if this crate decodes the frame.
    pub fn name(self) -> Option<&'static str> {
        self.row().map(|row| row.name)
    }

    /// Whether a packet that contains the frame is ack-eliciting (RFC 9000 §13.2, `N` in Table 3).
    pub fn is_ack_eliciting(self) -> bool {
        self.row().is_some_and(|row| row.ack_eliciting)
    }

    /// Checks that a packet of this type from `sender` may contain the frame, in a single table lookup.
    pub(super) fn check(self, packet_type: PacketType, sender: Side) -> Result<(), FrameErrorKind> {
        let row = self.row().ok_or(FrameErrorKind::UnknownType)?;
        if row.packets & packet_bit(packet_type) == 0 {
            Err(FrameErrorKind::NotPermittedIn(packet_type))
        } else if row.server_only && sender == Side::Client {
            Err(FrameErrorKind::NotPermittedFromClient)
        } else {
            Ok(())
        }
    }

    /// The encoded length in bytes; frame types use the shortest encoding (RFC 9000 §12.4).
    pub const fn encoded_len(self) -> usize {
        self.0.encoded_len()
    }

    pub(super) fn encode(self, writer: &mut Writer<'_>) -> Result<(), BufferFull> {
        writer.varint(self.0)
    }

    fn row(self) -> Option<&'static Row> {
        match self {
            Self::ACK_FREQUENCY => Some(&ACK_FREQUENCY),
            _ => TABLE.get(usize::try_from(self.get()).ok()?),
        }
    }
}

contains_varint!(FrameType);

impl fmt::Display for FrameType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "frame type {:#x}", self.get()),
        }
    }
}

impl fmt::Debug for FrameType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
