//! What the engine allocates, and what it does with a server that misbehaves.

#[path = "../../../client/tests/suite/server.rs"]
mod server;
mod world;

use core::sync::atomic::AtomicBool;

use lastbyte_client::Trust;
use lastbyte_quic::{crypto::ClientCrypto, endpoint::RetryPolicy};
use lastbyte_testkit::{CountingAllocator, allocation_count};
use rustls::client::Resumption;

use self::server::Server;
use super::*;
use crate::{
    dispatcher::{Amount, Arrivals, Share},
    histogram::Histogram,
    recorder::Counts,
    settings::{Control, Request, Settings},
};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn settings(server: &Server, path: &str, requests: u64) -> Settings {
    let trust = Trust::Authorities(server.certificate.clone().into_bytes());
    let mut settings = settings_of(&[(&server.url(path), 1)], trust);
    // The server listens on no other.
    settings.client.family = lastbyte_client::Family::Ipv4;
    settings.amount = Amount::Requests(requests);
    settings.connections = 2;
    settings
}

/// A closed loop of one request for these URLs, by weight, over one connection of ten streams.
pub(crate) fn settings_of(urls: &[(&str, u32)], trust: Trust) -> Settings {
    let spec = "cubic".parse().expect("a spec");
    let mut client = lastbyte_client::Settings::new(Config::new(spec));
    client.trust = trust;
    let request = |(url, weight): &(&str, u32)| Request {
        url: url.parse().expect("a URL"),
        weight: *weight,
    };
    Settings {
        client,
        version: crate::settings::Version::Http3,
        requests: urls.iter().map(request).collect(),
        fields: http3::Fields::new().with("user-agent", "test"),
        body: None,
        amount: Amount::Requests(1),
        arrivals: Arrivals::Closed,
        connections: 1,
        streams: 10,
        threads: 1,
        timeout: Duration::from_secs(10),
        connect_rate: None,
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
        for mix in [None, Some("new=1".parse().expect("a mix"))] {
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
    settings.mix = Some("new=1".parse().expect("a mix"));
    let (result, _) = run_here(settings);
    assert_eq!(result.recorder.counts.succeeded, 3);
    let slowest = result.recorder.latency.iter().last();
    let (slowest, _) = slowest.expect("latencies");
    assert!(slowest < 900_000_000, "{slowest} ns");
}

#[test]
fn responses_over_http3_and_their_bytes_are_counted() {
    let server = Server::start("localhost", RetryPolicy::Never);
    let (result, _) = run_here(settings(&server, "100", 60));
    let found = result.recorder.counts;
    // `:status: 200` and `content-length: 100`.
    let text = 60 * (10 + 17);
    let expected = Counts {
        started: 60,
        done: 60,
        succeeded: 60,
        statuses: [0, 0, 60, 0, 0, 0],
        total_bytes: found.total_bytes,
        header_bytes: found.header_bytes,
        header_text_bytes: text,
        data_bytes: 6000,
        connected: 2,
        full_handshakes: 2,
        datagrams_sent: found.datagrams_sent,
        datagrams_received: found.datagrams_received,
        ..Counts::default()
    };
    assert_eq!(found, expected);
    assert!((60..text).contains(&found.header_bytes), "{found:?}");
    assert!(found.total_bytes > found.header_bytes + 6000, "{found:?}");
    assert!(found.datagrams_sent >= 4 && found.datagrams_received >= 4);
    let recorder = &result.recorder;
    let values = [
        &recorder.service,
        &recorder.latency,
        &recorder.connect,
        &recorder.first_byte,
    ];
    assert_eq!(values.map(Histogram::count), [60, 60, 2, 2]);
    assert!(recorder.rates.len() == 2 && recorder.rates.iter().all(|rate| *rate > 0.0));
    assert!(recorder.errors.is_empty(), "{:?}", recorder.errors);
}

#[test]
fn the_body_of_a_request_is_sent_with_each_one() {
    let server = Server::start("localhost", RetryPolicy::Never);
    let mut settings = settings(&server, "echo", 10);
    settings.body = Some(Arc::from(vec![7; 1000]));
    let (result, _) = run_here(settings);
    let found = result.recorder.counts;
    assert_eq!((found.succeeded, found.data_bytes), (10, 10_000));
}

/// The first connection of a client has a full handshake.
#[test]
fn handshakes_of_further_connections_are_those_of_the_mix() {
    for (mix, resumed, early) in [("new=1", 0, 0), ("resumed=1", 5, 0), ("0rtt=1", 5, 5)] {
        let server = Server::start("localhost", RetryPolicy::Never);
        let mut settings = settings(&server, "100", 6);
        (settings.connections, settings.streams) = (1, 1);
        settings.mix = Some(mix.parse().expect("a mix"));
        let (result, _) = run_here(settings);
        let found = result.recorder.counts;
        assert_eq!((found.succeeded, found.connected), (6, 6), "{mix}");
        let handshakes = (found.full_handshakes, found.resumed_handshakes);
        assert_eq!(handshakes, (6 - resumed, resumed), "{mix}");
        let early_data = (found.early_data_accepted, found.early_data_rejected);
        assert_eq!(early_data, (early, 0), "{mix}");
        assert_eq!(found.disconnected + found.connect_failed, 0);
        assert_eq!(server.connections(), 6);
    }
}

#[test]
fn what_an_open_loop_over_http3_could_not_send_is_counted() {
    let server = Server::start("localhost", RetryPolicy::Never);
    let mut settings = settings(&server, "never", 0);
    settings.amount = Amount::Time {
        warm_up: Duration::ZERO,
        measured: Duration::from_millis(300),
    };
    settings.arrivals = Arrivals::Constant { rate: 100.0 };
    (settings.connections, settings.streams) = (1, 2);
    let (result, _) = run_here(settings);
    let found = result.recorder.counts;
    let outcome = (found.started, found.unfinished, found.not_started);
    assert_eq!(outcome, (2, 2, 28), "{found:?}");
    assert_eq!(result.until.since(result.from), Duration::from_millis(300));
}

#[test]
fn a_closed_port_ends_a_run_over_http3() {
    let server = Server::start("localhost", RetryPolicy::Never);
    let mut settings = settings(&server, "100", 8);
    drop(server);
    settings.client.connect_timeout = Duration::from_secs(60);
    let (result, _) = run_here(settings);
    let found = result.recorder.counts;
    assert_eq!((found.errored, found.connect_failed), (8, 2), "{found:?}");
    assert_eq!((found.started, found.connected), (0, 0), "{found:?}");
    assert_eq!(found.timed_out, 0, "{found:?}");
    let errors: Vec<(&String, &u64)> = result.recorder.errors.iter().collect();
    let [(why, 8)] = errors[..] else {
        panic!("{errors:?}");
    };
    assert!(why.starts_with("cannot connect to 127.0.0.1:"), "{why}");
}

/// Its port is open, so there is no error of the network.
#[test]
fn a_server_that_does_not_answer_exceeds_the_time_limit_of_a_connection() {
    let server = Server::start("localhost", RetryPolicy::Never);
    let mut settings = settings(&server, "100", 8);
    let silent = Socket::bind((Ipv4Addr::LOCALHOST, 0).into(), &Options::default());
    let silent = silent.expect("a socket");
    let port = silent.local_address().port();
    settings.requests[0].url = format!("https://localhost:{port}/").parse().expect("a URL");
    settings.client.connect_timeout = Duration::from_millis(300);
    let (result, _) = run_here(settings);
    let found = result.recorder.counts;
    assert_eq!((found.errored, found.timed_out), (8, 8), "{found:?}");
    assert_eq!((found.connect_failed, found.started), (2, 0), "{found:?}");
    assert_eq!(result.recorder.errors.values().sum::<u64>(), 8);
}

#[test]
fn connections_that_move_to_another_port_lose_no_request() {
    let server = Server::start("localhost", RetryPolicy::Never);
    let mut settings = settings(&server, "100", 0);
    settings.amount = Amount::Time {
        warm_up: Duration::ZERO,
        measured: Duration::from_millis(700),
    };
    settings.arrivals = Arrivals::Constant { rate: 200.0 };
    settings.migrate = Some(Duration::from_millis(200));
    let (result, _) = run_here(settings);
    let found = result.recorder.counts;
    assert!(found.migrations > 0, "{found:?}");
    let lost = (found.failed, found.migration_losses, found.disconnected);
    assert_eq!(lost, (0, 0, 0), "{found:?}");
    assert_eq!(found.connected, 2);
    assert_eq!(server.connections(), 2);
}

#[derive(Debug, Default)]
struct Lines(std::sync::Mutex<Vec<String>>);

impl crate::LineSink for Lines {
    fn line(&self, line: &str) {
        self.0.lock().expect("no panic").push(line.to_owned());
    }
}

/// Over paths of 20 ms per direction.
#[test]
fn each_connection_has_its_model_path_and_its_line_in_the_log() {
    let server = Server::start("localhost", RetryPolicy::Never);
    let mut settings = settings(&server, "100", 3);
    settings.connections = 3;
    let delay = || lastbyte_link::Config {
        delay: Duration::from_millis(20),
        ..lastbyte_link::Config::default()
    };
    let path = PathModel {
        down: delay(),
        up: delay(),
        ..PathModel::default()
    };
    settings.network = Some(Network {
        name: "test".to_owned(),
        paths: vec![path],
    });
    let lines = Arc::new(Lines::default());
    settings.connection_log = Some(lines.clone());
    let (result, _) = run_here(settings);
    let found = result.recorder.counts;
    assert_eq!((found.succeeded, found.connected), (3, 3), "{found:?}");
    for times in [&result.recorder.connect, &result.recorder.service] {
        let least = times.summary().expect("values").min;
        assert!(least >= 40e6, "{least} ns");
    }
    let report = result.paths.expect("model paths");
    assert_eq!(report.clients, 3);
    assert!(report.up.delivered.packets >= found.datagrams_sent);
    assert_eq!(report.down.sent.packets, found.datagrams_received);
    assert!(found.datagrams_sent >= 6 && found.datagrams_received >= 6);

    let lines = lines.0.lock().expect("no panic");
    let mut numbers = Vec::new();
    for line in &*lines {
        let line: serde_json::Value = serde_json::from_str(line).expect("JSON");
        numbers.push(line["conn_id"].as_u64());
        assert_eq!(
            (&line["method"], &line["content_length"]),
            (&"GET".into(), &100.into())
        );
        let times = ["client.handshake", "client.ttfb", "client.ttlb"];
        let times = times.map(|key| line[key].as_f64().expect(key));
        assert!(
            times[0] >= 40.0 && times[1] >= 80.0 && times[2] >= times[1],
            "{times:?}"
        );
    }
    numbers.sort_unstable();
    assert_eq!(numbers, [Some(0), Some(1), Some(2)]);
}
