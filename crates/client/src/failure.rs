//! Why a fetch did not come to its end.

use core::{fmt, time::Duration};
use std::io;

/// Why a fetch did not come to its end.
#[derive(Debug)]
pub enum Failure {
    /// A scheme that is not spoken, or not with the version of HTTP that is asked for.
    Scheme(String),
    /// A redirect leads to what is no address.
    Url(String),
    /// The name has no address.
    Resolve(String),
    /// The name of the proxy has no address.
    ResolveProxy(String),
    /// The socket cannot be used, or no address of the host answered.
    Connect(String),
    /// The connection took too long to be made.
    ConnectTimeout(Duration),
    /// All of it took too long.
    TimeLimit(Duration),
    /// In so long, less moved than so many bytes a second.
    Slow(u64, Duration),
    /// The handshake failed.
    Tls(String),
    /// The server's certificate is not to be trusted.
    Certificate(String),
    /// The server's key is none of those that are pinned.
    Pin(String),
    /// The request cannot be sent.
    Request(String),
    /// The server, or the way to it, failed before there was any of the body.
    Response(String),
    /// The server closed the connection without a word.
    Empty,
    /// What the server answers is not HTTP.
    Protocol(String),
    /// The connection failed with part of the body there.
    Partial {
        /// Why.
        reason: String,
        /// Bytes that arrived.
        received: u64,
    },
    /// The status is 400 or more, and such are refused.
    Status(u16),
    /// The server does not send the part that was asked for.
    Range(String),
    /// The server leads from one address to the next, more often than it may.
    Redirects(u32),
    /// The body is larger than it may be.
    TooLarge(u64),
    /// What was received is not compressed as it says, or grows beyond all measure.
    Encoding(String),
    /// What was received cannot be kept.
    Write(io::Error),
    /// What is to be sent cannot be read.
    Read,
    /// What was sent cannot be sent again, as it was read from a stream.
    Rewind,
    /// Somebody wants no more of it.
    Interrupted,
}

impl Failure {
    /// The same, of another fetch.
    pub(crate) fn duplicate(&self) -> Self {
        match self {
            Self::Scheme(what) => Self::Scheme(what.clone()),
            Self::Resolve(what) => Self::Resolve(what.clone()),
            Self::ResolveProxy(what) => Self::ResolveProxy(what.clone()),
            Self::Connect(what) => Self::Connect(what.clone()),
            Self::ConnectTimeout(after) => Self::ConnectTimeout(*after),
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
            | Self::ResolveProxy(what)
            | Self::Connect(what)
            | Self::Request(what)
            | Self::Response(what)
            | Self::Range(what)
            | Self::Pin(what)
            | Self::Encoding(what) => f.write_str(what),
            Self::ConnectTimeout(after) => {
                write!(f, "no connection after {} ms", after.as_millis())
            }
            Self::TimeLimit(after) => write!(f, "not done after {} ms", after.as_millis()),
            Self::Slow(least, span) => write!(
                f,
                "slower than {least} bytes a second for {} ms",
                span.as_millis()
            ),
            Self::Tls(what) => write!(f, "the handshake failed: {what}"),
            Self::Certificate(what) => {
                write!(f, "the server's certificate is not trusted: {what}")
            }
            Self::Empty => f.write_str("the server closed the connection without an answer"),
            Self::Protocol(what) => write!(f, "the server's answer is not HTTP: {what}"),
            Self::Partial { reason, received } => {
                write!(f, "{reason}, with {received} bytes received")
            }
            Self::Status(status) => write!(f, "the server answered {status}"),
            Self::Redirects(max) => write!(f, "redirected more than {max} times"),
            Self::TooLarge(max) => write!(f, "the body is larger than {max} bytes"),
            Self::Write(error) => write!(f, "cannot write what was received: {error}"),
            Self::Read => f.write_str("cannot read what was to be sent"),
            Self::Rewind => {
                f.write_str("what was read from a stream cannot be sent a second time; send a file")
            }
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl core::error::Error for Failure {}
