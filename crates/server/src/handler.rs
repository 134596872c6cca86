//! Request handlers, for all versions of HTTP.
//!
//! Owns the trait, its arguments, and the three kinds of reply. Headers are those of [`lastbyte_http3`] for all
//! versions: names in lower case, the target in `:path`, and no connection-specific fields.
//!
//! | reply | for |
//! |---|---|
//! | [`Reply::Now`] | answers known at once: files, generated objects, errors. No allocation besides the answer's own |
//! | [`Reply::After`] | the same, later; nothing is opened or read until then |
//! | [`Reply::Task`] | responses that other threads produce piece by piece, and requests whose body is needed: a proxy |

use std::{fmt, net::SocketAddr, time::Duration};

use lastbyte_http3::{Request, Response};
use lastbyte_quic::stream::Source;

use super::exchange::Exchange;

/// Answers requests, concurrently on all worker threads: it must not block.
pub trait Handler: Send + Sync {
    /// The reply to a request.
    fn answer(&self, request: &Request, peer: &Peer) -> Reply;
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
    #[must_use]
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

/// A handler's reply.
pub enum Reply {
    /// This answer.
    Now(Answer),
    /// This answer, after a delay.
    After(Duration, Later),
    /// An answer from another thread or task. The function is called immediately, on the worker's thread, and passes the
    /// exchange on.
    Task(Task),
}

/// Creates an answer when it is due. Called on the same threads as [`Handler::answer`], it must not block.
pub type Later = Box<dyn FnOnce() -> Answer + Send>;

/// Passes an exchange to the task that answers it.
pub type Task = Box<dyn FnOnce(Exchange) + Send>;

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Now(answer) => f.debug_tuple("Now").field(answer).finish(),
            Self::After(span, _) => f.debug_tuple("After").field(span).finish(),
            Self::Task(_) => f.write_str("Task"),
        }
    }
}

impl From<Answer> for Reply {
    fn from(answer: Answer) -> Self {
        Self::Now(answer)
    }
}

/// A complete answer.
pub struct Answer {
    /// Status and fields.
    pub response: Response,
    /// The body, if any.
    pub body: Option<Box<dyn Source>>,
}

impl Answer {
    /// An answer without a body and without `content-length`: 204, 304.
    #[must_use]
    pub fn bare(status: u16) -> Self {
        Self {
            response: Response::new(status),
            body: None,
        }
    }

    /// An answer with this text as body.
    #[must_use]
    pub fn text(status: u16, text: impl Into<String>) -> Self {
        Self::source(
            status,
            "text/plain; charset=utf-8",
            Box::new(text.into().into_bytes()),
        )
    }

    /// An answer with a source as body.
    #[must_use]
    pub fn source(status: u16, content_type: &str, source: Box<dyn Source>) -> Self {
        Self::bare(status)
            .with("content-type", content_type)
            .with_body(source)
    }

    /// Sets the body, and its length among the fields.
    #[must_use]
    pub fn with_body(self, source: Box<dyn Source>) -> Self {
        let mut answer = self.with("content-length", source.len().to_string());
        answer.body = (!source.is_empty()).then_some(source);
        answer
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
    #[must_use]
    pub fn body_len(&self) -> u64 {
        self.body.as_ref().map_or(0, |body| body.len())
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer")
            .field("response", &self.response)
            .field("body_len", &self.body_len())
            .finish_non_exhaustive()
    }
}
