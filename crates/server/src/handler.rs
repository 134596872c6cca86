//! What answers a request.

use lastbyte_http3::{Body, Request, Response};
use lastbyte_quic::stream::Source;

/// Answers requests, in the workers' threads, all at a time: it must not wait.
pub trait Handler: Send + Sync {
    /// The answer to a request. Its body, if it has one, is not needed.
    fn answer(&self, request: &Request) -> Answer;
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    /// Status and fields.
    pub response: Response,
    /// What follows.
    pub body: Body,
    /// How long the body is, in bytes.
    pub body_len: u64,
}

impl Answer {
    /// An answer whose body is this text.
    #[must_use]
    pub fn text(status: u16, text: &str) -> Self {
        let response = Response::new(status)
            .with("content-type", "text/plain; charset=utf-8")
            .with("content-length", text.len().to_string());
        Self {
            response,
            body_len: text.len() as u64,
            body: Body::Source(Box::new(text.as_bytes().to_vec())),
        }
    }

    /// An answer whose body is a source.
    #[must_use]
    pub fn source(content_type: &str, source: Box<dyn Source>) -> Self {
        let len = source.len();
        let response = Response::new(200)
            .with("content-type", content_type)
            .with("content-length", len.to_string());
        Self {
            response,
            body_len: len,
            body: if len == 0 {
                Body::Empty
            } else {
                Body::Source(source)
            },
        }
    }

    /// The same without its body, as `HEAD` is answered (RFC 9110 §9.3.2).
    #[must_use]
    pub fn head_only(self) -> Self {
        Self {
            body: Body::Empty,
            body_len: 0,
            ..self
        }
    }
}
