//! The work that `bench/instructions` counts with callgrind, one case for each run:
//!
//! ```text
//! valgrind --tool=callgrind --toggle-collect='*::counted' target/release/examples/instructions packet-out
//! ```
//!
//! Client and server are joined in memory. Only what happens inside `counted` is collected; the program prints how many
//! units of the case that was. Packets carry the plaintext protection, so that the counts are those of the transport and
//! do not depend on the AEAD that the CPU permits; `handshake-tls` is the exception.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "an example reads its arguments and prints its results"
)]

use std::{
    hint::black_box, net::SocketAddr, ops::Range, process::ExitCode, sync::Arc, time::Duration,
};

use lastbyte_http3::{Body, BodySink, Config, Connection, Event, Request, Response};
use lastbyte_quic::{
    Time, WallTime,
    ack::Ecn,
    cid::{ConnectionIds, RandomIds},
    connection::{self as transport, ClientStart, NetworkPath, ServerStart, Stage},
    crypto::{
        ClientCrypto, ServerCrypto,
        plain::{PlainClient, PlainServer},
        provider,
        reset::ResetKey,
        tickets::{Tickets, clock::WallClock, keys::TicketKeys},
        tls::{TlsClient, TlsServer},
    },
    path::MtuConfig,
    stream::{Source, SourceError},
};
use lastbyte_wire::{ConnectionId, StreamId, packet::Version};
use rustls::{
    CipherSuite, ClientConfig, RootCertStore, ServerConfig,
    crypto::{CryptoProvider, aws_lc_rs::default_provider},
};

/// The bytes of the transfer that packets and ACKs are counted in.
const TRANSFER: u64 = 20_000_000;
/// The datagrams of a transfer of which each third is lost, in the case `ack-lossy`.
const LOSSY: Range<usize> = 2000..3000;
const REQUESTS: u64 = 2_000;
/// Requests before the first that counts: tables and buffers have their size then.
const WARM_UP: u64 = 100;
/// One UDP payload, for all packets of the transfer.
const DATAGRAM: u16 = 1200;
/// The segments of one call, as with UDP segmentation offload.
const BATCH: usize = 44 * DATAGRAM as usize;
/// The time between two turns.
const TURN: Duration = Duration::from_millis(1);

/// Collected by callgrind.
#[inline(never)]
fn counted<R>(work: impl FnOnce() -> R) -> R {
    black_box(work())
}

/// Runs work, inside `counted` if the case counts it.
fn run<R>(is_counted: bool, work: impl FnOnce() -> R) -> R {
    if is_counted { counted(work) } else { work() }
}

/// What both ends share over all connections.
struct Crypto {
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

    fn plain() -> Self {
        let alpn = || vec![lastbyte_http3::ALPN.to_vec()];
        Self::new(PlainClient::new(1, alpn()), PlainServer::new(2, alpn()))
    }

    fn tls() -> Self {
        let identity = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])
            .expect("a certificate");
        let mut roots = RootCertStore::empty();
        roots.add(identity.cert.der().clone()).expect("a root");
        let mut base = default_provider();
        base.cipher_suites
            .retain(|suite| suite.suite() == CipherSuite::TLS13_AES_128_GCM_SHA256);
        let provider: Arc<CryptoProvider> = Arc::new(provider(base));
        let mut client = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("TLS 1.3")
            .with_root_certificates(roots)
            .with_no_client_auth();
        client.alpn_protocols = vec![lastbyte_http3::ALPN.to_vec()];
        let mut server = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("TLS 1.3")
            .with_no_client_auth()
            .with_single_cert(
                vec![identity.cert.der().clone()],
                identity.signing_key.into(),
            )
            .expect("an identity");
        server.alpn_protocols = vec![lastbyte_http3::ALPN.to_vec()];
        server.send_tls13_tickets = 1;
        let keys = TicketKeys::new(&[[9; 32]]).expect("a key");
        let tickets = Tickets::new(keys, Arc::new(Noon));
        Self::new(
            TlsClient::new(client).expect("a client"),
            TlsServer::with_tickets(server, Arc::new(tickets)).expect("a server"),
        )
    }
}

/// The time of day: always the same.
#[derive(Debug)]
struct Noon;

impl WallClock for Noon {
    fn now(&self) -> WallTime {
        WallTime::from_unix(Duration::from_secs(1_800_000_000))
    }
}

/// A body whose bytes cost nothing.
struct Nothing(u64);

impl Source for Nothing {
    fn len(&self) -> u64 {
        self.0
    }

    fn read_at(&self, _: u64, _: &mut [u8]) -> Result<(), SourceError> {
        Ok(())
    }
}

/// Counts the bytes of bodies.
#[derive(Default)]
struct Bytes(u64);

impl BodySink for Bytes {
    fn body(&mut self, _: StreamId, bytes: &[u8]) -> usize {
        self.0 += bytes.len() as u64;
        bytes.len()
    }
}

struct End {
    quic: transport::Connection,
    http3: Connection,
    path: NetworkPath,
    bodies: Bytes,
}

impl End {
    fn new(quic: transport::Connection, http3: Connection, path: NetworkPath) -> Self {
        Self {
            quic,
            http3,
            path,
            bodies: Bytes::default(),
        }
    }

    fn receive(&mut self, now: Time, datagram: &mut [u8]) {
        let mut sink = self.http3.sink(&mut self.bodies);
        let (path, ecn) = (&self.path, Ecn::NotEct);
        self.quic
            .handle_datagram(now, path, ecn, datagram, &mut sink);
    }

    fn attend(&mut self, now: Time) {
        if self.quic.deadline().is_some_and(|at| at <= now) {
            self.quic.on_timeout(now);
        }
        while self.quic.poll_event().is_some() {}
    }

    /// Answers requests, with bodies of `len` bytes.
    fn serve(&mut self, now: Time, len: u64, response: &mut Response) {
        self.attend(now);
        while let Some(event) = self.http3.poll(&mut self.quic, now) {
            if let Event::Request { stream, request } = event {
                response.renew(200);
                let fields = response.fields_mut();
                fields.push("content-type", "image/jpeg");
                fields.push("last-modified", "Fri, 20 Nov 2026 08:30:00 GMT");
                fields.push("etag", "\"5f2b-18c9d\"");
                fields.push("date", "Sat, 21 Nov 2026 19:00:00 GMT");
                let body = Body::Source(Box::new(Nothing(len)));
                self.http3
                    .respond(&mut self.quic, stream, response, body)
                    .expect("a request that waits");
                self.http3.recycle(request.into_fields());
            } else if let Event::Data { stream } = event {
                self.read(now, stream);
            }
        }
    }

    /// Reads the part of a body that arrived before its header was polled.
    fn read(&mut self, now: Time, stream: StreamId) {
        let total = &mut self.bodies.0;
        let mut take = |bytes: &[u8]| {
            *total += bytes.len() as u64;
            bytes.len()
        };
        let _ = self.http3.read(&mut self.quic, now, stream, &mut take);
    }

    /// How many responses ended.
    fn finished(&mut self, now: Time) -> u64 {
        self.attend(now);
        let mut finished = 0;
        while let Some(event) = self.http3.poll(&mut self.quic, now) {
            match event {
                Event::Finished { .. } => finished += 1,
                Event::Response { response, .. } => self.http3.recycle(response.into_fields()),
                Event::Data { stream } => self.read(now, stream),
                _ => {}
            }
        }
        finished
    }
}

/// What a case counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Case {
    /// A packet of a bulk transfer, from the stream to the sealed datagram, at the sender.
    PacketOut,
    /// The same packet at the receiver, up to the application.
    PacketIn,
    /// Receiving the ACKs of the transfer, for each packet that they acknowledge.
    Ack,
    /// The same while each third packet of a thousand was lost, as at the end of slow start.
    AckLossy,
    /// All that the server does for a packet of an upload: receiving it, and sending ACKs and credit.
    Upload,
    /// A request and its response of one byte, all that the server does for it in `quic` and `http3`.
    Request,
    /// All that the server does for a handshake.
    HandshakePlain,
    /// The same with TLS 1.3, a P-256 certificate, AES-128-GCM and a ticket.
    HandshakeTls,
}

impl Case {
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "packet-out" => Self::PacketOut,
            "packet-in" => Self::PacketIn,
            "ack" => Self::Ack,
            "ack-lossy" => Self::AckLossy,
            "upload" => Self::Upload,
            "request" => Self::Request,
            "handshake-plain" => Self::HandshakePlain,
            "handshake-tls" => Self::HandshakeTls,
            _ => return None,
        })
    }
}

struct Pair {
    client: End,
    server: End,
    now: Time,
    response: Response,
    /// The length of each response's body.
    len: u64,
    /// For outgoing datagrams.
    buffer: Vec<u8>,
    /// The number of datagrams sent to the client.
    sent: usize,
    /// Each third of these is lost. If there are any, the client sends its ACKs as they are due, and not once a turn.
    lossy: Option<Range<usize>>,
    /// Those ACKs, which arrive with the next turn.
    acks: Vec<Vec<u8>>,
}

/// What of the server's and the client's work is counted.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    server_sends: bool,
    server_receives: bool,
    server_serves: bool,
    client_receives: bool,
}

impl Pair {
    fn new(crypto: &Crypto, len: u64, is_counted: bool) -> Self {
        let now = Time::from_nanos(1_000_000_000);
        let mut config = transport::Config::new("cubic".parse().expect("a spec"));
        config.mtu = MtuConfig {
            initial: DATAGRAM,
            maximum: DATAGRAM,
        };
        for window in [
            &mut config.streams.connection_window,
            &mut config.streams.stream_window,
        ] {
            window.initial = 1 << 20;
            window.maximum = 1 << 20;
        }
        let config = Arc::new(config);
        let id = |byte| ConnectionId::new(&[byte; 8]).expect("8 bytes");
        let ids = |byte| RandomIds::default().generator(&crypto.reset_key, [byte; 32]);
        let at_server = SocketAddr::from(([192, 0, 2, 1], 443));
        let at_client = SocketAddr::from(([192, 0, 2, 2], 50_000));
        let path = |local, remote| NetworkPath { local, remote };
        let (client_path, server_path) = (path(at_client, at_server), path(at_server, at_client));
        let start = ClientStart {
            crypto: Arc::clone(&crypto.client),
            server_name: "localhost",
            path: client_path,
            local_id: id(1),
            destination: id(3),
            token: Vec::new(),
            ids: ids(1),
            seed: [1; 32],
        };
        let client = transport::Connection::client(now, &config, start).expect("a client");
        let http3 = Config::default();
        let server = run(is_counted, || {
            let start = ServerStart {
                crypto: &*crypto.server,
                version: Version::V1,
                path: server_path,
                local_id: id(2),
                peer_id: id(1),
                destination: id(3),
                initial_keys: crypto.server.initial_keys(Version::V1, &id(3)),
                retry: None,
                is_address_validated: false,
                ids: ids(2),
                seed: [2; 32],
            };
            End::new(
                transport::Connection::server(now, &config, start).expect("a server"),
                Connection::server(&http3),
                server_path,
            )
        });
        Self {
            client: End::new(client, Connection::client(&http3), client_path),
            server,
            now,
            response: Response::default(),
            len,
            buffer: vec![0; BATCH],
            sent: 0,
            lossy: None,
            acks: Vec::new(),
        }
    }

    /// One turn of each end; returns how many responses ended.
    fn turn(&mut self, counts: Counts) -> u64 {
        self.now = self.now + TURN;
        let Self {
            client,
            server,
            now,
            response,
            len,
            buffer,
            sent,
            lossy,
            acks,
        } = self;
        let now = *now;
        for mut ack in acks.drain(..) {
            run(counts.server_receives, || server.receive(now, &mut ack));
        }
        while let Some(transmit) = client.quic.poll_transmit(now, buffer) {
            let datagrams = buffer[..transmit.len].chunks_mut(transmit.segment_len);
            for datagram in datagrams {
                run(counts.server_receives, || server.receive(now, datagram));
            }
        }
        run(counts.server_serves, || server.serve(now, *len, response));
        while let Some(transmit) = run(counts.server_sends, || {
            server.quic.poll_transmit(now, buffer)
        }) {
            let datagrams = buffer[..transmit.len].chunks_mut(transmit.segment_len);
            for datagram in datagrams {
                *sent += 1;
                let is_lossy = lossy.as_ref().is_some_and(|lossy| lossy.contains(sent));
                if is_lossy && *sent % 3 == 0 {
                    continue;
                }
                run(counts.client_receives, || client.receive(now, datagram));
                if lossy.is_some() {
                    let mut ack = vec![0; BATCH];
                    while let Some(transmit) = client.quic.poll_transmit(now, &mut ack) {
                        acks.push(ack[..transmit.len].to_vec());
                    }
                }
            }
        }
        client.finished(now)
    }

    fn shake_hands(&mut self, counts: Counts) {
        for _ in 0..100 {
            let stages = [self.client.quic.stage(), self.server.quic.stage()];
            if !stages.contains(&Stage::Handshaking) {
                return;
            }
            self.turn(counts);
        }
        panic!("no handshake in 100 turns: {:?}", self.server.quic);
    }

    fn ask(&mut self, body: Body) {
        let request = Request::new("GET", "https", "www.example.com", "/images/picture-17.jpg")
            .with("user-agent", "Mozilla/5.0 (X11; Linux x86_64)")
            .with("accept", "image/avif,image/webp,image/*,*/*;q=0.8")
            .with("accept-encoding", "gzip, deflate, br, zstd");
        self.client
            .http3
            .request(&mut self.client.quic, &request, body)
            .expect("a request");
    }

    /// Sends requests one after the other.
    fn exchange(&mut self, requests: u64, counts: Counts) {
        for _ in 0..requests {
            self.ask(Body::Empty);
            let mut turns = 0;
            while self.turn(counts) == 0 {
                turns += 1;
                assert!(turns < 1_000_000, "no response: {:?}", self.client.quic);
            }
        }
    }
}

/// The number of units of the case.
fn count(case: Case) -> u64 {
    let quiet = Counts::default();
    match case {
        Case::PacketOut | Case::PacketIn | Case::Ack | Case::AckLossy => {
            let mut pair = Pair::new(&Crypto::plain(), TRANSFER, false);
            if case == Case::AckLossy {
                pair.lossy = Some(LOSSY);
            }
            pair.shake_hands(quiet);
            let before = pair.server.quic.recovery_statistics().packets_sent;
            let counts = Counts {
                server_sends: case == Case::PacketOut,
                client_receives: case == Case::PacketIn,
                server_receives: matches!(case, Case::Ack | Case::AckLossy),
                server_serves: false,
            };
            pair.exchange(1, counts);
            assert_eq!(pair.client.bodies.0, TRANSFER);
            pair.server.quic.recovery_statistics().packets_sent - before
        }
        Case::Upload => {
            let mut pair = Pair::new(&Crypto::plain(), 1, false);
            pair.shake_hands(quiet);
            let before = pair.client.quic.recovery_statistics().packets_sent;
            pair.ask(Body::Source(Box::new(Nothing(TRANSFER))));
            let counts = Counts {
                server_sends: true,
                server_receives: true,
                server_serves: true,
                client_receives: false,
            };
            let mut turns = 0;
            while pair.server.bodies.0 < TRANSFER {
                pair.turn(counts);
                turns += 1;
                assert!(turns < 1_000_000, "no end: {:?}", pair.client.quic);
            }
            pair.client.quic.recovery_statistics().packets_sent - before
        }
        Case::Request => {
            let mut pair = Pair::new(&Crypto::plain(), 1, false);
            pair.shake_hands(quiet);
            pair.exchange(WARM_UP, quiet);
            pair.exchange(
                REQUESTS,
                Counts {
                    server_sends: true,
                    server_receives: true,
                    server_serves: true,
                    client_receives: false,
                },
            );
            REQUESTS
        }
        Case::HandshakePlain | Case::HandshakeTls => {
            let crypto = match case {
                Case::HandshakeTls => Crypto::tls(),
                _ => Crypto::plain(),
            };
            let handshakes = 100;
            for number in 0..=handshakes {
                // The first makes what is made once for the process.
                let is_counted = number > 0;
                let counts = Counts {
                    server_sends: is_counted,
                    server_receives: is_counted,
                    server_serves: is_counted,
                    client_receives: false,
                };
                let mut pair = Pair::new(&crypto, 1, is_counted);
                pair.shake_hands(counts);
            }
            handshakes
        }
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let case = match arguments.as_slice() {
        [case] => Case::parse(case),
        _ => None,
    };
    let Some(case) = case else {
        eprintln!(
            "usage: instructions packet-out|packet-in|ack|ack-lossy|upload|request|handshake-plain|handshake-tls"
        );
        return ExitCode::from(2);
    };
    println!("{}", count(case));
    ExitCode::SUCCESS
}
