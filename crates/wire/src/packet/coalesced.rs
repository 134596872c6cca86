//! Splitting a datagram into coalesced packets (RFC 9000 §12.2).

use core::mem;

use super::{
    PacketError, PacketErrorKind, Protected, Retry, VersionNegotiation,
    first_byte::{FIXED_BIT, HEADER_FORM},
    layout::PacketLayout,
    long,
    protected::connection_id,
    short,
};
use crate::ConnectionId;

#[cfg(test)]
mod tests;

/// The receiver's configuration that is needed to parse packet headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeConfig {
    /// The length in bytes, 0 to 20, of the connection IDs issued by the local endpoint. Short headers do not contain
    /// it.
    pub connection_id_len: usize,
    /// Whether the local endpoint sent the transport parameter `grease_quic_bit`, which permits a fixed bit of 0 (RFC
    /// 9287 §3).
    pub grease_quic_bit: bool,
}

impl DecodeConfig {
    /// Checks that the fixed bit is 1, unless `grease_quic_bit` was sent (RFC 9000 §17.2, §17.3.1).
    pub(super) const fn check_fixed_bit(&self, first_byte: u8) -> Result<(), PacketErrorKind> {
        if first_byte & FIXED_BIT == 0 && !self.grease_quic_bit {
            return Err(PacketErrorKind::FixedBit);
        }
        Ok(())
    }
}

/// A packet of a datagram.
#[derive(Debug)]
pub enum Packet<'a> {
    /// The server does not support the client's version.
    VersionNegotiation(VersionNegotiation<'a>),
    /// The server requires address validation with a token.
    Retry(Retry<'a>),
    /// A packet with frames, under header and packet protection.
    Protected(Protected<'a>),
}

/// An iterator over the packets of a datagram (RFC 9000 §12.2). Each packet borrows its own bytes mutably, so that it
/// can be decrypted in place.
///
/// Discard packets that yield an error. Iteration stops after a packet whose end is unknown.
#[derive(Debug)]
pub struct Packets<'a> {
    rest: &'a mut [u8],
    config: DecodeConfig,
    /// The destination connection ID of the first packet, if other packets follow it.
    first_destination: Option<ConnectionId>,
}

impl<'a> Packets<'a> {
    /// Iterates over the packets of `datagram`.
    #[must_use]
    pub const fn new(datagram: &'a mut [u8], config: DecodeConfig) -> Self {
        Self {
            rest: datagram,
            config,
            first_destination: None,
        }
    }

    fn decode(&mut self, bytes: &'a mut [u8]) -> Result<Packet<'a>, PacketError> {
        let (header, number_offset, end) = match parse(bytes, self.config)? {
            PacketLayout::VersionNegotiation => {
                return VersionNegotiation::decode(bytes).map(Packet::VersionNegotiation);
            }
            PacketLayout::Retry => return Retry::decode(bytes, self.config).map(Packet::Retry),
            PacketLayout::Protected {
                header,
                number_offset,
                end,
            } => (header, number_offset, end),
        };
        let error = |kind, offset| PacketError { kind, offset };
        let (bytes, rest) = bytes
            .split_at_mut_checked(end)
            .ok_or(error(PacketErrorKind::Truncated, number_offset))?;
        self.rest = rest;
        // Compare connection IDs only in datagrams with several packets.
        if !self.rest.is_empty() || self.first_destination.is_some() {
            let destination = connection_id(header.destination(bytes));
            if *self.first_destination.get_or_insert(destination) != destination {
                return Err(error(PacketErrorKind::ConnectionIdMismatch, 0));
            }
        }
        Protected::new(bytes, header, number_offset)
            .map(Packet::Protected)
            .ok_or(error(PacketErrorKind::TooShort, end))
    }
}

impl<'a> Iterator for Packets<'a> {
    type Item = Result<Packet<'a>, PacketError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let bytes = mem::take(&mut self.rest);
        if bytes.is_empty() {
            return None;
        }
        Some(self.decode(bytes))
    }
}

impl core::iter::FusedIterator for Packets<'_> {}

#[inline]
fn parse(bytes: &[u8], config: DecodeConfig) -> Result<PacketLayout, PacketError> {
    match bytes.first() {
        Some(first_byte) if first_byte & HEADER_FORM == 0 => short::parse(bytes, config),
        _ => long::parse(bytes, config),
    }
}
