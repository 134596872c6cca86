//! Cost of handshakes, full and resumed with 0-RTT, with and without stateless tickets; and of a saved session.
//!
//! Both ends are in memory, and each iteration is a whole handshake of both, with its tickets.
//!
//! `cargo bench -p lastbyte-quic --bench tickets`

use std::{sync::Arc, time::Duration};

use criterion::{Criterion, criterion_group, criterion_main};
use lastbyte_quic::{
    WallTime,
    crypto::{
        ClientCrypto, ServerCrypto, Session,
        tickets::{
            Tickets, ZeroRtt,
            client::{ClientSessions, MemorySessions, SavedSession, SessionStore},
            clock::WallClock,
            keys::TicketKeys,
            replay_filter::ReplayFilter,
        },
        tls::{TlsClient, TlsServer},
    },
    space::Space,
};
use lastbyte_wire::packet::Version;
use rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    client::WebPkiServerVerifier,
    crypto::{
        CryptoProvider,
        aws_lc_rs::{default_provider, kx_group},
    },
};

/// A clock that stands still.
#[derive(Debug)]
struct Noon;

impl WallClock for Noon {
    fn now(&self) -> WallTime {
        WallTime::from_unix(Duration::from_secs(1_900_000_000))
    }
}

/// `initial_max_data` of 2^20 bytes, as transport parameters.
const PARAMETERS: [u8; 6] = [4, 4, 0x80, 0x10, 0, 0];

struct Ends {
    store: Arc<MemorySessions>,
    keeping: TlsClient,
    plain: TlsClient,
    stateless: TlsServer,
    stateful: TlsServer,
}

fn provider() -> CryptoProvider {
    CryptoProvider {
        kx_groups: vec![kx_group::X25519],
        ..default_provider()
    }
}

fn ends() -> Ends {
    let identity = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]);
    let identity = identity.expect("a certificate");
    let mut roots = RootCertStore::empty();
    roots.add(identity.cert.der().clone()).expect("a root");
    let roots = Arc::new(roots);
    let verifier =
        WebPkiServerVerifier::builder_with_provider(Arc::clone(&roots), Arc::new(provider()))
            .build()
            .expect("a verifier");
    let store = Arc::new(MemorySessions::default());
    let client_config = |provider| {
        let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("TLS 1.3")
            .with_root_certificates(Arc::clone(&roots))
            .with_no_client_auth();
        config.alpn_protocols = vec![b"h3".to_vec()];
        config.enable_early_data = true;
        config
    };
    let sessions = ClientSessions {
        store: store.clone(),
        verifier,
        clock: Arc::new(Noon),
    };
    let mut config = ServerConfig::builder_with_provider(Arc::new(provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3")
        .with_no_client_auth()
        .with_single_cert(
            vec![identity.cert.der().clone()],
            identity.signing_key.into(),
        )
        .expect("an identity");
    config.alpn_protocols = vec![b"h3".to_vec()];
    config.max_early_data_size = u32::MAX;
    let replay_filter = ReplayFilter::new(1 << 22, None);
    let keys = TicketKeys::new(&[[7; 32]]).expect("a key");
    let tickets = Tickets::new(keys, Arc::new(Noon))
        .with_zero_rtt(ZeroRtt::AnyServer(Arc::new(replay_filter)));
    Ends {
        store,
        keeping: TlsClient::with_sessions(
            client_config(lastbyte_quic::crypto::provider(provider())),
            sessions,
        )
        .expect("a client"),
        plain: TlsClient::new(client_config(provider())).expect("a client"),
        stateless: TlsServer::with_tickets(config.clone(), Arc::new(tickets)).expect("a server"),
        stateful: TlsServer::new(config).expect("a server"),
    }
}

fn pass(from: &mut dyn Session, to: &mut dyn Session) -> usize {
    let mut passed = 0;
    for space in Space::ALL {
        let mut data = Vec::new();
        from.write_crypto(space, &mut data);
        if !data.is_empty() {
            to.read_crypto(space, &data).expect("it is understood");
        }
        passed += data.len();
    }
    passed
}

/// A whole handshake. Says whether it was resumed.
fn handshake(client: &TlsClient, server: &TlsServer) -> bool {
    let mut client = client
        .start(Version::V1, "localhost", &PARAMETERS)
        .expect("a client");
    let mut server = server.start(Version::V1, &PARAMETERS).expect("a server");
    while pass(&mut *client, &mut *server) + pass(&mut *server, &mut *client) > 0 {}
    client.is_resumed() == Some(true)
}

fn handshakes(criterion: &mut Criterion) {
    let ends = ends();
    let mut group = criterion.benchmark_group("handshake");
    for (name, server) in [("stateful", &ends.stateful), ("stateless", &ends.stateless)] {
        group.bench_function(format!("full/{name}"), |bencher| {
            bencher.iter(|| {
                assert!(!handshake(&ends.keeping, server));
                ends.store.take_all().len()
            });
        });
        handshake(&ends.plain, server);
        group.bench_function(format!("0rtt/{name}"), |bencher| {
            bencher.iter(|| assert!(handshake(&ends.plain, server)));
        });
    }
    handshake(&ends.keeping, &ends.stateless);
    group.bench_function("0rtt/saved", |bencher| {
        bencher.iter(|| assert!(handshake(&ends.keeping, &ends.stateless)));
    });
    group.finish();

    let saved = ends
        .store
        .take("localhost", Version::V1)
        .expect("a session");
    let bytes = saved.to_bytes();
    let name = format!("saved_session/from_bytes/{}", bytes.len());
    criterion.bench_function(&name, |bencher| {
        bencher.iter(|| SavedSession::from_bytes(&bytes).expect("a session"));
    });
    criterion.bench_function("saved_session/restore_and_client_hello", |bencher| {
        bencher.iter(|| {
            ends.store.put(saved.clone());
            let client = ends.keeping.start(Version::V1, "localhost", &PARAMETERS);
            assert!(client.expect("a client").remembered_parameters().is_some());
            ends.store.take_all().len()
        });
    });
}

fn strikes(criterion: &mut Criterion) {
    let replay_filter = ReplayFilter::new(1 << 22, None);
    let mut number = 0u64;
    let now = Noon.now();
    criterion.bench_function("strike", |bencher| {
        bencher.iter(|| {
            number += 1;
            // Well mixed, as hashes are.
            let word = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mut hash = [0; 32];
            for (index, part) in hash.chunks_exact_mut(8).enumerate() {
                let word = word.rotate_left(17 * index as u32) ^ word;
                part.copy_from_slice(&word.to_be_bytes());
            }
            replay_filter.strike(&hash, now)
        });
    });
}

criterion_group!(benches, handshakes, strikes);
criterion_main!(benches);
