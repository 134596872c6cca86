//! Retry packets (RFC 9000 §8.1.2, §17.2.5).
//!
//! Owns: the bytes of one. Never: decides whether one is due, or makes its token.

use lastbyte_wire::{
    ConnectionId, Encode, Writer,
    packet::{RetryHeader, Version},
};

use crate::crypto::retry;

/// What a Retry packet says.
pub(super) struct RetryPacket<'a> {
    pub(super) version: Version,
    /// The client's own ID.
    pub(super) client: ConnectionId,
    /// The destination of the client's packet.
    pub(super) original_destination: ConnectionId,
    /// What the client is to send to now.
    pub(super) source: ConnectionId,
    pub(super) token: &'a [u8],
    pub(super) unused_bits: u8,
}

impl RetryPacket<'_> {
    /// Writes the packet with its tag. Returns its length; `None` if it does not fit.
    pub(super) fn write(&self, buffer: &mut [u8]) -> Option<usize> {
        let header = RetryHeader {
            version: self.version,
            destination: self.client,
            source: self.source,
            token: self.token,
            unused_bits: self.unused_bits,
            fixed_bit: true,
        };
        let mut writer = Writer::new(buffer);
        header.encode(&mut writer).ok()?;
        let tag = retry::tag(self.version, &self.original_destination, writer.written())?;
        writer.bytes(&tag).ok()?;
        Some(writer.position())
    }
}
