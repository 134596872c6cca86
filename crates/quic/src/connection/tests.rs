//! A client and a server in one process, over a path that loses, doubles and reorders by a seed.

use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
};

use lastbyte_wire::{Direction, StreamId};

use super::*;
use crate::{
    ack::EcnCodepoint,
    crypto::{
        ClientCrypto, ServerCrypto,
        plain::{PlainClient, PlainServer},
    },
    stream::{KeepAll, StreamEvent},
};

/// IDs of eight bytes that count up.
struct Counter(u64);

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

fn id(number: u64) -> ConnectionId {
    ConnectionId::new(&number.to_be_bytes()).expect("8 bytes")
}

/// What the path does to one datagram in so many; 0 for never.
#[derive(Clone, Copy, Debug, Default)]
struct Faults {
    lose: u64,
    double: u64,
    delay: u64,
    flip: u64,
}

/// A datagram on its way: when it arrives, its place in order, to the server or not, and its bytes.
type Flying = Reverse<(Time, u64, bool, Vec<u8>)>;

struct Pair {
    client: Connection,
    server: Connection,
    now: Time,
    flying: BinaryHeap<Flying>,
    sent: u64,
    faults: Faults,
    random: u64,
    seed: u64,
    /// What arrived on each stream at the server and at the client.
    arrived: BTreeMap<(bool, StreamId), Vec<u8>>,
    ended: u64,
    trace: Vec<(Time, bool, usize)>,
}

const CLIENT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 4000);
const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), 443);
const CLIENT_PATH: NetworkPath = NetworkPath {
    local: CLIENT,
    remote: SERVER,
};
const SERVER_PATH: NetworkPath = NetworkPath {
    local: SERVER,
    remote: CLIENT,
};

fn seed_bytes(seed: u64) -> Seed {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_be_bytes());
    bytes
}

const DELAY: Duration = Duration::from_millis(20);

fn config() -> Config {
    Config::new("cubic:initial-window=10p".parse().expect("a spec"))
}

impl Pair {
    /// With the plaintext twin of TLS.
    fn new(seed: u64, faults: Faults) -> Self {
        let alpn = || vec![b"bulk".to_vec()];
        let client: Arc<dyn ClientCrypto> = Arc::new(PlainClient::new(seed, alpn()));
        let server = PlainServer::new(seed + 1, alpn());
        Self::with(&client, &server, Version::V1, seed, faults)
    }

    fn with(
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

    fn configured(
        client: &Arc<dyn ClientCrypto>,
        server: &dyn ServerCrypto,
        client_config: Config,
        server_config: Config,
        seed: u64,
        faults: Faults,
    ) -> Self {
        let now = Time::from_nanos(1_000_000_000);
        let version = client_config.versions[0];
        let start = ClientStart {
            crypto: Arc::clone(client),
            server_name: "localhost",
            path: CLIENT_PATH,
            local_id: id(1000),
            destination: id(99),
            token: Vec::new(),
            ids: Box::new(Counter(1000)),
            seed: seed_bytes(seed),
        };
        let client = Connection::client(now, &Arc::new(client_config), start).expect("a client");
        let start = ServerStart {
            crypto: server,
            version,
            path: SERVER_PATH,
            local_id: id(2000),
            peer_id: id(1000),
            destination: id(99),
            retry: None,
            is_address_validated: false,
            ids: Box::new(Counter(2000)),
            seed: seed_bytes(seed ^ 1 << 40),
        };
        let server = Connection::server(now, &Arc::new(server_config), start).expect("a server");
        Self {
            client,
            server,
            now,
            flying: BinaryHeap::new(),
            sent: 0,
            faults,
            seed,
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            arrived: BTreeMap::new(),
            ended: 0,
            trace: Vec::new(),
        }
    }

    fn chance(&mut self, one_in: u64) -> bool {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        one_in > 0 && (self.random >> 11).is_multiple_of(one_in)
    }

    fn transmit(&mut self) {
        let mut buffer = [0; 1500];
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
                let len = transmit.len;
                count += 1;
                assert!(count < 10_000, "a sender without end");
                self.trace.push((self.now, to_server, len));
                self.launch(to_server, &buffer[..len]);
            }
        }
    }

    fn launch(&mut self, to_server: bool, datagram: &[u8]) {
        let faults = self.faults;
        if self.chance(faults.lose) {
            return;
        }
        let copies = if self.chance(faults.double) { 2 } else { 1 };
        for _ in 0..copies {
            let mut bytes = datagram.to_vec();
            if self.chance(faults.flip) {
                let at = (self.random >> 20) as usize % bytes.len();
                bytes[at] ^= 1 << (self.random >> 40 & 7);
            }
            let late = if self.chance(faults.delay) {
                DELAY / 2
            } else {
                Duration::ZERO
            };
            self.sent += 1;
            self.flying.push(Reverse((
                self.now + DELAY + late,
                self.sent,
                to_server,
                bytes,
            )));
        }
    }

    /// One event: a datagram arrives or a timer expires. False if nothing will ever happen.
    fn step(&mut self) -> bool {
        self.transmit();
        let timers = [self.client.deadline(), self.server.deadline()];
        let arrival = self.flying.peek().map(|Reverse((at, ..))| *at);
        let Some(next) = timers.into_iter().flatten().chain(arrival).min() else {
            return false;
        };
        self.now = self.now.max(next);
        if arrival == Some(next)
            && let Some(Reverse((_, _, to_server, mut bytes))) = self.flying.pop()
        {
            let (receiver, path) = if to_server {
                (&mut self.server, SERVER_PATH)
            } else {
                (&mut self.client, CLIENT_PATH)
            };
            let ecn = EcnCodepoint::NotEct;
            receiver.handle_datagram(self.now, &path, ecn, &mut bytes, &mut KeepAll);
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

    /// Steps until `done`.
    fn run_until(&mut self, what: &str, mut done: impl FnMut(&mut Self) -> bool) {
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

    fn shake_hands(&mut self) {
        self.run_until("handshake", |pair| {
            pair.client.stage() == Stage::Confirmed && pair.server.stage() == Stage::Confirmed
        });
    }
}

fn body(len: usize, salt: u8) -> Vec<u8> {
    (0..len)
        .map(|index| (index as u8).wrapping_mul(31) ^ salt ^ (index >> 8) as u8)
        .collect()
}

#[test]
fn handshake_takes_a_round_trip_and_is_confirmed_in_the_next() {
    let mut pair = Pair::new(1, Faults::default());
    let start = pair.now;
    pair.run_until("client", |pair| pair.client.stage() >= Stage::Complete);
    assert_eq!(pair.now.since(start), DELAY * 2);
    pair.run_until("server", |pair| pair.server.stage() == Stage::Confirmed);
    assert_eq!(pair.now.since(start), DELAY * 3);
    pair.run_until("client", |pair| pair.client.stage() == Stage::Confirmed);
    assert_eq!(pair.now.since(start), DELAY * 4);
    assert_eq!(pair.client.session().alpn(), Some(&b"bulk"[..]));
    assert_eq!(pair.client.recovery().rtt().min(), DELAY * 2);
    assert_eq!(
        pair.client.recovery_statistics().packets_lost
            + pair.server.recovery_statistics().packets_lost,
        0
    );
}

#[test]
fn rfc9000_14_1_datagrams_with_initial_packets_are_1200_bytes() {
    let mut pair = Pair::new(1, Faults::default());
    pair.transmit();
    assert_eq!(pair.trace.len(), 1);
    assert_eq!(pair.trace[0].2, 1200);
}

#[test]
fn rfc9000_8_1_a_server_sends_three_times_what_it_received_at_most() {
    let mut pair = Pair::new(1, Faults::default());
    pair.transmit();
    pair.step();
    pair.transmit();
    let from_server: usize = pair
        .trace
        .iter()
        .filter(|(_, to_server, _)| !to_server)
        .map(|(.., len)| len)
        .sum();
    assert!((1200..=3600).contains(&from_server), "{from_server}");
}

#[test]
fn a_megabyte_each_way() {
    let mut pair = Pair::new(2, Faults::default());
    pair.shake_hands();
    let (up, down) = (body(1_000_000, 1), body(1_000_000, 2));
    transfer(&mut pair, &up, &down);
    assert!(
        pair.now.since(Time::ZERO) < Duration::from_secs(3),
        "{:?}",
        pair.now
    );
}

fn transfer(pair: &mut Pair, up: &[u8], down: &[u8]) {
    let id = pair
        .client
        .streams()
        .open(Direction::Bidirectional)
        .expect("a stream");
    pair.client
        .streams()
        .send_source(id, Box::new(up.to_vec()))
        .expect("open");
    pair.client.streams().finish(id).expect("open");
    let mut answered = false;
    pair.run_until("transfer", |pair| {
        if !answered && let Some(id) = pair.server.streams().accept(Direction::Bidirectional) {
            pair.server
                .streams()
                .send_source(id, Box::new(down.to_vec()))
                .expect("open");
            pair.server.streams().finish(id).expect("open");
            answered = true;
        }
        pair.ended == 2
    });
    assert_eq!(pair.arrived.get(&(true, id)).map(Vec::as_slice), Some(up));
    assert_eq!(
        pair.arrived.get(&(false, id)).map(Vec::as_slice),
        Some(down)
    );
}

#[test]
fn every_transfer_completes_over_a_bad_path() {
    let kinds = [
        Faults {
            lose: 10,
            ..Faults::default()
        },
        Faults {
            double: 5,
            ..Faults::default()
        },
        Faults {
            delay: 4,
            ..Faults::default()
        },
        Faults {
            flip: 10,
            ..Faults::default()
        },
        Faults {
            lose: 8,
            double: 9,
            delay: 7,
            flip: 20,
        },
        Faults {
            lose: 4,
            ..Faults::default()
        },
    ];
    for seed in 1..=20 {
        for (index, faults) in kinds.into_iter().enumerate() {
            let mut pair = Pair::new(seed * 100 + index as u64, faults);
            pair.shake_hands();
            transfer(&mut pair, &body(60_000, seed as u8), &body(90_000, 7));
        }
    }
}

/// A `ServerHello` was declared lost, and the window full of what the client could not acknowledge without it.
#[test]
fn rfc9002_6_2_4_probes_say_what_another_space_lost() {
    let faults = Faults {
        lose: 3,
        ..Faults::default()
    };
    let mut pair = Pair::new(13_405, faults);
    pair.shake_hands();
}

#[test]
fn same_seed_same_datagrams() {
    let run = || {
        let faults = Faults {
            lose: 8,
            double: 9,
            delay: 7,
            flip: 20,
        };
        let mut pair = Pair::new(42, faults);
        pair.shake_hands();
        transfer(&mut pair, &body(50_000, 1), &body(50_000, 2));
        pair.trace
    };
    assert_eq!(run(), run());
}

#[test]
fn rfc9000_10_2_an_application_closes_with_its_code() {
    let mut pair = Pair::new(3, Faults::default());
    pair.shake_hands();
    pair.client.close(pair.now, 77);
    while !(pair.client.is_over() && pair.server.is_over()) {
        assert!(pair.step(), "still open");
    }
    assert_eq!(
        pair.client.close_reason(),
        Some(CloseReason::LocalApplication { code: 77 })
    );
    assert_eq!(
        pair.server.close_reason(),
        Some(CloseReason::PeerApplication { code: 77 })
    );
}

#[test]
fn rfc9000_10_1_silence_ends_a_connection_without_a_word() {
    let mut pair = Pair::new(3, Faults::default());
    pair.shake_hands();
    while pair.step() && !(pair.client.is_over() && pair.server.is_over()) {}
    assert_eq!(pair.client.close_reason(), Some(CloseReason::IdleTimeout));
    assert_eq!(pair.server.close_reason(), Some(CloseReason::IdleTimeout));
    let after = pair.now.since(Time::from_nanos(1_000_000_000));
    assert!((30..32).contains(&after.as_secs()), "{after:?}");
}

#[test]
fn rfc9002_6_2_2_1_a_lost_first_flight_is_sent_again() {
    let mut pair = Pair::new(3, Faults::default());
    pair.transmit();
    pair.flying.clear();
    pair.shake_hands();
    // The first probe timeout is 999 ms.
    let client_sends: Vec<u128> = pair
        .trace
        .iter()
        .filter(|(_, to_server, _)| *to_server)
        .map(|(at, ..)| at.since(Time::from_nanos(1_000_000_000)).as_millis())
        .take(2)
        .collect();
    assert_eq!(client_sends, [0, 999]);
}

#[test]
fn tls_carries_a_transfer_over_a_bad_path_in_both_versions() {
    let (client, server) = crate::crypto::tls::testing::pair();
    let client: Arc<dyn ClientCrypto> = Arc::new(client);
    for version in [Version::V1, Version::V2] {
        for seed in 1..=5 {
            let faults = Faults {
                lose: 8,
                double: 9,
                delay: 7,
                flip: 20,
            };
            let mut pair = Pair::with(&client, &server, version, seed, faults);
            pair.shake_hands();
            transfer(&mut pair, &body(60_000, 1), &body(90_000, 2));
            let suite = pair.client.session().cipher_suite();
            assert!(
                suite.is_some_and(|suite| suite.starts_with("TLS")),
                "{suite:?}"
            );
        }
    }
}

#[test]
fn keys_are_updated_in_the_middle_of_a_transfer() {
    let (client, server) = crate::crypto::tls::testing::pair();
    let client: Arc<dyn ClientCrypto> = Arc::new(client);
    for seed in 1..=5 {
        let faults = Faults {
            lose: 12,
            delay: 6,
            ..Faults::default()
        };
        let mut pair = Pair::with(&client, &server, Version::V1, seed, faults);
        pair.shake_hands();
        transfer(&mut pair, &body(20_000, 1), &body(20_000, 2));
        for _ in 0..3 {
            let now = pair.now;
            let generation = pair
                .client
                .one_rtt
                .as_ref()
                .map_or(0, |keys| keys.generation());
            // Not before something under the present keys was acknowledged: a PING sees to that.
            pair.run_until("update", |pair| {
                *pair.client.probes.get_mut(Space::Application) = 1;
                let keys = pair.client.one_rtt.as_mut().expect("1-RTT keys");
                keys.generation() > generation || keys.update(pair.now).is_ok()
            });
            pair.ended = 0;
            pair.arrived.clear();
            transfer(&mut pair, &body(30_000, 3), &body(30_000, 4));
            assert!(pair.now > now);
        }
        let generations = [&pair.client, &pair.server]
            .map(|end| end.one_rtt.as_ref().map(|keys| keys.generation()));
        assert_eq!(generations, [Some(3), Some(3)]);
    }
}

#[test]
fn rfc9001_6_6_keys_are_updated_long_before_their_limit() {
    let alpn = || vec![b"bulk".to_vec()];
    let mut client = PlainClient::new(7, alpn());
    let mut server = PlainServer::new(8, alpn());
    client.limits.confidentiality = 2000;
    server.limits.confidentiality = 2000;
    let client: Arc<dyn ClientCrypto> = Arc::new(client);
    let mut pair = Pair::with(&client, &server, Version::V1, 7, Faults::default());
    pair.shake_hands();
    // 2600 packets and more, which the first keys may not seal.
    transfer(&mut pair, &body(3_000_000, 1), &body(1000, 2));
    assert!(pair.client.recovery_statistics().packets_sent > 2000);
    for end in [&pair.client, &pair.server] {
        let generation = end.one_rtt.as_ref().map(|keys| keys.generation());
        assert!(generation >= Some(1), "{generation:?}");
    }
}
