//! A fetch (the request and how to process its response) and its outcome.

use core::fmt;
use std::{
    io::Read,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use lastbyte_http3::Fields;
use lastbyte_quic::{
    Time,
    stream::{Source, SourceError},
};

use crate::{failure::Failure, head::Version, url::Url};

/// The body of a request.
#[derive(Clone)]
pub enum Upload {
    /// A source of known length that can be read repeatedly, so that the request can be sent again. Its length becomes the
    /// `content-length`.
    Source(Arc<dyn Source + Sync>),
    /// A stream of unknown length. It is read once, in a separate thread.
    Stream(Stream),
}

/// A stream that can be read once.
#[derive(Clone)]
pub struct Stream(Arc<Mutex<Option<Box<dyn Read + Send>>>>);

impl Upload {
    /// An upload from bytes, or any other source that can be read repeatedly.
    pub fn source(source: impl Source + Sync + 'static) -> Self {
        Self::Source(Arc::new(source))
    }

    /// An upload that is read while it is sent.
    pub fn stream(reader: impl Read + Send + 'static) -> Self {
        Self::Stream(Stream(Arc::new(Mutex::new(Some(Box::new(reader))))))
    }

    /// The length in bytes, if known.
    pub fn len(&self) -> Option<u64> {
        match self {
            Self::Source(source) => Some(source.len()),
            Self::Stream(_) => None,
        }
    }

    /// Whether the upload is known to be empty.
    pub fn is_empty(&self) -> bool {
        self.len() == Some(0)
    }
}

impl Stream {
    /// Takes the reader; `None` if it has been taken before.
    pub(crate) fn take(&self) -> Option<Box<dyn Read + Send>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// One request, and how its response is processed.
#[derive(Clone)]
pub struct Fetch {
    /// The URL. Its credentials become an `authorization` field (RFC 7617), unless `fields` contains one.
    pub url: Url,
    /// The method.
    pub method: String,
    /// Whether the method was chosen explicitly, rather than derived from the upload. If so, redirects do not change it.
    pub is_method_fixed: bool,
    /// The header fields, except those derived from other settings.
    pub fields: Fields,
    /// Names, in lower case, of fields derived from other settings that are not sent: `accept-encoding`, `authorization` or
    /// `expect`. Default: none.
    pub omitted: Vec<String>,
    /// The request body.
    pub upload: Option<Upload>,
    /// Whether redirects are followed (RFC 9110 §15.4), up to 50. Default: no.
    pub follows_redirects: bool,
    /// Whether to request compressed content and decompress it (RFC 9110 §8.4). Default: no.
    pub is_decoded: bool,
    /// Whether a status of 400 or more is a failure, and its body is discarded. Default: no.
    pub fails_on_error_status: bool,
}

impl Fetch {
    /// A GET request without any fields.
    #[must_use]
    pub fn get(url: Url) -> Self {
        Self {
            url,
            method: "GET".to_owned(),
            is_method_fixed: false,
            fields: Fields::new(),
            omitted: Vec::new(),
            upload: None,
            follows_redirects: false,
            is_decoded: false,
            fails_on_error_status: false,
        }
    }

    /// Whether the request may be sent again when it is unknown whether the server processed it (RFC 9110 §9.2.2), and
    /// whether it may be sent in 0-RTT packets (RFC 8470 §2).
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

/// An upload as a [`Source`] of the transport.
pub(crate) struct SharedSource {
    source: Arc<dyn Source + Sync>,
    /// Bytes that were sent: the transport reads them when it does.
    sent: Arc<AtomicU64>,
}

impl SharedSource {
    pub(crate) const fn new(source: Arc<dyn Source + Sync>, sent: Arc<AtomicU64>) -> Self {
        Self { source, sent }
    }
}

impl Source for SharedSource {
    fn len(&self) -> u64 {
        self.source.len()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), SourceError> {
        self.source.read_at(offset, buffer)?;
        let end = offset.saturating_add(buffer.len() as u64);
        self.sent.fetch_max(end, Ordering::Relaxed);
        Ok(())
    }
}

/// The times of a fetch. After redirects they refer to the last request. An event that did not occur is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// When the fetch started.
    pub start: Option<Time>,
    /// When the response to the last redirected request ended.
    pub redirected: Option<Time>,
    /// When name resolution started, if this fetch was the first to need it.
    pub lookup: Option<Time>,
    /// When name resolution ended.
    pub resolved: Option<Time>,
    /// When the first connection attempt started, if this was the first fetch on the connection.
    pub connect: Option<Time>,
    /// When the TCP connection was established, before TLS. Always `None` for QUIC.
    pub transport: Option<Time>,
    /// When the handshake was complete.
    pub connected: Option<Time>,
    /// When the request was sent.
    pub request: Option<Time>,
    /// When the head of the final response was received.
    pub head: Option<Time>,
    /// When the last byte was received, or the fetch failed.
    pub end: Option<Time>,
}

/// The result of a fetch.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The status of the final response, if one was received.
    pub status: Option<u16>,
    /// The HTTP version of the response.
    pub version: Option<Version>,
    /// Bytes of the response body received, before decompression.
    pub received: u64,
    /// Bytes of the request body sent.
    pub sent: u64,
    /// The number of the connection, counted from 0.
    pub connection: Option<usize>,
    /// Whether the request was sent in 0-RTT and the server accepted it.
    pub is_early: bool,
    /// Number of retries of the request.
    pub retries: u32,
    /// The number of redirects followed.
    pub redirects: u32,
    /// The URL after redirects; `None` if there were none.
    pub url: Option<Url>,
    /// The times of its events.
    pub timing: Timing,
    /// Why the fetch failed; `None` if it succeeded.
    pub failure: Option<Failure>,
}
