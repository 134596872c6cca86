//! A connection of HTTP/2 (RFC 9113), after the handshake of TLS.
//!
//! h2 owns frames, HPACK, flow control and the limits on floods of frames. This module accepts requests, closes idle
//! connections, detects a client that is gone, and shuts down gracefully. [`stream`] owns the responses, [`windows`] the growth of
//! the receive windows.
//!
//! # Decisions
//!
//! - *A response that is known at once, and for which there is room, has no task*: it is passed to h2 by the task of the
//!   connection, after all requests that were received with it were accepted, so that the most urgent is the first. Others
//!   are tasks.

mod liveness;
pub(super) mod stream;
mod windows;

use std::{
    future, mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use h2::{Reason, server};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time,
};
use tokio_rustls::server::TlsStream;

use self::{
    liveness::Liveness,
    stream::Accepted,
    windows::{CONNECTION_WINDOW, Windows},
};
use super::{
    Shared, Stage,
    in_flight::Connection,
    pace::{PacedExecutor, Slowest},
    request,
    transport::{Sent, Transport},
    turns::{ROOM, Turns},
};

/// Requests that the client cancelled before they were accepted ("rapid reset"); beyond, the connection is closed.
const PENDING_RESETS: usize = 50;
/// During shutdown: time that a new connection waits for its first request.
const FIRST_REQUEST: Duration = Duration::from_secs(1);

/// Serves a connection until it is closed.
pub(super) fn serve<S>(
    shared: &Shared,
    tls: TlsStream<S>,
    requests: Arc<Connection>,
    turns: Arc<Turns>,
) -> Stage<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut stopped = shared.stopped.clone();
    let limits = shared.limits;
    let slowest = Slowest {
        timeout: limits.stall,
        bytes: limits.stall_bytes,
    };
    let transport = Transport::new(tls);
    let windows = Windows::new(&requests);
    let mut builder = server::Builder::new();
    builder
        .max_concurrent_streams(limits.streams)
        .max_header_list_size(u32::try_from(limits.head_size).unwrap_or(u32::MAX))
        // More than h2 has at a time: its room for a piece is that in the client's windows.
        .max_send_buffer_size(2 * ROOM)
        .initial_window_size(windows.initial())
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_pending_accept_reset_streams(PENDING_RESETS)
        .enable_connect_protocol();
    let accepting = Accepting {
        state: State::Handshake(builder.handshake(transport.clone())),
        requests: Arc::clone(&requests),
        transport: transport.clone(),
        liveness: Liveness::new(limits.idle, limits.stall),
        windows,
        accepted: Vec::new(),
        is_ending: false,
    };
    let mut connection = Serving {
        sent: Sent::new(accepting, transport.clone(), turns),
        executor: PacedExecutor::new(slowest),
    };
    let output = transport;
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
        connection.sent.connection.as_mut().graceful_shutdown();
        // The last response is followed by a PING: the server does not wait for clients that do not answer (RFC 9113 §6.8). A client
        // that still receives the last response is not idle.
        let is_idle = || requests.is_idle() && !output.is_sending();
        loop {
            let idle_before = is_idle();
            tokio::select! {
                () = &mut connection => return,
                () = time::sleep(limits.stall) => {
                    if idle_before && is_idle() {
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

/// Runs a connection until it has received a request, for up to [`FIRST_REQUEST`]. Returns whether it is over before that.
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
    time::timeout(FIRST_REQUEST, until).await == Ok(true)
}

/// A connection that accepts requests, sends what was collected, and then responds to what it accepted.
struct Serving<S> {
    sent: Sent<Accepting<S>, S>,
    executor: PacedExecutor,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Future for Serving<S> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Self { sent, executor } = self.get_mut();
        let is_over = Pin::new(&mut *sent).poll(context);
        // What they pass to h2 wakes the connection.
        for accepted in mem::take(&mut sent.connection.accepted) {
            accepted.respond(context, executor);
        }
        is_over
    }
}

/// Accepts requests. Completes when the connection is over.
struct Accepting<S> {
    state: State<S>,
    requests: Arc<Connection>,
    transport: Transport<S>,
    liveness: Liveness,
    windows: Windows,
    /// Requests since the last poll: no more than the connection has streams.
    accepted: Vec<Accepted>,
    is_ending: bool,
}

enum State<S> {
    /// Before the client's preface (RFC 9113 §3.4).
    Handshake(server::Handshake<Transport<S>, Bytes>),
    Open(server::Connection<Transport<S>, Bytes>),
}

impl<S: AsyncRead + AsyncWrite + Unpin> Accepting<S> {
    /// Sends GOAWAY (RFC 9113 §6.8).
    fn graceful_shutdown(mut self: Pin<&mut Self>) {
        self.is_ending = true;
        if let State::Open(connection) = &mut self.state {
            connection.graceful_shutdown();
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Future for Accepting<S> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        if let State::Handshake(handshake) = &mut this.state {
            let Ok(mut connection) = ready!(Pin::new(handshake).poll(context)) else {
                return Poll::Ready(());
            };
            this.liveness.start(connection.ping_pong());
            if this.is_ending {
                connection.graceful_shutdown();
            }
            this.state = State::Open(connection);
        }
        let State::Open(connection) = &mut this.state else {
            return Poll::Pending;
        };
        if this.liveness.is_gone(context, || this.transport.received()) {
            connection.abrupt_shutdown(Reason::NO_ERROR);
        }
        this.windows.follow(context, connection, &mut this.liveness);
        // An error is sent to the client before it is returned.
        while let Some(Ok((request, respond))) = ready!(connection.poll_accept(context)) {
            let in_flight = this.requests.begin(|| request::priority(request.headers()));
            this.accepted
                .push(Accepted::new(in_flight, request, respond));
        }
        Poll::Ready(())
    }
}
