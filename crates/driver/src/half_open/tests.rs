use core::task::Waker;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;

use super::*;

/// Accepts nothing, and has these bytes to read, once writing has failed.
struct Closed {
    bytes: &'static [u8],
    has_failed: bool,
    reader: Option<Waker>,
    /// The error of writing.
    error: io::ErrorKind,
}

impl AsyncRead for Closed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.has_failed {
            self.reader = Some(context.waker().clone());
            return Poll::Pending;
        }
        let len = self.bytes.len().min(buffer.remaining());
        let (part, rest) = self.bytes.split_at(len);
        buffer.put_slice(part);
        self.bytes = rest;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Closed {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.has_failed = true;
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
        Poll::Ready(Err(self.error.into()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()))
    }
}

async fn fetch(bytes: &'static [u8]) -> (hyper::Result<(u16, Bytes)>, Option<io::ErrorKind>) {
    fetch_after(bytes, io::ErrorKind::BrokenPipe).await
}

async fn fetch_after(
    bytes: &'static [u8],
    error: io::ErrorKind,
) -> (hyper::Result<(u16, Bytes)>, Option<io::ErrorKind>) {
    let stream = HalfOpen::new(Closed {
        bytes,
        has_failed: false,
        reader: None,
        error,
    });
    let error = stream.write_error();
    let result = async {
        let (mut sender, driver) = http1::handshake(TokioIo::new(stream)).await?;
        let driver = tokio::spawn(driver);
        let mut request = hyper::Request::new(Full::new(Bytes::from(vec![0; 1 << 20])));
        *request.method_mut() = hyper::Method::POST;
        let response = sender.send_request(request).await?;
        let status = response.status().as_u16();
        let body = response.into_body().collect().await?.to_bytes();
        drop(sender);
        driver.await.expect("no panic")?;
        Ok((status, body))
    };
    let result = result.await;
    (result, error.get().map(io::Error::kind))
}

#[tokio::test]
async fn rfc9112_9_5_a_response_survives_a_failed_write() {
    for (bytes, expected) in [
        (
            &b"HTTP/1.1 413 Large\r\ncontent-length: 3\r\nconnection: close\r\n\r\nbig"[..],
            &b"big"[..],
        ),
        (
            b"HTTP/1.1 413 Large\r\nconnection: close\r\n\r\nuntil the end",
            b"until the end",
        ),
        (b"HTTP/1.1 413 Large\r\ncontent-length: 0\r\n\r\n", b""),
    ] {
        let (result, error) = fetch(bytes).await;
        let (status, body) = result.expect("a response");
        assert_eq!((status, &body[..]), (413, expected));
        assert_eq!(error, Some(io::ErrorKind::BrokenPipe));
    }
}

#[tokio::test]
async fn without_a_response_the_error_of_writing_is_known() {
    for bytes in [&b""[..], b"HTTP/1.1 413 La"] {
        let (result, error) = fetch(bytes).await;
        assert!(result.is_err(), "{result:?}");
        assert_eq!(error, Some(io::ErrorKind::BrokenPipe));
    }
}

/// A body that ends with the connection is complete only if the peer has closed it in order.
#[tokio::test]
async fn a_reset_is_no_end_of_a_body() {
    let head = b"HTTP/1.1 413 Too Large\r\nconnection: close\r\n\r\npart";
    let (result, _) = fetch(head).await;
    assert_eq!(result.expect("the end"), (413, Bytes::from_static(b"part")));
    let (result, error) = fetch_after(head, io::ErrorKind::ConnectionReset).await;
    assert!(result.is_err(), "{result:?}");
    assert_eq!(error, Some(io::ErrorKind::ConnectionReset));
}
