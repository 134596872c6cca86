//! TCP, TLS and the handshake of HTTP.

use core::{error::Error, fmt::Write as _, future::Future, net::SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::{
    Request, Response,
    body::Incoming,
    client::conn::{http1, http2},
};
use hyper_util::rt::TokioIo;
use lastbyte_client::{Failure, HalfOpen, Received, Tls};
use rustls::{HandshakeKind, pki_types::ServerName};
use tokio::{
    net::TcpStream,
    task::{JoinSet, spawn_local},
};
use tokio_rustls::TlsConnector;

use crate::mix::Handshake;

/// The largest receive windows of HTTP/2 (RFC 9113 §6.9.1), halved: as h2load's, so that they never limit the server.
const WINDOW_LEN: u32 = (1 << 30) - 1;

/// A request, which is cloned for each sending.
pub(super) type Message = Request<Full<Bytes>>;

/// What to connect to, and how.
pub(super) struct Server {
    pub(super) address: SocketAddr,
    /// The name in its certificate.
    pub(super) name: String,
    pub(super) tls: Option<TlsConfigs>,
    /// Whether HTTP/2 is used, and not HTTP/1.1.
    pub(super) is_http2: bool,
    /// The size of the dynamic table for the headers of responses over HTTP/2, in bytes (RFC 7541 §4.2).
    pub(super) header_table_size: u32,
}

/// The TLS configuration of each handshake.
pub(super) struct TlsConfigs {
    pub(super) full: Arc<rustls::ClientConfig>,
    pub(super) resumed: Arc<rustls::ClientConfig>,
}

/// Sends requests on a connection.
pub(super) enum Sender {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

impl Sender {
    pub(super) async fn ready(&mut self) -> hyper::Result<()> {
        match self {
            Self::Http1(sender) => sender.ready().await,
            Self::Http2(sender) => sender.ready().await,
        }
    }

    pub(super) async fn send(&mut self, message: Message) -> hyper::Result<Response<Incoming>> {
        match self {
            Self::Http1(sender) => sender.send_request(message).await,
            Self::Http2(sender) => sender.send_request(message).await,
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        match self {
            Self::Http1(sender) => sender.is_closed(),
            Self::Http2(sender) => sender.is_closed(),
        }
    }
}

/// An established connection.
pub(super) struct Connection {
    pub(super) sender: Sender,
    /// The task that reads and writes. It ends when this is dropped.
    pub(super) driver: JoinSet<hyper::Result<()>>,
    /// Whether a TLS session was resumed; `None` without TLS.
    pub(super) is_resumed: Option<bool>,
}

/// Runs hyper's own tasks on the thread that the connection belongs to.
#[derive(Clone, Copy, Debug)]
struct OnThisThread;

impl<F> hyper::rt::Executor<F> for OnThisThread
where
    F: Future + 'static,
    F::Output: 'static,
{
    fn execute(&self, future: F) {
        spawn_local(future);
    }
}

/// Establishes a connection.
pub(super) async fn establish(
    server: &Server,
    handshake: Handshake,
    on_received: impl Fn(u64, u64) + Unpin + 'static,
) -> Result<Connection, Failure> {
    let address = server.address;
    let tcp = TcpStream::connect(address).await;
    let tcp = tcp.map_err(|error| cannot_connect(address, &error))?;
    // Requests are written as a whole, so Nagle's algorithm would only delay them. Failure has no consequence but delay.
    let _ = tcp.set_nodelay(true);
    let Some(configs) = &server.tls else {
        return start_http(tcp, on_received, server, None).await;
    };
    let config = match handshake {
        Handshake::Full => &configs.full,
        // TLS over TCP is used without 0-RTT.
        Handshake::Resumed | Handshake::ZeroRtt => &configs.resumed,
    };
    let name = ServerName::try_from(server.name.clone())
        .map_err(|error| Failure::Tls(format!("invalid TLS server name: {error}")))?;
    let connector = TlsConnector::from(Arc::clone(config));
    let tls = connector.connect(name, tcp).await;
    let tls = tls.map_err(|error| Tls::tcp_failure(&error))?;
    let session = tls.get_ref().1;
    let is_http2 = session.alpn_protocol() == Some(b"h2");
    let is_resumed = session.handshake_kind() == Some(HandshakeKind::Resumed);
    if server.is_http2 && !is_http2 {
        return Err(Failure::Tls(
            "the server does not support HTTP/2".to_owned(),
        ));
    }
    start_http(tls, on_received, server, Some(is_resumed)).await
}

async fn start_http<S>(
    stream: S,
    on_received: impl Fn(u64, u64) + Unpin + 'static,
    server: &Server,
    is_resumed: Option<bool>,
) -> Result<Connection, Failure>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + 'static,
{
    let failed = |error: hyper::Error| Failure::Connect(chain(&error));
    let mut driver = JoinSet::new();
    let sender = if server.is_http2 {
        let (sender, connection) = http2::Builder::new(OnThisThread)
            .initial_stream_window_size(WINDOW_LEN)
            .initial_connection_window_size(WINDOW_LEN)
            .header_table_size(server.header_table_size)
            .handshake(TokioIo::new(Received::new(stream, true, on_received)))
            .await
            .map_err(failed)?;
        driver.spawn_local(connection);
        Sender::Http2(sender)
    } else {
        // A server may respond before it has read the request, and close the connection (RFC 9112 §9.5).
        let stream = Received::new(HalfOpen::new(stream), false, on_received);
        let (sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(failed)?;
        driver.spawn_local(connection);
        Sender::Http1(sender)
    };
    Ok(Connection {
        sender,
        driver,
        is_resumed,
    })
}

fn cannot_connect(address: SocketAddr, error: &std::io::Error) -> Failure {
    Failure::Connect(format!("cannot connect to {address}: {error}"))
}

/// An error and its causes, in one line.
pub(super) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let _ = write!(text, ": {error}");
        cause = error.source();
    }
    text
}
