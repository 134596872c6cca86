//! Packets (RFC 9000 §12, §17; RFC 8999; RFC 9369).
//!
//! Receiving takes four steps, each with its own type:
//!
//! 1. [`Invariant::decode`] parses the version-independent header, by which the caller finds the connection or responds
//!    with a [`VersionNegotiation`] packet.
//! 2. [`Packets`] splits the datagram. Each [`Packet`] that carries frames is still [`Protected`].
//! 3. The caller derives a mask from [`Protected::sample`] with the header protection key and passes it to
//!    [`Protected::unmask`].
//! 4. [`Unmasked`] has the truncated packet number, the associated data, and the payload to be decrypted in place. Only
//!    after the packet has been authenticated may the caller call [`Unmasked::check_reserved_bits`].
//!
//! Sending takes the reverse order: [`LongHeader::begin`] or [`ShortHeader::begin`], frames, [`PacketBuilder::finish`],
//! AEAD encryption in place, [`FinishedPacket::mask`].
//!
//! This module handles no keys.

mod coalesced;
mod first_byte;
mod invariant;
mod layout;
mod long;
mod number;
mod outgoing;
pub(crate) mod packet_type;
mod protected;
mod retry;
mod short;
mod stateless_reset;
#[cfg(test)]
mod tests;
pub(crate) mod version;
mod version_negotiation;

pub use coalesced::{DecodeConfig, Packet, Packets};
pub use invariant::{Invariant, LongInvariant, ShortInvariant};
pub use long::{InitialHeader, LongHeader, LongKind};
pub use number::{PacketNumber, PacketNumberLen, TruncatedPacketNumber};
pub use outgoing::{FinishedPacket, PacketBuilder};
pub use packet_type::PacketType;
pub use protected::{HeaderMask, Protected, SAMPLE_LEN, Unmasked};
pub use retry::{Retry, RetryHeader, encode_retry_pseudo_packet};
pub use short::ShortHeader;
pub use stateless_reset::{STATELESS_RESET_LEN_MIN, StatelessReset};
pub use version::{Version, VersionNumber};
pub use version_negotiation::{VersionNegotiation, Versions};

pub use crate::error::{PacketError, PacketErrorKind};
