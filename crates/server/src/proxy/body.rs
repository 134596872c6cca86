//! The body of a request on its way to the upstream.
//!
//! Owns the pieces from the client, as hyper requests them, and what ended them early. It ends with its exchange: once
//! the response is over or cancelled, no more of the request is sent.

use std::{
    convert::Infallible,
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::{
    sync::oneshot,
    time::{Sleep, sleep},
};

use super::{
    fields,
    pool::Stream,
    slots::{Client, Side},
    upstream::Upstream,
};
use crate::exchange::{Incoming, Piece};

/// Why the body of a request ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// The client truncated it, or it is invalid.
    CutOff,
    /// The client stalled for too long.
    Late,
}

/// The state of a body while it is sent.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Number of pieces passed on.
    passed: AtomicU64,
    /// A [`Cause`], from 1 on.
    cause: AtomicU8,
}

impl Progress {
    pub(super) fn passed(&self) -> u64 {
        self.passed.load(Ordering::Relaxed)
    }

    pub(super) fn cause(&self) -> Option<Cause> {
        match self.cause.load(Ordering::Relaxed) {
            0 => None,
            1 => Some(Cause::CutOff),
            _ => Some(Cause::Late),
        }
    }

    fn fail(&self, cause: Cause) {
        let code = match cause {
            Cause::CutOff => 1,
            Cause::Late => 2,
        };
        self.cause.store(code, Ordering::Relaxed);
    }
}

/// The source of a body, and its limits.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) incoming: Incoming,
    pub(super) client: Arc<Client>,
    pub(super) upstream: Arc<Upstream>,
    /// Time limit for a stalled client.
    pub(super) limit: Duration,
    /// Closed when the exchange is over.
    pub(super) over: oneshot::Receiver<Infallible>,
}

/// The pieces from the client, as they are requested.
#[derive(Debug)]
pub(super) struct RequestBody {
    first: Option<Piece>,
    /// `None` once all of it arrived.
    rest: Option<Source>,
    len: Option<u64>,
    progress: Arc<Progress>,
    timer: Pin<Box<Option<Sleep>>>,
    stream: Option<Stream>,
}

impl RequestBody {
    pub(super) fn empty() -> Self {
        Self {
            first: None,
            rest: None,
            len: Some(0),
            progress: Arc::default(),
            timer: Box::pin(None),
            stream: None,
        }
    }

    pub(super) fn new(first: Piece, rest: Source, len: Option<u64>) -> Self {
        Self {
            first: Some(first),
            rest: Some(rest),
            len,
            ..Self::empty()
        }
    }

    /// A handle to its state.
    pub(super) fn progress(&self) -> Arc<Progress> {
        Arc::clone(&self.progress)
    }

    /// Keeps a stream in use as long as the body.
    pub(super) fn hold(&mut self, stream: Stream) {
        self.stream = Some(stream);
    }

    fn next(&mut self, context: &mut Context<'_>) -> Poll<Result<Piece, Cause>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Ok(first));
        }
        let Some(rest) = &mut self.rest else {
            return Poll::Ready(Ok(Piece::End));
        };
        if let Poll::Ready(piece) = rest.incoming.poll_next(context) {
            self.timer.set(None);
            rest.client.on_progress(Side::Request);
            return Poll::Ready(piece.ok_or(Cause::CutOff));
        }
        if Pin::new(&mut rest.over).poll(context).is_ready() {
            return Poll::Ready(Err(Cause::CutOff));
        }
        if self.timer.is_none() {
            self.timer.set(Some(sleep(rest.limit)));
            rest.client.on_wait(Side::Request);
        }
        match self.timer.as_mut().as_pin_mut() {
            Some(timer) => timer.poll(context).map(|()| Err(Cause::Late)),
            None => Poll::Pending,
        }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let Poll::Ready(piece) = self.next(context) else {
            return Poll::Pending;
        };
        self.progress.passed.fetch_add(1, Ordering::Relaxed);
        Poll::Ready(match piece {
            Ok(Piece::Data(bytes)) => Some(Ok(Frame::data(bytes))),
            Ok(Piece::Trailers(trailers)) => {
                let map = self
                    .rest
                    .as_ref()
                    .map(|rest| fields::request_trailers(&trailers, &rest.upstream));
                Some(Ok(Frame::trailers(map.unwrap_or_default())))
            }
            Ok(Piece::End) => {
                self.rest = None;
                None
            }
            Err(cause) => {
                self.rest = None;
                self.progress.fail(cause);
                Some(Err(io::Error::other("the client cancelled the request")))
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.rest.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        self.len.map_or(SizeHint::default(), SizeHint::with_exact)
    }
}
