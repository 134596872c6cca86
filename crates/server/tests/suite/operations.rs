//! What operators do: look, change, end.

use std::{
    io::{Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    pin::pin,
    slice,
    sync::Arc,
    task::{Context, Waker},
    time::Duration,
};

use lastbyte_server::{
    Server, Site, StartError, Versions,
    access::{AccessLog, Format},
    log::{self, LogSettings},
};
use rustls::RootCertStore;

use crate::serving::{Client, Folder, PATIENCE, Response, Serving, identity, settings};

/// A request in clear text.
pub(crate) fn plain(address: SocketAddr, path: &str) -> Response {
    let request = format!("GET {path} HTTP/1.1\r\nhost: example.com\r\nconnection: close\r\n\r\n");
    plain_text(address, &request)
}

/// A request in clear text, as it is.
fn plain_text(address: SocketAddr, request: &str) -> Response {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream.write_all(request.as_bytes()).expect("it is taken");
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("an answer");
    Response::parse(&bytes)
}

#[test]
fn metrics_and_health_have_a_listener_of_their_own() {
    let mut settings = settings(Site::generated());
    settings.metrics = Some("127.0.0.1:0".parse().expect("an address"));
    let serving = Serving::start(settings);
    let metrics = serving.server.metrics_address().expect("it listens");
    assert_eq!(serving.get("/1000", "").status, 200);
    assert_eq!(serving.get("/nothing", "").status, 404);
    let health = plain(metrics, "/healthz");
    assert_eq!((health.status, health.body.as_slice()), (200, &b"ok\n"[..]));
    let told = plain(metrics, "/metrics");
    let text = String::from_utf8(told.body).expect("text");
    for line in [
        "lastbyte_requests_total{http=\"1.1\"} 2",
        "lastbyte_requests_total{http=\"3\"} 0",
        "lastbyte_responses_total{transport=\"tcp\",class=\"2xx\"} 1",
        "lastbyte_responses_total{transport=\"tcp\",class=\"4xx\"} 1",
        "lastbyte_handshakes_total{transport=\"tcp\",kind=\"full\"} 2",
        "lastbyte_draining 0",
        "lastbyte_quic_packets_received_total 0",
    ] {
        assert!(text.lines().any(|known| known == line), "{line}\n{text}");
    }
    assert!(text.contains("lastbyte_worker_idle_seconds_total{worker=\"0\"} "));
    assert_eq!(plain(metrics, "/other").status, 404);
    serving.end();
}

#[test]
fn pending_requests_are_completed_on_shutdown() {
    let serving = Serving::site(Site::generated());
    let (mut busy, mut idle) = (serving.connect(), serving.connect());
    busy.send(b"GET /delay/300ms/1000 HTTP/1.1\r\nhost: x\r\n\r\n");
    idle.send(b"GET /1 HTTP/1.1\r\nhost: x\r\n\r\n");
    idle.head();
    idle.take(1);
    // The order of events on one thread guarantees that the other request has arrived.
    let server = serving.server;
    let ending = std::thread::Builder::new()
        .spawn(move || server.shut_down(PATIENCE))
        .expect("a thread");
    assert_eq!(idle.rest(), b"", "it has nothing to do, and is closed");
    let answer = Response::parse(&busy.rest());
    assert_eq!((answer.status, answer.body.len()), (200, 1000));
    assert_eq!(answer.field("connection"), Some("close"));
    let report = ending.join().expect("it ends");
    assert_eq!((report.tcp.requests_http1, report.tcp.cut_off), (2, 0));
}

#[test]
fn requests_beyond_the_grace_period_are_aborted() {
    let serving = Serving::site(Site::generated());
    let mut client = serving.connect();
    client.send(b"GET /delay/60s/1000 HTTP/1.1\r\nhost: x\r\n\r\n");
    let mut other = serving.connect();
    other.send(b"GET /1 HTTP/1.1\r\nhost: x\r\n\r\n");
    other.head();
    drop(serving.server.shut_down(Duration::from_millis(50)));
    assert_eq!(client.rest(), b"");
}

#[test]
fn new_connections_receive_the_new_certificate() {
    let serving = Serving::site(Site::generated());
    let mut before = serving.connect();
    before.send(b"GET /1 HTTP/1.1\r\nhost: x\r\n\r\n");
    before.head();
    before.take(1);
    let other = identity();
    serving
        .server
        .set_identities(slice::from_ref(&other))
        .expect("it fits");
    let mut roots = RootCertStore::empty();
    roots.add(other.chain[0].clone()).expect("a certificate");
    let renewed = Serving {
        roots: Arc::new(roots),
        server: serving.server,
    };
    assert_eq!(renewed.get("/1", "").status, 200, "with the new one");
    before.send(b"GET /2 HTTP/1.1\r\nhost: x\r\n\r\n");
    assert!(
        before.head().contains("content-length: 2\r\n"),
        "who was there stays"
    );
    let mixed = lastbyte_server::Identity {
        chain: identity().chain,
        key: identity().key,
    };
    let error = renewed
        .server
        .set_identities(&[mixed])
        .expect_err("they do not fit");
    assert!(matches!(error, StartError::Tls(_)), "{error}");
    assert_eq!(renewed.get("/1", "").status, 200, "the one before stays");
    drop(before);
    renewed.end();
}

#[test]
fn tickets_are_accepted_by_every_server_with_the_same_keys() {
    let key = "0123456789abcdef".repeat(4);
    let start = || {
        let mut settings = settings(Site::generated());
        settings.ticket_keys = Some(format!("{key}\n").into_bytes());
        Serving::start(settings)
    };
    let (one, other) = (start(), start());
    // A client that believes everybody: the two have different certificates.
    let mut roots = (*one.roots).clone();
    roots.extend(other.roots.roots.iter().cloned());
    let one = Serving {
        roots: Arc::new(roots),
        server: one.server,
    };
    let config = one.client(&[&rustls::version::TLS13]);
    let mut kinds = Vec::new();
    for address in [one.address(), other.address()] {
        let mut client = Client::connect(address, Arc::clone(&config));
        client.send(b"GET /1 HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        assert_eq!(Response::parse(&client.rest()).status, 200);
        kinds.push(client.stream.conn.handshake_kind());
    }
    assert_eq!(kinds[1], Some(rustls::HandshakeKind::Resumed), "{kinds:?}");
    one.end();
    other.end();
}

#[test]
fn plain_http_redirects_to_https() {
    let mut settings = settings(Site::generated());
    settings.plain = Some("127.0.0.1:0".parse().expect("an address"));
    let serving = Serving::start(settings);
    let answer = plain(serving.server.plain_address().expect("it listens"), "/a?b");
    let to = format!("https://example.com:{}/a?b", serving.address().port());
    assert_eq!(
        (answer.status, answer.field("location")),
        (308, Some(to.as_str()))
    );
    serving.end();
}

#[test]
fn rfc9112_3_2_plain_http_redirects_paths_of_one_host_only() {
    let mut settings = settings(Site::generated());
    settings.plain = Some("127.0.0.1:0".parse().expect("an address"));
    let serving = Serving::start(settings);
    let address = serving.server.plain_address().expect("it listens");
    for request in [
        "OPTIONS * HTTP/1.1\r\nhost: example.com",
        "CONNECT example.com:443 HTTP/1.1\r\nhost: example.com",
        "GET / HTTP/1.1\r\nhost: example.com\r\nhost: example.org",
        "GET / HTTP/1.1\r\nhost: example.com/a",
        "GET / HTTP/1.1",
    ] {
        let answer = plain_text(address, &format!("{request}\r\n\r\n"));
        let got = (answer.status, answer.field("location"));
        assert_eq!(got, (400, None), "{request}");
    }
    serving.end();
}

#[test]
fn each_request_has_an_access_log_line() {
    let folder = Folder::new();
    let path = folder.0.join("access");
    let (writer, thread) = log::start(&path, &LogSettings::default()).expect("a file");
    let mut settings = settings(Site::generated());
    settings.access = Some(AccessLog::new(writer, Format::Common));
    let serving = Serving::start(settings);
    serving.get("/1000", "");
    serving.get("/nothing", "");
    serving.end();
    let (statistics, error) = thread.finish();
    assert!(error.is_none() && statistics.written == 2, "{statistics:?}");
    let text = std::fs::read_to_string(path).expect("text");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("127.0.0.1 - - ["), "{text}");
    assert!(
        lines[0].ends_with("\"GET /1000 HTTP/1.1\" 200 1000"),
        "{text}"
    );
    assert!(
        lines[1].ends_with("\"GET /nothing HTTP/1.1\" 404 10"),
        "{text}"
    );
}

#[test]
fn a_port_in_use_is_named_in_the_error() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let mut settings = settings(Site::generated());
    settings.address = taken.local_addr().expect("an address");
    settings.versions = Versions {
        http3: false,
        ..Versions::ALL
    };
    let error = Server::start(settings).expect_err("it is taken");
    let address = taken.local_addr().expect("an address");
    assert!(
        error
            .to_string()
            .contains(&format!("cannot listen on `{address}`")),
        "{error}"
    );
}

#[test]
fn only_the_enabled_versions_are_accepted() {
    let mut settings = settings(Site::generated());
    settings.versions = Versions {
        http1: true,
        http2: false,
        http3: false,
    };
    let serving = Serving::start(settings);
    let answer = serving.get("/1", "");
    assert_eq!((answer.status, answer.field("alt-svc")), (200, None));
    assert_eq!(serving.server.workers(), 0);
    serving.end();
}

/// More connections than a worker adds to its sums in one turn.
const COUNT: u64 = 150;

#[test]
fn metrics_have_the_sums_over_all_connections_of_a_worker() {
    let mut settings = settings(Site::generated());
    settings.metrics = Some("127.0.0.1:0".parse().expect("an address"));
    let serving = Serving::start(settings);
    let metrics = serving.server.metrics_address().expect("it listens");
    let value = |name: &str| {
        let text = String::from_utf8(plain(metrics, "/metrics").body).expect("text");
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let value = line.unwrap_or_else(|| panic!("no {name} in {text}"));
        value.trim().parse::<u64>().expect("a number")
    };
    // The clients vanish without closing their connections.
    std::thread::scope(|scope| {
        for _ in 0..COUNT {
            let client = || assert_eq!(crate::http3::get(&serving, "/1000", &[]).status, 200);
            let thread = std::thread::Builder::new();
            thread.spawn_scoped(scope, client).expect("a thread");
        }
    });
    assert_eq!(value("lastbyte_connections{transport=\"quic\"}"), COUNT);
    let received = value("lastbyte_quic_packets_received_total");
    assert!(received >= 4 * COUNT, "{received}");
    assert!(value("lastbyte_quic_packets_received_total") >= received);
    drop(serving.server.shut_down(Duration::ZERO));
}

/// A record with a `ClientHello` (RFC 8446 §4.1.2) for this name.
fn client_hello(name: &str) -> Vec<u8> {
    let with_len = |bytes: &[u8]| [&(bytes.len() as u16).to_be_bytes()[..], bytes].concat();
    let extension = |kind: u8, data: &[u8]| [&[0, kind][..], &with_len(data)].concat();
    let server_name = [&[0][..], &with_len(name.as_bytes())].concat();
    // X25519; any 32 bytes are a public key.
    let share = with_len(&[&[0, 29][..], &with_len(&[9; 32])].concat());
    let extensions = [
        extension(0, &with_len(&server_name)),
        extension(10, &with_len(&[0, 29])),
        extension(13, &with_len(&[4, 3])),
        extension(43, &[2, 3, 4]),
        extension(51, &share),
    ]
    .concat();
    let body = [
        &[3, 3][..],
        &[7; 32],
        &[0],
        &with_len(&[0x13, 1]),
        &[1, 0],
        &with_len(&extensions),
    ]
    .concat();
    let message = [&[1, 0][..], &with_len(&body)].concat();
    [&[22, 3, 1][..], &with_len(&message)].concat()
}

/// What a server answers, up to its close.
fn reply_to(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream.write_all(bytes).expect("it is taken");
    stream.shutdown(Shutdown::Write).expect("it is open");
    let mut reply = Vec::new();
    let _ = stream.read_to_end(&mut reply);
    reply
}

#[test]
fn rfc6066_3_failed_handshakes_are_counted_by_reason() {
    let mut settings = settings(Site::generated());
    settings.metrics = Some("127.0.0.1:0".parse().expect("an address"));
    let serving = Serving::start(settings);
    // illegal_parameter
    let alert = reply_to(serving.address(), &client_hello("localhost:443"));
    assert_eq!(alert, [21, 3, 3, 0, 2, 2, 47]);
    // A handshake, which this client leaves.
    let hello = reply_to(serving.address(), &client_hello("localhost"));
    assert_eq!(hello.first(), Some(&22));
    // HTTP without TLS.
    reply_to(serving.address(), b"GET / HTTP/1.1\r\n\r\n");
    let metrics = serving.server.metrics_address().expect("it listens");
    let text = String::from_utf8_lossy(&plain(metrics, "/metrics").body).into_owned();
    for (reason, count) in [
        ("timeout", 0),
        ("connection", 1),
        ("server_name", 1),
        ("tls", 1),
    ] {
        let line =
            format!("\nlastbyte_tcp_handshakes_failed_total{{reason=\"{reason}\"}} {count}\n");
        assert!(text.contains(&line), "{line}{text}");
    }
    // For a warning.
    {
        let refused = pin!(serving.server.server_name_refused());
        let polled = refused.poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_ready());
    }
    serving.end();
}
