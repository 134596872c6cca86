use std::{
    cell::{Cell, RefCell},
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
    /// The length of a `ClientHello` in bytes.
    hello: u16,
    send_errors: u64,
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
            let mut crypto = PlainClient::new(number, vec![b"x".to_vec()]);
            crypto.sizes.client_hello = self.hello;
            endpoint
                .connect(now, self.path, "x", &config, Arc::new(crypto), Vec::new())
                .expect("a connection");
        }
        Next {
            deadline: None,
            status: Status::Stopped,
        }
    }

    fn on_send_error(&mut self, _: Time, _: &NetworkPath, _: &io::Error) {
        self.send_errors += 1;
    }
}

/// A worker that opens connections, and the socket of their server.
fn opening(connections: u64, hello: u16) -> (Worker<Opening>, Socket) {
    let address = "127.0.0.1:0".parse().expect("an address");
    let peer = Socket::bind(address, &Options::default()).expect("a socket");
    let socket = Socket::bind(address, &Options::default()).expect("a socket");
    let endpoint = Endpoint::new(EndpointConfig::client(), [9; 32]).expect("an endpoint");
    let application = Opening {
        path: NetworkPath {
            local: socket.local_address(),
            remote: peer.local_address(),
        },
        connections,
        hello,
        send_errors: 0,
    };
    let worker = Worker::new(socket, endpoint, application, Clock::new()).expect("a worker");
    (worker, peer)
}

/// The packets of a turn that closes many connections are more than the packets that a turn sends.
#[test]
fn a_worker_that_is_done_sends_what_is_left() {
    const CONNECTIONS: u64 = 500;
    let (mut worker, _peer) = opening(CONNECTIONS, 220);
    worker.run().expect("no error of the socket");
    // A turn sends at most 64 times.
    assert_eq!(worker.statistics().turns, CONNECTIONS.div_ceil(64));
    assert!(worker.statistics().datagrams_sent >= CONNECTIONS);
}

thread_local! {
    /// Sends until the socket is full, and how many of its datagrams the send that finds it full takes.
    static ROOM: Cell<Option<(u64, usize)>> = const { Cell::new(None) };
    /// The errors of the next sends, of which nothing arrives.
    static ERRORS: RefCell<Vec<SendError>> = const { RefCell::new(Vec::new()) };
}

/// Sends over the socket, unless the test says that it is full or fails.
pub(super) fn send(socket: &Socket, message: &lastbyte_udp::Transmit<'_>) -> Result<(), SendError> {
    if let Some(error) = ERRORS.with_borrow_mut(Vec::pop) {
        return Err(error);
    }
    let Some((sends, taken)) = ROOM.take() else {
        return socket.send(message);
    };
    if sends > 0 {
        ROOM.set(Some((sends - 1, taken)));
        return socket.send(message);
    }
    let sent = message.bytes.len().min(taken * message.segment_len);
    let part = lastbyte_udp::Transmit {
        bytes: &message.bytes[..sent],
        ..*message
    };
    socket.send(&part)?;
    Err(SendError::Full { sent })
}

/// The datagrams of a worker's only turn, as its peer receives them.
fn flight(room: Option<(u64, usize)>) -> (Vec<Vec<u8>>, Statistics) {
    let (mut worker, peer) = opening(10, 4000);
    ROOM.set(room);
    worker.run().expect("no error of the socket");
    assert_eq!(ROOM.take(), None, "it was full");
    let (mut arrived, mut batch) = (Vec::new(), Batch::new());
    // Over loopback, what was sent has arrived.
    while peer.receive(&mut batch).expect("received") > 0 {
        for received in batch.received() {
            let datagrams = received.bytes.chunks(received.segment_len);
            arrived.extend(datagrams.map(<[u8]>::to_vec));
        }
    }
    (arrived, *worker.statistics())
}

/// Of what is sent, the kernel may take a part. The rest is sent in its place once there is room, for which the worker waits.
#[test]
fn datagrams_that_a_full_socket_does_not_take_are_sent_when_there_is_room() {
    let (all, whole) = flight(None);
    assert_eq!(whole.datagrams_sent, all.len() as u64);
    assert!(all.len() > 30, "several in a send");
    for sends in [0, 4, whole.sends - 1] {
        for taken in [0, 2] {
            let (arrived, statistics) = flight(Some((sends, taken)));
            assert!(arrived == all, "{sends} {taken}: {statistics:?}");
            assert_eq!(statistics.sends_blocked, 1);
            assert_eq!(statistics.datagrams_sent, whole.datagrams_sent);
        }
    }
}

/// What the system drops is lost, like on the path: the application hears nothing of it, and the other connections send on.
#[test]
fn datagrams_that_cannot_be_sent_stop_no_other_connection() {
    let failed = || SendError::Failed(io::ErrorKind::PermissionDenied.into());
    for (error, expected) in [
        (SendError::Dropped, (1, 0, 0)),
        (SendError::TooLarge, (0, 1, 0)),
        (failed(), (0, 0, 1)),
    ] {
        let (mut worker, _peer) = opening(3, 220);
        ERRORS.set(vec![error]);
        worker.run().expect("no error of the socket");
        assert!(ERRORS.take().is_empty(), "it failed");
        let statistics = *worker.statistics();
        let counted = (
            statistics.datagrams_dropped,
            statistics.too_large,
            statistics.send_errors,
        );
        assert_eq!(counted, expected);
        assert_eq!(worker.application().send_errors, expected.2);
        assert_eq!((statistics.sends, statistics.turns), (2, 1));
        assert!(worker.waiting.is_none(), "nothing waits for room");
    }
}

/// Connections that have not moved send over the previous socket: that is the one whose room they wait for. Waiting for the other
/// one, which has room, would not be a wait.
#[test]
fn a_worker_waits_for_room_in_the_socket_that_is_full() {
    let (mut worker, peer) = opening(0, 220);
    let path = |socket: &Socket| NetworkPath {
        local: socket.local_address(),
        remote: peer.local_address(),
    };
    let (read, both) = (
        Wanted {
            read: true,
            write: false,
        },
        Wanted {
            read: true,
            write: true,
        },
    );
    assert_eq!(worker.wanted(), [read, read]);
    let address = "127.0.0.1:0".parse().expect("an address");
    let next = Socket::bind(address, &Options::default()).expect("a socket");
    let paths = [path(&next), path(&worker.socket)];
    worker.previous = Some(std::mem::replace(&mut worker.socket, next));
    for (path, expected) in paths.into_iter().zip([[both, read], [read, both]]) {
        let transmit = Transmit {
            path,
            ecn: Ecn::NotEct,
            len: 1200,
            segment_len: 1200,
        };
        worker.waiting = Some((transmit, 0));
        assert_eq!(worker.wanted(), expected);
    }
    // Another process reads the sockets.
    worker.is_receiving = false;
    assert_eq!(worker.wanted().map(|wanted| wanted.read), [false; 2]);
}

/// A socket on all addresses receives on each of them, and answers from it.
#[test]
fn the_local_address_of_a_path_is_the_one_that_a_datagram_was_sent_to() {
    let socket: SocketAddr = "0.0.0.0:443".parse().expect("an address");
    let expected: SocketAddr = "192.0.2.1:443".parse().expect("an address");
    assert_eq!(local(socket, Some(expected.ip())), expected);
    assert_eq!(local(socket, None), socket);
}
