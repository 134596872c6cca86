//! Version Negotiation packets (RFC 8999 §6, RFC 9000 §17.2.1).

use super::{
    LongInvariant, PacketError, PacketErrorKind, VersionNumber,
    first_byte::{FIXED_BIT, HEADER_FORM},
};
use crate::{BufferFull, Reader, Writer};

#[cfg(test)]
mod tests;

/// A received Version Negotiation packet, which lists the versions that the server supports (RFC 8999 §6). Connection
/// IDs may be up to 255 bytes long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionNegotiation<'a> {
    destination: &'a [u8],
    source: &'a [u8],
    /// Four bytes per version, at least one version.
    versions: &'a [u8],
}

/// An iterator over the versions of a [`VersionNegotiation`] packet.
#[derive(Clone, Debug)]
pub struct Versions<'a> {
    encoded: Reader<'a>,
}

impl<'a> VersionNegotiation<'a> {
    /// The destination connection ID, which is the source connection ID of the client's packet.
    pub const fn destination(&self) -> &'a [u8] {
        self.destination
    }

    /// The source connection ID, which is the destination connection ID of the client's packet.
    pub const fn source(&self) -> &'a [u8] {
        self.source
    }

    /// The supported versions, including reserved ones (RFC 9000 §6.3).
    pub const fn versions(&self) -> Versions<'a> {
        Versions {
            encoded: Reader::new(self.versions),
        }
    }

    /// Writes a Version Negotiation packet, or nothing if it does not fit. `destination` and `source` are the source
    /// and destination connection IDs of the client's packet. `random` fills the seven unused bits of the first byte,
    /// except that the fixed bit is set so that the packet can be distinguished from other protocols (RFC 9000
    /// §17.2.1).
    ///
    /// # Errors
    ///
    /// Returns [`BufferFull`] if the packet does not fit, or if a connection ID is longer than 255 bytes.
    pub fn encode(
        writer: &mut Writer<'_>,
        random: u8,
        destination: &[u8],
        source: &[u8],
        versions: &[VersionNumber],
    ) -> Result<(), BufferFull> {
        writer.atomically(|writer| {
            writer.u8(HEADER_FORM | FIXED_BIT | random)?;
            writer.u32(VersionNumber::NEGOTIATION.get())?;
            for id in [destination, source] {
                writer.u8(u8::try_from(id.len()).map_err(|_| BufferFull)?)?;
                writer.bytes(id)?;
            }
            versions
                .iter()
                .try_for_each(|version| writer.u32(version.get()))
        })
    }

    pub(super) fn decode(bytes: &'a [u8]) -> Result<Self, PacketError> {
        let mut reader = Reader::new(bytes);
        Self::decode_from(&mut reader).map_err(|kind| PacketError {
            kind,
            offset: reader.position(),
        })
    }

    fn decode_from(reader: &mut Reader<'a>) -> Result<Self, PacketErrorKind> {
        let first_byte = reader.u8()?;
        let invariant = LongInvariant::decode(reader, first_byte)?;
        if reader.is_empty() || !reader.remaining().is_multiple_of(4) {
            return Err(PacketErrorKind::VersionList);
        }
        Ok(Self {
            destination: invariant.destination,
            source: invariant.source,
            versions: reader.take_rest(),
        })
    }
}

impl Iterator for Versions<'_> {
    type Item = VersionNumber;

    fn next(&mut self) -> Option<VersionNumber> {
        self.encoded.u32().ok().map(VersionNumber::new)
    }
}

impl core::iter::FusedIterator for Versions<'_> {}
