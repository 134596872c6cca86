//! A request and its response, over hyper's HTTP/1.1 and over HTTP/2 of the `h2` crate.
//!
//! Decision: hyper is not used for HTTP/2. It passes each request through a channel to a task of its own, which takes a quarter of
//! the CPU time of a request for one byte.

use core::{
    error::Error,
    fmt::Write as _,
    future::poll_fn,
    pin::{Pin, pin},
    task::{Context, Poll, Waker, ready},
    time::Duration,
};

use bytes::Bytes;
use h2::{RecvStream, client::SendRequest};
use http_body_util::{BodyExt, Full};
use hyper::{Request, Response, body::Incoming, client::conn::http1};
use tokio::time::{Instant, Sleep, sleep_until};

/// A request, which is cloned for each sending.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) head: Request<()>,
    pub(super) body: Bytes,
}

/// Why there is no complete response.
pub(super) struct ExchangeError {
    pub(super) why: String,
    pub(super) progress: Progress,
}

/// How far a request without a response has come.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// It was not sent.
    Unsent,
    /// The server did not process it (RFC 9113 §8.7): it refused the stream, or shut down before.
    Refused,
    /// The server may have processed it.
    Sent,
}

impl From<hyper::Error> for ExchangeError {
    fn from(error: hyper::Error) -> Self {
        let progress = if error.is_canceled() {
            Progress::Unsent
        } else {
            Progress::Sent
        };
        let why = chain(&error);
        Self { why, progress }
    }
}

impl ExchangeError {
    /// The error of a stream of HTTP/2 after the request was sent.
    fn of_stream(error: &h2::Error) -> Self {
        if error.is_reset() && error.reason() == Some(h2::Reason::NO_ERROR) {
            return Self {
                why: "the server reset the stream before the end of the response".to_owned(),
                progress: Progress::Sent,
            };
        }
        let progress = if lastbyte_client::is_unprocessed(error) {
            Progress::Refused
        } else {
            Progress::Sent
        };
        let why = chain(error);
        Self { why, progress }
    }

    fn unsent(error: &h2::Error) -> Self {
        Self {
            why: chain(error),
            progress: Progress::Unsent,
        }
    }
}

/// Sends requests on a connection.
pub(super) enum Sender {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(SendRequest<Bytes>),
}

impl Sender {
    /// Waits until a request can be sent, or returns why none can.
    pub(super) async fn ready(&mut self) -> Result<(), String> {
        match self {
            Self::Http1(sender) => sender.ready().await.map_err(|error| chain(&error)),
            Self::Http2(sender) => poll_fn(|context| sender.poll_ready(context))
                .await
                .map_err(|error| chain(&error)),
        }
    }

    /// Sends a request, and waits for the header of its response.
    pub(super) async fn send(
        &mut self,
        message: &Message,
    ) -> Result<Response<Body>, ExchangeError> {
        let (head, body) = (message.head.clone(), message.body.clone());
        match self {
            Self::Http1(sender) => {
                let request = head.map(|()| Full::new(body));
                Ok(sender.send_request(request).await?.map(Body::Http1))
            }
            Self::Http2(sender) => {
                let unsent = |error| ExchangeError::unsent(&error);
                let (response, mut stream) =
                    sender.send_request(head, body.is_empty()).map_err(unsent)?;
                if !body.is_empty() {
                    // It is shared, so that what flow control holds back takes no memory.
                    stream.send_data(body, true).map_err(unsent)?;
                }
                // It waits for others to end if the server has a lower limit.
                poll_fn(|context| sender.poll_ready(context))
                    .await
                    .map_err(unsent)?;
                let response = response.await;
                let response = response.map_err(|error| ExchangeError::of_stream(&error))?;
                Ok(response.map(Body::Http2))
            }
        }
    }

    pub(super) fn is_closed(&mut self) -> bool {
        match self {
            Self::Http1(sender) => sender.is_closed(),
            Self::Http2(sender) => {
                let mut context = Context::from_waker(Waker::noop());
                matches!(sender.poll_ready(&mut context), Poll::Ready(Err(_)))
            }
        }
    }
}

/// The body of a response.
pub(super) enum Body {
    Http1(Incoming),
    Http2(RecvStream),
}

impl Body {
    /// Waits for more data, and returns its length; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<usize>, ExchangeError> {
        match self {
            Self::Http1(body) => match body.frame().await {
                None => Ok(None),
                Some(frame) => Ok(Some(frame?.data_ref().map_or(0, Bytes::len))),
            },
            Self::Http2(body) => {
                let Some(data) = body.data().await else {
                    return Ok(None);
                };
                let len = data
                    .map_err(|error| ExchangeError::of_stream(&error))?
                    .len();
                // Only fails for more than was received.
                let _ = body.flow_control().release_capacity(len);
                Ok(Some(len))
            }
        }
    }
}

/// The time limits of requests that follow each other, with one timer, which is set again only when it expires.
pub(super) struct TimeLimit(Pin<Box<Sleep>>);

impl TimeLimit {
    pub(super) fn new(limit: Duration) -> Self {
        Self(Box::pin(sleep_until(Instant::now() + limit)))
    }

    /// The output of the future, unless it takes longer than this.
    pub(super) async fn run<F: Future>(&mut self, limit: Duration, future: F) -> Option<F::Output> {
        let end = Instant::now() + limit;
        if end < self.0.deadline() {
            self.0.as_mut().reset(end);
        }
        let mut future = pin!(future);
        poll_fn(|context| {
            if let Poll::Ready(output) = future.as_mut().poll(context) {
                return Poll::Ready(Some(output));
            }
            loop {
                ready!(self.0.as_mut().poll(context));
                if Instant::now() >= end {
                    return Poll::Ready(None);
                }
                self.0.as_mut().reset(end);
            }
        })
        .await
    }
}

/// An error and its causes, in one line.
pub(super) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let _ = write!(text, ": {error}");
        cause = error.source();
    }
    text
}
