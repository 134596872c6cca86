//! Workers that serve over loopback, with the plaintext stand-in for TLS.

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
use crate::{Next, Status};

const ALPN: &[u8] = b"echo";
const BODY_LEN: usize = 3_000_000;

fn config() -> Arc<Config> {
    Arc::new(Config::new("cubic".parse().expect("a spec")))
}

/// A server that answers each request with a body.
struct Echo {
    number: usize,
    accepted: mpsc::Sender<usize>,
    is_done: bool,
}

impl Application for Echo {
    type Command = ();
    type Data = ();

    fn on_accepted(&mut self, _: Time, _: Handle, _: &mut Connection) {
        self.accepted.send(self.number).expect("a receiver");
    }

    fn on_ready(&mut self, now: Time, _: Handle, connection: &mut Connection, (): &mut ()) {
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

    fn on_turn(&mut self, _: Time, _: &mut Endpoint) -> Next {
        Next {
            deadline: None,
            status: Status::stopped_if(self.is_done),
        }
    }
}

/// A client that makes one request on each connection, when all handshakes are complete: a client whose address changes during
/// a handshake cannot complete it (RFC 9000 §9).
struct Requester {
    local: SocketAddr,
    server: SocketAddr,
    /// The connections still to be established.
    connections: usize,
    /// The connections whose handshakes are not complete.
    handshakes: usize,
    /// Whether the requests are to be made now.
    is_ready: bool,
    arrived: usize,
    done: usize,
}

impl Application for Requester {
    type Command = ();
    type Data = ();

    fn on_accepted(&mut self, _: Time, _: Handle, _: &mut Connection) {
        unreachable!("a client");
    }

    fn on_ready(&mut self, now: Time, _: Handle, connection: &mut Connection, (): &mut ()) {
        while let Some(event) = connection.poll_event() {
            if event == Event::HandshakeComplete {
                self.handshakes -= 1;
                self.is_ready = self.handshakes == 0;
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

    fn on_turn(&mut self, now: Time, endpoint: &mut Endpoint) -> Next {
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
        if std::mem::take(&mut self.is_ready) {
            let handles: Vec<Handle> = endpoint.handles().collect();
            for handle in handles {
                let connection = endpoint.connection(handle).expect("it is open");
                let streams = connection.streams();
                let id = streams.open(Direction::Bidirectional).expect("allowed");
                streams.send_source(id, Box::new(vec![1; 8])).expect("open");
                streams.finish(id).expect("open");
            }
        }
        let is_idle = self.connections == 0 && endpoint.handles().next().is_none();
        Next {
            deadline: (self.connections > 0).then_some(Time::ZERO),
            status: Status::stopped_if(is_idle),
        }
    }
}

/// The byte of the connection IDs of these tests that holds the worker.
const WORKER_BYTE: u8 = 2;

/// The endpoint of a worker, whose connection IDs name it.
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

struct Downloads {
    client: Statistics,
    servers: Vec<Statistics>,
    /// Which workers accepted a connection.
    accepted: BTreeSet<usize>,
}

/// Downloads from a pool of workers, steered by the kernel as given.
fn download(address: &str, workers: usize, connections: usize, steering: Steering) -> Downloads {
    download_through(address, workers, connections, steering, |server| server)
}

/// Downloads through a relay in front of the workers.
fn download_through(
    address: &str,
    workers: usize,
    connections: usize,
    steering: Steering,
    relay: impl FnOnce(SocketAddr) -> SocketAddr,
) -> Downloads {
    let address = address.parse().expect("an address");
    let options = Options::default();
    let (sockets, _) = bind_group(address, workers, &options, steering).expect("a group");
    let server = sockets[0].local_address();
    let steering = SteeringRule {
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
    let pool = WorkerPool::start(sockets, steering, Clock::new(), None, make).expect("a pool");

    let any_port = SocketAddr::new(server.ip(), 0);
    let socket = Socket::bind(any_port, &options).expect("a socket");
    let requester = Requester {
        local: socket.local_address(),
        server: relay(server),
        connections,
        handshakes: connections,
        is_ready: false,
        arrived: 0,
        done: 0,
    };
    let endpoint = Endpoint::new(EndpointConfig::client(), [9; 32]).expect("an endpoint");
    let mut client = Worker::new(socket, endpoint, requester, Clock::new()).expect("a worker");
    client.run().expect("no error of the socket");
    assert_eq!(client.application().done, connections);
    assert_eq!(client.application().arrived, connections * BODY_LEN);

    for remote in pool.remotes() {
        remote.send(()).expect("a receiver");
    }
    let ends = pool.join().into_iter();
    Downloads {
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
        assert_eq!(server.forwarded + server.send_errors, 0, "{server:?}");
        assert_eq!(outcome.client.send_errors, 0);
    }
}

#[test]
fn connections_stay_with_the_worker_that_the_kernel_chose() {
    let steering = Steering::ByConnectionId { byte: WORKER_BYTE };
    let mut accepted = BTreeSet::new();
    for _ in 0..16 {
        let outcome = download("127.0.0.1:0", 3, 2, steering);
        assert_eq!(outcome.accepted.len(), 1, "one address");
        accepted.extend(outcome.accepted);
        for server in &outcome.servers {
            assert_eq!(server.forwarded, 0, "{server:?}");
        }
    }
    // The probability that all addresses select one worker is 3^-15.
    assert!(accepted.len() > 1, "{accepted:?}");
}

/// The kernel maps one address to one worker by its own hash. Connections work although their IDs may name another worker.
#[test]
fn without_steering_connections_stay_with_the_worker_of_their_address() {
    let outcome = download("127.0.0.1:0", 3, 5, Steering::ByAddress);
    assert_eq!(outcome.accepted.len(), 1, "one address");
    let lost: u64 = outcome
        .servers
        .iter()
        .map(|server| server.forwards_dropped)
        .sum();
    assert_eq!(lost, 0);
}

/// A NAT for one client that drops its binding from time to time, after which the client has another port.
struct Nat {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    waker: Waker,
    thread: Option<JoinHandle<usize>>,
}

/// The number of datagrams from the server after which the client gets another port.
const BINDING_DATAGRAMS: usize = 100;

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
                // All sockets are polled within a millisecond.
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
                if from_server > BINDING_DATAGRAMS {
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

    /// Stops it. Returns how many ports the client had.
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
    // A datagram that the kernel does not accept is lost.
    let _ = socket.send(&transmit);
}

/// Each time the client's port changes, the kernel may choose a worker that does not own the connection.
#[test]
fn without_steering_datagrams_of_a_client_that_moves_are_forwarded() {
    let (mut ports, mut forwarded) = (0, 0);
    // The number of ports that one download uses depends on the load of the machine.
    for _ in 0..20 {
        let mut nat = None;
        let outcome = download_through("127.0.0.1:0", 3, 8, Steering::ByAddress, |server| {
            nat.insert(Nat::before(server)).address
        });
        ports += nat.expect("a NAT").end();
        let sum = |count: fn(&Statistics) -> u64| outcome.servers.iter().map(count).sum::<u64>();
        let (given, received) = (
            sum(|server| server.forwarded),
            sum(|server| server.forwards_received),
        );
        assert_eq!(given, received + sum(|server| server.forwards_dropped));
        forwarded += given;
        if ports > 30 {
            break;
        }
    }
    // The probability that all ports select the right worker is 3^-30.
    assert!(ports > 30, "{ports} ports");
    assert!(forwarded > 0, "{ports} ports");
}
