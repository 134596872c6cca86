//! Long headers: Initial, 0-RTT and Handshake packets (RFC 9000 §17.2).

use super::{
    DecodeConfig, LongInvariant, PacketBuilder, PacketError, PacketErrorKind, PacketType,
    TruncatedPacketNumber, Version, VersionNumber,
    first_byte::{FIXED_BIT, HEADER_FORM},
    layout::PacketLayout,
    protected::{Header, LongFields},
    version::LongType,
};
use crate::{BufferFull, ConnectionId, Reader, UnexpectedEnd, Writer};

/// The header of an outgoing Initial, 0-RTT or Handshake packet (RFC 9000 §17.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongHeader<'a> {
    /// The packet type.
    pub kind: LongKind<'a>,
    /// The version.
    pub version: Version,
    /// The peer's connection ID. In a client's first packets, the random connection ID that the client chose.
    pub destination: ConnectionId,
    /// The connection ID that the peer must use as destination.
    pub source: ConnectionId,
    /// The packet number.
    pub number: TruncatedPacketNumber,
    /// The fixed bit: `true` unless the peer sent `grease_quic_bit` (RFC 9287 §3.1).
    pub fixed_bit: bool,
}

/// The type of a [`LongHeader`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LongKind<'a> {
    /// RFC 9000 §17.2.2.
    Initial {
        /// The token that a client received in a Retry packet or `NEW_TOKEN` frame; otherwise empty.
        token: &'a [u8],
    },
    /// RFC 9000 §17.2.3.
    ZeroRtt,
    /// RFC 9000 §17.2.4.
    Handshake,
}

/// The Length field always takes two bytes, so that it can be filled in later.
const LENGTH_LEN: usize = 2;

impl LongHeader<'_> {
    /// Writes the header with a placeholder for the length. Write the frames next, then call [`PacketBuilder::finish`].
    ///
    /// # Errors
    ///
    /// Returns [`BufferFull`] if the header does not fit. Nothing is written.
    pub fn begin(&self, writer: &mut Writer<'_>) -> Result<PacketBuilder, BufferFull> {
        let long_type = match self.kind {
            LongKind::Initial { .. } => LongType::Initial,
            LongKind::ZeroRtt => LongType::ZeroRtt,
            LongKind::Handshake => LongType::Handshake,
        };
        writer.atomically(|writer| {
            let start = writer.position();
            writer
                .u8(first_byte(self.version, long_type, self.fixed_bit)
                    | self.number.len().to_bits())?;
            encode_version_and_ids(writer, self.version, &self.destination, &self.source)?;
            if let LongKind::Initial { token } = self.kind {
                writer.varint_prefixed(token)?;
            }
            let length_offset = writer.position();
            writer.zeros(LENGTH_LEN)?;
            PacketBuilder::begin(writer, start, Some(length_offset), self.number)
        })
    }
}

/// The first byte with its four least significant bits clear.
pub(super) fn first_byte(version: Version, long_type: LongType, fixed_bit: bool) -> u8 {
    let fixed_bit = if fixed_bit { FIXED_BIT } else { 0 };
    HEADER_FORM | fixed_bit | version.long_type_bits(long_type)
}

pub(super) fn encode_version_and_ids(
    writer: &mut Writer<'_>,
    version: Version,
    destination: &ConnectionId,
    source: &ConnectionId,
) -> Result<(), BufferFull> {
    writer.u32(version.number().get())?;
    for id in [destination, source] {
        writer.u8(id.len() as u8)?;
        writer.bytes(id.as_slice())?;
    }
    Ok(())
}

/// The fields common to all long headers of versions 1 and 2.
pub(super) struct Prefix {
    pub(super) version: Version,
    pub(super) long_type: LongType,
    pub(super) destination: ConnectionId,
    pub(super) source: ConnectionId,
}

impl Prefix {
    /// Returns `None` for a Version Negotiation packet.
    pub(super) fn decode(
        reader: &mut Reader<'_>,
        config: DecodeConfig,
    ) -> Result<Option<Self>, PacketErrorKind> {
        let first_byte = reader.u8()?;
        let invariant = LongInvariant::decode(reader, first_byte)?;
        if invariant.version == VersionNumber::NEGOTIATION {
            return Ok(None);
        }
        let unknown = PacketErrorKind::UnknownVersion(invariant.version);
        let version = invariant.version.known().ok_or(unknown)?;
        config.check_fixed_bit(first_byte)?;
        let id = |id| ConnectionId::new(id).ok_or(PacketErrorKind::ConnectionIdTooLong);
        Ok(Some(Self {
            version,
            long_type: version.long_type(first_byte),
            destination: id(invariant.destination)?,
            source: id(invariant.source)?,
        }))
    }
}

/// The header of a client's Initial packet, up to its token: for load balancers, which have no keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitialHeader<'a> {
    /// The version.
    pub version: Version,
    /// The destination connection ID.
    pub destination: ConnectionId,
    /// The source connection ID.
    pub source: ConnectionId,
    /// The token that the client received in a Retry packet or `NEW_TOKEN` frame; otherwise empty.
    pub token: &'a [u8],
}

impl<'a> InitialHeader<'a> {
    /// Parses the header of the first packet in a datagram. `None` if it is not an Initial packet of a supported version.
    pub fn decode(datagram: &'a [u8]) -> Option<Self> {
        let any_fixed_bit = DecodeConfig {
            connection_id_len: 0,
            grease_quic_bit: true,
        };
        // `Prefix` expects a long header.
        datagram
            .first()
            .filter(|first| **first & HEADER_FORM != 0)?;
        let mut reader = Reader::new(datagram);
        let prefix = Prefix::decode(&mut reader, any_fixed_bit).ok()??;
        let token = reader.varint_prefixed().ok()?;
        (prefix.long_type == LongType::Initial).then_some(Self {
            version: prefix.version,
            destination: prefix.destination,
            source: prefix.source,
            token,
        })
    }
}

pub(super) fn parse(bytes: &[u8], config: DecodeConfig) -> Result<PacketLayout, PacketError> {
    let mut reader = Reader::new(bytes);
    decode(&mut reader, config).map_err(|kind| PacketError {
        kind,
        offset: reader.position(),
    })
}

fn decode(reader: &mut Reader<'_>, config: DecodeConfig) -> Result<PacketLayout, PacketErrorKind> {
    let Some(prefix) = Prefix::decode(reader, config)? else {
        return Ok(PacketLayout::VersionNegotiation);
    };
    let packet_type = match prefix.long_type {
        LongType::Initial => PacketType::Initial,
        LongType::ZeroRtt => PacketType::ZeroRtt,
        LongType::Handshake => PacketType::Handshake,
        LongType::Retry => return Ok(PacketLayout::Retry),
    };
    let token = if packet_type == PacketType::Initial {
        let token = reader.varint_prefixed()?;
        reader.position() - token.len()..reader.position()
    } else {
        0..0
    };
    let length = reader.varint()?;
    let number_offset = reader.position();
    reader.bytes(usize::try_from(length.get()).map_err(|_| UnexpectedEnd)?)?;
    // Each connection ID is preceded by its length in one byte (RFC 9000 §17.2).
    let destination = DESTINATION_OFFSET..DESTINATION_OFFSET + prefix.destination.len();
    let source = destination.end + 1..destination.end + 1 + prefix.source.len();
    Ok(PacketLayout::Protected {
        header: Header {
            packet_type,
            destination,
            long: Some(LongFields {
                version: prefix.version,
                source,
                token,
            }),
        },
        number_offset,
        end: reader.position(),
    })
}

/// The first byte, the version and the connection ID length come before it.
const DESTINATION_OFFSET: usize = 1 + 4 + 1;

impl From<UnexpectedEnd> for PacketErrorKind {
    fn from(_: UnexpectedEnd) -> Self {
        Self::Truncated
    }
}
