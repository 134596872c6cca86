//! What the engine allocates, and what it does with a server that misbehaves.

#[expect(dead_code, reason = "shared with other tests, which use all of it")]
#[path = "../../../client/tests/suite/server.rs"]
mod server;

use core::sync::atomic::AtomicBool;

use lastbyte_client::Trust;
use lastbyte_quic::{crypto::ClientCrypto, endpoint::RetryPolicy};
use lastbyte_testkit::{CountingAllocator, allocation_count};
use rustls::client::Resumption;

use self::server::Server;
use super::*;
use crate::{
    dispatcher::{Amount, Arrivals, Share},
    mix::Mix,
    settings::{Control, Request, Settings},
};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn settings(server: &Server, path: &str, requests: u64) -> Settings {
    let spec = "cubic".parse().expect("a spec");
    let mut client = lastbyte_client::Settings::new(Config::new(spec));
    client.trust = Trust::Authorities(server.certificate.clone().into_bytes());
    // The server listens on no other.
    client.family = lastbyte_client::Family::Ipv4;
    Settings {
        client,
        version: crate::settings::Version::Http3,
        requests: vec![Request {
            url: server.url(path).parse().expect("a URL"),
            weight: 1,
        }],
        method: None,
        fields: http3::Fields::new().with("user-agent", "test"),
        body: None,
        amount: Amount::Requests(requests),
        arrivals: Arrivals::Closed,
        connections: 2,
        streams: 10,
        threads: 1,
        timeout: Duration::from_secs(10),
        active_timeout: None,
        handshake: Handshake::Full,
        mix: None,
        migrate: None,
        migrate_to: Vec::new(),
        seed: 1,
        network: None,
        connection_log: None,
    }
}

/// Runs in the calling thread. Returns the results, and the number of allocations of this thread.
fn run_here(settings: Settings) -> (ThreadResult, u64) {
    let target = Target::find(&settings).expect("an address");
    let tls = Tls::new(&settings.client).expect("TLS");
    let clock = Clock::new();
    let share = Share {
        thread: 0,
        threads: 1,
        connections: settings.connections,
    };
    let stop = Arc::new(AtomicBool::new(false));
    let control = Arc::new(Control::new(1, stop));
    let state = ThreadState::new(Arc::new(settings), control, share, clock.now());
    let before = allocation_count();
    let result = run(state, &target, &tls, clock).expect("a run");
    (result, allocation_count() - before)
}

/// Sends requests over one connection and does nothing else: what the transport and `http3` allocate for a request.
struct Plain {
    path: NetworkPath,
    transport: Arc<Config>,
    crypto: Arc<dyn ClientCrypto>,
    http3: http3::Connection,
    request: http3::Request,
    handle: Option<Handle>,
    is_open: bool,
    in_flight: usize,
    left: u64,
}

struct Drain;

impl BodySink for Drain {
    fn body(&mut self, _: StreamId, bytes: &[u8]) -> usize {
        bytes.len()
    }
}

impl Application for Plain {
    type Command = ();
    type Data = ();

    fn on_accepted(&mut self, _: Time, _: Handle, _: &mut Connection) {}

    fn on_datagram(
        &mut self,
        now: Time,
        _: Handle,
        connection: &mut Connection,
        (): &mut (),
        datagram: Datagram<'_>,
    ) {
        let Datagram { path, ecn, bytes } = datagram;
        let mut sink = Drain;
        let mut sink = self.http3.sink(&mut sink);
        connection.handle_datagram(now, &path, ecn, bytes, &mut sink);
    }

    fn on_ready(&mut self, now: Time, _: Handle, connection: &mut Connection, (): &mut ()) {
        while let Some(event) = connection.poll_event() {
            self.is_open |= matches!(event, Event::HandshakeComplete);
            assert!(!matches!(event, Event::Closed(_)), "{event:?}");
        }
        while let Some(event) = self.http3.poll(connection, now) {
            match event {
                http3::Event::Response { response, .. } => {
                    self.http3.recycle(response.into_fields());
                }
                http3::Event::Data { stream } => {
                    let _ = self
                        .http3
                        .read(connection, now, stream, &mut |bytes| bytes.len());
                }
                http3::Event::Finished { .. } => self.in_flight -= 1,
                _ => {}
            }
        }
    }

    fn on_closed(&mut self, _: Time, _: Closed) {}

    fn on_command(&mut self, _: Time, _: &mut Endpoint, (): ()) {}

    fn on_turn(&mut self, now: Time, endpoint: &mut Endpoint) -> Next {
        let handle = *self.handle.get_or_insert_with(|| {
            let crypto = Arc::clone(&self.crypto);
            let name = "localhost";
            let handle =
                endpoint.connect(now, self.path, name, &self.transport, crypto, Vec::new());
            handle.expect("a connection")
        });
        let quic = endpoint.connection(handle).expect("a connection");
        while self.is_open && self.in_flight < 10 && self.left > 0 {
            if self
                .http3
                .request(quic, &self.request, Body::Empty)
                .is_err()
            {
                break;
            }
            self.in_flight += 1;
            self.left -= 1;
        }
        let is_done = self.left == 0 && self.in_flight == 0;
        if is_done {
            quic.close(now, Code::NO_ERROR.get());
        }
        Next {
            deadline: None,
            status: Status::stopped_if(is_done),
        }
    }
}

/// Sends this number of requests without the engine. Returns the number of allocations of this thread.
fn run_plain(server: &Server, requests: u64) -> u64 {
    let settings = settings(server, "100", requests);
    let tls = Tls::new(&settings.client).expect("TLS");
    let target = Target::find(&settings).expect("an address");
    let any = (Ipv4Addr::UNSPECIFIED, 0).into();
    let socket = Socket::bind(any, &Options::default()).expect("a socket");
    let authority = settings.requests[0].url.origin().authority();
    let plain = Plain {
        path: NetworkPath {
            local: socket.local_address(),
            remote: target.address,
        },
        transport: Arc::new(settings.client.transport.clone()),
        crypto: tls.quic(Resumption::disabled(), false).expect("TLS"),
        http3: http3::Connection::client(&settings.client.http3),
        request: http3::Request::new("GET", "https", &authority, "/100").with("user-agent", "test"),
        handle: None,
        is_open: false,
        in_flight: 0,
        left: requests,
    };
    let endpoint = Endpoint::new(EndpointConfig::client(), [7; 32]).expect("an endpoint");
    let mut worker = Worker::new(socket, endpoint, plain, Clock::new()).expect("a worker");
    let before = allocation_count();
    worker.run().expect("a run");
    allocation_count() - before
}

/// What the transport and `http3` allocate for a stream is all that a request costs: the engine adds nothing.
#[test]
fn the_engine_allocates_nothing_for_a_request() {
    let server = Server::start("localhost", RetryPolicy::Never);
    let with_engine = |requests| {
        let (result, allocations) = run_here(settings(&server, "100", requests));
        assert_eq!(result.recorder.counts.succeeded, requests);
        allocations
    };
    // Buffers have grown after the first 2000.
    let each = |counted: &dyn Fn(u64) -> u64| {
        let (before, after) = (counted(2000), counted(12_000));
        after.saturating_sub(before) as f64 / 10_000.0
    };
    let with_engine = each(&with_engine);
    let plain = each(&|requests| run_plain(&server, requests));
    assert!(plain > 0.0);
    assert!(
        with_engine < plain + 0.5,
        "{with_engine} allocations per request, {plain} without the engine"
    );
}

/// Each request of a run ends, and is counted by how it ended.
#[test]
fn faults_of_the_server_are_counted() {
    let server = Server::start("localhost", RetryPolicy::Never);
    for path in ["reset", "close", "short", "reject", "never"] {
        let mut settings = settings(&server, path, 8);
        settings.streams = 2;
        settings.timeout = Duration::from_millis(200);
        let (result, _) = run_here(settings);
        let counts = result.recorder.counts;
        assert_eq!(
            (counts.done, counts.failed, counts.errored),
            (0, 8, 8),
            "{path}"
        );
        let timed_out = if path == "never" { 8 } else { 0 };
        assert_eq!(counts.timed_out, timed_out, "{path}");
        assert!(!result.recorder.errors.is_empty(), "{path}");
        // A connection on which the server refuses requests is replaced.
        let is_lost = path == "close" || path == "reject";
        assert_eq!(counts.disconnected > 0, is_lost, "{path}");
        assert_eq!(counts.retried > 0, path == "reject", "{path}");
        assert!(counts.retried <= counts.started, "{path}: {counts:?}");
    }
}

/// A request that the server refuses is sent again, over another connection, in closed and open loops.
#[test]
fn rfc9114_4_1_1_a_rejected_request_is_sent_again_over_another_connection() {
    for arrivals in [Arrivals::Closed, Arrivals::Constant { rate: 500.0 }] {
        for mix in [None, Some(Mix::only(Handshake::Full))] {
            let server = Server::start("localhost", RetryPolicy::Never);
            let mut settings = settings(&server, "reject-once", 8);
            settings.streams = if mix.is_some() { 1 } else { 2 };
            settings.connections = 1;
            settings.arrivals = arrivals;
            settings.mix = mix;
            let (result, _) = run_here(settings);
            let counts = result.recorder.counts;
            // Its second response has status 404.
            let found = (counts.started, counts.done, counts.errored, counts.retried);
            assert_eq!(found, (8, 8, 0, 1), "{arrivals:?} {mix:?}: {counts:?}");
            assert!(counts.connected >= 2, "{counts:?}");
        }
    }
}

/// A server that refuses everything for the whole time receives each request at most twice, and connections ever less often.
#[test]
fn a_server_that_refuses_everything_receives_each_request_at_most_twice() {
    let server = Server::start("localhost", RetryPolicy::Never);
    for arrivals in [Arrivals::Closed, Arrivals::Constant { rate: 100.0 }] {
        let mut settings = settings(&server, "reject", 0);
        settings.amount = Amount::Time {
            warm_up: Duration::ZERO,
            measured: Duration::from_millis(1500),
        };
        settings.arrivals = arrivals;
        settings.connections = 1;
        let (result, _) = run_here(settings);
        let counts = result.recorder.counts;
        assert!(counts.retried > 0 && counts.failed > 0, "{counts:?}");
        assert!(counts.retried <= counts.started, "{counts:?}");
        assert_eq!(
            counts.failed + counts.unfinished,
            counts.started,
            "{counts:?}"
        );
        assert_eq!(counts.succeeded, 0, "{counts:?}");
        // Pauses of 100, 200, 400 and 800 ms.
        assert!(counts.connected <= 6, "{counts:?}");
    }
}

/// After GOAWAY the rest of the requests go over another connection, and none is lost.
#[test]
fn a_connection_that_the_server_retires_is_replaced() {
    let server = Server::start("localhost", RetryPolicy::Never);
    let mut settings = settings(&server, "goaway", 6);
    settings.streams = 1;
    let (result, _) = run_here(settings);
    let counts = result.recorder.counts;
    assert_eq!(counts.succeeded + counts.failed, 6, "{counts:?}");
    assert!(counts.succeeded >= 3, "{counts:?}");
    assert!(counts.connected > 2, "{counts:?}");
}

/// A request that waits for its handshake is sent as soon as that is complete, and not when the next request is due.
#[test]
fn a_pending_request_does_not_wait_for_the_next_arrival() {
    let server = Server::start("localhost", RetryPolicy::Never);
    let mut settings = settings(&server, "100", 3);
    // One a second.
    settings.arrivals = Arrivals::Constant { rate: 1.0 };
    settings.streams = 1;
    settings.mix = Some(Mix::only(Handshake::Full));
    let (result, _) = run_here(settings);
    assert_eq!(result.recorder.counts.succeeded, 3);
    let slowest = result.recorder.latency.iter().last();
    let (slowest, _) = slowest.expect("latencies");
    assert!(slowest < 900_000_000, "{slowest} ns");
}
