//! Retry packets (RFC 9000 §17.2.5, RFC 9001 §5.8).

use super::{
    PacketError, PacketFault, Rules, Version,
    long::{Prefix, encode_version_and_ids, first_byte},
    version::LongType,
};
use crate::{BufferFull, ConnectionId, Encode, Reader, Writer};

#[cfg(test)]
mod tests;

/// How many bytes the Retry Integrity Tag has (RFC 9001 §5.8).
const TAG_LEN: usize = 16;

/// A Retry packet without its integrity tag (RFC 9000 §17.2.5), for servers to send.
///
/// The tag is computed over what [`encode_retry_pseudo_packet`] writes, and comes behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryHeader<'a> {
    /// The version of the client's packet.
    pub version: Version,
    /// The client's connection ID.
    pub destination: ConnectionId,
    /// The connection ID the client is to send its next Initial packet to.
    pub source: ConnectionId,
    /// The token, opaque to the client, and not empty.
    pub token: &'a [u8],
    /// The four lowest bits of the first byte: any.
    pub unused_bits: u8,
    /// The fixed bit: true, unless the client is known to tolerate 0 (RFC 9287 §3.1).
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

/// A Retry packet that a client received (RFC 9000 §17.2.5). Authentic only if the tag is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry<'a> {
    /// The version.
    pub version: Version,
    /// The client's connection ID.
    pub destination: ConnectionId,
    /// The connection ID to send to from now on.
    pub source: ConnectionId,
    /// The token to send in all Initial packets from now on. Not empty.
    pub token: &'a [u8],
    /// The packet up to the tag, for [`encode_retry_pseudo_packet`].
    pub without_tag: &'a [u8],
    /// The tag that came with it.
    pub integrity_tag: [u8; TAG_LEN],
}

impl<'a> Retry<'a> {
    pub(super) fn decode(bytes: &'a [u8], rules: Rules) -> Result<Self, PacketError> {
        let at = |fault, offset| PacketError { fault, offset };
        let Some((without_tag, integrity_tag)) = bytes.split_last_chunk() else {
            return Err(at(PacketFault::Truncated, bytes.len()));
        };
        let mut reader = Reader::new(without_tag);
        let prefix = Prefix::decode(&mut reader, rules)
            .and_then(|prefix| prefix.ok_or(PacketFault::Truncated))
            .map_err(|fault| at(fault, reader.position()))?;
        if reader.is_empty() {
            return Err(at(PacketFault::EmptyRetryToken, reader.position()));
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

/// Writes the Retry Pseudo-Packet, which the integrity tag authenticates (RFC 9001 §5.8): the destination connection ID
/// of the client's first Initial packet, and the Retry packet up to the tag.
///
/// # Errors
///
/// It does not fit.
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
