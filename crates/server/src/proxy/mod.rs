//! A handler that passes requests on to another server: a reverse proxy (RFC 9110 §3.7, §7.6).
//!
//! Owns: the way of a request to the server behind and of its response back, both as they come, with as much in between as
//! their channels hold; what is told of the client; which failure the client is told. Never: stores a response, asks
//! twice for what may have been done, or waits in a worker.
//!
//! | module | owns |
//! |---|---|
//! | [`upstream`] | which server that is, as a URL |
//! | `pool` | connections to it: made, kept, found to be dead |
//! | `fields` | fields that go no further, and those that are added |
//! | `body` | the body of a request, as hyper asks for it |
//!
//! | failure | the client is told |
//! |---|---|
//! | it cannot be connected to, or breaks off, or says what is no HTTP, before its response | 502 |
//! | it takes too long to connect to, or to begin its response | 504 |
//! | both with the reason | `proxy-status` (RFC 9209) |
//! | it breaks off, or says nothing for too long, in its response | a reset stream, a connection that is closed |
//! | the client goes | the connection behind is closed, unless it is HTTP/2 |

mod body;
mod fields;
mod pool;
pub mod upstream;

use std::{
    fmt,
    future::poll_fn,
    io,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use bytes::Bytes;
use hyper::body::{Body as _, Frame, Incoming};
use lastbyte_http3::{Request, Response};
use tokio::{runtime, sync::mpsc, time};

pub use self::upstream::{Upstream, UpstreamError};
use self::{
    body::RequestBody,
    pool::{Pool, SendFailure},
};
use super::{
    exchange::{Exchange, Incoming as FromClient, Outgoing, Piece},
    handler::{Answer, Handler, Peer, Reply},
};

/// What can be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long it may take to connect, TLS with it. Default: 5 s.
    pub connect: Duration,
    /// How long until a response begins, once no more of the request comes. Default: 60 s.
    pub response: Duration,
    /// How long a body may say nothing, in either direction. Default: 60 s.
    pub stall: Duration,
    /// How long a connection is kept that has nothing to do. Default: 30 s.
    pub idle: Duration,
    /// How many of those. Default: 64.
    pub kept: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            response: Duration::from_secs(60),
            stall: Duration::from_secs(60),
            idle: Duration::from_secs(30),
            kept: 64,
        }
    }
}

/// The handler.
pub struct Proxy {
    shared: Arc<Shared>,
    /// Gone only while it is dropped.
    runtime: Option<runtime::Runtime>,
}

struct Shared {
    upstream: Upstream,
    pool: Pool,
    limits: Limits,
}

/// Interim responses that wait for the client; later ones are dropped, as hints may be.
const HINTS_MAX: usize = 8;

impl Proxy {
    /// Passes requests on to this server, on so many threads. `tls` is for `https`.
    ///
    /// # Errors
    ///
    /// There are no threads left.
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
        let pool = Pool::new(upstream.clone(), tls, limits);
        let shared = Arc::new(Shared {
            upstream,
            pool,
            limits,
        });
        Ok(Self {
            shared,
            runtime: Some(runtime),
        })
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // The last reference may be dropped by a thread that must not wait.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Handler for Proxy {
    fn answer(&self, request: &Request, peer: &Peer) -> Reply {
        if request.method() == "CONNECT" {
            return Answer::text(501, "there are no tunnels here\n").into();
        }
        let Some(head) = fields::request(request, peer, &self.shared.upstream) else {
            return Answer::text(400, "the request cannot be passed on\n").into();
        };
        let Some(runtime) = self.runtime.as_ref().map(runtime::Runtime::handle).cloned() else {
            return Answer::text(503, "the server ends\n").into();
        };
        let shared = Arc::clone(&self.shared);
        Reply::Task(Box::new(move |exchange| {
            runtime.spawn(pass(shared, head, exchange));
        }))
    }
}

/// Passes one request on.
async fn pass(shared: Arc<Shared>, head: http::request::Parts, exchange: Exchange) {
    let Exchange {
        incoming,
        mut outgoing,
    } = exchange;
    let Some(body) = request_body(&shared, &head, incoming).await else {
        // The client gave up, or says nothing.
        return;
    };
    let is_head = head.method == http::Method::HEAD;
    let (hint, mut hints) = mpsc::channel(HINTS_MAX);
    let mut request = http::Request::from_parts(head, body);
    hyper::ext::on_informational(&mut request, move |response| {
        let mut interim = Response::new(response.status().as_u16());
        fields::copy_response(response.headers(), interim.fields_mut());
        let _ = hint.try_send(interim);
    });
    let passed = request.body().passed();
    let mut seen = 0;
    let asked = shared.pool.send(request);
    let timer = time::sleep(shared.limits.response);
    tokio::pin!(asked, timer);
    let result = loop {
        tokio::select! {
            biased;
            Some(interim) = hints.recv() => {
                // 100 is between the two who speak to each other (RFC 9110 §15.2.1); 101 was not asked for.
                if !matches!(interim.status(), 100 | 101) && outgoing.inform(interim).await.is_err() {
                    return;
                }
            }
            result = &mut asked => break Some(result),
            () = &mut timer => {
                // A long upload is no long silence.
                let now = passed.load(Ordering::Relaxed);
                if now == seen {
                    break None;
                }
                seen = now;
                timer.as_mut().reset(time::Instant::now() + shared.limits.response);
            }
            () = outgoing.gone() => return,
        }
    };
    let (response, lease) = match result {
        Some(Ok(answered)) => answered,
        None => {
            let _ = outgoing
                .answer(failed(504, "http_response_timeout", ""))
                .await;
            return;
        }
        Some(Err(failure)) => {
            let answer = match failure {
                SendFailure::Late => failed(504, "connection_timeout", ""),
                SendFailure::Refused(why) => failed(502, "connection_refused", &why),
                SendFailure::Tls(why) => failed(502, "tls_certificate_error", &why),
                SendFailure::Broken(why) => failed(502, "http_protocol_error", &why),
            };
            let _ = outgoing.answer(answer).await;
            return;
        }
    };
    if response.status() == http::StatusCode::SWITCHING_PROTOCOLS {
        let why = "a protocol that nobody asked for";
        let _ = outgoing
            .answer(failed(502, "http_upgrade_failed", why))
            .await;
        return;
    }
    if give_back(&shared, response, outgoing, is_head).await {
        lease.give_back();
    }
}

/// What the client is told, and, for whoever looks for the reason, which failure it was (RFC 9209 §2.3).
fn failed(status: u16, error: &str, why: &str) -> Answer {
    let text = match status {
        504 => "the server behind takes too long\n",
        _ => "the server behind cannot be reached, or does not speak HTTP\n",
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
    Answer::text(status, text).with("proxy-status", proxy_status)
}

/// The body that follows, once it is known whether there is one. `None` if the client gave up.
async fn request_body(
    shared: &Shared,
    head: &http::request::Parts,
    mut incoming: FromClient,
) -> Option<RequestBody> {
    let len = fields::content_length(&head.headers);
    if len == Some(0) {
        return Some(RequestBody::empty());
    }
    let first = time::timeout(shared.limits.stall, incoming.next())
        .await
        .ok()??;
    Some(match first {
        Piece::End => RequestBody::empty(),
        first => RequestBody::new(first, incoming, len, shared.limits.stall),
    })
}

/// Passes a response back. Returns whether all of it came.
async fn give_back(
    shared: &Shared,
    response: http::Response<Incoming>,
    mut outgoing: Outgoing,
    is_head: bool,
) -> bool {
    let (head, mut body) = response.into_parts();
    let answer = fields::response(&head);
    if outgoing.begin(answer).await.is_err() {
        return false;
    }
    let mut trailers = None;
    if !is_head {
        loop {
            let next = tokio::select! {
                next = time::timeout(shared.limits.stall, next_frame(&mut body)) => next,
                () = outgoing.gone() => return false,
            };
            match next {
                Ok(None) => break,
                Ok(Some(Ok(frame))) => match frame.into_data() {
                    Ok(bytes) => {
                        if outgoing.data(bytes).await.is_err() {
                            return false;
                        }
                    }
                    Err(frame) => {
                        trailers = frame.into_trailers().ok().map(|map| fields::trailers(&map));
                    }
                },
                // It broke off, or says nothing: dropped without its end, the response is reset.
                Ok(Some(Err(_))) | Err(_) => return false,
            }
        }
    }
    outgoing.end(trailers).await.is_ok()
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
