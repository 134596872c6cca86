mod world;

use std::{
    future::poll_fn,
    net::Ipv4Addr,
    pin::Pin,
    sync::{Mutex, PoisonError, atomic::AtomicU32},
    task::Poll,
};

use lastbyte_http3::{Request, Response};
use lastbyte_origin::times::RequestTimes;
use lastbyte_quic::{connection::Config, stream::WindowBudget};
use tokio::{
    io::{AsyncWriteExt, DuplexStream, ReadBuf, duplex},
    runtime,
    sync::{Notify, watch},
    task::{JoinHandle, yield_now},
};
use tokio_rustls::{TlsAcceptor, TlsConnector, client};

use super::*;
use crate::{
    Arms, FullResponse, Handler, HandlerResponse, Peer, Sites,
    access::AccessLog,
    arms::ArmsInUse,
    budget::{self, Budget},
    date::DateField,
    exchange::{Exchange, Piece},
    tcp::{Counts, Limits, test_tls::configurations},
};

const SECOND: Duration = Duration::from_secs(1);
const TENTH: Duration = Duration::from_millis(100);
/// Less than a second.
const ALMOST: Duration = Duration::from_millis(900);

const fn size_of_future<A, B, C, D, F: Future>(_: &impl Fn(A, B, C, D) -> F) -> usize {
    size_of::<F>()
}

/// With all stages in it, it had 7.5 KB.
#[test]
fn the_future_of_a_connection_is_small() {
    let size = size_of_future(&serve);
    assert!(size <= 512, "{size}");
}

/// Exchanges of `/task`, in their order.
type Exchanges = Arc<Mutex<Vec<Exchange>>>;

/// Responds at once, but to `/task`, and with 30 000 bytes to `/large`.
struct Scripted(Exchanges);

impl Handler for Scripted {
    fn handle(&self, request: &Request, _: &Peer) -> HandlerResponse {
        match request.path().unwrap_or_default() {
            "/task" => {
                let exchanges = Arc::clone(&self.0);
                HandlerResponse::Task(Box::new(move |exchange| {
                    let mut exchanges = exchanges.lock().unwrap_or_else(PoisonError::into_inner);
                    exchanges.push(exchange);
                }))
            }
            "/large" => {
                FullResponse::source(200, "text/plain", Box::new(vec![b'x'; 30_000])).into()
            }
            _ => FullResponse::text(200, "now").into(),
        }
    }

    fn takes_tunnel(&self, request: &Request) -> bool {
        request.path() == Some("/task")
    }
}

/// A server whose connections are in memory.
struct Server {
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
    client: Arc<rustls::ClientConfig>,
    exchanges: Exchanges,
}

impl Server {
    fn new(limits: Limits) -> Self {
        let exchanges = Exchanges::default();
        let handler = Arc::new(Scripted(Arc::clone(&exchanges)));
        Self {
            exchanges,
            ..Self::with(limits, handler, None)
        }
    }

    /// With this handler.
    fn with(limits: Limits, handler: Arc<dyn Handler>, access: Option<AccessLog>) -> Self {
        let (tls, client) = configurations();
        let stop = watch::Sender::new(false);
        let config = Config::new("cubic".parse().expect("a spec"));
        let shared = Shared {
            thread: 0,
            sites: Sites::default(),
            arms: Arc::new(ArmsInUse::new(Arms::one(Arc::new(config)))),
            acceptor: TlsAcceptor::from(Arc::new(tls)),
            handler,
            access,
            log: None,
            alt_svc: None,
            interim_http1: false,
            limits,
            budget: Budget::new(budget::Limits::default()),
            window_budget: WindowBudget::new(1 << 20),
            upload_window: Arc::new(AtomicU32::new(limits.upload_window)),
            counts: Arc::new(Counts {
                times: [0, 1].map(|_| RequestTimes::new(1)),
                ..Counts::default()
            }),
            date: DateField::default(),
            next_number: Arc::default(),
            name_refused: Arc::<Notify>::default(),
            is_closing: Arc::default(),
            stopped: stop.subscribe(),
        };
        Self {
            shared: Arc::new(shared),
            stop,
            client: Arc::new(client),
            exchanges: Exchanges::default(),
        }
    }

    /// A client of a connection, over a socket that holds `room` bytes.
    async fn connect(&self, is_http2: bool, room: usize) -> Client {
        self.connect_within(is_http2, room, 3600 * SECOND).await
    }

    /// The same; the client must read something in this time.
    async fn connect_within(&self, is_http2: bool, room: usize, stall: Duration) -> Client {
        let (near, far) = duplex(room);
        let near = Stalled::new(near, stall);
        let has_stalled = near.has_stalled();
        let accepted = tokio::spawn(self.shared.acceptor.accept(near));
        let name = "localhost".try_into().expect("a name");
        let client = TlsConnector::from(Arc::clone(&self.client)).connect(name, far);
        let stream = client.await.expect("a handshake");
        let tls = accepted.await.expect("no panic").expect("a handshake");
        let remote = SocketAddr::from((Ipv4Addr::LOCALHOST, 50_000));
        let new =
            |turns| Connection::new(&self.shared, (remote, 0), None, None, turns, has_stalled);
        let serving = if is_http2 {
            let turns = Arc::<Turns>::default();
            http2::serve(&self.shared, tls, new(Some(Arc::clone(&turns))), turns)
        } else {
            serve_http1(&self.shared, tls, new(None))
        };
        Client {
            stream,
            serving: tokio::spawn(serving),
            received: Vec::new(),
        }
    }

    fn shut_down(&self) {
        self.stop.send_replace(true);
    }

    /// The exchange of the last request for `/task`.
    fn exchange(&self) -> Exchange {
        let mut exchanges = self
            .exchanges
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        exchanges.pop().expect("a request")
    }
}

struct Client {
    stream: client::TlsStream<DuplexStream>,
    serving: JoinHandle<()>,
    /// What it received and has not looked at.
    received: Vec<u8>,
}

impl Client {
    async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.expect("it is open");
        self.stream.flush().await.expect("it is open");
        settle().await;
    }

    /// Reads what the socket holds now.
    async fn read_once(&mut self) {
        let Self {
            stream, received, ..
        } = self;
        let mut bytes = [0; 4 << 10];
        let mut buffer = ReadBuf::new(&mut bytes);
        let _ =
            poll_fn(|context| Poll::Ready(Pin::new(&mut *stream).poll_read(context, &mut buffer)))
                .await;
        received.extend_from_slice(buffer.filled());
    }

    /// Everything that the server sends before it waits.
    async fn read(&mut self) -> Vec<u8> {
        settle().await;
        loop {
            let before = self.received.len();
            self.read_once().await;
            settle().await;
            if self.received.len() == before {
                return std::mem::take(&mut self.received);
            }
        }
    }

    /// As [`Client::read`], as text.
    async fn text(&mut self) -> String {
        String::from_utf8(self.read().await).expect("text")
    }

    /// As [`Client::read`], as frames: their types and flags, and the length of their payloads.
    async fn frames(&mut self) -> Vec<(u8, u8, usize)> {
        frames(&self.read().await)
    }
}

fn frames(mut bytes: &[u8]) -> Vec<(u8, u8, usize)> {
    let mut frames = Vec::new();
    while let [a, b, c, kind, flags, _, _, _, _, rest @ ..] = bytes {
        let len = u32::from_be_bytes([0, *a, *b, *c]) as usize;
        frames.push((*kind, *flags, len));
        bytes = rest.get(len..).unwrap_or_default();
    }
    frames
}

const HEADERS: u8 = 1;
const GOAWAY: u8 = 7;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// The beginning of a connection (RFC 9113 §3.4).
fn preface() -> Vec<u8> {
    [
        &b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..],
        &frame(4, 0, 0, &[]),
    ]
    .concat()
}

/// `GET` of a path, on a stream that is then at its end.
fn get(stream: u32, path: &str) -> Vec<u8> {
    let mut block = vec![0x82, 0x87, 0x01, 1, b'x', 0x04, path.len() as u8];
    block.extend(path.as_bytes());
    frame(HEADERS, 0x5, stream, &block)
}

/// Lets the other tasks of the thread run until they wait.
async fn settle() {
    for _ in 0..100 {
        yield_now().await;
    }
}

/// Lets this time pass, in which all that is due happens.
async fn pass(span: Duration) {
    // The clock of `run` is virtual.
    time::sleep(span).await;
}

/// In virtual time.
fn run(test: impl Future<Output = ()>) {
    let runtime = runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    runtime.expect("a runtime").block_on(test);
}

/// A client that has connected just before a shutdown.
#[test]
fn a_new_http1_connection_is_served_for_a_second_of_a_shutdown() {
    run(async {
        let server = Server::new(Limits::default());
        let mut asking = server.connect(false, 1 << 16).await;
        let silent = server.connect(false, 1 << 16).await;
        settle().await;
        server.shut_down();
        pass(ALMOST).await;
        assert!(!silent.serving.is_finished());
        asking.send(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
        let text = asking.text().await;
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
        assert!(text.contains("\r\nconnection: close\r\n"), "{text}");
        pass(2 * TENTH).await;
        assert!(asking.serving.is_finished() && silent.serving.is_finished());
    });
}

/// Its client does not know that the connection is about to end: the header of the response was sent before.
#[test]
fn an_http1_connection_is_served_for_a_second_after_a_response_that_ends_in_a_shutdown() {
    run(async {
        let server = Server::new(Limits::default());
        let mut client = server.connect(false, 1 << 16).await;
        client.send(b"GET /task HTTP/1.1\r\nhost: x\r\n\r\n").await;
        let mut exchange = server.exchange();
        let begun = exchange.outgoing.begin(Response::new(200)).await;
        begun.expect("it is open");
        let text = client.text().await;
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
        assert!(!text.contains("connection: close"), "{text}");
        server.shut_down();
        pass(ALMOST).await;
        exchange.outgoing.end(None).await.expect("it is open");
        assert_eq!(client.text().await, "0\r\n\r\n");
        pass(ALMOST).await;
        client.send(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
        let text = client.text().await;
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
        assert!(text.contains("\r\nconnection: close\r\n"), "{text}");
        assert!(client.serving.is_finished());
    });
}

/// GOAWAY before its first request would cost the client another connection, which nothing accepts any more.
#[test]
fn rfc9113_6_8_a_new_http2_connection_has_a_second_for_its_first_request_in_a_shutdown() {
    run(async {
        let server = Server::new(Limits::default());
        let mut asking = server.connect(true, 1 << 16).await;
        let mut silent = server.connect(true, 1 << 16).await;
        let mut used = server.connect(true, 1 << 16).await;
        for client in [&mut asking, &mut silent, &mut used] {
            client.send(&preface()).await;
        }
        used.send(&get(1, "/")).await;
        used.read().await;
        server.shut_down();
        let has = |frames: &[(u8, u8, usize)], wanted| frames.iter().any(|it| it.0 == wanted);
        assert!(has(&used.frames().await, GOAWAY));
        pass(ALMOST).await;
        for client in [&mut asking, &mut silent] {
            let frames = client.frames().await;
            assert!(!has(&frames, GOAWAY), "{frames:?}");
        }
        asking.send(&get(1, "/")).await;
        let frames = asking.frames().await;
        assert!(has(&frames, HEADERS) && has(&frames, GOAWAY), "{frames:?}");
        pass(2 * TENTH).await;
        let frames = silent.frames().await;
        assert!(has(&frames, GOAWAY), "{frames:?}");
    });
}

/// The second for a first request is of a shutdown only.
#[test]
fn an_http2_connection_without_requests_gets_goaway_once_it_was_idle_for_the_limit() {
    run(async {
        let limits = Limits {
            idle: 10 * SECOND,
            ..Limits::default()
        };
        let server = Server::new(limits);
        let mut client = server.connect(true, 1 << 16).await;
        client.send(&preface()).await;
        pass(9 * SECOND).await;
        let frames = client.frames().await;
        assert!(frames.iter().all(|it| it.0 != GOAWAY), "{frames:?}");
        pass(SECOND + TENTH).await;
        let frames = client.frames().await;
        assert!(frames.iter().any(|it| it.0 == GOAWAY), "{frames:?}");
    });
}

/// It has received the response when the bytes have arrived, and not when the socket or TLS holds them.
#[test]
fn an_http2_client_that_reads_slowly_receives_the_last_response_of_a_shutdown() {
    run(async {
        let limits = Limits {
            idle: 3600 * SECOND,
            stall: SECOND,
            ..Limits::default()
        };
        let server = Server::new(limits);
        let mut client = server.connect(true, 1000).await;
        client.send(&[preface(), get(1, "/large")].concat()).await;
        server.shut_down();
        while !client.serving.is_finished() {
            client.read_once().await;
            pass(SECOND * 3 / 2).await;
        }
        let received = [std::mem::take(&mut client.received), client.read().await].concat();
        let data = frames(&received).into_iter().filter(|frame| frame.0 == 0);
        let data: Vec<_> = data.collect();
        let len: usize = data.iter().map(|(_, _, len)| len).sum();
        assert_eq!(len, 30_000, "{data:?}");
        assert_eq!(
            data.last().map(|(_, flags, _)| flags & 1),
            Some(1),
            "its end"
        );
    });
}

/// Extended CONNECT, which opens a WebSocket (RFC 8441 §5).
fn websocket(stream: u32, path: &str) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in [
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "https"),
        (":authority", "x"),
        (":path", path),
    ] {
        block.extend([0, name.len() as u8]);
        block.extend(name.as_bytes());
        block.push(value.len() as u8);
        block.extend(value.as_bytes());
    }
    frame(HEADERS, 4, stream, &block)
}

/// How a client leaves in the middle of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaves {
    /// The connection breaks.
    Connection,
    /// `RST_STREAM` with `CANCEL` (RFC 9113 §6.4).
    Stream,
    /// The direction of a WebSocket over HTTP/1.1 ends without a close.
    Direction,
    /// It stays.
    Not,
}

/// Of a WebSocket, a client may leave at any time without a close; an upload may break off. The handler gives up a response that
/// has no client.
#[test]
fn a_response_whose_request_its_client_breaks_off_is_not_cut_off() {
    let upgrade = b"GET /task HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
        sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\npart";
    let upload = b"POST /task HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\npart";
    let chunked =
        b"POST /task HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n4\r\npart\r\n";
    let part = frame(0, 0, 1, b"part");
    let post = [&[0x83, 0x87, 0x01, 1, b'x', 0x04, 5][..], b"/task"].concat();
    let post = frame(HEADERS, 4, 1, &post);
    let of_http2 = |head| [preface(), head, part.clone()].concat();
    for (status, request) in [
        (101, upgrade.to_vec()),
        (200, upload.to_vec()),
        (200, chunked.to_vec()),
        (200, of_http2(websocket(1, "/task"))),
        (200, of_http2(post)),
    ] {
        let is_http2 = request.starts_with(b"PRI");
        for leaves in [
            Leaves::Connection,
            Leaves::Stream,
            Leaves::Direction,
            Leaves::Not,
        ] {
            if leaves == Leaves::Stream && !is_http2 || leaves == Leaves::Direction && status != 101
            {
                continue;
            }
            let what = format!("{leaves:?} {}", String::from_utf8_lossy(&request));
            run(async {
                let server = Server::new(Limits::default());
                let mut client = server.connect(is_http2, 1 << 16).await;
                client.send(&request).await;
                let mut exchange = server.exchange();
                let begun = exchange.outgoing.begin(Response::new(status)).await;
                begun.expect("it is open");
                client.read().await;
                let piece = exchange.incoming.next().await;
                assert!(matches!(piece, Some(Piece::Data(_))), "{what} {piece:?}");
                let client = match leaves {
                    Leaves::Connection => {
                        drop(client.stream);
                        None
                    }
                    Leaves::Stream => {
                        client.send(&frame(3, 0, 1, &[0, 0, 0, 8])).await;
                        Some(client)
                    }
                    Leaves::Direction => {
                        client.stream.shutdown().await.expect("it is open");
                        Some(client)
                    }
                    Leaves::Not => Some(client),
                };
                let end = match leaves {
                    Leaves::Not => None,
                    Leaves::Direction => Some(Some(Piece::End)),
                    _ => Some(None),
                };
                if let Some(end) = end {
                    assert_eq!(exchange.incoming.next().await, end, "{what}");
                }
                drop(exchange);
                settle().await;
                let cut_off = server.shared.counts.read().cut_off;
                assert_eq!(cut_off, u64::from(leaves == Leaves::Not), "{what}");
                drop(client);
            });
        }
    }
}

/// What clients do is none of the responses that were cut off: with HTTP/1.1 they can only close the connection.
#[test]
fn responses_cut_off_are_those_that_the_client_did_not_end() {
    run(async {
        for is_http2 in [false, true] {
            let server = Server::new(Limits::default());
            let cut_off = || server.shared.counts.read().cut_off;
            let request = if is_http2 {
                [preface(), get(1, "/task")].concat()
            } else {
                b"GET /task HTTP/1.1\r\nhost: x\r\n\r\n".to_vec()
            };
            let begun = async || {
                let mut client = server.connect(is_http2, 1 << 16).await;
                client.send(&request).await;
                let mut exchange = server.exchange();
                let begun = exchange.outgoing.begin(Response::new(200)).await;
                begun.expect("it is open");
                client.read().await;
                (client, exchange)
            };
            let (client, exchange) = begun().await;
            drop(client.stream);
            client.serving.await.expect("no panic");
            drop(exchange);
            settle().await;
            assert_eq!(cut_off(), 0, "closed by the client");
            if is_http2 {
                let (mut client, exchange) = begun().await;
                // RST_STREAM with CANCEL (RFC 9113 §6.4).
                client.send(&frame(3, 0, 1, &[0, 0, 0, 8])).await;
                drop(exchange);
                settle().await;
                assert_eq!(cut_off(), 0, "reset by the client");
            }
            let (client, exchange) = begun().await;
            drop(exchange);
            settle().await;
            assert_eq!(cut_off(), 1, "given up by the handler");
            drop(client);
            let (client, exchange) = begun().await;
            server.shared.is_closing.store(true, Ordering::Relaxed);
            client.serving.abort();
            pass(TENTH).await;
            drop((client, exchange));
            settle().await;
            assert_eq!(cut_off(), 2, "at the end of a shutdown");
        }
    });
}
