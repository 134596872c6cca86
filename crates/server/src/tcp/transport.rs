//! The stream under HTTP/2: its output is collected, and sent once for each turn of the connection.
//!
//! h2 flushes after each DATA frame, which would be a system call for each. Here, frames are encrypted into the buffer of the TLS
//! session, and `poll_flush` does nothing: after each poll of h2's connection, its future ([`Sent`]) sends everything that
//! was collected. So nothing stays unsent while the connection waits.
//!
//! No more than [`COLLECTED_MAX`] bytes and one write are collected. Beyond, they are sent first, and if the socket has no room,
//! h2 has to wait, as it does for a socket.

use std::{
    io::{self, IoSlice, Write},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::server::TlsStream;

use super::turns::Turns;

#[cfg(test)]
mod tests;

/// Bytes of HTTP/2 that are collected before they are sent.
const COLLECTED_MAX: usize = 64 << 10;

/// The stream, for h2 and for the future that sends. Both are polled by the same task.
#[derive(Debug)]
pub(super) struct Transport<S>(Arc<Mutex<Collected<S>>>);

#[derive(Debug)]
struct Collected<S> {
    tls: TlsStream<S>,
    /// Bytes collected since everything was sent.
    len: usize,
    /// Bytes received.
    received: u64,
}

impl<S> Clone for Transport<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S> Transport<S> {
    fn lock(&self) -> MutexGuard<'_, Collected<S>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Transport<S> {
    pub(super) fn new(mut tls: TlsStream<S>) -> Self {
        // The bound is here.
        tls.get_mut().1.set_buffer_limit(None);
        Self(Arc::new(Mutex::new(Collected {
            tls,
            len: 0,
            received: 0,
        })))
    }

    /// The number of bytes received.
    pub(super) fn received(&self) -> u64 {
        self.lock().received
    }

    /// Whether output waits for room in the socket. How long it may is decided [there](super::stalled).
    pub(super) fn is_sending(&self) -> bool {
        self.lock().tls.get_ref().1.wants_write()
    }

    /// Sends everything that was collected.
    fn poll_send(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.lock().poll_send(context)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Collected<S> {
    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.tls).poll_flush(context))?;
        self.len = 0;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Transport<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut collected = self.lock();
        let before = buffer.filled().len();
        let read = Pin::new(&mut collected.tls).poll_read(context, buffer);
        collected.received += (buffer.filled().len() - before) as u64;
        read
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Transport<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(buffer)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut collected = self.lock();
        if collected.len >= COLLECTED_MAX {
            ready!(collected.poll_send(context))?;
        }
        let written = collected.tls.get_mut().1.writer().write_vectored(buffers)?;
        collected.len += written;
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// [`Sent`] sends it when h2 has nothing more to write.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.lock().tls).poll_shutdown(context)
    }
}

/// A connection of h2, whose output is sent after each poll, and then the [turns](super::turns) of its responses continue.
///
/// Completes when the connection is complete and everything was sent, or when sending fails.
pub(super) struct Sent<C, S> {
    /// Pinned on its own, so that it can be accessed.
    pub(super) connection: Pin<Box<C>>,
    transport: Transport<S>,
    turns: Arc<Turns>,
    is_over: bool,
}

impl<C, S> Sent<C, S> {
    pub(super) fn new(connection: C, transport: Transport<S>, turns: Arc<Turns>) -> Self {
        Self {
            connection: Box::pin(connection),
            transport,
            turns,
            is_over: false,
        }
    }
}

impl<C: Future, S: AsyncRead + AsyncWrite + Unpin> Future for Sent<C, S> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if !self.is_over {
            // An error concerns only the client, which has received the response to it.
            self.is_over = self.connection.as_mut().poll(context).is_ready();
        }
        let sent = self.transport.poll_send(context);
        match sent {
            Poll::Ready(Err(_)) => return Poll::Ready(()),
            Poll::Ready(Ok(())) if self.is_over => return Poll::Ready(()),
            _ => {}
        }
        self.turns.on_polled(context.waker(), sent.is_ready());
        Poll::Pending
    }
}
