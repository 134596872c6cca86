//! Initial packets in datagrams of fewer than 1200 bytes (RFC 9000 §14.1).

use lastbyte_wire::{Encode, Writer, frame};

use super::*;

fn ping(writer: &mut Writer<'_>) {
    frame::Ping.encode(writer).expect("room");
}

/// STREAM, which is not permitted in Initial and Handshake packets.
fn forbidden(writer: &mut Writer<'_>) {
    writer.bytes(&[0x08, 0, 1, 9]).expect("room");
}

/// A server that has received the first datagram of a client.
fn begun() -> Pair {
    let mut pair = Pair::new(1, Faults::default());
    pair.run_until("the first datagram", |pair| {
        pair.server.statistics().packets.initial_received == 1
    });
    pair
}

fn initial(pair: &mut Pair, frames: &dyn Fn(&mut Writer<'_>)) -> Vec<u8> {
    sealed(&mut pair.client, pair.now, Space::Initial, frames)
}

#[test]
fn rfc9000_14_1_a_server_ignores_initial_packets_in_small_datagrams() {
    for frames in [&ping as &dyn Fn(&mut Writer<'_>), &forbidden] {
        let mut pair = begun();
        let mut datagram = initial(&mut pair, frames);
        assert!(datagram.len() < 1200);
        pair.deliver_to_server(&mut datagram);
        assert!(!pair.server.is_closing());
        assert_eq!(pair.server.statistics().packets.initial_received, 1);
        // One byte fewer than enough.
        let mut datagram = initial(&mut pair, frames);
        datagram.resize(1199, 0);
        pair.deliver_to_server(&mut datagram);
        assert!(!pair.server.is_closing());
        assert_eq!(pair.server.statistics().packets.initial_received, 1);
        // The connection goes on.
        pair.shake_hands();
        pair.transfer(&body(1000, 1), &body(100_000, 2));
    }
}

#[test]
fn rfc9000_14_1_a_server_reads_initial_packets_in_datagrams_of_1200_bytes() {
    let mut pair = begun();
    let mut datagram = initial(&mut pair, &ping);
    datagram.resize(1200, 0);
    pair.deliver_to_server(&mut datagram);
    assert_eq!(pair.server.statistics().packets.initial_received, 2);
    let mut datagram = initial(&mut pair, &forbidden);
    datagram.resize(1200, 0);
    pair.deliver_to_server(&mut datagram);
    let (code, _) = violation(&pair.server);
    assert_eq!(code, TransportError::PROTOCOL_VIOLATION);
}

#[test]
fn rfc9000_14_1_packets_beside_an_ignored_initial_packet_are_read() {
    let mut pair = begun();
    pair.run_until("the client's Handshake keys", |pair| {
        pair.client.handshake.has_keys(Space::Handshake)
    });
    let initials = pair.server.statistics().packets.initial_received;
    let handshakes = pair.server.statistics().packets.handshake_received;
    let mut datagram = sealed(&mut pair.client, pair.now, Space::Initial, &forbidden);
    let handshake = sealed(&mut pair.client, pair.now, Space::Handshake, &ping);
    datagram.extend(handshake);
    assert!(datagram.len() < 1200);
    pair.deliver_to_server(&mut datagram);
    let packets = pair.server.statistics().packets;
    assert_eq!(packets.initial_received, initials);
    assert_eq!(packets.handshake_received, handshakes + 1);
    assert!(!pair.server.is_closing());
}

#[test]
fn rfc9000_14_1_a_client_reads_initial_packets_in_small_datagrams() {
    let mut pair = begun();
    let before = pair.client.statistics().packets.initial_received;
    let mut datagram = sealed(&mut pair.server, pair.now, Space::Initial, &|writer| {
        // ACK of packet number 0.
        writer.bytes(&[0x02, 0, 0, 0, 0]).expect("room");
    });
    assert!(datagram.len() < 1200);
    let ecn = crate::ack::Ecn::NotEct;
    pair.client.handle_datagram(
        pair.now,
        &CLIENT_PATH,
        ecn,
        &mut datagram,
        &mut stream::KeepAll,
    );
    assert_eq!(
        pair.client.statistics().packets.initial_received,
        before + 1
    );
}
