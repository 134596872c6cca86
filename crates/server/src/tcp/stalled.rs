//! A stream whose peer reads nothing for too long.
//!
//! Owns the time since something could be written. A peer that sends nothing is handled elsewhere.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep, sleep},
};

/// A stream with a time limit for stalls.
#[derive(Debug)]
pub struct Stalled<S> {
    stream: S,
    /// `None`: there is none.
    limit: Option<Duration>,
    timer: Pin<Box<Sleep>>,
    is_waiting: bool,
    expired: Arc<AtomicBool>,
}

impl<S> Stalled<S> {
    /// Writing fails once nothing could be written for `limit`.
    pub fn new(stream: S, limit: Duration) -> Self {
        Self {
            stream,
            limit: Some(limit),
            timer: Box::pin(sleep(limit)),
            is_waiting: false,
            expired: Arc::default(),
        }
    }

    /// Removes the limit.
    pub(crate) fn lift(&mut self) {
        self.limit = None;
    }

    /// Whether writing failed because nothing could be written for too long; also known after the stream is dropped.
    pub fn has_stalled(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.expired)
    }

    fn watch<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let until = self
            .limit
            .and_then(|limit| Instant::now().checked_add(limit));
        let (Poll::Pending, Some(until)) = (&written, until) else {
            self.is_waiting = false;
            return written;
        };
        if !self.is_waiting {
            self.is_waiting = true;
            self.timer.as_mut().reset(until);
        }
        match self.timer.as_mut().poll(context) {
            Poll::Ready(()) => {
                self.expired.store(true, Ordering::Relaxed);
                Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Stalled<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Stalled<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, buffer);
        self.watch(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, buffers);
        self.watch(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
