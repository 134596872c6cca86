//! Sessions saved as bytes and restored, as if by another process.
#![expect(clippy::unwrap_used, reason = "a test that finds nothing may panic")]

use std::{sync::Mutex, time::Duration};

use lastbyte_wire::TransportError;
use rustls::{
    DigitallySignedStruct, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified},
    },
    crypto::{CryptoProvider, aws_lc_rs::kx_group},
    pki_types::{CertificateDer, UnixTime},
};

use super::{
    super::{
        Refusal,
        clock::WallClock as _,
        testing::{
            DAY, Fleet, Kind, LIMIT, connect, early_flows, kind, parameters, start_client,
            start_server,
        },
    },
    *,
};
use crate::crypto::{
    ClientCrypto as _, EarlyData, ServerCrypto as _, Space,
    kdf_hook::is_hooked,
    key_log::KeyLogLines,
    provider,
    testing::{End, drive},
    tls::{
        ConfigError, TlsClient,
        testing::{
            Identity, SUITES, all_suites, client_config, identity_of, provider as suites_of,
        },
    },
};

fn tapped(base: &Arc<CryptoProvider>) -> Arc<CryptoProvider> {
    Arc::new(provider((**base).clone()))
}

fn verifier(identity: &Identity) -> Arc<dyn ServerCertVerifier> {
    let roots = Arc::clone(&identity.roots);
    WebPkiServerVerifier::builder_with_provider(roots, all_suites())
        .build()
        .unwrap()
}

fn sessions(fleet: &Fleet) -> (ClientSessions, Arc<MemorySessions>) {
    let store = Arc::new(MemorySessions::default());
    let sessions = ClientSessions {
        store: store.clone(),
        verifier: verifier(&fleet.identity),
        clock: fleet.clock.clone(),
    };
    (sessions, store)
}

fn client_of(fleet: &Fleet, sessions: ClientSessions) -> TlsClient {
    let config = client_config(tapped(&fleet.provider), &fleet.identity.roots);
    TlsClient::with_sessions(config, sessions).unwrap()
}

/// A client in a new process: it shares only the saved bytes with others.
fn new_process(fleet: &Fleet, saved: &[Vec<u8>]) -> (TlsClient, Arc<MemorySessions>) {
    let (sessions, store) = sessions(fleet);
    for bytes in saved {
        store.put(SavedSession::from_bytes(bytes).unwrap());
    }
    (client_of(fleet, sessions), store)
}

fn saved(store: &MemorySessions) -> Vec<Vec<u8>> {
    store
        .take_all()
        .iter()
        .map(SavedSession::to_bytes)
        .collect()
}

/// The sessions that a first process leaves behind.
fn first_run(fleet: &Fleet, seeds: &[u8]) -> Vec<Vec<u8>> {
    let (client, store) = new_process(fleet, &[]);
    assert_eq!(connect(&client, &fleet.plain_server(seeds)), Kind::Full);
    saved(&store)
}

#[test]
fn a_saved_session_permits_0rtt_in_another_process_days_later() {
    let fleet = Fleet::new();
    let bytes = first_run(&fleet, &[1]);
    assert_eq!(bytes.len(), 2, "one of each ticket");
    assert!(bytes[0].len() < 1000, "{} bytes", bytes[0].len());
    fleet.clock.pass(3 * DAY);
    for bytes in &bytes {
        let (client, _) = new_process(&fleet, std::slice::from_ref(bytes));
        let (mut c, mut s) = (
            start_client(&client),
            start_server(&fleet.plain_server(&[1])),
        );
        assert_eq!(c.session.early_data(), EarlyData::Offered);
        let remembered = c.session.remembered_parameters();
        assert_eq!(remembered, Some(&parameters(LIMIT)[..]));
        let hello = c.take_output();
        s.receive(&hello, usize::MAX).unwrap();
        s.take_output();
        assert!(early_flows(&c, &s), "right after the ClientHello");
        let flight = s.sent_data.clone();
        c.receive(&flight, usize::MAX).unwrap();
        drive(&mut c, &mut s, usize::MAX).unwrap();
        assert_eq!(kind(&c, &s), Kind::Early);
        let certificate = c.session.peer_certificate();
        assert_eq!(certificate, Some(fleet.identity.chain[0].as_ref()));
        // Used once, so it is not in the store any more; but the new tickets are.
        assert_eq!(connect(&client, &fleet.plain_server(&[1])), Kind::Early);
    }
}

/// A client that returns repeatedly, each time as another process and to another server of the fleet, after anything
/// from a moment to a week.
#[test]
fn of_100_returns_within_a_week_98_send_0rtt() {
    const RETURNS: u32 = 300;
    let fleet = Fleet::new();
    let mut left_behind = first_run(&fleet, &[1]);
    let mut early = 0;
    // Any odd sequence works: the same in each run.
    let mut state = 1u64;
    for _ in 0..RETURNS {
        state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
        // As many short gaps as long ones: 1 s to 7 days are 19 doublings.
        let longest = Duration::from_secs(1 << (1 + (state >> 32) % 19));
        let share = (state >> 40) as u32 & 0xff;
        let gap = (longest * share / 256).min((7 * DAY).saturating_sub(Duration::from_secs(1)));
        fleet.clock.pass(gap);
        let (client, store) = new_process(&fleet, &left_behind);
        let came = connect(&client, &fleet.plain_server(&[1]));
        early += u32::from(came == Kind::Early);
        left_behind = saved(&store);
    }
    assert!(early * 100 >= RETURNS * 98, "{early} of {RETURNS}");
}

#[test]
fn all_cipher_suites_and_versions_can_be_saved() {
    for (suite, name) in SUITES {
        for version in [Version::V1, Version::V2] {
            let fleet = Fleet::of(suites_of(&[suite]));
            let server = fleet.plain_server(&[1]);
            let run = |bytes: &[Vec<u8>]| {
                let (client, store) = new_process(&fleet, bytes);
                let start = client.start(version, "localhost", b"client").unwrap();
                let mut c = End::new(start);
                let start = server.start(version, &parameters(LIMIT)).unwrap();
                let mut s = End::new(start);
                // A byte at a time, so that no ticket arrives in one piece.
                drive(&mut c, &mut s, 1).unwrap();
                (kind(&c, &s), saved(&store))
            };
            let (first, bytes) = run(&[]);
            assert_eq!((first, bytes.len()), (Kind::Full, 2), "{name}");
            assert_eq!(run(&bytes[..1]).0, Kind::Early, "{name}");
        }
    }
}

#[test]
fn rfc9369_5_a_session_of_another_version_stays_in_the_store() {
    let fleet = Fleet::new();
    let bytes = first_run(&fleet, &[1]);
    let (client, store) = new_process(&fleet, &bytes);
    let start = client.start(Version::V2, "localhost", b"").unwrap();
    assert_eq!(start.early_data(), EarlyData::Unavailable);
    assert_eq!(saved(&store), bytes);
}

#[test]
fn rfc8446_c_4_a_session_is_given_out_once() {
    let fleet = Fleet::new();
    let bytes = first_run(&fleet, &[1]);
    let (client, store) = new_process(&fleet, &bytes);
    let offered = |_| start_client(&client).session.early_data();
    let all: Vec<_> = (0..3).map(offered).collect();
    let expected = [
        EarlyData::Offered,
        EarlyData::Offered,
        EarlyData::Unavailable,
    ];
    assert_eq!(all, expected);
    assert!(saved(&store).is_empty());
}

#[test]
fn rfc8446_4_6_1_an_expired_session_is_not_offered() {
    let fleet = Fleet::new();
    let bytes = first_run(&fleet, &[1]);
    let server = fleet.plain_server(&[1]);
    fleet
        .clock
        .pass((7 * DAY).saturating_sub(Duration::from_secs(1)));
    let (client, _) = new_process(&fleet, &bytes);
    assert_eq!(connect(&client, &server), Kind::Early);
    fleet.clock.pass(Duration::from_secs(1));
    let (client, _) = new_process(&fleet, &bytes);
    let mut c = start_client(&client);
    assert_eq!(c.session.early_data(), EarlyData::Unavailable);
    let mut s = start_server(&server);
    drive(&mut c, &mut s, usize::MAX).unwrap();
    assert_eq!(kind(&c, &s), Kind::Full);
}

#[test]
fn a_restored_client_still_verifies_signatures_and_certificates() {
    let fleet = Fleet::new();
    let bytes = first_run(&fleet, &[1]);
    let (client, _) = new_process(&fleet, &bytes);
    // A server that cannot resume, and presents a certificate of an authority that the client does not trust.
    let stranger = Fleet {
        clock: fleet.clock.clone(),
        identity: identity_of("Another"),
        provider: all_suites(),
    };
    let (mut c, mut s) = (
        start_client(&client),
        start_server(&stranger.plain_server(&[9])),
    );
    assert_eq!(c.session.early_data(), EarlyData::Offered);
    let (by_client, error) = drive(&mut c, &mut s, usize::MAX).unwrap_err();
    assert!(by_client);
    // unknown_ca.
    assert_eq!(error.code, TransportError::from_tls_alert(48));

    // One that presents the right certificate, but does not have its key.
    let config = rustls::ServerConfig::builder_with_provider(all_suites())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth();
    let key = rustls::crypto::aws_lc_rs::sign::any_supported_type(&stranger.identity.key).unwrap();
    let certified = rustls::sign::CertifiedKey::new(fleet.identity.chain.clone(), key);
    let resolver = rustls::sign::SingleCertAndKey::from(certified);
    let mut config = config.with_cert_resolver(Arc::new(resolver));
    config.alpn_protocols = vec![b"h3".to_vec()];
    let server = crate::crypto::tls::TlsServer::new(config).unwrap();
    let (mut c, mut s) = (start_client(&client), start_server(&server));
    assert_eq!(c.session.early_data(), EarlyData::Offered);
    let (by_client, error) = drive(&mut c, &mut s, usize::MAX).unwrap_err();
    assert!(by_client);
    // decrypt_error, as RFC 8446 §4.4.3 requires.
    assert_eq!(error.code, TransportError::from_tls_alert(51));
}

/// Trusts certificates up to a time.
#[derive(Debug)]
struct Until(Arc<dyn ServerCertVerifier>, UnixTime);

impl ServerCertVerifier for Until {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if now > self.1 {
            return Err(rustls::CertificateError::Expired.into());
        }
        self.0
            .verify_server_cert(end_entity, intermediates, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

#[test]
fn a_session_whose_certificate_has_expired_since_is_dropped() {
    let fleet = Fleet::new();
    let end = (fleet.clock.now() + DAY).since_unix_epoch();
    for (late, expected) in [(0, EarlyData::Offered), (1, EarlyData::Unavailable)] {
        let bytes = first_run(&fleet, &[1]);
        let (mut sessions, store) = sessions(&fleet);
        let end = UnixTime::since_unix_epoch(end);
        sessions.verifier = Arc::new(Until(verifier(&fleet.identity), end));
        store.put(SavedSession::from_bytes(&bytes[0]).unwrap());
        let client = client_of(&fleet, sessions);
        fleet.clock.pass(DAY + Duration::from_secs(late));
        assert_eq!(start_client(&client).session.early_data(), expected);
        fleet.clock.set_back(DAY + Duration::from_secs(late));
        assert!(saved(&store).is_empty());
    }
}

#[test]
fn a_session_that_does_not_fit_the_configuration_leads_to_a_full_handshake() {
    type Change = fn(&mut SavedSession);
    let fleet = Fleet::new();
    let bytes = first_run(&fleet, &[1]);
    let changes: [(&str, Change); 8] = [
        ("another protocol", |saved| saved.alpn = b"hq".to_vec()),
        ("an unknown suite", |saved| saved.suite = 0x1399),
        ("no certificate", |saved| saved.chain.clear()),
        ("a strange certificate", |saved| {
            saved.chain = vec![vec![1; 9]];
        }),
        ("a short key", |saved| saved.psk = vec![1; 5]),
        ("a key that is too long", |saved| saved.psk = vec![1; 200]),
        ("another message", |saved| saved.message[0] = 8),
        ("a ticket that allows 3 bytes", |saved| {
            *saved.message.last_mut().unwrap() = 3;
        }),
    ];
    for (name, change) in changes {
        let (sessions, store) = sessions(&fleet);
        let mut session = SavedSession::from_bytes(&bytes[0]).unwrap();
        change(&mut session);
        store.put(SavedSession::from_bytes(&session.to_bytes()).unwrap());
        let client = client_of(&fleet, sessions);
        let kind = connect(&client, &fleet.plain_server(&[1]));
        assert_eq!(kind, Kind::Full, "{name}");
    }
    // The next is tried if one cannot be used.
    let (sessions, store) = sessions(&fleet);
    let good = SavedSession::from_bytes(&bytes[0]).unwrap();
    let mut bad = good.clone();
    bad.psk.pop();
    store.put(good);
    store.put(bad);
    let client = client_of(&fleet, sessions);
    assert_eq!(connect(&client, &fleet.plain_server(&[1])), Kind::Early);
}

#[test]
fn a_server_without_the_key_makes_a_full_handshake_and_gives_new_tickets() {
    let fleet = Fleet::new();
    let bytes = first_run(&fleet, &[1]);
    let (client, store) = new_process(&fleet, &bytes[..1]);
    assert_eq!(connect(&client, &fleet.plain_server(&[2])), Kind::Full);
    assert_eq!(saved(&store).len(), 2);
}

#[test]
fn a_restored_session_with_rejected_0rtt_still_resumes() {
    let fleet = Fleet::new();
    let bytes = first_run(&fleet, &[1]);
    let (client, _) = new_process(&fleet, &bytes);
    let server = fleet.plain_server(&[1]);
    let (mut c, mut s) = (
        start_client(&client),
        End::new(server.start(Version::V1, &parameters(LIMIT - 1)).unwrap()),
    );
    drive(&mut c, &mut s, usize::MAX).unwrap();
    assert_eq!(kind(&c, &s), Kind::Resumed);
    assert_eq!(c.session.early_data(), EarlyData::Rejected);
    let ticket = s.session.resumed_ticket().unwrap();
    assert_eq!(ticket.refusal, Some(Refusal::Reduced));
}

#[test]
fn the_group_of_the_key_exchange_is_remembered() {
    let fleet = Fleet::new();
    let p256 = Arc::new(CryptoProvider {
        kx_groups: vec![kx_group::SECP256R1],
        ..(*all_suites()).clone()
    });
    let server = fleet.server_of(p256, fleet.tickets(&[1]));
    let (client, store) = new_process(&fleet, &[]);
    // The first key share is X25519: another is requested, which would prevent 0-RTT.
    assert_eq!(connect(&client, &server), Kind::Full);
    let (client, _) = new_process(&fleet, &saved(&store));
    assert_eq!(connect(&client, &server), Kind::Early);
}

#[test]
fn concurrent_handshakes_on_one_thread_keep_their_sessions() {
    let fleet = Fleet::new();
    let server = fleet.plain_server(&[1]);
    let processes: Vec<_> = (0..3).map(|_| new_process(&fleet, &[])).collect();
    let mut ends: Vec<(End, End)> = processes
        .iter()
        .map(|(client, _)| (start_client(client), start_server(&server)))
        .collect();
    for _ in 0..4 {
        for (c, s) in &mut ends {
            s.receive(&c.take_output(), usize::MAX).unwrap();
        }
        // Tickets of all connections arrive one byte each at a time.
        let sent_data: Vec<_> = ends.iter_mut().map(|(_, s)| s.take_output()).collect();
        let longest = sent_data.iter().flatten().map(|(_, data)| data.len()).max();
        for space in Space::ALL {
            for index in 0..longest.unwrap_or_default() {
                for ((c, _), sent_data) in ends.iter_mut().zip(&sent_data) {
                    let data = sent_data.iter().find(|(of, _)| *of == space);
                    if let Some(byte) = data.and_then(|(_, data)| data.get(index..=index)) {
                        c.session.read_crypto(space, byte).unwrap();
                    }
                }
            }
        }
    }
    for (_, store) in &processes {
        let (client, _) = new_process(&fleet, &saved(store));
        let (mut c, mut s) = (start_client(&client), start_server(&server));
        drive(&mut c, &mut s, usize::MAX).unwrap();
        assert_eq!(kind(&c, &s), Kind::Early);
    }
}

#[test]
fn the_handshake_in_memory_is_not_in_the_key_log() {
    let fleet = Fleet::new();
    let bytes = first_run(&fleet, &[1]);
    let (sessions, store) = sessions(&fleet);
    store.put(SavedSession::from_bytes(&bytes[0]).unwrap());
    let lines = Arc::new(Mutex::new(Vec::new()));
    let mut config = client_config(tapped(&fleet.provider), &fleet.identity.roots);
    let log = Arc::clone(&lines);
    config.key_log = Arc::new(KeyLogLines(move |line: &str| {
        log.lock().unwrap().push(line.to_owned());
    }));
    let client = TlsClient::with_sessions(config, sessions).unwrap();
    assert_eq!(connect(&client, &fleet.plain_server(&[1])), Kind::Early);
    let lines = lines.lock().unwrap();
    let randoms: std::collections::BTreeSet<_> = lines
        .iter()
        .filter_map(|line| line.split(' ').nth(1))
        .collect();
    assert_eq!(randoms.len(), 1, "secrets of one handshake: {lines:?}");
}

#[test]
fn a_provider_that_shows_no_keys_is_refused() {
    let fleet = Fleet::new();
    let (sessions, _) = sessions(&fleet);
    let config = client_config(all_suites(), &fleet.identity.roots);
    let error = TlsClient::with_sessions(config, sessions).unwrap_err();
    assert_eq!(error, ConfigError::ClosedProvider);
    // Once more than once is as good as once.
    let twice = tapped(&tapped(&all_suites()));
    assert!(is_hooked(&twice) && !is_hooked(&all_suites()));
}

#[test]
fn secrets_are_in_no_debug_text() {
    let fleet = Fleet::new();
    let bytes = first_run(&fleet, &[1]);
    let session = SavedSession::from_bytes(&bytes[0]).unwrap();
    let (client, _) = new_process(&fleet, &bytes);
    for text in [format!("{session:?}"), format!("{client:?}")] {
        assert!(!text.contains("psk") && !text.contains("message"), "{text}");
    }
}
