//! A client and a server in one process, over a path that loses, doubles and reorders datagrams by a seed. Either end
//! speaks HTTP/3, or what a test writes to its streams. Shared with the fuzz target.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
    net::SocketAddr,
    sync::Arc,
    time::Duration,
};

use lastbyte_http3::{Body, BodySink, Code, Config, Connection, Event, Response};
use lastbyte_quic::{
    Time,
    ack::Ecn,
    cid::{ConnectionIds, RandomIds},
    connection::{self as transport, ClientStart, NetworkPath, ServerStart},
    crypto::{
        ServerCrypto as _,
        plain::{PlainClient, PlainServer},
        reset::ResetKey,
    },
    stream::{KeepAll, StreamEvent},
};
use lastbyte_wire::{ConnectionId, Direction, Side, StreamId, packet::Version};

/// One way.
pub(crate) const DELAY: Duration = Duration::from_millis(10);

/// The impairment of one datagram in this many; 0 for none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    pub(crate) lose: u64,
    pub(crate) double: u64,
    pub(crate) delay: u64,
}

pub(crate) const BAD_PATH: Faults = Faults {
    lose: 8,
    double: 9,
    delay: 5,
};

/// One end.
pub(crate) struct End {
    pub(crate) quic: transport::Connection,
    /// `None` for one that a test speaks for.
    pub(crate) http3: Option<Connection>,
    pub(crate) events: Vec<Event>,
    pub(crate) bodies: BTreeMap<StreamId, Vec<u8>>,
    /// Events that a test's own end receives from the transport.
    pub(crate) stream_events: Vec<StreamEvent>,
    /// Whether bodies are taken as their packets arrive.
    pub(crate) uses_sink: bool,
    /// Whether bodies are read as soon as they are reported.
    pub(crate) reads: bool,
    /// Whether a test's own end reads what it gets.
    pub(crate) listens: bool,
    /// Whether a server answers each request in the turn in which it arrives.
    pub(crate) answers: bool,
    /// How many it answered.
    pub(crate) answered: usize,
    /// Responses that it reset, since they could not be sent.
    pub(crate) abandoned: Vec<StreamId>,
    path: NetworkPath,
}

/// A datagram on its way: when it arrives, which it is, whether it goes to the server, and what it says.
type Flying = (Time, u64, bool, Vec<u8>);

pub(crate) struct Pair {
    pub(crate) client: End,
    pub(crate) server: End,
    pub(crate) now: Time,
    flying: BinaryHeap<Reverse<Flying>>,
    sent: u64,
    faults: Faults,
    random: u64,
    buffer: Vec<u8>,
}

struct Bodies<'a>(&'a mut BTreeMap<StreamId, Vec<u8>>);

impl BodySink for Bodies<'_> {
    fn body(&mut self, stream: StreamId, bytes: &[u8]) -> usize {
        self.0.entry(stream).or_default().extend_from_slice(bytes);
        bytes.len()
    }
}

/// The transport's defaults.
pub(crate) fn transport_config() -> transport::Config {
    transport::Config::new("cubic:initial-window=10p".parse().expect("a spec"))
}

impl End {
    fn new(quic: transport::Connection, http3: Option<Connection>, path: NetworkPath) -> Self {
        Self {
            quic,
            http3,
            events: Vec::new(),
            bodies: BTreeMap::new(),
            stream_events: Vec::new(),
            uses_sink: false,
            reads: true,
            listens: true,
            answers: false,
            answered: 0,
            abandoned: Vec::new(),
            path,
        }
    }

    fn receive(&mut self, now: Time, datagram: &mut [u8]) {
        let (quic, path) = (&mut self.quic, &self.path);
        match &mut self.http3 {
            Some(http3) if self.uses_sink => {
                let mut bodies = Bodies(&mut self.bodies);
                let mut sink = http3.sink(&mut bodies);
                quic.handle_datagram(now, path, Ecn::NotEct, datagram, &mut sink);
            }
            _ => quic.handle_datagram(now, path, Ecn::NotEct, datagram, &mut KeepAll),
        }
    }

    /// Asks for events, and reads bodies.
    pub(crate) fn attend(&mut self, now: Time) {
        while self.quic.poll_event().is_some() {}
        let Some(http3) = &mut self.http3 else {
            self.listen(now);
            return;
        };
        while let Some(event) = http3.poll(&mut self.quic, now) {
            if let Event::Data { stream } = event
                && self.reads
            {
                let body = self.bodies.entry(stream).or_default();
                let _ = http3.read(&mut self.quic, now, stream, &mut |bytes| {
                    body.extend_from_slice(bytes);
                    bytes.len()
                });
            }
            if let Event::Request { stream, .. } = event
                && self.answers
            {
                let response = Response::new(200).with("content-length", "0");
                let result = http3.respond(&mut self.quic, stream, &response, Body::Empty);
                self.answered += usize::from(result.is_ok());
                if result.is_err() && http3.reset(&mut self.quic, stream, Code::INTERNAL_ERROR) {
                    self.abandoned.push(stream);
                }
            }
            self.events.push(event);
        }
    }

    /// A test's own end keeps what it gets.
    fn listen(&mut self, now: Time) {
        while let Some(event) = self.quic.streams().poll_event() {
            if let StreamEvent::Readable(id) = event {
                if !self.listens {
                    continue;
                }
                let body = self.bodies.entry(id).or_default();
                let _ = self.quic.streams().read(id, now, &mut |bytes| {
                    body.extend_from_slice(bytes);
                    bytes.len()
                });
            } else {
                self.stream_events.push(event);
            }
        }
    }

    pub(crate) fn http3(&mut self) -> (&mut Connection, &mut transport::Connection) {
        (
            self.http3.as_mut().expect("this end speaks HTTP/3"),
            &mut self.quic,
        )
    }

    /// Writes bytes to a stream of the test, and ends it if `ends`.
    pub(crate) fn say(&mut self, id: StreamId, bytes: &[u8], ends: bool) {
        let written = self
            .quic
            .streams()
            .write(id, bytes)
            .expect("an open stream");
        assert_eq!(written, bytes.len());
        if ends {
            self.quic.streams().finish(id).expect("an open stream");
        }
    }

    /// Opens a stream and writes to it.
    pub(crate) fn open(&mut self, direction: Direction, bytes: &[u8], ends: bool) -> StreamId {
        let id = self.quic.streams().open(direction).expect("permitted");
        self.say(id, bytes, ends);
        id
    }

    fn deadline(&self) -> Option<Time> {
        let http3 = self.http3.as_ref().and_then(Connection::deadline);
        [self.quic.deadline(), http3].into_iter().flatten().min()
    }
}

impl Pair {
    /// Two ends that speak HTTP/3.
    pub(crate) fn new(client: &Config, server: &Config, seed: u64, faults: Faults) -> Self {
        let mut pair = Self::of(
            Some(Connection::client(client)),
            Some(Connection::server(server)),
            &transport_config(),
            seed,
        );
        pair.faults = faults;
        pair
    }

    /// Two ends with the defaults, on a path without faults.
    pub(crate) fn plain() -> Self {
        let config = Config::default();
        Self::new(&config, &config, 1, Faults::default())
    }

    pub(crate) fn of(
        client_http3: Option<Connection>,
        server_http3: Option<Connection>,
        config: &transport::Config,
        seed: u64,
    ) -> Self {
        let now = Time::from_nanos(1_000_000_000);
        let config = Arc::new(config.clone());
        let alpn = || vec![lastbyte_http3::ALPN.to_vec()];
        let reset_key = Arc::new(ResetKey::new(&[7; 32]));
        let id = |byte| ConnectionId::new(&[byte; 8]).expect("8 bytes");
        let ids = |byte| RandomIds::default().generator(&reset_key, [byte; 32]);
        let at_server = SocketAddr::from(([192, 0, 2, 1], 443));
        let at_client = SocketAddr::from(([192, 0, 2, 2], 50_000));
        let path = |local, remote| NetworkPath { local, remote };
        let (client_path, server_path) = (path(at_client, at_server), path(at_server, at_client));
        let start = ClientStart {
            crypto: Arc::new(PlainClient::new(seed, alpn())),
            server_name: "localhost",
            path: client_path,
            local_id: id(1),
            destination: id(3),
            token: Vec::new(),
            ids: ids(1),
            seed: [1; 32],
        };
        let client = transport::Connection::client(now, &config, start).expect("a client");
        let crypto = PlainServer::new(seed + 1, alpn());
        let start = ServerStart {
            crypto: &crypto,
            version: Version::V1,
            path: server_path,
            local_id: id(2),
            peer_id: id(1),
            destination: id(3),
            initial_keys: crypto.initial_keys(Version::V1, &id(3)),
            retry: None,
            is_address_validated: false,
            ids: ids(2),
            seed: [2; 32],
        };
        let server = transport::Connection::server(now, &config, start).expect("a server");
        Self {
            client: End::new(client, client_http3, client_path),
            server: End::new(server, server_http3, server_path),
            now,
            flying: BinaryHeap::new(),
            sent: 0,
            faults: Faults::default(),
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            buffer: vec![0; 65_535],
        }
    }

    pub(crate) fn end(&mut self, side: Side) -> &mut End {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }

    fn chance(&mut self, one_in: u64) -> bool {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        one_in > 0 && (self.random >> 11).is_multiple_of(one_in)
    }

    fn transmit(&mut self, side: Side) {
        let now = self.now;
        let mut buffer = std::mem::take(&mut self.buffer);
        while let Some(transmit) = self.end(side).quic.poll_transmit(now, &mut buffer) {
            for datagram in buffer[..transmit.len].chunks(transmit.segment_len) {
                let faults = self.faults;
                if self.chance(faults.lose) {
                    continue;
                }
                let copies = if self.chance(faults.double) { 2 } else { 1 };
                for _ in 0..copies {
                    let late = if self.chance(faults.delay) {
                        DELAY
                    } else {
                        Duration::ZERO
                    };
                    self.sent += 1;
                    let to_server = side == Side::Client;
                    self.flying.push(Reverse((
                        now + DELAY + late,
                        self.sent,
                        to_server,
                        datagram.to_vec(),
                    )));
                }
            }
        }
        self.buffer = buffer;
    }

    /// Lets both ends say what they have to say.
    pub(crate) fn transmit_all(&mut self) {
        for side in [Side::Client, Side::Server] {
            let now = self.now;
            self.end(side).attend(now);
            self.transmit(side);
        }
    }

    /// The next arrival, or the next timer. False if nothing will ever happen.
    pub(crate) fn step(&mut self) -> bool {
        self.transmit_all();
        let timers = [self.client.deadline(), self.server.deadline()];
        let arrival = self.flying.peek().map(|Reverse((at, ..))| *at);
        let Some(next) = timers.into_iter().flatten().chain(arrival).min() else {
            return false;
        };
        self.now = self.now.max(next);
        let now = self.now;
        if arrival == Some(next)
            && let Some(Reverse((_, _, to_server, mut datagram))) = self.flying.pop()
        {
            let to = if to_server {
                Side::Server
            } else {
                Side::Client
            };
            self.end(to).receive(now, &mut datagram);
        } else {
            self.client.quic.on_timeout(now);
            self.server.quic.on_timeout(now);
        }
        self.client.attend(now);
        self.server.attend(now);
        true
    }

    /// Steps until `done`.
    pub(crate) fn run_until(&mut self, what: &str, mut done: impl FnMut(&mut Self) -> bool) {
        for _ in 0..100_000 {
            if done(self) {
                return;
            }
            assert!(
                self.step(),
                "{what}: nothing will happen any more: {:?} {:?}",
                self.client.events,
                self.server.events
            );
        }
        panic!(
            "{what}: not after many steps: {:?} {:?}",
            self.client.events, self.server.events
        );
    }

    /// Steps for so long.
    pub(crate) fn pass(&mut self, span: Duration) {
        let until = self.now + span;
        loop {
            self.transmit_all();
            let timers = [self.client.deadline(), self.server.deadline()];
            let arrival = self.flying.peek().map(|Reverse((at, ..))| *at);
            let next = timers.into_iter().flatten().chain(arrival).min();
            if next.is_none_or(|next| next > until) {
                self.now = until;
                self.transmit_all();
                return;
            }
            self.step();
        }
    }

    pub(crate) fn shake_hands(&mut self) {
        let is_done = |end: &End| end.quic.stage() != transport::Stage::Handshaking;
        self.run_until("handshake", |pair| {
            is_done(&pair.client) && is_done(&pair.server)
        });
        self.pass(4 * DELAY);
    }
}
