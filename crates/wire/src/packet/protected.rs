//! Received packets before and after header protection is removed (RFC 9001 §5.4).

use core::ops::Range;

use super::{
    PacketError, PacketErrorKind, PacketNumberLen, PacketType, TruncatedPacketNumber, Version,
    first_byte::{
        HEADER_FORM, KEY_PHASE, LONG_MASKED, LONG_RESERVED, SHORT_MASKED, SHORT_RESERVED, SPIN_BIT,
    },
};
use crate::ConnectionId;

#[cfg(test)]
mod tests;

/// The length in bytes of the ciphertext sample for header protection (RFC 9001 §5.4.2).
pub const SAMPLE_LEN: usize = 16;

/// A header protection mask: one byte for the first byte, four for the packet number (RFC 9001 §5.4.1).
pub type HeaderMask = [u8; 5];

/// Offset of the sample from the packet number, which is assumed to take four bytes (RFC 9001 §5.4.2).
const SAMPLE_OFFSET: usize = 4;

/// The unprotected fields of a header, as ranges of the packet.
#[derive(Clone, Debug)]
pub(super) struct Header {
    pub(super) packet_type: PacketType,
    /// At most 20 bytes.
    pub(super) destination: Range<usize>,
    /// Present in long headers.
    pub(super) long: Option<LongFields>,
}

#[derive(Clone, Debug)]
pub(super) struct LongFields {
    pub(super) version: Version,
    /// At most 20 bytes.
    pub(super) source: Range<usize>,
    /// Empty except in Initial packets.
    pub(super) token: Range<usize>,
}

/// A received Initial, 0-RTT, Handshake or 1-RTT packet under header protection.
#[derive(Debug)]
pub struct Protected<'a> {
    bytes: &'a mut [u8],
    header: Header,
    /// The packet is known to be long enough for a sample at this offset.
    number_offset: usize,
    sample: [u8; SAMPLE_LEN],
}

/// A packet after header protection has been removed. Its payload is still encrypted.
#[derive(Debug)]
pub struct Unmasked<'a> {
    /// The header, which the AEAD authenticates (RFC 9001 §5.3).
    pub associated_data: &'a [u8],
    /// The ciphertext and AEAD tag, to be decrypted in place.
    pub payload: &'a mut [u8],
    header: Header,
    first_byte: u8,
    number: TruncatedPacketNumber,
}

impl<'a> Protected<'a> {
    /// Returns `None` if the packet is too short for a sample (RFC 9001 §5.4.2).
    pub(super) fn new(bytes: &'a mut [u8], header: Header, number_offset: usize) -> Option<Self> {
        let sample = sample(bytes, number_offset)?;
        Some(Self {
            bytes,
            header,
            number_offset,
            sample,
        })
    }

    /// The packet type.
    pub const fn packet_type(&self) -> PacketType {
        self.header.packet_type
    }

    /// The destination connection ID.
    pub fn destination(&self) -> ConnectionId {
        connection_id(self.header.destination(self.bytes))
    }

    /// The version, if this is a long header.
    pub fn version(&self) -> Option<Version> {
        self.header.version()
    }

    /// The source connection ID, if this is a long header.
    pub fn source(&self) -> Option<ConnectionId> {
        self.header.source(self.bytes).map(connection_id)
    }

    /// The token of an Initial packet; empty in other packets. A token from a server must be empty (RFC 9000 §17.2.2).
    pub fn token(&self) -> &[u8] {
        self.header.token(self.bytes)
    }

    /// The complete packet as received, for example to buffer it until its keys are available.
    pub const fn bytes(&self) -> &[u8] {
        self.bytes
    }

    /// The sample from which the header protection key derives the mask.
    pub const fn sample(&self) -> &[u8; SAMPLE_LEN] {
        &self.sample
    }

    /// Removes header protection.
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
        // Neither default is ever used: four bytes from the packet number on, and the sample after them, are known to
        // be present.
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
    /// The packet type.
    pub const fn packet_type(&self) -> PacketType {
        self.header.packet_type
    }

    /// The destination connection ID.
    pub fn destination(&self) -> &'a [u8] {
        self.header.destination(self.associated_data)
    }

    /// The version, if this is a long header.
    pub fn version(&self) -> Option<Version> {
        self.header.version()
    }

    /// The source connection ID, if this is a long header.
    pub fn source(&self) -> Option<&'a [u8]> {
        self.header.source(self.associated_data)
    }

    /// The token of an Initial packet; empty in other packets. A token from a server must be empty (RFC 9000 §17.2.2).
    pub fn token(&self) -> &'a [u8] {
        self.header.token(self.associated_data)
    }

    /// The truncated packet number.
    pub const fn number(&self) -> TruncatedPacketNumber {
        self.number
    }

    /// The latency spin bit of a 1-RTT packet (RFC 9000 §17.4).
    pub const fn spin_bit(&self) -> bool {
        self.is_short() && self.first_byte & SPIN_BIT != 0
    }

    /// The key phase of a 1-RTT packet (RFC 9001 §6).
    pub const fn key_phase(&self) -> bool {
        self.is_short() && self.first_byte & KEY_PHASE != 0
    }

    /// Checks that the reserved bits are 0. Call this only after the packet has been authenticated: an attacker can set
    /// these bits, or learn about the header protection key from the reaction (RFC 9001 §9.5).
    ///
    /// # Errors
    ///
    /// Returns [`PacketErrorKind::ReservedBits`] if they are not 0, which is a `PROTOCOL_VIOLATION` (RFC 9000 §17.2,
    /// §17.3.1).
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
                kind: PacketErrorKind::ReservedBits,
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

    pub(super) fn destination<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        bytes.get(self.destination.clone()).unwrap_or_default()
    }

    fn source<'b>(&self, bytes: &'b [u8]) -> Option<&'b [u8]> {
        let long = self.long.as_ref()?;
        Some(bytes.get(long.source.clone()).unwrap_or_default())
    }

    fn token<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        self.long
            .as_ref()
            .and_then(|long| bytes.get(long.token.clone()))
            .unwrap_or_default()
    }
}

/// The default is never used: the length was checked when the header was parsed.
pub(super) fn connection_id(bytes: &[u8]) -> ConnectionId {
    ConnectionId::new(bytes).unwrap_or_default()
}

/// The sample of a packet whose packet number starts at this offset (RFC 9001 §5.4.2).
pub(super) fn sample(packet: &[u8], number_offset: usize) -> Option<[u8; SAMPLE_LEN]> {
    packet
        .get(number_offset.checked_add(SAMPLE_OFFSET)?..)?
        .first_chunk()
        .copied()
}

/// Applies header protection (RFC 9001 §5.4.1). Returns `None` if the packet is too short for a sample.
pub(super) fn mask(packet: &mut [u8], number_offset: usize, mask: HeaderMask) -> Option<()> {
    let [first_mask, number_mask @ ..] = mask;
    let first_byte = *packet.first()?;
    let len = PacketNumberLen::from_bits(first_byte);
    mask_number(packet, number_offset, len, number_mask)?;
    *packet.first_mut()? ^= first_mask & masked_bits(first_byte);
    Some(())
}

/// Applies the mask to the packet number and returns the result. Returns `None` if fewer than four bytes follow.
#[inline]
fn mask_number(
    packet: &mut [u8],
    number_offset: usize,
    len: PacketNumberLen,
    mask: [u8; 4],
) -> Option<u32> {
    let bytes = packet.get_mut(number_offset..)?.first_chunk_mut()?;
    // Bytes after a shorter packet number are payload and must not change.
    let payload_bits = u32::BITS - len.bits();
    let number_mask = u32::from_be_bytes(mask) >> payload_bits << payload_bits;
    let masked = u32::from_be_bytes(*bytes) ^ number_mask;
    *bytes = masked.to_be_bytes();
    Some(masked >> payload_bits)
}

/// The bits of the first byte under header protection (RFC 9001 §5.4.1).
const fn masked_bits(first_byte: u8) -> u8 {
    if first_byte & HEADER_FORM == 0 {
        SHORT_MASKED
    } else {
        LONG_MASKED
    }
}

/// The minimum length in bytes of packet number, payload and tag together, so that a sample can be taken.
pub(super) const SEALED_LEN_MIN: usize = SAMPLE_OFFSET + SAMPLE_LEN;
