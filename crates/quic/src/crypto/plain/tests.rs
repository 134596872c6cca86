//! Complete handshakes without cryptography: what they share with TLS, and that all bytes follow from the seed.
#![expect(clippy::unwrap_used, reason = "a test that finds nothing may panic")]

use lastbyte_congestion::Time;
use lastbyte_wire::TransportError;
use proptest::prelude::*;

use super::*;
use crate::crypto::{
    ClientCrypto, EarlyData, ServerCrypto, Space,
    testing::{End, drive, first, handshake_packet, open_short, passes, short_packet},
};

fn protocols(names: &[&str]) -> Vec<Vec<u8>> {
    names.iter().map(|name| name.as_bytes().to_vec()).collect()
}

fn client() -> PlainClient {
    PlainClient::new(1, protocols(&["h3"]))
}

fn server() -> PlainServer {
    PlainServer::new(2, protocols(&["hq-interop", "h3"]))
}

fn ends(client: &PlainClient, server: &PlainServer) -> (End, End) {
    let client = client.start(Version::V1, "localhost", b"client").unwrap();
    let server = server.start(Version::V1, b"server").unwrap();
    (End::new(client), End::new(server))
}

fn driven(client: &PlainClient, server: &PlainServer) -> (End, End) {
    let (mut client, mut server) = ends(client, server);
    drive(&mut client, &mut server, usize::MAX).unwrap();
    (client, server)
}

fn resuming(early_data: bool) -> PlainClient {
    PlainClient {
        resumption: Some(Resumption {
            parameters: b"remembered".to_vec(),
            early_data,
        }),
        ..client()
    }
}

#[test]
fn a_handshake_agrees_and_carries_packets() {
    for chunk in [usize::MAX, 1] {
        let (mut c, mut s) = ends(&client(), &server());
        assert_eq!(c.session.peer_parameters(), None);
        drive(&mut c, &mut s, chunk).unwrap();
        for end in [&c, &s] {
            assert!(!end.session.is_handshaking());
            assert_eq!(end.session.alpn(), Some(&b"h3"[..]));
            assert_eq!(end.session.server_name(), Some("localhost"));
            assert_eq!(end.session.is_resumed(), Some(false));
            assert_eq!(end.session.early_data(), EarlyData::Unavailable);
            assert_eq!(end.session.cipher_suite(), Some("plain"));
        }
        assert_eq!(c.session.peer_parameters(), Some(&b"server"[..]));
        assert_eq!(s.session.peer_parameters(), Some(&b"client"[..]));
        assert_eq!(c.session.tickets_received(), 1);
        for number in 0..3 {
            passes(c.keys(), s.keys(), number);
            passes(s.keys(), c.keys(), number);
        }
        let mut packet = handshake_packet(&c.handshake.unwrap().seal, 0, b"frames");
        let packet = first(&mut packet, 8).unwrap();
        let opened = s.handshake.unwrap().open.unprotect(packet, None).unwrap();
        assert_eq!(opened.payload(), b"frames");
    }
}

#[test]
fn messages_have_the_sizes_of_tls_and_come_in_its_order() {
    let (client, server) = driven(&client(), &server());
    let sent_data = |end: &End| -> Vec<(Space, usize)> {
        let data = |(space, data): &(Space, Vec<u8>)| (*space, data.len());
        end.sent_data.iter().map(data).collect()
    };
    let name_and_protocol = b"localhost".len() + 1 + b"h3".len();
    assert_eq!(
        sent_data(&client),
        [
            (Space::Initial, 220 + name_and_protocol + b"client".len()),
            (Space::Handshake, 36)
        ]
    );
    let extensions = 10 + b"h3".len() + b"server".len();
    assert_eq!(
        sent_data(&server),
        [
            (Space::Initial, 90),
            (Space::Handshake, extensions + 2400 + 79 + 36),
            (Space::Application, 190),
        ]
    );
}

#[test]
fn sizes_can_be_set() {
    let mut server = server();
    server.sizes.certificate = 9000;
    let (_, server) = driven(&client(), &server);
    assert!(server.sent_data[1].1.len() > 9000);
}

#[test]
fn a_resumed_handshake_has_no_certificate_and_carries_early_data() {
    let (mut c, mut s) = ends(&resuming(true), &server());
    assert_eq!(c.session.early_data(), EarlyData::Offered);
    assert_eq!(c.session.remembered_parameters(), Some(&b"remembered"[..]));
    let hello = c.take_output();
    let mut packet = handshake_packet(c.early.as_ref().unwrap(), 0, b"early");
    s.receive(&hello, usize::MAX).unwrap();
    let flight = s.take_output();
    let early = s.early.as_ref().unwrap();
    let packet = first(&mut packet, 8).unwrap();
    assert_eq!(early.unprotect(packet, None).unwrap().payload(), b"early");
    assert!(flight[1].1.len() < 100, "no certificate");
    c.receive(&flight, usize::MAX).unwrap();
    drive(&mut c, &mut s, usize::MAX).unwrap();
    for end in [&c, &s] {
        assert_eq!(end.session.early_data(), EarlyData::Accepted);
        assert_eq!(end.session.is_resumed(), Some(true));
    }
    assert_eq!(c.session.peer_parameters(), Some(&b"server"[..]));
}

#[test]
fn a_server_can_refuse_early_data_or_resumption() {
    let refuses_early_data = PlainServer {
        accepts_early_data: false,
        ..server()
    };
    let refuses_both = PlainServer {
        resumes: false,
        ..server()
    };
    for (server, resumed) in [(refuses_early_data, true), (refuses_both, false)] {
        let (c, s) = driven(&resuming(true), &server);
        assert_eq!(c.session.early_data(), EarlyData::Rejected);
        assert_eq!(s.session.early_data(), EarlyData::Unavailable);
        assert_eq!(c.session.is_resumed(), Some(resumed));
        assert!(s.early.is_none());
    }
    let (c, _) = driven(&resuming(false), &server());
    assert_eq!(c.session.early_data(), EarlyData::Unavailable);
    assert_eq!(c.session.is_resumed(), Some(true));
}

#[test]
fn one_seed_gives_the_same_bytes_and_another_does_not() {
    let run = |seed| {
        let client = PlainClient { seed, ..client() };
        let (mut c, s) = driven(&client, &server());
        let packet = short_packet(c.keys(), 7, b"frames").unwrap();
        (c.sent_data, s.sent_data, packet)
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(3));
    // Connections of one seed differ in their transport parameters, and so in their keys.
    let server_keys = |parameters: &[u8]| {
        let mut client_end = End::new(client().start(Version::V1, "a", parameters).unwrap());
        let mut server_end = End::new(server().start(Version::V1, b"").unwrap());
        drive(&mut client_end, &mut server_end, usize::MAX).unwrap();
        (client_end, server_end)
    };
    let (mut one, _) = server_keys(b"one");
    let (_, mut other) = server_keys(b"other");
    let mut packet = short_packet(one.keys(), 0, b"frames").unwrap();
    assert!(open_short(other.keys(), &mut packet, Time::ZERO).is_err());
}

#[test]
fn failures_have_the_codes_of_tls() {
    let alert = TransportError::from_tls_alert;
    let stranger = PlainClient {
        alpn: protocols(&["smtp", "h2"]),
        ..client()
    };
    let (mut c, mut s) = ends(&stranger, &server());
    let (by_client, error) = drive(&mut c, &mut s, usize::MAX).unwrap_err();
    assert_eq!((by_client, error.code), (false, alert(120)));
    assert_eq!(
        s.session.read_crypto(Space::Initial, &[]),
        Err(error),
        "once and for all"
    );

    let violation = TransportError::PROTOCOL_VIOLATION;
    for (space, data, code) in [
        (Space::Handshake, &[1, 0, 0, 0][..], violation),
        (Space::Application, &[4, 0, 0, 0], violation),
        (Space::Initial, &[2, 0, 0, 0], alert(10)),
        (Space::Initial, &[99, 0, 0, 0], alert(10)),
        (Space::Initial, &[1, 0, 0, 0], alert(50)),
        (Space::Initial, &[1, 1, 0, 0], alert(50)),
    ] {
        let mut session = server().start(Version::V1, b"").unwrap();
        let error = session.read_crypto(space, data).unwrap_err();
        assert_eq!(error.code, code, "{data:?}");
    }
    // Messages may not span a change of keys.
    let (mut c, mut s) = ends(&client(), &server());
    s.receive(&c.take_output(), usize::MAX).unwrap();
    let mut flight = s.take_output();
    flight[0].1.push(8);
    assert_eq!(c.receive(&flight, 1000).unwrap_err().code, alert(10));
    // After the handshake only tickets follow, and only to clients.
    let (mut c, mut s) = driven(&client(), &server());
    for (end, message) in [(&mut c, 20), (&mut s, 4)] {
        let message = [message, 0, 0, 0];
        let error = end.session.read_crypto(Space::Application, &message);
        assert_eq!(error.unwrap_err().code, alert(10));
    }
}

#[test]
fn a_changed_handshake_is_detected() {
    let (mut c, mut s) = ends(&client(), &server());
    let mut hello = c.take_output();
    let last = hello[0].1.len() - 1;
    hello[0].1[last] ^= 1;
    s.receive(&hello, usize::MAX).unwrap();
    let (by_client, error) = drive(&mut c, &mut s, usize::MAX).unwrap_err();
    assert!(by_client);
    assert_eq!(error.code, TransportError::from_tls_alert(51));
}

#[test]
fn a_tag_depends_on_key_and_number_and_optionally_on_each_byte() {
    let tag = |tags_bytes: bool, secret: u64, number: u32, header: &[u8], payload: &[u8]| {
        let limits = Limits {
            tags_bytes,
            ..Limits::default()
        };
        PacketKey { secret, limits }.tag(PacketNumber::from(number), header, payload)
    };
    let payload = [3; 100];
    for tags_bytes in [false, true] {
        let original = tag(tags_bytes, 1, 7, b"header", &payload);
        assert_eq!(tag(tags_bytes, 1, 7, b"header", &payload), original);
        assert_ne!(tag(tags_bytes, 2, 7, b"header", &payload), original);
        assert_ne!(tag(tags_bytes, 1, 8, b"header", &payload), original);
        for index in 0..payload.len() {
            let mut changed = payload;
            changed[index] ^= 1;
            let is_noticed = tag(tags_bytes, 1, 7, b"header", &changed) != original;
            assert_eq!(is_noticed, tags_bytes, "byte {index}");
        }
        let is_noticed = tag(tags_bytes, 1, 7, b"Header", &payload) != original;
        assert_eq!(is_noticed, tags_bytes);
    }
}

#[test]
fn keys_differ_by_level_sender_generation_and_secret() {
    let limits = Limits::default();
    let tag = |key: PacketKey| key.tag(PacketNumber::ZERO, b"header", b"payload");
    let mut tags = Vec::new();
    for secret in [1, 2] {
        for level in [
            PacketType::Initial,
            PacketType::ZeroRtt,
            PacketType::Handshake,
            PacketType::OneRtt,
        ] {
            for sender in [Side::Client, Side::Server] {
                for generation in 0..4 {
                    let secret = Secret::new(secret, limits);
                    tags.push(tag(secret.packet_key(level, sender, generation)));
                }
            }
        }
    }
    let count = tags.len();
    tags.sort_unstable();
    tags.dedup();
    assert_eq!(tags.len(), count);
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_parsed_without_panic(
        data in prop::collection::vec(any::<u8>(), 0..300),
        message_type in prop::sample::select(vec![1_u8, 2, 4, 8, 11, 15, 20]),
    ) {
        let mut bytes = vec![message_type, 0];
        bytes.extend_from_slice(&(data.len() as u16).to_be_bytes());
        bytes.extend_from_slice(&data);
        let (mut c, mut s) = ends(&resuming(true), &server());
        let _ = c.session.read_crypto(Space::Initial, &bytes);
        let _ = s.session.read_crypto(Space::Initial, &bytes);
        let (mut c, mut s) = ends(&client(), &server());
        s.receive(&c.take_output(), usize::MAX).unwrap();
        c.receive(&s.take_output()[..1], usize::MAX).unwrap();
        let _ = c.session.read_crypto(Space::Handshake, &bytes);
        let _ = s.session.read_crypto(Space::Handshake, &bytes);
    }

    #[test]
    fn the_checksum_depends_on_where_the_header_ends(
        bytes in prop::collection::vec(any::<u8>(), 2..100),
        at in any::<prop::sample::Index>(),
    ) {
        let at = at.index(bytes.len() - 1);
        let key = PacketKey { secret: 1, limits: Limits::default() };
        let tag = |at| key.tag(PacketNumber::ZERO, &bytes[..at], &bytes[at..]);
        prop_assert_ne!(tag(at), tag(at + 1));
    }
}
