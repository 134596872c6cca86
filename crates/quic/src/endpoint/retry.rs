//! Retry packets (RFC 9000 §8.1.2, §17.2.5).
//!
//! Owns their encoding.

use lastbyte_wire::{
    ConnectionId, Encode, Writer,
    packet::{RetryHeader, Version},
};

use crate::crypto::retry;

/// The content of a Retry packet.
pub(super) struct RetryPacket<'a> {
    pub(super) version: Version,
    /// The client's source connection ID.
    pub(super) client: ConnectionId,
    /// The destination connection ID of the client's packet.
    pub(super) original_destination: ConnectionId,
    /// The connection ID that the client must send to next.
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
