//! Packets (RFC 9000 §12, §17).

mod number;
mod version;

pub use number::{PacketNumber, PacketNumberLen, TruncatedPacketNumber};
pub use version::VersionNumber;

pub use crate::error::{PacketError, PacketFault};

/// The packets that carry frames (RFC 9000 §12.1).
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
