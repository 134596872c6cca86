use lastbyte_wire::{Direction, Side};

use super::*;
use crate::{connection::tests::pair::*, stream};

fn sources(side: Side) -> FrameSources {
    FrameSources::new(
        Streams::new(side, stream::Config::default()),
        LocalIds::new(id(1)),
        Box::new(Counter(10)),
        PeerIds::new(id(2), 4),
    )
}

/// Writes a 1-RTT packet's frames; returns their receipts.
fn write(sources: &mut FrameSources) -> Vec<Receipt> {
    let mut receipts = Vec::new();
    let mut buffer = [0; 1200];
    let mut writer = Writer::new(&mut buffer);
    sources.write_application_frames(START, DELAY, true, &mut writer, &mut receipts);
    receipts
}

#[test]
fn handshake_done_is_repeated_until_it_arrives() {
    let mut sources = sources(Side::Server);
    assert!(!sources.want_to_send(Space::Application));
    sources.send_handshake_done();
    assert!(sources.want_to_send(Space::Application));
    assert!(write(&mut sources).contains(&Receipt::HandshakeDone));
    assert!(!sources.want_to_send(Space::Application));
    sources.lost(Space::Application, Receipt::HandshakeDone);
    assert!(sources.want_to_send(Space::Application));
    assert!(write(&mut sources).contains(&Receipt::HandshakeDone));
    sources.acked(Space::Application, Receipt::HandshakeDone);
    assert!(!sources.want_to_send(Space::Application));
}

#[test]
fn the_largest_known_acknowledgment_is_returned_once() {
    let mut sources = sources(Side::Client);
    for largest in [7, 9, 8] {
        sources.acked(Space::Handshake, Receipt::Ack { largest });
    }
    assert_eq!(sources.take_ack_known(Space::Application), None);
    assert_eq!(sources.take_ack_known(Space::Handshake), Some(9));
    assert_eq!(sources.take_ack_known(Space::Handshake), None);
}

#[test]
fn rfc9001_4_9_crypto_data_of_a_discarded_space_is_counted_and_not_resent() {
    let mut sources = sources(Side::Client);
    let initial = sources.crypto.get_mut(Space::Initial);
    initial.outgoing().extend_from_slice(b"hello");
    let mut receipts = Vec::new();
    let mut buffer = [0; 100];
    initial.write_frames(&mut Writer::new(&mut buffer), &mut |receipt| {
        receipts.push(receipt);
    });
    assert_eq!((sources.crypto_sent(), receipts.len()), (5, 1));
    sources.lost(Space::Initial, receipts[0]);
    assert!(sources.want_to_send(Space::Initial));
    sources.discard(Space::Initial);
    assert_eq!(sources.crypto_sent(), 5);
    assert!(!sources.want_to_send(Space::Initial));
}

#[test]
fn zero_rtt_packets_carry_streams_and_no_connection_ids() {
    let mut sources = sources(Side::Client);
    let parameters = lastbyte_wire::transport_parameters::TransportParameters {
        initial_max_data: lastbyte_wire::VarInt::from_u32(1000),
        initial_max_stream_data_bidi_remote: lastbyte_wire::VarInt::from_u32(1000),
        initial_max_streams_bidi: lastbyte_wire::StreamCount::new(1).expect("few"),
        ..Default::default()
    };
    sources.streams.on_peer_parameters(&parameters);
    sources.local_ids.start(4);
    let stream = sources
        .streams
        .open(Direction::Bidirectional)
        .expect("a stream");
    sources.streams.write(stream, b"early").expect("open");
    let mut receipts = Vec::new();
    let mut buffer = [0; 1200];
    let mut writer = Writer::new(&mut buffer);
    sources.write_application_frames(START, DELAY, false, &mut writer, &mut receipts);
    assert!(matches!(receipts[..], [Receipt::Stream { len: 5, .. }]));
    let later = write(&mut sources);
    assert!(matches!(later[0], Receipt::NewConnectionId(_)), "{later:?}");
}
