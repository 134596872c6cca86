//! Packets taken apart, and put together with other frames: the twin's keys are the right ones, and its masks are zero.

use std::time::Duration;

use lastbyte_congestion::Time;
use lastbyte_quic::crypto::{DirectionalKeys, Keys, NewKeys, OneRttKeys, TAG_LEN, plain};
use lastbyte_wire::{
    ConnectionId, Side, Writer,
    packet::{
        DecodeConfig, LongHeader, LongKind, Packet, PacketNumber, PacketNumberLen, PacketType,
        Packets, ShortHeader, TruncatedPacketNumber, Version,
    },
};

use super::frames::{Input, frame};

const DECODE: DecodeConfig = DecodeConfig {
    connection_id_len: 8,
    grease_quic_bit: true,
};

/// What one end seals with, and the largest packet number that it sent in each space.
#[derive(Debug, Default)]
pub(crate) struct KeyRing {
    /// What the keys of Initial packets follow from.
    first: Option<ConnectionId>,
    zero_rtt: Option<DirectionalKeys>,
    handshake: Option<Keys>,
    one_rtt: Option<Box<OneRttKeys>>,
    largest: [Option<PacketNumber>; 3],
}

/// A packet in the clear.
struct Clear {
    kind: PacketType,
    version: Option<Version>,
    destination: ConnectionId,
    source: Option<ConnectionId>,
    token: Vec<u8>,
    number: TruncatedPacketNumber,
    key_phase: bool,
    frames: Vec<u8>,
}

const fn space(kind: PacketType) -> usize {
    match kind {
        PacketType::Initial => 0,
        PacketType::Handshake => 1,
        PacketType::ZeroRtt | PacketType::OneRtt => 2,
    }
}

/// The packets of a datagram; `None` if it has others.
fn take_apart(datagram: &[u8]) -> Option<Vec<Clear>> {
    let mut copy = datagram.to_vec();
    let mut all = Vec::new();
    for packet in Packets::new(&mut copy, DECODE) {
        let Ok(Packet::Protected(packet)) = packet else {
            return None;
        };
        let packet = packet.unmask([0; 5]);
        let len = packet.payload.len().checked_sub(TAG_LEN)?;
        all.push(Clear {
            kind: packet.packet_type(),
            version: packet.version(),
            destination: ConnectionId::new(packet.destination())?,
            source: packet.source().and_then(ConnectionId::new),
            token: packet.token().to_vec(),
            number: packet.number(),
            key_phase: packet.key_phase(),
            frames: packet.payload.get(..len)?.to_vec(),
        });
    }
    Some(all)
}

impl KeyRing {
    pub(crate) fn add(&mut self, keys: NewKeys) {
        match keys {
            NewKeys::ZeroRtt(keys) => self.zero_rtt = Some(keys),
            NewKeys::Handshake(keys) => self.handshake = Some(keys),
            NewKeys::OneRtt(keys) => self.one_rtt = Some(keys),
        }
    }

    /// The keys of Initial packets follow from this.
    pub(crate) fn begin(&mut self, destination: ConnectionId) {
        self.first = Some(destination);
    }

    /// What an end sends.
    pub(crate) fn note(&mut self, datagram: &[u8]) {
        for packet in take_apart(datagram).into_iter().flatten() {
            let largest = &mut self.largest[space(packet.kind)];
            *largest = (*largest).max(Some(packet.number.expand(*largest)));
            if packet.kind == PacketType::OneRtt {
                self.follow(packet.key_phase);
            }
        }
    }

    /// Updates the keys when those of the end were.
    fn follow(&mut self, key_phase: bool) {
        let now = Time::ZERO;
        if let Some(keys) = &mut self.one_rtt
            && keys.key_phase() != key_phase
        {
            keys.on_handshake_confirmed();
            let generation = keys.generation();
            let _ = keys.on_ack(PacketNumber::MAX, generation, now, Duration::ZERO);
            let _ = keys.update(now);
        }
    }

    /// A datagram with other frames in its last packet, sealed again. `None` if it cannot be.
    pub(crate) fn rewrite(
        &mut self,
        end: usize,
        datagram: &[u8],
        input: &mut Input<'_>,
    ) -> Option<Vec<u8>> {
        let mut packets = take_apart(datagram)?;
        let how = input.byte();
        let which = usize::from(how >> 4) % packets.len().max(1);
        let packet = packets.get_mut(which)?;
        let mut frames = Vec::new();
        for _ in 0..=how & 3 {
            frame(input, &mut frames);
        }
        match how >> 2 & 3 {
            0 => packet.frames = frames,
            1 => packet.frames.splice(..0, frames).for_each(drop),
            2 => {
                let at = usize::from(input.byte()) % packet.frames.len().max(1);
                if let Some(byte) = packet.frames.get_mut(at) {
                    *byte ^= input.byte();
                }
            }
            _ => packet.frames.extend(frames),
        }
        let mut out = Vec::new();
        for packet in &packets {
            out.extend(self.seal(end, packet)?);
        }
        Some(out)
    }

    /// A 1-RTT packet for the connection that has this ID.
    pub(crate) fn forge(&mut self, id: ConnectionId, input: &mut Input<'_>) -> Option<Vec<u8>> {
        let key_phase = self.one_rtt.as_ref()?.key_phase();
        let how = input.byte();
        let ahead = if how & 0x80 == 0 {
            u64::from(how & 7) + 1
        } else {
            1 << (how & 31)
        };
        let largest = self.largest[2].map_or(0, PacketNumber::get);
        let mut frames = Vec::new();
        for _ in 0..=how >> 5 & 3 {
            frame(input, &mut frames);
        }
        let packet = Clear {
            kind: PacketType::OneRtt,
            version: None,
            destination: id,
            source: None,
            token: Vec::new(),
            number: PacketNumber::new(largest + ahead)?.truncate_to(PacketNumberLen::Four),
            key_phase,
            frames,
        };
        self.seal(2, &packet)
    }

    fn seal(&mut self, end: usize, packet: &Clear) -> Option<Vec<u8>> {
        let number = packet.number.expand(self.largest[space(packet.kind)]);
        let mut buffer = vec![0; packet.frames.len() + 200];
        let mut writer = Writer::new(&mut buffer);
        let open = if packet.kind == PacketType::OneRtt {
            let header = ShortHeader {
                destination: &packet.destination,
                number: packet.number,
                spin_bit: false,
                key_phase: packet.key_phase,
                fixed_bit: true,
            };
            header.begin(&mut writer).ok()?
        } else {
            let header = LongHeader {
                kind: match packet.kind {
                    PacketType::Initial => LongKind::Initial {
                        token: &packet.token,
                    },
                    PacketType::Handshake => LongKind::Handshake,
                    _ => LongKind::ZeroRtt,
                },
                version: packet.version?,
                destination: packet.destination,
                source: packet.source?,
                number: packet.number,
                fixed_bit: true,
            };
            header.begin(&mut writer).ok()?
        };
        writer.bytes(&packet.frames).ok()?;
        let finished = open.finish(&mut writer, TAG_LEN).ok()?;
        let written = writer.written_mut();
        match packet.kind {
            PacketType::Initial => {
                let destination = self.first?;
                let side = if end == 0 { Side::Client } else { Side::Server };
                plain::initial_keys(side, packet.version?, &destination)
                    .seal
                    .protect(number, &finished, written)
            }
            PacketType::Handshake => self
                .handshake
                .as_ref()?
                .seal
                .protect(number, &finished, written),
            PacketType::ZeroRtt => self.zero_rtt.as_ref()?.protect(number, &finished, written),
            PacketType::OneRtt => self.one_rtt.as_mut()?.protect(number, &finished, written),
        }
        .ok()?;
        let len = writer.position();
        buffer.truncate(len);
        Some(buffer)
    }
}
