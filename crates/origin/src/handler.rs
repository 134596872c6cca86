//! Request handlers, for all versions of HTTP.
//!
//! Defines the trait, its arguments, and the kinds of response. Headers are those of [`lastbyte_http3`] for all
//! versions: names in lower case, the target in `:path`, and no connection-specific fields.
//!
//! | response | for |
//! |---|---|
//! | [`HandlerResponse::Now`] | responses known at once: files, generated objects, errors. No allocation besides the response's own |
//! | [`HandlerResponse::After`] | the same after a delay; nothing is opened or read until then |
//! | [`HandlerResponse::Hinted`] | the same, with an interim response at once |
//! | [`HandlerResponse::Task`] | responses that other threads produce piece by piece, and requests whose body is needed: a proxy |

use std::{fmt, net::SocketAddr, time::Duration};

use lastbyte_http3::{Request, Response};
use lastbyte_quic::stream::Source;

use super::exchange::Exchange;

/// Responds to requests, concurrently on all worker threads: it must not block.
pub trait Handler: Send + Sync {
    /// Returns the response to a request.
    fn handle(&self, request: &Request, peer: &Peer) -> HandlerResponse;

    /// Whether it takes a request to open a tunnel: an extended CONNECT for `websocket`, over whatever version of HTTP (RFC 6455,
    /// RFC 8441, RFC 9220). Then it gets the request, and a response with status 200, or 101 over HTTP/1.1, begins the tunnel,
    /// whose bytes are the bodies.
    fn takes_tunnel(&self, _request: &Request) -> bool {
        false
    }

    /// The names of its routes, for logs and metrics: the first is that of all other requests. Empty if there are no routes.
    fn routes(&self) -> &[String] {
        &[]
    }

    /// Returns the response to a request, and the index of its route in [`Handler::routes`].
    fn handle_routed(&self, request: &Request, peer: &Peer) -> (HandlerResponse, usize) {
        (self.handle(request, peer), 0)
    }
}

/// A version of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// HTTP/1.0.
    Http10,
    /// HTTP/1.1.
    Http11,
    /// HTTP/2.
    Http2,
    /// HTTP/3.
    Http3,
}

impl Version {
    /// Its name in logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http10 => "HTTP/1.0",
            Self::Http11 => "HTTP/1.1",
            Self::Http2 => "HTTP/2",
            Self::Http3 => "HTTP/3",
        }
    }
}

/// The client of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The client's address.
    pub remote: SocketAddr,
    /// The HTTP version.
    pub version: Version,
    /// Whether the request arrived in 0-RTT, and may be a replay (RFC 8470). The server passes only safe methods to the
    /// handler then.
    pub is_early: bool,
}

/// A handler's response.
pub enum HandlerResponse {
    /// This response.
    Now(FullResponse),
    /// A response after a delay.
    After(Duration, DelayedResponse),
    /// An interim response such as 103 Early Hints (RFC 8297), and a response after a delay. Clients of HTTP/1.1 do not
    /// receive the first.
    Hinted(Response, Duration, DelayedResponse),
    /// A response from another thread or task. The function is called immediately, on the worker's thread, and passes the
    /// exchange on.
    Task(Task),
}

/// Creates a response when it is due. Called on the same threads as [`Handler::handle`], it must not block.
pub type DelayedResponse = Box<dyn FnOnce() -> FullResponse + Send>;

/// Passes an exchange to the task that responds.
pub type Task = Box<dyn FnOnce(Exchange) + Send>;

impl HandlerResponse {
    /// Removes the body of a response to `HEAD`, unless it arrives piece by piece.
    #[must_use]
    pub fn head_only(self) -> Self {
        fn late(answer: DelayedResponse) -> DelayedResponse {
            Box::new(|| answer().head_only())
        }
        match self {
            Self::Now(answer) => Self::Now(answer.head_only()),
            Self::After(span, answer) => Self::After(span, late(answer)),
            Self::Hinted(hint, span, answer) => Self::Hinted(hint, span, late(answer)),
            Self::Task(task) => Self::Task(task),
        }
    }
}

impl fmt::Debug for HandlerResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Now(response) => f.debug_tuple("Now").field(response).finish(),
            Self::After(span, _) => f.debug_tuple("After").field(span).finish(),
            Self::Hinted(hint, span, _) => f.debug_tuple("Hinted").field(hint).field(span).finish(),
            Self::Task(_) => f.write_str("Task"),
        }
    }
}

impl From<FullResponse> for HandlerResponse {
    fn from(response: FullResponse) -> Self {
        Self::Now(response)
    }
}

/// A complete response: header and body.
pub struct FullResponse {
    /// Status and fields.
    pub response: Response,
    /// The body, if any.
    pub body: Option<Box<dyn Source>>,
}

impl FullResponse {
    /// A response without a body and without `content-length`: 204, 304.
    #[must_use]
    pub fn bare(status: u16) -> Self {
        Self {
            response: Response::new(status),
            body: None,
        }
    }

    /// A response with this text as body.
    #[must_use]
    pub fn text(status: u16, text: impl Into<String>) -> Self {
        Self::source(
            status,
            "text/plain; charset=utf-8",
            Box::new(text.into().into_bytes()),
        )
    }

    /// A response with a source as body.
    #[must_use]
    pub fn source(status: u16, content_type: &str, source: Box<dyn Source>) -> Self {
        Self::bare(status)
            .with("content-type", content_type)
            .with_body(source)
    }

    /// The response to `CONNECT`, in all versions.
    #[must_use]
    pub fn no_connect() -> Self {
        Self::text(405, "CONNECT is not supported\n").with("allow", "GET, HEAD, OPTIONS")
    }

    /// The response to extended CONNECT for a protocol that the handler does not take, in all versions (RFC 9220 §3).
    #[must_use]
    pub fn no_tunnel() -> Self {
        Self::text(501, "This protocol is not supported here\n")
    }

    /// The response to an expectation other than `100-continue`, in all versions (RFC 9110 §10.1.1).
    #[must_use]
    pub fn unknown_expectation() -> Self {
        Self::text(417, "Unknown expectation (expected 100-continue)\n")
    }

    /// Sets the body, and its length among the fields.
    #[must_use]
    pub fn with_body(self, source: Box<dyn Source>) -> Self {
        let mut response = self.with("content-length", source.len().to_string());
        response.body = (!source.is_empty()).then_some(source);
        response
    }

    /// Appends a field.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.response.fields_mut().push(name, value);
        self
    }

    /// Removes the body, as for `HEAD` (RFC 9110 §9.3.2).
    #[must_use]
    pub fn head_only(self) -> Self {
        Self { body: None, ..self }
    }

    /// The length of the body in bytes.
    pub fn body_len(&self) -> u64 {
        self.body.as_ref().map_or(0, |body| body.len())
    }
}

impl fmt::Debug for FullResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer")
            .field("response", &self.response)
            .field("body_len", &self.body_len())
            .finish_non_exhaustive()
    }
}
