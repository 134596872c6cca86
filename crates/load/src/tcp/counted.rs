//! A byte stream that counts received bytes, and for HTTP/2 those of compressed headers.

use core::{
    pin::Pin,
    task::{Context, Poll},
};
use std::{io, rc::Rc};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

#[cfg(test)]
mod tests;

/// The length of a frame header (RFC 9113 §4.1).
const FRAME_HEADER_LEN: usize = 9;
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;

/// Counts the payloads of HEADERS and CONTINUATION frames in a stream of HTTP/2 frames.
#[derive(Debug, Default)]
pub(super) struct HeaderCounter {
    header: [u8; FRAME_HEADER_LEN],
    header_len: usize,
    /// Bytes of the payload that are still to come.
    payload_left: u64,
}

impl HeaderCounter {
    /// The bytes of header payloads among these, which follow those of the last call.
    pub(super) fn count(&mut self, mut bytes: &[u8]) -> u64 {
        let mut count = 0;
        while !bytes.is_empty() {
            if self.payload_left > 0 {
                let here = self.payload_left.min(bytes.len() as u64);
                if matches!(self.header[3], HEADERS | CONTINUATION) {
                    count += here;
                }
                self.payload_left -= here;
                bytes = bytes.split_at(here as usize).1;
                continue;
            }
            let here = (FRAME_HEADER_LEN - self.header_len).min(bytes.len());
            let (part, rest) = bytes.split_at(here);
            self.header[self.header_len..self.header_len + here].copy_from_slice(part);
            self.header_len += here;
            bytes = rest;
            if self.header_len == FRAME_HEADER_LEN {
                self.header_len = 0;
                let [high, middle, low, ..] = self.header;
                self.payload_left = u64::from(u32::from_be_bytes([0, high, middle, low]));
            }
        }
        count
    }
}

/// Counts received bytes.
pub(super) trait Received {
    /// This number of bytes was received, of which these are compressed headers.
    fn on_received(&self, bytes: u64, header_bytes: u64);
}

/// A byte stream that counts received bytes.
pub(super) struct Counted<S> {
    inner: S,
    received: Rc<dyn Received>,
    headers: Option<HeaderCounter>,
}

impl<S> Counted<S> {
    pub(super) fn new(inner: S, received: Rc<dyn Received>, is_http2: bool) -> Self {
        Self {
            inner,
            received,
            headers: is_http2.then(HeaderCounter::default),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let this = &mut *self;
        let polled = Pin::new(&mut this.inner).poll_read(context, buffer);
        let bytes = buffer.filled().split_at(before).1;
        if !bytes.is_empty() {
            let headers = this.headers.as_mut();
            let headers = headers.map_or(0, |headers| headers.count(bytes));
            this.received.on_received(bytes.len() as u64, headers);
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}
