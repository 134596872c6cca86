//! A server behind, which says what the test wants.

use std::{
    io::{Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use lastbyte_http3::Request;
use lastbyte_server::proxy::{Limits, Proxy, Upstream};

use crate::{
    http3::ask,
    limits::{DATA, HEADERS, RST_STREAM, SETTINGS, frame, http2},
    serving::{PATIENCE, Serving, settings},
};

/// Answers each request with what the function says of its head and body, and keeps connections unless that is `close`d.
pub(crate) struct Behind {
    pub(crate) address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

pub(crate) type Say = fn(&str, &[u8], &mut TcpStream);

impl Behind {
    pub(crate) fn start(say: Say) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        let accept = move || {
            for stream in listener.incoming() {
                count.fetch_add(1, Ordering::Relaxed);
                let mut stream = stream.expect("a connection");
                stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
                let serve = move || while serve(&mut stream, say) {};
                thread::Builder::new().spawn(serve).expect("a thread");
            }
        };
        thread::Builder::new().spawn(accept).expect("a thread");
        Self {
            address,
            connections,
        }
    }
}

fn line(stream: &mut TcpStream, end: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut byte = [0];
    while !bytes.ends_with(end) {
        stream.read_exact(&mut byte).ok()?;
        bytes.push(byte[0]);
    }
    Some(bytes)
}

fn serve(stream: &mut TcpStream, say: Say) -> bool {
    let Some(head) = line(stream, b"\r\n\r\n") else {
        return false;
    };
    let head = String::from_utf8(head).expect("text").to_lowercase();
    let mut body = Vec::new();
    if let Some(len) = head.split("content-length: ").nth(1) {
        let len = len
            .lines()
            .next()
            .expect("a line")
            .parse()
            .expect("a number");
        body.resize(len, 0);
        if stream.read_exact(&mut body).is_err() {
            return false;
        }
    } else if head.contains("transfer-encoding: chunked") {
        loop {
            let Some(size) = line(stream, b"\r\n") else {
                return false;
            };
            let size = String::from_utf8(size).expect("text");
            let size = usize::from_str_radix(size.trim(), 16).expect("a size");
            let mut chunk = vec![0; size + 2];
            if stream.read_exact(&mut chunk).is_err() {
                return false;
            }
            body.extend(&chunk[..size]);
            if size == 0 {
                break;
            }
        }
    }
    say(&head, &body, stream);
    true
}

fn say(stream: &mut TcpStream, text: &str) {
    let _ = stream.write_all(text.as_bytes());
}

pub(crate) fn front(address: SocketAddr, limits: Limits) -> Serving {
    front_of(&format!("http://{address}"), limits)
}

pub(crate) fn front_of(url: &str, limits: Limits) -> Serving {
    let upstream: Upstream = url.parse().expect("a server");
    let proxy = Proxy::new(upstream, None, limits, 1).expect("threads");
    Serving::start(settings(proxy))
}

/// A server with all answers below.
pub(crate) fn behind() -> SocketAddr {
    Behind::start(answers).address
}

fn answers(head: &str, body: &[u8], stream: &mut TcpStream) {
    let path = head.split(' ').nth(1).expect("a path");
    match path {
        "/hints" => say(
            stream,
            "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: x-hop\r\nx-hop: 1\r\n\r\nok",
        ),
        "/100-hints" | "/101-hints" => {
            let hint = "HTTP/1.1 103 Early Hints\r\n\r\n";
            say(stream, &hint.repeat(path[1..4].parse().expect("a number")));
            // A limit that is not reached leaves the proxy without a response.
            if path == "/100-hints" {
                say(stream, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
            }
        }
        "/gzip" => say(
            stream,
            "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\nconnection: close\r\n\r\nzipped",
        ),
        "/gzip-chunked" => say(
            stream,
            "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n6\r\nzipped\r\n0\r\n\r\n",
        ),
        "/trailers" => say(
            stream,
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x-end\r\n\r\n5\r\nhello\r\n0\r\nx-end: 1\r\n\r\n",
        ),
        "/cut" => {
            say(
                stream,
                "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhello",
            );
            let _ = stream.shutdown(Shutdown::Both);
        }
        "/lengths" => {
            say(
                stream,
                "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
            );
            let _ = stream.shutdown(Shutdown::Both);
        }
        "/reset" => say(
            stream,
            "HTTP/1.1 205 Reset Content\r\ncontent-length: 5\r\n\r\nhello",
        ),
        "/nonsense" => {
            say(stream, "what?\r\n\r\n");
            let _ = stream.shutdown(Shutdown::Both);
        }
        "/silent" => {
            // Until the proxy has enough of it.
            let _ = stream.read(&mut [0]);
        }
        "/echo" => {
            say(
                stream,
                &format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len()),
            );
            let _ = stream.write_all(body);
        }
        _ => say(
            stream,
            &format!(
                "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{head}",
                head.len()
            ),
        ),
    }
}

#[test]
fn requests_are_proxied_over_http1_and_the_connection_is_reused() {
    let behind = Behind::start(answers);
    let serving = front(behind.address, Limits::default());
    for _ in 0..10 {
        let answer = serving.get("/head?x=y", "x-mine: 1\r\nx-forwarded-for: 192.0.2.1\r\n");
        let head = String::from_utf8(answer.body).expect("text");
        assert_eq!(answer.status, 200);
        assert!(head.starts_with("get /head?x=y http/1.1\r\n"), "{head}");
        for line in [
            "host: localhost\r\n",
            "x-mine: 1\r\n",
            "via: 1.1 lastbyte\r\n",
            "x-forwarded-for: 192.0.2.1, 127.0.0.1\r\n",
        ] {
            assert!(head.contains(line), "{line}: {head}");
        }
        assert!(
            !head.contains("connection: ") && !head.contains("transfer-encoding"),
            "{head}"
        );
    }
    // A connection is free again shortly after the end of the response, which may be after the next request.
    let count = behind.connections.load(Ordering::Relaxed);
    assert!(count < 5, "{count} connections for ten requests");
    serving.end();
}

fn get(serving: &Serving, path: &str) -> crate::http3::Got {
    let request = Request::new("GET", "https", "localhost", path);
    ask(serving, request, Vec::new(), usize::MAX)
}

#[test]
fn early_hints_trailers_and_bodies_are_proxied_over_http3() {
    let behind = Behind::start(answers);
    let serving = front(behind.address, Limits::default());
    let hinted = get(&serving, "/hints");
    assert_eq!(
        (hinted.informed.as_slice(), hinted.status),
        (&[103][..], 200)
    );
    assert_eq!(hinted.body, b"ok");
    assert!(
        hinted.fields.get("x-hop").is_none(),
        "it was about that connection"
    );
    assert_eq!(hinted.fields.get("via"), Some(&b"1.1 lastbyte"[..]));
    let trailed = get(&serving, "/trailers");
    assert_eq!(trailed.body, b"hello");
    let trailers = trailed.trailers.expect("trailers");
    assert_eq!(trailers.get("x-end"), Some(&b"1"[..]));
    // Receivers drop trailers that the head does not announce (RFC 9110 §6.6.2).
    assert_eq!(trailed.fields.get("trailer"), Some(&b"x-end"[..]));
    let trailed = serving.get("/trailers", "te: trailers\r\nconnection: te\r\n");
    assert_eq!(trailed.field("trailer"), Some("x-end"));
    // Without a length it is forwarded in chunks.
    let body: Vec<u8> = (0..1_000_000_u32)
        .map(|index| (index % 251) as u8)
        .collect();
    for method in ["POST", "GET"] {
        let request = Request::new(method, "https", "localhost", "/echo");
        let echoed = ask(&serving, request, body.clone(), usize::MAX);
        assert!(
            echoed.body == body && echoed.is_whole,
            "{method}: {}",
            echoed.body.len()
        );
    }
    let request = Request::new("HEAD", "https", "localhost", "/head");
    let head = ask(&serving, request, Vec::new(), usize::MAX);
    assert_eq!(
        (head.status, head.body.len(), head.is_whole),
        (200, 0, true)
    );
    serving.end();
}

/// An upstream that sends an event each time that the test says so, in a response until the close.
fn behind_events() -> (SocketAddr, mpsc::Sender<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    let (next, events) = mpsc::channel();
    let serve = move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            line(&mut stream, b"\r\n\r\n").expect("a head");
            say(
                &mut stream,
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n",
            );
            for number in 0..EVENTS {
                say(&mut stream, &format!("data: {number}\n\n"));
                if events.recv().is_err() {
                    return;
                }
            }
        }
    };
    thread::Builder::new().spawn(serve).expect("a thread");
    (address, next)
}

const EVENTS: usize = 20;

/// The client has each event of a response (server-sent events) before the upstream sends the next.
#[test]
fn pieces_of_a_response_are_passed_on_at_once_over_http1_and_2() {
    let (address, next) = behind_events();
    let serving = front(address, Limits::default());
    for is_http2 in [false, true] {
        let mut client = if is_http2 {
            http2(&serving)
        } else {
            serving.connect()
        };
        let request = if is_http2 {
            crate::limits::get(1, "/")
        } else {
            b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n".to_vec()
        };
        client.send(&request);
        let mut received = Vec::new();
        for number in 0..EVENTS {
            let event = format!("data: {number}\n\n");
            while !received.ends_with(event.as_bytes()) {
                received.extend(client.take(1));
            }
            next.send(()).expect("the upstream waits");
        }
    }
    serving.end();
}

#[test]
fn upstream_failures_are_error_responses_or_resets() {
    let behind = Behind::start(answers);
    let limits = Limits {
        response: Duration::from_millis(200),
        ..Limits::default()
    };
    let serving = front(behind.address, limits);
    for (path, expected, why) in [
        ("/lengths", 502, "http_protocol_error"),
        ("/nonsense", 502, "http_protocol_error"),
        ("/gzip", 502, "http_response_transfer_coding"),
        ("/gzip-chunked", 502, "http_response_transfer_coding"),
        ("/silent", 504, "http_response_timeout"),
    ] {
        let got = get(&serving, path);
        assert_eq!(got.status, expected, "{path}");
        assert!(status_of(&got).contains(why), "{}", status_of(&got));
    }
    let cut = get(&serving, "/cut");
    assert!(cut.was_reset && !cut.is_whole, "{cut:?}");
    assert_eq!(serving.get("/100-hints", "").status, 200);
    let answer = serving.get("/101-hints", "");
    let why = "lastbyte; error=http_protocol_error; details=\"more than 100 interim responses\"";
    assert_eq!(
        (answer.status, answer.field("proxy-status")),
        (502, Some(why))
    );
    let cut = serving.get("/cut", "");
    assert_eq!(
        (cut.status, cut.field("content-length"), cut.body.as_slice()),
        (200, Some("100"), &b"hello"[..])
    );
    serving.end();
    // No process listens there.
    let closed = TcpListener::bind("127.0.0.1:0")
        .expect("a port")
        .local_addr()
        .expect("an address");
    let serving = front(closed, Limits::default());
    let got = get(&serving, "/");
    assert_eq!(got.status, 502);
    assert!(status_of(&got).starts_with("lastbyte; error=connection_refused; details="));
    serving.end();
}

#[test]
fn rfc9110_7_6_2_the_proxy_answers_requests_that_may_not_be_forwarded() {
    let behind = Behind::start(answers);
    let serving = front(behind.address, Limits::default());
    let ask = |method: &str, limit: u32| {
        let line = "/ HTTP/1.1\r\nhost: localhost\r\nconnection: close";
        serving.ask(&format!("{method} {line}\r\nmax-forwards: {limit}\r\n\r\n"))
    };
    assert_eq!(
        (ask("OPTIONS", 0).status, ask("TRACE", 0).status),
        (204, 501)
    );
    assert_eq!(behind.connections.load(Ordering::Relaxed), 0);
    for method in ["OPTIONS", "TRACE"] {
        let head = String::from_utf8(ask(method, 1).body).expect("text");
        assert!(head.contains("max-forwards: 0\r\n"), "{head}");
    }
    serving.end();
}

fn status_of(got: &crate::http3::Got) -> String {
    let value = got.fields.get("proxy-status").unwrap_or_default();
    String::from_utf8_lossy(value).into_owned()
}

#[test]
fn an_upstream_over_tls_uses_http2_and_its_certificate_is_verified() {
    let behind = Serving::site(lastbyte_server::Site::generated());
    let url = format!("https://localhost:{}", behind.address().port());
    let start = |trusted: &Serving| {
        let mut tls = (*trusted.client(rustls::ALL_VERSIONS)).clone();
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let upstream = url.parse().expect("a server");
        let proxy = Proxy::new(upstream, Some(Arc::new(tls)), Limits::default(), 1);
        Serving::start(settings(proxy.expect("threads")))
    };
    let serving = start(&behind);
    for _ in 0..3 {
        let got = get(&serving, "/1000000");
        assert_eq!(
            (got.status, got.body.len(), got.is_whole),
            (200, 1_000_000, true)
        );
    }
    // A certificate of an unknown authority.
    let distrustful = start(&serving);
    let got = get(&distrustful, "/1");
    assert_eq!(got.status, 502);
    assert!(
        status_of(&got).contains("tls_certificate_error"),
        "{}",
        status_of(&got)
    );
    distrustful.end();
    serving.end();
    let report = behind.server.shut_down(PATIENCE);
    assert_eq!((report.tcp.handshakes, report.tcp.requests_http2), (1, 3));
}

/// A server that speaks HTTP/2 in clear text, and says what it was asked, and over how many connections.
fn behind_h2c() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    listener.set_nonblocking(true).expect("a mode");
    let serve = async move {
        let listener = tokio::net::TcpListener::from_std(listener).expect("a runtime");
        for number in 1.. {
            let (stream, _) = listener.accept().await.expect("a connection");
            let service =
                hyper::service::service_fn(move |request: http::Request<Incoming>| async move {
                    let text = format!("{:?} {} {number}", request.version(), request.uri());
                    Ok::<_, std::convert::Infallible>(http::Response::new(text))
                });
            let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(stream), service);
            tokio::spawn(connection);
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    thread::Builder::new()
        .spawn(move || runtime.block_on(serve))
        .expect("a thread");
    address
}

#[test]
fn an_upstream_can_use_http2_without_tls() {
    let upstream: Upstream = format!("h2c://{}/base", behind_h2c())
        .parse()
        .expect("a server");
    let proxy = Proxy::new(upstream, None, Limits::default(), 1).expect("threads");
    let serving = Serving::start(settings(proxy));
    for _ in 0..3 {
        let answer = serving.get("/x?y", "");
        let text = String::from_utf8(answer.body).expect("text");
        assert_eq!(text, "HTTP/2.0 http://localhost/base/x?y 1");
    }
    serving.end();
}

/// A server that speaks HTTP/2 in clear text, and resets its response with `NO_ERROR` before its end.
fn behind_h2c_that_resets() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let serve = move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let mut preface = [0; 24];
        stream.read_exact(&mut preface).expect("a preface");
        stream.write_all(&frame(SETTINGS, 0, 0, &[])).expect("room");
        loop {
            let mut head = [0; 9];
            stream.read_exact(&mut head).expect("a frame");
            let [a, b, c, kind, ..] = head;
            let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
            stream.read_exact(&mut payload).expect("a frame");
            if kind == HEADERS {
                break;
            }
        }
        // :status 200, END_HEADERS.
        let response = [
            frame(HEADERS, 0x4, 1, &[0x88]),
            frame(DATA, 0, 1, b"a part"),
            frame(RST_STREAM, 0, 1, &[0; 4]),
        ];
        stream.write_all(&response.concat()).expect("room");
        let _ = stream.read_to_end(&mut Vec::new());
    };
    thread::Builder::new().spawn(serve).expect("a thread");
    address
}

#[test]
fn rfc9113_8_1_a_response_reset_without_an_error_is_not_complete() {
    let upstream: Upstream = format!("h2c://{}", behind_h2c_that_resets())
        .parse()
        .expect("a server");
    let proxy = Proxy::new(upstream, None, Limits::default(), 1).expect("threads");
    let serving = Serving::start(settings(proxy));
    let mut client = serving.connect();
    client.send(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    let head = client.head();
    assert!(head.contains("transfer-encoding: chunked"), "{head}");
    // The connection ends without the last chunk.
    let body = client.rest();
    assert_eq!(body.escape_ascii().to_string(), "6\\r\\na part\\r\\n");
    serving.end();
}

#[test]
fn rfc9114_4_3_1_malformed_requests_do_not_reach_the_upstream() {
    let behind = Behind::start(answers);
    let serving = front_of(&format!("http://{}/app", behind.address), Limits::default());
    for (scheme, authority, path) in [
        ("foo", "public.example", "http://internal.example/admin"),
        ("foo", "public.example", "/"),
        ("https", "public.example", "http://internal.example/admin"),
        ("https", "public.example", "-sibling/secret"),
        ("https", "public.example", "*"),
        ("https", "public.example", "/a#b"),
        ("https", "a/b?c#d", "/"),
    ] {
        let request = Request::new("GET", scheme, authority, path);
        let got = ask(&serving, request, Vec::new(), usize::MAX);
        assert!(got.was_reset, "{scheme} {authority} {path}: {got:?}");
    }
    for path in ["/../secret", "/%2e%2e/secret", "/a/..;/b"] {
        assert_eq!(get(&serving, path).status, 400, "{path}");
        assert_eq!(serving.get(path, "").status, 400, "{path}");
    }
    let request = Request::new("GET", "https", "a.example", "/").with("host", "b.example");
    let got = ask(&serving, request, Vec::new(), usize::MAX);
    assert!(got.was_reset, "{got:?}");
    let connections = behind.connections.load(Ordering::Relaxed);
    assert_eq!(connections, 0, "connections to the upstream");
    serving.end();
}

#[test]
fn rfc9112_3_2_http1_requests_without_host_or_path_do_not_reach_the_upstream() {
    let behind = Behind::start(answers);
    let serving = front(behind.address, Limits::default());
    for request in [
        "GET * HTTP/1.1\r\nhost: x\r\n",
        "GET x:80 HTTP/1.1\r\nhost: x\r\n",
        "GET foo://x/y HTTP/1.1\r\nhost: x\r\n",
        "GET http://a@x/y HTTP/1.1\r\nhost: x\r\n",
        "GET / HTTP/1.1\r\nhost: a/b\r\n",
        "GET / HTTP/1.1\r\nhost: a b\r\n",
        "GET / HTTP/1.1\r\nhost: a@b\r\n",
        "GET / HTTP/1.1\r\nhost:\r\n",
        "GET / HTTP/1.1\r\nhost: a:port\r\n",
    ] {
        let answer = serving.ask(&format!("{request}connection: close\r\n\r\n"));
        assert_eq!(answer.status, 400, "{request}");
    }
    assert_eq!(behind.connections.load(Ordering::Relaxed), 0);
    serving.end();
}

#[test]
fn rfc9110_15_3_6_the_content_of_a_205_is_not_forwarded() {
    let serving = front(behind(), Limits::default());
    for _ in 0..2 {
        let answer = serving.get("/reset", "");
        assert_eq!((answer.status, &answer.body[..]), (205, &b""[..]));
        assert_eq!(answer.field("content-length"), Some("0"));
        let got = get(&serving, "/reset");
        assert_eq!((got.status, got.is_whole), (205, true));
        assert!(got.body.is_empty());
    }
    serving.end();
}

#[test]
fn a_request_body_aborted_by_the_client_is_a_client_error() {
    let behind = Behind::start(answers);
    let limits = Limits {
        stall: Duration::from_millis(200),
        ..Limits::default()
    };
    let serving = front(behind.address, limits);
    let head = "POST /echo HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n";
    let zipped = head.replace("chunked", "gzip, chunked");
    let mut client = serving.connect();
    client.send(format!("{zipped}5\r\nhello\r\n0\r\n\r\n").as_bytes());
    let answer = client.head();
    assert!(answer.starts_with("HTTP/1.1 501 "), "{answer}");
    for (body, status) in [
        ("zz\r\nhello\r\n0\r\n\r\n", 400),
        ("5\r\nhello\r\nzz\r\n", 400),
        ("", 408),
        ("5\r\nhello\r\n", 408),
    ] {
        let mut client = serving.connect();
        client.send(format!("{head}{body}").as_bytes());
        let answer = client.head();
        let expected = format!("HTTP/1.1 {status} ");
        assert!(answer.starts_with(&expected), "{body:?}: {answer}");
    }
    serving.end();
}

#[test]
fn rfc9112_6_1_a_request_with_two_lengths_closes_the_connection() {
    let behind = Behind::start(answers);
    let serving = front(behind.address, Limits::default());
    for lengths in [
        "content-length: 3\r\ntransfer-encoding: chunked",
        "transfer-encoding: chunked\r\ncontent-length: 3",
    ] {
        let mut client = serving.connect();
        let request = format!(
            "POST /echo HTTP/1.1\r\nhost: x\r\n{lengths}\r\n\r\n5\r\nhello\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nhost: x\r\n\r\n"
        );
        client.send(request.as_bytes());
        let answer = crate::serving::Response::parse(&client.rest());
        assert_eq!(
            (answer.status, answer.body.as_slice()),
            (200, &b"hello"[..])
        );
        assert_eq!(answer.field("connection"), Some("close"));
    }
    serving.end();
}

#[test]
fn an_upstream_that_reads_nothing_of_a_body_times_out() {
    // Connections wait in its backlog, and nothing is read.
    let deaf = TcpListener::bind("127.0.0.1:0").expect("a port");
    let limits = Limits {
        response: Duration::from_millis(200),
        ..Limits::default()
    };
    let serving = front(deaf.local_addr().expect("an address"), limits);
    // More than all buffers on the way hold.
    let request = Request::new("POST", "https", "localhost", "/");
    let got = ask(&serving, request, vec![0; 30_000_000], usize::MAX);
    assert_eq!(got.status, 504);
    assert!(status_of(&got).contains("http_response_timeout"));
    drop(serving.server.shut_down(Duration::ZERO));
}
