use std::{
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use lastbyte_quic::{
    connection::{Config, Connection},
    crypto::plain::PlainClient,
    endpoint::{Closed, EndpointConfig, Handle},
};
use lastbyte_udp::Options;

use super::*;
use crate::{Next, Status};

/// Asks for deadlines until it is done.
struct Deadlines<F> {
    /// The next deadline, by the number of turns so far; `None` ends it.
    next: F,
    turns: u64,
    commands: u64,
}

impl<F: FnMut(Time, u64, u64) -> Option<Time>> Application for Deadlines<F> {
    type Command = ();
    type Data = ();

    fn on_accepted(&mut self, _: Time, _: Handle, _: &mut Connection) {
        unreachable!("no server");
    }

    fn on_ready(&mut self, _: Time, _: Handle, _: &mut Connection, (): &mut ()) {}

    fn on_closed(&mut self, _: Time, _: Closed) {}

    fn on_command(&mut self, _: Time, _: &mut Endpoint, (): ()) {
        self.commands += 1;
    }

    fn on_turn(&mut self, now: Time, _: &mut Endpoint) -> Next {
        self.turns += 1;
        let deadline = (self.next)(now, self.turns, self.commands);
        Next {
            deadline,
            status: Status::stopped_if(deadline.is_none()),
        }
    }
}

fn worker<F: FnMut(Time, u64, u64) -> Option<Time>>(next: F) -> Worker<Deadlines<F>> {
    let address = "127.0.0.1:0".parse().expect("an address");
    let socket = Socket::bind(address, &Options::default()).expect("a socket");
    let endpoint = Endpoint::new(EndpointConfig::client(), [9; 32]).expect("an endpoint");
    let application = Deadlines {
        next,
        turns: 0,
        commands: 0,
    };
    Worker::new(socket, endpoint, application, Clock::new()).expect("a worker")
}

#[test]
fn a_worker_with_work_that_is_due_does_not_wait() {
    let mut worker = worker(|now, turns, _| (turns < 1000).then_some(now));
    worker.run().expect("no error of the socket");
    let statistics = worker.statistics();
    assert_eq!(statistics.turns, 1000);
    assert_eq!(statistics.idle, Duration::ZERO);
}

#[test]
fn a_worker_waits_for_a_deadline_in_one_turn() {
    const WAIT: Duration = Duration::from_millis(20);
    let mut first = None;
    let mut worker = worker(move |now, _, _| {
        let deadline = *first.get_or_insert(now) + WAIT;
        (now < deadline).then_some(deadline)
    });
    worker.run().expect("no error of the socket");
    let statistics = worker.statistics();
    // The kernel may end a wait early, by less than its precision.
    assert!((2..=3).contains(&statistics.turns), "{statistics:?}");
    assert!(statistics.idle > WAIT / 2, "{statistics:?}");
}

#[test]
fn commands_reach_a_worker_that_always_has_work() {
    let (started, starts) = mpsc::channel();
    let mut worker = worker(move |now, turns, commands| {
        if turns == 100 {
            started.send(()).expect("a receiver");
        }
        (commands == 0).then_some(now)
    });
    let remote = worker.remote();
    let sender = thread::Builder::new()
        .spawn(move || {
            starts.recv().expect("the worker runs");
            remote.send(()).expect("a receiver");
        })
        .expect("a thread");
    worker.run().expect("no error of the socket");
    sender.join().expect("no panic");
    assert_eq!(worker.application().commands, 1);
}

/// Opens connections in its only turn.
struct Opening {
    path: NetworkPath,
    connections: u64,
}

impl Application for Opening {
    type Command = ();
    type Data = ();

    fn on_accepted(&mut self, _: Time, _: Handle, _: &mut Connection) {
        unreachable!("no server");
    }

    fn on_ready(&mut self, _: Time, _: Handle, _: &mut Connection, (): &mut ()) {}

    fn on_closed(&mut self, _: Time, _: Closed) {}

    fn on_command(&mut self, _: Time, _: &mut Endpoint, (): ()) {}

    fn on_turn(&mut self, now: Time, endpoint: &mut Endpoint) -> Next {
        let config = Arc::new(Config::new("cubic".parse().expect("a spec")));
        for number in 0..self.connections {
            let crypto = Arc::new(PlainClient::new(number, vec![b"x".to_vec()]));
            endpoint
                .connect(now, self.path, "x", &config, crypto, Vec::new())
                .expect("a connection");
        }
        Next {
            deadline: None,
            status: Status::Stopped,
        }
    }
}

/// The packets of a turn that closes many connections are more than the packets that a turn sends.
#[test]
fn a_worker_that_is_done_sends_what_is_left() {
    const CONNECTIONS: u64 = 500;
    let address = "127.0.0.1:0".parse().expect("an address");
    let peer = Socket::bind(address, &Options::default()).expect("a socket");
    let socket = Socket::bind(address, &Options::default()).expect("a socket");
    let endpoint = Endpoint::new(EndpointConfig::client(), [9; 32]).expect("an endpoint");
    let application = Opening {
        path: NetworkPath {
            local: socket.local_address(),
            remote: peer.local_address(),
        },
        connections: CONNECTIONS,
    };
    let mut worker = Worker::new(socket, endpoint, application, Clock::new()).expect("a worker");
    worker.run().expect("no error of the socket");
    // A turn sends at most 64 times.
    assert_eq!(worker.statistics().turns, CONNECTIONS.div_ceil(64));
    assert!(worker.statistics().datagrams_sent >= CONNECTIONS);
}

/// A socket on all addresses receives on each of them, and answers from it.
#[test]
fn the_local_address_of_a_path_is_the_one_that_a_datagram_was_sent_to() {
    let socket: SocketAddr = "0.0.0.0:443".parse().expect("an address");
    let expected: SocketAddr = "192.0.2.1:443".parse().expect("an address");
    assert_eq!(local(socket, Some(expected.ip())), expected);
    assert_eq!(local(socket, None), socket);
}
