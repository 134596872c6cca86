//! Packets under header protection, and without it (RFC 9001 §5.4).

use core::ops::Range;

use super::{
    PacketError, PacketFault, PacketNumberLen, PacketType, TruncatedPacketNumber, Version,
    first_byte::{
        HEADER_FORM, KEY_PHASE, LONG_MASKED, LONG_RESERVED, SHORT_MASKED, SHORT_RESERVED, SPIN_BIT,
    },
};
use crate::ConnectionId;

#[cfg(test)]
mod tests;

/// How many bytes of ciphertext the mask is made of (RFC 9001 §5.4.2).
pub const SAMPLE_LEN: usize = 16;

/// A header protection mask: one byte for the first byte, four for the packet number (RFC 9001 §5.4.1).
pub type HeaderMask = [u8; 5];

/// The sample is taken as if the packet number had four bytes (RFC 9001 §5.4.2).
const SAMPLE_OFFSET: usize = 4;

/// What a header says in the clear, and where in the packet.
#[derive(Clone, Debug)]
pub(super) struct Header {
    pub(super) packet_type: PacketType,
    /// 20 bytes at most.
    pub(super) destination: Range<usize>,
    /// Of a long header.
    pub(super) long: Option<LongFields>,
}

#[derive(Clone, Debug)]
pub(super) struct LongFields {
    pub(super) version: Version,
    /// 20 bytes at most.
    pub(super) source: Range<usize>,
    /// Empty but in Initial packets.
    pub(super) token: Range<usize>,
}

/// A packet under header protection: an Initial, 0-RTT, Handshake or 1-RTT packet as it came.
#[derive(Debug)]
pub struct Protected<'a> {
    bytes: &'a mut [u8],
    header: Header,
    /// The sample behind it is known to be there.
    number_offset: usize,
    sample: [u8; SAMPLE_LEN],
}

/// A packet without header protection, whose payload is still sealed.
#[derive(Debug)]
pub struct Unmasked<'a> {
    /// The header, which the AEAD authenticates (RFC 9001 §5.3).
    pub associated_data: &'a [u8],
    /// The ciphertext with the AEAD's tag, to be opened in place.
    pub payload: &'a mut [u8],
    header: Header,
    first_byte: u8,
    number: TruncatedPacketNumber,
}

impl<'a> Protected<'a> {
    /// `None` if the packet is too short for a sample (RFC 9001 §5.4.2).
    pub(super) fn new(bytes: &'a mut [u8], header: Header, number_offset: usize) -> Option<Self> {
        let sample = sample(bytes, number_offset)?;
        Some(Self {
            bytes,
            header,
            number_offset,
            sample,
        })
    }

    /// The type.
    #[must_use]
    pub const fn packet_type(&self) -> PacketType {
        self.header.packet_type
    }

    /// The destination connection ID.
    #[must_use]
    pub fn destination(&self) -> ConnectionId {
        self.header.destination(self.bytes)
    }

    /// The version, which long headers have.
    #[must_use]
    pub fn version(&self) -> Option<Version> {
        self.header.version()
    }

    /// The source connection ID, which long headers have.
    #[must_use]
    pub fn source(&self) -> Option<ConnectionId> {
        self.header.source(self.bytes)
    }

    /// The token of an Initial packet; empty in others. One sent by a server has to be empty (RFC 9000 §17.2.2).
    #[must_use]
    pub fn token(&self) -> &[u8] {
        self.header.token(self.bytes)
    }

    /// The whole packet as it came, to be kept until there are keys for it, for one.
    #[must_use]
    pub const fn bytes(&self) -> &[u8] {
        self.bytes
    }

    /// What the header protection key makes the mask of.
    #[must_use]
    pub const fn sample(&self) -> &[u8; SAMPLE_LEN] {
        &self.sample
    }

    /// Takes the header protection off.
    #[must_use]
    #[inline]
    pub fn unmask(self, mask: HeaderMask) -> Unmasked<'a> {
        let [first_mask, number_mask @ ..] = mask;
        let first_byte = match self.bytes.first_mut() {
            Some(first_byte) => {
                *first_byte ^= first_mask & masked_bits(*first_byte);
                *first_byte
            }
            None => 0,
        };
        let len = PacketNumberLen::from_bits(first_byte);
        // The sample is there, and before it four bytes from the packet number on: neither default is ever taken.
        let value = mask_number(self.bytes, self.number_offset, len, number_mask);
        let (header, payload) = self
            .bytes
            .split_at_mut_checked(self.number_offset + len.bytes())
            .unwrap_or_default();
        Unmasked {
            associated_data: header,
            payload,
            header: self.header,
            first_byte,
            number: TruncatedPacketNumber::new(value.unwrap_or_default(), len),
        }
    }
}

impl<'a> Unmasked<'a> {
    /// The type.
    #[must_use]
    pub const fn packet_type(&self) -> PacketType {
        self.header.packet_type
    }

    /// The destination connection ID.
    #[must_use]
    pub fn destination(&self) -> ConnectionId {
        self.header.destination(self.associated_data)
    }

    /// The version, which long headers have.
    #[must_use]
    pub fn version(&self) -> Option<Version> {
        self.header.version()
    }

    /// The source connection ID, which long headers have.
    #[must_use]
    pub fn source(&self) -> Option<ConnectionId> {
        self.header.source(self.associated_data)
    }

    /// The token of an Initial packet; empty in others. One sent by a server has to be empty (RFC 9000 §17.2.2).
    #[must_use]
    pub fn token(&self) -> &'a [u8] {
        self.header.token(self.associated_data)
    }

    /// The packet number, as it was sent.
    #[must_use]
    pub const fn number(&self) -> TruncatedPacketNumber {
        self.number
    }

    /// The latency spin bit of a 1-RTT packet (RFC 9000 §17.4).
    #[must_use]
    pub const fn spin_bit(&self) -> bool {
        self.is_short() && self.first_byte & SPIN_BIT != 0
    }

    /// The key phase of a 1-RTT packet (RFC 9001 §6).
    #[must_use]
    pub const fn key_phase(&self) -> bool {
        self.is_short() && self.first_byte & KEY_PHASE != 0
    }

    /// To be asked after the packet has been found authentic, and not before: an attacker can set these bits, or learn
    /// from the answer (RFC 9001 §9.5).
    ///
    /// # Errors
    ///
    /// The reserved bits are not 0, which is a `PROTOCOL_VIOLATION` (RFC 9000 §17.2, §17.3.1).
    pub const fn check_reserved_bits(&self) -> Result<(), PacketError> {
        let reserved = if self.is_short() {
            SHORT_RESERVED
        } else {
            LONG_RESERVED
        };
        if self.first_byte & reserved == 0 {
            Ok(())
        } else {
            Err(PacketError {
                fault: PacketFault::ReservedBits,
                offset: 0,
            })
        }
    }

    const fn is_short(&self) -> bool {
        self.first_byte & HEADER_FORM == 0
    }
}

impl Header {
    fn version(&self) -> Option<Version> {
        self.long.as_ref().map(|long| long.version)
    }

    pub(super) fn destination(&self, bytes: &[u8]) -> ConnectionId {
        connection_id(bytes, &self.destination)
    }

    fn source(&self, bytes: &[u8]) -> Option<ConnectionId> {
        let long = self.long.as_ref()?;
        Some(connection_id(bytes, &long.source))
    }

    fn token<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        self.long
            .as_ref()
            .and_then(|long| bytes.get(long.token.clone()))
            .unwrap_or_default()
    }
}

/// The range has been checked when the header was read: the default is never taken.
fn connection_id(bytes: &[u8], range: &Range<usize>) -> ConnectionId {
    bytes
        .get(range.clone())
        .and_then(ConnectionId::new)
        .unwrap_or_default()
}

/// The sample of a packet whose number is at this offset (RFC 9001 §5.4.2).
pub(super) fn sample(packet: &[u8], number_offset: usize) -> Option<[u8; SAMPLE_LEN]> {
    packet
        .get(number_offset.checked_add(SAMPLE_OFFSET)?..)?
        .first_chunk()
        .copied()
}

/// Puts the header protection on, which taking it off inverts (RFC 9001 §5.4.1). `None` if the packet is too short to
/// have a sample.
pub(super) fn mask(packet: &mut [u8], number_offset: usize, mask: HeaderMask) -> Option<()> {
    let [first_mask, number_mask @ ..] = mask;
    let first_byte = *packet.first()?;
    let len = PacketNumberLen::from_bits(first_byte);
    mask_number(packet, number_offset, len, number_mask)?;
    *packet.first_mut()? ^= first_mask & masked_bits(first_byte);
    Some(())
}

/// Applies the mask to the packet number, and returns what it is then. `None` if not four bytes are there.
#[inline]
fn mask_number(
    packet: &mut [u8],
    number_offset: usize,
    len: PacketNumberLen,
    mask: [u8; 4],
) -> Option<u32> {
    let bytes = packet.get_mut(number_offset..)?.first_chunk_mut()?;
    // What follows a shorter number is payload, and left alone.
    let payload_bits = u32::BITS - len.bits();
    let number_mask = u32::from_be_bytes(mask) >> payload_bits << payload_bits;
    let masked = u32::from_be_bytes(*bytes) ^ number_mask;
    *bytes = masked.to_be_bytes();
    Some(masked >> payload_bits)
}

/// Which bits of the first byte are under protection (RFC 9001 §5.4.1).
const fn masked_bits(first_byte: u8) -> u8 {
    if first_byte & HEADER_FORM == 0 {
        SHORT_MASKED
    } else {
        LONG_MASKED
    }
}

/// The fewest bytes that packet number, payload and tag may have together, for a sample to be there.
pub(super) const SEALED_LEN_MIN: usize = SAMPLE_OFFSET + SAMPLE_LEN;
