//! What answers a request, whatever version of HTTP it came with.
//!
//! Owns: what a handler is asked, and the three ways in which it may reply. Heads are those of [`lastbyte_http3`] for all
//! versions: names in lower case, the target in `:path`, and nothing that is about a connection.
//!
//! | reply | for |
//! |---|---|
//! | [`Reply::Now`] | what is known at once: files, generated objects, errors. No allocation besides the answer's own |
//! | [`Reply::After`] | the same, later; nothing is opened or read until then |
//! | [`Reply::Task`] | what other threads say piece by piece, and what wants the body of the request: a proxy |

use std::{fmt, net::SocketAddr, time::Duration};

use lastbyte_http3::{Request, Response};
use lastbyte_quic::stream::Source;

use super::exchange::Exchange;

/// Answers requests, in the workers' threads, all at a time: it must not wait.
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
    /// Its name, as logs have it.
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

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The client's address.
    pub remote: SocketAddr,
    /// What it speaks.
    pub version: Version,
    /// Whether the request came as 0-RTT, and may be a replay (RFC 8470). Only safe methods get here then.
    pub is_early: bool,
}

/// What a handler replies.
pub enum Reply {
    /// This answer.
    Now(Answer),
    /// This answer, after so long.
    After(Duration, Later),
    /// An answer from another thread or task. The function is called immediately, on the worker's thread, and passes the
    /// exchange on.
    Task(Task),
}

/// Makes an answer when its time has come. It is called where [`Handler::answer`] is, and must not wait.
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

/// An answer that is known as a whole.
pub struct Answer {
    /// Status and fields.
    pub response: Response,
    /// What follows them, if anything does.
    pub body: Option<Box<dyn Source>>,
}

impl Answer {
    /// An answer without a body, whose length is not said: 204, 304.
    #[must_use]
    pub fn bare(status: u16) -> Self {
        Self {
            response: Response::new(status),
            body: None,
        }
    }

    /// An answer whose body is this text.
    #[must_use]
    pub fn text(status: u16, text: impl Into<String>) -> Self {
        Self::source(
            status,
            "text/plain; charset=utf-8",
            Box::new(text.into().into_bytes()),
        )
    }

    /// An answer whose body is a source.
    #[must_use]
    pub fn source(status: u16, content_type: &str, source: Box<dyn Source>) -> Self {
        Self::bare(status)
            .with("content-type", content_type)
            .with_body(source)
    }

    /// The same with a body, and its length among the fields.
    #[must_use]
    pub fn with_body(self, source: Box<dyn Source>) -> Self {
        let mut answer = self.with("content-length", source.len().to_string());
        answer.body = (!source.is_empty()).then_some(source);
        answer
    }

    /// The same with one field more.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.response.fields_mut().push(name, value);
        self
    }

    /// The same without its body, as `HEAD` is answered (RFC 9110 §9.3.2).
    #[must_use]
    pub fn head_only(self) -> Self {
        Self { body: None, ..self }
    }

    /// How long the body is, in bytes.
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
