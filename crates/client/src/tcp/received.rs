//! A byte stream that reports received bytes, and for HTTP/2 those of compressed headers, and limits interim responses over
//! HTTP/2, which the h2 crate discards without a report.

use core::{
    pin::Pin,
    task::{Context, Poll},
};
use std::io;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::fetch_state::INTERIM_MAX;

#[cfg(test)]
mod tests;

/// The length of a frame header (RFC 9113 §4.1).
const FRAME_HEADER_LEN: usize = 9;
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;

/// Reads the frames that an HTTP/2 client receives.
#[derive(Debug, Default)]
struct Frames {
    header: [u8; FRAME_HEADER_LEN],
    header_len: usize,
    /// Bytes of the payload that are still to come.
    payload_left: u64,
    /// Number of HEADERS frames that do not end their stream: interim responses, and final ones with a body.
    responses: u64,
    /// Number of streams that the client has opened, as far as they appear in these frames.
    streams: u64,
}

impl Frames {
    /// The bytes of header payloads among these, which follow those of the last call.
    fn read(&mut self, mut bytes: &[u8]) -> io::Result<u64> {
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
                let [high, middle, low, kind, flags, stream @ ..] = self.header;
                self.payload_left = u64::from(u32::from_be_bytes([0, high, middle, low]));
                if kind == HEADERS && flags & END_STREAM == 0 {
                    self.count_response(u32::from_be_bytes(stream))?;
                }
            }
        }
        Ok(count)
    }

    /// Streams have odd numbers, from 1 on. A number that the client has not used ends the connection (RFC 9113 §5.1.1).
    fn count_response(&mut self, stream: u32) -> io::Result<()> {
        self.responses += 1;
        self.streams = self.streams.max(u64::from(stream).div_ceil(2));
        if self.responses > self.streams * u64::from(INTERIM_MAX + 1) {
            let why = format!("more than {INTERIM_MAX} interim responses for each request");
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        Ok(())
    }
}

/// A byte stream that calls a function with the number of bytes received and, of these, of compressed headers. If it is of
/// HTTP/2, reading fails once there are more than 100 interim responses for each request.
#[derive(Debug)]
pub struct Received<S, F> {
    inner: S,
    report: F,
    frames: Option<Frames>,
}

impl<S, F: Fn(u64, u64)> Received<S, F> {
    /// The stream of a client.
    pub fn new(inner: S, is_http2: bool, report: F) -> Self {
        Self {
            inner,
            report,
            frames: is_http2.then(Frames::default),
        }
    }
}

impl<S: AsyncRead + Unpin, F: Fn(u64, u64) + Unpin> AsyncRead for Received<S, F> {
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
            let frames = this.frames.as_mut();
            let headers = frames.map_or(Ok(0), |frames| frames.read(bytes))?;
            (this.report)(bytes.len() as u64, headers);
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin, F: Unpin> AsyncWrite for Received<S, F> {
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
