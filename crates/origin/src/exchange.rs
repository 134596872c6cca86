//! A request whose response arrives piece by piece, from another thread.
//!
//! Two channels connect the handler's task with the connection, whatever its HTTP version: one for the body of the
//! request, one for the response. Both are bounded in bytes and share the [budget](crate::budget) of their connection:
//! a slow reader blocks the writer, up to the peer's flow control.

pub mod channel;

use std::{
    fmt,
    future::poll_fn,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use lastbyte_http3::{Fields, Response};

use self::channel::{Receiver, Sender, Size};
use super::{budget::ConnectionBudget, handler::FullResponse};

/// Maximum bytes of a request body waiting for the handler, plus one piece.
const REQUEST_BOUND: usize = 64 << 10;
/// Maximum bytes of a response waiting for the connection and, over HTTP/3, for acknowledgments, plus one piece.
const RESPONSE_BOUND: usize = 320 << 10;
/// Maximum size of a piece of data, in bytes.
pub const PIECE_LEN: usize = 8 << 10;
/// The size that counts for a part without data, in bytes.
const HEAD_SIZE: usize = 1 << 10;
/// The overhead counted for a piece of data, in bytes, so that the number of small pieces is bounded too.
const PIECE_SIZE: usize = 128;

/// A part of a response, in this order: any number of `Interim`, then either `Whole`, or one `Head`, any number of `Data`
/// and one `End`. A channel that ends before that aborts the response.
#[derive(Debug)]
pub enum ResponsePart {
    /// An interim response, such as 103 Early Hints.
    Interim(Response),
    /// The whole response.
    Whole(FullResponse),
    /// The header of the response; a body follows.
    Head(Response),
    /// Bytes of the body.
    Data(Bytes),
    /// The end, with optional trailers.
    End(Option<Fields>),
}

impl Size for ResponsePart {
    fn size(&self) -> usize {
        match self {
            Self::Data(bytes) => bytes.len() + PIECE_SIZE,
            _ => HEAD_SIZE,
        }
    }
}

/// A piece of a request's body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Bytes.
    Data(Bytes),
    /// The trailers, followed by the end.
    Trailers(Fields),
    /// The end. A body without it was truncated.
    End,
}

impl Size for Piece {
    fn size(&self) -> usize {
        match self {
            Self::Data(bytes) => bytes.len() + PIECE_SIZE,
            _ => HEAD_SIZE,
        }
    }
}

/// The client cancelled the request, or the connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExchangeAborted;

/// A request body to read and a response to write, for a handler that responds piece by piece.
#[derive(Debug)]
pub struct Exchange {
    /// The body of the request.
    pub incoming: Incoming,
    /// The response.
    pub outgoing: Outgoing,
}

/// The connection's ends of the channels of an exchange.
#[derive(Debug)]
pub struct Channels {
    /// Receives the request body.
    pub incoming: Sender<Piece>,
    /// Provides the response.
    pub outgoing: Receiver<ResponsePart>,
    /// What the task notes about the request.
    pub notes: Arc<Notes>,
}

/// What a task notes about its request, for the logs.
#[derive(Debug, Default)]
pub struct Notes {
    /// In microseconds, plus 1; 0 until it is known.
    upstream: AtomicU64,
    error: OnceLock<&'static str>,
}

impl Notes {
    /// The time that another server took until the header of its response, or until it failed.
    pub fn set_upstream(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.upstream
            .store(micros.saturating_add(1), Ordering::Release);
    }

    /// Why that server gave no complete response: an error type of RFC 9209 §2.3. The first counts.
    pub fn set_error(&self, error: &'static str) {
        let _ = self.error.set(error);
    }

    /// See [`Notes::set_upstream`].
    pub fn upstream(&self) -> Option<Duration> {
        let micros = self.upstream.load(Ordering::Acquire).checked_sub(1);
        micros.map(Duration::from_micros)
    }

    /// See [`Notes::set_error`].
    pub fn error(&self) -> Option<&'static str> {
        self.error.get().copied()
    }
}

/// Both sides of an exchange on a connection with this budget.
pub fn exchange(budget: &Arc<ConnectionBudget>) -> (Exchange, Channels) {
    let (incoming, from_client) = channel::channel(REQUEST_BOUND, Arc::clone(budget));
    let (to_client, outgoing) = channel::channel(RESPONSE_BOUND, Arc::clone(budget));
    let notes = Arc::<Notes>::default();
    let exchange = Exchange {
        incoming: Incoming(from_client),
        outgoing: Outgoing {
            sender: to_client,
            has_head: false,
            notes: Arc::clone(&notes),
            amend: None,
        },
    };
    let channels = Channels {
        incoming,
        outgoing,
        notes,
    };
    (exchange, channels)
}

/// The body of a request.
#[derive(Debug)]
pub struct Incoming(Receiver<Piece>);

impl Incoming {
    /// The next piece. `None` after [`Piece::End`]; before that, it means that the client cancelled its request.
    pub async fn next(&mut self) -> Option<Piece> {
        poll_fn(|context| self.0.poll_next(context)).await
    }

    /// As [`Incoming::next`], to be polled.
    pub fn poll_next(
        &mut self,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Piece>> {
        self.0.poll_next(context)
    }

    /// Sets the number of bytes that were read and are kept, for the budget of the connection.
    pub fn set_kept(&self, bytes: usize) {
        self.0.set_kept(bytes);
    }
}

/// The destination of a response. Dropped before its end, the response is truncated in a way that the client detects: a
/// reset stream, or a closed connection; before its header, the client receives 502.
pub struct Outgoing {
    sender: Sender<ResponsePart>,
    has_head: bool,
    notes: Arc<Notes>,
    amend: Option<Amend>,
}

/// Changes the header of a response when it is passed on.
type Amend = Box<dyn FnOnce(&mut Response, &Notes) + Send>;

impl fmt::Debug for Outgoing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outgoing")
            .field("has_head", &self.has_head)
            .field("notes", &self.notes)
            .finish_non_exhaustive()
    }
}

impl Outgoing {
    /// Changes the header of the response, once, when the task passes it on: for a handler around another.
    pub fn amend(&mut self, amend: impl FnOnce(&mut Response, &Notes) + Send + 'static) {
        self.amend = Some(Box::new(amend));
    }

    fn on_head(&mut self, response: &mut Response) {
        self.has_head = true;
        if let Some(amend) = self.amend.take() {
            amend(response, &self.notes);
        }
    }

    async fn send(&mut self, part: ResponsePart) -> Result<(), ExchangeAborted> {
        poll_fn(|context| self.sender.poll_ready(context)).await?;
        self.sender.push(part);
        Ok(())
    }

    /// Sends an interim response, such as 103 Early Hints (RFC 8297). Clients of HTTP/1.1 do not receive it, and those of HTTP/2 no
    /// more than 100 for each request.
    ///
    /// # Errors
    ///
    /// Returns [`ExchangeAborted`] if the client cancelled the request or the connection ended.
    pub async fn inform(&mut self, response: Response) -> Result<(), ExchangeAborted> {
        self.send(ResponsePart::Interim(response)).await
    }

    /// Sends an interim response without waiting for room: for the first part of a response.
    pub fn hint(&mut self, response: Response) {
        self.sender.push(ResponsePart::Interim(response));
    }

    /// Sends a complete response.
    ///
    /// # Errors
    ///
    /// Returns [`ExchangeAborted`] if the client cancelled the request or the connection ended.
    pub async fn respond(mut self, mut response: FullResponse) -> Result<(), ExchangeAborted> {
        self.on_head(&mut response.response);
        self.send(ResponsePart::Whole(response)).await
    }

    /// Sends a complete response whose body is at most [`PIECE_LEN`] bytes, which the connection takes at once.
    ///
    /// # Errors
    ///
    /// Returns [`ExchangeAborted`] if the client cancelled the request or the connection ended.
    pub async fn respond_with(
        mut self,
        mut response: Response,
        body: Bytes,
    ) -> Result<(), ExchangeAborted> {
        self.on_head(&mut response);
        poll_fn(|context| self.sender.poll_ready(context)).await?;
        self.sender.push_all([
            ResponsePart::Head(response),
            ResponsePart::Data(body),
            ResponsePart::End(None),
        ]);
        Ok(())
    }

    /// Starts a response whose body follows.
    ///
    /// # Errors
    ///
    /// Returns [`ExchangeAborted`] if the client cancelled the request or the connection ended.
    pub async fn begin(&mut self, mut response: Response) -> Result<(), ExchangeAborted> {
        self.on_head(&mut response);
        self.send(ResponsePart::Head(response)).await
    }

    /// For what the logs have to say about the request.
    pub const fn notes(&self) -> &Arc<Notes> {
        &self.notes
    }

    /// Whether the response was started.
    pub const fn has_begun(&self) -> bool {
        self.has_head
    }

    /// Sends bytes of the body. Waits while the client is slow to read earlier bytes, and while too much is buffered
    /// for the clients of this server.
    ///
    /// # Errors
    ///
    /// Returns [`ExchangeAborted`] if the client cancelled the request or the connection ended.
    pub async fn data(&mut self, mut bytes: Bytes) -> Result<(), ExchangeAborted> {
        while !bytes.is_empty() {
            let piece = bytes.split_to(bytes.len().min(PIECE_LEN));
            self.send(ResponsePart::Data(piece)).await?;
        }
        Ok(())
    }

    /// Ends the response, with optional trailers.
    ///
    /// # Errors
    ///
    /// Returns [`ExchangeAborted`] if the client cancelled the request or the connection ended.
    pub async fn end(mut self, trailers: Option<Fields>) -> Result<(), ExchangeAborted> {
        self.send(ResponsePart::End(trailers)).await
    }

    /// Sends the last bytes of the body together with its end: a connection that takes the last piece sees that it is
    /// the last, and can mark its frame so.
    ///
    /// # Errors
    ///
    /// Returns [`ExchangeAborted`] if the client cancelled the request or the connection ended.
    pub async fn end_with(mut self, mut bytes: Bytes) -> Result<(), ExchangeAborted> {
        let last = bytes.split_off(bytes.len().saturating_sub(1) / PIECE_LEN * PIECE_LEN);
        self.data(bytes).await?;
        if last.is_empty() {
            return self.end(None).await;
        }
        poll_fn(|context| self.sender.poll_ready(context)).await?;
        let parts = [ResponsePart::Data(last), ResponsePart::End(None)];
        self.sender.push_all(parts);
        Ok(())
    }

    /// Waits until the client cancels the request or the connection ends.
    pub async fn aborted(&mut self) {
        poll_fn(|context| self.sender.poll_aborted(context)).await;
    }
}

#[cfg(test)]
mod tests;
