//! An HTTP/3 request whose response arrives piece by piece.
//!
//! Owns the connection's ends of its exchange, and the data that did not fit into the stream yet: at most one piece.
//! Backpressure is inherent: nothing is taken out of the channel while the stream has no room, and nothing is read from
//! the stream while the channel has none.

use std::task::{Context, Poll, Waker};

use bytes::{Buf, Bytes};
use lastbyte_congestion::Time;
use lastbyte_http3::{self as http3, Body, Code, Fields, Response, SendError};
use lastbyte_quic::connection::Connection;
use lastbyte_wire::StreamId;

use crate::{
    exchange::{
        Channels, PIECE_LEN, Piece, ResponsePart,
        channel::{Receiver, Sender, Size},
    },
    handler::FullResponse,
};

/// One of them.
pub(super) struct Running {
    waker: Waker,
    /// The destination of the request's body; dropped when all of it was passed on.
    incoming: Option<Sender<Piece>>,
    /// The source of the response; dropped when all of it was acknowledged, or it was cancelled.
    outgoing: Option<Receiver<ResponsePart>>,
    /// The whole response was passed on, or the handler gave it up.
    has_ended: bool,
    /// The handler gave it up in its body: the stream is reset once the client has received what was written before.
    is_failing: bool,
    /// The part that could not be sent yet.
    stuck: Option<ResponsePart>,
    /// Bytes of the response waiting here and in the stream.
    held: usize,
    body: SentBody,
    has_head: bool,
    /// Whether the response has no body (HEAD).
    is_head: bool,
    has_no_body: bool,
    /// Whether the client waits for `100 Continue` before it sends the body (RFC 9110 §10.1.1).
    is_expecting: bool,
}

/// Result of sending a part.
enum Outcome {
    Sent,
    /// No room: try again later.
    Stuck(ResponsePart),
    /// The stream is gone, or the part is not allowed.
    Failed,
}

/// Result of sending the parts of a response that are ready.
#[derive(Default)]
pub(super) struct Flushed {
    /// The header, if it was sent.
    pub(super) sent: Option<Sent>,
    /// Whether the response was given up, so that no event reports its end.
    pub(super) is_cut_off: bool,
}

/// The header of a response as it was sent, for logs.
pub(super) struct Sent {
    pub(super) status: u16,
    /// The announced length of its body, if there is one.
    pub(super) content_length: Option<u64>,
}

/// The body of a response, as far as it was passed to its stream.
#[derive(Clone, Copy, Default)]
pub(super) struct SentBody {
    /// Bytes of it.
    len: u64,
    /// Other bytes of the stream up to its last one: headers, and frame headers.
    overhead: u64,
}

impl SentBody {
    /// The length of what was sent.
    pub(super) const fn len(self) -> u64 {
        self.len
    }

    /// More of it was passed to the stream.
    pub(super) fn add(&mut self, quic: &mut Connection, stream: StreamId, len: u64) {
        if len > 0
            && let Some(progress) = quic.streams().progress(stream)
        {
            self.len += len;
            self.overhead = progress.end.saturating_sub(self.len);
        }
    }

    /// The response will not be completed: what was not sent does not count.
    pub(super) fn settle(&mut self, quic: &mut Connection, stream: StreamId) {
        if let Some(progress) = quic.streams().progress(stream) {
            self.len = self.len.min(progress.sent.saturating_sub(self.overhead));
        }
    }
}

impl Running {
    pub(super) fn new(
        channels: Channels,
        waker: Waker,
        (is_head, is_expecting): (bool, bool),
    ) -> Self {
        Self {
            waker,
            incoming: Some(channels.incoming),
            outgoing: Some(channels.outgoing),
            has_ended: false,
            is_failing: false,
            stuck: None,
            held: 0,
            body: SentBody::default(),
            has_head: false,
            is_head,
            has_no_body: false,
            is_expecting,
        }
    }

    /// Whether the request is finished.
    pub(super) const fn is_over(&self) -> bool {
        self.incoming.is_none() && self.outgoing.is_none()
    }

    /// Whether the response is reset once the client has received what was written.
    pub(super) const fn is_failing(&self) -> bool {
        self.is_failing
    }

    /// The body so far.
    pub(super) const fn body(&self) -> SentBody {
        self.body
    }

    /// Sends parts of the response while there is room.
    pub(super) fn flush_response(
        &mut self,
        http3: &mut http3::Connection,
        quic: &mut Connection,
        stream: StreamId,
        date: &str,
    ) -> Flushed {
        self.meet_expectation(http3, quic, stream);
        let mut flushed = Flushed::default();
        if self.is_failing && unacknowledged(quic, stream) == 0 {
            self.cancel(http3, quic, stream, &mut flushed);
        }
        while let Some(outgoing) = self.outgoing.as_ref().filter(|_| !self.has_ended) {
            let part = match self.stuck.take() {
                Some(part) => part,
                None => match outgoing.poll_next(&mut Context::from_waker(&self.waker)) {
                    Poll::Pending => break,
                    Poll::Ready(Some(part)) => part,
                    Poll::Ready(None) => {
                        self.give_up(http3, quic, stream, &mut flushed);
                        break;
                    }
                },
            };
            let is_last = matches!(part, ResponsePart::Whole(_) | ResponsePart::End(_));
            let head = match &part {
                ResponsePart::Whole(answer) => Some(Sent {
                    status: answer.response.status(),
                    content_length: Some(if self.is_head { 0 } else { answer.body_len() }),
                }),
                ResponsePart::Head(response) => Some(Sent {
                    status: response.status(),
                    content_length: if has_no_body(self.is_head, response) {
                        Some(0)
                    } else {
                        content_length(response)
                    },
                }),
                _ => None,
            };
            match self.send(http3, quic, stream, part, date) {
                Outcome::Sent => {
                    self.has_ended = is_last;
                    flushed.sent = head.or(flushed.sent);
                }
                Outcome::Stuck(part) => {
                    self.stuck = Some(part);
                    break;
                }
                Outcome::Failed => {
                    self.cancel(http3, quic, stream, &mut flushed);
                }
            }
        }
        flushed
    }

    /// The response cannot be completed. If it had ended before, an event reports that.
    fn cancel(
        &mut self,
        http3: &mut http3::Connection,
        quic: &mut Connection,
        stream: StreamId,
        flushed: &mut Flushed,
    ) {
        flushed.is_cut_off = http3.reset(quic, stream, Code::INTERNAL_ERROR);
        // Notifies the handler.
        self.outgoing = None;
    }

    /// Sends `100 Continue` once the handler reads the body, unless it has responded or the body is complete.
    fn meet_expectation(
        &mut self,
        http3: &mut http3::Connection,
        quic: &mut Connection,
        stream: StreamId,
    ) {
        let Some(incoming) = self.incoming.as_ref().filter(|_| self.is_expecting) else {
            return;
        };
        let awaited = incoming.poll_awaited(&mut Context::from_waker(&self.waker));
        let is_due = match awaited {
            Poll::Pending => return,
            Poll::Ready(awaited) => awaited.is_ok() && !self.has_head,
        };
        // If there is no room now, it is sent when there is.
        self.is_expecting =
            is_due && http3.inform(quic, stream, &Response::new(100)) == Err(SendError::Blocked);
    }

    /// Counts the unsent part of the response, so that a client that does not read slows the handler down.
    pub(super) fn count_held(&mut self, quic: &mut Connection, stream: StreamId) {
        let Some(outgoing) = &self.outgoing else {
            return;
        };
        let stuck = self.stuck.as_ref().map_or(0, ResponsePart::size);
        let held = stuck + unacknowledged(quic, stream);
        if held != self.held {
            self.held = held;
            outgoing.set_held(held);
        }
    }

    fn send(
        &mut self,
        http3: &mut http3::Connection,
        quic: &mut Connection,
        stream: StreamId,
        part: ResponsePart,
        date: &str,
    ) -> Outcome {
        let done = match part {
            ResponsePart::Interim(response) => match http3.inform(quic, stream, &response) {
                // It is a hint: failing to send it must not fail the request.
                Err(SendError::Blocked) => return Outcome::Stuck(ResponsePart::Interim(response)),
                _ => Ok(()),
            },
            ResponsePart::Whole(answer) => return self.whole(http3, quic, stream, answer, date),
            ResponsePart::Head(response) => {
                self.has_no_body = has_no_body(self.is_head, &response);
                let body = if self.has_no_body {
                    Body::Empty
                } else {
                    Body::Follows
                };
                let dated = with_date(response, date);
                match http3.respond(quic, stream, &dated, body) {
                    Err(SendError::Blocked) => return Outcome::Stuck(ResponsePart::Head(dated)),
                    result => {
                        self.has_head = true;
                        result
                    }
                }
            }
            ResponsePart::Data(_) | ResponsePart::End(_) if self.has_no_body => Ok(()),
            ResponsePart::Data(mut bytes) => {
                let written = http3.write(quic, stream, &bytes);
                self.body.add(quic, stream, written.unwrap_or(0) as u64);
                match written {
                    Ok(taken) if taken < bytes.len() => {
                        bytes.advance(taken);
                        return Outcome::Stuck(ResponsePart::Data(bytes));
                    }
                    result => result.map(|_| ()),
                }
            }
            ResponsePart::End(None) => http3.finish(quic, stream),
            ResponsePart::End(Some(trailers)) => match http3.trailers(quic, stream, &trailers) {
                Err(SendError::Blocked) => {
                    return Outcome::Stuck(ResponsePart::End(Some(trailers)));
                }
                // Invalid trailers are omitted: the body is complete without them.
                Err(SendError::InvalidField | SendError::FieldSectionTooLarge) => {
                    http3.finish(quic, stream)
                }
                result => result,
            },
        };
        match done {
            Ok(()) => Outcome::Sent,
            Err(_) => Outcome::Failed,
        }
    }

    fn whole(
        &mut self,
        http3: &mut http3::Connection,
        quic: &mut Connection,
        stream: StreamId,
        answer: FullResponse,
        date: &str,
    ) -> Outcome {
        let answer = if self.is_head {
            answer.head_only()
        } else {
            answer
        };
        let FullResponse { response, body } = answer;
        let response = with_date(response, date);
        let len = body.as_ref().map_or(0, |body| body.len());
        let body = body.map_or(Body::Empty, Body::Source);
        // There was room for a header before; after interim responses perhaps not, and then the body, which cannot be
        // recovered, is dropped with it.
        match http3.respond(quic, stream, &response, body) {
            Ok(()) => {
                self.has_head = true;
                self.body.add(quic, stream, len);
                Outcome::Sent
            }
            Err(_) => Outcome::Failed,
        }
    }

    /// The handler dropped the exchange.
    fn give_up(
        &mut self,
        http3: &mut http3::Connection,
        quic: &mut Connection,
        stream: StreamId,
        flushed: &mut Flushed,
    ) {
        // A reset permits the client to drop what it has received, so it comes last.
        if self.has_head && unacknowledged(quic, stream) > 0 {
            (self.has_ended, self.is_failing) = (true, true);
            return;
        }
        let status = 502;
        let response = Response::new(status).with("content-length", "0");
        if self.has_head || http3.respond(quic, stream, &response, Body::Empty).is_err() {
            return self.cancel(http3, quic, stream, flushed);
        }
        self.outgoing = None;
        flushed.sent = Some(Sent {
            status,
            content_length: Some(0),
        });
    }

    /// Passes on the request's body while there is room.
    pub(super) fn read_body(
        &mut self,
        http3: &mut http3::Connection,
        quic: &mut Connection,
        now: Time,
        stream: StreamId,
    ) {
        let Some(incoming) = &self.incoming else {
            let _ = http3.read(quic, now, stream, &mut <[u8]>::len);
            return;
        };
        let waker = &self.waker;
        // Nothing to read.
        let _ = http3.read(quic, now, stream, &mut |bytes| {
            let mut taken = 0;
            for piece in bytes.chunks(PIECE_LEN) {
                match incoming.poll_ready(&mut Context::from_waker(waker)) {
                    Poll::Ready(Ok(())) => {
                        incoming.push(Piece::Data(Bytes::copy_from_slice(piece)));
                        taken += piece.len();
                    }
                    Poll::Pending => return taken,
                    // The handler does not read it.
                    Poll::Ready(Err(_)) => return bytes.len(),
                }
            }
            taken
        });
    }

    pub(super) fn on_trailers(&self, fields: Fields) {
        if let Some(incoming) = &self.incoming {
            incoming.push(Piece::Trailers(fields));
        }
    }

    /// The request is complete.
    pub(super) fn on_finished(&mut self) {
        if let Some(incoming) = self.incoming.take() {
            incoming.push(Piece::End);
        }
    }

    /// The client cancelled its request.
    pub(super) fn on_reset(&mut self) {
        self.incoming = None;
    }

    /// All of the response was acknowledged.
    pub(super) fn on_sent(&mut self) {
        self.outgoing = None;
    }

    /// The client sent `STOP_SENDING` for the response.
    pub(super) fn on_stopped(&mut self) {
        self.outgoing = None;
        self.incoming = None;
    }
}

/// The response with the date at which it is sent, unless it has one (RFC 9110 §6.6.1).
pub(super) fn with_date(mut response: Response, date: &str) -> Response {
    if response.fields().get("date").is_none() {
        response.fields_mut().push("date", date);
    }
    response
}

/// Bytes that were written to a stream, and not acknowledged.
fn unacknowledged(quic: &mut Connection, stream: StreamId) -> usize {
    let progress = quic.streams().progress(stream);
    progress.unwrap_or_default().buffered
}

fn has_no_body(is_head: bool, response: &Response) -> bool {
    is_head || matches!(response.status(), 204 | 304)
}

fn content_length(response: &Response) -> Option<u64> {
    let text = response.fields().get("content-length")?;
    std::str::from_utf8(text).ok()?.parse().ok()
}
