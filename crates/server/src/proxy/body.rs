//! The body of a request on its way to the upstream.
//!
//! Owns the pieces from the client, as hyper requests them, those that are kept so that the request can be sent again,
//! and what ended them early. It ends with its exchange: once the response is over or cancelled, no more of the request
//! is sent.
//!
//! # Decisions
//!
//! - *One source, one body for each attempt*: hyper may hold the body of a failed attempt for a while. Only the body of
//!   the latest attempt reads.
//! - *The queue is bounded*: it holds at most [`KEPT_MAX`] and one piece, and after more than that, or from the start of
//!   the response on, only a piece that was read in advance. What it keeps counts against the budget of the client's
//!   connection.
//! - *One piece is read in advance, if it is there*: so the last DATA frame towards an HTTP/2 upstream has `END_STREAM`.

use std::{
    collections::VecDeque,
    convert::Infallible,
    io,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU8, AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
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
use crate::exchange::{Incoming, Piece, channel::Size as _};

/// The most of a body that is kept so that its request can be sent again: 64 KiB, and the overhead of its pieces.
const KEPT_MAX: usize = 80 << 10;

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

/// The body of a request, for all attempts to send it.
#[derive(Debug)]
pub(super) struct Upload {
    state: Mutex<State>,
    len: Option<u64>,
    progress: Arc<Progress>,
}

#[derive(Debug)]
struct State {
    /// The number of the latest attempt.
    attempt: u32,
    /// What was read: first what this attempt has sent, then what it has not.
    queue: VecDeque<Piece>,
    /// The number of pieces of the queue that were sent; 0 if they are not kept.
    sent: usize,
    /// Whether pieces that were sent are kept.
    keeps: bool,
    /// The size of the queue while they are.
    kept: usize,
    /// Whether the end was read.
    is_over: bool,
    source: Option<Source>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Upload {
    pub(super) fn empty() -> Arc<Self> {
        Self::of(Some(Piece::End), None, Some(0))
    }

    /// `first`: what of it was read, if anything.
    pub(super) fn new(first: Option<Piece>, source: Source, len: Option<u64>) -> Arc<Self> {
        Self::of(first, Some(source), len)
    }

    fn of(first: Option<Piece>, source: Option<Source>, len: Option<u64>) -> Arc<Self> {
        let mut state = State {
            attempt: 0,
            queue: VecDeque::new(),
            sent: 0,
            keeps: true,
            kept: 0,
            is_over: false,
            source,
            timer: None,
        };
        if let Some(first) = first {
            state.push(first);
        }
        Arc::new(Self {
            state: Mutex::new(state),
            len,
            progress: Arc::default(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A handle to its progress.
    pub(super) fn progress(&self) -> Arc<Progress> {
        Arc::clone(&self.progress)
    }

    /// The body for another attempt, from its start. Those of earlier attempts end.
    pub(super) fn attempt(self: &Arc<Self>) -> RequestBody {
        let mut state = self.state();
        state.attempt += 1;
        state.sent = 0;
        RequestBody {
            upload: Arc::clone(self),
            attempt: state.attempt,
            stream: None,
        }
    }

    /// Whether all of it that was sent is still held.
    #[cfg(test)]
    pub(super) fn is_kept(&self) -> bool {
        self.state().keeps && self.progress.cause().is_none()
    }

    /// Ends the body of the last attempt, if all of it that was sent is still held, so that another attempt can send it. Otherwise
    /// returns false. In one step: the task that sends the body may still run.
    pub(super) fn retire(&self) -> bool {
        let mut state = self.state();
        let is_held = state.keeps && self.progress.cause().is_none();
        if is_held {
            state.attempt += 1;
            state.sent = 0;
        }
        is_held
    }

    /// There will be no other attempt: what was sent is dropped.
    pub(super) fn release(&self) {
        self.state().release();
    }
}

impl State {
    fn release(&mut self) {
        self.queue.drain(..self.sent);
        (self.sent, self.keeps, self.kept) = (0, false, 0);
        self.count_kept();
    }

    /// Counts what is kept against the budget of the client's connection.
    fn count_kept(&self) {
        if let Some(source) = &self.source {
            source.incoming.set_kept(self.kept);
        }
    }

    fn push(&mut self, piece: Piece) {
        self.is_over = matches!(piece, Piece::End);
        let size = piece.size();
        self.queue.push_back(piece);
        if self.keeps {
            self.kept += size;
            if self.kept > KEPT_MAX {
                self.release();
            } else {
                self.count_kept();
            }
        }
    }

    /// Whether all pieces that were read were sent.
    fn is_drained(&self) -> bool {
        self.sent == self.queue.len()
    }

    fn is_end_stream(&self) -> bool {
        match self.queue.get(self.sent) {
            Some(next) => matches!(next, Piece::End),
            None => self.is_over,
        }
    }

    /// Reads a piece if it is there.
    fn read(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Cause>> {
        let Some(source) = &mut self.source else {
            return Poll::Ready(Err(Cause::CutOff));
        };
        let Poll::Ready(piece) = source.incoming.poll_next(context) else {
            return Poll::Pending;
        };
        source.client.on_progress(Side::Request);
        self.timer = None;
        Poll::Ready(piece.map(|piece| self.push(piece)).ok_or(Cause::CutOff))
    }

    /// Waits for a piece until it is late.
    fn wait(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Cause>> {
        if let Poll::Ready(result) = self.read(context) {
            return Poll::Ready(result);
        }
        let Some(source) = &mut self.source else {
            return Poll::Pending;
        };
        if Pin::new(&mut source.over).poll(context).is_ready() {
            return Poll::Ready(Err(Cause::CutOff));
        }
        if self.timer.is_none() {
            self.timer = Some(Box::pin(sleep(source.limit)));
            source.client.on_wait(Side::Request);
        }
        match &mut self.timer {
            Some(timer) => timer.as_mut().poll(context).map(|()| Err(Cause::Late)),
            None => Poll::Pending,
        }
    }

    /// The next piece to send.
    fn next(&mut self, context: &mut Context<'_>) -> Poll<Result<Piece, Cause>> {
        if self.is_drained() {
            if self.is_over {
                return Poll::Ready(Ok(Piece::End));
            }
            ready!(self.wait(context))?;
        }
        let piece = if self.keeps {
            let next = self.queue.get(self.sent).cloned();
            self.sent += usize::from(next.is_some());
            next
        } else {
            self.queue.pop_front()
        };
        let piece = piece.unwrap_or(Piece::End);
        if matches!(piece, Piece::Data(_)) && self.is_drained() && !self.is_over {
            // An error is found again by the next call.
            let _ = self.read(context);
        }
        Poll::Ready(Ok(piece))
    }
}

/// The pieces of a body for one attempt, as they are requested.
#[derive(Debug)]
pub(super) struct RequestBody {
    upload: Arc<Upload>,
    attempt: u32,
    stream: Option<Stream>,
}

impl RequestBody {
    /// Keeps a stream in use as long as the body.
    pub(super) fn hold(&mut self, stream: Stream) {
        self.stream = Some(stream);
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let upload = &self.upload;
        let mut state = upload.state();
        if state.attempt != self.attempt {
            let error = io::Error::other("the request was sent again");
            return Poll::Ready(Some(Err(error)));
        }
        let Poll::Ready(piece) = state.next(context) else {
            return Poll::Pending;
        };
        upload.progress.passed.fetch_add(1, Ordering::Relaxed);
        Poll::Ready(match piece {
            Ok(Piece::Data(bytes)) => Some(Ok(Frame::data(bytes))),
            Ok(Piece::Trailers(trailers)) => {
                let source = state.source.as_ref();
                let map = source.map(|it| fields::request_trailers(&trailers, &it.upstream));
                Some(Ok(Frame::trailers(map.unwrap_or_default())))
            }
            Ok(Piece::End) => None,
            Err(cause) => {
                upload.progress.fail(cause);
                Some(Err(io::Error::other("the client cancelled the request")))
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        let state = self.upload.state();
        state.attempt == self.attempt && state.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let len = self.upload.len;
        len.map_or(SizeHint::default(), SizeHint::with_exact)
    }
}

#[cfg(test)]
mod tests;
