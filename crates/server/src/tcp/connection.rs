//! One connection over TCP: the handshake, the version of HTTP as selected by ALPN (RFC 7301), requests over HTTP/1.1, and the
//! close.

use std::{
    net::SocketAddr,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time,
};
use tokio_rustls::server::TlsStream;

use super::{
    ConnectionGuard, HandshakeFailure, Shared, Stage, count, http2,
    in_flight::Connection,
    interim::WithInterim,
    lingering::{ReturnOnDrop, linger},
    observed::{self, Observation, Session},
    request,
    stalled::Stalled,
    turns::Turns,
};
use crate::challenges::ACME_TLS;

/// The ALPN identifier of HTTP/2 (RFC 9113 §3.2).
const HTTP2: &[u8] = b"h2";
/// Bytes of a response that wait for room in an HTTP/1.1 connection, plus one piece; and bytes of a request that are
/// read at a time.
const BUFFER: usize = 64 << 10;
/// During shutdown: time that an idle HTTP/1.1 connection waits for a request.
const NEXT_REQUEST: Duration = Duration::from_secs(1);

/// Counts a connection as closed when it is dropped.
struct Counted(Arc<Shared>);

impl Drop for Counted {
    fn drop(&mut self) {
        count(&self.0.counts.closed);
    }
}

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
    let requests = match handshake.await {
        Ok(requests) => requests,
        Err(failure) => {
            if failure == HandshakeFailure::ServerName {
                shared.name_refused.notify_one();
            }
            if let Some(counter) = shared.counts.handshakes_failed.get(failure as usize) {
                count(counter);
            }
            return;
        }
    };
    requests.await;
    if let Ok(stream) = returned.await {
        let close: Stage<_> = Box::pin(linger(stream, shared.limits.stall));
        close.await;
    }
    drop((counted, alive));
}

/// The handshake. Returns the stage of the requests.
async fn handshake(
    shared: Arc<Shared>,
    stream: ReturnOnDrop<observed::Stream<TcpStream>>,
    (remote, number): (SocketAddr, u64),
    observation: Option<Arc<Observation>>,
) -> Result<Stage<()>, HandshakeFailure> {
    let stream = Stalled::new(stream, shared.limits.stall);
    let has_stalled = stream.has_stalled();
    let accepted = time::timeout(shared.limits.handshake, shared.acceptor.accept(stream)).await;
    let tls = accepted
        .map_err(|_| HandshakeFailure::Timeout)?
        .map_err(|error| HandshakeFailure::of(&error))?;
    let session = tls.get_ref().1;
    count(&shared.counts.handshakes);
    let is_resumed = session.handshake_kind() == Some(rustls::HandshakeKind::Resumed);
    if is_resumed {
        count(&shared.counts.resumed);
    }
    if session.alpn_protocol() == Some(ACME_TLS) {
        // The certificate is all of it (RFC 8737 §3).
        return Ok(Box::pin(async move { drop(tls) }));
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
    let client = (remote, number);
    let new = |turns| {
        Connection::new(
            &shared,
            client,
            config_hash,
            observation,
            turns,
            has_stalled,
        )
    };
    Ok(if is_http2 {
        let turns = Arc::<Turns>::default();
        http2::serve(&shared, tls, new(Some(Arc::clone(&turns))), turns)
    } else {
        serve_http1(&shared, tls, new(None))
    })
}

fn serve_http1<S>(shared: &Shared, tls: TlsStream<S>, requests: Arc<Connection>) -> Stage<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut stopped = shared.stopped.clone();
    let of_connection = Arc::clone(&requests);
    let stream = WithInterim::new(tls, requests.interim.clone());
    let service = service_fn(move |request| request::serve(&of_connection, request));
    // Pinned before it is in a future, which would contain it twice: where it is created, and where it is pinned.
    let mut connection = Box::pin(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(shared.limits.head)
            .max_header_size(shared.limits.head_size)
            // The header of a request must fit in it, too.
            .max_buf_size(BUFFER.max(2 * shared.limits.head_size))
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades(),
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

#[cfg(test)]
mod tests;
