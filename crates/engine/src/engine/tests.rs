//! Engines in virtual time, with the plaintext stand-in for TLS.

use core::net::SocketAddr;
use std::sync::Arc;

use lastbyte_quic::{
    close::CloseReason,
    connection::{Config, Connection},
    crypto::plain::{PlainClient, PlainServer},
    endpoint::{Closed, EndpointConfig, Handle},
};

use super::*;

const ALPN: &[u8] = b"x";

/// An application that records its calls, whose turns follow its test.
#[derive(Default)]
struct App {
    calls: Vec<&'static str>,
    next: Next,
    /// Connections to open in the next turn.
    opens: usize,
    /// Whether connections are to be closed in the next turn.
    closes: bool,
    handles: Vec<Handle>,
    closed: Vec<Option<CloseReason>>,
    errors: usize,
}

impl Application for App {
    type Command = Next;
    type Data = ();

    fn on_accepted(&mut self, _: Time, handle: Handle, _: &mut Connection) {
        self.calls.push("accepted");
        self.handles.push(handle);
    }

    fn on_ready(&mut self, _: Time, _: Handle, connection: &mut Connection, (): &mut ()) {
        self.calls.push("ready");
        while connection.poll_event().is_some() {}
    }

    fn on_closed(&mut self, _: Time, closed: Closed) {
        self.calls.push("closed");
        self.closed.push(closed.connection.close_reason());
    }

    fn on_command(&mut self, _: Time, _: &mut Endpoint, next: Next) {
        self.calls.push("command");
        self.next = next;
    }

    fn on_turn(&mut self, now: Time, endpoint: &mut Endpoint) -> Next {
        self.calls.push("turn");
        let config = config();
        for number in 0..core::mem::take(&mut self.opens) {
            let crypto = Arc::new(PlainClient::new(number as u64, vec![ALPN.to_vec()]));
            let handle = endpoint
                .connect(now, path(), "x", &config, crypto, Vec::new())
                .expect("a connection");
            self.handles.push(handle);
        }
        if core::mem::take(&mut self.closes) {
            for handle in &self.handles {
                if let Some(connection) = endpoint.connection(*handle) {
                    connection.close(now, 0x100);
                }
            }
        }
        self.next
    }

    fn on_send_error(&mut self, _: Time, _: &NetworkPath, _: &io::Error) {
        self.errors += 1;
    }
}

fn config() -> Arc<Config> {
    Arc::new(Config::new("cubic".parse().expect("a spec")))
}

fn path() -> NetworkPath {
    NetworkPath {
        local: SocketAddr::from(([192, 0, 2, 1], 50_000)),
        remote: SocketAddr::from(([192, 0, 2, 2], 443)),
    }
}

fn client() -> Engine<App> {
    let endpoint = Endpoint::new(EndpointConfig::client(), [1; 32]).expect("an endpoint");
    Engine::new(endpoint, App::default())
}

fn server() -> Engine<App> {
    let crypto = Arc::new(PlainServer::new(7, vec![ALPN.to_vec()]));
    let config = EndpointConfig::server(config(), crypto);
    let endpoint = Endpoint::new(config, [2; 32]).expect("an endpoint");
    Engine::new(endpoint, App::default())
}

fn at(millis: u64) -> Time {
    Time::from_nanos(1_000_000_000) + Duration::from_millis(millis)
}

/// A whole turn. Returns the datagrams.
fn turn(engine: &mut Engine<App>, now: Time) -> (Vec<Vec<u8>>, Next) {
    engine.run(now);
    let mut buffer = vec![0; 65_000];
    let mut sent = Vec::new();
    while let Some(transmit) = engine.poll_transmit(now, &mut buffer) {
        let datagrams = buffer[..transmit.len].chunks(transmit.segment_len);
        sent.extend(datagrams.map(<[u8]>::to_vec));
    }
    (sent, engine.finish(now, false))
}

/// Both ends of a connection after its handshake.
fn connected() -> (Engine<App>, Engine<App>, Time) {
    let (mut client, mut server) = (client(), server());
    client.application().opens = 1;
    let mut now = at(0);
    for millis in 1..10 {
        for datagram in turn(&mut client, now).0 {
            pass(&mut server, now, datagram, true);
        }
        now = at(10 * millis);
        for datagram in turn(&mut server, now).0 {
            pass(&mut client, now, datagram, false);
        }
    }
    for engine in [&mut client, &mut server] {
        turn(engine, now);
        engine.application().calls.clear();
    }
    (client, server, now)
}

fn pass(to: &mut Engine<App>, now: Time, mut datagram: Vec<u8>, to_server: bool) {
    let NetworkPath { local, remote } = path();
    let mut path = path();
    if to_server {
        (path.local, path.remote) = (remote, local);
    }
    to.receive(now, path, Ecn::NotEct, &mut datagram);
}

const STOPPED: Next = Next {
    deadline: None,
    status: Status::Stopped,
};

#[test]
fn a_turn_has_its_order() {
    let (mut client, mut server) = (client(), server());
    client.application().opens = 1;
    let (sent, next) = turn(&mut client, at(0));
    assert_eq!(client.application().calls, ["turn"]);
    assert!(next.deadline.is_some_and(|deadline| deadline > at(0)));
    for datagram in sent {
        pass(&mut server, at(5), datagram, true);
    }
    server.command(at(5), Next::default());
    let (sent, _) = turn(&mut server, at(5));
    let calls = ["accepted", "command", "ready", "turn"];
    assert_eq!(server.application().calls, calls);
    assert!(!sent.is_empty());
}

#[test]
fn the_next_turn_is_due_at_the_earliest_deadline() {
    let (mut client, _, now) = connected();
    let own = turn(&mut client, now).1.deadline.expect("an idle timeout");
    let early = now + Duration::from_millis(1);
    for (deadline, expected) in [
        (None, own),
        (Some(early), early),
        (Some(own + Duration::from_secs(9)), own),
    ] {
        let next = Next {
            deadline,
            status: Status::Running,
        };
        client.command(now, next);
        let (_, next) = turn(&mut client, now);
        assert_eq!(next.deadline, Some(expected));
        assert_eq!(next.status, Status::Running);
    }
}

/// An application that waits for the end of a connection receives it in the turn in which the connection ends, and has its next
/// turn without a wait.
#[test]
fn a_turn_follows_the_end_of_a_connection() {
    let (mut client, _, now) = connected();
    client.application().closes = true;
    let mut next = turn(&mut client, now).1;
    let mut due = now;
    while client.application().closed.is_empty() {
        due = next.deadline.expect("the end of the closing period");
        next = turn(&mut client, due).1;
    }
    assert_eq!(next.deadline, Some(due));
    assert_eq!(client.application().calls.last(), Some(&"closed"));
    assert_eq!(turn(&mut client, at(900_000)).1.deadline, None);
}

/// The packets of a turn that closes many connections may be more than a shell sends in a turn.
#[test]
fn an_engine_is_over_when_nothing_is_left_to_send() {
    let mut client = client();
    client.application().opens = 100;
    client.application().next = STOPPED;
    let mut buffer = vec![0; 65_000];
    let mut turns = 0;
    loop {
        turns += 1;
        client.run(at(0));
        let all = (0..30).all(|_| client.poll_transmit(at(0), &mut buffer).is_some());
        let next = client.finish(at(0), false);
        if !all {
            assert_eq!(next.status, Status::Stopped);
            break;
        }
        assert_eq!(next.status, Status::Running, "turn {turns}");
        assert_eq!(next.deadline, Some(Time::ZERO), "there is more to send");
    }
    assert_eq!(turns, 4);
    // It has had one turn.
    let calls = &client.application().calls;
    assert_eq!(calls.iter().filter(|call| **call == "turn").count(), 1);
}

/// A shell that has sent as much as it does in a turn cannot know whether that was all.
#[test]
fn an_engine_whose_last_packet_filled_a_turn_ends_at_once() {
    let mut client = client();
    client.application().opens = 3;
    client.application().next = STOPPED;
    let mut buffer = vec![0; 65_000];
    client.run(at(0));
    for _ in 0..3 {
        assert!(client.poll_transmit(at(0), &mut buffer).is_some());
    }
    let next = client.finish(at(0), false);
    assert_eq!(next.status, Status::Running);
    assert!(next.deadline.is_some_and(|deadline| deadline <= at(0)));
    let (sent, next) = turn(&mut client, at(0));
    assert_eq!((sent.len(), next.status), (0, Status::Stopped));
}

/// Its last packets are all that is left.
#[test]
fn a_stopped_server_accepts_no_connection() {
    let (mut client, mut server) = (client(), server());
    client.application().opens = 1;
    server.command(at(0), STOPPED);
    turn(&mut server, at(0));
    for datagram in turn(&mut client, at(0)).0 {
        pass(&mut server, at(5), datagram, true);
    }
    turn(&mut server, at(5));
    assert_eq!(server.application().calls, ["command", "turn"]);
}

/// A socket that accepts nothing delays the end, up to a limit.
#[test]
fn an_engine_ends_a_second_after_its_application_at_the_latest() {
    for status in [Status::Stopped, Status::Finished] {
        let mut client = client();
        client.application().opens = 1;
        client.application().next.status = status;
        let mut buffer = vec![0; 65_000];
        client.run(at(0));
        assert!(client.poll_transmit(at(0), &mut buffer).is_some());
        let next = client.finish(at(0), true);
        let limit = at(0) + DRAIN_MAX;
        assert_eq!(next.status, Status::Running);
        assert!(next.deadline.is_some_and(|it| at(0) < it && it <= limit));
        client.run(at(999));
        assert_eq!(client.finish(at(999), true).status, Status::Running);
        client.run(limit);
        assert_eq!(client.finish(limit, true).status, status);
    }
}

/// While the socket accepts nothing, data to send is no reason for a turn.
#[test]
fn a_blocked_socket_causes_no_turns() {
    let mut client = client();
    client.application().opens = 3;
    let mut buffer = vec![0; 65_000];
    client.run(at(0));
    assert!(client.poll_transmit(at(0), &mut buffer).is_some());
    let blocked = client.finish(at(0), true).deadline;
    assert_eq!(client.finish(at(0), false).deadline, Some(Time::ZERO));
    assert!(
        blocked.is_none_or(|deadline| deadline > at(0)),
        "{blocked:?}"
    );
}

/// A shell may go on although the application has finished, and the application may have something to do again.
#[test]
fn a_finished_application_has_further_turns() {
    let mut client = client();
    let finished = Next {
        deadline: Some(at(500)),
        status: Status::Finished,
    };
    client.command(at(0), finished);
    assert_eq!(turn(&mut client, at(0)).1, finished);
    assert_eq!(turn(&mut client, at(5000)).1, finished);
    client.command(at(5000), Next::default());
    assert_eq!(turn(&mut client, at(5000)).1, Next::default());
    client.command(at(5000), STOPPED);
    assert_eq!(turn(&mut client, at(5000)).1, STOPPED);
    client.command(at(5000), Next::default());
    assert_eq!(turn(&mut client, at(5000)).1, STOPPED);
    client.resume();
    assert_eq!(turn(&mut client, at(5000)).1, Next::default());
    let calls = &client.application().calls;
    assert_eq!(calls.iter().filter(|call| **call == "turn").count(), 5);
}

/// Deadlines of an application that has stopped count no more: it could never meet them.
#[test]
fn a_stopped_application_has_no_deadline() {
    let mut client = client();
    let stopped = Next {
        deadline: Some(at(0)),
        status: Status::Stopped,
    };
    client.command(at(0), stopped);
    assert_eq!(turn(&mut client, at(0)).1, STOPPED);
}

#[test]
fn the_other_end_learns_of_a_close_in_the_last_turn() {
    let (mut client, mut server, now) = connected();
    server.application().closes = true;
    server.application().next = STOPPED;
    let (sent, next) = turn(&mut server, now);
    assert_eq!(next.status, Status::Stopped);
    for datagram in sent {
        pass(&mut client, now, datagram, false);
    }
    let mut next = turn(&mut client, now).1;
    while client.application().closed.is_empty() {
        next = turn(&mut client, next.deadline.expect("the draining period")).1;
    }
    let reason = CloseReason::PeerApplication { code: 0x100 };
    assert_eq!(client.application().closed, [Some(reason)]);
}

#[test]
fn errors_of_the_socket_reach_the_application() {
    let mut client = client();
    let error = io::Error::from(io::ErrorKind::NetworkUnreachable);
    client.on_send_error(at(0), &path(), &error);
    assert_eq!(client.application().errors, 1);
}
