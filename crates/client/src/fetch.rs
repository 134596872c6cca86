//! What is to be fetched, and what came of it.

use core::fmt;
use std::{
    io::Read,
    sync::{Arc, Mutex, PoisonError},
};

use lastbyte_http3::Fields;
use lastbyte_quic::{
    Time,
    stream::{Source, SourceError},
};

use crate::{failure::Failure, head::Version, retry::Retry, url::Url};

/// What is sent with a request.
#[derive(Clone)]
pub enum Upload {
    /// It can be read again, so that a request can be sent again. Its length becomes the `content-length`.
    Source(Arc<dyn Source + Sync>),
    /// Of unknown length, read once, in a thread of its own.
    Stream(Stream),
}

/// A stream that can be read once.
#[derive(Clone)]
pub struct Stream(Arc<Mutex<Option<Box<dyn Read + Send>>>>);

impl Upload {
    /// Bytes, or whatever else can be read again.
    pub fn source(source: impl Source + Sync + 'static) -> Self {
        Self::Source(Arc::new(source))
    }

    /// Something that is read as it is sent.
    pub fn stream(reader: impl Read + Send + 'static) -> Self {
        Self::Stream(Stream(Arc::new(Mutex::new(Some(Box::new(reader))))))
    }

    /// How many bytes there are, if that is known.
    #[must_use]
    pub fn len(&self) -> Option<u64> {
        match self {
            Self::Source(source) => Some(source.len()),
            Self::Stream(_) => None,
        }
    }

    /// Whether it is known that there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == Some(0)
    }
}

impl Stream {
    /// What is to be read; `None` from the second time on.
    pub(crate) fn take(&self) -> Option<Box<dyn Read + Send>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// One request, and what is to be done with its response.
#[derive(Clone)]
pub struct Fetch {
    /// Of what. Its credentials become an `authorization` (RFC 7617), unless there is one in the fields.
    pub url: Url,
    /// The method.
    pub method: String,
    /// Whether it was asked for by name, and not chosen for the rest: then it stays as it is after redirects.
    pub is_method_fixed: bool,
    /// The fields, without those that follow from the rest.
    pub fields: Fields,
    /// What is sent with it.
    pub upload: Option<Upload>,
    /// Whether redirects are followed, and how. Default: no.
    pub follow: Option<Follow>,
    /// Whether the cookies of the memory are sent, if it keeps any, before those in the fields. Default: yes.
    pub sends_cookies: bool,
    /// Whether compressed content is asked for and decompressed (RFC 9110 §8.4). Default: no.
    pub is_decoded: bool,
    /// Whether a status of 400 or more is a failure at once, and its body not kept. Default: no.
    pub fails_on_error_status: bool,
    /// Whether and when it is begun again, if it came to nothing. Default: no.
    pub retry: Option<Retry>,
    /// From which byte on it is to come, as the rest is there already (RFC 9110 §14). Default: all.
    pub resume_from: Option<u64>,
    /// How large the body may be, in bytes. Default: without end.
    pub size_max: Option<u64>,
}

impl Fetch {
    /// A GET without any fields.
    #[must_use]
    pub fn get(url: Url) -> Self {
        Self {
            url,
            method: "GET".to_owned(),
            is_method_fixed: false,
            fields: Fields::new(),
            upload: None,
            follow: None,
            sends_cookies: true,
            is_decoded: false,
            fails_on_error_status: false,
            retry: None,
            resume_from: None,
            size_max: None,
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

impl fmt::Debug for Upload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.len() {
            Some(len) => write!(f, "Source({len} bytes)"),
            None => f.write_str("Stream"),
        }
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stream")
    }
}

/// How redirects are followed (RFC 9110 §15.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Follow {
    /// The most redirects that are followed; `None` for no limit. Default: 50.
    pub max: Option<u32>,
    /// Whether credentials are sent to other hosts too. Default: no.
    pub shares_credentials: bool,
    /// Whether a POST stays a POST after 301. Default: no, as in browsers.
    pub keeps_post_301: bool,
    /// Whether a POST stays a POST after 302. Default: no.
    pub keeps_post_302: bool,
    /// Whether a POST stays a POST after 303. Default: no.
    pub keeps_post_303: bool,
}

impl Default for Follow {
    fn default() -> Self {
        Self {
            max: Some(50),
            shares_credentials: false,
            keeps_post_301: false,
            keeps_post_302: false,
            keeps_post_303: false,
        }
    }
}

/// An upload as the transport wants it.
pub(crate) struct SharedSource(pub(crate) Arc<dyn Source + Sync>);

impl Source for SharedSource {
    fn len(&self) -> u64 {
        self.0.len()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), SourceError> {
        self.0.read_at(offset, buffer)
    }
}

/// When what happened to a fetch; of several requests, as with redirects, to the last. What did not happen is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// When its turn came.
    pub start: Option<Time>,
    /// When the last redirect was over, and the request that counts began.
    pub redirected: Option<Time>,
    /// When the name began to be resolved, if it was the first to need it.
    pub lookup: Option<Time>,
    /// When it was resolved.
    pub resolved: Option<Time>,
    /// When the connection that carried it was begun, if it was the first to need it.
    pub connect: Option<Time>,
    /// When TCP was connected, before TLS. Of QUIC there is no such moment.
    pub transport: Option<Time>,
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
    /// By which version of HTTP it came.
    pub version: Option<Version>,
    /// How many bytes of body arrived, as they came.
    pub received: u64,
    /// How many bytes of body were sent.
    pub sent: u64,
    /// Which connection carried it, counted from 0.
    pub connection: Option<usize>,
    /// Whether the request went out before the handshake was complete, and the server took it so.
    pub is_early: bool,
    /// How often it was sent again.
    pub retries: u32,
    /// How many redirects were followed.
    pub redirects: u32,
    /// Where they led to, if there were any.
    pub url: Option<Url>,
    /// When what happened.
    pub timing: Timing,
    /// Why it did not come to its end.
    pub failure: Option<Failure>,
}
