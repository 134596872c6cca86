//! The body of a request on its way to the server behind.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Sleep, sleep};

use crate::{
    exchange::{Incoming, Piece},
    tcp::header_map,
};

/// What comes from the client, piece by piece, as it is asked for.
#[derive(Debug)]
pub(super) struct RequestBody {
    first: Option<Piece>,
    /// Gone when all of it came.
    rest: Option<Incoming>,
    len: Option<u64>,
    limit: Duration,
    /// How many pieces were passed on.
    passed: Arc<AtomicU64>,
    timer: Pin<Box<Option<Sleep>>>,
}

impl RequestBody {
    pub(super) fn empty() -> Self {
        Self {
            first: None,
            rest: None,
            len: Some(0),
            limit: Duration::ZERO,
            passed: Arc::default(),
            timer: Box::pin(None),
        }
    }

    pub(super) fn new(first: Piece, rest: Incoming, len: Option<u64>, limit: Duration) -> Self {
        Self {
            first: Some(first),
            rest: Some(rest),
            len,
            limit,
            passed: Arc::default(),
            timer: Box::pin(None),
        }
    }

    /// Grows with each piece that was passed on.
    pub(super) fn passed(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.passed)
    }

    fn next(&mut self, context: &mut Context<'_>) -> Poll<Option<Piece>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(first));
        }
        let Some(rest) = &mut self.rest else {
            return Poll::Ready(Some(Piece::End));
        };
        if let Poll::Ready(piece) = rest.poll_next(context) {
            self.timer.set(None);
            return Poll::Ready(piece);
        }
        if self.timer.is_none() {
            self.timer.set(Some(sleep(self.limit)));
        }
        match self.timer.as_mut().as_pin_mut() {
            // A client that says nothing for so long has given up.
            Some(timer) => timer.poll(context).map(|()| None),
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
        self.passed.fetch_add(1, Ordering::Relaxed);
        Poll::Ready(match piece {
            Some(Piece::Data(bytes)) => Some(Ok(Frame::data(bytes))),
            Some(Piece::Trailers(fields)) => Some(Ok(Frame::trailers(header_map(&fields)))),
            Some(Piece::End) => {
                self.rest = None;
                None
            }
            None => {
                self.rest = None;
                Some(Err(io::Error::other("the client gave up")))
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
