//! Request bodies over HTTP/1.1 and 2: passed on to a handler, or discarded.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use h2::RecvStream;
use hyper::body::{Body as _, Incoming};
use lastbyte_http3::Fields;
use tokio::time;

use super::{
    Shared,
    in_flight::{Connection, Counter},
};
use crate::{
    exchange::{Piece, channel::Sender},
    hop_by_hop::{is_hop_by_hop, named_by_connection},
};

/// The most of an unwanted body that is read. Over HTTP/1.1, a client that sends before it reads receives the response then, and
/// the connection is closed beyond that. Over HTTP/2 the stream is reset (RFC 9113 §8.1).
const DISCARD_MAX: usize = 256 << 10;

/// The body of a request.
#[derive(Debug)]
pub(super) enum RequestBody {
    Http1(Incoming),
    /// Counts what is read.
    Http2(RecvStream, Counter),
}

/// A body that is not complete, or not valid.
#[derive(Debug)]
struct CutOff;

impl From<h2::Error> for CutOff {
    /// Also of a reset with `NO_ERROR` (RFC 9113 §8.1).
    fn from(_: h2::Error) -> Self {
        Self
    }
}

impl RequestBody {
    /// Whether nothing of it is to be read, nor trailers.
    pub(super) fn is_end(&self) -> bool {
        match self {
            Self::Http1(body) => body.is_end_stream(),
            Self::Http2(body, _) => body.is_end_stream(),
        }
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<Piece, CutOff>> {
        match self {
            Self::Http1(body) => {
                let frame = ready!(Pin::new(body).poll_frame(context));
                let Some(frame) = frame.transpose().map_err(|_| CutOff)? else {
                    return Poll::Ready(Ok(Piece::End));
                };
                Poll::Ready(Ok(match frame.into_data() {
                    Ok(bytes) => Piece::Data(bytes),
                    // There are no other kinds.
                    Err(frame) => trailers(&frame.into_trailers().unwrap_or_default()),
                }))
            }
            Self::Http2(body, counter) => loop {
                if let Some(bytes) = ready!(body.poll_data(context)).transpose()? {
                    body.flow_control().release_capacity(bytes.len())?;
                    counter.add(bytes.len());
                    if !bytes.is_empty() {
                        return Poll::Ready(Ok(Piece::Data(bytes)));
                    }
                } else {
                    let map = ready!(body.poll_trailers(context))?;
                    return Poll::Ready(Ok(map.map_or(Piece::End, |map| trailers(&map))));
                }
            },
        }
    }
}

fn trailers(map: &http::HeaderMap) -> Piece {
    let mut fields = Fields::new();
    add_regular(map, &mut fields);
    Piece::Trailers(fields)
}

/// Passes on a body, as fast as it is read. Only the time spent waiting for the client counts.
pub(super) async fn forward(
    connection: Arc<Connection>,
    mut body: RequestBody,
    incoming: Sender<Piece>,
) {
    let shared = &connection.shared;
    let (mut waited, mut moved) = (Duration::ZERO, 0);
    loop {
        let has_room = poll_fn(|context| incoming.poll_ready(context)).await;
        if has_room.is_err() {
            return discard_unneeded(shared, body).await;
        }
        let began = time::Instant::now();
        let next = poll_fn(|context| {
            if incoming.poll_aborted(context).is_ready() {
                return Poll::Ready(None);
            }
            body.poll_next(context).map(Some)
        });
        let next = time::timeout(shared.limits.stall, next).await;
        waited += began.elapsed();
        let piece = match next {
            Ok(Some(Ok(piece))) => piece,
            Ok(None) => return discard_unneeded(shared, body).await,
            // Dropped without an end. Over HTTP/2, the response is cancelled with its stream.
            Ok(Some(Err(CutOff))) => {
                if matches!(body, RequestBody::Http1(_)) {
                    connection.on_left();
                }
                return;
            }
            // Too slow.
            Err(_) => return,
        };
        if let Piece::Data(bytes) = &piece {
            moved += bytes.len() as u64;
        }
        let is_end = piece == Piece::End;
        incoming.push(piece);
        if is_end {
            return;
        }
        if waited >= shared.limits.stall {
            if moved < shared.limits.stall_bytes {
                return;
            }
            (waited, moved) = (Duration::ZERO, 0);
        }
    }
}

/// Passes on what a client sends into a tunnel, which may be nothing for any time: the handler limits that.
pub(super) async fn forward_tunnel(mut body: RequestBody, incoming: Sender<Piece>) {
    while poll_fn(|context| incoming.poll_ready(context))
        .await
        .is_ok()
    {
        let next = poll_fn(|context| {
            if incoming.poll_aborted(context).is_ready() {
                return Poll::Ready(None);
            }
            body.poll_next(context).map(Some)
        });
        // Without an end: reset by the client.
        let Some(Ok(piece)) = next.await else {
            return;
        };
        let is_end = piece == Piece::End;
        incoming.push(piece);
        if is_end {
            return;
        }
    }
}

/// The handler does not need the rest of a body. Over HTTP/2 a part of it is read: to some clients a reset stream is a failure,
/// also after a whole response. Over HTTP/1.1 nothing is read, and the connection is closed.
async fn discard_unneeded(shared: &Shared, body: RequestBody) {
    if matches!(body, RequestBody::Http2(..)) {
        discard(shared, Some(body)).await;
    }
}

/// Reads an unwanted body up to a limit.
pub(super) async fn discard(shared: &Shared, body: Option<RequestBody>) {
    let Some(mut body) = body else {
        return;
    };
    let mut left = DISCARD_MAX;
    let all = async {
        loop {
            match poll_fn(|context| body.poll_next(context)).await {
                Ok(Piece::Data(bytes)) => left = left.saturating_sub(bytes.len()),
                Ok(Piece::Trailers(_)) => {}
                Ok(Piece::End) | Err(CutOff) => return,
            }
            if left == 0 {
                return;
            }
        }
    };
    // A client that is slow does not hold the stream for longer.
    let _ = time::timeout(shared.limits.stall, all).await;
}

/// Adds the fields of a message, without those that concern one connection only (RFC 9110 §7.6.1).
pub(super) fn add_regular(map: &http::HeaderMap, fields: &mut Fields) {
    let named = named_by_connection(map);
    for (name, value) in map {
        let name = name.as_str();
        if !is_hop_by_hop(name) && name != "host" && !named.iter().any(|known| known == name) {
            fields.push(name, value.as_bytes());
        }
    }
}
