//! Connections to the upstream.
//!
//! Opens connections (in plaintext HTTP/1.1, or 2 if the URL says so; over TLS the version that ALPN selects, RFC
//! 7301), keeps idle ones, and sends requests again that [may be repeated](super::repeat).
//!
//! # What ends an entry
//!
//! | entry | is removed when |
//! |---|---|
//! | idle HTTP/1.1 connection | a request takes it; or, at the next request, it is closed or was idle for [`Limits::idle`] |
//! | HTTP/1.1 connection of a request | its response ended, and it goes back to the idle ones, if there are fewer than [`Limits::kept`]. In all other cases (the request failed, was reset by either side or was refused, a write failed, the client left, the response is truncated, the proxy stops) it is dropped and closed |
//! | HTTP/2 connection | a request on it fails, as after GOAWAY; it was unused for [`Limits::idle`]; a response ends, and there are [`Limits::kept`] other unused ones; or, at the next request, it is closed. Its other streams go on, and it closes after the last of them. hyper closes it when the upstream does not answer a PING |
//! | stream of an HTTP/2 connection | both directions have ended: the [`Lease`] of the response is dropped, at its end and in each case above, and hyper dropped the body of the request, after its end, its failure, or a reset by either side |
//! | permit to connect | connecting succeeded, failed or took too long. It does not depend on the request |
//!
//! # Decisions
//!
//! - *A connection being opened belongs to no request*: if a request is cancelled meanwhile, the next one uses it, so
//!   that clients that cancel requests open no more connections than others.
//! - *Few are opened at a time*: [`CONNECTS_MAX`], and one where HTTP/2 is possible, since that one can serve all
//!   waiting requests.
//! - *Streams of HTTP/2 cannot block each other*: the window of a connection is as large as those of all its streams
//!   together, and beyond [`Limits::streams`] there is another connection. A client that does not read its response
//!   fills only the window of its own stream.

use std::{
    error::Error as _,
    future::poll_fn,
    io,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use hyper::{
    body::{Body as _, Incoming},
    client::conn::{TrySendError, http1, http2},
};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::pki_types::ServerName;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    sync::{OwnedSemaphorePermit, Semaphore, oneshot},
    time,
    time::Instant,
};
use tokio_rustls::TlsConnector;
use tokio_util::io::InspectReader;

use super::{
    Limits,
    body::{RequestBody, Upload},
    counts::Counts,
    repeat::{Attempts, Fate, Wanted},
    upstream::Upstream,
};

type Request = http::Request<RequestBody>;
type Response = http::Response<Incoming>;

/// Maximum number of connections being opened at a time.
const CONNECTS_MAX: usize = 32;
/// hyper's buffer for an HTTP/1.1 response and its header, in bytes, and the limit on an HTTP/2 header. A stalled
/// response holds about twice that: what was read, and the buffer from which the waiting piece was cut.
const BUFFER: usize = 16 << 10;
/// The most fields of a response header.
pub(super) const FIELDS_MAX: usize = 256;
/// Maximum bytes of an HTTP/2 response waiting for its client.
const STREAM_WINDOW: u32 = 128 << 10;
/// The ALPN identifier of HTTP/2 (RFC 9113 §3.2).
const HTTP2: &[u8] = b"h2";

/// Why there is no response, with details.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SendFailure {
    /// Connecting failed.
    Refused(String),
    /// TLS failed: wrong certificate, or no TLS.
    Tls(String),
    /// Connecting took too long.
    Late,
    /// The connection was closed, or the response is not valid HTTP.
    Broken(String),
}

/// A connection, before HTTP.
pub(super) trait Transport: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Transport for T {}

/// Opens connections in place of TCP.
type Connect = Box<dyn Fn() -> io::Result<Box<dyn Transport>> + Send + Sync>;

/// All connections to one server.
pub(super) struct Pool {
    upstream: Upstream,
    /// `None`: by TCP.
    connect: Option<Connect>,
    tls: Option<Arc<rustls::ClientConfig>>,
    limits: Limits,
    idle: Arc<Mutex<IdleConnections>>,
    connecting: Arc<Semaphore>,
    /// Whether the server may support HTTP/2, so that one connection is opened at a time.
    may_be_http2: AtomicBool,
    pub(super) counts: Arc<Counts>,
}

#[derive(Default)]
struct IdleConnections {
    /// Idle connections, with the time since; the most recently used is last.
    http1: Vec<(Sequential, Instant)>,
    /// With streams that are in use or free.
    http2: Vec<Multiplexed>,
}

/// A connection of HTTP/1.1.
struct Sequential {
    sender: http1::SendRequest<RequestBody>,
    /// Whether anything was received since the last request was sent.
    has_received: Arc<AtomicBool>,
}

/// A connection of HTTP/2.
#[derive(Clone)]
struct Multiplexed {
    sender: http2::SendRequest<RequestBody>,
    /// One permit for each unused stream.
    free: Arc<Semaphore>,
    /// The number of its streams.
    streams: usize,
    /// The number of requests so far.
    uses: Arc<AtomicUsize>,
    /// The server's limit on streams (`SETTINGS_MAX_CONCURRENT_STREAMS`).
    allowed: Arc<AtomicUsize>,
    opened: Instant,
}

/// A stream of an HTTP/2 connection: in use until both directions are finished.
pub(super) type Stream = Arc<OwnedSemaphorePermit>;

enum Connection {
    Http1(Sequential),
    Http2(Multiplexed, Stream),
}

/// The connection of a response; to be returned when all of it has arrived.
pub(super) struct Lease {
    connection: Option<Sequential>,
    idle: Arc<Mutex<IdleConnections>>,
    idle_max: usize,
    idle_time: Duration,
    stream: Option<Stream>,
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.stream.take().is_some() {
            lock(&self.idle).keep_unused(self.idle_max);
        }
    }
}

impl Lease {
    pub(super) fn return_to_pool(mut self) {
        let Some(mut connection) = self.connection.take() else {
            return;
        };
        let (idle, idle_max, idle_time) = (Arc::clone(&self.idle), self.idle_max, self.idle_time);
        tokio::spawn(async move {
            // This may be the last response on this connection, or the server may read no more of the request.
            let ready = time::timeout(idle_time, connection.sender.ready()).await;
            if matches!(ready, Ok(Ok(()))) {
                lock(&idle).keep(connection, idle_max);
            }
        });
    }
}

fn lock(idle: &Mutex<IdleConnections>) -> MutexGuard<'_, IdleConnections> {
    idle.lock().unwrap_or_else(PoisonError::into_inner)
}

impl IdleConnections {
    fn keep(&mut self, connection: Sequential, idle_max: usize) {
        if self.http1.len() < idle_max {
            self.http1.push((connection, Instant::now()));
        }
    }

    /// Drops unused connections of HTTP/2 beyond this number.
    fn keep_unused(&mut self, idle_max: usize) {
        let mut unused = 0;
        self.http2.retain(|connection| {
            let is_unused = connection.is_unused();
            unused += usize::from(is_unused);
            !is_unused || unused <= idle_max
        });
    }

    /// Drops a connection of HTTP/2 if it is unused, as before. Returns the number of its requests.
    fn drop_unused(&mut self, uses: &Arc<AtomicUsize>, before: usize) -> usize {
        let count = uses.load(Ordering::Relaxed);
        self.http2.retain(|connection| {
            let is_it = Arc::ptr_eq(&connection.uses, uses);
            !(is_it && count == before && connection.is_unused())
        });
        count
    }
}

impl Pool {
    pub(super) fn new(
        upstream: Upstream,
        tls: Option<Arc<rustls::ClientConfig>>,
        limits: Limits,
    ) -> Arc<Self> {
        Self::with(upstream, tls, limits, None)
    }

    /// With connections that are opened in another way than by TCP.
    pub(super) fn over(upstream: Upstream, limits: Limits, connect: Connect) -> Arc<Self> {
        Self::with(upstream, None, limits, Some(connect))
    }

    fn with(
        upstream: Upstream,
        tls: Option<Arc<rustls::ClientConfig>>,
        limits: Limits,
        connect: Option<Connect>,
    ) -> Arc<Self> {
        let offers_http2 = |tls: &Arc<rustls::ClientConfig>| {
            upstream.is_secure && tls.alpn_protocols.iter().any(|name| name == HTTP2)
        };
        let may_be_http2 = upstream.is_h2c || tls.as_ref().is_some_and(offers_http2);
        Arc::new(Self {
            upstream,
            connect,
            tls,
            limits,
            idle: Arc::default(),
            connecting: Arc::new(Semaphore::new(if may_be_http2 { 1 } else { CONNECTS_MAX })),
            may_be_http2: AtomicBool::new(may_be_http2),
            counts: Arc::default(),
        })
    }

    /// The number of connections that are kept for requests.
    pub(super) fn kept(&self) -> usize {
        let idle = lock(&self.idle);
        idle.http1.len() + idle.http2.len()
    }

    /// Whether the server may support HTTP/2.
    pub(super) fn may_be_http2(&self) -> bool {
        self.may_be_http2.load(Ordering::Relaxed)
    }

    /// Sends a request, again where that is permitted, and returns the header of its response.
    pub(super) async fn send(
        self: &Arc<Self>,
        head: http::request::Parts,
        upload: &Arc<Upload>,
    ) -> Result<(Response, Lease), SendFailure> {
        let mut attempts = Attempts::new(&head.method);
        loop {
            let got = self.get(attempts.wanted());
            let (connection, is_new) = match time::timeout(self.limits.connect, got).await {
                Ok(got) => got?,
                Err(_) => return Err(SendFailure::Late),
            };
            let request = Request::from_parts(head.clone(), upload.attempt());
            let sent = Instant::now();
            match self.send_over(connection, is_new, request).await {
                Ok(answered) => {
                    upload.release();
                    return Ok(answered);
                }
                Err((fate, _)) if attempts.repeats(fate, sent) && upload.retire() => {
                    self.counts.on_retry();
                }
                Err((_, why)) => return Err(SendFailure::Broken(why)),
            }
        }
    }

    /// A connection, and whether it was opened for this request.
    async fn get(self: &Arc<Self>, wanted: Wanted) -> Result<(Connection, bool), SendFailure> {
        if let Some(idle) = self.take(wanted) {
            return Ok((idle, false));
        }
        let permit = Arc::clone(&self.connecting).acquire_owned().await;
        if let Some(idle) = self.take(wanted) {
            return Ok((idle, false));
        }
        let (made, waits) = oneshot::channel();
        let pool = Arc::clone(self);
        tokio::spawn(async move {
            let result = pool.connect().await;
            // Before others look for it.
            if let Ok(Connection::Http2(connection, _)) = &result
                && wanted != Wanted::Own
            {
                lock(&pool.idle).http2.push(connection.clone());
            }
            drop(permit);
            if let Err(Ok(Connection::Http1(unused))) = made.send(result) {
                lock(&pool.idle).keep(unused, pool.limits.kept);
            }
        });
        let gone = || SendFailure::Refused("the proxy is shutting down".into());
        waits.await.map_err(|_| gone())?.map(|made| (made, true))
    }

    async fn send_over(
        &self,
        connection: Connection,
        is_new: bool,
        mut request: Request,
    ) -> Result<(Response, Lease), (Fate, String)> {
        let (response, connection, stream) = match connection {
            Connection::Http1(mut connection) => {
                if request.body().size_hint().exact().is_none() {
                    // Without it, hyper sends no body of unknown length for GET and HEAD, and reports no error.
                    let chunked = http::HeaderValue::from_static("chunked");
                    let fields = request.headers_mut();
                    fields.insert(http::header::TRANSFER_ENCODING, chunked);
                }
                connection.has_received.store(false, Ordering::Relaxed);
                let sent = connection.sender.try_send_request(request).await;
                let response = sent.map_err(|error| {
                    let has_received = connection.has_received.load(Ordering::Relaxed);
                    let fate = Fate::over_http1(!is_new, !has_received);
                    // A new connection that closes at once is a failure of the upstream.
                    failure(error, |_| fate, !is_new)
                })?;
                (response, Some(connection), None)
            }
            Connection::Http2(mut connection, stream) => {
                let mut request = self.for_http2(request);
                request.body_mut().hold(Arc::clone(&stream));
                let sent = connection.sender.try_send_request(request).await;
                let response = sent.map_err(|error| {
                    // It may be about to close: no other request uses it.
                    lock(&self.idle)
                        .http2
                        .retain(|idle| !Arc::ptr_eq(&idle.free, &connection.free));
                    failure(error, |error| Fate::over_http2(error, !is_new), true)
                })?;
                (response, None, Some(stream))
            }
        };
        let lease = Lease {
            connection,
            stream,
            idle: Arc::clone(&self.idle),
            idle_max: self.limits.kept,
            idle_time: self.limits.idle,
        };
        Ok((response, lease))
    }

    /// HTTP/2 has the host in the target (RFC 9113 §8.3.1).
    fn for_http2(&self, request: Request) -> Request {
        let (mut head, body) = request.into_parts();
        let host = head.headers.remove(http::header::HOST);
        let authority = host.and_then(|host| host.to_str().ok().map(str::to_owned));
        let mut parts = head.uri.into_parts();
        // The scheme of the upstream; `x-forwarded-proto` has the client's.
        parts.scheme = Some(if self.upstream.is_secure {
            http::uri::Scheme::HTTPS
        } else {
            http::uri::Scheme::HTTP
        });
        parts.authority = authority
            .and_then(|authority| authority.parse().ok())
            .or_else(|| self.upstream.host.parse().ok());
        head.uri = http::Uri::from_parts(parts).unwrap_or_default();
        // This hop forwards trailers (RFC 9110 §10.1.4); gRPC requires the field.
        head.headers.remove(http::header::CONNECTION);
        let trailers = http::HeaderValue::from_static("trailers");
        head.headers.insert(http::header::TE, trailers);
        http::Request::from_parts(head, body)
    }

    /// An existing one, unless a new one is needed.
    fn take(&self, wanted: Wanted) -> Option<Connection> {
        let is_wanted = |connection: &Multiplexed| match wanted {
            Wanted::Any => true,
            Wanted::Since(time) => connection.opened > time,
            Wanted::Own => false,
        };
        let mut idle = lock(&self.idle);
        idle.http2.retain(|idle| !idle.sender.is_closed());
        for connection in idle.http2.iter().filter(|it| is_wanted(it)) {
            if let Some(stream) = connection.stream() {
                return Some(Connection::Http2(connection.clone(), stream));
            }
        }
        if wanted != Wanted::Any {
            return None;
        }
        let now = Instant::now();
        let limit = self.limits.idle;
        idle.http1
            .retain(|(idle, since)| idle.sender.is_ready() && now - *since < limit);
        idle.http1.pop().map(|(idle, _)| Connection::Http1(idle))
    }

    async fn connect(&self) -> Result<Connection, SendFailure> {
        let began = Instant::now();
        match time::timeout(self.limits.connect, self.try_connect()).await {
            Err(_) => Err(SendFailure::Late),
            Ok(Err(error)) => {
                let why = error.to_string();
                Err(
                    if let Some(found) = error.get_ref()
                        && found.is::<rustls::Error>()
                    {
                        SendFailure::Tls(why)
                    } else {
                        SendFailure::Refused(why)
                    },
                )
            }
            Ok(Ok(connection)) => {
                self.counts.on_connected(began.elapsed());
                Ok(connection)
            }
        }
    }

    async fn try_connect(&self) -> io::Result<Connection> {
        let Upstream { host, port, .. } = &self.upstream;
        if let Some(connect) = &self.connect {
            return self.speak(connect()?).await;
        }
        let stream = TcpStream::connect((host.as_str(), *port)).await?;
        stream.set_nodelay(true)?;
        let Some(tls) = self.tls.as_ref().filter(|_| self.upstream.is_secure) else {
            return self.speak(stream).await;
        };
        let name = ServerName::try_from(host.clone()).map_err(io::Error::other)?;
        let stream = TlsConnector::from(Arc::clone(tls))
            .connect(name, stream)
            .await?;
        if stream.get_ref().1.alpn_protocol() == Some(HTTP2) {
            self.speak_http2(stream).await
        } else {
            self.speak_http1(stream).await
        }
    }

    /// Without TLS.
    async fn speak<S>(&self, stream: S) -> io::Result<Connection>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        if self.upstream.is_h2c {
            self.speak_http2(stream).await
        } else {
            self.speak_http1(stream).await
        }
    }

    async fn speak_http2<S>(&self, stream: S) -> io::Result<Connection>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let streams = self.limits.streams.max(1);
        let window = STREAM_WINDOW.saturating_mul(streams);
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(window.min(i32::MAX.unsigned_abs()))
            .max_send_buf_size(BUFFER)
            .max_header_list_size(BUFFER as u32)
            // Detects a server that is gone while requests wait for it.
            .keep_alive_interval(self.limits.idle / 2)
            .keep_alive_timeout(self.limits.connect)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(io::Error::other)?;
        let allowed = Arc::new(AtomicUsize::new(connection.current_max_send_streams()));
        let settings = Arc::clone(&allowed);
        let mut connection = Box::pin(connection);
        let mut running = poll_fn(move |context| {
            let polled = connection.as_mut().poll(context);
            let allowed = connection.current_max_send_streams();
            settings.store(allowed, Ordering::Relaxed);
            polled
        });
        let uses = Arc::<AtomicUsize>::default();
        let (counted, idle, limit) = (
            Arc::clone(&uses),
            Arc::downgrade(&self.idle),
            self.limits.idle,
        );
        tokio::spawn(async move {
            let mut before = 0;
            while time::timeout(limit, &mut running).await.is_err() {
                if let Some(idle) = idle.upgrade() {
                    before = lock(&idle).drop_unused(&counted, before);
                }
            }
        });
        let connection = Multiplexed {
            sender,
            free: Arc::new(Semaphore::new(streams as usize)),
            streams: streams as usize,
            uses,
            allowed,
            opened: Instant::now(),
        };
        let closed = || io::Error::from(io::ErrorKind::ConnectionAborted);
        let stream = connection.stream().ok_or_else(closed)?;
        Ok(Connection::Http2(connection, stream))
    }

    async fn speak_http1<S>(&self, stream: S) -> io::Result<Connection>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let has_received = Arc::new(AtomicBool::new(false));
        let received = Arc::clone(&has_received);
        let stream = InspectReader::new(stream, move |bytes: &[u8]| {
            if !bytes.is_empty() {
                received.store(true, Ordering::Relaxed);
            }
        });
        let (sender, connection) = http1::Builder::new()
            .max_buf_size(BUFFER)
            .max_headers(FIELDS_MAX)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(io::Error::other)?;
        tokio::spawn(connection);
        if self.may_be_http2.swap(false, Ordering::Relaxed) {
            // Each request needs a connection of its own after all.
            self.connecting.add_permits(CONNECTS_MAX - 1);
        }
        Ok(Connection::Http1(Sequential {
            sender,
            has_received,
        }))
    }
}

/// Why an attempt failed, and what is known about it: `sent` if it was sent.
fn failure(
    mut error: TrySendError<Request>,
    sent: impl FnOnce(&hyper::Error) -> Fate,
    is_shared: bool,
) -> (Fate, String) {
    let is_unsent = error.take_message().is_some();
    let error = error.into_error();
    let fate = match (is_unsent, is_shared) {
        (true, true) => Fate::Unsent,
        (true, false) => Fate::Unknown,
        (false, _) => sent(&error),
    };
    (fate, chain(&error))
}

/// An error with its causes.
fn chain(error: &hyper::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let more = cause.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        source = cause.source();
    }
    text
}

impl Multiplexed {
    /// An unused stream, if the server permits that many.
    fn stream(&self) -> Option<Stream> {
        let used = self.streams.saturating_sub(self.free.available_permits());
        if used >= self.allowed.load(Ordering::Relaxed) {
            return None;
        }
        let permit = Arc::clone(&self.free).try_acquire_owned().ok()?;
        self.uses.fetch_add(1, Ordering::Relaxed);
        Some(Arc::new(permit))
    }

    /// Whether no stream is in use.
    fn is_unused(&self) -> bool {
        self.free.available_permits() == self.streams
    }
}
