//! Connections to the server behind.
//!
//! Owns: making them (in clear text HTTP/1.1, or 2 if the URL says so; over TLS what both speak best, RFC 7301), keeping those that have nothing to
//! do, and trying another when one turned out to be dead before the request had left. Never: sends a request twice that
//! may have arrived (RFC 9110 §9.2.2).

use std::{
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
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
    time,
    time::Instant,
};
use tokio_rustls::TlsConnector;

use super::{Limits, body::RequestBody, upstream::Upstream};

type Request = http::Request<RequestBody>;
type Response = http::Response<Incoming>;

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
}

#[derive(Default)]
struct Kept {
    /// Without anything to do, since then; the one that was used last is at the end.
    http1: Vec<(http1::SendRequest<RequestBody>, Instant)>,
    /// One for all.
    http2: Option<http2::SendRequest<RequestBody>>,
}

enum Connection {
    Http1(http1::SendRequest<RequestBody>),
    Http2(http2::SendRequest<RequestBody>),
}

/// A connection that a response comes over; to be given back when all of it came.
pub(super) struct Lease {
    connection: Option<http1::SendRequest<RequestBody>>,
    kept: Arc<Mutex<Kept>>,
    most: usize,
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
                let mut kept = lock(&kept);
                if kept.http1.len() < most {
                    kept.http1.push((connection, Instant::now()));
                }
            }
        });
    }
}

fn lock(kept: &Mutex<Kept>) -> MutexGuard<'_, Kept> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pool {
    pub(super) fn new(
        upstream: Upstream,
        tls: Option<Arc<rustls::ClientConfig>>,
        limits: Limits,
    ) -> Self {
        Self {
            upstream,
            tls,
            limits,
            kept: Arc::default(),
        }
    }

    /// Sends a request, and gives the head of its response.
    pub(super) async fn send(&self, request: Request) -> Result<(Response, Lease), SendFailure> {
        let mut request = request;
        loop {
            let kept = self.take();
            let is_new = kept.is_none();
            let connection = match kept {
                Some(kept) => kept,
                None => self.connect().await?,
            };
            match self.send_over(connection, request).await {
                Ok(answered) => return Ok(answered),
                // It was closed while nobody looked, and the request has not left.
                Err((Some(unsent), _)) if !is_new => request = unsent,
                Err((_, why)) => return Err(SendFailure::Broken(why)),
            }
        }
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
                (response, Some(sender))
            }
            Connection::Http2(mut sender) => {
                let request = self.for_http2(request);
                let response = sender.try_send_request(request).await.map_err(unsent)?;
                (response, None)
            }
        };
        let lease = Lease {
            connection,
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
        if let Some(sender) = &kept.http2 {
            if !sender.is_closed() {
                return Some(Connection::Http2(sender.clone()));
            }
            kept.http2 = None;
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
                speak_http1(stream).await
            };
        };
        let name = ServerName::try_from(host.clone()).map_err(io::Error::other)?;
        let stream = TlsConnector::from(Arc::clone(tls))
            .connect(name, stream)
            .await?;
        if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
            self.speak_http2(stream).await
        } else {
            speak_http1(stream).await
        }
    }

    async fn speak_http2<S>(&self, stream: S) -> io::Result<Connection>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .handshake(TokioIo::new(stream))
            .await
            .map_err(io::Error::other)?;
        tokio::spawn(connection);
        lock(&self.kept).http2 = Some(sender.clone());
        Ok(Connection::Http2(sender))
    }
}

async fn speak_http1<S>(stream: S) -> io::Result<Connection>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(io::Error::other)?;
    tokio::spawn(connection);
    Ok(Connection::Http1(sender))
}
