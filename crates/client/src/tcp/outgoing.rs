//! The body of a request over TCP.

use core::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};
use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use super::Content;

/// The most bytes read from a source at a time.
const PIECE_LEN: u64 = 64 << 10;

type Gate = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The body of a request.
pub(super) struct Outgoing {
    content: Content,
    offset: u64,
    sent: Arc<AtomicU64>,
    /// Set when hyper has received the whole body.
    is_done: Arc<AtomicBool>,
    /// Holds the body back until `100 Continue` (RFC 9110 §10.1.1).
    gate: Option<Gate>,
}

impl Outgoing {
    pub(super) fn new(content: Content, sent: Arc<AtomicU64>, gate: Option<Gate>) -> Self {
        let is_done = AtomicBool::new(matches!(content, Content::Empty));
        Self {
            content,
            offset: 0,
            sent,
            is_done: Arc::new(is_done),
            gate,
        }
    }

    /// A flag that is set when hyper has received the whole body.
    pub(super) fn is_done(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_done)
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if let Some(gate) = &mut self.gate {
            ready!(gate.as_mut().poll(context));
            self.gate = None;
        }
        let this = &mut *self;
        let piece = match &mut this.content {
            Content::Empty => return Poll::Ready(None),
            Content::Source(source) => {
                let len = (source.len() - this.offset).min(PIECE_LEN);
                if len == 0 {
                    return Poll::Ready(None);
                }
                let mut piece = vec![0; len as usize];
                let read = source.read_at(this.offset, &mut piece);
                this.offset += len;
                let is_last = this.offset >= source.len();
                this.is_done.store(is_last, Ordering::Relaxed);
                read.map(|()| Bytes::from(piece))
                    .map_err(|error| io::Error::other(error.to_string()))
            }
            Content::Stream(pieces) => match ready!(pieces.poll_recv(context)) {
                None => {
                    this.is_done.store(true, Ordering::Relaxed);
                    return Poll::Ready(None);
                }
                Some(piece) => piece,
            },
        };
        if let Ok(piece) = &piece {
            self.sent.fetch_add(piece.len() as u64, Ordering::Relaxed);
        }
        Poll::Ready(Some(piece.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Empty => true,
            Content::Source(source) => self.offset >= source.len(),
            Content::Stream(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Empty => SizeHint::with_exact(0),
            Content::Source(source) => SizeHint::with_exact(source.len() - self.offset),
            Content::Stream(_) => SizeHint::default(),
        }
    }
}
