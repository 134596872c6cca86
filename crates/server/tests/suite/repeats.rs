//! Requests that meet the end of a connection to the upstream server, and those that are sent again.

use std::{
    cell::Cell,
    collections::BTreeMap,
    convert::Infallible,
    future::poll_fn,
    io::{Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use hyper::body::{Body as _, Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo};
use lastbyte_server::proxy::Limits;

use crate::{
    limits::{DATA, HEADERS, RST_STREAM, frame},
    proxy::{Behind, front_of},
    serving::{Response, Serving},
};

const GOAWAY: u8 = 7;
const REFUSED_STREAM: u32 = 7;
/// What RFC 9113 §6.8 recommends for the first of two GOAWAY frames.
const ALL: u32 = (1 << 31) - 1;

/// How often each request was handled.
type Handled = Arc<Mutex<BTreeMap<String, usize>>>;

/// A server of HTTP/2 in clear text that sends bodies back.
fn echo() -> (SocketAddr, Handled) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    listener.set_nonblocking(true).expect("a mode");
    let handled = Handled::default();
    let count = Arc::clone(&handled);
    let serve = async move {
        let listener = tokio::net::TcpListener::from_std(listener).expect("a runtime");
        loop {
            let (stream, _) = listener.accept().await.expect("a connection");
            let count = Arc::clone(&count);
            let service = hyper::service::service_fn(move |request| {
                let count = Arc::clone(&count);
                async move { Ok::<_, Infallible>(answer(&count, request).await) }
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
    (address, handled)
}

async fn answer(handled: &Handled, request: http::Request<Incoming>) -> http::Response<String> {
    let (head, mut body) = request.into_parts();
    let mut text = String::new();
    while let Some(Ok(frame)) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        if let Ok(data) = frame.into_data() {
            text.push_str(&String::from_utf8_lossy(&data));
        }
    }
    let mut handled = handled.lock().unwrap_or_else(PoisonError::into_inner);
    *handled.entry(head.uri.path().to_owned()).or_default() += 1;
    http::Response::new(text)
}

/// What a relay does with the requests of a connection beyond the first [`Relay::served`] ones, which it does not pass on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beyond {
    /// GOAWAY with the largest stream ID with the last request that is served, and with that one's ID after the next.
    Graceful,
    /// GOAWAY with the ID of the last request that is served, together with it.
    Abrupt,
    /// The same, once this number of further requests has arrived.
    Late(usize),
    /// `RST_STREAM` with `REFUSED_STREAM`, once this many bytes of the body have arrived.
    Refused(usize),
    /// The connection is closed, once this number of further requests has arrived.
    Closed(usize),
}

/// A relay of HTTP/2 in clear text.
#[derive(Clone)]
struct Relay {
    served: usize,
    beyond: Beyond,
    /// Connections after these pass everything on.
    limited: usize,
    /// How many requests were not passed on.
    dropped: Arc<AtomicUsize>,
    /// How many connections there were.
    connections: Arc<AtomicUsize>,
}

impl Relay {
    fn start(served: usize, beyond: Beyond, limited: usize, to: SocketAddr) -> (Self, String) {
        let relay = Self {
            served,
            beyond,
            limited,
            dropped: Arc::default(),
            connections: Arc::default(),
        };
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("h2c://{}", listener.local_addr().expect("an address"));
        let started = relay.clone();
        let accept = move || {
            for (number, client) in listener.incoming().enumerate() {
                let client = client.expect("a connection");
                let behind = TcpStream::connect(to).expect("a listener");
                let mut relay = started.clone();
                relay.connections.fetch_add(1, Ordering::Relaxed);
                if number >= relay.limited {
                    relay.served = usize::MAX;
                }
                let writer = Arc::new(Mutex::new(client.try_clone().expect("a socket")));
                let (from, replies) = (behind.try_clone().expect("a socket"), Arc::clone(&writer));
                let responses = move || pass_responses(from, &replies);
                thread::Builder::new().spawn(responses).expect("a thread");
                let requests = move || relay.pass_requests(client, behind, &writer);
                thread::Builder::new().spawn(requests).expect("a thread");
            }
        };
        thread::Builder::new().spawn(accept).expect("a thread");
        (relay, url)
    }

    fn dropped(&self) -> usize {
        self.dropped.load(Ordering::Relaxed)
    }

    fn pass_requests(
        self,
        mut client: TcpStream,
        mut server: TcpStream,
        writer: &Mutex<TcpStream>,
    ) {
        let mut preface = [0; 24];
        if client.read_exact(&mut preface).is_err() || server.write_all(&preface).is_err() {
            return;
        }
        let go_away = |last: u32| {
            let payload = [last.to_be_bytes(), [0; 4]].concat();
            send(writer, &frame(GOAWAY, 0, 0, &payload));
        };
        let (mut requests, mut last, mut received) = (0, 0, BTreeMap::<u32, usize>::new());
        while let Some(bytes) = next(&mut client) {
            let kind = bytes[3];
            let stream = u32::from_be_bytes([bytes[5], bytes[6], bytes[7], bytes[8]]);
            if kind == HEADERS {
                requests += 1;
                if requests <= self.served {
                    last = stream;
                }
                if requests > self.served {
                    self.dropped.fetch_add(1, Ordering::Relaxed);
                }
                let beyond = requests.saturating_sub(self.served);
                match self.beyond {
                    Beyond::Graceful if requests == self.served => go_away(ALL),
                    Beyond::Graceful if beyond == 1 => go_away(last),
                    Beyond::Abrupt if requests == self.served => go_away(last),
                    Beyond::Late(count) if beyond == count => go_away(last),
                    Beyond::Closed(count) if beyond == count => break,
                    _ => {}
                }
            }
            if requests > self.served && stream > last {
                let data = if kind == DATA { bytes.len() - 9 } else { 0 };
                let received = received.entry(stream).or_default();
                let before = *received;
                *received += data;
                if let Beyond::Refused(len) = self.beyond
                    && *received >= len
                    && (before < len || kind == HEADERS)
                {
                    let code = REFUSED_STREAM.to_be_bytes();
                    send(writer, &frame(RST_STREAM, 0, stream, &code));
                }
            } else if server.write_all(&bytes).is_err() {
                break;
            }
        }
        let _ = client.shutdown(Shutdown::Both);
        let _ = server.shutdown(Shutdown::Both);
    }
}

fn send(to: &Mutex<TcpStream>, bytes: &[u8]) {
    let mut to = to.lock().unwrap_or_else(PoisonError::into_inner);
    let _ = to.write_all(bytes);
}

/// The next frame.
fn next(from: &mut TcpStream) -> Option<Vec<u8>> {
    let mut bytes = vec![0; 9];
    from.read_exact(&mut bytes).ok()?;
    let len = u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]]) as usize;
    bytes.resize(9 + len, 0);
    from.read_exact(&mut bytes[9..]).ok()?;
    Some(bytes)
}

fn pass_responses(mut from: TcpStream, to: &Mutex<TcpStream>) {
    while let Some(bytes) = next(&mut from) {
        send(to, &bytes);
    }
    let _ = to
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .shutdown(Shutdown::Both);
}

fn ask(serving: &Serving, method: &str, path: &str, body: &str) -> Response {
    let len = body.len();
    serving.ask(&format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {len}\r\n\r\n{body}"
    ))
}

/// 20 requests at once: each is answered, and each was handled once.
fn all_are_handled_once(served: usize, beyond: Beyond, limited: usize) {
    for (method, body) in [("GET", String::new()), ("POST", "x".repeat(10_000))] {
        let (address, handled) = echo();
        let (relay, url) = Relay::start(served, beyond, limited, address);
        let serving = front_of(&url, Limits::default());
        thread::scope(|scope| {
            for number in 0..20 {
                let (serving, body) = (&serving, &body);
                scope.spawn(move || {
                    let answer = ask(serving, method, &format!("/{number}"), body);
                    let why = answer.field("proxy-status");
                    assert_eq!(answer.status, 200, "{beyond:?} {method} {number}: {why:?}");
                    assert_eq!(
                        answer.body.len(),
                        body.len(),
                        "{beyond:?} {method} {number}"
                    );
                });
            }
        });
        let handled = handled.lock().unwrap_or_else(PoisonError::into_inner);
        assert_eq!(handled.len(), 20, "{handled:?}");
        assert!(handled.values().all(|count| *count == 1), "{handled:?}");
        if let Beyond::Late(count) = beyond {
            assert_eq!(relay.dropped(), count);
        }
        serving.end();
    }
}

#[test]
fn rfc9113_6_8_requests_beyond_a_graceful_goaway_are_sent_again() {
    all_are_handled_once(5, Beyond::Graceful, usize::MAX);
}

#[test]
fn rfc9113_6_8_requests_beyond_an_abrupt_goaway_are_sent_again() {
    all_are_handled_once(5, Beyond::Abrupt, usize::MAX);
}

#[test]
fn rfc9113_6_8_requests_to_a_server_of_one_request_per_connection_are_sent_again() {
    all_are_handled_once(1, Beyond::Abrupt, usize::MAX);
}

#[test]
fn rfc9113_6_8_requests_beyond_a_late_goaway_are_sent_again() {
    all_are_handled_once(5, Beyond::Late(15), 1);
}

#[test]
fn rfc9113_8_7_refused_requests_are_sent_again() {
    all_are_handled_once(5, Beyond::Refused(0), usize::MAX);
}

#[test]
fn rfc9113_6_8_a_connection_with_goaway_gets_no_new_requests() {
    let (address, handled) = echo();
    let (relay, url) = Relay::start(1, Beyond::Abrupt, usize::MAX, address);
    let serving = front_of(&url, Limits::default());
    for number in 0..10 {
        assert_eq!(
            ask(&serving, "POST", &format!("/{number}"), "x").status,
            200
        );
    }
    // GOAWAY comes before the response.
    assert_eq!(relay.dropped(), 0);
    let handled = handled.lock().unwrap_or_else(PoisonError::into_inner);
    assert!(handled.len() == 10 && handled.values().all(|count| *count == 1));
    serving.end();
}

#[test]
fn a_server_that_refuses_every_stream_is_asked_eight_times() {
    let (address, handled) = echo();
    let (relay, url) = Relay::start(0, Beyond::Refused(0), usize::MAX, address);
    let serving = front_of(&url, Limits::default());
    let answer = ask(&serving, "GET", "/", "");
    let why = answer.field("proxy-status").expect("a reason");
    assert_eq!((answer.status, relay.dropped()), (502, 8), "{why}");
    assert!(why.contains("http_protocol_error"), "{why}");
    assert!(
        handled
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_empty()
    );
    serving.end();
}

#[test]
fn rfc9113_8_7_a_request_that_a_server_refuses_is_sent_to_another() {
    let (address, _) = echo();
    let (relay, refuses) = Relay::start(0, Beyond::Refused(0), usize::MAX, address);
    let (_, good) = Relay::start(usize::MAX, Beyond::Refused(0), 0, address);
    let serving = front_of(&format!("{refuses},{good}"), Limits::default());
    for _ in 0..2 {
        let answer = ask(&serving, "POST", "/", "body");
        assert_eq!(answer.status, 200, "{:?}", answer.field("proxy-status"));
    }
    assert_eq!(relay.dropped(), 16);
    serving.end();
}

#[test]
fn a_refused_body_that_is_no_longer_held_is_not_sent_again() {
    let (address, _) = echo();
    let (relay, url) = Relay::start(0, Beyond::Refused(150_000), usize::MAX, address);
    let serving = front_of(&url, Limits::default());
    let answer = ask(&serving, "POST", "/", &"x".repeat(200_000));
    assert_eq!((answer.status, relay.dropped()), (502, 1));
    serving.end();
}

const IDEMPOTENT: [&str; 6] = ["GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"];

/// A body, for methods that may have one (RFC 9110 §9.3.8: TRACE must not).
fn body_of(method: &str) -> &'static str {
    if matches!(method, "PUT" | "POST") {
        "hello"
    } else {
        ""
    }
}

#[test]
fn rfc9110_9_2_2_idempotent_requests_are_sent_again_when_an_http2_connection_ends() {
    let (address, handled) = echo();
    let (relay, url) = Relay::start(1, Beyond::Closed(1), usize::MAX, address);
    let serving = front_of(&url, Limits::default());
    assert_eq!(ask(&serving, "GET", "/first", "").status, 200);
    for (count, method) in (1..).zip(IDEMPOTENT) {
        let answer = ask(&serving, method, &format!("/{method}"), body_of(method));
        assert_eq!((answer.status, relay.dropped()), (200, count), "{method}");
    }
    assert_eq!(ask(&serving, "POST", "/POST", "hello").status, 502);
    let handled = handled.lock().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(handled.len(), 7, "{handled:?}");
    assert!(handled.values().all(|count| *count == 1), "{handled:?}");
    serving.end();
}

/// Requests that met the end of a connection share the one that the first of them opens.
#[test]
fn rfc9110_9_2_2_requests_that_are_sent_again_share_a_connection() {
    let (address, handled) = echo();
    let (relay, url) = Relay::start(1, Beyond::Closed(20), 1, address);
    let serving = front_of(&url, Limits::default());
    assert_eq!(ask(&serving, "GET", "/first", "").status, 200);
    thread::scope(|scope| {
        for number in 0..20 {
            let serving = &serving;
            scope.spawn(move || {
                let answer = ask(serving, "GET", &format!("/{number}"), "");
                assert_eq!(answer.status, 200, "{number}");
            });
        }
    });
    assert_eq!(relay.dropped(), 20);
    assert_eq!(relay.connections.load(Ordering::Relaxed), 2);
    let handled = handled.lock().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(handled.len(), 21, "{handled:?}");
    serving.end();
}

thread_local! {
    /// Of the connection that this thread of [`Behind`] serves.
    static REQUESTS: Cell<usize> = const { Cell::new(0) };
}

/// Requests that met the end of their connection in [`closes`].
static CLOSED: AtomicUsize = AtomicUsize::new(0);

/// Keeps connections after the first response, and closes them when another request arrives.
fn closes(head: &str, _: &[u8], stream: &mut TcpStream) {
    let number = REQUESTS.with(|count| count.replace(count.get() + 1));
    let path = head.split(' ').nth(1).expect("a path");
    if number > 0 || path == "/never" {
        CLOSED.fetch_add(1, Ordering::Relaxed);
        if path == "/part" {
            let _ = stream.write_all(b"H");
        }
        let _ = stream.shutdown(Shutdown::Both);
        return;
    }
    let body = if head.starts_with("head ") { "" } else { "ok" };
    let response = format!("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{body}");
    let _ = stream.write_all(response.as_bytes());
}

#[test]
fn rfc9110_9_2_2_idempotent_requests_are_sent_again_when_a_kept_connection_ends() {
    let behind = Behind::start(closes);
    let serving = front_of(&format!("http://{}", behind.address), Limits::default());
    // A connection is idle shortly after the end of its response, which may be after the next request.
    let meets_the_end = |method: &str, path: &str, ends: usize| loop {
        let before = CLOSED.load(Ordering::Relaxed);
        let answer = ask(&serving, method, path, body_of(method));
        let met = CLOSED.load(Ordering::Relaxed) - before;
        if met == ends {
            return answer.status;
        }
        assert!(met < ends, "{method} {path} was sent {met} times");
    };
    for method in IDEMPOTENT {
        assert_eq!(meets_the_end(method, "/end", 1), 200, "{method}");
    }
    assert_eq!(meets_the_end("POST", "/end", 1), 502);
    assert_eq!(ask(&serving, "GET", "/", "").status, 200);
    assert_eq!(meets_the_end("GET", "/part", 1), 502, "a byte had arrived");
    assert_eq!(ask(&serving, "GET", "/", "").status, 200);
    // Once on the kept connection, once on a new one.
    assert_eq!(meets_the_end("GET", "/never", 2), 502);
    serving.end();
}

/// Announces nothing, and closes right after its response.
fn closes_at_once(_: &str, _: &[u8], stream: &mut TcpStream) {
    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
    let _ = stream.shutdown(Shutdown::Both);
}

#[test]
fn rfc9112_9_3_1_no_request_is_lost_to_connections_that_end_after_each_response() {
    let behind = Behind::start(closes_at_once);
    let serving = front_of(&format!("http://{}", behind.address), Limits::default());
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let answer = ask(&serving, "GET", "/", "");
                    let why = answer.field("proxy-status");
                    assert_eq!(answer.status, 200, "{why:?}");
                }
            });
        }
    });
    serving.end();
}

/// RFC 9112 §9.5: the server closes the connection although the request is still being sent, which resets it.
#[test]
fn the_response_of_a_server_that_closes_during_an_upload_is_passed_on() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let count = Arc::new(AtomicUsize::new(0));
    let requests = Arc::clone(&count);
    let answer = move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let mut head = [0; 4 << 10];
            let _ = stream.read(&mut head).expect("the head");
            requests.fetch_add(1, Ordering::Relaxed);
            let response = b"HTTP/1.1 413 Content Too Large\r\ncontent-length: 3\r\n\r\nbig";
            stream.write_all(response).expect("there is room");
        }
    };
    thread::Builder::new().spawn(answer).expect("a thread");
    let serving = front_of(&format!("http://{address}"), Limits::default());
    let body = "x".repeat(8 << 20);
    for number in 0..20 {
        let answer = ask(&serving, "PUT", "/", &body);
        let why = answer.field("proxy-status");
        assert_eq!(
            (answer.status, &answer.body[..]),
            (413, &b"big"[..]),
            "{number}: {why:?}"
        );
    }
    assert_eq!(count.load(Ordering::Relaxed), 20, "each is sent once");
    serving.end();
}
