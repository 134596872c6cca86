//! The types of packets that carry frames.

/// The types of packets that carry frames (RFC 9000 §12.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PacketType {
    /// RFC 9000 §17.2.2.
    Initial,
    /// RFC 9000 §17.2.3.
    ZeroRtt,
    /// RFC 9000 §17.2.4.
    Handshake,
    /// RFC 9000 §17.3.1.
    OneRtt,
}
