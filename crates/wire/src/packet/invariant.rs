//! The version-independent properties of packets (RFC 8999 §5).

use super::{PacketError, PacketErrorKind, VersionNumber, first_byte::HEADER_FORM};
use crate::{Reader, UnexpectedEnd};

#[cfg(test)]
mod tests;

/// The version-independent header of the first packet in a datagram (RFC 8999 §5). It suffices to find the connection,
/// and to decide whether to send a Version Negotiation packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invariant<'a> {
    /// RFC 8999 §5.1.
    Long(LongInvariant<'a>),
    /// RFC 8999 §5.2.
    Short(ShortInvariant<'a>),
}

/// The version-independent fields of a long header (RFC 8999 §5.1). Connection IDs may be up to 255 bytes long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongInvariant<'a> {
    /// The first byte. All bits but the most significant are version-specific.
    pub first_byte: u8,
    /// The version.
    pub version: VersionNumber,
    /// The destination connection ID.
    pub destination: &'a [u8],
    /// The source connection ID.
    pub source: &'a [u8],
}

/// The version-independent fields of a short header (RFC 8999 §5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortInvariant<'a> {
    /// The first byte. All bits but the most significant are version-specific.
    pub first_byte: u8,
    /// The destination connection ID and the rest of the datagram.
    pub rest: &'a [u8],
}

impl<'a> Invariant<'a> {
    /// Parses the version-independent header of the first packet in a datagram.
    ///
    /// # Errors
    ///
    /// Returns [`PacketErrorKind::Truncated`] if the datagram ends inside the header.
    pub fn decode(datagram: &'a [u8]) -> Result<Self, PacketError> {
        let mut reader = Reader::new(datagram);
        Self::decode_from(&mut reader).map_err(|UnexpectedEnd| PacketError {
            kind: PacketErrorKind::Truncated,
            offset: reader.position(),
        })
    }

    fn decode_from(reader: &mut Reader<'a>) -> Result<Self, UnexpectedEnd> {
        let first_byte = reader.u8()?;
        Ok(if first_byte & HEADER_FORM == 0 {
            Self::Short(ShortInvariant {
                first_byte,
                rest: reader.take_rest(),
            })
        } else {
            Self::Long(LongInvariant::decode(reader, first_byte)?)
        })
    }

    /// The destination connection ID. In a short header it has the length of the connection IDs that the local endpoint
    /// issues. Returns `None` if the datagram is shorter than that.
    pub fn destination(&self, connection_id_len: usize) -> Option<&'a [u8]> {
        match self {
            Self::Long(long) => Some(long.destination),
            Self::Short(short) => short.rest.get(..connection_id_len),
        }
    }
}

impl<'a> LongInvariant<'a> {
    /// Parses the fields after the first byte.
    pub(super) fn decode(reader: &mut Reader<'a>, first_byte: u8) -> Result<Self, UnexpectedEnd> {
        let version = VersionNumber::new(reader.u32()?);
        let destination_len = reader.u8()?;
        let destination = reader.bytes(destination_len.into())?;
        let source_len = reader.u8()?;
        let source = reader.bytes(source_len.into())?;
        Ok(Self {
            first_byte,
            version,
            destination,
            source,
        })
    }
}
