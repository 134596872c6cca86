//! The parts of a packet that can be parsed without keys.

use super::protected::Header;

/// The parts of a packet that can be parsed without keys.
pub(super) enum PacketLayout {
    VersionNegotiation,
    Retry,
    Protected {
        header: Header,
        number_offset: usize,
        /// The end of the packet in the datagram.
        end: usize,
    },
}
