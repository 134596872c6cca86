//! What is to be fetched, and what came of it.

use core::{fmt, time::Duration};
use std::{io, sync::Arc};

use lastbyte_http3::Fields;
use lastbyte_quic::{
    Time,
    stream::{Source, SourceError},
};

use crate::Url;

/// What is sent with a request. It can be read again, so that a request can be sent again.
pub type Upload = Arc<dyn Source + Sync>;

/// One request.
#[derive(Clone)]
pub struct Fetch {
    /// Of what.
    pub url: Url,
    /// The method.
    pub method: String,
    /// The fields, without those that follow from the rest.
    pub fields: Fields,
    /// What is sent with it; its length becomes the `content-length`.
    pub upload: Option<Upload>,
}

impl Fetch {
    /// A GET without any fields.
    #[must_use]
    pub fn get(url: Url) -> Self {
        Self {
            url,
            method: "GET".to_owned(),
            fields: Fields::new(),
            upload: None,
        }
    }

    /// Whether the server may be asked twice, if nobody knows whether it heard (RFC 9110 §9.2.2), and whether the request
    /// may be in 0-RTT packets (RFC 8470 §2).
    pub(crate) fn is_safe(&self) -> bool {
        matches!(&*self.method, "GET" | "HEAD" | "OPTIONS") && self.upload.is_none()
    }
}

impl fmt::Debug for Fetch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.url)
    }
}

/// An upload as the transport wants it.
pub(crate) struct SharedSource(pub(crate) Upload);

impl Source for SharedSource {
    fn len(&self) -> u64 {
        self.0.len()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), SourceError> {
        self.0.read_at(offset, buffer)
    }
}

/// When what happened to a fetch. What did not happen is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// When its turn came.
    pub begin: Option<Time>,
    /// When the connection that carried it was begun, if it was the first to need it.
    pub connect: Option<Time>,
    /// When the handshake of that connection was complete.
    pub connected: Option<Time>,
    /// When the request was sent.
    pub request: Option<Time>,
    /// When the head of the response was there.
    pub head: Option<Time>,
    /// When the last byte was there, or it failed.
    pub end: Option<Time>,
}

/// What came of a fetch.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The status of the final response, if there was one.
    pub status: Option<u16>,
    /// How many bytes of body arrived.
    pub received: u64,
    /// Which connection carried it, counted from 0.
    pub connection: Option<usize>,
    /// Whether the request went out before the handshake was complete, and the server took it so.
    pub is_early: bool,
    /// How often it was sent again.
    pub retries: u32,
    /// When what happened.
    pub timing: Timing,
    /// Why it did not come to its end.
    pub failure: Option<Failure>,
}

/// Why a fetch did not come to its end.
#[derive(Debug)]
pub enum Failure {
    /// The name has no address.
    Resolve(String),
    /// The socket cannot be used, or no address of the host answered.
    Connect(String),
    /// The connection took too long to be made.
    ConnectTimeout(Duration),
    /// All of it took too long.
    TimeLimit(Duration),
    /// The handshake failed.
    Tls(String),
    /// The server's certificate is not to be trusted.
    Certificate(String),
    /// The request cannot be sent.
    Request(String),
    /// The server, or the way to it, failed before there was any of the body.
    Response(String),
    /// The same with part of the body there.
    Partial {
        /// Why.
        reason: String,
        /// Bytes that arrived.
        received: u64,
    },
    /// What was received cannot be kept.
    Write(io::Error),
    /// What is to be sent cannot be read.
    Read,
    /// Somebody wants no more of it.
    Interrupted,
}

impl Failure {
    /// The same, of another fetch.
    pub(crate) fn again(&self) -> Self {
        match self {
            Self::Resolve(what) => Self::Resolve(what.clone()),
            Self::Connect(what) => Self::Connect(what.clone()),
            Self::ConnectTimeout(after) => Self::ConnectTimeout(*after),
            Self::Tls(what) => Self::Tls(what.clone()),
            Self::Certificate(what) => Self::Certificate(what.clone()),
            Self::Interrupted => Self::Interrupted,
            other => Self::Response(other.to_string()),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Resolve(what)
            | Self::Connect(what)
            | Self::Request(what)
            | Self::Response(what) => f.write_str(what),
            Self::ConnectTimeout(after) => {
                write!(f, "no connection after {} ms", after.as_millis())
            }
            Self::TimeLimit(after) => write!(f, "not done after {} ms", after.as_millis()),
            Self::Tls(what) => write!(f, "the handshake failed: {what}"),
            Self::Certificate(what) => {
                write!(f, "the server's certificate is not trusted: {what}")
            }
            Self::Partial { reason, received } => {
                write!(f, "{reason}, with {received} bytes received")
            }
            Self::Write(error) => write!(f, "cannot write what was received: {error}"),
            Self::Read => f.write_str("cannot read what was to be sent"),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for Failure {}
