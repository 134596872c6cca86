//! RFC 9001 Appendix A.1 to A.3, and the same of RFC 9369.

#![expect(clippy::unwrap_used, reason = "a test that finds nothing may panic")]

use lastbyte_wire::{
    Writer,
    packet::{LongHeader, LongKind, PacketNumber, PacketNumberLen, PacketType},
};

use super::*;
use crate::crypto::{
    TAG_LEN,
    testing::{
        first,
        vectors::{DESTINATION, V1, V2, Vectors, hex},
    },
};

fn destination() -> ConnectionId {
    ConnectionId::new(&hex(DESTINATION)).unwrap()
}

/// Writes, seals and protects a packet with each library, and compares; opens the packet of the RFC, and compares.
fn check(
    vectors: &Vectors,
    side: Side,
    number: (u32, PacketNumberLen),
    packet: [&str; 3],
    padding: usize,
) {
    for aead in AeadProvider::ALL {
        check_with(aead, vectors, side, number, packet, padding);
    }
}

fn check_with(
    aead: AeadProvider,
    vectors: &Vectors,
    side: Side,
    (number, len): (u32, PacketNumberLen),
    [header, payload, packet]: [&str; 3],
    padding: usize,
) {
    let number = PacketNumber::from(number);
    let source = ConnectionId::new(&hex("f067a5502a4262b5")).unwrap();
    let (from, to) = match side {
        Side::Client => (ConnectionId::EMPTY, destination()),
        Side::Server => (source, ConnectionId::EMPTY),
    };
    let long_header = LongHeader {
        kind: LongKind::Initial { token: &[] },
        version: vectors.version,
        destination: to,
        source: from,
        number: number.truncate_to(len),
        fixed_bit: true,
    };
    let mut payload = hex(payload);
    payload.resize(payload.len() + padding, 0);

    let mut buffer = [0; 1500];
    let mut writer = Writer::new(&mut buffer);
    let open = long_header.begin(&mut writer).unwrap();
    writer.bytes(&payload).unwrap();
    let finished = open.finish(&mut writer, TAG_LEN).unwrap();
    assert_eq!(writer.written()[..finished.payload_offset], hex(header));
    keys_by(aead, side, vectors.version, &destination())
        .seal
        .protect(number, &finished, writer.written_mut())
        .unwrap();
    assert_eq!(writer.written(), hex(packet));

    let mut packet = hex(packet);
    let packet = first(&mut packet, 0).unwrap();
    assert_eq!(packet.packet_type(), PacketType::Initial);
    let opened = keys_by(aead, side.peer(), vectors.version, &destination())
        .open
        .unprotect(packet, None)
        .unwrap();
    assert_eq!(opened.number, number);
    assert_eq!(opened.payload(), payload);
    assert_eq!(opened.packet.check_reserved_bits(), Ok(()));
}

#[test]
fn the_clients_initial_packet_matches_the_rfcs() {
    for vectors in [&V1, &V2] {
        let number = (2, PacketNumberLen::Four);
        check(vectors, Side::Client, number, vectors.client_initial, 917);
    }
}

#[test]
fn the_servers_initial_packet_matches_the_rfcs() {
    for vectors in [&V1, &V2] {
        let number = (1, PacketNumberLen::Two);
        check(vectors, Side::Server, number, vectors.server_initial, 0);
    }
}

#[test]
fn keys_of_another_version_or_connection_id_open_no_packet() {
    let other = ConnectionId::new(b"another").unwrap();
    for (version, destination) in [
        (Version::V2, destination()),
        (Version::V1, other),
        (Version::V1, ConnectionId::EMPTY),
    ] {
        let mut packet = hex(V1.client_initial[2]);
        let packet = first(&mut packet, 0).unwrap();
        let keys = keys(Side::Server, version, &destination);
        assert!(keys.open.unprotect(packet, None).is_err());
    }
}
