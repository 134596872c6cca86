//! Short headers: 1-RTT packets (RFC 9000 §17.3.1).

use super::{
    DecodeConfig, PacketBuilder, PacketError, PacketErrorKind, PacketType, TruncatedPacketNumber,
    first_byte::{FIXED_BIT, KEY_PHASE, SPIN_BIT},
    layout::PacketLayout,
    protected::Header,
};
use crate::{BufferFull, ConnectionId, Writer};

/// The header of an outgoing 1-RTT packet (RFC 9000 §17.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortHeader<'a> {
    /// The peer's connection ID.
    pub destination: &'a ConnectionId,
    /// The packet number.
    pub number: TruncatedPacketNumber,
    /// The latency spin bit (RFC 9000 §17.4).
    pub spin_bit: bool,
    /// The key phase (RFC 9001 §6).
    pub key_phase: bool,
    /// The fixed bit: `true` unless the peer sent `grease_quic_bit` (RFC 9287 §3.1).
    pub fixed_bit: bool,
}

impl ShortHeader<'_> {
    /// Writes the header. Write the frames next, then call [`PacketBuilder::finish`].
    ///
    /// # Errors
    ///
    /// Returns [`BufferFull`] if the header does not fit. Nothing is written.
    #[inline]
    pub fn begin(&self, writer: &mut Writer<'_>) -> Result<PacketBuilder, BufferFull> {
        let mut first_byte = self.number.len().to_bits();
        if self.fixed_bit {
            first_byte |= FIXED_BIT;
        }
        if self.spin_bit {
            first_byte |= SPIN_BIT;
        }
        if self.key_phase {
            first_byte |= KEY_PHASE;
        }
        writer.atomically(|writer| {
            let start = writer.position();
            writer.u8(first_byte)?;
            writer.bytes(self.destination.as_slice())?;
            PacketBuilder::begin(writer, start, None, self.number)
        })
    }
}

/// Parses a short header. A 1-RTT packet extends to the end of the datagram.
#[inline]
pub(super) fn parse(bytes: &[u8], config: DecodeConfig) -> Result<PacketLayout, PacketError> {
    let at = |kind, offset| PacketError { kind, offset };
    let first_byte = *bytes.first().ok_or(at(PacketErrorKind::Truncated, 0))?;
    config
        .check_fixed_bit(first_byte)
        .map_err(|kind| at(kind, 0))?;
    if config.connection_id_len > ConnectionId::MAX_LEN {
        return Err(at(PacketErrorKind::ConnectionIdTooLong, 1));
    }
    let number_offset = 1 + config.connection_id_len;
    if bytes.len() < number_offset {
        return Err(at(PacketErrorKind::Truncated, 1));
    }
    Ok(PacketLayout::Protected {
        header: Header {
            packet_type: PacketType::OneRtt,
            destination: 1..number_offset,
            long: None,
        },
        number_offset,
        end: bytes.len(),
    })
}
