//! Complete rustls handshakes in memory, through the trait.

#![expect(clippy::unwrap_used, reason = "a test that finds nothing may panic")]

use std::sync::{Arc, Mutex};

use lastbyte_congestion::Time;
use rustls::crypto::{CryptoProvider, SupportedKxGroup, aws_lc_rs::kx_group};

use super::{
    testing::{
        AEADS, SUITES, all_suites, client_config, ends, identity, identity_of, pair, provider,
        server_config,
    },
    *,
};
use crate::crypto::{
    AeadProvider, ClientCrypto as _, ServerCrypto as _,
    key_log::KeyLogLines,
    testing::{End, drive, first, handshake_packet, passes},
};

/// The error of a handshake, and whether the client reported it.
fn failure(client: rustls::ClientConfig, server: rustls::ServerConfig) -> (bool, TransportError) {
    let client = TlsClient::new(client).unwrap();
    let server = TlsServer::new(server).unwrap();
    let (mut client, mut server) = ends(&client, &server, Version::V1);
    let (by_client, error) = drive(&mut client, &mut server, usize::MAX).unwrap_err();
    let end = if by_client { &mut client } else { &mut server };
    // The error is permanent.
    let again = end.session.read_crypto(Space::Handshake, b"more");
    assert_eq!(again, Err(error.clone()));
    assert!(end.session.is_handshaking());
    (by_client, error.code)
}

#[test]
fn all_cipher_suites_carry_packets_both_ways_in_both_versions() {
    for (at_client, at_server) in AEADS {
        carry_packets(at_client, at_server);
    }
}

fn carry_packets(at_client: AeadProvider, at_server: AeadProvider) {
    let identity = identity();
    for (suite, name) in SUITES {
        for (version, chunk) in [(Version::V1, usize::MAX), (Version::V2, 7)] {
            let client = client_config(provider(&[at_client.suite(suite)]), &identity.roots);
            let client = TlsClient::new(client).unwrap();
            let server = server_config(provider(&[at_server.suite(suite)]), &identity);
            let server = TlsServer::new(server).unwrap();
            let (mut client, mut server) = ends(&client, &server, version);
            assert_eq!(client.session.alpn(), None);
            assert_eq!(client.session.cipher_suite(), None);
            drive(&mut client, &mut server, chunk).unwrap();

            for end in [&client, &server] {
                assert!(!end.session.is_handshaking());
                assert_eq!(end.session.alpn(), Some(&b"h3"[..]));
                assert_eq!(end.session.server_name(), Some("localhost"));
                assert_eq!(end.session.cipher_suite(), Some(name));
                assert_eq!(end.session.is_resumed(), Some(false));
                assert_eq!(end.session.early_data(), EarlyData::Unavailable);
            }
            assert_eq!(client.session.peer_parameters(), Some(&b"server"[..]));
            assert_eq!(server.session.peer_parameters(), Some(&b"client"[..]));
            assert_eq!(
                client.session.peer_certificate(),
                Some(identity.chain[0].as_ref())
            );
            assert_eq!(server.session.peer_certificate(), None);
            assert_eq!(client.session.tickets_received(), 2);

            let (c, s) = (
                client.handshake.take().unwrap(),
                server.handshake.take().unwrap(),
            );
            for (seal, open) in [(&c.seal, &s.open), (&s.seal, &c.open)] {
                let mut packet = handshake_packet(seal, 3, b"frames");
                let opened = open
                    .unprotect(first(&mut packet, 8).unwrap(), None)
                    .unwrap();
                assert_eq!(opened.payload(), b"frames");
            }
            for number in 0..3 {
                passes(client.keys(), server.keys(), number);
                passes(server.keys(), client.keys(), number);
            }
        }
    }
}

#[test]
fn keys_are_updated_both_ways_and_by_both_at_once() {
    let identity = identity();
    for (at_client, at_server) in AEADS {
        for (suite, _) in SUITES {
            let client = client_config(provider(&[at_client.suite(suite)]), &identity.roots);
            let server = server_config(provider(&[at_server.suite(suite)]), &identity);
            update_keys(
                &TlsClient::new(client).unwrap(),
                &TlsServer::new(server).unwrap(),
            );
        }
    }
}

fn update_keys(client: &TlsClient, server: &TlsServer) {
    let (mut client, mut server) = ends(client, server, Version::V1);
    drive(&mut client, &mut server, usize::MAX).unwrap();
    let (client, server) = (client.keys(), server.keys());
    client.on_handshake_confirmed();
    server.on_handshake_confirmed();
    let exchange = |client: &mut OneRttKeys, server: &mut OneRttKeys, n: u32| {
        passes(client, server, n);
        passes(server, client, n);
        for keys in [client, server] {
            keys.prepare();
            let number = crate::crypto::testing::number(n);
            keys.on_ack_sent(number);
            let generation = keys.generation();
            keys.on_ack(number, generation, Time::ZERO, std::time::Duration::ZERO)
                .unwrap();
        }
    };
    exchange(client, server, 0);
    for round in 1..10 {
        match round % 3 {
            0 => client.update(Time::ZERO).unwrap(),
            1 => server.update(Time::ZERO).unwrap(),
            _ => {
                client.update(Time::ZERO).unwrap();
                server.update(Time::ZERO).unwrap();
            }
        }
        if round % 3 == 1 {
            passes(server, client, 10 * round);
            client.prepare();
        }
        exchange(client, server, 10 * round + 1);
        assert_eq!(client.generation(), u64::from(round));
        assert_eq!(server.generation(), u64::from(round));
        assert_eq!(client.key_phase(), round % 2 == 1);
    }
}

#[test]
fn a_client_resumes_with_early_data() {
    let (client, server) = pair();
    let (mut first_client, mut first_server) = ends(&client, &server, Version::V1);
    drive(&mut first_client, &mut first_server, usize::MAX).unwrap();

    let (mut c, mut s) = ends(&client, &server, Version::V1);
    assert_eq!(c.session.early_data(), EarlyData::Offered);
    assert_eq!(c.session.remembered_parameters(), Some(&b"server"[..]));
    assert_eq!(c.session.peer_parameters(), None);
    let hello = c.take_output();
    assert!(c.early.is_some(), "0-RTT keys before any answer");
    s.receive(&hello, 50).unwrap();
    let flight = s.take_output();
    assert!(s.session.is_handshaking());
    let mut packet = handshake_packet(c.early.as_ref().unwrap(), 0, b"early");
    let early = s.early.as_ref().unwrap();
    let packet = first(&mut packet, 8).unwrap();
    assert_eq!(early.unprotect(packet, None).unwrap().payload(), b"early");
    c.receive(&flight, usize::MAX).unwrap();
    drive(&mut c, &mut s, usize::MAX).unwrap();
    for end in [&c, &s] {
        assert_eq!(end.session.early_data(), EarlyData::Accepted);
        assert_eq!(end.session.is_resumed(), Some(true));
    }
    passes(c.keys(), s.keys(), 1);
}

#[test]
fn early_data_is_rejected_by_another_server_and_by_a_hello_retry_request() {
    let identity = identity();
    let client = TlsClient::new(client_config(all_suites(), &identity.roots)).unwrap();
    let with_groups = |groups: Vec<&'static dyn SupportedKxGroup>| {
        let provider = CryptoProvider {
            kx_groups: groups,
            ..(*all_suites()).clone()
        };
        TlsServer::new(server_config(Arc::new(provider), &identity)).unwrap()
    };
    let server = with_groups(vec![kx_group::X25519]);
    // It has neither the tickets of `server` nor the group of the first key share.
    let other = with_groups(vec![kx_group::SECP256R1]);

    let (mut c, mut s) = ends(&client, &server, Version::V1);
    drive(&mut c, &mut s, usize::MAX).unwrap();
    let (mut c, mut s) = ends(&client, &other, Version::V1);
    let hello = c.take_output();
    s.receive(&hello, usize::MAX).unwrap();
    let retry_request = s.take_output();
    assert_eq!(c.session.early_data(), EarlyData::Offered);
    c.receive(&retry_request, usize::MAX).unwrap();
    assert_eq!(c.session.early_data(), EarlyData::Rejected);
    drive(&mut c, &mut s, usize::MAX).unwrap();
    assert_eq!(c.session.is_resumed(), Some(false));
    passes(c.keys(), s.keys(), 0);

    // One with the same group, and without tickets of the first.
    let (mut c, mut s) = ends(&client, &server, Version::V1);
    drive(&mut c, &mut s, usize::MAX).unwrap();
    let stranger = with_groups(vec![kx_group::X25519]);
    let (mut c, mut s) = ends(&client, &stranger, Version::V1);
    let offered = c.session.early_data();
    drive(&mut c, &mut s, usize::MAX).unwrap();
    assert_eq!(offered, EarlyData::Offered);
    assert_eq!(c.session.early_data(), EarlyData::Rejected);
    assert_eq!(s.session.early_data(), EarlyData::Unavailable);
}

#[test]
fn failures_have_the_codes_of_their_alerts() {
    let alert = TransportError::from_tls_alert;
    let ours = identity();
    let client = || client_config(all_suites(), &ours.roots);
    let server = || server_config(all_suites(), &ours);

    let mut stranger = client();
    stranger.alpn_protocols = vec![b"smtp".to_vec()];
    // no_application_protocol (RFC 9001 §8.1).
    assert_eq!(failure(stranger, server()), (false, alert(120)));

    let distrustful = client_config(all_suites(), &identity_of("Another").roots);
    // unknown_ca.
    assert_eq!(failure(distrustful, server()), (true, alert(48)));

    let verifier = rustls::server::WebPkiClientVerifier::builder_with_provider(
        Arc::clone(&ours.roots),
        all_suites(),
    )
    .build()
    .unwrap();
    let mut wary = rustls::ServerConfig::builder_with_provider(all_suites())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_single_cert(ours.chain.clone(), ours.key.clone_key())
        .unwrap();
    wary.alpn_protocols = vec![b"h3".to_vec()];
    // certificate_required.
    assert_eq!(failure(client(), wary), (false, alert(116)));

    let aes = client_config(provider(&[SUITES[0].0]), &ours.roots);
    let chacha20 = server_config(provider(&[SUITES[2].0]), &ours);
    // handshake_failure.
    assert_eq!(failure(aes, chacha20), (false, alert(40)));
}

#[test]
fn the_wrong_name_is_a_bad_certificate() {
    let (client, server) = pair();
    let session = client.start(Version::V1, "example.org", b"").unwrap();
    let mut client_end = End::new(session);
    let mut server_end = End::new(server.start(Version::V1, b"").unwrap());
    let (by_client, error) = drive(&mut client_end, &mut server_end, usize::MAX).unwrap_err();
    assert!(by_client);
    assert_eq!(error.code, TransportError::from_tls_alert(42));

    let error = client.start(Version::V1, "not a name", b"").unwrap_err();
    assert_eq!(
        error.to_string(),
        "`not a name` is neither a domain name nor an IP address"
    );
    assert!(client.start(Version::V1, "192.0.2.1", b"").is_ok());
}

#[test]
fn data_in_the_wrong_space_is_a_protocol_violation() {
    let (client, server) = pair();
    let (mut c, mut s) = ends(&client, &server, Version::V1);
    let hello = c.take_output();
    for space in [Space::Handshake, Space::Application] {
        let (_, mut early) = ends(&client, &server, Version::V1);
        let error = early.session.read_crypto(space, &hello[0].1).unwrap_err();
        assert_eq!(error.code, TransportError::PROTOCOL_VIOLATION);
    }
    drive(&mut c, &mut s, usize::MAX).unwrap();
    // The hello was sent with the first `take_output`, so the server has not received it: deliver it now.
    s.receive(&hello, usize::MAX).unwrap();
    drive(&mut c, &mut s, usize::MAX).unwrap();
    let error = s.session.read_crypto(Space::Initial, b"late").unwrap_err();
    assert_eq!(error.code, TransportError::PROTOCOL_VIOLATION);
    assert_eq!(
        error.reason,
        "handshake data in a packet number space that is done with"
    );
}

#[test]
fn messages_that_quic_forbids_are_unexpected() {
    let unexpected_message = TransportError::from_tls_alert(10);
    // KeyUpdate of TLS (RFC 9001 §6).
    let (client, server) = pair();
    let (mut c, mut s) = ends(&client, &server, Version::V1);
    drive(&mut c, &mut s, usize::MAX).unwrap();
    let key_update = [24, 0, 0, 1, 0];
    for end in [&mut c, &mut s] {
        let error = end
            .session
            .read_crypto(Space::Application, &key_update)
            .unwrap_err();
        assert_eq!(error.code, unexpected_message);
    }
    // Data of the Handshake space after the ServerHello, in the Initial space (RFC 9001 §4.1.3).
    let (mut c, mut s) = ends(&client, &server, Version::V1);
    s.receive(&c.take_output(), usize::MAX).unwrap();
    let mut flight = s.take_output();
    let rest = flight.remove(1).1;
    flight[0].1.extend_from_slice(&rest);
    let error = c.receive(&flight, usize::MAX).unwrap_err();
    assert_eq!(error.code, unexpected_message);
}

#[test]
fn secrets_go_to_the_key_log_of_the_configuration() {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let identity = identity();
    let mut config = client_config(all_suites(), &identity.roots);
    let log = Arc::clone(&lines);
    config.key_log = Arc::new(KeyLogLines(move |line: &str| {
        log.lock().unwrap().push(line.to_owned());
    }));
    let client = TlsClient::new(config).unwrap();
    let server = TlsServer::new(server_config(all_suites(), &identity)).unwrap();
    let (mut c, mut s) = ends(&client, &server, Version::V1);
    drive(&mut c, &mut s, usize::MAX).unwrap();
    let lines = lines.lock().unwrap();
    let labels: Vec<_> = lines
        .iter()
        .filter_map(|line| line.split(' ').next())
        .collect();
    for label in [
        "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
        "SERVER_HANDSHAKE_TRAFFIC_SECRET",
        "CLIENT_TRAFFIC_SECRET_0",
        "SERVER_TRAFFIC_SECRET_0",
    ] {
        assert!(labels.contains(&label), "{labels:?}");
    }
}

#[test]
fn configurations_that_are_not_for_quic_are_refused() {
    let identity = identity();
    let mut config = client_config(all_suites(), &identity.roots);
    config.alpn_protocols.clear();
    assert_eq!(
        TlsClient::new(config).unwrap_err(),
        ConfigError::NoApplicationProtocol
    );
    let mut config = server_config(all_suites(), &identity);
    config.max_early_data_size = 1000;
    assert_eq!(
        TlsServer::new(config).unwrap_err(),
        ConfigError::EarlyDataSize
    );
}

#[test]
fn garbage_is_a_peer_error() {
    let (_, server) = pair();
    for garbage in [&[0xff; 100][..], &[1, 0, 0, 2, 3, 3], &[1, 255, 255, 255]] {
        let mut session = server.start(Version::V1, b"").unwrap();
        let error = session.read_crypto(Space::Initial, garbage).unwrap_err();
        assert_ne!(error.code, TransportError::INTERNAL_ERROR, "{error}");
    }
}

/// A `ClientHello` of ours.
fn hello_of_a_client(client: &TlsClient) -> (Box<dyn Session>, Vec<u8>) {
    let mut session = client.start(Version::V1, "localhost", b"client").unwrap();
    let mut hello = Vec::new();
    session.write_crypto(Space::Initial, &mut hello);
    (session, hello)
}

/// The error of a server for this message, which arrives in portions of `chunk` bytes.
fn refusal(server: &TlsServer, hello: &[u8], chunk: usize) -> Option<SessionError> {
    let mut session = server.start(Version::V1, b"server").unwrap();
    let mut chunks = hello.chunks(chunk);
    chunks.find_map(|data| session.read_crypto(Space::Initial, data).err())
}

/// `missing_extension`.
const MISSING_EXTENSION: TransportError = TransportError::from_tls_alert(109);

#[test]
fn rfc9001_8_2_parameters_in_the_extension_of_the_drafts_are_refused_by_a_server() {
    let identity = identity();
    let name = "localhost".try_into().unwrap();
    let config = Arc::new(client_config(all_suites(), &identity.roots));
    let draft = quic::Version::V1Draft;
    let mut old = quic::ClientConnection::new(config, draft, name, b"client".to_vec()).unwrap();
    let mut hello = Vec::new();
    assert!(old.write_hs(&mut hello).is_none());
    let server = TlsServer::new(server_config(all_suites(), &identity)).unwrap();
    for chunk in [1, 7, usize::MAX] {
        let error = refusal(&server, &hello, chunk).unwrap();
        assert_eq!(error.code, MISSING_EXTENSION, "{error}");
    }
}

#[test]
fn rfc9001_8_2_parameters_in_the_extension_of_the_drafts_are_refused_by_a_client() {
    for chunk in [1, 7, usize::MAX] {
        let identity = identity();
        let client_config = client_config(all_suites(), &identity.roots);
        let client_crypto = TlsClient::new(client_config).unwrap();
        let (mut session, hello) = hello_of_a_client(&client_crypto);
        let config = Arc::new(server_config(all_suites(), &identity));
        let draft = quic::Version::V1Draft;
        let mut old = quic::ServerConnection::new(config, draft, b"server".to_vec()).unwrap();
        old.read_hs(&hello).unwrap();
        let (mut initial, mut handshake) = (Vec::new(), Vec::new());
        assert!(old.write_hs(&mut initial).is_some());
        assert!(old.write_hs(&mut handshake).is_some());
        session.read_crypto(Space::Initial, &initial).unwrap();
        let mut chunks = handshake.chunks(chunk);
        let error = chunks.find_map(|data| session.read_crypto(Space::Handshake, data).err());
        let error = error.unwrap();
        // unsupported_extension: the client did not offer it.
        assert_eq!(error.code, TransportError::from_tls_alert(110), "{error}");
        assert_eq!(session.peer_parameters(), None);
    }
}

#[test]
fn rfc9001_8_4_a_legacy_session_id_is_a_protocol_violation() {
    // Type and length of the message, version and random are before the length of the session ID.
    const AT: usize = 4 + 2 + 32;
    let (client, server) = pair();
    let (_, mut hello) = hello_of_a_client(&client);
    for chunk in [1, 7, usize::MAX] {
        assert_eq!(refusal(&server, &hello, chunk), None);
    }
    assert_eq!(hello[AT], 0);
    hello.splice(AT..=AT, [2, 7, 7]);
    let len = hello.len() as u32 - 4;
    hello[1..4].copy_from_slice(&len.to_be_bytes()[1..]);
    for chunk in [1, 7, usize::MAX] {
        let error = refusal(&server, &hello, chunk).unwrap();
        assert_eq!(error.code, TransportError::PROTOCOL_VIOLATION, "{error}");
    }
}

#[test]
fn rfc9001_8_2_the_second_client_hello_is_checked_too() {
    let identity = identity();
    let client = TlsClient::new(client_config(all_suites(), &identity.roots)).unwrap();
    // Only the group for which the client sends no key share.
    let mut groups = CryptoProvider::clone(&all_suites());
    groups.kx_groups = vec![kx_group::SECP256R1];
    let server = TlsServer::new(server_config(Arc::new(groups), &identity)).unwrap();
    let (mut client, hello) = hello_of_a_client(&client);
    let mut server = server.start(Version::V1, b"server").unwrap();
    server.read_crypto(Space::Initial, &hello).unwrap();
    let mut retry = Vec::new();
    server.write_crypto(Space::Initial, &mut retry);
    client.read_crypto(Space::Initial, &retry).unwrap();
    let mut second = Vec::new();
    client.write_crypto(Space::Initial, &mut second);
    // The type of the extension, whose content stays.
    let at = second
        .windows(4)
        .position(|bytes| bytes == [0, 0x39, 0, 6])
        .unwrap();
    second[at..at + 2].copy_from_slice(&[0xff, 0xa5]);
    let error = server.read_crypto(Space::Initial, &second).unwrap_err();
    assert_eq!(error.code, MISSING_EXTENSION, "{error}");
}
