//! Interim responses over HTTP/1.1 (RFC 9110 §15.2), which hyper does not send.
//!
//! The stream under hyper writes them when hyper has written everything and flushes. A response waits until those before it are
//! written, so they come after the previous response and before its header. One is in memory at a time.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker, ready},
};

use bytes::{Buf, Bytes};
use lastbyte_origin::wakers::note;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The most interim responses to a request. Further ones are not sent.
pub(super) const INTERIM_MAX: u32 = 100;

/// The interim response of a connection that is not written yet.
#[derive(Debug, Default)]
pub(super) struct Interim(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    unwritten: Bytes,
    /// Of the response that waits until it is written.
    waker: Option<Waker>,
}

impl Interim {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until nothing is left to write.
    pub(super) fn poll_written(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        if state.unwritten.is_empty() {
            return Poll::Ready(());
        }
        note(&mut state.waker, context.waker());
        Poll::Pending
    }

    /// Sends an encoded response once the connection is polled. Nothing may be left to write.
    pub(super) fn send(&self, response: Bytes) {
        self.lock().unwritten = response;
    }

    /// Writes what is left.
    fn poll_write<S: AsyncWrite + Unpin>(
        &self,
        context: &mut Context<'_>,
        stream: &mut S,
    ) -> Poll<io::Result<()>> {
        let mut state = self.lock();
        while !state.unwritten.is_empty() {
            let len = ready!(Pin::new(&mut *stream).poll_write(context, &state.unwritten))?;
            if len == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            state.unwritten.advance(len);
        }
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        Poll::Ready(Ok(()))
    }
}

/// The stream of a connection, with interim responses if it has them.
#[derive(Debug)]
pub(super) struct WithInterim<S> {
    stream: S,
    interim: Option<Arc<Interim>>,
}

impl<S> WithInterim<S> {
    pub(super) const fn new(stream: S, interim: Option<Arc<Interim>>) -> Self {
        Self { stream, interim }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WithInterim<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WithInterim<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, buffer)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, buffers)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { stream, interim } = self.get_mut();
        if let Some(interim) = interim {
            ready!(interim.poll_write(context, stream))?;
        }
        Pin::new(stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
