//! Retry packets (RFC 9000 §17.2.5, RFC 9001 §5.8).

use super::{
    DecodeConfig, PacketError, PacketErrorKind, Version,
    long::{Prefix, encode_version_and_ids, first_byte},
    version::LongType,
};
use crate::{BufferFull, ConnectionId, Encode, Reader, Writer};

#[cfg(test)]
mod tests;

/// The length in bytes of the Retry Integrity Tag (RFC 9001 §5.8).
const TAG_LEN: usize = 16;

/// An outgoing Retry packet without its integrity tag (RFC 9000 §17.2.5).
///
/// The tag is computed over the output of [`encode_retry_pseudo_packet`] and appended to the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryHeader<'a> {
    /// The version of the client's packet.
    pub version: Version,
    /// The client's connection ID.
    pub destination: ConnectionId,
    /// The connection ID to which the client must send its next Initial packet.
    pub source: ConnectionId,
    /// The token, opaque to the client. Must not be empty.
    pub token: &'a [u8],
    /// The four least significant bits of the first byte, which may have any value.
    pub unused_bits: u8,
    /// The fixed bit: `true` unless the client is known to accept 0 (RFC 9287 §3.1).
    pub fixed_bit: bool,
}

impl Encode for RetryHeader<'_> {
    fn encoded_len(&self) -> usize {
        1 + 4 + 1 + self.destination.len() + 1 + self.source.len() + self.token.len()
    }

    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), BufferFull> {
        let first_byte = first_byte(self.version, LongType::Retry, self.fixed_bit);
        writer.atomically(|writer| {
            writer.u8(first_byte | self.unused_bits & 0x0f)?;
            encode_version_and_ids(writer, self.version, &self.destination, &self.source)?;
            writer.bytes(self.token)
        })
    }
}

/// A received Retry packet (RFC 9000 §17.2.5). It is authentic only if the integrity tag is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry<'a> {
    /// The version.
    pub version: Version,
    /// The client's connection ID.
    pub destination: ConnectionId,
    /// The connection ID to send to from now on.
    pub source: ConnectionId,
    /// The token to include in all subsequent Initial packets. Not empty.
    pub token: &'a [u8],
    /// The packet without the tag, for [`encode_retry_pseudo_packet`].
    pub without_tag: &'a [u8],
    /// The received Retry Integrity Tag.
    pub integrity_tag: [u8; TAG_LEN],
}

impl<'a> Retry<'a> {
    pub(super) fn decode(bytes: &'a [u8], config: DecodeConfig) -> Result<Self, PacketError> {
        let at = |kind, offset| PacketError { kind, offset };
        let Some((without_tag, integrity_tag)) = bytes.split_last_chunk() else {
            return Err(at(PacketErrorKind::Truncated, bytes.len()));
        };
        let mut reader = Reader::new(without_tag);
        let prefix = Prefix::decode(&mut reader, config)
            .and_then(|prefix| prefix.ok_or(PacketErrorKind::Truncated))
            .map_err(|kind| at(kind, reader.position()))?;
        if reader.is_empty() {
            return Err(at(PacketErrorKind::EmptyRetryToken, reader.position()));
        }
        Ok(Self {
            version: prefix.version,
            destination: prefix.destination,
            source: prefix.source,
            token: reader.take_rest(),
            without_tag,
            integrity_tag: *integrity_tag,
        })
    }
}

/// Writes the Retry Pseudo-Packet, over which the integrity tag is computed (RFC 9001 §5.8): the destination connection
/// ID of the client's first Initial packet, and the Retry packet without the tag.
///
/// # Errors
///
/// Returns [`BufferFull`] if it does not fit.
pub fn encode_retry_pseudo_packet(
    original_destination: &ConnectionId,
    without_tag: &[u8],
    writer: &mut Writer<'_>,
) -> Result<(), BufferFull> {
    writer.atomically(|writer| {
        writer.u8(original_destination.len() as u8)?;
        writer.bytes(original_destination.as_slice())?;
        writer.bytes(without_tag)
    })
}
