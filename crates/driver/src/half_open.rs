//! A byte stream that stays readable after the server has stopped reading.
//!
//! A server may respond before it has read the request, and close the connection (RFC 9112 §9.5, RFC 9113 §8.1). Writing then
//! fails, although the response has arrived, and hyper and h2 report the first error of either direction.

use core::{
    pin::Pin,
    task::{Context, Poll},
};
use std::{
    io,
    sync::{Arc, OnceLock},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

#[cfg(test)]
mod tests;

/// The error of a [`HalfOpen`] stream that writing failed with.
#[derive(Clone, Debug, Default)]
pub struct WriteError(Arc<OnceLock<io::Error>>);

impl WriteError {
    /// The first error.
    pub fn get(&self) -> Option<&io::Error> {
        self.0.get()
    }
}

/// A byte stream whose writes are discarded, rather than fail, once the peer has closed the connection. Reading continues to
/// the end of what has arrived, which is soon: nothing else can arrive.
#[derive(Debug)]
pub struct HalfOpen<S> {
    inner: S,
    error: WriteError,
}

impl<S> HalfOpen<S> {
    /// Wraps a connected stream.
    #[must_use]
    pub fn new(inner: S) -> Self {
        let error = WriteError::default();
        Self { inner, error }
    }

    /// The error that writing failed with, once it has.
    pub fn write_error(&self) -> WriteError {
        self.error.clone()
    }

    /// Replaces the error of a closed connection, which is kept for later.
    fn hold<T>(&self, polled: Poll<io::Result<T>>, discarded: T) -> Poll<io::Result<T>> {
        use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};
        match polled {
            Poll::Ready(Err(error))
                if matches!(
                    error.kind(),
                    BrokenPipe | ConnectionReset | ConnectionAborted
                ) =>
            {
                // The first error is the cause of others.
                let _ = self.error.0.set(error);
                Poll::Ready(Ok(discarded))
            }
            polled => polled,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for HalfOpen<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let (before, room) = (buffer.filled().len(), buffer.remaining());
        let polled = Pin::new(&mut self.inner).poll_read(context, buffer);
        let is_end = matches!(polled, Poll::Ready(Ok(()))) && buffer.filled().len() == before;
        // The system reports a reset once: to the writer. Without it, a body that ends with the connection would be taken for
        // complete. After the end of the peer's data, it reports `BrokenPipe`.
        match self.error.get() {
            Some(error) if is_end && room > 0 && error.kind() != io::ErrorKind::BrokenPipe => {
                Poll::Ready(Err(io::Error::new(error.kind(), error.to_string())))
            }
            _ => polled,
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for HalfOpen<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.error.get().is_some() {
            return Poll::Ready(Ok(bytes.len()));
        }
        let polled = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.hold(polled, bytes.len())
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.error.get().is_some() {
            return Poll::Ready(Ok(()));
        }
        let polled = Pin::new(&mut self.inner).poll_flush(context);
        self.hold(polled, ())
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.error.get().is_some() {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.inner).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let len = slices.iter().map(|slice| slice.len()).sum();
        if self.error.get().is_some() {
            return Poll::Ready(Ok(len));
        }
        let polled = Pin::new(&mut self.inner).poll_write_vectored(context, slices);
        self.hold(polled, len)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}
