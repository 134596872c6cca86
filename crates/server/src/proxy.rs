//! A handler that forwards requests to another server: a reverse proxy (RFC 9110 §3.7, §7.6).
//!
//! Requests and responses are streamed through bounded channels. The handler adds the fields about the client, and maps
//! failures of the upstream to status codes. It stores no response and never blocks a worker.
//!
//! | module | responsibility |
//! |---|---|
//! | [`upstream`] | the servers of an upstream, as URLs |
//! | `balance` | which of them receives a request, and which are out |
//! | `checks` | requests that check them at an interval |
//! | `threads` | the threads on which requests are forwarded |
//! | `pool` | connections of a thread to a server: opening, keeping, detecting closed ones |
//! | `repeat` | which failed requests are sent again |
//! | `slots` | the limit on requests in flight |
//! | [`fields`] | requests that are forwarded, fields that are removed and added |
//! | `forwarded` | list fields that proxies extend |
//! | `tunnel` | WebSocket |
//! | `body` | the body of a request, for hyper |
//! | `counts` | counters, and the time for the access log |
//!
//! | failure | the client receives |
//! |---|---|
//! | the request must not be forwarded, or its body is truncated | 400 |
//! | its body stalls for too long | 408 |
//! | connecting to the upstream fails (with several servers: to each that is not out), or it closes the connection or sends invalid HTTP before its response | 502 |
//! | there are too many requests in flight | 503 |
//! | connecting to the upstream, or its response header, takes too long | 504 |
//! | the upstream answers an upgrade with another 101 than was asked for, or an extended CONNECT with 2xx | 502 |
//! | the last four also have the reason | `proxy-status` (RFC 9209) |
//! | the upstream truncates its response, or stalls for too long; or the client reads nothing for too long | what had arrived, and then a reset stream, or a closed connection |
//! | the client goes away | the connection to the upstream is closed, or over HTTP/2 the stream reset |

mod balance;
mod body;
mod checks;
mod counts;
pub mod fields;
mod forwarded;
mod pool;
mod repeat;
mod slots;
mod threads;
mod tunnel;
pub mod upstream;

use std::{
    collections::VecDeque,
    convert::Infallible,
    fmt,
    future::poll_fn,
    io, mem,
    net::IpAddr,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use hyper::{
    body::{Body as _, Frame, Incoming},
    client::conn::http1,
};
use hyper_util::rt::TokioIo;
use lastbyte_http3::{Request, Response};
use lastbyte_origin::wakers::{note, wake};
use lastbyte_units::SplitMix64;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    runtime,
    sync::oneshot,
    task, time,
};

use self::{
    balance::{Balance, Tried, Turn},
    body::{Cause, Source, Upload},
    counts::{CONNECTION_LIMIT, INCOMPLETE, Observed, READ_TIMEOUT},
    pool::{BUFFER, Connector, FIELDS_MAX, InUse, Lease, SendFailure, Transport},
    repeat::Attempts,
    slots::{Client, Slot, Slots},
    threads::{Local, Threads},
};
pub use http::uri::PathAndQuery;

pub use self::{
    counts::{ServerStatistics, UpstreamCounts, UpstreamStatistics},
    upstream::{Checks, Server, Upstream, UpstreamError},
};
use super::{
    exchange::{self, Exchange, ExchangeAborted, Outgoing, PIECE_LEN, Piece},
    handler::{FullResponse, Handler, HandlerResponse, Peer},
    hop_by_hop::has_unknown_coding,
    server_timing::quotable,
    websocket,
};

/// Settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Time limit for connecting to a server, including TLS, and for a request to wait for others to end. Default: 5 s.
    pub connect: Duration,
    /// Time limit for the response header, after the end of the request. Default: 60 s.
    pub response: Duration,
    /// Time limit for a stalled body, in either direction, on either side, and for a WebSocket without bytes in both
    /// directions. Default: 60 s.
    pub stall: Duration,
    /// Time limit for idle connections. Default: 30 s.
    pub idle: Duration,
    /// Idle connections of a thread to a server that are kept for that long. More are kept for 5 s, so that a constant
    /// number of concurrent requests opens no connections; all together no more than half of `requests`. Default: 64.
    pub kept: usize,
    /// Requests in flight to all servers of the upstream; over HTTP/1.1 that is connections. Default: 1024. When all are in use,
    /// another request replaces the one whose client has been stalled longest, at least 1 s.
    pub requests: usize,
    /// Requests in flight to one server, at least 1. Beyond it, others are chosen; if all have as many, requests wait as at the
    /// limit of `requests`, and while servers are out they fail at once. Default: no limit.
    pub server_requests: usize,
    /// Time in which the share of a server that came back grows to that of the others. Default: zero.
    pub slow_start: Duration,
    /// Streams per HTTP/2 connection; beyond, another connection is opened. Default: 32.
    pub streams: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            response: Duration::from_secs(60),
            stall: Duration::from_secs(60),
            idle: Duration::from_secs(30),
            kept: 64,
            requests: 1024,
            server_requests: usize::MAX,
            slow_start: Duration::ZERO,
            streams: 32,
        }
    }
}

/// The handler.
pub struct Proxy {
    shared: Arc<Shared>,
    threads: Threads,
}

struct Shared {
    connector: Arc<Connector>,
    upstream: Arc<Upstream>,
    balance: Arc<Balance>,
    slots: Arc<Slots>,
    limits: Limits,
}

impl Shared {
    fn new(connector: &Arc<Connector>, seed: u64) -> Arc<Self> {
        let (upstream, limits) = (&connector.upstream, connector.limits);
        let servers = upstream.servers.len();
        let of_servers = limits.server_requests.saturating_mul(servers);
        Arc::new(Self {
            connector: Arc::clone(connector),
            upstream: Arc::clone(upstream),
            balance: Balance::new(
                servers,
                seed,
                upstream.checks.is_some(),
                balance::Limits {
                    server_requests: limits.server_requests,
                    slow_start: limits.slow_start,
                },
            ),
            slots: Slots::new(limits.requests.min(of_servers)),
            limits,
        })
    }
}

/// Interim responses waiting for the client; later ones are dropped, as they are hints.
const HINTS_MAX: usize = 8;
/// The most interim responses to one request. An upstream that sends them without end would otherwise keep a thread
/// busy until [`Limits::response`].
const INTERIM_MAX: usize = 100;
/// How often the progress of a request's body is looked at within [`Limits::response`].
const CHECKS: u32 = 8;
/// Pieces of a response, in bytes: a client that reads this much is not stalled.
const PIECE: usize = 16 << 10;

impl Proxy {
    /// Forwards requests to this upstream: those over HTTP/1.1 and 2 on the server's threads, those over HTTP/3 on this
    /// number of threads. `tls` is for `https`; its ALPN protocols select the permitted versions of HTTP.
    ///
    /// # Errors
    ///
    /// Returns an error if the threads of the proxy cannot be started.
    pub fn new(
        upstream: Upstream,
        tls: Option<Arc<rustls::ClientConfig>>,
        limits: Limits,
        threads: usize,
    ) -> io::Result<Self> {
        let connector = Connector::new(upstream, tls, limits, None);
        let mut seed = [0; 8];
        // Without random numbers, proxies that start together try a server at the same time.
        let _ = aws_lc_rs::rand::fill(&mut seed);
        let seed = u64::from_ne_bytes(seed);
        let shared = Shared::new(&connector, seed);
        let threads = Threads::start(threads, Box::new(move || connector.pools()))?;
        Ok(Self { shared, threads }.with_checks(seed))
    }

    /// Forwards requests on an existing runtime, over connections to a server that `connect` opens in place of TCP, without
    /// TLS. To be called in the context of the runtime, from which it takes the time. `seed` is that of the choice of
    /// servers.
    ///
    /// So a proxy runs without threads and sockets, and in virtual time if the runtime's clock is paused.
    pub fn over<S, F>(
        upstream: Upstream,
        limits: Limits,
        runtime: runtime::Handle,
        seed: u64,
        connect: F,
    ) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        F: Fn(&Server) -> io::Result<S> + Send + Sync + 'static,
    {
        let connect =
            move |server: &Server| connect(server).map(|it| Box::new(it) as Box<dyn Transport>);
        let connector = Connector::new(upstream, None, limits, Some(Box::new(connect)));
        let shared = Shared::new(&connector, seed);
        let threads = Threads::on(runtime, connector.pools());
        Self { shared, threads }.with_checks(seed)
    }

    /// Starts the checks of its servers, if there are any: on the first of its own threads.
    fn with_checks(self, seed: u64) -> Self {
        let Some(checks) = &self.shared.upstream.checks else {
            return self;
        };
        let mut random = SplitMix64::new(seed);
        let local = self.threads.own();
        for (index, pool) in local.pools.iter().enumerate() {
            let part = random.number() as u32;
            let first = checks
                .interval
                .mul_f64(f64::from(part) / f64::from(u32::MAX));
            let shared = Arc::downgrade(&self.shared);
            local.spawn(checks::run(shared, Arc::clone(pool), index, first));
        }
        self
    }

    /// Access to the counters of its upstream.
    pub fn counts(&self) -> UpstreamCounts {
        let connector = Arc::clone(&self.shared.connector);
        let (upstream, balance) = (
            Arc::clone(&connector.upstream),
            Arc::clone(&self.shared.balance),
        );
        let servers = move || {
            let names = upstream.servers.iter().map(|it| upstream.name_of(it));
            names.zip(balance.up()).collect()
        };
        UpstreamCounts {
            name: connector.upstream.to_string(),
            counts: Arc::clone(&connector.counts),
            kept: Arc::new(move || connector.kept()),
            servers: Arc::new(servers),
        }
    }
}

impl Proxy {
    /// A response by a task on the thread that the request is forwarded on.
    fn task<F: Future<Output = ()> + Send + 'static>(
        &self,
        pass: impl FnOnce(Arc<Shared>, Arc<Local>, Exchange) -> F + Send + 'static,
    ) -> HandlerResponse {
        let local = self.threads.local();
        let shared = Arc::clone(&self.shared);
        HandlerResponse::Task(Box::new(move |exchange| {
            let thread = Arc::clone(&local);
            thread.spawn(pass(shared, local, exchange));
        }))
    }
}

impl Handler for Proxy {
    fn handle(&self, request: &Request, peer: &Peer) -> HandlerResponse {
        if request.method() == "CONNECT" {
            if !self.takes_tunnel(request) {
                return FullResponse::no_tunnel().into();
            }
            let request = tunnel::request(request);
            let begun = tunnel::begun(peer.version);
            let address = peer.remote.ip();
            return match fields::request(&request, peer, &self.shared.upstream) {
                Ok(head) => self.task(move |shared, local, exchange| {
                    pass_tunnel(shared, local, ((head, begun), address), exchange)
                }),
                Err(why) => FullResponse::text(400, format!("{why}\n")).into(),
            };
        }
        let head = match fields::request(request, peer, &self.shared.upstream) {
            Ok(head) => head,
            Err(why) => return FullResponse::text(400, format!("{why}\n")).into(),
        };
        if fields::forwards_left(request) == Ok(Some(0)) {
            // RFC 9110 §7.6.2: the request is for this server.
            return match request.method() {
                "OPTIONS" => FullResponse::bare(204).into(),
                _ => FullResponse::text(501, "TRACE is not supported\n").into(),
            };
        }
        self.task(move |shared, local, exchange| pass(shared, local, head, exchange))
    }

    fn takes_tunnel(&self, request: &Request) -> bool {
        request.protocol() == Some("websocket") && !self.shared.upstream.is_h2c
    }
}

/// Forwards one request, unless it is cancelled before that.
async fn pass(
    shared: Arc<Shared>,
    local: Arc<Local>,
    head: http::request::Parts,
    exchange: Exchange,
) {
    let Exchange {
        mut incoming,
        outgoing,
    } = exchange;
    // A client that cancels at once, as in a flood of reset requests, costs the upstream nothing.
    task::yield_now().await;
    let len = fields::content_length(&head.headers);
    // Whether a request without a length has a body shows with its first piece. Over HTTP/2 it does not matter, and the
    // server may speak first, as in bidirectional streams of gRPC.
    let may_wait = head.method == http::Method::POST && local.may_be_http2();
    let first = if len == Some(0) {
        Some(Piece::End)
    } else if may_wait {
        match poll_fn(|context| Poll::Ready(incoming.poll_next(context))).await {
            Poll::Ready(Some(first)) => Some(first),
            Poll::Ready(None) => return reply(outgoing, cut_off(Cause::CutOff)).await,
            Poll::Pending => None,
        }
    } else {
        match time::timeout(shared.limits.stall, incoming.next()).await {
            Ok(Some(first)) => Some(first),
            Ok(None) => return reply(outgoing, cut_off(Cause::CutOff)).await,
            Err(_) => return reply(outgoing, cut_off(Cause::Late)).await,
        }
    };
    let observed = Observed::new(&shared.connector.counts, outgoing.notes());
    let slot = shared.slots.take(shared.limits.connect);
    let Some((slot, outgoing)) = admit(slot, &observed, outgoing).await else {
        return;
    };
    let client = Arc::clone(&slot.client);
    // Dropped with the exchange, and the body ends with it.
    let mut exchange_runs = None;
    let body = match first {
        Some(Piece::End) => Upload::empty(),
        first => {
            let (runs, over) = oneshot::channel::<Infallible>();
            exchange_runs = Some(runs);
            let source = Source {
                incoming,
                client: Arc::clone(&client),
                upstream: Arc::clone(&shared.upstream),
                limit: shared.limits.stall,
                over,
            };
            Upload::new(first, source, len)
        }
    };
    tokio::select! {
        biased;
        () = send(&shared, &local, head, body, outgoing, (&client, &observed)) => {}
        // Others need the slot, and this client is stalled.
        () = client.revoked() => {}
    }
    drop(exchange_runs);
}

/// Waits for a slot. Without one, the client has its answer, or is gone.
async fn admit(
    slot: impl Future<Output = Option<Slot>>,
    observed: &Observed,
    mut outgoing: Outgoing,
) -> Option<(Slot, Outgoing)> {
    let slot = tokio::select! {
        biased;
        () = outgoing.aborted() => return None,
        slot = slot => slot,
    };
    let Some(slot) = slot else {
        observed.on_error(CONNECTION_LIMIT);
        reply(outgoing, failed(503, CONNECTION_LIMIT, "")).await;
        return None;
    };
    Some((slot, outgoing))
}

/// Opens a tunnel and runs it, unless the client cancels it before. With the header are the status that begins it, and the
/// client's address.
async fn pass_tunnel(
    shared: Arc<Shared>,
    local: Arc<Local>,
    (head, address): ((http::request::Parts, u16), IpAddr),
    exchange: Exchange,
) {
    let Exchange { incoming, outgoing } = exchange;
    task::yield_now().await;
    let observed = Observed::new(&shared.connector.counts, outgoing.notes());
    let slot = shared.slots.take_for_tunnel(address, shared.limits.connect);
    let Some((slot, outgoing)) = admit(slot, &observed, outgoing).await else {
        return;
    };
    let client = Arc::clone(&slot.client);
    tokio::select! {
        biased;
        () = run_tunnel((&shared, &local), head, (incoming, outgoing), (&client, &observed)) => {}
        // Others need the slot, and this client is stalled.
        () = client.revoked() => {}
    }
}

async fn run_tunnel(
    (shared, local): (&Shared, &Local),
    (mut head, begun): (http::request::Parts, u16),
    (incoming, mut outgoing): (exchange::Incoming, Outgoing),
    (client, observed): (&Client, &Observed),
) {
    let Ok(key) = websocket::new_key() else {
        return;
    };
    tunnel::set_fields(&mut head.headers, &key);
    let opened = tokio::select! {
        biased;
        () = outgoing.aborted() => return,
        opened = open_tunnel(shared, local, &head) => opened,
    };
    let fail = |(status, error, why): Failed| {
        observed.on_error(error);
        failed(status, error, &why)
    };
    // The server has a request more until the tunnel has ended.
    let ((mut response, _in_use), _turn) = match opened {
        Ok(opened) => opened,
        Err(failure) => return reply(outgoing, fail(failure)).await,
    };
    let status = response.status();
    if status != http::StatusCode::SWITCHING_PROTOCOLS {
        if status.is_success() && begun == 200 {
            let why = format!("status {} (expected 101)", status.as_u16());
            let answer = fail((502, "http_upgrade_failed", why));
            return reply(outgoing, answer).await;
        }
        if has_unknown_coding(response.headers()) {
            let answer = fail((502, "http_response_transfer_coding", String::new()));
            return reply(outgoing, answer).await;
        }
        observed.on_response();
        forward_response(shared, response, outgoing, false, (client, observed)).await;
        return;
    }
    let upgraded = if websocket::is_accepted(response.headers(), &key) {
        hyper::upgrade::on(&mut response).await.ok()
    } else {
        None
    };
    let Some(upgraded) = upgraded else {
        let why = "101 without the fields of RFC 6455, section 4.1".to_owned();
        return reply(outgoing, fail((502, "http_upgrade_failed", why))).await;
    };
    observed.on_response();
    let mut answer = Response::new(begun);
    let mut fields = response.headers().clone();
    // Of the connection to the upstream; a tunnel has no length.
    for name in [
        http::header::SEC_WEBSOCKET_ACCEPT,
        http::header::CONTENT_LENGTH,
    ] {
        fields.remove(name);
    }
    fields::copy_response(&fields, answer.fields_mut());
    if send_part(shared, client, outgoing.begin(answer))
        .await
        .is_ok()
    {
        let stall = shared.limits.stall;
        tunnel::pump(stall, upgraded, (incoming, outgoing), (client, observed)).await;
    }
}

/// Why there is no response: a status, an error type of RFC 9209, and details.
type Failed = (u16, &'static str, String);

/// Sends the request on a connection of its own, to the first server that accepts one.
async fn open_tunnel(
    shared: &Shared,
    local: &Local,
    head: &http::request::Parts,
) -> Result<((http::Response<Incoming>, InUse), Turn), Failed> {
    let mut tried = Tried::default();
    // As of other requests.
    let mut may_be_out = true;
    let mut failed = None;
    while let Some(turn) = shared.balance.choose(tried, may_be_out) {
        let index = turn.server();
        let Some(pool) = local.pools.get(index) else {
            break;
        };
        if failed.is_some() {
            shared.connector.counts.on_retry();
        }
        let failure = match pool.open_alone().await {
            Ok(stream) => {
                let answered = ask_tunnel(shared, stream, head.clone()).await;
                match answered {
                    Ok(_) => turn.succeed(),
                    Err(_) => shared.balance.fail(index, false),
                }
                return answered.map(|response| (response, turn));
            }
            Err(failure) => failure,
        };
        shared.balance.fail(index, true);
        may_be_out = failure != SendFailure::Late;
        tried.add(index);
        failed = Some(failure);
    }
    Err(match failed {
        Some(SendFailure::Late) => (504, "connection_timeout", String::new()),
        Some(SendFailure::Refused(why)) => (502, "connection_refused", why),
        Some(SendFailure::Tls(why)) => (502, "tls_certificate_error", why),
        Some(SendFailure::Broken(why)) => (502, "http_protocol_error", why),
        Some(SendFailure::Full) | None => (503, CONNECTION_LIMIT, String::new()),
    })
}

/// The response to the request on this connection, which is used for nothing else.
async fn ask_tunnel(
    shared: &Shared,
    stream: Box<dyn Transport>,
    head: http::request::Parts,
) -> Result<(http::Response<Incoming>, InUse), Failed> {
    let invalid = |error: hyper::Error| (502, "http_protocol_error", error.to_string());
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(BUFFER)
        .max_headers(FIELDS_MAX)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(invalid)?;
    // It ends with the response, or with the connection that is taken out of it.
    let in_use = pool::run(connection.with_upgrades());
    let mut request = http::Request::from_parts(head, Upload::empty().attempt());
    let hints = Arc::<Hints>::default();
    let hinted = Arc::clone(&hints);
    hyper::ext::on_informational(&mut request, move |response| {
        hinted.push(response.status().as_u16(), response.headers());
    });
    tokio::select! {
        biased;
        () = hints.overflow() => {
            let why = format!("more than {INTERIM_MAX} interim responses");
            Err((502, "http_protocol_error", why))
        }
        answered = time::timeout(shared.limits.response, sender.send_request(request)) => {
            let late = |_| (504, "http_response_timeout", String::new());
            let response = answered.map_err(late)?.map_err(invalid)?;
            Ok((response, in_use))
        }
    }
}

async fn reply(outgoing: Outgoing, answer: FullResponse) {
    // The client may be gone.
    let _ = outgoing.respond(answer).await;
}

/// The response to a request whose body was truncated.
fn cut_off(cause: Cause) -> FullResponse {
    match cause {
        Cause::CutOff => FullResponse::text(400, "The request body ended early\n"),
        Cause::Late => {
            FullResponse::text(408, "Request timeout: the request body made no progress\n")
        }
    }
}

/// The interim responses to a request, up to a limit.
#[derive(Default)]
struct Hints(Mutex<Hinted>);

#[derive(Default)]
struct Hinted {
    waiting: VecDeque<Response>,
    count: usize,
    waker: Option<Waker>,
}

/// More than [`INTERIM_MAX`] interim responses.
struct TooMany;

impl Hints {
    fn hinted(&self) -> MutexGuard<'_, Hinted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, status: u16, headers: &http::HeaderMap) {
        let mut hinted = self.hinted();
        hinted.count += 1;
        // 100 concerns only one hop (RFC 9110 §15.2.1); 101 was not requested.
        let is_forwarded = !matches!(status, 100 | 101);
        if is_forwarded && hinted.waiting.len() < HINTS_MAX && hinted.count <= INTERIM_MAX {
            let mut interim = Response::new(status);
            fields::copy_response(headers, interim.fields_mut());
            hinted.waiting.push_back(interim);
        }
        let waker = hinted.waker.take();
        drop(hinted);
        wake(waker);
    }

    /// The next one to forward.
    fn poll_next(&self, context: &Context<'_>) -> Poll<Result<Response, TooMany>> {
        let mut hinted = self.hinted();
        if hinted.count > INTERIM_MAX {
            return Poll::Ready(Err(TooMany));
        }
        if let Some(interim) = hinted.waiting.pop_front() {
            return Poll::Ready(Ok(interim));
        }
        note(&mut hinted.waker, context.waker());
        Poll::Pending
    }

    async fn next(&self) -> Result<Response, TooMany> {
        poll_fn(|context| self.poll_next(context)).await
    }

    /// Waits until there are too many.
    async fn overflow(&self) {
        poll_fn(|context| {
            let mut hinted = self.hinted();
            if hinted.count > INTERIM_MAX {
                return Poll::Ready(());
            }
            note(&mut hinted.waker, context.waker());
            Poll::Pending
        })
        .await;
    }
}

/// Sends a request to a server, and to others where that is permitted and the first fails. `server` is the one that it was
/// sent to last.
async fn ask(
    shared: &Shared,
    local: &Local,
    head: http::request::Parts,
    body: Arc<Upload>,
    server: &AtomicUsize,
) -> Result<(http::Response<Incoming>, Lease, Turn), SendFailure> {
    let mut attempts = Attempts::new(&head.method);
    let mut tried = Tried::default();
    // Of the last failure: whether the others may be tried although they are out.
    let mut may_be_out = true;
    let mut failed = None;
    while let Some(turn) = shared.balance.choose(tried, may_be_out) {
        let index = turn.server();
        server.store(index, Ordering::Relaxed);
        let Some(pool) = local.pools.get(index) else {
            break;
        };
        let (failure, may_move) = match pool.send(&head, &body, &mut attempts).await {
            Ok((response, lease)) => {
                turn.succeed();
                return Ok((response, lease, turn));
            }
            Err(failed) => failed,
        };
        let is_connect = !matches!(failure, SendFailure::Broken(_));
        if body.progress().cause().is_none() {
            shared.balance.fail(index, is_connect);
        }
        may_be_out = failure != SendFailure::Late;
        tried.add(index);
        let is_sent_again = may_move && body.retire();
        failed = Some(failure);
        if !is_sent_again {
            break;
        }
        shared.connector.counts.on_retry();
    }
    Err(failed.unwrap_or(SendFailure::Full))
}

/// Sends a request, and passes its response back.
async fn send(
    shared: &Shared,
    local: &Local,
    head: http::request::Parts,
    body: Arc<Upload>,
    mut outgoing: Outgoing,
    (client, observed): (&Client, &Observed),
) {
    let fail = |status, error, why: &str| {
        observed.on_error(error);
        failed(status, error, why)
    };
    let is_head = head.method == http::Method::HEAD;
    let mut request = http::Request::from_parts(head, ());
    let hints = Arc::<Hints>::default();
    let hinted = Arc::clone(&hints);
    hyper::ext::on_informational(&mut request, move |response| {
        hinted.push(response.status().as_u16(), response.headers());
    });
    let too_many = || {
        let why = format!("more than {INTERIM_MAX} interim responses");
        Some(Err(SendFailure::Broken(why)))
    };
    let progress = body.progress();
    // What has passed of the body, and since when no more.
    let (mut seen, mut since) = (0, time::Instant::now());
    let head = request.into_parts().0;
    let server = AtomicUsize::new(0);
    // The body is dropped when the response begins: the rest of it is read as long as the upstream takes it.
    let asked = ask(shared, local, head, body, &server);
    let limit = shared.limits.response;
    let timer = time::sleep(limit / CHECKS);
    tokio::pin!(asked, timer);
    let result = loop {
        tokio::select! {
            biased;
            () = outgoing.aborted() => return,
            interim = hints.next() => {
                let Ok(interim) = interim else {
                    break too_many();
                };
                let informed = outgoing.inform(interim);
                let informed = tokio::select! {
                    biased;
                    () = hints.overflow() => break too_many(),
                    informed = send_part(shared, client, informed) => informed,
                };
                if informed.is_err() {
                    return;
                }
            }
            result = &mut asked => break Some(result),
            () = &mut timer => {
                // A long upload is not a stall.
                let passed = progress.passed();
                if passed != seen {
                    (seen, since) = (passed, time::Instant::now());
                }
                let left = limit.saturating_sub(since.elapsed());
                if left.is_zero() {
                    shared.balance.fail(server.load(Ordering::Relaxed), false);
                    break None;
                }
                timer.as_mut().reset(time::Instant::now() + left.min(limit / CHECKS));
            }
        }
    };
    // The server has a request more until the response has ended.
    let (response, lease, _turn) = match result {
        Some(Ok(answered)) => answered,
        None => return reply(outgoing, fail(504, "http_response_timeout", "")).await,
        Some(Err(failure)) => {
            let answer = match (failure, progress.cause()) {
                (SendFailure::Broken(_), Some(cause)) => cut_off(cause),
                (SendFailure::Full, _) => fail(503, CONNECTION_LIMIT, ""),
                (SendFailure::Late, _) => fail(504, "connection_timeout", ""),
                (SendFailure::Refused(why), _) => fail(502, "connection_refused", &why),
                (SendFailure::Tls(why), _) => fail(502, "tls_certificate_error", &why),
                (SendFailure::Broken(why), _) => fail(502, "http_protocol_error", &why),
            };
            return reply(outgoing, answer).await;
        }
    };
    if response.status() == http::StatusCode::SWITCHING_PROTOCOLS {
        let why = "unexpected protocol switch";
        return reply(outgoing, fail(502, "http_upgrade_failed", why)).await;
    }
    if has_unknown_coding(response.headers()) {
        let answer = fail(502, "http_response_transfer_coding", "");
        return reply(outgoing, answer).await;
    }
    observed.on_response();
    let outcome = forward_response(shared, response, outgoing, is_head, (client, observed));
    if outcome.await {
        lease.return_to_pool();
    }
}

/// Waits until there is room for a part of the response, as long as the client takes to make some.
async fn send_part(
    shared: &Shared,
    client: &Client,
    sending: impl Future<Output = Result<(), ExchangeAborted>>,
) -> Result<(), ExchangeAborted> {
    client.sent(shared.limits.stall, sending).await
}

/// The response to the client, with the failure in `Proxy-Status` (RFC 9209 §2.3).
fn failed(status: u16, error: &str, why: &str) -> FullResponse {
    let text = match status {
        503 => "Service unavailable: too many concurrent requests\n",
        504 => "Gateway timeout: the upstream server took too long\n",
        _ => "Bad gateway: the upstream server is unreachable or did not answer with HTTP\n",
    };
    let mut proxy_status = format!("lastbyte; error={error}");
    if !why.is_empty() {
        proxy_status = format!("{proxy_status}; details=\"{}\"", quotable(why));
    }
    let answer = FullResponse::text(status, text).with("proxy-status", proxy_status);
    match status {
        503 => answer.with("retry-after", "1"),
        _ => answer,
    }
}

/// Passes a response back. Returns whether it was complete.
async fn forward_response(
    shared: &Shared,
    response: http::Response<Incoming>,
    mut outgoing: Outgoing,
    is_head: bool,
    (client, observed): (&Client, &Observed),
) -> bool {
    let fail = |why: &str| {
        observed.on_error("http_protocol_error");
        failed(502, "http_protocol_error", why)
    };
    let (head, mut body) = response.into_parts();
    let is_http2 = head.version == http::Version::HTTP_2;
    if head.headers.len() > FIELDS_MAX {
        let why = format!("more than {FIELDS_MAX} fields");
        reply(outgoing, fail(&why)).await;
        return false;
    }
    let Ok(answer) = fields::response(&head) else {
        reply(outgoing, fail("invalid content-length")).await;
        return false;
    };
    let has_no_content = head.status == http::StatusCode::RESET_CONTENT;
    if is_head || has_no_content || body.is_end_stream() {
        // Without a body, the header ends the stream: gRPC calls that Trailers-Only.
        let answer = FullResponse {
            response: answer,
            body: None,
        };
        let sent = send_part(shared, client, outgoing.respond(answer)).await;
        return sent.is_ok() && (is_head || body.is_end_stream());
    }
    let mut ready = poll_fn(|context| Poll::Ready(poll_frame(&mut body, context))).await;
    if let Poll::Ready(Some(Ok(frame))) = &mut ready
        && body.is_end_stream()
        && let Some(bytes) = frame
            .data_mut()
            .filter(|it| (1..=PIECE_LEN).contains(&it.len()))
    {
        let sent = outgoing.respond_with(answer, mem::take(bytes));
        return send_part(shared, client, sent).await.is_ok();
    }
    let begun = send_part(shared, client, outgoing.begin(answer)).await;
    if begun.is_err() {
        return false;
    }
    let trailers = loop {
        let next = match mem::replace(&mut ready, Poll::Pending) {
            Poll::Ready(next) => Ok(next),
            Poll::Pending => tokio::select! {
                biased;
                next = time::timeout(shared.limits.stall, next_frame(&mut body)) => next,
                () = outgoing.aborted() => return false,
            },
        };
        match next {
            // A reset with `NO_ERROR` before the end (RFC 9113 §8.1), which hyper reports as the end.
            Ok(None) if is_http2 && !body.is_end_stream() => {
                observed.on_error(INCOMPLETE);
                return false;
            }
            Ok(None) => break None,
            Ok(Some(Ok(frame))) => match frame.into_data() {
                Ok(mut bytes) => {
                    while bytes.len() > PIECE {
                        let piece = bytes.split_to(PIECE);
                        if send_part(shared, client, outgoing.data(piece))
                            .await
                            .is_err()
                        {
                            return false;
                        }
                    }
                    if body.is_end_stream() {
                        let sent = send_part(shared, client, outgoing.end_with(bytes)).await;
                        return sent.is_ok();
                    }
                    if send_part(shared, client, outgoing.data(bytes))
                        .await
                        .is_err()
                    {
                        return false;
                    }
                }
                Err(frame) => break frame.into_trailers().ok().map(|map| fields::trailers(&map)),
            },
            // It was truncated or stalled: dropped without its end, the response is reset.
            Ok(Some(Err(_))) => {
                observed.on_error(INCOMPLETE);
                return false;
            }
            Err(_) => {
                observed.on_error(READ_TIMEOUT);
                return false;
            }
        }
    };
    send_part(shared, client, outgoing.end(trailers))
        .await
        .is_ok()
}

type NextFrame = Option<Result<Frame<Bytes>, hyper::Error>>;

fn poll_frame(body: &mut Incoming, context: &mut Context<'_>) -> Poll<NextFrame> {
    Pin::new(body).poll_frame(context)
}

async fn next_frame(body: &mut Incoming) -> NextFrame {
    poll_fn(|context| poll_frame(body, context)).await
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy")
            .field("upstream", &self.shared.upstream)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
