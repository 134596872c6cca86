//! Building packets: headers and sealing (RFC 9000 §17, RFC 9001 §5).

use lastbyte_wire::{
    ConnectionId, Writer,
    packet::{
        LongHeader, LongKind, PacketBuilder, PacketNumber, PacketType, ShortHeader,
        TruncatedPacketNumber,
    },
};

use super::Handshake;
use crate::{
    crypto::{SealError, TAG_LEN},
    random::Random,
    space::Space,
};

impl Handshake {
    /// Writes the header of a packet. `fixed_bit` is 0 where greased (RFC 9287).
    pub(in crate::connection) fn begin_packet(
        &self,
        space: Space,
        number: TruncatedPacketNumber,
        destination: &ConnectionId,
        fixed_bit: bool,
        random: &mut Random,
        writer: &mut Writer<'_>,
    ) -> Option<PacketBuilder> {
        let kind = match self.packet_type(space) {
            PacketType::Initial => {
                let client = self.state.as_ref().and_then(|state| state.client.as_ref());
                LongKind::Initial {
                    token: client.map_or(&[], |client| &client.token),
                }
            }
            PacketType::Handshake => LongKind::Handshake,
            PacketType::ZeroRtt => LongKind::ZeroRtt,
            PacketType::OneRtt => {
                let header = ShortHeader {
                    destination,
                    number,
                    // RFC 9000 §17.4: the spin bit is disabled by sending a random value.
                    spin_bit: random.bit(),
                    key_phase: self.one_rtt.as_ref()?.key_phase(),
                    fixed_bit,
                };
                return header.begin(writer).ok();
            }
        };
        let header = LongHeader {
            kind,
            version: match kind {
                // RFC 9369 §4.1: 0-RTT packets stay in the version of the first flight.
                LongKind::ZeroRtt => self.first_version(),
                _ => self.version,
            },
            destination: *destination,
            source: self.local_id,
            number,
            fixed_bit,
        };
        header.begin(writer).ok()
    }

    /// Appends the tag at `end`, seals the packet and protects its header. Returns its length; `None` if there are no
    /// keys or no room. An open connection does not seal with keys that have reached their limit.
    pub(in crate::connection) fn seal(
        &mut self,
        space: Space,
        number: PacketNumber,
        packet: PacketBuilder,
        end: usize,
        room: &mut [u8],
        is_open: bool,
    ) -> Option<Result<usize, SealError>> {
        let mut writer = Writer::new(room);
        writer.reserve(end).ok()?;
        let finished = packet.finish(&mut writer, TAG_LEN).ok()?;
        let written = writer.written_mut();
        let sealed = match self.packet_type(space) {
            PacketType::Initial | PacketType::Handshake => {
                let keys = self.keys.get(space).as_ref()?;
                keys.seal.protect(number, &finished, written)
            }
            PacketType::ZeroRtt => self.zero_rtt.as_ref()?.protect(number, &finished, written),
            PacketType::OneRtt => {
                let keys = self.one_rtt_mut()?;
                if keys.is_spent() && is_open {
                    Err(SealError::LimitReached)
                } else {
                    keys.protect(number, &finished, written)
                }
            }
        };
        Some(sealed.map(|()| finished.end))
    }
}
