//! Connections to the upstream.
//!
//! Owns: making them (in clear text HTTP/1.1, or 2 if the URL says so; over TLS the version that ALPN selects, RFC 7301), keeping those
//! that have nothing to do, and trying another when one turned out to be dead before the request had left. Never: sends a
//! request twice that may have arrived (RFC 9110 §9.2.2).
//!
//! # Decisions
//!
//! - *A connection that is being made belongs to no request*: a request that is given up meanwhile leaves it to the next, so
//!   that clients that ask and cancel open no more connections than others.
//! - *Few are made at a time*: [`CONNECTS_MAX`], and one where HTTP/2 may be spoken, since that one can serve all who wait.
//! - *Streams of HTTP/2 cannot hold each other back*: the window of a connection is as large as those of all its streams
//!   together, and beyond [`Limits::streams`] there is another connection. A client that takes nothing of its response fills the window
//!   of its own stream, and no other.

use std::{
    future::poll_fn,
    io,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use hyper::{
    body::Incoming,
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

use super::{Limits, body::RequestBody, upstream::Upstream};

type Request = http::Request<RequestBody>;
type Response = http::Response<Incoming>;

/// Connections that are being made at a time.
const CONNECTS_MAX: usize = 32;
/// What hyper buffers of a response of HTTP/1.1, and of its head, in bytes. A stalled response holds about twice that: what was read,
/// and the buffer that the piece which waits was cut from.
const BUFFER: usize = 16 << 10;
/// How much of a response of HTTP/2 may wait for its client, in bytes.
const STREAM_WINDOW: u32 = 128 << 10;
/// What HTTP/2 is called in the handshake (RFC 9113 §3.2).
const HTTP2: &[u8] = b"h2";

/// Why there is no response, with what was found out about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SendFailure {
    /// It cannot be connected to.
    Refused(String),
    /// It is not who it should be, or does not speak TLS.
    Tls(String),
    /// Connecting takes too long.
    Late,
    /// It broke off, or said what is no HTTP.
    Broken(String),
}

/// All connections to one server.
pub(super) struct Pool {
    upstream: Upstream,
    tls: Option<Arc<rustls::ClientConfig>>,
    limits: Limits,
    kept: Arc<Mutex<Kept>>,
    connecting: Arc<Semaphore>,
    /// Whether the server may turn out to speak HTTP/2, so that one connection is made at a time.
    may_be_http2: AtomicBool,
}

#[derive(Default)]
struct Kept {
    /// Without anything to do, since then; the one that was used last is at the end.
    http1: Vec<(http1::SendRequest<RequestBody>, Instant)>,
    /// With streams that are in use, or free.
    http2: Vec<Multiplexed>,
}

/// A connection of HTTP/2.
#[derive(Clone)]
struct Multiplexed {
    sender: http2::SendRequest<RequestBody>,
    /// One permit for each stream that is not in use.
    free: Arc<Semaphore>,
    /// How many streams the server allows (`SETTINGS_MAX_CONCURRENT_STREAMS`).
    allowed: Arc<AtomicUsize>,
}

/// A stream of a connection of HTTP/2: in use until both directions are done with it.
pub(super) type Stream = Arc<OwnedSemaphorePermit>;

enum Connection {
    Http1(http1::SendRequest<RequestBody>),
    Http2(Multiplexed, Stream),
}

/// A connection that a response comes over; to be given back when all of it came.
pub(super) struct Lease {
    connection: Option<http1::SendRequest<RequestBody>>,
    kept: Arc<Mutex<Kept>>,
    most: usize,
    _stream: Option<Stream>,
}

impl Lease {
    pub(super) fn give_back(self) {
        let Some(mut connection) = self.connection else {
            return;
        };
        let (kept, most) = (self.kept, self.most);
        tokio::spawn(async move {
            // It may have been the last that this connection says.
            if connection.ready().await.is_ok() {
                lock(&kept).keep(connection, most);
            }
        });
    }
}

fn lock(kept: &Mutex<Kept>) -> MutexGuard<'_, Kept> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Kept {
    fn keep(&mut self, connection: http1::SendRequest<RequestBody>, most: usize) {
        if self.http1.len() < most {
            self.http1.push((connection, Instant::now()));
        }
    }
}

impl Pool {
    pub(super) fn new(
        upstream: Upstream,
        tls: Option<Arc<rustls::ClientConfig>>,
        limits: Limits,
    ) -> Arc<Self> {
        let offers_http2 = |tls: &Arc<rustls::ClientConfig>| {
            upstream.is_secure && tls.alpn_protocols.iter().any(|name| name == HTTP2)
        };
        let may_be_http2 = upstream.is_h2c || tls.as_ref().is_some_and(offers_http2);
        Arc::new(Self {
            upstream,
            tls,
            limits,
            kept: Arc::default(),
            connecting: Arc::new(Semaphore::new(if may_be_http2 { 1 } else { CONNECTS_MAX })),
            may_be_http2: AtomicBool::new(may_be_http2),
        })
    }

    /// Sends a request, and gives the head of its response.
    pub(super) async fn send(
        self: &Arc<Self>,
        request: Request,
    ) -> Result<(Response, Lease), SendFailure> {
        let mut request = request;
        loop {
            let (connection, is_new) = match time::timeout(self.limits.connect, self.get()).await {
                Ok(got) => got?,
                Err(_) => return Err(SendFailure::Late),
            };
            match self.send_over(connection, request).await {
                Ok(answered) => return Ok(answered),
                // It was closed while idle, and the request was not sent.
                Err((Some(unsent), _)) if !is_new => request = unsent,
                Err((_, why)) => return Err(SendFailure::Broken(why)),
            }
        }
    }

    /// A connection, and whether it was made for this.
    async fn get(self: &Arc<Self>) -> Result<(Connection, bool), SendFailure> {
        if let Some(kept) = self.take() {
            return Ok((kept, false));
        }
        let permit = Arc::clone(&self.connecting).acquire_owned().await;
        if let Some(kept) = self.take() {
            return Ok((kept, false));
        }
        let (made, waits) = oneshot::channel();
        let pool = Arc::clone(self);
        tokio::spawn(async move {
            let result = pool.connect().await;
            drop(permit);
            if let Err(Ok(Connection::Http1(unused))) = made.send(result) {
                lock(&pool.kept).keep(unused, pool.limits.kept);
            }
        });
        let gone = || SendFailure::Refused("the proxy is shutting down".into());
        waits.await.map_err(|_| gone())?.map(|made| (made, true))
    }

    async fn send_over(
        &self,
        connection: Connection,
        request: Request,
    ) -> Result<(Response, Lease), (Option<Request>, String)> {
        let unsent = |mut error: TrySendError<Request>| {
            let request = error.take_message();
            (request, error.into_error().to_string())
        };
        let (response, connection) = match connection {
            Connection::Http1(mut sender) => {
                let response = sender.try_send_request(request).await.map_err(unsent)?;
                (response, (Some(sender), None))
            }
            Connection::Http2(mut connection, stream) => {
                let mut request = self.for_http2(request);
                request.body_mut().hold(Arc::clone(&stream));
                let sent = connection.sender.try_send_request(request).await;
                if sent.is_err() {
                    // It may be about to end: no other request goes over it.
                    lock(&self.kept)
                        .http2
                        .retain(|kept| !Arc::ptr_eq(&kept.free, &connection.free));
                }
                (sent.map_err(unsent)?, (None, Some(stream)))
            }
        };
        let (connection, stream) = connection;
        let lease = Lease {
            connection,
            _stream: stream,
            kept: Arc::clone(&self.kept),
            most: self.limits.kept,
        };
        Ok((response, lease))
    }

    /// HTTP/2 has the host in the target (RFC 9113 §8.3.1).
    fn for_http2(&self, request: Request) -> Request {
        let (mut head, body) = request.into_parts();
        let host = head.headers.remove(http::header::HOST);
        let authority = host.and_then(|host| host.to_str().ok().map(str::to_owned));
        let mut parts = head.uri.into_parts();
        // How this server is spoken to; `x-forwarded-proto` has what the client did.
        parts.scheme = Some(if self.upstream.is_secure {
            http::uri::Scheme::HTTPS
        } else {
            http::uri::Scheme::HTTP
        });
        parts.authority = authority
            .and_then(|authority| authority.parse().ok())
            .or_else(|| self.upstream.host.parse().ok());
        head.uri = http::Uri::from_parts(parts).unwrap_or_default();
        http::Request::from_parts(head, body)
    }

    /// One that is there.
    fn take(&self) -> Option<Connection> {
        let mut kept = lock(&self.kept);
        kept.http2.retain(|kept| !kept.sender.is_closed());
        for connection in &kept.http2 {
            if let Some(stream) = connection.stream(self.limits.streams) {
                return Some(Connection::Http2(connection.clone(), stream));
            }
        }
        let now = Instant::now();
        let limit = self.limits.idle;
        kept.http1
            .retain(|(sender, since)| sender.is_ready() && now - *since < limit);
        kept.http1
            .pop()
            .map(|(sender, _)| Connection::Http1(sender))
    }

    async fn connect(&self) -> Result<Connection, SendFailure> {
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
            Ok(Ok(connection)) => Ok(connection),
        }
    }

    async fn try_connect(&self) -> io::Result<Connection> {
        let Upstream { host, port, .. } = &self.upstream;
        let stream = TcpStream::connect((host.as_str(), *port)).await?;
        stream.set_nodelay(true)?;
        let Some(tls) = self.tls.as_ref().filter(|_| self.upstream.is_secure) else {
            return if self.upstream.is_h2c {
                self.speak_http2(stream).await
            } else {
                self.speak_http1(stream).await
            };
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
            // A server that is gone is found out while requests wait for it.
            .keep_alive_interval(self.limits.idle / 2)
            .keep_alive_timeout(self.limits.connect)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(io::Error::other)?;
        let allowed = Arc::new(AtomicUsize::new(connection.current_max_send_streams()));
        let settings = Arc::clone(&allowed);
        let mut connection = Box::pin(connection);
        tokio::spawn(poll_fn(move |context| {
            let polled = connection.as_mut().poll(context);
            let allowed = connection.current_max_send_streams();
            settings.store(allowed, Ordering::Relaxed);
            polled
        }));
        let connection = Multiplexed {
            sender,
            free: Arc::new(Semaphore::new(streams as usize)),
            allowed,
        };
        let closed = || io::Error::from(io::ErrorKind::ConnectionAborted);
        let stream = connection.stream(streams).ok_or_else(closed)?;
        lock(&self.kept).http2.push(connection.clone());
        Ok(Connection::Http2(connection, stream))
    }

    async fn speak_http1<S>(&self, stream: S) -> io::Result<Connection>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (sender, connection) = http1::Builder::new()
            .max_buf_size(BUFFER)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(io::Error::other)?;
        tokio::spawn(connection);
        if self.may_be_http2.swap(false, Ordering::Relaxed) {
            // Each request needs a connection of its own after all.
            self.connecting.add_permits(CONNECTS_MAX - 1);
        }
        Ok(Connection::Http1(sender))
    }
}

impl Multiplexed {
    /// A stream that is not in use, if the server allows that many.
    fn stream(&self, streams: u32) -> Option<Stream> {
        let used = (streams.max(1) as usize).saturating_sub(self.free.available_permits());
        if used >= self.allowed.load(Ordering::Relaxed) {
            return None;
        }
        let permit = Arc::clone(&self.free).try_acquire_owned().ok()?;
        Some(Arc::new(permit))
    }
}
