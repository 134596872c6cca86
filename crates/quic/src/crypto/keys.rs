//! Packet protection keys of one direction and encryption level (RFC 9001 §5).
//!
//! Owns sealing and opening in place, header protection masks, and both combined for the packets of `lastbyte_wire`. It
//! does not allocate per packet, and does not count sealed packets ([`super::key_update`] does).
//!
//! Decision: of the mask's first byte only the five bits that headers can use (RFC 9001 §5.4.1) are returned; the TLS
//! library's keys apply masks rather than return them, and these bits can be read back.

use std::fmt;

use lastbyte_wire::{
    TransportError,
    packet::{FinishedPacket, HeaderMask, PacketNumber, Protected, SAMPLE_LEN, Unmasked},
};
use rustls::quic;

use super::{KeyUpdateErrorKind, plain};

#[cfg(test)]
mod tests;

/// The size of the tag: the same for each AEAD of TLS 1.3 that QUIC uses (RFC 9001 §5.3).
pub const TAG_LEN: usize = 16;

/// A key that seals or opens payloads.
pub struct PacketKey(PacketKeyKind);

enum PacketKeyKind {
    Aead(Box<dyn quic::PacketKey>),
    Plain(plain::PacketKey),
}

/// A key that produces header protection masks.
pub struct HeaderKey(HeaderKeyKind);

enum HeaderKeyKind {
    Cipher(Box<dyn quic::HeaderProtectionKey>),
    Plain,
}

/// The keys of one direction.
#[derive(Debug)]
pub struct DirectionalKeys {
    /// For payloads.
    pub packet: PacketKey,
    /// For headers.
    pub header: HeaderKey,
}

/// The keys of an encryption level.
#[derive(Debug)]
pub struct Keys {
    /// For sending.
    pub seal: DirectionalKeys,
    /// For receiving.
    pub open: DirectionalKeys,
}

/// An authentic packet.
#[derive(Debug)]
pub struct Opened<'a> {
    /// Its full number.
    pub number: PacketNumber,
    /// Its header, whose reserved bits must still be checked ([`Unmasked::check_reserved_bits`]).
    pub packet: Unmasked<'a>,
    len: usize,
}

impl<'a> Opened<'a> {
    pub(crate) const fn new(number: PacketNumber, packet: Unmasked<'a>, len: usize) -> Self {
        Self {
            number,
            packet,
            len,
        }
    }

    /// The frames.
    pub fn payload(&self) -> &[u8] {
        self.packet.payload.get(..self.len).unwrap_or_default()
    }

    /// The frames, borrowed from the datagram.
    pub fn into_payload(self) -> &'a [u8] {
        let len = self.len;
        let payload: &'a [u8] = self.packet.payload;
        payload.get(..len).unwrap_or_default()
    }
}

/// Why a packet was not sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// The buffer has no room for the packet with its tag and a header protection sample. Nothing was changed.
    #[error("the buffer does not have the packet with room for its tag")]
    Malformed,
    /// The payload is longer than the AEAD permits.
    #[error("the payload is too long to be sealed")]
    TooLong,
    /// The confidentiality limit of the keys is reached (RFC 9001 §6.6). Nothing was changed.
    #[error("no more packets may be sealed with these keys")]
    LimitReached,
}

impl SealError {
    /// The error code of the close.
    pub const fn transport_error(self) -> TransportError {
        match self {
            Self::Malformed | Self::TooLong => TransportError::INTERNAL_ERROR,
            Self::LimitReached => TransportError::AEAD_LIMIT_REACHED,
        }
    }
}

/// Why a packet was not opened. Its buffer then has undefined content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// It is not authentic: it is dropped, as if it had not been received (RFC 9001 §5.5, §9.5).
    #[error("the packet is not authentic")]
    NotAuthentic,
    /// It is not authentic, and the integrity limit is reached (RFC 9001 §6.6).
    #[error("too many packets were not authentic")]
    IntegrityLimitReached,
    /// It is authentic, and proves that the peer violated the key update rules (RFC 9001 §6).
    #[error("{0}")]
    KeyUpdate(KeyUpdateErrorKind),
}

impl OpenError {
    /// The error code of the close; `None` if the packet is merely dropped.
    pub const fn transport_error(self) -> Option<TransportError> {
        match self {
            Self::NotAuthentic => None,
            Self::IntegrityLimitReached => Some(TransportError::AEAD_LIMIT_REACHED),
            Self::KeyUpdate(_) => Some(TransportError::KEY_UPDATE_ERROR),
        }
    }
}

impl PacketKey {
    pub(super) const fn plain(key: plain::PacketKey) -> Self {
        Self(PacketKeyKind::Plain(key))
    }

    /// Seals a payload in place: its last [`TAG_LEN`] bytes are overwritten with the tag (RFC 9001 §5.3). A packet
    /// number must never be used twice.
    ///
    /// # Errors
    ///
    /// Returns [`SealError`] if there is no room for the tag, or the payload exceeds the AEAD's limit.
    #[inline]
    pub fn seal(
        &self,
        number: PacketNumber,
        header: &[u8],
        payload: &mut [u8],
    ) -> Result<(), SealError> {
        let (plaintext, tag) = payload
            .split_last_chunk_mut::<TAG_LEN>()
            .ok_or(SealError::Malformed)?;
        match &self.0 {
            PacketKeyKind::Aead(key) => {
                let sealed = key
                    .encrypt_in_place(number.get(), header, plaintext)
                    .map_err(|_| SealError::TooLong)?;
                let sealed = sealed.as_ref().first_chunk().ok_or(SealError::Malformed)?;
                *tag = *sealed;
            }
            PacketKeyKind::Plain(key) => *tag = key.tag(number, header, plaintext),
        }
        Ok(())
    }

    /// Opens a payload in place. Returns the length of the plaintext, which excludes the tag.
    ///
    /// # Errors
    ///
    /// Returns [`OpenError`] if it was not sealed by this key with this header and number.
    #[inline]
    pub fn open(
        &self,
        number: PacketNumber,
        header: &[u8],
        payload: &mut [u8],
    ) -> Result<usize, OpenError> {
        match &self.0 {
            PacketKeyKind::Aead(key) => key
                .decrypt_in_place(number.get(), header, payload)
                .map(<[u8]>::len)
                .map_err(|_| OpenError::NotAuthentic),
            PacketKeyKind::Plain(key) => payload
                .split_last_chunk()
                .filter(|(plaintext, tag)| key.tag(number, header, plaintext) == **tag)
                .map(|(plaintext, _)| plaintext.len())
                .ok_or(OpenError::NotAuthentic),
        }
    }

    /// The confidentiality limit: packets that may be sealed with it (RFC 9001 §6.6).
    pub fn confidentiality_limit(&self) -> u64 {
        match &self.0 {
            PacketKeyKind::Aead(key) => key.confidentiality_limit(),
            PacketKeyKind::Plain(key) => key.confidentiality_limit(),
        }
    }

    /// The integrity limit: packets that may fail authentication, with this key and all before and after it (RFC
    /// 9001 §6.6).
    pub fn integrity_limit(&self) -> u64 {
        match &self.0 {
            PacketKeyKind::Aead(key) => key.integrity_limit(),
            PacketKeyKind::Plain(key) => key.integrity_limit(),
        }
    }
}

impl HeaderKey {
    pub(super) const PLAIN: Self = Self(HeaderKeyKind::Plain);

    /// The mask for this header protection sample (RFC 9001 §5.4.1).
    #[inline]
    pub fn mask(&self, sample: &[u8; SAMPLE_LEN]) -> HeaderMask {
        /// A short header, so that five bits are masked, with a packet number of four bytes.
        const FIRST_BYTE: u8 = 0x03;
        match &self.0 {
            HeaderKeyKind::Cipher(key) => {
                let mut first = FIRST_BYTE;
                let mut number = [0; 4];
                // Fails only for other lengths of sample and packet number.
                let masked = key.encrypt_in_place(sample, &mut first, &mut number);
                debug_assert!(masked.is_ok(), "16 bytes are a sample");
                let [a, b, c, d] = number;
                [first ^ FIRST_BYTE, a, b, c, d]
            }
            HeaderKeyKind::Plain => [0; 5],
        }
    }

    /// Seals a packet and protects its header.
    #[inline]
    pub(super) fn protect(
        &self,
        packet_key: &PacketKey,
        number: PacketNumber,
        packet: &FinishedPacket,
        written: &mut [u8],
    ) -> Result<(), SealError> {
        let (header, payload) = written
            .get_mut(packet.start..packet.end)
            .and_then(|bytes| {
                bytes.split_at_mut_checked(packet.payload_offset.checked_sub(packet.start)?)
            })
            .ok_or(SealError::Malformed)?;
        packet_key.seal(number, header, payload)?;
        packet
            .sample(written)
            .and_then(|sample| packet.mask(written, self.mask(&sample)))
            .ok_or(SealError::Malformed)
    }
}

impl DirectionalKeys {
    /// Seals a finished packet with this number in its buffer, and protects its header (RFC 9001 §5.3, §5.4).
    ///
    /// # Errors
    ///
    /// See [`PacketKey::seal`]. The packet must not be sent.
    #[inline]
    pub fn protect(
        &self,
        number: PacketNumber,
        packet: &FinishedPacket,
        written: &mut [u8],
    ) -> Result<(), SealError> {
        self.header.protect(&self.packet, number, packet, written)
    }

    /// Removes header protection from a packet and opens it. `largest_received` is that of the packet's space, from
    /// which its number is decoded.
    ///
    /// # Errors
    ///
    /// Returns [`OpenError`] if it is not authentic.
    #[inline]
    pub fn unprotect<'a>(
        &self,
        packet: Protected<'a>,
        largest_received: Option<PacketNumber>,
    ) -> Result<Opened<'a>, OpenError> {
        let mask = self.header.mask(packet.sample());
        let packet = packet.unmask(mask);
        let number = packet.number().expand(largest_received);
        let len = self
            .packet
            .open(number, packet.associated_data, packet.payload)?;
        Ok(Opened::new(number, packet, len))
    }
}

impl From<Box<dyn quic::PacketKey>> for PacketKey {
    fn from(key: Box<dyn quic::PacketKey>) -> Self {
        Self(PacketKeyKind::Aead(key))
    }
}

impl From<quic::DirectionalKeys> for DirectionalKeys {
    fn from(keys: quic::DirectionalKeys) -> Self {
        Self {
            packet: keys.packet.into(),
            header: HeaderKey(HeaderKeyKind::Cipher(keys.header)),
        }
    }
}

impl From<quic::Keys> for Keys {
    fn from(keys: quic::Keys) -> Self {
        Self {
            seal: keys.local.into(),
            open: keys.remote.into(),
        }
    }
}

impl fmt::Debug for PacketKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PacketKey(..)")
    }
}

impl fmt::Debug for HeaderKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HeaderKey(..)")
    }
}
