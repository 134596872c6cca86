//! The failure of a fetch.

use core::time::Duration;
use std::io;

/// The reason why a fetch failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The URL scheme is not supported, or not with the requested version of HTTP.
    #[error("{0}")]
    Scheme(String),
    /// A redirect contains an invalid URL.
    #[error("{0}")]
    Url(String),
    /// The host name cannot be resolved.
    #[error("{0}")]
    Resolve(String),
    /// No connection can be established to any address of the host.
    #[error("{0}")]
    Connect(String),
    /// Connecting took longer than this limit.
    #[error("connection timed out after {} ms", .0.as_millis())]
    ConnectTimeout(Duration),
    /// The fetch took longer than this limit.
    #[error("transfer timed out after {} ms", .0.as_millis())]
    TimeLimit(Duration),
    /// The server closed the connection during the QUIC handshake, or violated QUIC.
    #[error("QUIC handshake failed: {0}")]
    QuicHandshake(String),
    /// The TLS handshake failed.
    #[error("TLS handshake failed: {0}")]
    Tls(String),
    /// The server certificate is not trusted.
    #[error("server certificate is not trusted: {0}")]
    Certificate(String),
    /// The server's public key does not match a pinned key.
    #[error("{0}")]
    Pin(String),
    /// The request is invalid and cannot be sent.
    #[error("{0}")]
    Request(String),
    /// The server or the connection failed before the response head was received.
    #[error("{0}")]
    Response(String),
    /// The server closed the connection without a response.
    #[error("the server closed the connection without a response")]
    Empty,
    /// The response is not valid HTTP.
    #[error("invalid HTTP response: {0}")]
    Protocol(String),
    /// The connection failed after a part of the response.
    #[error("{reason} ({received} bytes received)")]
    Partial {
        /// Why it failed.
        reason: String,
        /// Bytes of the body received.
        received: u64,
    },
    /// The status is 400 or more, and [`Fetch::fails_on_error_status`](crate::Fetch::fails_on_error_status) is set.
    #[error("the server returned status {0}")]
    Status(u16),
    /// There were more redirects than this limit.
    #[error("too many redirects (limit: {0})")]
    Redirects(u32),
    /// The compressed content is invalid, its coding is not supported, or its expansion exceeds the limit.
    #[error("{0}")]
    Encoding(String),
    /// The listener failed to process the response.
    #[error("cannot write the response: {0}")]
    Write(io::Error),
    /// The upload cannot be read.
    #[error("cannot read the upload")]
    Read,
    /// The upload cannot be sent again, because it was read from a stream.
    #[error("cannot send the upload again: it was read from a stream (upload a file instead)")]
    Rewind,
    /// The run was interrupted ([`Listener::on_tick`](crate::Listener::on_tick)).
    #[error("interrupted")]
    Interrupted,
}

impl Failure {
    /// The same failure for another fetch. I/O errors cannot be cloned and become text.
    pub(crate) fn duplicate(&self) -> Self {
        match self {
            Self::Scheme(what) => Self::Scheme(what.clone()),
            Self::Resolve(what) => Self::Resolve(what.clone()),
            Self::Connect(what) => Self::Connect(what.clone()),
            Self::ConnectTimeout(after) => Self::ConnectTimeout(*after),
            Self::QuicHandshake(what) => Self::QuicHandshake(what.clone()),
            Self::Tls(what) => Self::Tls(what.clone()),
            Self::Certificate(what) => Self::Certificate(what.clone()),
            Self::Pin(what) => Self::Pin(what.clone()),
            Self::Protocol(what) => Self::Protocol(what.clone()),
            Self::Empty => Self::Empty,
            Self::Interrupted => Self::Interrupted,
            other => Self::Response(other.to_string()),
        }
    }
}
