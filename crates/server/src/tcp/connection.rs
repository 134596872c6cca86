//! One connection over TCP: the handshake, the requests over HTTP/1.1 or 2 as selected by ALPN (RFC 7301), the idle timeout
//! and the close.

use std::{
    future,
    net::SocketAddr,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    task::Poll,
    time::Duration,
};

use hyper::{
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{net::TcpStream, time};
use tokio_rustls::server::TlsStream;

use super::{
    ConnectionGuard, Shared, count,
    in_flight::Connection,
    lingering::{ReturnOnDrop, linger},
    observed::{self, Observation, Session},
    pace::{PacedExecutor, Slowest},
    request,
    stalled::Stalled,
    transport::{Sent, Transport},
    turns::{ROOM, Turns},
};

/// The ALPN identifier of HTTP/2 (RFC 9113 §3.2).
const HTTP2: &[u8] = b"h2";
/// Bytes of a response that wait for room in an HTTP/1.1 connection, plus one piece; and bytes of a request that are
/// read at a time.
const BUFFER: usize = 64 << 10;
/// Receive windows for request bodies, of a stream and of the connection, in bytes.
const STREAM_WINDOW: u32 = 256 << 10;
const CONNECTION_WINDOW: u32 = 1 << 20;
/// Requests that the client cancelled before they were accepted ("rapid reset"); beyond, the connection is closed.
const PENDING_RESETS: usize = 50;
/// During shutdown: time that an idle HTTP/1.1 connection waits for a request, and a new HTTP/2 connection for its first.
const NEXT_REQUEST: Duration = Duration::from_secs(1);

/// Counts a connection as closed when it is dropped.
struct Counted(Arc<Shared>);

impl Drop for Counted {
    fn drop(&mut self) {
        count(&self.0.counts.closed);
    }
}

type Tls = TlsStream<Stalled<ReturnOnDrop<observed::Stream<TcpStream>>>>;

/// A stage of a connection: the handshake, the requests, the close. Each has an allocation of its own, so that an idle connection
/// has the memory of its stage, and not that of the largest.
type Stage<T> = Pin<Box<dyn Future<Output = T> + Send>>;

pub(super) async fn serve(
    shared: Arc<Shared>,
    stream: TcpStream,
    remote: SocketAddr,
    alive: ConnectionGuard,
) {
    count(&shared.counts.accepted);
    let number = shared.next_number.fetch_add(1, Ordering::Relaxed);
    let counted = Counted(Arc::clone(&shared));
    // Responses are written in one piece if there is room, so delaying them has no benefit.
    let _ = stream.set_nodelay(true);
    let log = shared.log.clone();
    let observation = log.map(|log| {
        let sites = shared.sites.clone();
        Arc::new(Observation::new(log, sites, number, shared.thread))
    });
    let stream = observed::Stream::new(stream, observation.clone());
    let (stream, returned) = ReturnOnDrop::new(stream);
    let handshake: Stage<_> = Box::pin(handshake(
        Arc::clone(&shared),
        stream,
        (remote, number),
        observation,
    ));
    let Some(requests) = handshake.await else {
        count(&shared.counts.handshakes_failed);
        return;
    };
    requests.await;
    if let Ok(stream) = returned.await {
        let close: Stage<_> = Box::pin(linger(stream, shared.limits.stall));
        close.await;
    }
    drop((counted, alive));
}

/// The handshake. Returns the stage of the requests, or `None` if it fails.
async fn handshake(
    shared: Arc<Shared>,
    stream: ReturnOnDrop<observed::Stream<TcpStream>>,
    (remote, number): (SocketAddr, u64),
    observation: Option<Arc<Observation>>,
) -> Option<Stage<()>> {
    let stream = Stalled::new(stream, shared.limits.stall);
    let accepted = time::timeout(shared.limits.handshake, shared.acceptor.accept(stream)).await;
    let tls = accepted.ok()?.ok()?;
    let session = tls.get_ref().1;
    count(&shared.counts.handshakes);
    let is_resumed = session.handshake_kind() == Some(rustls::HandshakeKind::Resumed);
    if is_resumed {
        count(&shared.counts.resumed);
    }
    let is_http2 = session.alpn_protocol() == Some(HTTP2);
    let config_hash = shared.arms.current().config_hash();
    if let Some(observation) = &observation {
        let is_tls13 = session.protocol_version() == Some(rustls::ProtocolVersion::TLSv1_3);
        observation.on_handshake(Session {
            proto: if is_http2 { "HTTP/2" } else { "HTTP/1.1" },
            tls: if is_tls13 { "1.3" } else { "1.2" },
            is_resumed,
            is_multiplexed: is_http2,
            config_hash: config_hash.clone(),
        });
    }
    let new = |turns| Connection::new(&shared, (remote, number), config_hash, observation, turns);
    Some(if is_http2 {
        let turns = Arc::<Turns>::default();
        serve_http2(&shared, tls, new(Some(Arc::clone(&turns))), turns)
    } else {
        serve_http1(&shared, tls, new(None))
    })
}

fn serve_http1(shared: &Shared, tls: Tls, requests: Arc<Connection>) -> Stage<()> {
    let mut stopped = shared.stopped.clone();
    let of_connection = Arc::clone(&requests);
    let service = service_fn(move |request| request::serve(&of_connection, request));
    // Pinned before it is in a future, which would contain it twice: where it is created, and where it is pinned.
    let mut connection = Box::pin(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(shared.limits.head)
            .max_header_size(shared.limits.head_size)
            // The header of a request must fit in it, too.
            .max_buf_size(BUFFER.max(2 * shared.limits.head_size))
            .serve_connection(TokioIo::new(tls), service),
    );
    Box::pin(async move {
        let is_over = tokio::select! {
            _ = connection.as_mut() => true,
            _ = stopped.wait_for(|stopped| *stopped) => false,
        };
        // Responses have `connection: close` from now on. A client that has just connected, or received a response without it,
        // is about to send a request: hyper would close the connection without a response.
        let mut is_over = is_over;
        let mut was_idle = false;
        loop {
            let is_idle = requests.is_idle();
            if is_over {
                return;
            }
            if is_idle && was_idle {
                break;
            }
            was_idle = is_idle;
            let next = time::timeout(NEXT_REQUEST, connection.as_mut());
            is_over = next.await.is_ok();
        }
        connection.as_mut().graceful_shutdown();
        // The error concerns only the client, which has received the response to it.
        let _ = connection.await;
    })
}

fn serve_http2(
    shared: &Shared,
    tls: Tls,
    requests: Arc<Connection>,
    turns: Arc<Turns>,
) -> Stage<()> {
    let mut stopped = shared.stopped.clone();
    let limits = shared.limits;
    let slowest = Slowest {
        timeout: limits.stall,
        bytes: limits.stall_bytes,
    };
    let of_connection = Arc::clone(&requests);
    let service = service_fn(move |request| request::serve(&of_connection, request));
    let transport = Transport::new(tls);
    let connection = http2::Builder::new(PacedExecutor::new(slowest))
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.streams)
        .max_header_list_size(u32::try_from(limits.head_size).unwrap_or(u32::MAX))
        // Of each stream, plus one piece.
        .max_send_buf_size(ROOM)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_pending_accept_reset_streams(PENDING_RESETS)
        // Detects a client that is gone while nothing is being sent.
        .keep_alive_interval(limits.idle / 2)
        .keep_alive_timeout(limits.stall)
        .serve_connection(TokioIo::new(transport.clone()), service);
    let mut connection = Sent::new(connection, transport, turns);
    let cancelling = Arc::clone(&requests);
    let mut serving = Box::pin(async move {
        let mut seen = 0;
        loop {
            tokio::select! {
                () = &mut connection => return,
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
        // Otherwise it was idle for too long.
        let is_shutdown = *stopped.borrow();
        if is_shutdown && ends_before_request(&mut connection, &requests).await {
            return;
        }
        connection.connection.as_mut().graceful_shutdown();
        // The last response is followed by a PING, and its last bytes may wait for a window: the server does not wait for clients
        // that answer neither (RFC 9113 §6.8).
        loop {
            let idle_before = requests.is_idle();
            tokio::select! {
                () = &mut connection => return,
                () = time::sleep(limits.stall) => {
                    if idle_before && requests.is_idle() {
                        return;
                    }
                }
            }
        }
    });
    Box::pin(future::poll_fn(move |context| {
        if serving.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        // Each cancellation is a frame, for which the connection is polled.
        cancelling.poll_cancelled_too_many()
    }))
}

/// Runs a connection until it has received a request, for up to [`NEXT_REQUEST`]. Returns whether it is over before that.
///
/// Before a shutdown: a client that has just connected is about to send a request, and would have to connect again.
async fn ends_before_request(
    connection: &mut (impl Future + Unpin),
    requests: &Connection,
) -> bool {
    let until = future::poll_fn(|context| {
        if requests.started() == 0 && Pin::new(&mut *connection).poll(context).is_ready() {
            return Poll::Ready(true);
        }
        if requests.started() > 0 {
            Poll::Ready(false)
        } else {
            Poll::Pending
        }
    });
    time::timeout(NEXT_REQUEST, until).await == Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn size_of_future<A, B, C, D, F: Future>(_: &impl Fn(A, B, C, D) -> F) -> usize {
        size_of::<F>()
    }

    /// With all stages in it, it had 7.5 KB.
    #[test]
    fn the_future_of_a_connection_is_small() {
        let size = size_of_future(&serve);
        assert!(size <= 512, "{size}");
    }
}
