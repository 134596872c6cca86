//! Closing a connection without losing the last bytes of a response: the steps between the last byte written and the close of
//! the socket.
//!
//! Closing a socket with unread data sends a reset, which discards what the client has not received yet (RFC 1122
//! §4.2.2.13). A client sends data as long as it receives: window updates over HTTP/2, late requests, the rest of an unwanted
//! body. So the socket is closed in stages (RFC 9112 §9.6): first our side, then all of it once the client has closed its
//! side, or has received everything and sends nothing.

use std::{
    io,
    os::fd::AsFd,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf},
    sync::oneshot,
    time::{Instant, timeout},
};

/// Maximum silence of a client that has received everything, before the socket is closed.
const SILENCE: Duration = Duration::from_secs(1);

/// A stream that is returned when its borrower drops it.
#[derive(Debug)]
pub(super) struct ReturnOnDrop<S> {
    stream: Option<S>,
    return_to: Option<oneshot::Sender<S>>,
}

impl<S> ReturnOnDrop<S> {
    /// The stream, and where it is returned.
    pub(super) fn new(stream: S) -> (Self, oneshot::Receiver<S>) {
        let (return_to, returned) = oneshot::channel();
        let stream = Self {
            stream: Some(stream),
            return_to: Some(return_to),
        };
        (stream, returned)
    }

    fn stream(&mut self) -> io::Result<&mut S> {
        // Present until it is dropped.
        self.stream
            .as_mut()
            .ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}

impl<S> Drop for ReturnOnDrop<S> {
    fn drop(&mut self) {
        if let (Some(stream), Some(return_to)) = (self.stream.take(), self.return_to.take()) {
            // Not awaited if the handshake failed.
            drop(return_to.send(stream));
        }
    }
}

/// Waits until the client has received everything that was written, or reads nothing for `stall`, and discards what it
/// sends.
pub(super) async fn linger<S>(mut stream: S, stall: Duration)
where
    S: AsyncRead + AsyncWrite + AsFd + Unpin,
{
    let mut scrap = [0; 4096];
    let mut left = left_to_send(&stream);
    let mut until = Instant::now() + stall;
    if stream.shutdown().await.is_err() {
        return;
    }
    loop {
        let read = timeout(SILENCE, stream.read(&mut scrap)).await;
        if let Ok(Ok(0) | Err(_)) = read {
            return;
        }
        let before = std::mem::replace(&mut left, left_to_send(&stream));
        if read.is_err() && left == 0 {
            return;
        }
        let now = Instant::now();
        if left < before {
            until = now + stall;
        } else if now >= until {
            return;
        }
    }
}

/// Approximately how many bytes the client has not acknowledged.
#[cfg(target_os = "linux")]
fn left_to_send(stream: &impl AsFd) -> u64 {
    let info = lastbyte_udp::TcpInfo::of(stream);
    info.map_or(0, |info| {
        let segment = info.segment_len.unwrap_or(1);
        info.not_sent + info.unacked * segment
    })
}

#[cfg(not(target_os = "linux"))]
fn left_to_send(_stream: &impl AsFd) -> u64 {
    0
}

impl<S: AsyncRead + Unpin> AsyncRead for ReturnOnDrop<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(self.stream()?).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ReturnOnDrop<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(self.stream()?).poll_write(context, buffer)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(self.stream()?).poll_write_vectored(context, buffers)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.as_ref().is_some_and(S::is_write_vectored)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.stream()?).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.stream()?).poll_shutdown(context)
    }
}
