//! Runs over HTTP/1.1, with a server that sends known bytes: what is counted.

#![expect(clippy::disallowed_types, reason = "a server for the tests")]

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use lastbyte_http3::Fields;
use lastbyte_load::{
    Amount, Arrivals, Control, Measurement, Request, Settings, Version, histogram::Histogram,
    recorder::Counts, report, run,
};
use lastbyte_quic::connection::Config;

const OK_HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\nx-field: value\r\n\r\n";
const OK_BODY: [u8; 100] = [b'x'; 100];
const MISSING: &str = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n";
const LAST: &str = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// A server whose answer depends on the path.
struct Server {
    address: SocketAddr,
    /// The request heads that it has received.
    heads: Arc<Mutex<Vec<String>>>,
    is_over: Arc<AtomicBool>,
    /// Set when a request of `/stop` arrives.
    stop: Arc<AtomicBool>,
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
        let server = Self {
            address: listener.local_addr().expect("bound"),
            heads: Arc::default(),
            is_over: Arc::default(),
            stop: Arc::default(),
        };
        let (heads, stop) = (Arc::clone(&server.heads), Arc::clone(&server.stop));
        let is_over = Arc::clone(&server.is_over);
        let accept = move || {
            while let Ok((stream, _)) = listener.accept() {
                if is_over.load(Ordering::SeqCst) {
                    return;
                }
                let (heads, stop) = (Arc::clone(&heads), Arc::clone(&stop));
                let serve = move || serve(stream, &heads, &stop);
                thread::Builder::new().spawn(serve).expect("a thread");
            }
        };
        thread::Builder::new().spawn(accept).expect("a thread");
        server
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().expect("no panic").clone()
    }

    /// A closed loop of requests of these paths and weights.
    fn settings(&self, paths: &[(&str, u32)], requests: u64) -> Settings {
        let mut client =
            lastbyte_client::Settings::new(Config::new("cubic".parse().expect("a spec")));
        client.family = lastbyte_client::Family::Ipv4;
        let request = |(path, weight): &(&str, u32)| Request {
            url: format!("http://{}{path}", self.address)
                .parse()
                .expect("a URL"),
            weight: *weight,
        };
        Settings {
            client,
            version: Version::Http1,
            requests: paths.iter().map(request).collect(),
            fields: Fields::new().with("user-agent", "test"),
            body: None,
            amount: Amount::Requests(requests),
            arrivals: Arrivals::Closed,
            connections: 1,
            streams: 1,
            threads: 1,
            timeout: Duration::from_secs(20),
            connect_rate: None,
            mix: None,
            migrate: None,
            migrate_to: Vec::new(),
            seed: 1,
            network: None,
            connection_log: None,
        }
    }

    fn control(&self, settings: &Settings) -> Arc<Control> {
        Arc::new(Control::new(settings.threads, Arc::clone(&self.stop)))
    }

    fn run(&self, settings: &Settings) -> Measurement {
        run(settings, &self.control(settings)).expect("a run")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        // Ends the thread that accepts.
        let _ = TcpStream::connect(self.address);
    }
}

/// Answers the requests of a connection until one side closes it.
fn serve(mut stream: TcpStream, heads: &Mutex<Vec<String>>, stop: &AtomicBool) {
    let mut received = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let end = received.windows(4).position(|bytes| bytes == b"\r\n\r\n");
        let Some(end) = end else {
            match stream.read(&mut buffer) {
                Ok(0) | Err(_) => return,
                Ok(len) => received.extend_from_slice(&buffer[..len]),
            }
            continue;
        };
        let rest = received.split_off(end + 4);
        let head = String::from_utf8_lossy(&std::mem::replace(&mut received, rest)).into_owned();
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        heads.lock().expect("no panic").push(head);
        let answer = match path.as_str() {
            "/ok" => [OK_HEAD.as_bytes(), &OK_BODY].concat(),
            "/missing" => MISSING.as_bytes().to_vec(),
            "/last" => LAST.as_bytes().to_vec(),
            "/cut" => OK_HEAD.as_bytes().to_vec(),
            "/stop" => {
                stop.store(true, Ordering::SeqCst);
                continue;
            }
            "/never" => continue,
            _ => return,
        };
        if stream.write_all(&answer).is_err() || path == "/last" || path == "/cut" {
            return;
        }
    }
}

fn counts(measurement: &Measurement) -> Counts {
    measurement.recorder.counts
}

fn errors(measurement: &Measurement) -> Vec<(&str, u64)> {
    let errors = measurement.recorder.errors.iter();
    errors.map(|(why, times)| (why.as_str(), *times)).collect()
}

#[test]
fn each_request_and_each_byte_is_counted() {
    let server = Server::start();
    // 40 requests of each connection, in cycles of three.
    let mut settings = server.settings(&[("/ok", 2), ("/missing", 1)], 120);
    (settings.connections, settings.threads) = (3, 2);
    let control = server.control(&settings);
    let measurement = run(&settings, &control).expect("a run");
    let (ok, missing) = (81, 39);
    let header_bytes = ok * OK_HEAD.len() as u64 + missing * MISSING.len() as u64;
    let expected = Counts {
        started: 120,
        done: 120,
        succeeded: ok,
        failed: missing,
        statuses: [0, 0, ok, 0, missing, 0],
        total_bytes: header_bytes + ok * 100,
        header_bytes,
        header_text_bytes: header_bytes,
        data_bytes: ok * 100,
        connected: 3,
        ..Counts::default()
    };
    assert_eq!(counts(&measurement), expected);
    let recorder = &measurement.recorder;
    let values = [
        &recorder.service,
        &recorder.latency,
        &recorder.connect,
        &recorder.first_byte,
    ];
    assert_eq!(values.map(Histogram::count), [120, 120, 3, 3]);
    assert_eq!((recorder.rates.len(), measurement.threads.len()), (3, 2));
    assert!(recorder.rates.iter().all(|rate| *rate > 0.0));
    let in_intervals: u64 = recorder.timeline.iter().map(|(_, it)| it.done).sum();
    assert_eq!(in_intervals, 120);
    assert_eq!(
        (errors(&measurement), measurement.is_interrupted),
        (vec![], false)
    );
    assert_eq!(measurement.total(&settings), 120);
    let seconds = measurement.elapsed.as_secs_f64();
    assert!(seconds > 0.0);
    assert!((measurement.rate() - 120.0 / seconds).abs() < 1e-6);

    // The last update: enough values for a median, not for a P99.
    let sum = |value: fn(&lastbyte_load::Progress) -> &AtomicU64| -> u64 {
        let threads = control.threads.iter();
        threads.map(|it| value(it).load(Ordering::Relaxed)).sum()
    };
    assert_eq!((sum(|it| &it.done), sum(|it| &it.failed)), (120, missing));
    assert_eq!((sum(|it| &it.p99), sum(|it| &it.recent_p99)), (0, 0));
    assert!(
        control
            .threads
            .iter()
            .all(|it| it.p50.load(Ordering::Relaxed) > 0)
    );

    let heads = server.heads();
    let expected = format!(
        "GET /ok HTTP/1.1\r\nhost: {}\r\nuser-agent: test\r\n\r\n",
        server.address
    );
    assert_eq!(heads.iter().filter(|head| **head == expected).count(), 81);
    assert_eq!(heads.len(), 120);
}

#[test]
fn requests_without_a_response_are_counted_by_cause() {
    let server = Server::start();
    // Each connection sends two requests, each over a connection of its own.
    let mut settings = server.settings(&[("/never", 1)], 4);
    settings.connections = 2;
    settings.timeout = Duration::from_millis(50);
    let measurement = server.run(&settings);
    let expected = Counts {
        started: 4,
        failed: 4,
        errored: 4,
        timed_out: 4,
        connected: 4,
        disconnected: 2,
        ..Counts::default()
    };
    assert_eq!(counts(&measurement), expected);

    // Four failures in a row: the other requests of the connection are given up.
    for path in ["/gone", "/cut"] {
        let settings = server.settings(&[(path, 1)], 10);
        let measurement = server.run(&settings);
        let found = counts(&measurement);
        let expected = Counts {
            started: 4,
            failed: 10,
            errored: 10,
            connected: 4,
            disconnected: 4,
            total_bytes: found.total_bytes,
            header_bytes: found.header_bytes,
            header_text_bytes: found.header_text_bytes,
            ..Counts::default()
        };
        assert_eq!(found, expected, "{path}");
        let head = if path == "/cut" { OK_HEAD.len() } else { 0 };
        assert_eq!(found.header_bytes, 4 * head as u64, "{path}");
        assert_eq!(found.total_bytes, found.header_bytes, "{path}");
        let failures: u64 = measurement
            .recorder
            .timeline
            .iter()
            .map(|(_, it)| it.errored)
            .sum();
        assert_eq!(failures, 10, "{path}");
    }
}

#[test]
fn requests_to_a_closed_port_fail_for_that_reason() {
    let server = Server::start();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let address = listener.local_addr().expect("bound");
    drop(listener);
    let mut settings = server.settings(&[("/ok", 1)], 6);
    settings.connections = 2;
    settings.requests[0].url = format!("http://{address}/ok").parse().expect("a URL");
    let measurement = server.run(&settings);
    let expected = Counts {
        failed: 6,
        errored: 6,
        connect_failed: 2,
        ..Counts::default()
    };
    assert_eq!(counts(&measurement), expected);
    let [(why, 6)] = errors(&measurement)[..] else {
        panic!("{:?}", errors(&measurement));
    };
    assert!(
        why.contains(&format!("cannot connect to {address}: ")),
        "{why}"
    );
    assert!(measurement.recorder.rates.is_empty());
}

#[test]
fn a_connection_that_the_server_ends_after_a_response_is_replaced() {
    let server = Server::start();
    let measurement = server.run(&server.settings(&[("/last", 1)], 5));
    let found = counts(&measurement);
    assert_eq!((found.started, found.succeeded, found.failed), (5, 5, 0));
    assert_eq!((found.connected, found.disconnected), (5, 4));
    assert_eq!(errors(&measurement), []);
}

#[test]
fn a_mix_without_reuse_has_a_connection_for_each_request() {
    let server = Server::start();
    let mut settings = server.settings(&[("/ok", 1)], 10);
    settings.connections = 2;
    settings.mix = Some("new=1".parse().expect("a mix"));
    let found = counts(&server.run(&settings));
    assert_eq!((found.started, found.succeeded, found.failed), (10, 10, 0));
    assert_eq!((found.connected, found.disconnected), (10, 0));
    let heads = server.heads();
    let is_last = |head: &&String| head.contains("\r\nconnection: close\r\n");
    assert_eq!(heads.iter().filter(is_last).count(), 10, "{heads:?}");
}

#[test]
fn an_open_loop_sends_each_request_when_it_is_due() {
    let server = Server::start();
    let mut settings = server.settings(&[("/ok", 1)], 40);
    settings.connections = 2;
    settings.arrivals = Arrivals::Constant { rate: 200.0 };
    let measurement = server.run(&settings);
    let found = counts(&measurement);
    assert_eq!(
        (found.started, found.succeeded, found.not_started),
        (40, 40, 0)
    );
    assert_eq!(found.connected, 2);
    // The last of 40 is due after 39 intervals of 5 ms.
    assert!(measurement.elapsed >= Duration::from_millis(195));
}

#[test]
fn what_an_open_loop_could_not_send_is_counted() {
    let server = Server::start();
    let mut settings = server.settings(&[("/never", 1)], 0);
    settings.amount = Amount::Time {
        warm_up: Duration::ZERO,
        measured: Duration::from_millis(300),
    };
    settings.arrivals = Arrivals::Constant { rate: 100.0 };
    let measurement = server.run(&settings);
    let expected = Counts {
        started: 1,
        unfinished: 1,
        not_started: 29,
        connected: 1,
        ..Counts::default()
    };
    assert_eq!(counts(&measurement), expected);
    assert_eq!(measurement.elapsed, Duration::from_millis(300));
    assert_eq!(measurement.total(&settings), 30);
    let warnings = report::warnings(&settings, &measurement);
    assert!(
        warnings
            .iter()
            .any(|it| it.starts_with("29 requests were due but not sent"))
    );
    assert!(
        warnings
            .iter()
            .any(|it| it.starts_with("1 requests were in progress"))
    );
}

#[test]
fn the_warm_up_is_sent_and_not_counted() {
    let server = Server::start();
    let mut settings = server.settings(&[("/ok", 1)], 0);
    settings.amount = Amount::Time {
        warm_up: Duration::from_millis(100),
        measured: Duration::from_millis(300),
    };
    let measurement = server.run(&settings);
    let found = counts(&measurement);
    assert_eq!(measurement.elapsed, Duration::from_millis(300));
    assert!(found.succeeded > 0 && found.failed == 0, "{found:?}");
    assert_eq!(found.started, found.done + found.unfinished);
    assert_eq!(measurement.recorder.latency.count(), found.done);
    assert_eq!(measurement.total(&settings), found.started);
    let sent = server.heads().len() as u64;
    assert!(found.started < sent, "{} of {sent}", found.started);
    assert!(found.data_bytes >= 100 * found.done && found.data_bytes <= 100 * found.started);
    let response = (OK_HEAD.len() + OK_BODY.len()) as u64;
    assert!(found.total_bytes < response * sent, "{found:?}");
}

#[test]
fn a_run_that_is_stopped_ends_at_once() {
    let server = Server::start();
    let settings = server.settings(&[("/stop", 1)], 3);
    let measurement = server.run(&settings);
    assert!(measurement.is_interrupted);
    let found = counts(&measurement);
    assert_eq!((found.started, found.done, found.failed), (1, 0, 0));
    assert_eq!(found.unfinished, 1);
}

#[test]
fn connections_over_tcp_are_opened_at_the_rate_asked_for() {
    let server = Server::start();
    for version in [Version::Http1, Version::Http2] {
        let mut settings = server.settings(&[("/ok", 1)], 3);
        settings.version = version;
        settings.connections = 3;
        settings.connect_rate = Some(20.0);
        let clock = lastbyte_driver::Clock::new();
        let started = clock.now();
        let found = counts(&server.run(&settings));
        // The server supports HTTP/1.1 only.
        let connected = if version == Version::Http1 { 3 } else { 0 };
        assert_eq!(found.done, connected);
        assert!(clock.now().since(started) >= Duration::from_millis(100));
    }
}

type Change = fn(&mut Settings);

#[test]
fn settings_that_contradict_each_other_are_an_error() {
    let server = Server::start();
    let cases: [(&str, Change); 9] = [
        (
            "more threads than connections: 2 (expected at most 1)",
            |it| {
                it.threads = 2;
            },
        ),
        ("a connection has one request at a time: `-m 2`", |it| {
            it.mix = Some("new=1".parse().expect("a mix"));
            it.streams = 2;
        }),
        (
            "connections of HTTP/1.1 cannot move to another port",
            |it| {
                it.migrate = Some(Duration::from_secs(1));
            },
        ),
        ("`http` has no sessions to resume", |it| {
            it.mix = Some("resumed=1".parse().expect("a mix"));
        }),
        ("`http` has no sessions to resume", |it| {
            it.mix = Some("0rtt=1".parse().expect("a mix"));
        }),
        ("0-RTT is not supported over HTTP/2", |it| {
            it.requests[0].url = "https://127.0.0.1:1/".parse().expect("a URL");
            it.version = Version::Http2;
            it.mix = Some("0rtt=1".parse().expect("a mix"));
        }),
        ("a POST request cannot be sent in 0-RTT", |it| {
            it.requests[0].url = "https://127.0.0.1:1/".parse().expect("a URL");
            it.version = Version::Http3;
            it.mix = Some("0rtt=1".parse().expect("a mix"));
            it.body = Some(Arc::from(*b"body"));
        }),
        ("cannot be requested over HTTP/3 (expected `https`)", |it| {
            it.version = Version::Http3;
        }),
        ("URL of another origin: `http://127.0.0.1:1/`", |it| {
            let url = "http://127.0.0.1:1/".parse().expect("a URL");
            it.requests.push(Request { url, weight: 1 });
        }),
    ];
    for (expected, change) in cases {
        let mut settings = server.settings(&[("/ok", 1)], 1);
        change(&mut settings);
        let error = run(&settings, &server.control(&settings)).expect_err(expected);
        assert!(error.to_string().contains(expected), "{expected}: {error}");
    }
    assert_eq!(server.heads().len(), 0);
}
