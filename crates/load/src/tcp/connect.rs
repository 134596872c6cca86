//! TCP, TLS and the handshake of HTTP.

use core::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use lastbyte_client::{Failure, Received, Tls};
use lastbyte_driver::HalfOpen;
use rustls::{HandshakeKind, pki_types::ServerName};
use tokio::{net::TcpStream, task::JoinSet};
use tokio_rustls::TlsConnector;

use super::exchange::{Sender, chain};
use crate::mix::Handshake;

/// The largest receive windows of HTTP/2 (RFC 9113 §6.9.1), halved: as h2load's, so that they never limit the server.
const WINDOW_LEN: u32 = (1 << 30) - 1;
/// The largest field section of a response over HTTP/2 (RFC 9113 §6.5.2).
const FIELD_SECTION_LEN: u32 = 16 << 10;
/// Requests in progress before the server has announced its limit (RFC 9113 §6.5.2 recommends that it is not lower).
const FIRST_STREAMS: usize = 100;

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

/// An established connection.
pub(super) struct Connection {
    pub(super) sender: Sender,
    /// The task that reads and writes. It ends when this is dropped.
    pub(super) driver: JoinSet<Result<(), String>>,
    /// Whether a TLS session was resumed; `None` without TLS.
    pub(super) is_resumed: Option<bool>,
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
    let mut driver = JoinSet::new();
    // A server may respond before it has read the request, and close the connection (RFC 9112 §9.5).
    let stream = HalfOpen::new(stream);
    let sender = if server.is_http2 {
        let (sender, connection) = h2::client::Builder::new()
            .enable_push(false)
            .initial_window_size(WINDOW_LEN)
            .initial_connection_window_size(WINDOW_LEN)
            .header_table_size(server.header_table_size)
            .max_header_list_size(FIELD_SECTION_LEN)
            .initial_max_send_streams(FIRST_STREAMS)
            .handshake(Received::new(stream, true, on_received))
            .await
            .map_err(|error| Failure::Connect(chain(&error)))?;
        driver.spawn_local(async { connection.await.map_err(|error| chain(&error)) });
        Sender::Http2(sender)
    } else {
        let stream = Received::new(stream, false, on_received);
        let (sender, connection) = http1::handshake::<_, Full<Bytes>>(TokioIo::new(stream))
            .await
            .map_err(|error| Failure::Connect(chain(&error)))?;
        driver.spawn_local(async { connection.await.map_err(|error| chain(&error)) });
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
