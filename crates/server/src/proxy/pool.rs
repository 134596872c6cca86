//! Connections of a thread to a server of the upstream.
//!
//! Opens connections (in plaintext HTTP/1.1, or 2 if the URL says so; over TLS the version that ALPN selects, RFC
//! 7301), keeps idle ones, and sends requests again that [may be repeated](super::repeat).
//!
//! # What ends an entry
//!
//! | entry | is removed when |
//! |---|---|
//! | idle HTTP/1.1 connection | a request takes it; it was idle for [`Limits::idle`], or, beyond [`Limits::kept`], for [`SURPLUS_IDLE`], plus at most as long until the [sweep](Pool::keep); or it is closed, and its turn comes |
//! | HTTP/1.1 connection of a request | its response ended, and it goes back to the idle ones, if those of all threads and servers are not half as many as [`Limits::requests`]. In all other cases (the request failed, was reset by either side or was refused, a write failed, the client left, the response is truncated, the proxy stops) it is dropped, and closed within a second, whatever the upstream takes |
//! | HTTP/2 connection | a request on it fails, as after GOAWAY; it was unused for [`Limits::idle`]; a response ends, and there are [`Limits::kept`] other unused ones; or, at the next request, it is closed. Its other streams go on, and it closes after the last of them. hyper closes it when the upstream does not answer a PING while there are streams; or it takes nothing of what is written for twice [`Limits::stall`] |
//! | stream of an HTTP/2 connection | both directions have ended: the [`Lease`] of the response is dropped, at its end and in each case above, and hyper dropped the body of the request, after its end, its failure, or a reset by either side |
//! | connection of a [tunnel](super::tunnel) | the tunnel ends, or the response that opens none; it is never an idle one |
//! | permit to connect | connecting succeeded, failed or took too long. It does not depend on the request |
//!
//! # Decisions
//!
//! - *As many connections are kept as were needed in the last seconds*: the one used last is used next, so that those
//!   that are not needed are the first to have been idle for too long.
//! - *A connection being opened belongs to no request*: if a request is cancelled meanwhile, the next one uses it, so
//!   that clients that cancel requests open no more connections than others.
//! - *A server may answer before it has read the request, and close the connection*: what it has sent is read to its end, although
//!   writing fails ([`HalfOpen`]).
//! - *Few are opened at a time*: [`CONNECTS_MAX`], and one where HTTP/2 is possible, since that one can serve all
//!   waiting requests.
//! - *Streams of HTTP/2 cannot block each other*: the window of a connection is as large as those of all its streams
//!   together, and beyond [`Limits::streams`] there is another connection. A client that does not read its response
//!   fills only the window of its own stream.

use core::{convert::Infallible, pin::pin};
use std::{
    collections::VecDeque,
    error::Error as _,
    future::poll_fn,
    io,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use hyper::{
    body::{Body as _, Incoming},
    client::conn::{TrySendError, http1, http2},
};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use lastbyte_driver::{HalfOpen, WriteError};
use rustls::pki_types::ServerName;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, UnixStream},
    sync::{OwnedSemaphorePermit, Semaphore, oneshot},
    time,
    time::Instant,
};
use tokio_rustls::{TlsConnector, client::TlsStream};
use tokio_util::io::InspectReader;

use super::{
    Limits,
    body::{RequestBody, Upload},
    counts::Counts,
    repeat::{Attempts, Fate, Wanted},
    upstream::{Server, Upstream},
};
use crate::tcp::Stalled;

type Request = http::Request<RequestBody>;
type Response = http::Response<Incoming>;

/// Maximum number of connections being opened at a time.
const CONNECTS_MAX: usize = 32;
/// Time limit for idle connections beyond [`Limits::kept`].
const SURPLUS_IDLE: Duration = Duration::from_secs(5);
/// Time limit for closing a connection that no request uses: for what waits to be written, and TLS' last message.
const CLOSING: Duration = Duration::from_secs(1);
/// hyper's buffer for an HTTP/1.1 response and its header, in bytes, and the limit on an HTTP/2 header. A stalled
/// response holds about twice that: what was read, and the buffer from which the waiting piece was cut.
pub(super) const BUFFER: usize = 16 << 10;
/// The most fields of a response header.
pub(super) const FIELDS_MAX: usize = 256;
/// Maximum bytes of an HTTP/2 response waiting for its client.
const STREAM_WINDOW: u32 = 128 << 10;
/// The ALPN identifier of HTTP/2 (RFC 9113 §3.2).
const HTTP2: &[u8] = b"h2";

/// Why there is no response, with details.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SendFailure {
    /// All servers that may receive the request are at their limit.
    Full,
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

/// Opens connections in place of sockets.
pub(super) type Connect = Box<dyn Fn(&Server) -> io::Result<Box<dyn Transport>> + Send + Sync>;

/// What the connections of all threads to all servers of an upstream have in common.
pub(super) struct Connector {
    pub(super) upstream: Arc<Upstream>,
    pub(super) tls: Option<Arc<rustls::ClientConfig>>,
    pub(super) limits: Limits,
    /// `None`: by TCP and `AF_UNIX`.
    pub(super) connect: Option<Connect>,
    /// The number of idle HTTP/1.1 connections.
    pub(super) idle: Arc<AtomicUsize>,
    /// The number of HTTP/2 connections.
    pub(super) http2: Arc<AtomicUsize>,
    pub(super) counts: Arc<Counts>,
}

impl Connector {
    pub(super) fn new(
        upstream: Upstream,
        tls: Option<Arc<rustls::ClientConfig>>,
        limits: Limits,
        connect: Option<Connect>,
    ) -> Arc<Self> {
        Arc::new(Self {
            counts: Counts::new(upstream.servers.len()),
            upstream: Arc::new(upstream),
            tls,
            limits,
            connect,
            idle: Arc::default(),
            http2: Arc::default(),
        })
    }

    /// The number of connections that are kept for requests.
    pub(super) fn kept(&self) -> usize {
        self.idle.load(Ordering::Relaxed) + self.http2.load(Ordering::Relaxed)
    }

    /// The connections of a thread, for each server.
    pub(super) fn pools(self: &Arc<Self>) -> Box<[Arc<Pool>]> {
        let servers = self.upstream.servers.iter();
        servers.map(|server| Pool::new(self, server)).collect()
    }
}

/// The connections of a thread to one server.
pub(super) struct Pool {
    connector: Arc<Connector>,
    server: Server,
    idle: Arc<Mutex<IdleConnections>>,
    connecting: Arc<Semaphore>,
    /// Whether the server may support HTTP/2, so that one connection is opened at a time.
    may_be_http2: AtomicBool,
}

#[derive(Default)]
struct IdleConnections {
    /// The most recently used is last.
    http1: VecDeque<Idle>,
    /// With streams that are in use or free.
    http2: Vec<Multiplexed>,
    /// Whether a task drops those that were idle for too long.
    is_swept: bool,
}

/// An idle connection of HTTP/1.1.
struct Idle {
    connection: Sequential,
    since: Instant,
    _counted: Counted,
}

/// Counts as idle until it is dropped.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    /// Unless there are `most` already.
    fn new(count: &Arc<AtomicUsize>, most: usize) -> Option<Self> {
        let counted = Self(Arc::clone(count));
        (counted.0.fetch_add(1, Ordering::Relaxed) < most).then_some(counted)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A connection of HTTP/1.1.
struct Sequential {
    sender: http1::SendRequest<RequestBody>,
    /// Whether anything was received since the last request was sent.
    has_received: Arc<AtomicBool>,
    /// The server has closed it, although its end was not read yet.
    write_error: WriteError,
    _in_use: InUse,
}

/// The use of a connection, which [`run`] ends without it.
pub(super) type InUse = oneshot::Sender<Infallible>;

/// Runs a connection until it ends, or until a while after its use. hyper does not end one that waits to write what the upstream never
/// takes, although its request has ended.
pub(super) fn run<C: Future + Send + 'static>(connection: C) -> InUse {
    let (in_use, is_unused) = oneshot::channel::<Infallible>();
    tokio::spawn(async move {
        let mut connection = pin!(connection);
        tokio::select! {
            biased;
            _ = &mut connection => return,
            _ = is_unused => {}
        }
        let _ = time::timeout(CLOSING, connection).await;
    });
    in_use
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
    /// As of [`Sequential`].
    write_error: WriteError,
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
    pool: Arc<Pool>,
    stream: Option<Stream>,
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.stream.take().is_some() {
            lock(&self.pool.idle).keep_unused(self.pool.limits().kept);
        }
    }
}

impl Lease {
    pub(super) fn return_to_pool(mut self) {
        let Some(mut connection) = self.connection.take() else {
            return;
        };
        if connection.sender.is_ready() && connection.write_error.get().is_none() {
            return self.pool.keep(connection);
        }
        let pool = Arc::clone(&self.pool);
        tokio::spawn(async move {
            // This may be the last response on this connection, or the server may read no more of the request.
            let ready = time::timeout(pool.limits().idle, connection.sender.ready()).await;
            if matches!(ready, Ok(Ok(()))) {
                pool.keep(connection);
            }
        });
    }
}

fn lock(idle: &Mutex<IdleConnections>) -> MutexGuard<'_, IdleConnections> {
    idle.lock().unwrap_or_else(PoisonError::into_inner)
}

impl IdleConnections {
    /// Drops connections of HTTP/1.1 that have been idle for too long.
    fn drop_expired(&mut self, now: Instant, limits: &Limits) {
        while let Some(first) = self.http1.front() {
            let limit = if self.http1.len() > limits.kept {
                limits.idle.min(SURPLUS_IDLE)
            } else {
                limits.idle
            };
            if now.saturating_duration_since(first.since) < limit {
                return;
            }
            self.http1.pop_front();
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

/// Drops connections that have been idle for too long, as long as there are idle ones.
async fn sweep(idle: Weak<Mutex<IdleConnections>>, limits: Limits) {
    loop {
        time::sleep(limits.idle.min(SURPLUS_IDLE)).await;
        let Some(idle) = idle.upgrade() else {
            return;
        };
        let mut idle = lock(&idle);
        idle.drop_expired(Instant::now(), &limits);
        if idle.http1.is_empty() {
            idle.is_swept = false;
            return;
        }
    }
}

impl Pool {
    fn new(connector: &Arc<Connector>, server: &Server) -> Arc<Self> {
        let upstream = &connector.upstream;
        let offers_http2 = |tls: &Arc<rustls::ClientConfig>| {
            upstream.is_secure && tls.alpn_protocols.iter().any(|name| name == HTTP2)
        };
        let may_be_http2 = upstream.is_h2c || connector.tls.as_ref().is_some_and(offers_http2);
        Arc::new(Self {
            connector: Arc::clone(connector),
            server: server.clone(),
            idle: Arc::default(),
            connecting: Arc::new(Semaphore::new(if may_be_http2 { 1 } else { CONNECTS_MAX })),
            may_be_http2: AtomicBool::new(may_be_http2),
        })
    }

    fn limits(&self) -> &Limits {
        &self.connector.limits
    }

    /// Keeps a connection that is not in use, unless too many are.
    fn keep(&self, connection: Sequential) {
        let limits = self.limits();
        let most = limits.kept.max(limits.requests / 2);
        let Some(counted) = Counted::new(&self.connector.idle, most) else {
            return;
        };
        let mut idle = lock(&self.idle);
        idle.http1.push_back(Idle {
            connection,
            since: Instant::now(),
            _counted: counted,
        });
        if !idle.is_swept {
            idle.is_swept = true;
            tokio::spawn(sweep(Arc::downgrade(&self.idle), *limits));
        }
    }

    /// Whether the server may support HTTP/2.
    pub(super) fn may_be_http2(&self) -> bool {
        self.may_be_http2.load(Ordering::Relaxed)
    }

    /// Sends a request, again where that is permitted, and returns the header of its response.
    ///
    /// # Errors
    ///
    /// Returns why there is none, and whether the request may be sent to another server.
    pub(super) async fn send(
        self: &Arc<Self>,
        head: &http::request::Parts,
        upload: &Arc<Upload>,
        attempts: &mut Attempts,
    ) -> Result<(Response, Lease), (SendFailure, bool)> {
        loop {
            let got = self.get(attempts.wanted());
            let got = time::timeout(self.limits().connect, got).await;
            let (connection, is_new) = match got {
                Ok(Ok(got)) => got,
                Ok(Err(failure)) => return Err((failure, true)),
                Err(_) => return Err((SendFailure::Late, true)),
            };
            let request = Request::from_parts(head.clone(), upload.attempt());
            let sent = Instant::now();
            match self.send_over(connection, is_new, request).await {
                Ok(answered) => {
                    upload.release();
                    return Ok(answered);
                }
                Err((fate, _)) if attempts.repeats(fate, sent) && upload.retire() => {
                    self.connector.counts.on_retry();
                }
                Err((fate, why)) => {
                    return Err((SendFailure::Broken(why), attempts.moves(fate, sent)));
                }
            }
        }
    }

    /// Whether the server answers this request, which has no body, on a new connection with a status of 2xx or 3xx. The
    /// connection is closed with what it has sent of a body.
    pub(super) async fn check(self: &Arc<Self>, head: &http::request::Parts) -> bool {
        let Ok(connection) = self.try_connect().await else {
            return false;
        };
        let request = Request::from_parts(head.clone(), Upload::empty().attempt());
        let answered = self.send_over(connection, true, request).await;
        answered.is_ok_and(|(response, _)| {
            let status = response.status();
            status.is_success() || status.is_redirection()
        })
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
                pool.keep(unused);
            }
        });
        let gone = || SendFailure::Refused("the proxy is shutting down".into());
        waits.await.map_err(|_| gone())?.map(|made| (made, true))
    }

    async fn send_over(
        self: &Arc<Self>,
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
            pool: Arc::clone(self),
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
        parts.scheme = Some(if self.connector.upstream.is_secure {
            http::uri::Scheme::HTTPS
        } else {
            http::uri::Scheme::HTTP
        });
        parts.authority = authority
            .and_then(|authority| authority.parse().ok())
            .or_else(|| self.connector.upstream.authority().parse().ok());
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
        idle.http2
            .retain(|idle| !idle.sender.is_closed() && idle.write_error.get().is_none());
        for connection in idle.http2.iter().filter(|it| is_wanted(it)) {
            if let Some(stream) = connection.stream() {
                return Some(Connection::Http2(connection.clone(), stream));
            }
        }
        if wanted != Wanted::Any {
            return None;
        }
        idle.drop_expired(Instant::now(), self.limits());
        while let Some(Idle { connection, .. }) = idle.http1.pop_back() {
            if connection.sender.is_ready() {
                return Some(Connection::Http1(connection));
            }
        }
        None
    }

    async fn connect(&self) -> Result<Connection, SendFailure> {
        self.limited(Box::pin(self.try_connect())).await
    }

    /// A connection for HTTP/1.1 that is not shared, before HTTP.
    pub(super) async fn open_alone(&self) -> Result<Box<dyn Transport>, SendFailure> {
        let waiting = time::timeout(self.limits().connect, self.connecting.acquire()).await;
        let _permit = waiting.map_err(|_| SendFailure::Late)?;
        self.limited(async {
            if let Some(connect) = &self.connector.connect {
                return connect(&self.server);
            }
            let tls = self.connector.tls.as_ref();
            Ok(match self.open().await? {
                Opened::Unix(stream) => Box::new(stream) as Box<dyn Transport>,
                Opened::Tcp(stream, host) => {
                    match tls.filter(|_| self.connector.upstream.is_secure) {
                        Some(tls) => {
                            let mut tls = rustls::ClientConfig::clone(tls);
                            tls.alpn_protocols = vec![b"http/1.1".to_vec()];
                            Box::new(open_tls(tls.into(), stream, host).await?)
                        }
                        None => Box::new(stream),
                    }
                }
            })
        })
        .await
    }

    /// Limits the time of an attempt to connect, and counts it.
    async fn limited<T>(
        &self,
        connecting: impl Future<Output = io::Result<T>>,
    ) -> Result<T, SendFailure> {
        let began = Instant::now();
        match time::timeout(self.limits().connect, connecting).await {
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
                self.connector.counts.on_connected(began.elapsed());
                Ok(connection)
            }
        }
    }

    async fn try_connect(&self) -> io::Result<Connection> {
        let Connector { tls, upstream, .. } = &*self.connector;
        if let Some(connect) = &self.connector.connect {
            return self.speak(connect(&self.server)?).await;
        }
        let (stream, host) = match self.open().await? {
            Opened::Unix(stream) => return self.speak(stream).await,
            Opened::Tcp(stream, host) => (stream, host),
        };
        let Some(tls) = tls.as_ref().filter(|_| upstream.is_secure) else {
            return self.speak(stream).await;
        };
        let stream = self.unless_stalled(stream);
        let mut stream = open_tls(Arc::clone(tls), stream, host).await?;
        if stream.get_ref().1.alpn_protocol() == Some(HTTP2) {
            self.speak_http2(stream).await
        } else {
            // A response may go on although its request is not read.
            stream.get_mut().0.lift();
            self.speak_http1(stream).await
        }
    }

    /// A socket, before TLS.
    async fn open(&self) -> io::Result<Opened<'_>> {
        let (host, port) = match &self.server {
            Server::Unix(path) => return Ok(Opened::Unix(UnixStream::connect(path).await?)),
            Server::Tcp { host, port } => (host.as_str(), *port),
        };
        let stream = TcpStream::connect((host, port)).await?;
        stream.set_nodelay(true)?;
        Ok(Opened::Tcp(stream, host))
    }

    /// A stream that fails if the server takes nothing of what is written. By then, each request on it has ended by its own limit:
    /// hyper has no other event that ends a connection of HTTP/2 without streams whose last frames cannot be written.
    fn unless_stalled<S>(&self, stream: S) -> Stalled<S> {
        Stalled::new(stream, self.limits().stall.saturating_mul(2))
    }

    /// Without TLS.
    async fn speak<S>(&self, stream: S) -> io::Result<Connection>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        if self.connector.upstream.is_h2c {
            self.speak_http2(self.unless_stalled(stream)).await
        } else {
            self.speak_http1(stream).await
        }
    }

    async fn speak_http2<S>(&self, stream: S) -> io::Result<Connection>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let streams = self.limits().streams.max(1);
        let window = STREAM_WINDOW.saturating_mul(streams);
        let (first, mut settings) = oneshot::channel();
        let mut first = Some(first);
        let stream = HalfOpen::new(stream);
        let write_error = stream.write_error();
        let stream = InspectReader::new(stream, move |bytes: &[u8]| {
            if !bytes.is_empty()
                && let Some(first) = first.take()
            {
                let _ = first.send(());
            }
        });
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(window.min(i32::MAX.unsigned_abs()))
            .max_send_buf_size(BUFFER)
            .max_header_list_size(BUFFER as u32)
            // Detects a server that is gone while requests wait for it.
            .keep_alive_interval(self.limits().idle / 2)
            .keep_alive_timeout(self.limits().connect)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(io::Error::other)?;
        let allowed = Arc::new(AtomicUsize::new(connection.current_max_send_streams()));
        let limit = Arc::clone(&allowed);
        let mut connection = Box::pin(connection);
        let mut has_settings = false;
        let mut running = poll_fn(move |context| {
            // hyper receives in another task. The server's first frame has its limit (RFC 9113 §3.4), which counts for the next
            // request.
            has_settings = has_settings || Pin::new(&mut settings).poll(context).is_ready();
            let polled = connection.as_mut().poll(context);
            let allowed = connection.current_max_send_streams();
            limit.store(allowed, Ordering::Relaxed);
            polled
        });
        let uses = Arc::<AtomicUsize>::default();
        let (counted, idle, limit) = (
            Arc::clone(&uses),
            Arc::downgrade(&self.idle),
            self.limits().idle,
        );
        let open = Counted::new(&self.connector.http2, usize::MAX);
        tokio::spawn(async move {
            let _open = open;
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
            write_error,
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
        let stream = HalfOpen::new(stream);
        let write_error = stream.write_error();
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
        let in_use = run(connection);
        if self.may_be_http2.swap(false, Ordering::Relaxed) {
            // Each request needs a connection of its own after all.
            self.connecting.add_permits(CONNECTS_MAX - 1);
        }
        Ok(Connection::Http1(Sequential {
            sender,
            has_received,
            write_error,
            _in_use: in_use,
        }))
    }
}

/// A socket of the kind that the server has.
enum Opened<'a> {
    Unix(UnixStream),
    /// With the host, for TLS.
    Tcp(TcpStream, &'a str),
}

async fn open_tls<S: AsyncRead + AsyncWrite + Unpin>(
    tls: Arc<rustls::ClientConfig>,
    stream: S,
    host: &str,
) -> io::Result<TlsStream<S>> {
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    TlsConnector::from(tls).connect(name, stream).await
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
        (true, false) => Fate::UnsentNew,
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
