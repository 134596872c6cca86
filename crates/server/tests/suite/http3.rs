//! HTTP/3, by a client that does what the test says and nothing else.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use lastbyte_driver::{Application, Clock, Next, Status, Worker};
use lastbyte_http3::{
    self as http3, Body, Code, Event, Fields, Request, RequestError, Response as Head,
};
use lastbyte_quic::{
    Time,
    connection::{Config, Connection, NetworkPath, Stage},
    crypto::tls::TlsClient,
    endpoint::{Closed, Endpoint, EndpointConfig, Handle},
};
use lastbyte_server::{
    FullResponse, Handler, HandlerResponse, Peer, Settings, Site, exchange::Piece,
};
use lastbyte_udp::{Options, Socket};
use lastbyte_wire::StreamId;

use crate::{
    operations::plain,
    serving::{PATIENCE, Serving, settings},
};

/// What came of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Got {
    pub(crate) informed: Vec<u16>,
    pub(crate) status: u16,
    pub(crate) fields: Fields,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Option<Fields>,
    pub(crate) is_whole: bool,
    pub(crate) was_reset: bool,
}

/// One connection, one request; then it is gone without a word.
struct Client {
    /// Whether the request is sent in 0-RTT.
    is_early: bool,
    /// Number of requests before it that are cancelled in the same turn.
    cancels: usize,
    request: Option<(Request, Vec<u8>)>,
    http3: http3::Connection,
    stream: Option<StreamId>,
    unsent: Vec<u8>,
    /// Whether the body is sent only after an interim response.
    is_expecting: bool,
    /// Body is taken only so far.
    takes: usize,
    /// What it does once the response has begun, instead of ending its request.
    leave: Option<Leave>,
    got: Got,
    begun: Option<Handle>,
    path: NetworkPath,
    crypto: Arc<TlsClient>,
    deadline: Time,
    /// When it is over though nothing came, from its first turn on.
    gives_up_after: Option<Duration>,
    /// Since when nothing more is wanted.
    over: Option<Time>,
}

/// How a client leaves a request.
pub(crate) type Leave = fn(&mut http3::Connection, &mut Connection, StreamId, Time);

/// Each client has a seed of its own: two with the same port and connection IDs would be one to a server.
static CLIENTS: AtomicU64 = AtomicU64::new(0);

/// So long a client stays that has all it wants, so that its last acknowledgments leave.
const LINGER: Duration = Duration::from_millis(100);

impl Client {
    fn write(&mut self, connection: &mut Connection) {
        let Some(stream) = self.stream.filter(|_| !self.is_expecting) else {
            return;
        };
        if self.leave.is_some() {
            return;
        }
        while !self.unsent.is_empty() {
            match self.http3.write(connection, stream, &self.unsent) {
                Ok(taken @ 1..) => drop(self.unsent.drain(..taken)),
                _ => return,
            }
        }
        let _ = self.http3.finish(connection, stream);
    }
}

impl Application for Client {
    type Command = ();
    type Data = ();

    fn on_accepted(&mut self, _: Time, _: Handle, _: &mut Connection) {}

    fn on_ready(&mut self, now: Time, _: Handle, connection: &mut Connection, (): &mut ()) {
        while connection.poll_event().is_some() {}
        if (self.is_early || connection.stage() != Stage::Handshaking)
            && let Some((request, body)) = self.request.take()
        {
            let follows = if body.is_empty() {
                Body::Empty
            } else {
                Body::Follows
            };
            for _ in 0..self.cancels {
                let stream = self.http3.request(connection, &request, Body::Empty);
                let stream = stream.expect("it may");
                self.http3
                    .stop(connection, now, stream, Code::REQUEST_CANCELLED);
            }
            match self.http3.request(connection, &request, follows) {
                // The server's settings have not arrived.
                Err(RequestError::ExtendedConnect) => self.request = Some((request, body)),
                stream => {
                    self.stream = Some(stream.expect("it may"));
                    self.unsent = body;
                }
            }
            if !self.unsent.is_empty() {
                self.write(connection);
            }
        }
        while let Some(event) = self.http3.poll(connection, now) {
            match event {
                Event::Informational { response, .. } => {
                    self.got.informed.push(response.status());
                    self.is_expecting = false;
                    self.write(connection);
                }
                Event::Response { response, stream } => {
                    self.got.status = response.status();
                    self.got.fields = response.fields().clone();
                    if let Some(leave) = self.leave {
                        leave(&mut self.http3, connection, stream, now);
                        self.over = Some(now);
                    }
                }
                Event::Data { stream } => {
                    let (body, takes) = (&mut self.got.body, self.takes);
                    let _ = self.http3.read(connection, now, stream, &mut |bytes| {
                        let len = bytes.len().min(takes - body.len());
                        body.extend_from_slice(&bytes[..len]);
                        len
                    });
                }
                Event::Trailers { fields, .. } => self.got.trailers = Some(fields),
                Event::Finished { stream } => {
                    self.got.is_whole = true;
                    // The body is not wanted.
                    if self.is_expecting {
                        self.http3.reset(connection, stream, Code::NO_ERROR);
                    }
                }
                Event::Reset { .. } => self.got.was_reset = true,
                Event::Writable { .. } => self.write(connection),
                _ => {}
            }
        }
    }

    fn on_closed(&mut self, _: Time, _: Closed) {
        self.got.was_reset = true;
    }

    fn on_command(&mut self, _: Time, _: &mut Endpoint, (): ()) {}

    fn on_turn(&mut self, now: Time, endpoint: &mut Endpoint) -> Next {
        if self.begun.is_none() {
            let config = Arc::new(Config::new("cubic".parse().expect("a spec")));
            let crypto = self.crypto.clone();
            let handle = endpoint.connect(now, self.path, "localhost", &config, crypto, Vec::new());
            let handle = handle.expect("a connection");
            self.begun = Some(handle);
            if self.is_early
                && let Some((connection, data)) = endpoint.entry(handle)
            {
                assert!(connection.is_zero_rtt(), "there is a ticket");
                self.on_ready(now, handle, connection, data);
            }
            if let Some(span) = self.gives_up_after {
                self.over = Some(now + span);
            }
        }
        assert!(now < self.deadline, "nothing came: {:?}", self.got.status);
        let is_full = self.takes < usize::MAX && self.got.body.len() >= self.takes;
        if self.got.is_whole || self.got.was_reset || is_full {
            self.over.get_or_insert(now);
        }
        let ends_at = self.over.map(|over| over + LINGER);
        Next {
            deadline: Some(ends_at.unwrap_or(self.deadline)),
            status: Status::stopped_if(ends_at.is_some_and(|at| at <= now)),
        }
    }
}

/// Sends a request, reads at most this much of the body, and disappears.
pub(crate) fn ask(serving: &Serving, request: Request, body: Vec<u8>, takes: usize) -> Got {
    let asking = Asking {
        request,
        body,
        takes,
        cancels: 0,
    };
    asking.ask(serving, crypto(serving))
}

/// Sends a request without an end, leaves it once its response has begun, and disappears.
pub(crate) fn leaves(serving: &Serving, request: Request, leave: Leave) {
    let asking = Asking {
        request,
        body: b"x".to_vec(),
        takes: usize::MAX,
        cancels: 0,
    };
    let mut worker = asking.worker(serving, crypto(serving));
    worker.application().leave = Some(leave);
    worker.run().expect("it runs");
    assert_eq!(worker.application().got.status, 200);
}

/// What a client trusts, and the tickets that it gets.
fn crypto(serving: &Serving) -> Arc<TlsClient> {
    let mut tls = (*serving.client(&[&rustls::version::TLS13])).clone();
    tls.alpn_protocols = vec![http3::ALPN.to_vec()];
    tls.enable_early_data = true;
    Arc::new(TlsClient::new(tls).expect("for QUIC"))
}

struct Asking {
    request: Request,
    body: Vec<u8>,
    takes: usize,
    cancels: usize,
}

impl Asking {
    fn ask(self, serving: &Serving, crypto: Arc<TlsClient>) -> Got {
        let mut worker = self.worker(serving, crypto);
        worker.run().expect("it runs");
        worker.application().got.clone()
    }

    /// The same, with the request in 0-RTT.
    fn ask_early(self, serving: &Serving, crypto: Arc<TlsClient>) -> Got {
        let mut worker = self.worker(serving, crypto);
        worker.application().is_early = true;
        worker.run().expect("it runs");
        worker.application().got.clone()
    }

    fn worker(self, serving: &Serving, crypto: Arc<TlsClient>) -> Worker<Client> {
        let local = "127.0.0.1:0".parse().expect("an address");
        let socket = Socket::bind(local, &Options::default()).expect("a socket");
        let path = NetworkPath {
            local: socket.local_address(),
            remote: serving.address(),
        };
        let clock = Clock::new();
        let client = Client {
            is_early: false,
            cancels: self.cancels,
            is_expecting: self.request.fields().get("expect").is_some(),
            request: Some((self.request, self.body)),
            http3: http3::Connection::client(&http3::Config::default()),
            stream: None,
            unsent: Vec::new(),
            takes: self.takes,
            leave: None,
            got: Got::default(),
            begun: None,
            path,
            crypto,
            deadline: clock.now() + PATIENCE,
            gives_up_after: None,
            over: None,
        };
        let mut seed = [7; 32];
        seed[..8].copy_from_slice(&CLIENTS.fetch_add(1, Ordering::Relaxed).to_le_bytes());
        let endpoint = Endpoint::new(EndpointConfig::client(), seed).expect("an endpoint");
        Worker::new(socket, endpoint, client, clock).expect("a worker")
    }
}

pub(crate) fn get(serving: &Serving, path: &str, fields: &[(&str, &str)]) -> Got {
    let mut request = Request::new("GET", "https", "localhost", path);
    for (name, value) in fields {
        request = request.with(name, value);
    }
    ask(serving, request, Vec::new(), usize::MAX)
}

#[test]
fn ranges_delays_and_dates_are_the_same_over_http3() {
    let serving = Serving::site(Site::generated());
    let whole = get(&serving, "/1000", &[]);
    assert_eq!((whole.status, whole.body.len()), (200, 1000));
    assert!(whole.fields.get("date").is_some() && whole.fields.get("etag").is_some());
    let part = get(&serving, "/1000", &[("range", "bytes=100-199")]);
    assert_eq!((part.status, &part.body[..]), (206, &whole.body[100..200]));
    let parts = get(&serving, "/1000", &[("range", "bytes=0-9,-10")]);
    let text = String::from_utf8_lossy(&parts.body).into_owned();
    assert_eq!(
        (parts.status, text.matches("content-range: bytes ").count()),
        (206, 2)
    );
    assert_eq!(get(&serving, "/delay/20ms/status/503", &[]).status, 503);
    serving.end();
}

#[test]
fn shutdown_does_not_wait_for_clients_that_have_vanished() {
    let serving = Serving::site(Site::generated());
    assert!(
        get(&serving, "/1000", &[]).is_whole,
        "and gone without a word"
    );
    let clock = Clock::new();
    let began = clock.now();
    let limit = Duration::from_secs(600);
    let report = serving.server.shut_down(limit);
    assert_eq!(report.statistics.requests, 1);
    // Two round trips for the last word, three probe timeouts for the end; not the idle timeout, and not the limit.
    let took = clock.now().since(began);
    assert!(took < Duration::from_secs(10), "{took:?}");
}

/// Sends back what it got, from another thread.
struct Echo {
    runtime: tokio::runtime::Runtime,
    sent: Arc<Mutex<u64>>,
}

/// Bytes of the response at `/endless`.
const ENDLESS: u64 = 1 << 30;

impl Handler for Echo {
    fn handle(&self, request: &Request, _: &Peer) -> HandlerResponse {
        let path = request.path().unwrap_or_default().to_owned();
        let sent = Arc::clone(&self.sent);
        let runtime = self.runtime.handle().clone();
        HandlerResponse::Task(Box::new(move |mut exchange| {
            runtime.spawn(async move {
                let _ = exchange
                    .outgoing
                    .inform(Head::new(103).with("link", "</a>"))
                    .await;
                let _ = exchange.outgoing.begin(Head::new(200)).await;
                if path == "/endless" {
                    let piece = Bytes::from(vec![7; 10_000]);
                    while *sent.lock().expect("no panic") < ENDLESS {
                        if exchange.outgoing.data(piece.clone()).await.is_err() {
                            return;
                        }
                        *sent.lock().expect("no panic") += piece.len() as u64;
                    }
                }
                while let Some(piece) = exchange.incoming.next().await {
                    match piece {
                        Piece::Data(bytes) => {
                            let _ = exchange.outgoing.data(bytes).await;
                        }
                        Piece::End if path == "/cut" => return,
                        Piece::End => {
                            let trailers = Fields::new().with("x-end", "1");
                            let _ = exchange.outgoing.end(Some(trailers)).await;
                            return;
                        }
                        Piece::Trailers(_) => {}
                    }
                }
            });
        }))
    }
}

pub(crate) fn echo() -> (Settings, Arc<Mutex<u64>>) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .build();
    let sent = Arc::new(Mutex::new(0));
    let echo = Echo {
        runtime: runtime.expect("a runtime"),
        sent: Arc::clone(&sent),
    };
    (settings(echo), sent)
}

#[test]
fn bodies_are_streamed_both_ways_with_early_hints_and_trailers() {
    let serving = Serving::start(echo().0);
    let body: Vec<u8> = (0..3_000_000_u32)
        .map(|index| (index * 7 % 251) as u8)
        .collect();
    let request = Request::new("POST", "https", "localhost", "/echo");
    let got = ask(&serving, request, body.clone(), usize::MAX);
    assert_eq!((got.status, got.informed.as_slice()), (200, &[103][..]));
    assert!(got.is_whole && got.body == body, "{} bytes", got.body.len());
    assert!(
        got.trailers
            .is_some_and(|fields| fields.get("x-end") == Some(b"1"))
    );

    let request = Request::new("POST", "https", "localhost", "/cut");
    let got = ask(&serving, request, b"hello".to_vec(), usize::MAX);
    assert!(got.was_reset && !got.is_whole, "given up is reset");
    serving.end();
}

#[test]
fn a_slow_reader_applies_back_pressure_to_the_handler() {
    let (settings, sent) = echo();
    let serving = Serving::start(settings);
    let request = Request::new("GET", "https", "localhost", "/endless");
    let got = ask(&serving, request, Vec::new(), 100_000);
    assert_eq!(got.body.len(), 100_000);
    // What was on its way, in windows and buffers, and no more.
    let sent = *sent.lock().expect("no panic");
    assert!(sent < 64 << 20, "{sent} bytes for 100 000 that were read");
    drop(serving.server.shut_down(Duration::ZERO));
}

/// Counts the requests that are handed on to another thread, and answers them.
#[derive(Clone, Default)]
struct Counting(Arc<AtomicUsize>);

impl Handler for Counting {
    fn handle(&self, _: &Request, _: &Peer) -> HandlerResponse {
        let count = Arc::clone(&self.0);
        HandlerResponse::Task(Box::new(move |exchange| {
            count.fetch_add(1, Ordering::Relaxed);
            let runtime = tokio::runtime::Builder::new_current_thread().build();
            let answer = exchange.outgoing.respond(FullResponse::text(200, "ok"));
            let _ = runtime.expect("a runtime").block_on(answer);
        }))
    }
}

fn simple_get() -> Asking {
    Asking {
        request: Request::new("GET", "https", "localhost", "/"),
        body: Vec::new(),
        takes: usize::MAX,
        cancels: 0,
    }
}

#[test]
fn requests_cancelled_at_once_do_not_reach_the_handler() {
    let counting = Counting::default();
    let serving = Serving::start(settings(counting.clone()));
    let asking = Asking {
        cancels: 5,
        ..simple_get()
    };
    let got = asking.ask(&serving, crypto(&serving));
    assert_eq!((got.status, got.is_whole), (200, true));
    assert_eq!(counting.0.load(Ordering::Relaxed), 1);
    let report = serving.server.shut_down(PATIENCE);
    assert_eq!(report.statistics.requests, 6, "all of them came");
}

/// The datagrams of a first flight with a request in 0-RTT.
fn early_flight(path: NetworkPath, crypto: Arc<TlsClient>, request: &Request) -> Vec<Vec<u8>> {
    let now = Clock::new().now();
    let mut endpoint = Endpoint::new(EndpointConfig::client(), [8; 32]).expect("an endpoint");
    let config = Arc::new(Config::new("cubic".parse().expect("a spec")));
    let handle = endpoint
        .connect(now, path, "localhost", &config, crypto, Vec::new())
        .expect("a connection");
    let connection = endpoint.connection(handle).expect("it is there");
    assert!(connection.is_zero_rtt(), "there is a ticket");
    let mut http3 = http3::Connection::client(&http3::Config::default())
        .with_remembered(http3::Settings::default());
    http3
        .request(connection, request, Body::Empty)
        .expect("it may");
    let mut datagrams = Vec::new();
    let mut buffer = vec![0; 65_000];
    while let Some(transmit) = endpoint.poll_transmit(now, &mut buffer) {
        let sent = buffer[..transmit.len].chunks(transmit.segment_len.max(1));
        datagrams.extend(sent.map(<[u8]>::to_vec));
    }
    datagrams
}

#[test]
fn rfc9000_8_1_0rtt_requests_of_unvalidated_addresses_do_not_reach_the_handler() {
    let counting = Counting::default();
    let mut settings = settings(counting.clone());
    settings.metrics = Some("127.0.0.1:0".parse().expect("an address"));
    let serving = Serving::start(settings);
    let crypto = crypto(&serving);
    assert!(simple_get().ask(&serving, Arc::clone(&crypto)).is_whole);
    assert_eq!(counting.0.load(Ordering::Relaxed), 1);
    // A first flight from an address that never answers.
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let path = NetworkPath {
        local: socket.local_addr().expect("an address"),
        remote: serving.address(),
    };
    let request = simple_get().request;
    for datagram in early_flight(path, Arc::clone(&crypto), &request) {
        socket
            .send_to(&datagram, serving.address())
            .expect("it is sent");
    }
    let metrics = serving.server.metrics_address().expect("it listens");
    let began = std::time::Instant::now();
    let came = "lastbyte_early_requests_total 1";
    while !String::from_utf8_lossy(&plain(metrics, "/metrics").body).contains(came) {
        assert!(began.elapsed() < PATIENCE, "it is waited for");
    }
    assert_eq!(counting.0.load(Ordering::Relaxed), 1, "it is held");
    assert!(simple_get().ask(&serving, crypto).is_whole);
    assert_eq!(counting.0.load(Ordering::Relaxed), 2);
    drop(serving.server.shut_down(Duration::ZERO));
}

/// A server of TCP would have answered after the handshake; here the first flight of a recorded connection could be sent again
/// (RFC 8470 §5.2, RFC 9110 §9.2.1).
#[test]
fn rfc8470_5_2_unsafe_requests_in_0rtt_get_425_and_do_not_reach_the_handler() {
    let counting = Counting::default();
    let serving = Serving::start(settings(counting.clone()));
    let crypto = crypto(&serving);
    // Its tickets permit 0-RTT.
    assert!(simple_get().ask(&serving, Arc::clone(&crypto)).is_whole);
    for (method, status, handled) in [
        ("POST", 425, 1),
        ("PUT", 425, 1),
        ("DELETE", 425, 1),
        ("PATCH", 425, 1),
        ("GET", 200, 2),
        ("HEAD", 200, 3),
    ] {
        let asking = Asking {
            request: Request::new(method, "https", "localhost", "/"),
            ..simple_get()
        };
        let got = asking.ask_early(&serving, Arc::clone(&crypto));
        assert_eq!(got.status, status, "{method}");
        assert!(got.is_whole, "{method}");
        assert_eq!(counting.0.load(Ordering::Relaxed), handled, "{method}");
    }
    // After the handshake the same request is handled.
    let asking = Asking {
        request: Request::new("POST", "https", "localhost", "/"),
        ..simple_get()
    };
    assert_eq!(asking.ask(&serving, crypto).status, 200);
    assert_eq!(counting.0.load(Ordering::Relaxed), 4);
    let report = serving.server.shut_down(PATIENCE);
    assert_eq!(report.statistics.early_requests, 6);
}

/// Panics in the worker's thread.
struct Faulty;

impl Handler for Faulty {
    fn handle(&self, _: &Request, _: &Peer) -> HandlerResponse {
        panic!("as the test wants it")
    }
}

/// A panicked worker would leave its share of the clients unserved: the server reports it, so that its caller can end it.
#[test]
fn a_panic_of_a_worker_is_reported() {
    let serving = Serving::start(settings(Faulty));
    let mut client = simple_get().worker(&serving, crypto(&serving));
    // No response arrives, so the client gives up.
    client.application().gives_up_after = Some(Duration::from_secs(1));
    client.run().expect("it runs");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    let failed = runtime
        .block_on(async { tokio::time::timeout(PATIENCE, serving.server.worker_failed()).await });
    assert_eq!(failed, Ok(0));
    let report = serving.server.shut_down(Duration::ZERO);
    let errors: Vec<_> = report.workers.iter().filter(|end| end.is_err()).collect();
    assert_eq!(errors.len(), 1, "{:?}", report.workers);
}
