//! A handler that forwards requests to another server: a reverse proxy (RFC 9110 §3.7, §7.6).
//!
//! Requests and responses are streamed through bounded channels. The handler adds the fields about the client, and maps
//! failures of the upstream to status codes. It stores no response and never blocks a worker.
//!
//! | module | responsibility |
//! |---|---|
//! | [`upstream`] | the upstream server, as a URL |
//! | `pool` | connections to it: opening, keeping, detecting closed ones |
//! | `repeat` | which failed requests are sent again |
//! | `slots` | the limit on requests in flight |
//! | [`fields`] | requests that are forwarded, fields that are removed and added |
//! | `forwarded` | list fields that proxies extend |
//! | `body` | the body of a request, for hyper |
//! | `counts` | counters, and the time for the access log |
//!
//! | failure | the client receives |
//! |---|---|
//! | the request must not be forwarded, or its body is truncated | 400 |
//! | its body stalls for too long | 408 |
//! | connecting to the upstream fails, or it closes the connection or sends invalid HTTP before its response | 502 |
//! | there are too many requests in flight | 503 |
//! | connecting to the upstream, or its response header, takes too long | 504 |
//! | the last three also have the reason | `proxy-status` (RFC 9209) |
//! | the upstream truncates its response, or stalls for too long; or the client reads nothing for too long | what had arrived, and then a reset stream, or a closed connection |
//! | the client goes away | the connection to the upstream is closed, or over HTTP/2 the stream reset |

mod body;
mod counts;
pub mod fields;
mod forwarded;
mod pool;
mod repeat;
mod slots;
pub mod upstream;

use std::{
    convert::Infallible,
    fmt,
    future::poll_fn,
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::Poll,
    time::Duration,
};

use bytes::Bytes;
use hyper::body::{Body as _, Frame, Incoming};
use lastbyte_http3::{Request, Response};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    runtime,
    sync::{Notify, mpsc, oneshot},
    task, time,
};

use self::{
    body::{Cause, Source, Upload},
    counts::{CONNECTION_LIMIT, INCOMPLETE, Observed, READ_TIMEOUT},
    pool::{FIELDS_MAX, Pool, SendFailure, Transport},
    slots::{Client, Side, Slots},
};
pub use self::{
    counts::{UpstreamCounts, UpstreamStatistics},
    upstream::{Upstream, UpstreamError},
};
use super::{
    exchange::{Exchange, ExchangeAborted, Outgoing, Piece},
    handler::{FullResponse, Handler, HandlerResponse, Peer},
    hop_by_hop::has_unknown_coding,
};

/// Settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Time limit for connecting, including TLS, and for a request to wait for others to end. Default: 5 s.
    pub connect: Duration,
    /// Time limit for the response header, after the end of the request. Default: 60 s.
    pub response: Duration,
    /// Time limit for a stalled body, in either direction, on either side. Default: 60 s.
    pub stall: Duration,
    /// Time limit for idle connections. Default: 30 s.
    pub idle: Duration,
    /// Maximum number of idle connections. Default: 64.
    pub kept: usize,
    /// Requests in flight to the upstream; over HTTP/1.1 that is connections. Default: 1024. When all are in use,
    /// another request replaces the one whose client has been stalled longest, at least 1 s.
    pub requests: usize,
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
            streams: 32,
        }
    }
}

/// The handler.
pub struct Proxy {
    shared: Arc<Shared>,
    runtime: runtime::Handle,
    /// Its own runtime, if it has one; `None` while it is dropped.
    owned: Option<runtime::Runtime>,
}

struct Shared {
    upstream: Arc<Upstream>,
    pool: Arc<Pool>,
    slots: Arc<Slots>,
    limits: Limits,
}

impl Shared {
    fn new(upstream: Upstream, limits: Limits, pool: Arc<Pool>) -> Arc<Self> {
        Arc::new(Self {
            pool,
            slots: Slots::new(limits.requests),
            upstream: Arc::new(upstream),
            limits,
        })
    }
}

/// Interim responses waiting for the client; later ones are dropped, as they are hints.
const HINTS_MAX: usize = 8;
/// The most interim responses to one request. An upstream that sends them without end would otherwise keep a thread
/// busy until [`Limits::response`].
const INTERIM_MAX: usize = 100;
/// Pieces of a response, in bytes: a client that reads this much is not stalled.
const PIECE: usize = 16 << 10;

impl Proxy {
    /// Forwards requests to this server, on this number of threads. `tls` is for `https`; its ALPN protocols select the
    /// permitted versions of HTTP.
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
        let runtime = runtime::Builder::new_multi_thread()
            .worker_threads(threads.max(1))
            .thread_name("proxy")
            .enable_all()
            .build()?;
        Ok(Self {
            shared: Shared::new(upstream.clone(), limits, Pool::new(upstream, tls, limits)),
            runtime: runtime.handle().clone(),
            owned: Some(runtime),
        })
    }

    /// Forwards requests on an existing runtime, over connections that `connect` opens in place of TCP, without TLS. To be
    /// called in the context of the runtime, from which it takes the time.
    ///
    /// So a proxy runs without threads and sockets, and in virtual time if the runtime's clock is paused.
    pub fn over<S, F>(
        upstream: Upstream,
        limits: Limits,
        runtime: runtime::Handle,
        connect: F,
    ) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        F: Fn() -> io::Result<S> + Send + Sync + 'static,
    {
        let connect = move || connect().map(|stream| Box::new(stream) as Box<dyn Transport>);
        let pool = Pool::over(upstream.clone(), limits, Box::new(connect));
        Self {
            shared: Shared::new(upstream, limits, pool),
            runtime,
            owned: None,
        }
    }
}

impl Proxy {
    /// Access to the counters of its upstream.
    #[must_use]
    pub fn counts(&self) -> UpstreamCounts {
        let pool = Arc::clone(&self.shared.pool);
        UpstreamCounts {
            name: self.shared.upstream.to_string(),
            counts: Arc::clone(&pool.counts),
            kept: Arc::new(move || pool.kept()),
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // The last reference may be dropped by a thread that must not block.
        if let Some(runtime) = self.owned.take() {
            runtime.shutdown_background();
        }
    }
}

impl Handler for Proxy {
    fn handle(&self, request: &Request, peer: &Peer) -> HandlerResponse {
        if request.method() == "CONNECT" {
            return FullResponse::text(501, "CONNECT is not supported\n").into();
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
        let runtime = self.runtime.clone();
        let shared = Arc::clone(&self.shared);
        HandlerResponse::Task(Box::new(move |exchange| {
            runtime.spawn(pass(shared, head, exchange));
        }))
    }
}

/// Forwards one request, unless it is cancelled before that.
async fn pass(shared: Arc<Shared>, head: http::request::Parts, exchange: Exchange) {
    let Exchange {
        mut incoming,
        mut outgoing,
    } = exchange;
    // A client that cancels at once, as in a flood of reset requests, costs the upstream nothing.
    task::yield_now().await;
    let len = fields::content_length(&head.headers);
    // Whether a request without a length has a body shows with its first piece. Over HTTP/2 it does not matter, and the
    // server may speak first, as in bidirectional streams of gRPC.
    let may_wait = head.method == http::Method::POST && shared.pool.may_be_http2();
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
    let observed = Observed::new(&shared.pool.counts, outgoing.notes());
    let slot = tokio::select! {
        biased;
        () = outgoing.aborted() => return,
        slot = shared.slots.take(shared.limits.connect) => slot,
    };
    let Some(slot) = slot else {
        observed.on_error(CONNECTION_LIMIT);
        let answer = failed(503, CONNECTION_LIMIT, "");
        return reply(outgoing, answer.with("retry-after", "1")).await;
    };
    let client = Arc::clone(&slot.client);
    // Dropped with the exchange, and the body ends with it.
    let (_exchange_runs, over) = oneshot::channel::<Infallible>();
    let body = match first {
        Some(Piece::End) => Upload::empty(),
        first => {
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
        () = send(&shared, head, body, outgoing, (&client, &observed)) => {}
        // Others need the slot, and this client is stalled.
        () = client.revoked() => {}
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

/// Sends a request, and passes its response back.
async fn send(
    shared: &Shared,
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
    let (hint, mut hints) = mpsc::channel(HINTS_MAX);
    let mut request = http::Request::from_parts(head, ());
    let interim_count = AtomicUsize::new(0);
    let flood = Arc::new(Notify::new());
    let flooded = Arc::clone(&flood);
    hyper::ext::on_informational(&mut request, move |response| {
        if interim_count.fetch_add(1, Ordering::Relaxed) >= INTERIM_MAX {
            flood.notify_one();
            return;
        }
        let mut interim = Response::new(response.status().as_u16());
        fields::copy_response(response.headers(), interim.fields_mut());
        let _ = hint.try_send(interim);
    });
    let too_many = || {
        let why = format!("more than {INTERIM_MAX} interim responses");
        Some(Err(SendFailure::Broken(why)))
    };
    let progress = body.progress();
    let mut seen = 0;
    let head = request.into_parts().0;
    // The body is dropped when the response begins: the rest of it is read as long as the upstream takes it.
    let asked = async move { shared.pool.send(head, &body).await };
    let timer = time::sleep(shared.limits.response);
    tokio::pin!(asked, timer);
    let result = loop {
        tokio::select! {
            biased;
            () = outgoing.aborted() => return,
            () = flooded.notified() => break too_many(),
            Some(interim) = hints.recv() => {
                // 100 concerns only one hop (RFC 9110 §15.2.1); 101 was not requested.
                if !matches!(interim.status(), 100 | 101) {
                    let informed = outgoing.inform(interim);
                    let informed = tokio::select! {
                        biased;
                        () = flooded.notified() => break too_many(),
                        informed = send_part(shared, client, informed) => informed,
                    };
                    if informed.is_err() {
                        return;
                    }
                }
            }
            result = &mut asked => break Some(result),
            () = &mut timer => {
                // A long upload is not a stall.
                let now = progress.passed();
                if now == seen {
                    break None;
                }
                seen = now;
                timer.as_mut().reset(time::Instant::now() + shared.limits.response);
            }
        }
    };
    let (response, lease) = match result {
        Some(Ok(answered)) => answered,
        None => return reply(outgoing, fail(504, "http_response_timeout", "")).await,
        Some(Err(failure)) => {
            let answer = match (failure, progress.cause()) {
                (SendFailure::Broken(_), Some(cause)) => cut_off(cause),
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
    client.on_wait(Side::Response);
    let sent = time::timeout(shared.limits.stall, sending).await;
    client.on_progress(Side::Response);
    sent.unwrap_or(Err(ExchangeAborted))
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
        // RFC 8941 §3.3.3: printable, with these two escaped.
        let why: String = why
            .chars()
            .filter(|c| matches!(c, ' '..='~'))
            .flat_map(|c| {
                matches!(c, '"' | '\\')
                    .then_some('\\')
                    .into_iter()
                    .chain([c])
            })
            .collect();
        proxy_status = format!("{proxy_status}; details=\"{why}\"");
    }
    FullResponse::text(status, text).with("proxy-status", proxy_status)
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
    let begun = send_part(shared, client, outgoing.begin(answer)).await;
    if begun.is_err() {
        return false;
    }
    let trailers = loop {
        let next = tokio::select! {
            biased;
            next = time::timeout(shared.limits.stall, next_frame(&mut body)) => next,
            () = outgoing.aborted() => return false,
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

async fn next_frame(body: &mut Incoming) -> Option<Result<Frame<Bytes>, hyper::Error>> {
    poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await
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
