//! A request whose answer comes piece by piece, from another thread.
//!
//! Owns: both ends of the two channels between whoever answers and the connection: the body of the request one way, the
//! response the other. Never: knows which version of HTTP it is. Both channels have a bound, in bytes, and share the
//! [budget](crate::budget) of their connection: a reader that is slow holds the writer back, through all of it to the
//! peer's flow control.

pub(crate) mod channel;

use std::{future::poll_fn, sync::Arc};

use bytes::Bytes;
use lastbyte_http3::{Fields, Response};

use self::channel::{Receiver, Sender, Weigh};
use super::{budget::ConnectionBudget, handler::Answer};

/// How much of a request's body waits for whoever answers, in bytes, but for one piece more.
const REQUEST_BOUND: usize = 64 << 10;
/// How much of a response waits for its connection and, over HTTP/3, for acknowledgments, in bytes, but for one piece more.
const RESPONSE_BOUND: usize = 320 << 10;
/// Data is cut into pieces of so many bytes at most.
pub const PIECE_LEN: usize = 8 << 10;
/// What a piece weighs that is no data.
const HEAD_WEIGHT: usize = 1 << 10;
/// What a piece of data weighs beside its bytes: its place in the queue. Pieces of one byte each have a bound, too.
const PIECE_WEIGHT: usize = 128;

/// What the peer is told, in this order: any number of `Interim`, then either `Whole`, or one `Head`, any number of `Data`
/// and one `End`. A channel that ends before that is a response that was given up.
pub(crate) enum Said {
    /// A response before the response: 103 Early Hints.
    Interim(Response),
    /// All of the answer.
    Whole(Answer),
    /// The head of the response; a body follows.
    Head(Response),
    /// Bytes of the body.
    Data(Bytes),
    /// The end, with trailers perhaps.
    End(Option<Fields>),
}

impl Weigh for Said {
    fn weight(&self) -> usize {
        match self {
            Self::Data(bytes) => bytes.len() + PIECE_WEIGHT,
            _ => HEAD_WEIGHT,
        }
    }
}

/// A piece of a request's body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Bytes.
    Data(Bytes),
    /// The trailers, behind which comes the end.
    Trailers(Fields),
    /// The end. A body that ends without it was cut off.
    End,
}

impl Weigh for Piece {
    fn weight(&self) -> usize {
        match self {
            Self::Data(bytes) => bytes.len() + PIECE_WEIGHT,
            _ => HEAD_WEIGHT,
        }
    }
}

/// The client gave up, or the connection is gone: nobody is left to be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;

/// What whoever answers gets: what is left of the request, and where the response goes.
#[derive(Debug)]
pub struct Exchange {
    /// The body of the request.
    pub incoming: Incoming,
    /// The response.
    pub outgoing: Outgoing,
}

/// The ends of the connection.
pub(crate) struct Line {
    /// Where the request's body goes.
    pub(crate) incoming: Sender<Piece>,
    /// Where the response comes from.
    pub(crate) outgoing: Receiver<Said>,
}

/// Both sides of an exchange on a connection with this budget.
pub(crate) fn exchange(budget: &Arc<ConnectionBudget>) -> (Exchange, Line) {
    let (incoming, from_client) = channel::channel(REQUEST_BOUND, Arc::clone(budget));
    let (to_client, outgoing) = channel::channel(RESPONSE_BOUND, Arc::clone(budget));
    let exchange = Exchange {
        incoming: Incoming(from_client),
        outgoing: Outgoing {
            sender: to_client,
            has_head: false,
        },
    };
    (exchange, Line { incoming, outgoing })
}

/// The body of a request.
#[derive(Debug)]
pub struct Incoming(Receiver<Piece>);

impl Incoming {
    /// The next piece. `None` after [`Piece::End`]; without that, the client gave its request up.
    pub async fn next(&mut self) -> Option<Piece> {
        poll_fn(|context| self.0.poll_next(context)).await
    }

    /// The same, for whoever polls.
    pub fn poll_next(
        &mut self,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Piece>> {
        self.0.poll_next(context)
    }
}

/// Where a response goes. Dropped before its end, the response is cut off in a way that the client sees: a reset stream,
/// or a connection that is closed; before its head, the client is told 502.
#[derive(Debug)]
pub struct Outgoing {
    sender: Sender<Said>,
    has_head: bool,
}

impl Outgoing {
    async fn say(&mut self, said: Said) -> Result<(), Gone> {
        poll_fn(|context| self.sender.poll_ready(context)).await?;
        self.sender.push(said);
        Ok(())
    }

    /// Says something before the response, such as 103 Early Hints (RFC 8297). Clients of HTTP/1.1 and 2 do not hear it.
    ///
    /// # Errors
    ///
    /// Nobody listens any more.
    pub async fn inform(&mut self, response: Response) -> Result<(), Gone> {
        self.say(Said::Interim(response)).await
    }

    /// Answers with all there is to say.
    ///
    /// # Errors
    ///
    /// Nobody listens any more.
    pub async fn answer(mut self, answer: Answer) -> Result<(), Gone> {
        self.say(Said::Whole(answer)).await
    }

    /// Begins a response whose body follows.
    ///
    /// # Errors
    ///
    /// Nobody listens any more.
    pub async fn begin(&mut self, response: Response) -> Result<(), Gone> {
        self.has_head = true;
        self.say(Said::Head(response)).await
    }

    /// Whether the response was begun.
    #[must_use]
    pub const fn has_begun(&self) -> bool {
        self.has_head
    }

    /// Sends bytes of the body. Waits while the client is slow to take what was sent before, and while too much waits
    /// for the clients of this server.
    ///
    /// # Errors
    ///
    /// Nobody listens any more.
    pub async fn data(&mut self, mut bytes: Bytes) -> Result<(), Gone> {
        while !bytes.is_empty() {
            let piece = bytes.split_to(bytes.len().min(PIECE_LEN));
            self.say(Said::Data(piece)).await?;
        }
        Ok(())
    }

    /// Ends the response, with trailers perhaps.
    ///
    /// # Errors
    ///
    /// Nobody listens any more.
    pub async fn end(mut self, trailers: Option<Fields>) -> Result<(), Gone> {
        self.say(Said::End(trailers)).await
    }

    /// Waits until nobody listens any more.
    pub async fn gone(&mut self) {
        poll_fn(|context| self.sender.poll_gone(context)).await;
    }
}

#[cfg(test)]
mod tests;
