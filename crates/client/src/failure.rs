//! The failure of a fetch.

use core::{fmt, time::Duration};
use std::io;

/// The reason why a fetch failed.
#[derive(Debug)]
pub enum Failure {
    /// The URL scheme is not supported, or not with the requested version of HTTP.
    Scheme(String),
    /// A redirect contains an invalid URL.
    Url(String),
    /// The host name cannot be resolved.
    Resolve(String),
    /// No connection can be established to any address of the host.
    Connect(String),
    /// Connecting took longer than this limit.
    ConnectTimeout(Duration),
    /// The fetch took longer than this limit.
    TimeLimit(Duration),
    /// The server closed the connection during the QUIC handshake, or violated QUIC.
    QuicHandshake(String),
    /// The TLS handshake failed.
    Tls(String),
    /// The server certificate is not trusted.
    Certificate(String),
    /// The server's public key does not match a pinned key.
    Pin(String),
    /// The request is invalid and cannot be sent.
    Request(String),
    /// The server or the connection failed before the response head was received.
    Response(String),
    /// The server closed the connection without a response.
    Empty,
    /// The response is not valid HTTP.
    Protocol(String),
    /// The connection failed after a part of the response.
    Partial {
        /// Why it failed.
        reason: String,
        /// Bytes of the body received.
        received: u64,
    },
    /// The status is 400 or more, and [`Fetch::fails_on_error_status`](crate::Fetch::fails_on_error_status) is set.
    Status(u16),
    /// There were more redirects than this limit.
    Redirects(u32),
    /// The compressed content is invalid, its coding is not supported, or its expansion exceeds the limit.
    Encoding(String),
    /// The listener failed to process the response.
    Write(io::Error),
    /// The upload cannot be read.
    Read,
    /// The upload cannot be sent again, because it was read from a stream.
    Rewind,
    /// The run was interrupted ([`Listener::on_tick`](crate::Listener::on_tick)).
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

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scheme(what)
            | Self::Url(what)
            | Self::Resolve(what)
            | Self::Connect(what)
            | Self::Request(what)
            | Self::Response(what)
            | Self::Pin(what)
            | Self::Encoding(what) => f.write_str(what),
            Self::ConnectTimeout(after) => {
                write!(f, "connection timed out after {} ms", after.as_millis())
            }
            Self::TimeLimit(after) => {
                write!(f, "transfer timed out after {} ms", after.as_millis())
            }
            Self::QuicHandshake(what) => write!(f, "QUIC handshake failed: {what}"),
            Self::Tls(what) => write!(f, "TLS handshake failed: {what}"),
            Self::Certificate(what) => {
                write!(f, "server certificate is not trusted: {what}")
            }
            Self::Empty => f.write_str("the server closed the connection without a response"),
            Self::Protocol(what) => write!(f, "invalid HTTP response: {what}"),
            Self::Partial { reason, received } => {
                write!(f, "{reason} ({received} bytes received)")
            }
            Self::Status(status) => write!(f, "the server returned status {status}"),
            Self::Redirects(max) => write!(f, "too many redirects (limit: {max})"),
            Self::Write(error) => write!(f, "cannot write the response: {error}"),
            Self::Read => f.write_str("cannot read the upload"),
            Self::Rewind => f.write_str(
                "cannot send the upload again: it was read from a stream (upload a file instead)",
            ),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl core::error::Error for Failure {}
