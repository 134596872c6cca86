//! Clients that stall, cancel or come all at once, in front of one server behind a proxy.

use std::{
    convert::Infallible,
    net::{SocketAddr, TcpListener},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
        mpsc,
    },
    task::{Context, Poll},
    thread,
    time::Duration,
};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo};
use lastbyte_server::proxy::Limits;
use tokio::sync::Barrier;

use crate::{
    proxy::front_of,
    serving::{PATIENCE, Serving},
};

/// A server of HTTP/1.1 or of HTTP/2 in clear text.
///
/// | path | answer |
/// |---|---|
/// | `/1000` | that many bytes; the test learns if not all were taken |
/// | `/together` | the number of the connection, once as many requests are there as wait for each other |
/// | `/early` | at once; the test learns how the body of the request ended |
struct Upstream {
    url: String,
    state: Arc<State>,
    ended: mpsc::Receiver<bool>,
}

struct State {
    connections: AtomicUsize,
    /// Bytes of bodies that were asked for.
    sent: AtomicU64,
    together: Barrier,
    ended: mpsc::Sender<bool>,
}

/// Zeros.
struct Zeros {
    left: usize,
    state: Arc<State>,
}

const PIECE: [u8; 16 << 10] = [0; 16 << 10];

impl Body for Zeros {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = &PIECE[..self.left.min(PIECE.len())];
        if piece.is_empty() {
            return Poll::Ready(None);
        }
        self.left -= piece.len();
        let len = piece.len() as u64;
        self.state.sent.fetch_add(len, Ordering::Relaxed);
        Poll::Ready(Some(Ok(Frame::data(
            Bytes::from_static(&PIECE).slice(..piece.len()),
        ))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }
}

impl Drop for Zeros {
    fn drop(&mut self) {
        if self.left > 0 {
            let _ = self.state.ended.send(false);
        }
    }
}

async fn answer(
    state: Arc<State>,
    connection: usize,
    request: http::Request<Incoming>,
) -> Result<http::Response<Zeros>, Infallible> {
    let (head, mut body) = request.into_parts();
    let path = head.uri.path();
    let mut left = 0;
    if path == "/together" {
        state.together.wait().await;
    } else if path == "/early" {
        let state = Arc::clone(&state);
        tokio::spawn(async move {
            let is_whole = loop {
                match std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await
                {
                    None => break true,
                    Some(Ok(_)) => {}
                    Some(Err(_)) => break false,
                }
            };
            let _ = state.ended.send(is_whole);
        });
    } else {
        left = path[1..].parse().expect("a number");
    }
    let response = http::Response::builder()
        .header("x-connection", connection.to_string())
        .header("content-length", left.to_string());
    Ok(response.body(Zeros { left, state }).expect("a response"))
}

impl Upstream {
    /// `together`: how many requests to that path wait for each other.
    fn start(scheme: &str, together: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address: SocketAddr = listener.local_addr().expect("an address");
        listener.set_nonblocking(true).expect("a mode");
        let (ended, end) = mpsc::channel();
        let state = Arc::new(State {
            connections: AtomicUsize::new(0),
            sent: AtomicU64::new(0),
            together: Barrier::new(together),
            ended,
        });
        let shared = Arc::clone(&state);
        let is_http2 = scheme == "h2c";
        let serve = async move {
            let listener = tokio::net::TcpListener::from_std(listener).expect("a runtime");
            loop {
                let (stream, _) = listener.accept().await.expect("a connection");
                let number = shared.connections.fetch_add(1, Ordering::Relaxed) + 1;
                let state = Arc::clone(&shared);
                let service = hyper::service::service_fn(move |request| {
                    answer(Arc::clone(&state), number, request)
                });
                let stream = TokioIo::new(stream);
                tokio::spawn(async move {
                    if is_http2 {
                        let builder =
                            hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                        let _ = builder.serve_connection(stream, service).await;
                    } else {
                        let builder = hyper::server::conn::http1::Builder::new();
                        let _ = builder.serve_connection(stream, service).await;
                    }
                });
            }
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let run = move || runtime.block_on(async { tokio::spawn(serve).await });
        thread::Builder::new().spawn(run).expect("a thread");
        Self {
            url: format!("{scheme}://{address}"),
            state,
            ended: end,
        }
    }

    fn connections(&self) -> usize {
        self.state.connections.load(Ordering::Relaxed)
    }
}

/// More than all buffers on the way hold.
const ENDLESS: &str = "/1000000000";

fn stalled(serving: &Serving) -> crate::serving::Client {
    let mut client = serving.connect();
    client.send(format!("GET {ENDLESS} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes());
    let head = client.head();
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    client
}

/// Five clients take the head of a response and no more of it. While the buffers on the way fill, and once they are full, another
/// client is served.
fn clients_that_stall_delay_no_other(scheme: &str) {
    let upstream = Upstream::start(scheme, 1);
    let serving = front_of(&upstream.url, Limits::default());
    let clients: Vec<_> = (0..5).map(|_| stalled(&serving)).collect();
    let (mut sent, mut quiet) = (0, 0);
    while quiet < 20 {
        let answer = serving.get("/1000", "");
        assert_eq!((answer.status, answer.body.len()), (200, 1000));
        // But for what was just served.
        let now = upstream.state.sent.load(Ordering::Relaxed);
        quiet = if now == sent + 1000 { quiet + 1 } else { 0 };
        sent = now;
    }
    assert!(sent < 5 * 1_000_000_000);
    drop(clients);
    drop(serving.server.shut_down(Duration::ZERO));
}

#[test]
fn stalled_clients_do_not_delay_others_over_http2() {
    clients_that_stall_delay_no_other("h2c");
}

#[test]
fn stalled_clients_do_not_delay_others_over_http1() {
    clients_that_stall_delay_no_other("http");
}

#[test]
fn a_stalled_client_is_aborted_when_all_slots_are_in_use() {
    let upstream = Upstream::start("http", 1);
    let limits = Limits {
        requests: 2,
        ..Limits::default()
    };
    let serving = front_of(&upstream.url, limits);
    let clients: Vec<_> = (0..4).map(|_| stalled(&serving)).collect();
    for _ in 0..3 {
        assert_eq!(serving.get("/1000", "").status, 200);
    }
    drop(clients);
    drop(serving.server.shut_down(Duration::ZERO));
}

/// Requests that are all there before one of them is answered: the numbers of their connections.
fn together(serving: &Serving, count: usize) -> Vec<String> {
    thread::scope(|scope| {
        let ask = || {
            let answer = serving.get("/together", "");
            assert_eq!(answer.status, 200);
            answer.field("x-connection").expect("a number").to_owned()
        };
        let asking: Vec<_> = (0..count).map(|_| scope.spawn(ask)).collect();
        let answers = asking
            .into_iter()
            .map(|asked| asked.join().expect("it is answered"));
        answers.collect()
    })
}

#[test]
fn concurrent_requests_share_one_http2_connection() {
    let upstream = Upstream::start("h2c", 20);
    let serving = front_of(&upstream.url, Limits::default());
    let numbers = together(&serving, 20);
    assert!(numbers.iter().all(|number| number == "1"), "{numbers:?}");
    assert_eq!(upstream.connections(), 1);
    serving.end();
}

#[test]
fn more_requests_than_streams_open_another_http2_connection() {
    let upstream = Upstream::start("h2c", 12);
    let limits = Limits {
        streams: 4,
        ..Limits::default()
    };
    let serving = front_of(&upstream.url, limits);
    let numbers = together(&serving, 12);
    for number in ["1", "2", "3"] {
        let count = numbers.iter().filter(|known| *known == number).count();
        assert_eq!(count, 4, "{numbers:?}");
    }
    assert_eq!(upstream.connections(), 3);
    serving.end();
}

#[test]
fn a_request_body_ends_with_its_response() {
    for scheme in ["h2c", "http"] {
        let upstream = Upstream::start(scheme, 1);
        let serving = front_of(&upstream.url, Limits::default());
        let mut client = serving.connect();
        client.send(b"POST /early HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nhello");
        let head = client.head();
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        // The client sends no more, and does not go.
        let is_whole = upstream.ended.recv_timeout(PATIENCE).expect("it ends");
        assert!(!is_whole, "{scheme}");
        drop(client);
        serving.end();
    }
}

#[test]
fn a_client_that_reads_nothing_for_too_long_loses_its_upstream() {
    for scheme in ["h2c", "http"] {
        let upstream = Upstream::start(scheme, 1);
        let limits = Limits {
            stall: Duration::from_millis(200),
            ..Limits::default()
        };
        let serving = front_of(&upstream.url, limits);
        let client = stalled(&serving);
        let is_whole = upstream.ended.recv_timeout(PATIENCE).expect("it ends");
        assert!(!is_whole, "{scheme}");
        drop(client);
        drop(serving.server.shut_down(Duration::ZERO));
    }
}

#[test]
fn requests_return_their_slot_and_stream_whichever_way_they_end() {
    for scheme in ["h2c", "http"] {
        let upstream = Upstream::start(scheme, 1);
        let limits = Limits {
            requests: 1,
            streams: 1,
            ..Limits::default()
        };
        let serving = front_of(&upstream.url, limits);
        let ended = || upstream.ended.recv_timeout(PATIENCE).expect("it ends");
        for _ in 0..10 {
            // The client leaves during the response.
            drop(stalled(&serving));
            assert!(!ended());
            assert_eq!(serving.get("/1000", "").status, 200, "{scheme}");
            // The response ends before the request.
            let mut client = serving.connect();
            client.send(b"POST /early HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nhello");
            let head = client.head();
            assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
            assert!(!ended());
            assert_eq!(serving.get("/1000", "").status, 200, "{scheme}");
            // The client leaves during the request.
            let mut client = serving.connect();
            client.send(b"POST /early HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n");
            drop(client);
            assert_eq!(serving.get("/1000", "").status, 200, "{scheme}");
        }
        serving.end();
    }
}
