//! What the tests share: addresses, configurations, hand-made packets, and a world of one server and many clients.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
};

use lastbyte_wire::{
    Direction, StatelessResetToken, StreamId, Writer,
    frame::{Frame, Frames},
    packet::{
        DecodeConfig, LongHeader, LongKind, Packet, PacketNumber, PacketNumberLen, PacketType,
        Packets, Version,
    },
};

use super::*;
use crate::{
    ack::Ecn,
    close::CloseReason,
    connection::Config,
    crypto::{
        ClientCrypto, TAG_LEN,
        plain::{PlainClient, PlainServer},
    },
    stream::{KeepAll, StreamEvent},
};

pub(super) const START: Time = Time::from_nanos(1_000_000_000);
pub(super) const DELAY: Duration = Duration::from_millis(10);
pub(super) const DAY: Duration = Duration::from_secs(86_400);

pub(super) fn id(bytes: &[u8]) -> ConnectionId {
    ConnectionId::new(bytes).expect("20 bytes at most")
}

pub(super) fn config() -> Config {
    Config::new("cubic:initial-window=10p".parse().expect("a spec"))
}

pub(super) fn server_address() -> SocketAddr {
    "192.0.2.1:443".parse().expect("an address")
}

pub(super) fn client_address(index: usize) -> SocketAddr {
    SocketAddr::from(([198, 51, 100, (index % 250) as u8], 10_000 + index as u16))
}

/// As the server sees it.
pub(super) fn from_client(index: usize) -> NetworkPath {
    NetworkPath {
        local: server_address(),
        remote: client_address(index),
    }
}

/// As the client sees it.
pub(super) fn to_server(index: usize) -> NetworkPath {
    NetworkPath {
        local: client_address(index),
        remote: server_address(),
    }
}

pub(super) fn server_crypto() -> PlainServer {
    PlainServer::new(7, vec![b"bulk".to_vec()])
}

pub(super) fn client_crypto(seed: u64) -> PlainClient {
    PlainClient::new(seed, vec![b"bulk".to_vec()])
}

pub(super) fn server_config() -> EndpointConfig {
    EndpointConfig::server(Arc::new(config()), Arc::new(server_crypto()))
}

pub(super) fn server_with(change: impl FnOnce(&mut EndpointConfig)) -> Endpoint {
    let mut config = server_config();
    change(&mut config);
    let mut server = Endpoint::new(config, [1; 32]).expect("an endpoint");
    server.set_wall_clock(START, WallTime::from_unix(DAY));
    server
}

pub(super) fn policy(config: &mut EndpointConfig, retry: RetryPolicy) {
    config.server.as_mut().expect("a server").retry = retry;
}

pub(super) fn client(seed: u8) -> Endpoint {
    Endpoint::new(EndpointConfig::client(), [seed; 32]).expect("an endpoint")
}

pub(super) fn connect(client: &mut Endpoint, now: Time, index: usize) -> Handle {
    let crypto = Arc::new(client_crypto(index as u64 + 100));
    let config = Arc::new(config());
    client
        .connect(
            now,
            to_server(index),
            "localhost",
            &config,
            crypto,
            Vec::new(),
        )
        .expect("a connection")
}

/// An Initial packet with one PING, sealed, and padded to `len` bytes.
#[derive(Clone, Copy)]
pub(super) struct Probe<'a> {
    pub(super) version: Version,
    pub(super) destination: ConnectionId,
    pub(super) source: ConnectionId,
    pub(super) token: &'a [u8],
    pub(super) len: usize,
}

impl Probe<'_> {
    pub(super) fn new() -> Self {
        Self {
            version: Version::V1,
            destination: id(&[0xd; 8]),
            source: id(&[0x5; 6]),
            token: &[],
            len: 1200,
        }
    }

    pub(super) fn datagram(&self) -> Vec<u8> {
        let mut buffer = vec![0; self.len];
        let number = PacketNumber::ZERO;
        let header = LongHeader {
            kind: LongKind::Initial { token: self.token },
            version: self.version,
            destination: self.destination,
            source: self.source,
            number: number.truncate_to(PacketNumberLen::One),
            fixed_bit: true,
        };
        let mut writer = Writer::new(&mut buffer);
        let packet = header.begin(&mut writer).expect("fits");
        writer.u8(1).expect("fits");
        let rest = writer.remaining() - TAG_LEN;
        writer.zeros(rest).expect("fits");
        let finished = packet.finish(&mut writer, TAG_LEN).expect("fits");
        let keys = client_crypto(0).initial_keys(self.version, &self.destination);
        keys.seal
            .protect(number, &finished, writer.written_mut())
            .expect("sealed");
        buffer
    }
}

/// The `CONNECTION_CLOSE` in a server's Initial packet to the client that sent to `destination`.
pub(super) fn close_code(
    datagram: &[u8],
    version: Version,
    destination: &ConnectionId,
) -> Option<lastbyte_wire::TransportError> {
    let mut datagram = datagram.to_vec();
    let config = DecodeConfig {
        connection_id_len: 6,
        grease_quic_bit: false,
    };
    let Some(Ok(Packet::Protected(packet))) = Packets::new(&mut datagram, config).next() else {
        return None;
    };
    let keys = client_crypto(0).initial_keys(version, destination);
    let opened = keys.open.unprotect(packet, None).ok()?;
    let payload = opened.into_payload();
    let mut frames = Frames::new(payload, PacketType::Initial, Side::Server).ok()?;
    match frames.find_map(Result::ok)? {
        Frame::ConnectionClose(close) => match close.cause {
            lastbyte_wire::frame::CloseCause::Transport { error, .. } => Some(error),
            lastbyte_wire::frame::CloseCause::Application { .. } => None,
        },
        _ => None,
    }
}

/// Everything that the endpoint has to send now.
pub(super) fn sent<D>(endpoint: &mut Endpoint<D>, now: Time) -> Vec<(NetworkPath, Vec<u8>)> {
    let mut buffer = [0; 1500];
    let mut datagrams = Vec::new();
    while let Some(transmit) = endpoint.poll_transmit(now, &mut buffer) {
        assert!(datagrams.len() < 10_000, "a sender without end");
        for datagram in buffer[..transmit.len].chunks(transmit.segment_len) {
            datagrams.push((transmit.path, datagram.to_vec()));
        }
    }
    datagrams
}

/// Passes a datagram to an endpoint as a caller does.
pub(super) fn deliver(
    endpoint: &mut Endpoint,
    now: Time,
    path: &NetworkPath,
    datagram: &[u8],
) -> Route {
    let mut datagram = datagram.to_vec();
    let route = endpoint.route(now, path, &mut datagram);
    if let Route::Connection(handle) | Route::Accepted(handle) = route {
        let connection = endpoint.connection(handle).expect("just found");
        connection.handle_datagram(now, path, Ecn::NotEct, &mut datagram, &mut KeepAll);
    }
    route
}

pub(super) fn token(byte: u8) -> StatelessResetToken {
    StatelessResetToken::new([byte; 16])
}

/// No state is left.
pub(super) fn assert_empty(endpoint: &Endpoint) {
    assert_eq!(endpoint.connections(), 0);
    assert_eq!(endpoint.demux.sizes(), [0; 4], "{endpoint:?}");
    assert_eq!(endpoint.timers.len(), 0);
    assert_eq!(endpoint.load, Load::default());
    assert_eq!(
        (
            endpoint.prefixes.counts.len(),
            endpoint.established.counts.len()
        ),
        (0, 0)
    );
    assert_eq!(endpoint.answers.len(), 0);
    assert!(endpoint.ready.is_empty() && endpoint.touched.is_empty());
    assert_eq!(endpoint.deadline(), None);
}

/// In flight: when it arrives, its index in order of sending, the client, the direction, and its bytes.
type Flying = Reverse<(Time, u64, usize, bool, Vec<u8>)>;

/// A server, and clients that each send some bytes, receive some, and close.
pub(super) struct World {
    pub(super) server: Endpoint,
    pub(super) clients: Vec<Endpoint>,
    pub(super) handles: Vec<Option<Handle>>,
    pub(super) now: Time,
    pub(super) flying: BinaryHeap<Flying>,
    send_index: u64,
    /// Received data: at the server by handle, at the clients by number.
    pub(super) up: BTreeMap<Handle, Vec<u8>>,
    pub(super) down: BTreeMap<usize, Vec<u8>>,
    pub(super) accepted: Vec<Handle>,
    pub(super) closed: Vec<(Option<usize>, Option<CloseReason>)>,
    /// What the clients learned.
    pub(super) events: Vec<(usize, connection::Event)>,
    /// Whether a client closes once it has the response.
    pub(super) closes: bool,
    /// One datagram in this many is lost; 0 for none.
    pub(super) lose: u64,
    pub(super) trace: u64,
}

/// What each client sends, and receives.
pub(super) fn body(salt: usize) -> Vec<u8> {
    (0..3000).map(|at| (at * 7 + salt) as u8).collect()
}

impl World {
    pub(super) fn new(server: Endpoint, count: usize) -> Self {
        Self {
            server,
            clients: (0..count)
                .map(|index| {
                    let mut seed = [9; 32];
                    seed[..8].copy_from_slice(&index.to_be_bytes());
                    Endpoint::new(EndpointConfig::client(), seed).expect("an endpoint")
                })
                .collect(),
            handles: vec![None; count],
            now: START,
            flying: BinaryHeap::new(),
            send_index: 0,
            up: BTreeMap::new(),
            down: BTreeMap::new(),
            accepted: Vec::new(),
            closed: Vec::new(),
            events: Vec::new(),
            closes: true,
            lose: 0,
            trace: 0,
        }
    }

    /// Starts a client, with its bytes on its first stream.
    pub(super) fn begin(&mut self, index: usize) {
        let handle = connect(&mut self.clients[index], self.now, index);
        self.handles[index] = Some(handle);
    }

    /// The same, with a session or a token of an earlier connection: its data may be sent in 0-RTT.
    pub(super) fn begin_with(
        &mut self,
        index: usize,
        crypto: &Arc<dyn ClientCrypto>,
        token: Vec<u8>,
    ) {
        let handle = self.clients[index]
            .connect(
                self.now,
                to_server(index),
                "localhost",
                &Arc::new(config()),
                Arc::clone(crypto),
                token,
            )
            .expect("a connection");
        self.handles[index] = Some(handle);
        self.down.remove(&index);
        self.play(index);
    }

    fn launch(&mut self, index: usize, is_to_server: bool, datagram: Vec<u8>) {
        self.send_index += 1;
        for byte in &datagram {
            self.trace = self.trace.wrapping_mul(0x0100_0000_01b3) ^ u64::from(*byte);
        }
        if self.lose > 0
            && (self.send_index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33).is_multiple_of(self.lose)
        {
            return;
        }
        let at = self.now + DELAY;
        self.flying.push(Reverse((
            at,
            self.send_index,
            index,
            is_to_server,
            datagram,
        )));
    }

    fn transmit(&mut self) {
        for (path, datagram) in sent(&mut self.server, self.now) {
            let index = usize::from(path.remote.port() - 10_000);
            self.launch(index, false, datagram);
        }
        for index in 0..self.clients.len() {
            for (_, datagram) in sent(&mut self.clients[index], self.now) {
                self.launch(index, true, datagram);
            }
        }
        while let Some(closed) = self.server.poll_closed() {
            self.closed.push((None, closed.connection.close_reason()));
            assert!(self.server.peek(closed.handle).is_none());
        }
        for (index, client) in self.clients.iter_mut().enumerate() {
            while let Some(closed) = client.poll_closed() {
                self.closed
                    .push((Some(index), closed.connection.close_reason()));
            }
        }
    }

    fn next_arrival(&self) -> Option<Time> {
        self.flying.peek().map(|Reverse((at, ..))| *at)
    }

    /// The time of the next event.
    fn next(&self) -> Option<Time> {
        let endpoints = self.clients.iter().chain([&self.server]);
        let timers = endpoints.filter_map(Endpoint::deadline);
        timers.chain(self.next_arrival()).min()
    }

    /// Processes one event. False if there are none left.
    pub(super) fn step(&mut self) -> bool {
        self.transmit();
        let arrival = self.next_arrival();
        let Some(next) = self.next() else {
            return false;
        };
        self.now = self.now.max(next);
        if arrival == Some(next) {
            let Some(Reverse((_, _, index, is_to_server, datagram))) = self.flying.pop() else {
                return false;
            };
            if is_to_server {
                let route = deliver(&mut self.server, self.now, &from_client(index), &datagram);
                if let Route::Accepted(handle) = route {
                    assert!(!self.accepted.contains(&handle), "an alias");
                    self.accepted.push(handle);
                }
                if let Route::Accepted(handle) | Route::Connection(handle) = route {
                    self.serve(handle);
                }
            } else {
                let client = &mut self.clients[index];
                let _ = deliver(client, self.now, &to_server(index), &datagram);
                self.play(index);
            }
        } else {
            while let Some(handle) = self.server.poll_timeout(self.now) {
                self.serve(handle);
            }
            for index in 0..self.clients.len() {
                while self.clients[index].poll_timeout(self.now).is_some() {}
            }
        }
        true
    }

    /// The server responds on a stream once it has received all of it.
    pub(super) fn serve(&mut self, handle: Handle) {
        let now = self.now;
        let connection = self.server.connection(handle).expect("lives");
        let arrived = self.up.entry(handle).or_default();
        for stream in ended(connection, now, arrived) {
            let salt = usize::from(arrived[0]) + 1;
            let streams = connection.streams();
            streams
                .send_source(stream, Box::new(body(salt)))
                .expect("open");
            streams.finish(stream).expect("open");
        }
    }

    /// The client sends its request, and closes once it has the response.
    fn play(&mut self, index: usize) {
        let now = self.now;
        let Some(handle) = self.handles[index] else {
            return;
        };
        let Some(connection) = self.clients[index].connection(handle) else {
            return;
        };
        while let Some(event) = connection.poll_event() {
            self.events.push((index, event));
        }
        if connection.stage() == Stage::Handshaking && !connection.is_zero_rtt() {
            return;
        }
        if let std::collections::btree_map::Entry::Vacant(entry) = self.down.entry(index) {
            entry.insert(Vec::new());
            let streams = connection.streams();
            let stream = streams.open(Direction::Bidirectional).expect("a stream");
            streams
                .send_source(stream, Box::new(body(index)))
                .expect("open");
            streams.finish(stream).expect("open");
        }
        let arrived = self.down.get_mut(&index).expect("just there");
        if !ended(connection, now, arrived).is_empty() && self.closes {
            connection.close(now, 0);
        }
    }

    /// Runs until the client has its response. Returns how long that took.
    pub(super) fn run_until_answered(&mut self, index: usize) -> Duration {
        let start = self.now;
        while self.down.get(&index).is_none_or(|body| body.len() < 3000) {
            assert!(self.step(), "no answer: {:?}", self.server);
        }
        let salt = usize::from(body(index)[0]) + 1;
        assert!(self.down[&index] == body(salt), "another answer");
        self.now.since(start)
    }

    /// Runs for some time.
    pub(super) fn run_for(&mut self, span: Duration) {
        let until = self.now + span;
        self.transmit();
        while self.next().is_some_and(|at| at <= until) {
            self.step();
            self.transmit();
        }
        self.now = until;
    }

    /// The client closes, and everything is freed.
    pub(super) fn close(&mut self, index: usize) {
        let handle = self.handles[index].take().expect("began");
        let client = self.clients[index].connection(handle).expect("lives");
        client.close(self.now, 0);
        self.run();
    }

    pub(super) fn run(&mut self) {
        for _ in 0..1_000_000 {
            if !self.step() {
                return;
            }
        }
        panic!("no end: {:?}", self.server);
    }
}

/// Reads what is available, and returns the streams that ended.
fn ended(connection: &mut Connection, now: Time, arrived: &mut Vec<u8>) -> Vec<StreamId> {
    let mut ended = Vec::new();
    while let Some(event) = connection.streams().poll_event() {
        let StreamEvent::Readable(stream) = event else {
            continue;
        };
        let read = connection.streams().read(stream, now, &mut |data| {
            arrived.extend_from_slice(data);
            data.len()
        });
        if read.is_ok_and(|read| read.end) {
            ended.push(stream);
        }
    }
    ended
}
