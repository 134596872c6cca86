#![expect(clippy::unwrap_used, reason = "a test that finds nothing may panic")]

use std::sync::{Arc, Mutex};

use lastbyte_congestion::Time;
use lastbyte_wire::{TransportError, packet::Version};

use crate::crypto::{
    AeadProvider, ClientCrypto as _, EarlyData, OpenError, ServerCrypto as _, Space,
    key_log::KeyLogLines,
    testing::{End, PTO, drive, number, open_short, passes, short_packet},
    tickets::testing::Fleet,
    tls::{
        TlsClient, TlsServer,
        testing::{SUITES, all_suites, client_config, ends, identity, provider, server_config},
    },
};

/// A client and a server with tickets, whose handshake is complete.
fn established() -> (End, End) {
    let fleet = Fleet::new();
    let client = TlsClient::new(client_config(all_suites(), &fleet.identity.roots)).unwrap();
    let server = fleet.server(fleet.tickets(&[1]));
    let mut c = End::new(client.start(Version::V1, "localhost", b"").unwrap());
    let mut s = End::new(server.start(Version::V1, b"").unwrap());
    drive(&mut c, &mut s, usize::MAX).unwrap();
    (c, s)
}

#[test]
fn the_established_server_keeps_little_state_and_behaves_the_same() {
    let (c, s) = established();
    let text = format!("{:?}", s.session);
    assert!(text.contains("Established"), "{text}");
    let (c, s) = (&c.session, &s.session);
    assert!(!s.is_handshaking());
    assert_eq!(s.alpn(), c.alpn());
    assert!(s.alpn().is_some());
    assert_eq!(s.server_name(), Some("localhost"));
    assert_eq!(s.cipher_suite(), c.cipher_suite());
    assert!(s.cipher_suite().is_some());
    assert_eq!(s.is_resumed(), Some(false));
    assert_eq!(s.early_data(), EarlyData::Unavailable);
    assert_eq!(s.peer_parameters(), Some(&b""[..]));
    assert_eq!(s.peer_certificate(), None);
    assert_eq!(s.resumed_ticket(), None);
    assert_eq!(s.tickets_received(), 0);
    assert!(c.tickets_received() > 0);
}

#[test]
fn the_first_one_rtt_keys_can_be_derived_again() {
    let suites = SUITES.map(|(suite, _)| suite);
    for (version, aead) in [
        (Version::V1, AeadProvider::AwsLc),
        (Version::V2, AeadProvider::AwsLc),
        (Version::V1, AeadProvider::Ring),
    ] {
        for suite in suites {
            let fleet = Fleet::of(provider(&[aead.suite(suite)]));
            let server = fleet.server(fleet.tickets(&[1]));
            let (mut c, mut s) = ends(&fleet.client(), &server, version);
            drive(&mut c, &mut s, usize::MAX).unwrap();
            passes(c.keys(), s.keys(), 1);
            passes(s.keys(), c.keys(), 1);

            s.keys().release();
            assert!(s.keys().is_released());
            let mut packet = short_packet(c.keys(), 2, &[1; 20]).unwrap();
            let opened = open_short(s.keys(), &mut packet, Time::ZERO);
            assert_eq!(opened.unwrap_err(), OpenError::NotAuthentic);
            assert!(short_packet(s.keys(), 2, &[1; 20]).is_err());

            let keys = s.session.one_rtt_keys().unwrap();
            s.keys().restore(keys);
            passes(c.keys(), s.keys(), 3);
            passes(s.keys(), c.keys(), 3);

            // The next generation follows from the restored one.
            c.keys().on_handshake_confirmed();
            c.keys().on_ack(number(1), 0, Time::ZERO, PTO).unwrap();
            c.keys().update(Time::ZERO).unwrap();
            passes(c.keys(), s.keys(), 4);
            passes(s.keys(), c.keys(), 4);
            s.keys().release();
            assert!(!s.keys().is_released(), "they cannot be derived again");
        }
    }
}

#[test]
fn rfc9001_6_any_message_of_the_client_is_unexpected() {
    // KeyUpdate, a Certificate, a Finished, an unknown type, and a piece of one.
    for message in [
        &[24, 0, 0, 1, 0][..],
        &[11, 0, 0, 0],
        &[20, 0, 0, 0],
        &[99, 0, 0, 0],
        &[24],
    ] {
        let (_, mut s) = established();
        for _ in 0..2 {
            let error = s.session.read_crypto(Space::Application, message);
            assert_eq!(error.unwrap_err().code, TransportError::from_tls_alert(10));
        }
    }
    for space in [Space::Initial, Space::Handshake] {
        let (_, mut s) = established();
        let error = s.session.read_crypto(space, b"late").unwrap_err();
        assert_eq!(error.code, TransportError::PROTOCOL_VIOLATION);
    }
}

#[test]
fn the_key_log_of_the_configuration_gets_its_lines() {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let identity = identity();
    let mut config = server_config(all_suites(), &identity);
    let log = Arc::clone(&lines);
    config.key_log = Arc::new(KeyLogLines(move |line: &str| {
        log.lock().unwrap().push(line.to_owned());
    }));
    let fleet = Fleet::new();
    let server = TlsServer::with_tickets(config, Arc::new(fleet.tickets(&[1]))).unwrap();
    let client = TlsClient::new(client_config(all_suites(), &identity.roots)).unwrap();
    let mut c = End::new(client.start(Version::V1, "localhost", b"").unwrap());
    let mut s = End::new(server.start(Version::V1, b"").unwrap());
    drive(&mut c, &mut s, usize::MAX).unwrap();
    let lines = lines.lock().unwrap();
    let has = |label| lines.iter().any(|line| line.starts_with(label));
    assert!(
        has("SERVER_TRAFFIC_SECRET_0") && has("EXPORTER_SECRET"),
        "{lines:?}"
    );
}
