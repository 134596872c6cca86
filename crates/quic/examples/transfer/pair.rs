//! A server that sends and a client that receives, joined in memory: a path of 10 ms each way that loses nothing, or one
//! datagram in so many, and allocates nothing once it runs.

use std::{collections::VecDeque, net::SocketAddr, sync::Arc, time::Duration};

use lastbyte_congestion::Time;
use lastbyte_quic::{
    ack::Ecn,
    cid::{ConnectionIds, RandomIds},
    connection::{ClientStart, Config, Connection, NetworkPath, ServerStart},
    crypto::{
        ClientCrypto, ServerCrypto,
        plain::{PlainClient, PlainServer},
        reset::ResetKey,
        tls::{TlsClient, TlsServer},
    },
    path::MtuConfig,
    stream::{Source, SourceError, StreamEvent, StreamSink},
};
use lastbyte_wire::{ConnectionId, Direction, StreamId, packet::Version};
use rustls::{
    CipherSuite, ClientConfig, RootCertStore, ServerConfig,
    crypto::{CryptoProvider, aws_lc_rs::default_provider},
};

/// One way, in time.
const DELAY: Duration = Duration::from_millis(10);
/// What one call to `poll_transmit` may fill: one batch of UDP segmentation offload.
const BATCH: usize = 65_535;
/// What may be under way: the client's window, which never grows.
const WINDOW: u64 = 1 << 20;

/// How packets are protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protection {
    /// TLS with AES-128-GCM.
    Aes128Gcm,
    /// The plaintext twin.
    Plain,
}

impl Protection {
    /// What connections with it share.
    pub(crate) fn crypto(self) -> Crypto {
        match self {
            Self::Aes128Gcm => tls(),
            Self::Plain => plain(),
        }
    }
}

/// Whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The sender.
    Server,
    /// The receiver.
    Client,
}

/// Bytes from nowhere: writing them costs nothing, so that the transport is what is measured.
struct Nothing(u64);

impl Source for Nothing {
    fn len(&self) -> u64 {
        self.0
    }

    fn read_at(&self, _: u64, _: &mut [u8]) -> Result<(), SourceError> {
        Ok(())
    }
}

/// Counts what arrives in order.
#[derive(Debug, Default)]
struct Count(u64);

impl StreamSink for Count {
    fn data(&mut self, _: StreamId, offset: u64, data: &[u8], _: bool) -> usize {
        assert_eq!(offset, self.0, "in order");
        self.0 += data.len() as u64;
        data.len()
    }
}

/// A batch of datagrams under way.
#[derive(Debug)]
struct Batch {
    arrives: Time,
    to: End,
    bytes: Vec<u8>,
    segment_len: usize,
    ecn: Ecn,
}

/// What all connections of an end share.
pub(crate) struct Crypto {
    client: Arc<dyn ClientCrypto>,
    server: Arc<dyn ServerCrypto>,
    reset_key: Arc<ResetKey>,
}

impl Crypto {
    fn new(client: impl ClientCrypto + 'static, server: impl ServerCrypto + 'static) -> Self {
        Self {
            client: Arc::new(client),
            server: Arc::new(server),
            reset_key: Arc::new(ResetKey::new(&[7; 32])),
        }
    }
}

/// The two ends, and what is between them.
pub(crate) struct Pair {
    client: Connection,
    server: Connection,
    now: Time,
    flying: VecDeque<Batch>,
    spare: Vec<Vec<u8>>,
    count: Count,
    lose_one_in: u64,
    launched: u64,
}

fn path(of: End) -> NetworkPath {
    let server = SocketAddr::from(([192, 0, 2, 1], 443));
    let client = SocketAddr::from(([192, 0, 2, 2], 50_000));
    match of {
        End::Server => NetworkPath {
            local: server,
            remote: client,
        },
        End::Client => NetworkPath {
            local: client,
            remote: server,
        },
    }
}

fn tls() -> Crypto {
    let identity =
        rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    let mut roots = RootCertStore::empty();
    roots.add(identity.cert.der().clone()).expect("a root");
    let provider = CryptoProvider {
        cipher_suites: default_provider()
            .cipher_suites
            .into_iter()
            .filter(|suite| suite.suite() == CipherSuite::TLS13_AES_128_GCM_SHA256)
            .collect(),
        ..default_provider()
    };
    let provider = Arc::new(provider);
    let mut client = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth();
    client.alpn_protocols = vec![b"bulk".to_vec()];
    let mut server = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3")
        .with_no_client_auth()
        .with_single_cert(
            vec![identity.cert.der().clone()],
            identity.signing_key.into(),
        )
        .expect("an identity");
    server.alpn_protocols = vec![b"bulk".to_vec()];
    Crypto::new(
        TlsClient::new(client).expect("a client"),
        TlsServer::new(server).expect("a server"),
    )
}

fn plain() -> Crypto {
    let alpn = || vec![b"bulk".to_vec()];
    Crypto::new(PlainClient::new(1, alpn()), PlainServer::new(2, alpn()))
}

fn config(datagram: u16, spec: &str) -> Arc<Config> {
    let mut config = Config::new(spec.parse().expect("a spec"));
    config.mtu = MtuConfig {
        initial: datagram,
        maximum: datagram,
    };
    for window in [
        &mut config.streams.connection_window,
        &mut config.streams.stream_window,
    ] {
        window.initial = WINDOW;
        window.maximum = WINDOW;
    }
    Arc::new(config)
}

impl Pair {
    /// Two ends that start a handshake, with datagrams of this size; the path loses one datagram in this many, 0 for
    /// none.
    pub(crate) fn new(crypto: &Crypto, datagram: u16, spec: &str, lose_one_in: u64) -> Self {
        let now = Time::from_nanos(1_000_000_000);
        let config = config(datagram, spec);
        let id = |byte| ConnectionId::new(&[byte; 8]).expect("8 bytes");
        let ids = |byte| RandomIds::default().generator(&crypto.reset_key, [byte; 32]);
        let (client_id, server_id, first) = (id(1), id(2), id(3));
        let start = ClientStart {
            crypto: Arc::clone(&crypto.client),
            server_name: "localhost",
            path: path(End::Client),
            local_id: client_id,
            destination: first,
            token: Vec::new(),
            ids: ids(1),
            seed: [1; 32],
        };
        let client = Connection::client(now, &config, start).expect("a client");
        let start = ServerStart {
            crypto: &*crypto.server,
            version: Version::V1,
            path: path(End::Server),
            local_id: server_id,
            peer_id: client_id,
            destination: first,
            initial_keys: crypto.server.initial_keys(Version::V1, &first),
            retry: None,
            is_address_validated: false,
            ids: ids(2),
            seed: [2; 32],
        };
        let server = Connection::server(now, &config, start).expect("a server");
        Self {
            client,
            server,
            now,
            flying: VecDeque::with_capacity(256),
            spare: (0..256).map(|_| vec![0; BATCH]).collect(),
            count: Count::default(),
            lose_one_in,
            launched: 0,
        }
    }

    /// Shakes hands, and lets the server begin with `bytes` of a stream.
    pub(crate) fn start(&mut self, bytes: u64) {
        let direction = Direction::Unidirectional;
        loop {
            self.step(&mut |_, work| work());
            if let Some(id) = self.server.streams().open(direction) {
                let streams = self.server.streams();
                streams
                    .send_source(id, Box::new(Nothing(bytes)))
                    .expect("a stream that is open");
                streams.finish(id).expect("a stream that is open");
                return;
            }
        }
    }

    /// How many bytes of the stream have arrived in order.
    pub(crate) fn arrived(&self) -> u64 {
        self.count.0
    }

    /// Server and client, once they have nothing to say to each other.
    #[cfg_attr(not(test), expect(dead_code, reason = "a test measures them"))]
    pub(crate) fn into_idle_ends(mut self) -> [Connection; 2] {
        let until = self.now + Duration::from_secs(10);
        let timers = |pair: &Self| [pair.client.deadline(), pair.server.deadline()];
        while !self.flying.is_empty() || timers(&self).into_iter().flatten().any(|at| at < until) {
            self.step(&mut |_, work| work());
        }
        [self.server, self.client]
    }

    /// How many packets the server has sent, and the client.
    pub(crate) fn packets_sent(&self) -> (u64, u64) {
        (
            self.server.recovery_statistics().packets_sent,
            self.client.recovery_statistics().packets_sent,
        )
    }

    /// What happens next. What an end does, it does within `measure`.
    pub(crate) fn step(&mut self, measure: &mut dyn FnMut(End, &mut dyn FnMut())) {
        self.send(End::Server, measure);
        self.send(End::Client, measure);
        let arrival = self.flying.front().map(|batch| batch.arrives);
        let timers = [self.client.deadline(), self.server.deadline()];
        let next = timers.into_iter().flatten().chain(arrival).min();
        self.now = self.now.max(next.expect("something will happen"));
        if arrival.is_none_or(|at| at > self.now) {
            let now = self.now;
            measure(End::Client, &mut || self.client.on_timeout(now));
            measure(End::Server, &mut || self.server.on_timeout(now));
            return;
        }
        while self
            .flying
            .front()
            .is_some_and(|batch| batch.arrives <= self.now)
            && let Some(batch) = self.flying.pop_front()
        {
            self.receive(batch, measure);
        }
    }

    fn send(&mut self, from: End, measure: &mut dyn FnMut(End, &mut dyn FnMut())) {
        let now = self.now;
        while let Some(mut bytes) = self.spare.pop() {
            bytes.resize(BATCH, 0);
            let sender = match from {
                End::Server => &mut self.server,
                End::Client => &mut self.client,
            };
            let mut transmit = None;
            measure(from, &mut || {
                transmit = sender.poll_transmit(now, &mut bytes);
            });
            let Some(transmit) = transmit else {
                self.spare.push(bytes);
                return;
            };
            bytes.truncate(transmit.len);
            self.flying.push_back(Batch {
                arrives: now + DELAY,
                to: match from {
                    End::Server => End::Client,
                    End::Client => End::Server,
                },
                bytes,
                segment_len: transmit.segment_len,
                ecn: transmit.ecn,
            });
        }
    }

    fn receive(&mut self, batch: Batch, measure: &mut dyn FnMut(End, &mut dyn FnMut())) {
        let Batch {
            to,
            mut bytes,
            segment_len,
            ecn,
            ..
        } = batch;
        let (now, lose_one_in) = (self.now, self.lose_one_in);
        let (launched, count) = (&mut self.launched, &mut self.count);
        let receiver = match to {
            End::Server => &mut self.server,
            End::Client => &mut self.client,
        };
        measure(to, &mut || {
            for datagram in bytes.chunks_mut(segment_len) {
                *launched += 1;
                if lose_one_in == 0 || !launched.is_multiple_of(lose_one_in) {
                    receiver.handle_datagram(now, &path(to), ecn, datagram, count);
                }
            }
            while let Some(event) = receiver.streams().poll_event() {
                assert!(!matches!(event, StreamEvent::SourceFailed { .. }));
            }
            while receiver.poll_event().is_some() {}
        });
        assert!(receiver.close_reason().is_none(), "{receiver:?}");
        self.spare.push(bytes);
    }
}
