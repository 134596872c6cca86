//! One connection over TCP.
//!
//! Owns: the order of things: handshake, HTTP/1.1 or 2 by what was agreed on (RFC 7301), requests, idleness, the end.

use std::{
    net::SocketAddr,
    pin::pin,
    sync::{Arc, atomic::Ordering},
};

use hyper::{
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{net::TcpStream, time};
use tokio_rustls::server::TlsStream;

use super::{
    Alive, Shared, count,
    in_flight::Connection,
    lingering::{Lent, linger},
    observed::{self, Observation, Session},
    pace::{PacedExecutor, Slowest},
    request,
    stalled::Stalled,
};

/// What HTTP/2 is called in the handshake (RFC 9113 §3.2).
const HTTP2: &[u8] = b"h2";
/// How much of a response waits for room in a connection of HTTP/2, for each stream, in bytes, but for one piece more.
const SEND_BUFFER: usize = 16 << 10;
/// How much of a response waits for room in a connection of HTTP/1.1, in bytes, but for one piece more, and how much of a
/// request is read at a time.
const BUFFER: usize = 64 << 10;
/// How much a client may send of a request's body before it is read, for each stream and in all, in bytes.
const STREAM_WINDOW: u32 = 256 << 10;
const CONNECTION_WINDOW: u32 = 1 << 20;
/// Requests that the client gave up before they were looked at ("rapid reset"); beyond, the connection is closed.
const PENDING_RESETS: usize = 50;

/// Counts a connection as over.
struct Counted(Arc<Shared>);

impl Drop for Counted {
    fn drop(&mut self) {
        count(&self.0.counts.closed);
    }
}

type Tls = TlsStream<Stalled<Lent<observed::Stream<TcpStream>>>>;

pub(super) async fn serve(
    shared: Arc<Shared>,
    stream: TcpStream,
    remote: SocketAddr,
    alive: Alive,
) {
    count(&shared.counts.accepted);
    let number = shared.next_number.fetch_add(1, Ordering::Relaxed);
    let counted = Counted(Arc::clone(&shared));
    // Responses are written whole, or as much as there is room for: nothing is gained by waiting for more.
    let _ = stream.set_nodelay(true);
    let log = shared.log.clone();
    let observation = log.map(|log| Arc::new(Observation::new(log, number)));
    let stream = observed::Stream::new(stream, observation.clone());
    let (stream, returned) = Lent::new(stream);
    let stream = Stalled::new(stream, shared.limits.stall);
    let handshake = time::timeout(shared.limits.handshake, shared.acceptor.accept(stream)).await;
    let Ok(Ok(tls)) = handshake else {
        count(&shared.counts.handshakes_failed);
        return;
    };
    let session = tls.get_ref().1;
    count(&shared.counts.handshakes);
    let is_resumed = session.handshake_kind() == Some(rustls::HandshakeKind::Resumed);
    if is_resumed {
        count(&shared.counts.resumed);
    }
    let is_http2 = session.alpn_protocol() == Some(HTTP2);
    if let Some(observation) = &observation {
        let is_tls13 = session.protocol_version() == Some(rustls::ProtocolVersion::TLSv1_3);
        observation.on_handshake(Session {
            proto: if is_http2 { "HTTP/2" } else { "HTTP/1.1" },
            tls: if is_tls13 { "1.3" } else { "1.2" },
            is_resumed,
            is_multiplexed: is_http2,
        });
    }
    if is_http2 {
        serve_http2(&shared, tls, remote, observation).await;
    } else {
        serve_http1(&shared, tls, remote, observation).await;
    }
    if let Ok(stream) = returned.await {
        linger(stream, shared.limits.stall).await;
    }
    drop((counted, alive));
}

async fn serve_http1(
    shared: &Arc<Shared>,
    tls: Tls,
    remote: SocketAddr,
    observation: Option<Arc<Observation>>,
) {
    let mut stopped = shared.stopped.clone();
    let requests = Connection::new(shared, remote, observation);
    let service = service_fn(|request| request::serve(&requests, request));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(shared.limits.head)
        .max_header_size(shared.limits.head_size)
        // The head of a request has to fit in it, too.
        .max_buf_size(BUFFER.max(2 * shared.limits.head_size))
        .serve_connection(TokioIo::new(tls), service);
    let mut connection = pin!(connection);
    let is_over = tokio::select! {
        _ = connection.as_mut() => true,
        _ = stopped.wait_for(|stopped| *stopped) => false,
    };
    if !is_over {
        connection.as_mut().graceful_shutdown();
        // What went wrong concerns the client alone, and it has been told.
        let _ = connection.await;
    }
}

async fn serve_http2(
    shared: &Arc<Shared>,
    tls: Tls,
    remote: SocketAddr,
    observation: Option<Arc<Observation>>,
) {
    let mut stopped = shared.stopped.clone();
    let requests = Connection::new(shared, remote, observation);
    let service = service_fn(|request| request::serve(&requests, request));
    let limits = &shared.limits;
    let slowest = Slowest {
        timeout: limits.stall,
        bytes: limits.stall_bytes,
    };
    let connection = http2::Builder::new(PacedExecutor::new(slowest))
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.streams)
        .max_header_list_size(u32::try_from(limits.head_size).unwrap_or(u32::MAX))
        .max_send_buf_size(SEND_BUFFER)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_pending_accept_reset_streams(PENDING_RESETS)
        // A client that is gone is found out though nothing is to be sent to it.
        .keep_alive_interval(limits.idle / 2)
        .keep_alive_timeout(limits.stall)
        .serve_connection(TokioIo::new(tls), service);
    let mut connection = pin!(connection);
    let mut seen = 0;
    loop {
        tokio::select! {
            _ = connection.as_mut() => return,
            _ = stopped.wait_for(|stopped| *stopped) => break,
            () = time::sleep(limits.idle) => {
                let started = requests.started();
                let is_idle = started == seen && requests.is_idle();
                seen = started;
                if is_idle {
                    break;
                }
            }
        }
    }
    connection.as_mut().graceful_shutdown();
    // The last response is followed by a PING, and its last bytes may wait for a window: clients that care for neither are
    // not waited for (RFC 9113 §6.8).
    loop {
        let idle_before = requests.is_idle();
        tokio::select! {
            _ = connection.as_mut() => return,
            () = time::sleep(limits.stall) => {
                if idle_before && requests.is_idle() {
                    return;
                }
            }
        }
    }
}
