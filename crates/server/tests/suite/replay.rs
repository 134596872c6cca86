//! What a server takes of clients that it met before, after a restart and a reload.

use std::{num::NonZeroUsize, sync::Arc};

use lastbyte_driver::{Application, Clock, Next, Status, Worker};
use lastbyte_http3 as http3;
use lastbyte_quic::{
    Time,
    connection::{Config, Connection, Event, NetworkPath, Stage},
    crypto::tls::TlsClient,
    endpoint::{Closed, Endpoint, EndpointConfig, Handle, RetryPolicy},
};
use lastbyte_server::{Identity, Settings, Site};
use lastbyte_udp::{Options, Socket};

use crate::serving::{PATIENCE, Serving, identity, settings};

/// How a connection came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// With a certificate.
    Full,
    /// Resumed; 0-RTT was offered and refused.
    Resumed,
    /// Resumed; 0-RTT was offered and accepted.
    ZeroRtt,
}

/// A client that remembers sessions and tokens.
struct Client {
    crypto: Arc<TlsClient>,
    token: Vec<u8>,
}

/// One connection, until it has what it wants for the next.
struct Visit {
    crypto: Arc<TlsClient>,
    path: NetworkPath,
    begun: Option<Handle>,
    was_accepted: Option<bool>,
    is_resumed: bool,
    token: Vec<u8>,
    next_token: Option<Vec<u8>>,
    was_retried: bool,
    is_done: bool,
    deadline: Time,
}

impl Application for Visit {
    type Command = ();
    type Data = ();

    fn on_accepted(&mut self, _: Time, _: Handle, _: &mut Connection) {}

    fn on_ready(&mut self, now: Time, _: Handle, connection: &mut Connection, (): &mut ()) {
        while let Some(event) = connection.poll_event() {
            match event {
                Event::ZeroRtt { is_accepted } => self.was_accepted = Some(is_accepted),
                Event::NewToken(token) => self.next_token = Some(token),
                _ => {}
            }
        }
        let is_ready = connection.stage() == Stage::Confirmed
            && connection.session().tickets_received() > 0
            && self.next_token.is_some();
        if is_ready && !self.is_done {
            self.is_done = true;
            self.is_resumed = connection.session().is_resumed() == Some(true);
            let peer = connection.peer_parameters().expect("confirmed");
            self.was_retried = peer.retry_source_connection_id.is_some();
            connection.close(now, 0);
        }
    }

    fn on_closed(&mut self, _: Time, closed: Closed) {
        assert!(self.is_done, "{:?}", closed.connection.close_reason());
    }

    fn on_command(&mut self, _: Time, _: &mut Endpoint, (): ()) {}

    fn on_turn(&mut self, now: Time, endpoint: &mut Endpoint) -> Next {
        if self.begun.is_none() {
            let config = Arc::new(Config::new("cubic".parse().expect("a spec")));
            let (crypto, token) = (self.crypto.clone(), self.token.clone());
            let handle = endpoint.connect(now, self.path, "localhost", &config, crypto, token);
            self.begun = Some(handle.expect("a connection"));
        }
        assert!(now < self.deadline, "neither ticket nor token came");
        Next {
            deadline: Some(self.deadline),
            status: Status::stopped_if(self.is_done),
        }
    }
}

impl Client {
    fn of(serving: &Serving) -> Self {
        let mut tls = (*serving.client(&[&rustls::version::TLS13])).clone();
        tls.alpn_protocols = vec![http3::ALPN.to_vec()];
        tls.enable_early_data = true;
        Self {
            crypto: Arc::new(TlsClient::new(tls).expect("for QUIC")),
            token: Vec::new(),
        }
    }

    /// Connects to a server. Returns the kind of handshake, and whether a Retry validated its address.
    fn visit(&mut self, serving: &Serving) -> (Kind, bool) {
        let local = "127.0.0.1:0".parse().expect("an address");
        let socket = Socket::bind(local, &Options::default()).expect("a socket");
        let clock = Clock::new();
        let visit = Visit {
            crypto: Arc::clone(&self.crypto),
            path: NetworkPath {
                local: socket.local_address(),
                remote: serving.address(),
            },
            begun: None,
            was_accepted: None,
            is_resumed: false,
            token: std::mem::take(&mut self.token),
            next_token: None,
            was_retried: false,
            is_done: false,
            deadline: clock.now() + PATIENCE,
        };
        let mut seed = [0; 32];
        aws_lc_rs::rand::fill(&mut seed).expect("random");
        let endpoint = Endpoint::new(EndpointConfig::client(), seed).expect("an endpoint");
        let mut worker = Worker::new(socket, endpoint, visit, clock).expect("a worker");
        worker.run().expect("it runs");
        let visit = worker.application();
        self.token = visit.next_token.take().expect("it came");
        let kind = match (visit.is_resumed, visit.was_accepted) {
            (false, None | Some(false)) => Kind::Full,
            (true, Some(false)) => Kind::Resumed,
            (true, Some(true)) => Kind::ZeroRtt,
            other => panic!("{other:?}"),
        };
        (kind, visit.was_retried)
    }
}

fn key(digit: char) -> Vec<u8> {
    format!("{digit}{}\n", "0123456789abcdef".repeat(4).split_off(1)).into_bytes()
}

/// A server of this identity and these ticket keys, as after a restart.
fn start(identity: &Identity, ticket_keys: Option<Vec<u8>>, change: fn(&mut Settings)) -> Serving {
    let mut settings = settings(Site::generated());
    settings.identities = vec![identity.clone()];
    settings.ticket_keys = ticket_keys;
    change(&mut settings);
    Serving::start(settings)
}

fn as_it_is(_: &mut Settings) {}

#[test]
fn rfc8446_8_2_after_a_restart_with_shared_keys_a_client_resumes_without_0rtt() {
    let identity = identity();
    let first = start(&identity, Some(key('a')), as_it_is);
    let mut client = Client::of(&first);
    assert_eq!(client.visit(&first).0, Kind::Full);
    assert_eq!(client.visit(&first).0, Kind::Resumed, "just started");
    first.end();
    let second = start(&identity, Some(key('a')), as_it_is);
    assert_eq!(client.visit(&second).0, Kind::Resumed, "just started");
    second.end();
}

#[test]
fn rfc8446_8_2_a_reload_that_brings_shared_keys_ends_0rtt_for_the_replay_window() {
    let serving = start(&identity(), None, as_it_is);
    let mut client = Client::of(&serving);
    assert_eq!(client.visit(&serving).0, Kind::Full);
    assert_eq!(client.visit(&serving).0, Kind::ZeroRtt, "keys of its own");
    serving.server.set_ticket_keys(&key('a')).expect("keys");
    assert_eq!(client.visit(&serving).0, Kind::Full, "the key is gone");
    assert_eq!(client.visit(&serving).0, Kind::Resumed);
    serving.end();
}

#[test]
fn rfc9000_8_1_3_tokens_open_at_every_worker_and_after_a_restart() {
    let several: fn(&mut Settings) = |settings| {
        settings.workers = NonZeroUsize::new(4);
        settings.retry = RetryPolicy::Always;
    };
    let identity = identity();
    let first = start(&identity, Some(key('a')), several);
    let mut client = Client::of(&first);
    assert!(client.visit(&first).1, "it has no token yet");
    // Of four workers with a key each, one in four would take it: all of twelve by chance once in 4^12.
    for _ in 0..12 {
        assert!(!client.visit(&first).1, "it brought a token");
    }
    let old = client.token.clone();
    assert!(!client.visit(&first).1);
    client.token = old;
    assert!(client.visit(&first).1, "each token counts once");
    first.end();
    let second = start(&identity, Some(key('a')), several);
    assert!(!client.visit(&second).1, "the keys are the same");
    second.end();
    let other = start(&identity, None, several);
    assert!(client.visit(&other).1, "these are its own");
    for _ in 0..12 {
        assert!(!client.visit(&other).1, "of one process");
    }
    other.end();
}

#[test]
fn rfc9000_8_1_3_a_reload_replaces_the_keys_of_tokens() {
    let retries: fn(&mut Settings) = |settings| settings.retry = RetryPolicy::Always;
    let serving = start(&identity(), Some(key('a')), retries);
    let mut client = Client::of(&serving);
    assert!(client.visit(&serving).1, "it has no token yet");
    let keys = [key('b'), key('a')].concat();
    serving.server.set_ticket_keys(&keys).expect("keys");
    assert!(!client.visit(&serving).1, "the earlier key still opens it");
    serving.server.set_ticket_keys(&key('c')).expect("keys");
    assert!(client.visit(&serving).1, "the keys are gone");
    serving.end();
}
