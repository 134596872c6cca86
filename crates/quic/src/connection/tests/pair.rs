//! A client and a server in one process, over a path that loses, duplicates, reorders and corrupts datagrams by a seed.

use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
};

use lastbyte_wire::{Direction, StreamId, Writer};

use super::*;
use crate::{
    ack::Ecn,
    crypto::{
        ClientCrypto, ServerCrypto,
        plain::{PlainClient, PlainServer},
    },
    stream::{KeepAll, StreamEvent},
};

/// IDs of eight bytes that count up.
#[derive(Debug)]
pub(in crate::connection) struct Counter(pub(in crate::connection) u64);

impl ConnectionIdGenerator for Counter {
    fn generate(&mut self) -> ConnectionId {
        self.0 += 1;
        id(self.0)
    }

    fn reset_token(&self, id: &ConnectionId) -> StatelessResetToken {
        let mut token = [0; 16];
        token[..8].copy_from_slice(id.as_slice());
        StatelessResetToken::new(token)
    }
}

pub(in crate::connection) fn id(number: u64) -> ConnectionId {
    ConnectionId::new(&number.to_be_bytes()).expect("8 bytes")
}

/// The path affects one datagram in this many; 0 for never.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::connection) struct Faults {
    pub(in crate::connection) lose: u64,
    pub(in crate::connection) double: u64,
    pub(in crate::connection) delay: u64,
    pub(in crate::connection) flip: u64,
    pub(in crate::connection) cut: u64,
}

pub(in crate::connection) const BAD_PATH: Faults = Faults {
    lose: 8,
    double: 9,
    delay: 7,
    flip: 20,
    cut: 20,
};

/// What the path does to ECN marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::connection) enum Marks {
    #[default]
    Kept,
    Bleached,
    AllCe,
    AllEct1,
}

/// A datagram in flight.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::connection) struct Flying {
    arrives: Time,
    send_index: u64,
    pub(in crate::connection) to_server: bool,
    /// As its sender sees it.
    pub(in crate::connection) path: NetworkPath,
    pub(in crate::connection) ecn: u8,
    pub(in crate::connection) bytes: Vec<u8>,
}

pub(in crate::connection) struct Pair {
    pub(in crate::connection) client: Connection,
    pub(in crate::connection) server: Connection,
    pub(in crate::connection) now: Time,
    pub(in crate::connection) flying: BinaryHeap<Reverse<Flying>>,
    sent: u64,
    pub(in crate::connection) faults: Faults,
    pub(in crate::connection) marks: Marks,
    /// Datagrams that are longer are lost.
    pub(in crate::connection) mtu: usize,
    /// A NAT's mappings of the client's address.
    pub(in crate::connection) nat: BTreeMap<SocketAddr, SocketAddr>,
    /// Bits per second to the client, behind a queue of [`QUEUE`]. The NAT is before the link, so only what the server
    /// sends to a removed mapping is lost.
    pub(in crate::connection) rate: Option<u64>,
    /// Previous mappings of a NAT before the link.
    pub(in crate::connection) removed: Vec<SocketAddr>,
    /// The delay of each direction.
    pub(in crate::connection) delay: Duration,
    /// When the link to the client is free.
    free_at: Time,
    /// Unreachable addresses.
    pub(in crate::connection) dead: Vec<SocketAddr>,
    /// The size of one buffer.
    pub(in crate::connection) buffer: usize,
    random: u64,
    seed: u64,
    /// What arrived on each stream at the server and at the client.
    pub(in crate::connection) arrived: BTreeMap<(bool, StreamId), Vec<u8>>,
    pub(in crate::connection) ended: u64,
    ended_before: u64,
    pub(in crate::connection) trace: Vec<(Time, bool, usize)>,
}

pub(in crate::connection) const CLIENT: SocketAddr =
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 4000);
pub(in crate::connection) const SERVER: SocketAddr =
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), 443);
pub(in crate::connection) const CLIENT_PATH: NetworkPath = NetworkPath {
    local: CLIENT,
    remote: SERVER,
};
pub(in crate::connection) const SERVER_PATH: NetworkPath = NetworkPath {
    local: SERVER,
    remote: CLIENT,
};

pub(in crate::connection) fn seed_bytes(seed: u64) -> Seed {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_be_bytes());
    bytes
}

/// The queue before a link with a rate.
const QUEUE: Duration = Duration::from_millis(20);
pub(in crate::connection) const DELAY: Duration = Duration::from_millis(20);
pub(in crate::connection) const START: Time = Time::from_nanos(1_000_000_000);

pub(in crate::connection) fn config() -> Config {
    Config::new("cubic:initial-window=10p".parse().expect("a spec"))
}

pub(in crate::connection) fn plain(seed: u64) -> (Arc<dyn ClientCrypto>, PlainServer) {
    let alpn = || vec![b"bulk".to_vec()];
    (
        Arc::new(PlainClient::new(seed, alpn())),
        PlainServer::new(seed + 1, alpn()),
    )
}

pub(in crate::connection) fn client(
    config: Config,
    crypto: &Arc<dyn ClientCrypto>,
    now: Time,
    seed: u64,
) -> Connection {
    let start = ClientStart {
        crypto: Arc::clone(crypto),
        server_name: "localhost",
        path: CLIENT_PATH,
        local_id: id(1000),
        destination: id(99),
        token: Vec::new(),
        ids: Box::new(Counter(1000)),
        seed: seed_bytes(seed),
    };
    Connection::client(now, &Arc::new(config), start).expect("a client")
}

pub(in crate::connection) fn server(
    config: Config,
    crypto: &dyn ServerCrypto,
    version: Version,
    now: Time,
    seed: u64,
) -> Connection {
    let start = ServerStart {
        crypto,
        version,
        path: SERVER_PATH,
        local_id: id(2000),
        peer_id: id(1000),
        destination: id(99),
        initial_keys: crypto.initial_keys(version, &id(99)),
        retry: None,
        is_address_validated: false,
        ids: Box::new(Counter(2000)),
        seed: seed_bytes(seed ^ 1 << 40),
    };
    Connection::server(now, &Arc::new(config), start).expect("a server")
}

impl Pair {
    /// A datagram of the client arrives at the server.
    pub(in crate::connection) fn deliver_to_server(&mut self, datagram: &mut [u8]) {
        let ecn = Ecn::NotEct;
        self.server
            .handle_datagram(self.now, &SERVER_PATH, ecn, datagram, &mut KeepAll);
    }

    /// With the plaintext stand-in for TLS.
    pub(in crate::connection) fn new(seed: u64, faults: Faults) -> Self {
        Self::with_configs(seed, faults, config(), config())
    }

    pub(in crate::connection) fn with_configs(
        seed: u64,
        faults: Faults,
        client_config: Config,
        server_config: Config,
    ) -> Self {
        let (client, server) = plain(seed);
        Self::configured(&client, &server, client_config, server_config, seed, faults)
    }

    pub(in crate::connection) fn with(
        client: &Arc<dyn ClientCrypto>,
        server: &dyn ServerCrypto,
        version: Version,
        seed: u64,
        faults: Faults,
    ) -> Self {
        let mut config = config();
        config.versions = vec![version];
        Self::configured(client, server, config.clone(), config, seed, faults)
    }

    pub(in crate::connection) fn configured(
        client_crypto: &Arc<dyn ClientCrypto>,
        server_crypto: &dyn ServerCrypto,
        client_config: Config,
        server_config: Config,
        seed: u64,
        faults: Faults,
    ) -> Self {
        let version = client_config.versions[0];
        Self::of(
            client(client_config, client_crypto, START, seed),
            server(server_config, server_crypto, version, START, seed),
            seed,
            faults,
        )
    }

    pub(in crate::connection) fn of(
        client: Connection,
        server: Connection,
        seed: u64,
        faults: Faults,
    ) -> Self {
        Self {
            client,
            server,
            now: START,
            flying: BinaryHeap::new(),
            sent: 0,
            faults,
            marks: Marks::default(),
            mtu: 65_535,
            nat: BTreeMap::new(),
            rate: None,
            removed: Vec::new(),
            delay: DELAY,
            free_at: START,
            dead: Vec::new(),
            buffer: 65_535,
            seed,
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            arrived: BTreeMap::new(),
            ended: 0,
            ended_before: 0,
            trace: Vec::new(),
        }
    }

    pub(in crate::connection) fn chance(&mut self, one_in: u64) -> bool {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        one_in > 0 && (self.random >> 11).is_multiple_of(one_in)
    }

    pub(in crate::connection) fn transmit(&mut self) {
        let mut buffer = vec![0; self.buffer];
        for to_server in [true, false] {
            let mut count = 0;
            loop {
                let sender = if to_server {
                    &mut self.client
                } else {
                    &mut self.server
                };
                let Some(transmit) = sender.poll_transmit(self.now, &mut buffer) else {
                    break;
                };
                count += 1;
                assert!(count < 10_000, "a sender without end");
                assert!(transmit.segment_len <= 9000 && transmit.len <= buffer.len());
                for datagram in buffer[..transmit.len].chunks(transmit.segment_len) {
                    self.trace.push((self.now, to_server, datagram.len()));
                    self.launch(to_server, &transmit, datagram);
                }
            }
        }
    }

    fn launch(&mut self, to_server: bool, transmit: &Transmit, datagram: &[u8]) {
        let faults = self.faults;
        let is_dead = [transmit.path.local, transmit.path.remote]
            .iter()
            .any(|address| self.dead.contains(address));
        if self.chance(faults.lose) || datagram.len() > self.mtu || is_dead {
            return;
        }
        let mut queued = Duration::ZERO;
        if let Some(rate) = self.rate.filter(|_| !to_server) {
            queued = self.free_at.since(self.now);
            if queued > QUEUE || self.is_unmapped(transmit.path.remote) {
                return;
            }
            queued += Duration::from_nanos(datagram.len() as u64 * 8_000_000_000 / rate);
            self.free_at = self.now + queued;
        }
        let copies = if self.chance(faults.double) { 2 } else { 1 };
        for _ in 0..copies {
            let mut bytes = datagram.to_vec();
            if self.chance(faults.flip) {
                let at = (self.random >> 20) as usize % bytes.len();
                bytes[at] ^= 1 << (self.random >> 40 & 7);
            }
            if self.chance(faults.cut) {
                bytes.truncate((self.random >> 20) as usize % bytes.len());
            }
            let late = if self.chance(faults.delay) {
                DELAY / 2
            } else {
                Duration::ZERO
            };
            self.sent += 1;
            let ecn = match (self.marks, transmit.ecn) {
                (_, Ecn::NotEct) | (Marks::Bleached, _) => Ecn::NotEct,
                (Marks::Kept, mark) => mark,
                (Marks::AllCe, _) => Ecn::Ce,
                (Marks::AllEct1, _) => Ecn::Ect1,
            };
            self.flying.push(Reverse(Flying {
                arrives: self.now + queued + self.delay + late,
                send_index: self.sent,
                to_server,
                path: transmit.path,
                ecn: ecn as u8,
                bytes,
            }));
        }
    }

    /// Whether the NAT has no mapping to this address any more.
    fn is_unmapped(&self, remote: SocketAddr) -> bool {
        self.nat.contains_key(&remote) || self.removed.contains(&remote)
    }

    /// A datagram's path as its receiver sees it.
    fn arrival_path(&self, flying: &Flying) -> Option<NetworkPath> {
        let path = flying.path;
        if flying.to_server {
            let seen = self.nat.get(&path.local).copied().unwrap_or(path.local);
            return (!self.dead.contains(&seen)).then_some(NetworkPath {
                local: path.remote,
                remote: seen,
            });
        }
        let through = self.nat.iter().find(|(_, seen)| **seen == path.remote);
        let inside = through.map_or(path.remote, |(inside, _)| *inside);
        if self.rate.is_some() {
            return Some(NetworkPath {
                local: CLIENT,
                remote: path.local,
            });
        }
        // Datagrams to a removed mapping are lost.
        let is_gone = through.is_none() && self.nat.contains_key(&path.remote);
        (!is_gone).then_some(NetworkPath {
            local: inside,
            remote: path.local,
        })
    }

    /// Processes one event: a datagram arrives or a timer expires. False if no event is left.
    pub(in crate::connection) fn step(&mut self) -> bool {
        self.transmit();
        let timers = [self.client.deadline(), self.server.deadline()];
        let arrived = self.flying.peek().map(|Reverse(flying)| flying.arrives);
        let Some(next) = timers.into_iter().flatten().chain(arrived).min() else {
            return false;
        };
        self.now = self.now.max(next);
        if arrived == Some(next)
            && let Some(Reverse(mut flying)) = self.flying.pop()
        {
            if let Some(path) = self.arrival_path(&flying) {
                let ecn = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce]
                    .into_iter()
                    .find(|mark| *mark as u8 == flying.ecn)
                    .expect("a mark");
                let receiver = if flying.to_server {
                    &mut self.server
                } else {
                    &mut self.client
                };
                receiver.handle_datagram(self.now, &path, ecn, &mut flying.bytes, &mut KeepAll);
            }
        } else {
            self.client.on_timeout(self.now);
            self.server.on_timeout(self.now);
        }
        self.read();
        true
    }

    fn read(&mut self) {
        for at_server in [true, false] {
            let connection = if at_server {
                &mut self.server
            } else {
                &mut self.client
            };
            while let Some(event) = connection.streams().poll_event() {
                let StreamEvent::Readable(id) = event else {
                    continue;
                };
                let bytes = self.arrived.entry((at_server, id)).or_default();
                let read = connection.streams().read(id, self.now, &mut |data| {
                    bytes.extend_from_slice(data);
                    data.len()
                });
                self.ended += u64::from(read.is_ok_and(|read| read.end));
            }
        }
    }

    /// Runs until `done`.
    pub(in crate::connection) fn run_until(
        &mut self,
        what: &str,
        mut done: impl FnMut(&mut Self) -> bool,
    ) {
        for _ in 0..200_000 {
            if done(self) {
                return;
            }
            assert!(
                self.step(),
                "{what}: nothing will happen any more: {:?} {:?}",
                self.client,
                self.server
            );
            assert!(
                self.client.close_reason().is_none() && self.server.close_reason().is_none(),
                "{what}: closed: {:?} {:?}, seed {}, {:?}",
                self.client.close_reason(),
                self.server.close_reason(),
                self.seed,
                self.faults
            );
        }
        panic!(
            "{what}: not after many steps: {:?} {:?}",
            self.client, self.server
        );
    }

    /// Runs until both ends are closed, or no event is left.
    pub(in crate::connection) fn run_to_the_end(&mut self) {
        for _ in 0..200_000 {
            if (self.client.is_over() && self.server.is_over()) || !self.step() {
                return;
            }
        }
        panic!("no end: {:?} {:?}", self.client, self.server);
    }

    pub(in crate::connection) fn pass(&mut self, span: Duration) {
        let until = self.now + span;
        self.run_until("time", |pair| {
            pair.now >= until || {
                let timers = [pair.client.deadline(), pair.server.deadline()];
                let next = timers
                    .into_iter()
                    .flatten()
                    .chain(pair.flying.peek().map(|Reverse(flying)| flying.arrives))
                    .min();
                pair.transmit();
                let is_quiet = next.is_none_or(|next| next > until) && pair.flying.is_empty();
                if is_quiet {
                    pair.now = until;
                }
                is_quiet
            }
        });
    }

    pub(in crate::connection) fn shake_hands(&mut self) {
        self.run_until("handshake", |pair| {
            pair.client.stage() == Stage::Confirmed && pair.server.stage() == Stage::Confirmed
        });
    }

    /// Sends a request of `up` bytes on a new stream, answered with `down` bytes; both arrive unchanged.
    pub(in crate::connection) fn transfer(&mut self, up: &[u8], down: &[u8]) {
        let id = self.start_transfer(up);
        self.finish_transfer(id, up, down);
    }

    pub(in crate::connection) fn start_transfer(&mut self, up: &[u8]) -> StreamId {
        self.ended_before = self.ended;
        let streams = self.client.streams();
        let id = streams.open(Direction::Bidirectional).expect("a stream");
        streams
            .send_source(id, Box::new(up.to_vec()))
            .expect("open");
        streams.finish(id).expect("open");
        id
    }

    pub(in crate::connection) fn finish_transfer(&mut self, id: StreamId, up: &[u8], down: &[u8]) {
        let mut answered = false;
        self.run_until("transfer", |pair| {
            if !answered && let Some(id) = pair.server.streams().accept(Direction::Bidirectional) {
                let streams = pair.server.streams();
                streams
                    .send_source(id, Box::new(down.to_vec()))
                    .expect("open");
                streams.finish(id).expect("open");
                answered = true;
            }
            pair.ended == pair.ended_before + 2
        });
        let arrived = |at_server| self.arrived.get(&(at_server, id)).map(Vec::as_slice);
        assert_eq!(arrived(true), Some(up));
        assert_eq!(arrived(false), Some(down));
    }
}

pub(in crate::connection) fn body(len: usize, salt: u8) -> Vec<u8> {
    (0..len)
        .map(|index| (index as u8).wrapping_mul(31) ^ salt ^ (index >> 8) as u8)
        .collect()
}

pub(in crate::connection) fn events(connection: &mut Connection) -> Vec<Event> {
    std::iter::from_fn(|| connection.poll_event()).collect()
}

/// Why an end closed the connection by itself.
pub(in crate::connection) fn violation(connection: &Connection) -> (TransportError, &'static str) {
    match connection.close_reason() {
        Some(CloseReason::Local { code, reason, .. }) => (code, reason),
        other => panic!("{other:?}"),
    }
}

/// The next packet of a connection in this space, with these frames.
pub(in crate::connection) fn sealed(
    connection: &mut Connection,
    now: Time,
    space: Space,
    frames: &dyn Fn(&mut Writer<'_>),
) -> Vec<u8> {
    let mut buffer = [0; 1200];
    let number = connection.next_number(now, space).expect("a number");
    let mut writer = Writer::new(&mut buffer[..1184]);
    let packet = connection
        .begin_packet(space, number, None, &mut writer)
        .expect("room");
    let start = writer.position();
    frames(&mut writer);
    // At least 4 bytes must follow the packet number, for the header protection sample.
    writer.zeros(4).expect("room");
    let payload = start..writer.position();
    let flags = transmit::PacketFlags {
        is_ack_eliciting: true,
        is_in_flight: true,
        ..transmit::PacketFlags::default()
    };
    connection.sender.receipts.clear();
    let len = connection
        .finish_packet(now, space, number, packet, payload, flags, &mut buffer)
        .expect("sealed");
    buffer[..len].to_vec()
}
