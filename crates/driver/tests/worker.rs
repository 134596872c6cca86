//! The turns and the counters of a worker, over loopback, and its clock.

use std::{
    io,
    net::SocketAddr,
    os::fd::OwnedFd,
    sync::{Arc, Barrier, Mutex, mpsc},
    time::Duration,
};

use lastbyte_driver::{
    Application, Clock, Next, NextSocket, Remote, Statistics, Status, SteeringRule, Worker,
    WorkerPool, relay,
};
use lastbyte_quic::{
    Time, WallTime,
    connection::{Config, Connection, NetworkPath},
    crypto::plain::{PlainClient, PlainServer},
    endpoint::{Closed, Endpoint, EndpointConfig, Handle},
};
use lastbyte_udp::{Batch, Ecn, Options, Socket, Transmit, Waiter};
use rustix::{
    io::Errno,
    net::{RecvFlags, SendFlags, recv, send},
};

const ALPN: &[u8] = b"x";

/// A datagram with a short header, for no connection; the third byte of its connection ID is `worker`.
const fn stray(worker: u8) -> [u8; 40] {
    let mut datagram = [0x55; 40];
    datagram[3] = worker;
    datagram
}

fn socket() -> Socket {
    let address = "127.0.0.1:0".parse().expect("an address");
    Socket::bind(address, &Options::default()).expect("a socket")
}

fn send_to(socket: &Socket, remote: SocketAddr, bytes: &[u8]) {
    let transmit = Transmit {
        remote,
        local: None,
        ecn: Ecn::NotEct,
        bytes,
        segment_len: bytes.len(),
    };
    socket.send(&transmit).expect("loopback accepts it");
}

fn connect(endpoint: &mut Endpoint, now: Time, local: SocketAddr, remote: SocketAddr) -> Handle {
    let config = Arc::new(Config::new("cubic".parse().expect("a spec")));
    let crypto = Arc::new(PlainClient::new(1, vec![ALPN.to_vec()]));
    let path = NetworkPath { local, remote };
    endpoint
        .connect(now, path, "x", &config, crypto, Vec::new())
        .expect("a connection")
}

fn server_endpoint() -> Endpoint {
    let config = Arc::new(Config::new("cubic".parse().expect("a spec")));
    let crypto = Arc::new(PlainServer::new(1, vec![ALPN.to_vec()]));
    Endpoint::new(EndpointConfig::server(config, crypto), [9; 32]).expect("an endpoint")
}

/// What the application has seen when its turn starts.
#[derive(Default)]
struct Seen {
    /// The number of this turn, from 1 on.
    turn: usize,
    /// The counters, as of the last time that the worker reported them.
    statistics: Statistics,
    commands: usize,
    closed: usize,
    send_errors: Vec<SocketAddr>,
}

/// An application whose turn is a closure.
struct Scripted<F> {
    seen: Seen,
    script: F,
    /// Asks for the counters in each turn. The worker has no reason to wait then.
    measures: Option<Remote<()>>,
    measured: Arc<Mutex<Statistics>>,
    end: Option<MeetOnDrop>,
}

/// Waits at a barrier when it is dropped, with the worker.
struct MeetOnDrop(Arc<Barrier>);

impl Drop for MeetOnDrop {
    fn drop(&mut self) {
        self.0.wait();
    }
}

impl<F: FnMut(&Seen, Time, &mut Endpoint) -> Next> Scripted<F> {
    fn new(script: F) -> Self {
        Self {
            seen: Seen::default(),
            script,
            measures: None,
            measured: Arc::default(),
            end: None,
        }
    }

    /// Asks for the counters at the start of the next turn.
    fn measure(&self) {
        if let Some(remote) = &self.measures {
            let measured = Arc::clone(&self.measured);
            assert!(remote.measure(move |now| *measured.lock().expect("no panic") = now));
        }
    }
}

impl<F: FnMut(&Seen, Time, &mut Endpoint) -> Next> Application for Scripted<F> {
    type Command = ();
    type Data = ();

    fn on_accepted(&mut self, _: Time, _: Handle, _: &mut Connection) {}

    fn on_ready(&mut self, _: Time, _: Handle, _: &mut Connection, (): &mut ()) {}

    fn on_closed(&mut self, _: Time, _: Closed) {
        self.seen.closed += 1;
    }

    fn on_command(&mut self, _: Time, _: &mut Endpoint, (): ()) {
        self.seen.commands += 1;
    }

    fn on_turn(&mut self, now: Time, endpoint: &mut Endpoint) -> Next {
        self.seen.turn += 1;
        self.seen.statistics = *self.measured.lock().expect("no panic");
        self.measure();
        (self.script)(&self.seen, now, endpoint)
    }

    fn on_send_error(&mut self, _: Time, path: &NetworkPath, _: &io::Error) {
        self.seen.send_errors.push(path.remote);
    }
}

const fn done() -> Next {
    Next {
        deadline: None,
        status: Status::Stopped,
    }
}

const fn wait_until(deadline: Time) -> Next {
    Next {
        deadline: Some(deadline),
        status: Status::Running,
    }
}

/// A deadline that no test reaches: it ends a wait that should not have started.
const LATE: Duration = Duration::from_secs(1);

fn run<F: FnMut(&Seen, Time, &mut Endpoint) -> Next>(
    socket: Socket,
    endpoint: Endpoint,
    application: Scripted<F>,
) -> (Statistics, Seen) {
    let worker = Worker::new(socket, endpoint, application, Clock::new()).expect("a worker");
    finish(worker)
}

/// The same with an application that sees the counters.
fn run_measured<F: FnMut(&Seen, Time, &mut Endpoint) -> Next>(
    socket: Socket,
    endpoint: Endpoint,
    application: Scripted<F>,
) -> (Statistics, Seen) {
    let mut worker = Worker::new(socket, endpoint, application, Clock::new()).expect("a worker");
    worker.application().measures = Some(worker.remote());
    worker.application().measure();
    finish(worker)
}

fn finish<F: FnMut(&Seen, Time, &mut Endpoint) -> Next>(
    mut worker: Worker<Scripted<F>>,
) -> (Statistics, Seen) {
    worker.run().expect("no error of the socket");
    let statistics = *worker.statistics();
    assert!(format!("{worker:?}").contains(&format!("{statistics:?}")));
    (statistics, std::mem::take(&mut worker.application().seen))
}

fn client_endpoint() -> Endpoint {
    Endpoint::new(EndpointConfig::client(), [9; 32]).expect("an endpoint")
}

/// Each datagram is sent when the previous one has been received, so each arrives in a receive of its own.
#[test]
fn each_datagram_and_each_receive_that_returns_one_are_counted() {
    const DATAGRAMS: u64 = 20;
    let (socket, peer) = (socket(), socket());
    let address = socket.local_address();
    let application = Scripted::new(move |seen, now, _| {
        if seen.turn as u64 > DATAGRAMS {
            return done();
        }
        send_to(&peer, address, &stray(0));
        wait_until(now + LATE)
    });
    let (statistics, _) = run(socket, client_endpoint(), application);
    let expected = Statistics {
        turns: DATAGRAMS + 1,
        receives: DATAGRAMS,
        datagrams_received: DATAGRAMS,
        idle: statistics.idle,
        ..Statistics::default()
    };
    assert_eq!(statistics, expected);
}

#[test]
fn a_turn_receives_at_most_two_batches() {
    const DATAGRAMS: u64 = 60;
    let (socket, peer) = (socket(), socket());
    for _ in 0..DATAGRAMS {
        send_to(&peer, socket.local_address(), &stray(0));
    }
    let most = 2 * Batch::new().capacity() as u64;
    let mut before = 0;
    let application = Scripted::new(move |seen, now, _| {
        let received = seen.statistics.datagrams_received;
        assert!(received <= before + most, "{received} after {before}");
        before = received;
        if received == DATAGRAMS {
            done()
        } else {
            wait_until(now)
        }
    });
    let (statistics, _) = run_measured(socket, client_endpoint(), application);
    assert!(statistics.turns >= DATAGRAMS.div_ceil(most));
}

#[test]
fn each_datagram_sent_is_counted_and_a_turn_sends_at_most_64() {
    const CONNECTIONS: usize = 100;
    let (socket, peer) = (socket(), socket());
    let (local, remote) = (socket.local_address(), peer.local_address());
    let mut sent = Vec::new();
    let application = Scripted::new(|seen, now, endpoint| {
        sent.push((seen.statistics.sends, seen.statistics.datagrams_sent));
        match seen.turn {
            1 => {
                for _ in 0..CONNECTIONS {
                    connect(endpoint, now, local, remote);
                }
                wait_until(now)
            }
            2 => wait_until(now),
            _ => done(),
        }
    });
    run_measured(socket, client_endpoint(), application);
    assert_eq!(sent, [(0, 0), (64, 64), (100, 100)]);
}

#[test]
fn a_worker_with_datagrams_left_to_send_does_not_wait() {
    let (socket, peer) = (socket(), socket());
    let (local, remote) = (socket.local_address(), peer.local_address());
    let application = Scripted::new(|seen, now, endpoint| {
        if seen.turn == 2 {
            return done();
        }
        for _ in 0..100 {
            connect(endpoint, now, local, remote);
        }
        wait_until(now + LATE)
    });
    let (statistics, _) = run(socket, client_endpoint(), application);
    assert_eq!((statistics.turns, statistics.idle), (2, Duration::ZERO));
    assert_eq!(statistics.datagrams_sent, 100);
}

/// An application that is done when its connections are closed has no deadline of its own.
#[test]
fn a_closed_connection_is_followed_by_a_turn_at_once() {
    let (socket, peer) = (socket(), socket());
    let (local, remote) = (socket.local_address(), peer.local_address());
    let application = Scripted::new(|seen, now, endpoint| {
        if seen.turn == 1 {
            let handle = connect(endpoint, now, local, remote);
            let connection = endpoint.connection(handle).expect("it is open");
            connection.close(now, 0);
        }
        Next {
            deadline: Some(now + LATE),
            status: Status::stopped_if(seen.closed == 1),
        }
    });
    let (statistics, _) = run(socket, client_endpoint(), application);
    assert_eq!((statistics.turns, statistics.idle), (2, Duration::ZERO));
}

/// The socket is one for IPv4 only.
#[test]
fn datagrams_that_cannot_be_sent_are_reported_and_counted() {
    let remotes: [SocketAddr; 3] =
        ["[::1]:1", "[::1]:2", "[::1]:3"].map(|remote| remote.parse().expect("an address"));
    let socket = socket();
    let local = socket.local_address();
    let application = Scripted::new(|seen, now, endpoint| {
        if seen.turn == 2 {
            return done();
        }
        for remote in remotes {
            connect(endpoint, now, local, remote);
        }
        wait_until(now)
    });
    let (statistics, seen) = run(socket, client_endpoint(), application);
    assert_eq!(seen.send_errors, remotes);
    assert_eq!(statistics.send_errors, 3);
    assert_eq!((statistics.sends, statistics.datagrams_sent), (0, 0));
}

#[test]
fn a_replaced_socket_still_sends_and_receives_for_its_connections() {
    let (old, new, peer) = (socket(), socket(), socket());
    let (from_old, from_new) = (old.local_address(), new.local_address());
    let remote = peer.local_address();
    let sender = socket();
    let next = NextSocket::default();
    next.set(new);
    let application = Scripted::new(move |seen, now, endpoint| {
        match seen.turn {
            1 => {
                connect(endpoint, now, from_old, remote);
                connect(endpoint, now, from_new, remote);
            }
            2..=5 => {}
            _ => return done(),
        }
        let receiver = if seen.turn % 2 == 0 {
            from_old
        } else {
            from_new
        };
        send_to(&sender, receiver, &stray(0));
        wait_until(now + LATE)
    });
    let worker = Worker::new(old, client_endpoint(), application, Clock::new());
    let (statistics, _) = finish(worker.expect("a worker").with_next_socket(next));
    assert_eq!((statistics.turns, statistics.datagrams_received), (6, 5));
    assert_eq!(statistics.datagrams_sent, 2);
    let mut sources = Vec::new();
    let (mut waiter, mut batch) = (Waiter::new().expect("a waiter"), Batch::new());
    while sources.len() < 2 {
        waiter.wait(&peer, false, None).expect("waited");
        peer.receive(&mut batch).expect("received");
        sources.extend(batch.received().map(|received| received.remote));
    }
    assert_eq!(sources, [from_old, from_new]);
}

/// A worker that receives datagrams of connections that it does not know, with a link to an earlier process.
fn relayed(link: &Arc<OwnedFd>, datagrams: u64) -> Statistics {
    let (socket, peer) = (socket(), socket());
    let address = socket.local_address();
    let peer = Arc::new(peer);
    let make = move |_| {
        let peer = Arc::clone(&peer);
        let script = move |seen: &Seen, now, _: &mut Endpoint| {
            if seen.turn as u64 > datagrams {
                return done();
            }
            send_to(&peer, address, &stray(0));
            wait_until(now + LATE)
        };
        Ok((server_endpoint(), Scripted::new(script)))
    };
    let steering = SteeringRule {
        byte: 2,
        workers: 1,
    };
    let pool = WorkerPool::start(vec![socket], steering, Clock::new(), Some(link), make);
    let mut ends = pool.expect("a pool").join().into_iter();
    ends.next().expect("a worker").expect("no error")
}

#[test]
fn datagrams_for_an_earlier_process_are_counted_and_so_are_those_that_its_link_drops() {
    let (later, earlier) = relay::link().expect("sockets");
    let later = Arc::new(later);
    let statistics = relayed(&later, 10);
    assert_eq!(statistics.datagrams_received, 10);
    assert_eq!((statistics.relayed, statistics.relays_dropped), (10, 0));
    let mut buffer = [0; 1000];
    let mut arrived = 0;
    while recv(&earlier, &mut buffer[..], RecvFlags::DONTWAIT).is_ok() {
        arrived += 1;
    }
    assert_eq!(arrived, 10);

    // Now the earlier process does not read.
    while send(&*later, &buffer, SendFlags::DONTWAIT) != Err(Errno::AGAIN) {}
    let statistics = relayed(&later, 10);
    assert_eq!((statistics.relayed, statistics.relays_dropped), (10, 10));

    drop(earlier);
    let statistics = relayed(&later, 10);
    assert_eq!(statistics.datagrams_received, 10);
    assert_eq!((statistics.relayed, statistics.relays_dropped), (0, 0));
}

type Script = Box<dyn FnMut(&Seen, Time, &mut Endpoint) -> Next>;

/// The counters of two workers. The first one receives datagrams of the second one's connections: while the second one is in
/// its only turn, or after the second one has ended.
fn forwarded(datagrams: u64, has_ended: bool) -> [Statistics; 2] {
    let sockets = vec![socket(), socket()];
    let peer = socket();
    for _ in 0..datagrams {
        send_to(&peer, sockets[0].local_address(), &stray(1));
    }
    let steering = SteeringRule {
        byte: 2,
        workers: 2,
    };
    let both = Arc::new(Barrier::new(2));
    let make = move |number| {
        let barrier = Arc::clone(&both);
        let application = if number == 0 {
            barrier.wait();
            Scripted::new(Box::new(move |seen: &Seen, now, _: &mut Endpoint| {
                if seen.commands == 0 {
                    return wait_until(now);
                }
                if !has_ended {
                    barrier.wait();
                }
                done()
            }) as Script)
        } else if has_ended {
            let mut application =
                Scripted::new(Box::new(|_: &Seen, _, _: &mut Endpoint| done()) as Script);
            application.end = Some(MeetOnDrop(barrier));
            application
        } else {
            Scripted::new(Box::new(move |_: &Seen, _, _: &mut Endpoint| {
                barrier.wait();
                barrier.wait();
                done()
            }) as Script)
        };
        Ok((server_endpoint(), application))
    };
    let pool = WorkerPool::start(sockets, steering, Clock::new(), None, make).expect("a pool");
    let first = &pool.remotes()[0];
    loop {
        let (measured, measurement) = mpsc::channel();
        assert!(first.measure(move |now| measured.send(now).expect("a receiver")));
        let now = measurement.recv().expect("the worker runs");
        if now.datagrams_received == datagrams {
            break;
        }
    }
    first.send(()).expect("the worker runs");
    let mut ends = pool.join().into_iter();
    [(); 2].map(|()| ends.next().expect("two workers").expect("no error"))
}

#[test]
fn datagrams_in_the_queue_of_a_worker_that_is_done_are_counted() {
    let [first, second] = forwarded(30, false);
    assert_eq!(first.datagrams_received, 30);
    assert_eq!((first.forwarded, first.forwards_dropped), (30, 0));
    assert_eq!((second.forwards_received, second.turns), (30, 1));
}

#[test]
fn datagrams_for_a_worker_that_has_ended_count_as_dropped() {
    let [first, second] = forwarded(30, true);
    assert_eq!(first.datagrams_received, 30);
    assert_eq!((first.forwarded, first.forwards_dropped), (30, 30));
    assert_eq!((second.forwards_received, second.turns), (0, 1));
}

#[test]
fn wall_times_count_from_1970() {
    // November 2023.
    let earlier = Duration::from_secs(1_700_000_000);
    assert!(Clock::since_epoch() > earlier);
    assert!(Clock::wall_time() > WallTime::from_unix(earlier));
}

/// Another process reads the socket then.
#[test]
fn a_paused_worker_does_not_read_its_socket_until_it_resumes() {
    let (socket, peer) = (socket(), socket());
    let address = socket.local_address();
    let (remotes, remote) = mpsc::channel::<Remote<()>>();
    let mut received = Vec::new();
    let application = Scripted::new(|seen, now, _| {
        received.push(seen.statistics.datagrams_received);
        match seen.turn {
            1 => send_to(&peer, address, &stray(0)),
            5 => assert!(remote.recv().expect("a remote").resume()),
            _ if received.last() == Some(&1) => return done(),
            _ => {}
        }
        wait_until(now)
    });
    let mut worker =
        Worker::new(socket, client_endpoint(), application, Clock::new()).expect("a worker");
    let remote = worker.remote();
    let (paused, pause) = mpsc::channel();
    assert!(remote.pause(move |()| paused.send(()).expect("a receiver")));
    worker.application().measures = Some(remote.clone());
    worker.application().measure();
    remotes.send(remote).expect("a receiver");
    finish(worker);
    assert_eq!(pause.try_recv(), Ok(()));
    assert_eq!(received[..6], [0; 6]);
    assert_eq!(received.last(), Some(&1));
}
