//! Workers that serve, over loopback, with the plaintext twin of TLS.

use std::{
    collections::BTreeSet,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::Duration,
};

use lastbyte_congestion::Time;
use lastbyte_quic::{
    cid::{QuicLbConfig, QuicLbIds},
    connection::{Config, Connection, Event, NetworkPath},
    crypto::plain::{PlainClient, PlainServer},
    endpoint::{Closed, EndpointConfig, Handle},
    stream::StreamEvent,
};
use lastbyte_udp::{Batch, Ecn, Options, Received, Steering, Transmit, Waker, bind_group};
use lastbyte_wire::Direction;

use super::*;
use crate::application::Turn;

const ALPN: &[u8] = b"echo";
const BODY_LEN: usize = 3_000_000;

fn config() -> Arc<Config> {
    Arc::new(Config::new("cubic".parse().expect("a spec")))
}

/// Sends back what comes.
struct Echo {
    number: usize,
    accepted: mpsc::Sender<usize>,
    is_done: bool,
}

impl Application for Echo {
    type Command = ();

    fn on_accepted(&mut self, _: Time, _: Handle, _: &mut Connection) {
        self.accepted.send(self.number).expect("a listener");
    }

    fn on_ready(&mut self, now: Time, _: Handle, connection: &mut Connection) {
        while connection.poll_event().is_some() {}
        while let Some(event) = connection.streams().poll_event() {
            let StreamEvent::Readable(id) = event else {
                continue;
            };
            let mut bytes = Vec::new();
            let read = connection.streams().read(id, now, &mut |data| {
                bytes.extend_from_slice(data);
                data.len()
            });
            if bytes.len() == 8 && read.is_ok_and(|read| read.end) {
                let streams = connection.streams();
                streams
                    .send_source(id, Box::new(vec![7; BODY_LEN]))
                    .expect("open");
                streams.finish(id).expect("open");
            }
        }
    }

    fn on_closed(&mut self, _: Time, _: Closed) {}

    fn on_command(&mut self, _: Time, _: &mut Endpoint, (): ()) {
        self.is_done = true;
    }

    fn on_turn(&mut self, _: Time, _: &mut Endpoint) -> Turn {
        Turn {
            deadline: None,
            is_done: self.is_done,
        }
    }
}

/// Asks once a connection, for so many connections.
struct Asking {
    local: SocketAddr,
    server: SocketAddr,
    connections: usize,
    arrived: usize,
    done: usize,
}

impl Application for Asking {
    type Command = ();

    fn on_accepted(&mut self, _: Time, _: Handle, _: &mut Connection) {
        unreachable!("a client");
    }

    fn on_ready(&mut self, now: Time, _: Handle, connection: &mut Connection) {
        while let Some(event) = connection.poll_event() {
            if event == Event::HandshakeComplete {
                let streams = connection.streams();
                let id = streams.open(Direction::Bidirectional).expect("allowed");
                streams.send_source(id, Box::new(vec![1; 8])).expect("open");
                streams.finish(id).expect("open");
            }
        }
        while let Some(event) = connection.streams().poll_event() {
            let StreamEvent::Readable(id) = event else {
                continue;
            };
            let arrived = &mut self.arrived;
            let read = connection.streams().read(id, now, &mut |data| {
                assert!(data.iter().all(|byte| *byte == 7));
                *arrived += data.len();
                data.len()
            });
            if read.is_ok_and(|read| read.end) {
                self.done += 1;
                connection.close(now, 0);
            }
        }
    }

    fn on_closed(&mut self, _: Time, _: Closed) {}

    fn on_command(&mut self, _: Time, _: &mut Endpoint, (): ()) {}

    fn on_turn(&mut self, now: Time, endpoint: &mut Endpoint) -> Turn {
        if self.connections > 0 {
            self.connections -= 1;
            let path = NetworkPath {
                local: self.local,
                remote: self.server,
            };
            let crypto = Arc::new(PlainClient::new(
                self.connections as u64,
                vec![ALPN.to_vec()],
            ));
            endpoint
                .connect(now, path, "localhost", &config(), crypto, Vec::new())
                .expect("a connection");
        }
        let is_idle = self.connections == 0 && endpoint.handles().next().is_none();
        Turn {
            deadline: (self.connections > 0).then_some(Time::ZERO),
            is_done: is_idle,
        }
    }
}

/// Where the worker stands in the connection IDs of these tests.
const WORKER_BYTE: u8 = 2;

/// The endpoint of a worker: its IDs lead to it.
fn endpoint(number: usize) -> io::Result<Endpoint> {
    let config = QuicLbConfig {
        rotation: 0,
        server_id_len: 2,
        nonce_len: 5,
        key: None,
        encodes_length: false,
    };
    let ids = QuicLbIds::new(config, &[1, number as u8], [number as u8; 32]).expect("IDs");
    let crypto = Arc::new(PlainServer::new(number as u64, vec![ALPN.to_vec()]));
    let config = EndpointConfig {
        ids: Box::new(ids),
        ..EndpointConfig::server(self::config(), crypto)
    };
    Endpoint::new(config, [number as u8; 32]).map_err(io::Error::other)
}

struct Outcome {
    client: Statistics,
    servers: Vec<Statistics>,
    /// Which workers accepted a connection.
    accepted: BTreeSet<usize>,
}

/// So many downloads from so many workers, of which the kernel knows this.
fn download(address: &str, workers: usize, connections: usize, steering: Steering) -> Outcome {
    download_by_way_of(address, workers, connections, steering, |server| server)
}

/// The same, from an address that leads to the workers.
fn download_by_way_of(
    address: &str,
    workers: usize,
    connections: usize,
    steering: Steering,
    way: impl FnOnce(SocketAddr) -> SocketAddr,
) -> Outcome {
    let address = address.parse().expect("an address");
    let options = Options::default();
    let (sockets, _) = bind_group(address, workers, &options, steering).expect("a group");
    let server = sockets[0].local_address();
    let owners = Owners {
        byte: WORKER_BYTE,
        workers,
    };
    let (accepted, accepts) = mpsc::channel();
    let make = move |number| {
        let echo = Echo {
            number,
            accepted: accepted.clone(),
            is_done: false,
        };
        Ok((endpoint(number)?, echo))
    };
    let crew = Crew::start(sockets, owners, Clock::new(), make).expect("a crew");

    let any_port = SocketAddr::new(server.ip(), 0);
    let socket = Socket::bind(any_port, &options).expect("a socket");
    let asking = Asking {
        local: socket.local_address(),
        server: way(server),
        connections,
        arrived: 0,
        done: 0,
    };
    let endpoint = Endpoint::new(EndpointConfig::client(), [9; 32]).expect("an endpoint");
    let mut client = Worker::new(socket, endpoint, asking, Clock::new()).expect("a worker");
    client.run().expect("no error of the socket");
    assert_eq!(client.application().done, connections);
    assert_eq!(client.application().arrived, connections * BODY_LEN);

    for remote in crew.remotes() {
        remote.say(()).expect("a listener");
    }
    let ends = crew.join().into_iter();
    Outcome {
        client: *client.statistics(),
        servers: ends.map(|end| end.expect("no error of a worker")).collect(),
        accepted: accepts.try_iter().collect(),
    }
}

#[test]
fn a_download_from_one_worker_arrives_whole_over_ipv4_and_ipv6() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let outcome = download(address, 1, 1, Steering::ByAddress);
        let server = &outcome.servers[0];
        assert!(server.datagrams_sent > 1000, "{server:?}");
        assert_eq!(server.handed_over + server.send_errors, 0, "{server:?}");
        assert_eq!(outcome.client.send_errors, 0);
    }
}

#[test]
fn connections_stay_with_the_worker_that_the_kernel_led_them_to() {
    let steering = Steering::ByConnectionId { byte: WORKER_BYTE };
    let mut accepted = BTreeSet::new();
    for _ in 0..16 {
        let outcome = download("127.0.0.1:0", 3, 2, steering);
        assert_eq!(outcome.accepted.len(), 1, "one address");
        accepted.extend(outcome.accepted);
        for server in &outcome.servers {
            assert_eq!(server.handed_over, 0, "{server:?}");
        }
    }
    // All addresses led to one worker by chance: 3^-15.
    assert!(accepted.len() > 1, "{accepted:?}");
}

/// One address, one worker, by the kernel's own choice. Connections get on where that is not theirs.
#[test]
fn without_steering_connections_stay_where_their_addresses_lead_them() {
    let outcome = download("127.0.0.1:0", 3, 5, Steering::ByAddress);
    assert_eq!(outcome.accepted.len(), 1, "one address");
    let lost: u64 = outcome
        .servers
        .iter()
        .map(|server| server.handovers_lost)
        .sum();
    assert_eq!(lost, 0);
}

/// A NAT for one client that forgets its binding now and then: from then on it has another port towards the server.
struct Nat {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    waker: Waker,
    thread: Option<JoinHandle<usize>>,
}

/// After how many datagrams of the server the client gets another port.
const BINDING_LASTS: usize = 100;

impl Nat {
    fn before(server: SocketAddr) -> Self {
        let any_port = SocketAddr::new(server.ip(), 0);
        let bind = move || Socket::bind(any_port, &Options::default()).expect("a socket");
        let inside = bind();
        let address = inside.local_address();
        let mut waiter = Waiter::new().expect("a waiter");
        let waker = waiter.waker();
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let work = move || {
            let mut outside = vec![bind()];
            let mut client = None;
            let mut from_server = 0;
            let mut batch = Batch::new();
            while !over.load(Ordering::Relaxed) {
                // All sockets are looked at soon, whichever has something.
                let soon = Some(Duration::from_millis(1));
                waiter.wait(&inside, false, soon).expect("waited");
                while inside.receive(&mut batch).expect("received") > 0 {
                    for received in batch.received() {
                        client = Some(received.remote);
                        pass(&outside[outside.len() - 1], server, &received);
                    }
                }
                for socket in &outside {
                    while socket.receive(&mut batch).expect("received") > 0 {
                        for received in batch.received() {
                            from_server += received.bytes.len().div_ceil(received.segment_len);
                            pass(&inside, client.expect("it asked"), &received);
                        }
                    }
                }
                if from_server > BINDING_LASTS {
                    from_server = 0;
                    outside.push(bind());
                }
            }
            outside.len()
        };
        let thread = thread::Builder::new().spawn(work).expect("a thread");
        Self {
            address,
            is_over,
            waker,
            thread: Some(thread),
        }
    }

    /// How many ports the client had.
    fn end(&mut self) -> usize {
        self.is_over.store(true, Ordering::Relaxed);
        self.waker.wake();
        let thread = self.thread.take().expect("it ends once");
        thread.join().expect("no panic")
    }
}

fn pass(socket: &Socket, remote: SocketAddr, received: &Received<'_>) {
    let transmit = Transmit {
        remote,
        local: None,
        ecn: Ecn::NotEct,
        bytes: received.bytes,
        segment_len: received.segment_len,
    };
    // What the kernel has no room for is lost, as on the way.
    let _ = socket.send(&transmit);
}

/// Each time the client's port changes, the kernel may lead it to another worker, which is not who knows the connection.
#[test]
fn without_steering_a_client_that_moves_is_handed_over() {
    let (mut ports, mut handed) = (0, 0);
    // How many ports one download uses depends on how busy the machine is.
    for _ in 0..20 {
        let mut nat = None;
        let outcome = download_by_way_of("127.0.0.1:0", 3, 8, Steering::ByAddress, |server| {
            nat.insert(Nat::before(server)).address
        });
        ports += nat.expect("a NAT").end();
        let sum = |count: fn(&Statistics) -> u64| outcome.servers.iter().map(count).sum::<u64>();
        let (given, received) = (
            sum(|server| server.handed_over),
            sum(|server| server.taken_over),
        );
        assert_eq!(given, received + sum(|server| server.handovers_lost));
        handed += given;
        if ports > 30 {
            break;
        }
    }
    // All of so many ports at the right worker by chance: 3^-30.
    assert!(ports > 30, "{ports} ports");
    assert!(handed > 0, "{ports} ports");
}
