use proptest::prelude::*;

use super::*;
use crate::{
    ConnectionId, Writer,
    packet::{
        LongHeader, LongKind, PacketNumber, PacketNumberLen, PacketType, SAMPLE_LEN, ShortHeader,
        Unmasked, Version, VersionNumber,
        tests::{CONFIG, TAG_LEN, hex},
    },
};

fn error_kinds(datagram: &mut [u8], config: DecodeConfig) -> Vec<Option<PacketErrorKind>> {
    Packets::new(datagram, config)
        .map(|packet| packet.err().map(|error| error.kind))
        .collect()
}

/// A version 1 Handshake packet with one-byte connection IDs and 20 bytes after the Length field.
fn handshake(destination: u8) -> Vec<u8> {
    let mut packet = vec![0xe0, 0, 0, 0, 1, 1, destination, 0, 20];
    packet.extend([0; 20]);
    packet
}

#[test]
fn rfc9000_12_2_packets_for_another_connection_id_are_discarded() {
    let mut datagram = [handshake(1), handshake(2), handshake(1)].concat();
    assert_eq!(
        error_kinds(&mut datagram, CONFIG),
        [None, Some(PacketErrorKind::ConnectionIdMismatch), None]
    );
    // This also applies to the last packet.
    let mut datagram = [handshake(1), handshake(2)].concat();
    assert_eq!(
        error_kinds(&mut datagram, CONFIG),
        [None, Some(PacketErrorKind::ConnectionIdMismatch)]
    );
}

#[test]
fn rfc9001_5_4_2_packets_too_short_for_a_sample_are_discarded() {
    let mut short = handshake(1);
    short[8] = 19;
    short.pop();
    let mut datagram = [short, handshake(1)].concat();
    assert_eq!(
        error_kinds(&mut datagram, CONFIG),
        [Some(PacketErrorKind::TooShort), None]
    );
    assert_eq!(
        error_kinds(&mut [0x40; 20], CONFIG),
        [Some(PacketErrorKind::TooShort)]
    );
    assert_eq!(error_kinds(&mut [0x40; 21], CONFIG), [None]);
}

#[test]
fn rfc9000_17_2_the_fixed_bit_is_1_unless_rfc9287_was_negotiated() {
    let mut long = handshake(1);
    long[0] = 0xa0;
    let greased = DecodeConfig {
        grease_quic_bit: true,
        ..CONFIG
    };
    for datagram in [&mut long[..], &mut [0x00; 30]] {
        assert_eq!(
            error_kinds(datagram, CONFIG),
            [Some(PacketErrorKind::FixedBit)]
        );
        assert_eq!(error_kinds(datagram, greased), [None]);
    }
}

#[test]
fn rfc9000_17_2_connection_ids_of_known_versions_have_at_most_20_bytes() {
    let header = |destination_len: u8, source_len: u8| {
        let mut datagram = hex("e000000001");
        datagram.push(destination_len);
        datagram.extend(vec![7; destination_len.into()]);
        datagram.push(source_len);
        datagram.extend(vec![7; source_len.into()]);
        datagram.push(20);
        datagram.extend([0; 20]);
        datagram
    };
    let too_long = [Some(PacketErrorKind::ConnectionIdTooLong)];
    assert_eq!(error_kinds(&mut header(20, 20), CONFIG), [None]);
    assert_eq!(error_kinds(&mut header(21, 0), CONFIG), too_long);
    assert_eq!(error_kinds(&mut header(0, 21), CONFIG), too_long);
    let config = DecodeConfig {
        connection_id_len: 21,
        ..CONFIG
    };
    assert_eq!(error_kinds(&mut [0x40; 60], config), too_long);
}

#[test]
fn a_packet_of_an_unknown_version_ends_the_datagram() {
    let unknown = hex("c01a2a3a4a00000014").into_iter().chain([0; 20]);
    let mut datagram: Vec<u8> = unknown.chain(handshake(1)).collect();
    assert_eq!(
        error_kinds(&mut datagram, CONFIG),
        [Some(PacketErrorKind::UnknownVersion(VersionNumber::new(
            0x1a2a_3a4a
        )))]
    );
}

#[test]
fn an_empty_datagram_holds_no_packet() {
    assert_eq!(error_kinds(&mut [], CONFIG), []);
}

/// Random parts of an outgoing packet.
#[derive(Clone, Debug)]
struct Parts {
    kind: u8,
    version: Version,
    destination: ConnectionId,
    source: ConnectionId,
    token: Vec<u8>,
    number: u32,
    number_len: PacketNumberLen,
    bits: [bool; 2],
    payload: Vec<u8>,
}

fn connection_id() -> impl Strategy<Value = ConnectionId> {
    prop::collection::vec(any::<u8>(), 0..=20)
        .prop_map(|id| ConnectionId::new(&id).expect("20 bytes at most"))
}

fn parts() -> impl Strategy<Value = Parts> {
    (
        (0_u8..4, any::<bool>(), connection_id(), connection_id()),
        prop::collection::vec(any::<u8>(), 0..100),
        (any::<u32>(), 0_u8..4, any::<[bool; 2]>()),
        prop::collection::vec(any::<u8>(), 1..200),
    )
        .prop_map(|(ids, token, number, payload)| Parts {
            kind: ids.0,
            version: if ids.1 { Version::V1 } else { Version::V2 },
            destination: ids.2,
            source: ids.3,
            token,
            number: number.0,
            number_len: PacketNumberLen::from_bits(number.1),
            bits: number.2,
            payload,
        })
}

impl Parts {
    fn write(&self, writer: &mut Writer<'_>, mask: [u8; 5]) {
        let number = PacketNumber::from(self.number).truncate_to(self.number_len);
        let long = |kind| LongHeader {
            kind,
            version: self.version,
            destination: self.destination,
            source: self.source,
            number,
            fixed_bit: true,
        };
        let open = match self.kind {
            0 => long(LongKind::Initial { token: &self.token }).begin(writer),
            1 => long(LongKind::ZeroRtt).begin(writer),
            2 => long(LongKind::Handshake).begin(writer),
            _ => ShortHeader {
                destination: &self.destination,
                number,
                spin_bit: self.bits[0],
                key_phase: self.bits[1],
                fixed_bit: true,
            }
            .begin(writer),
        };
        let open = open.expect("fits");
        writer.bytes(&self.payload).expect("fits");
        let packet = open.finish(writer, TAG_LEN).expect("fits");
        packet
            .mask(writer.written_mut(), mask)
            .expect("is complete");
    }

    fn check(&self, unmasked: &Unmasked<'_>) {
        let is_long = self.kind < 3;
        let packet_type = [
            PacketType::Initial,
            PacketType::ZeroRtt,
            PacketType::Handshake,
        ]
        .get(usize::from(self.kind))
        .copied()
        .unwrap_or(PacketType::OneRtt);
        assert_eq!(unmasked.packet_type(), packet_type);
        assert_eq!(unmasked.version(), is_long.then_some(self.version));
        assert_eq!(unmasked.destination(), self.destination.as_slice());
        let source = is_long.then_some(self.source.as_slice());
        assert_eq!(unmasked.source(), source);
        let token = if self.kind == 0 { &self.token[..] } else { &[] };
        assert_eq!(unmasked.token(), token);
        let number = PacketNumber::from(self.number).truncate_to(self.number_len);
        assert_eq!(unmasked.number(), number);
        assert_eq!(unmasked.spin_bit(), !is_long && self.bits[0]);
        assert_eq!(unmasked.key_phase(), !is_long && self.bits[1]);
        assert_eq!(unmasked.check_reserved_bits(), Ok(()));
        assert_eq!(unmasked.payload[..self.payload.len()], self.payload);
    }
}

proptest! {
    #[test]
    fn decode_inverts_encode(
        mut parts in prop::collection::vec(parts(), 1..4),
        mask in any::<[u8; 5]>(),
    ) {
        // The 1-RTT packet comes last, because it extends to the end of the datagram. All packets share a connection
        // ID.
        let destination = parts[0].destination;
        let last = parts.len() - 1;
        for (index, part) in parts.iter_mut().enumerate() {
            part.destination = destination;
            if index < last {
                part.kind %= 3;
            }
        }
        let mut buffer = vec![0; 2000];
        let mut writer = Writer::new(&mut buffer);
        for part in &parts {
            part.write(&mut writer, mask);
        }
        let config = DecodeConfig { connection_id_len: destination.len(), ..CONFIG };
        let mut packets = Packets::new(writer.written_mut(), config);
        for part in &parts {
            let Some(Ok(Packet::Protected(protected))) = packets.next() else {
                panic!("expected a protected packet");
            };
            part.check(&protected.unmask(mask));
        }
        prop_assert!(packets.next().is_none());
    }

    /// A truncated long header packet is an error, because its Length field says where it ends. A truncated short
    /// header packet is a shorter packet.
    #[test]
    fn a_truncated_packet_is_an_error(parts in parts(), mask in any::<[u8; 5]>()) {
        let mut buffer = vec![0; 1000];
        let mut writer = Writer::new(&mut buffer);
        parts.write(&mut writer, mask);
        let config = DecodeConfig { connection_id_len: parts.destination.len(), ..CONFIG };
        let len = writer.position();
        for cut in 1..len {
            let mut datagram = buffer[..cut].to_vec();
            let Some(packet) = Packets::new(&mut datagram, config).next() else {
                panic!("expected a packet");
            };
            match packet {
                Err(error) => {
                    prop_assert!(matches!(error.kind, PacketErrorKind::Truncated | PacketErrorKind::TooShort));
                    prop_assert!(error.offset <= cut);
                }
                Ok(Packet::Protected(protected)) => {
                    prop_assert_eq!(protected.packet_type(), PacketType::OneRtt);
                    prop_assert_eq!(protected.bytes().len(), cut);
                }
                Ok(other) => panic!("unexpected packet: {other:?}"),
            }
        }
    }

    #[test]
    fn any_datagram_terminates(
        mut datagram in prop::collection::vec(any::<u8>(), 0..300),
        version in 0_usize..4,
        connection_id_len in 0_usize..22,
        grease_quic_bit in any::<bool>(),
        mask in any::<[u8; 5]>(),
    ) {
        // Use mostly known versions, since packets of other versions are not parsed.
        let versions = [0, 1, 0x6b33_43cf, 0x1a2a_3a4a_u32];
        if let Some(bytes) = datagram.get_mut(1..5) {
            bytes.copy_from_slice(&versions[version].to_be_bytes());
        }
        let len = datagram.len();
        let config = DecodeConfig { connection_id_len, grease_quic_bit };
        let mut seen = 0;
        for packet in Packets::new(&mut datagram, config) {
            match packet {
                Ok(Packet::Protected(protected)) => {
                    seen += protected.bytes().len();
                    let unmasked = protected.unmask(mask);
                    prop_assert!(unmasked.payload.len() >= SAMPLE_LEN);
                    prop_assert!(unmasked.number().expand(None) < PacketNumber::MAX);
                }
                Ok(Packet::Retry(retry)) => prop_assert!(!retry.token.is_empty()),
                Ok(Packet::VersionNegotiation(packet)) => prop_assert!(packet.versions().count() > 0),
                Err(error) => prop_assert!(error.offset <= len),
            }
        }
        prop_assert!(seen <= len);
    }
}
