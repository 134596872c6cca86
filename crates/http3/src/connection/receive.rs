//! Receiving on request streams (RFC 9114 §4.1).
//!
//! Owns the routes by which the transport's data reaches its stream (requested by the application, passed by a sink, or
//! after waiting for QPACK insertions), and the consequences of errors for the stream and the connection.

use lastbyte_quic::{
    Time,
    stream::{ReadError as TransportReadError, StreamSink},
};
use lastbyte_wire::{Side, StreamId, VarInt};

use super::{
    Connection,
    receiving::Expects,
    request_stream::RequestStream,
    shared::{ReceiveError, TakeBody, enough},
};
use crate::{Code, Event, ReadError, Response, StreamError, Transport};

/// The destination of body data, called while its packets are processed.
pub trait BodySink {
    /// Takes the next bytes of a message's body, in order, each byte once. Returns how many were accepted: the rest is
    /// kept for [`Connection::read`].
    fn body(&mut self, stream: StreamId, bytes: &[u8]) -> usize;

    /// Whether the body of this message goes to this sink at all. If not, [`Event::Data`] reports it.
    fn takes(&self, stream: StreamId) -> bool {
        let _ = stream;
        true
    }
}

/// Passes the body data that the transport receives to a [`BodySink`]. It is the sink to pass to
/// [`handle_datagram`](lastbyte_quic::connection::Connection::handle_datagram).
pub struct Sink<'a> {
    pub(super) http3: &'a mut Connection,
    pub(super) body: &'a mut dyn BodySink,
}

impl core::fmt::Debug for Sink<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Sink").field(&self.http3).finish()
    }
}

impl StreamSink for Sink<'_> {
    fn takes(&self, id: StreamId) -> bool {
        let stream = self.http3.streams.get(&id);
        stream.is_some_and(|stream| stream.receiving.is_in_body() && !stream.receiving.is_ready)
            && self.body.takes(id)
    }

    fn data(&mut self, id: StreamId, _: u64, data: &[u8], fin: bool) -> usize {
        let Connection {
            streams,
            shared,
            ready,
            receive_errors,
            ..
        } = &mut *self.http3;
        let Some(stream) = streams.get_mut(&id).map(|stream| &mut stream.receiving) else {
            return 0;
        };
        let mut body = |bytes: &[u8]| self.body.body(id, bytes);
        let taken = match stream.take(id, data, Some(&mut body), shared) {
            Ok(taken) => taken,
            Err(error) => {
                // An error of the connection is reported when events are polled.
                stream.is_ready = true;
                receive_errors.push_back((id, error));
                return data.len();
            }
        };
        if fin && taken == data.len() {
            stream.set_end();
        }
        let wants_attention = stream.has_end() || stream.is_blocked();
        if wants_attention && !stream.is_ready {
            stream.is_ready = true;
            ready.push_back(id);
        }
        taken
    }
}

impl Connection {
    /// Reads what has arrived on a request stream, up to body data that the application must request.
    pub(super) fn read_arrived(&mut self, transport: &mut dyn Transport, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        stream.receiving.is_ready = false;
        if stream.receiving.is_over() || stream.receiving.is_blocked() {
            return;
        }
        self.read_stream(transport, id, None);
    }

    /// Reads, passes body data to `body`, and reports the resulting events. Returns how much body data was accepted.
    fn read_stream(
        &mut self,
        transport: &mut dyn Transport,
        id: StreamId,
        mut body: Option<&mut TakeBody<'_>>,
    ) -> usize {
        let Some(stream) = self.streams.get_mut(&id) else {
            return 0;
        };
        let shared = &mut self.shared;
        let mut error = None;
        let mut body_taken = 0;
        let stream = &mut stream.receiving;
        if !stream.has_end() {
            let now = shared.now;
            let read = transport.read(id, now, &mut |bytes| {
                let mut counted;
                let body: Option<&mut TakeBody<'_>> = match &mut body {
                    Some(body) => {
                        counted = |bytes: &[u8]| {
                            let taken = body(bytes).min(bytes.len());
                            body_taken += taken;
                            taken
                        };
                        Some(&mut counted)
                    }
                    None => None,
                };
                stream
                    .take(id, bytes, body, shared)
                    .unwrap_or_else(|found| {
                        error = Some(found);
                        0
                    })
            });
            match read {
                Ok(read) if read.end && error.is_none() => stream.set_end(),
                Err(TransportReadError::Reset(code)) => {
                    self.on_reset(transport, id, code);
                    return 0;
                }
                Ok(_) | Err(_) => {}
            }
        }
        match error {
            Some(error) => self.on_receive_error(transport, id, error),
            None => self.settle(transport, id),
        }
        body_taken
    }

    /// Reports the events that result from the data read.
    fn settle(&mut self, transport: &mut dyn Transport, id: StreamId) {
        self.report_stop(id);
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        let new_priority = stream.receiving.take_new_priority();
        if let Some(priority) = new_priority {
            stream.priority = priority;
        }
        if stream.receiving.take_unreported() {
            self.shared.events.push_back(Event::Data { stream: id });
        }
        if new_priority.is_some() {
            self.schedule_request(transport, id);
        }
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        let receiving = &mut stream.receiving;
        if receiving.is_at_end() {
            match receiving.on_end(id, &mut self.shared) {
                Ok(()) => self.forget_if_over(id),
                Err(error) => self.on_receive_error(transport, id, error),
            }
            return;
        }
        let awaits_head = receiving.expects() == Expects::Head;
        if awaits_head && self.shared.side == Side::Server && !receiving.is_timed {
            receiving.is_timed = true;
            let until = self.shared.now + self.shared.config.limits.head_timeout;
            self.heads.push_back((until, id));
        }
    }

    /// Decodes the sections that waited for insertions and no longer need to.
    pub(super) fn resume_unblocked(&mut self, transport: &mut dyn Transport) {
        while let Some(number) = self.shared.decoder.next_unblocked() {
            let Some(id) = VarInt::new(number).map(StreamId::from) else {
                continue;
            };
            let Some(stream) = self.streams.get_mut(&id) else {
                continue;
            };
            match stream.receiving.resume(id, &mut self.shared) {
                Ok(()) => self.read_stream_if_idle(transport, id),
                Err(error) => self.on_receive_error(transport, id, error),
            }
        }
    }

    fn read_stream_if_idle(&mut self, transport: &mut dyn Transport, id: StreamId) {
        let is_blocked = self
            .streams
            .get(&id)
            .is_none_or(|stream| stream.receiving.is_blocked());
        if !is_blocked {
            self.read_stream(transport, id, None);
        }
    }

    /// Passes received body to `read`, slice by slice, until it takes less than it is given or there is no more. Returns how
    /// many bytes it took. [`Connection::poll`] reports the end of the message.
    ///
    /// # Errors
    ///
    /// Returns [`ReadError::NoHead`] before the head of the message, and [`ReadError::UnknownStream`] once it is over.
    pub fn read(
        &mut self,
        transport: &mut dyn Transport,
        now: Time,
        id: StreamId,
        read: &mut dyn FnMut(&[u8]) -> usize,
    ) -> Result<usize, ReadError> {
        self.shared.now = now;
        let stream = self.streams.get_mut(&id).ok_or(ReadError::UnknownStream)?;
        match stream.receiving.expects() {
            Expects::Head => return Err(ReadError::NoHead),
            Expects::Nothing => return Err(ReadError::UnknownStream),
            Expects::Body | Expects::End => {}
        }
        stream.receiving.start_read();
        if stream.receiving.is_blocked() {
            return Ok(0);
        }
        let taken = self.read_stream(transport, id, Some(read));
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.receiving.end_read();
        }
        Ok(taken)
    }

    // ---- errors
    // --------------------------------------------------------------------------------------------------------

    /// The data received on a stream is invalid.
    pub(super) fn on_receive_error(
        &mut self,
        transport: &mut dyn Transport,
        id: StreamId,
        error: ReceiveError,
    ) {
        match error {
            ReceiveError::Connection(error) => self.fail(error),
            ReceiveError::Stream(error) => self.give_up(transport, id, error),
            ReceiveError::HeadTooLarge => self.refuse_head(transport, id),
        }
    }

    /// Resets both directions of a stream and reports why (RFC 9114 §4.1.2).
    pub(super) fn give_up(
        &mut self,
        transport: &mut dyn Transport,
        id: StreamId,
        error: StreamError,
    ) {
        self.report_stop(id);
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        let was_reported =
            !stream.is_hidden && !is_unknown_to_application(stream, self.shared.side);
        if stream.receiving.give_up() {
            self.shared.decoder.cancel(id.get());
            let now = self.shared.now;
            // A direction that does not exist need not be stopped.
            let _ = transport.stop_sending(id, error.code.into(), now);
        }
        let cancels_ours = stream.sending.finish();
        if cancels_ours {
            let _ = transport.reset(id, error.code.into());
        }
        self.shared.statistics.resets += 1;
        if was_reported {
            self.shared.events.push_back(Event::Reset {
                stream: id,
                error,
                cancels_ours,
            });
        }
        self.count_as_given_up(id);
        self.forget_if_over(id);
    }

    /// Rejects a request whose header is too large (RFC 9114 §4.2.2), without involving the application.
    fn refuse_head(&mut self, transport: &mut dyn Transport, id: StreamId) {
        const TOO_LARGE: u16 = 431;
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        stream.is_hidden = true;
        let answer = self.respond(transport, id, &Response::new(TOO_LARGE), crate::Body::Empty);
        if answer.is_err() {
            let error = StreamError::local(Code::EXCESSIVE_LOAD, "a head larger than is taken");
            self.give_up(transport, id, error);
            return;
        }
        self.count_as_given_up(id);
        self.stop(transport, self.shared.now, id, Code::NO_ERROR);
    }

    /// Asks the peer to stop sending its message, of which nothing more is reported. A server that needs no more of a
    /// request responds first, and then stops with `NO_ERROR` (RFC 9114 §4.1).
    pub fn stop(&mut self, transport: &mut dyn Transport, now: Time, id: StreamId, code: Code) {
        self.shared.now = now;
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        if !stream.receiving.give_up() {
            return;
        }
        if !stream.receiving.has_end() || stream.receiving.is_blocked() {
            self.shared.decoder.cancel(id.get());
        }
        // If everything has arrived there is nothing to stop.
        let _ = transport.stop_sending(id, code.into(), now);
        self.forget_if_over(id);
    }

    /// The peer cancelled its message (RFC 9114 §4.1.1).
    pub(super) fn on_reset(&mut self, transport: &mut dyn Transport, id: StreamId, code: VarInt) {
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        let is_unknown_to_application = is_unknown_to_application(stream, self.shared.side);
        if !stream.receiving.give_up() {
            return;
        }
        self.shared.decoder.cancel(id.get());
        self.shared.statistics.resets += 1;
        let wants_ours = !is_unknown_to_application && self.shared.side == Side::Server;
        // The application will not respond, or the server does not need the rest of the request.
        let cancels_ours = !wants_ours && stream.sending.finish();
        if cancels_ours {
            let _ = transport.reset(id, Code::REQUEST_CANCELLED.into());
        }
        if !is_unknown_to_application && !stream.is_hidden {
            self.shared.events.push_back(Event::Reset {
                stream: id,
                error: StreamError::peer(code),
                cancels_ours,
            });
        }
        self.count_as_given_up(id);
        self.forget_if_over(id);
    }

    /// The peer requested that we stop sending our message.
    pub(super) fn on_stopped(&mut self, id: StreamId, code: VarInt) {
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        // A message sent completely may still be acknowledged, which is of no interest any more.
        if stream.sending.finish() {
            stream.stopped = Some(Code::new(code));
        }
        self.report_stop(id);
        // Regardless of the code: an unwanted response costs the same.
        self.count_as_given_up(id);
        self.forget_if_over(id);
    }

    /// Reports that the peer does not want our message, once the application knows of the stream.
    fn report_stop(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.get_mut(&id)
            && !stream.is_hidden
            && !is_unknown_to_application(stream, self.shared.side)
            && let Some(code) = stream.stopped.take()
        {
            self.shared
                .events
                .push_back(Event::Stopped { stream: id, code });
        }
    }

    /// Rapid resets: requests that cause work and are cancelled (RFC 9114 §10.5).
    pub(super) fn count_as_given_up(&mut self, id: StreamId) {
        if self.shared.side == Side::Client {
            return;
        }
        if let Some(stream) = self.streams.get_mut(&id)
            && !std::mem::replace(&mut stream.is_counted, true)
        {
            let now = self.shared.now;
            let is_enough = self.shared.guard.resets.take(1, now);
            if let Err(error) = enough(is_enough, "too many requests are given up") {
                self.fail(error);
            }
        }
    }

    /// Resets requests whose headers did not arrive in time.
    pub(super) fn check_heads(&mut self, transport: &mut dyn Transport) {
        while let Some(&(until, id)) = self.heads.front() {
            let waits = self
                .streams
                .get(&id)
                .is_some_and(|stream| stream.receiving.expects() == Expects::Head);
            if waits && until > self.shared.now {
                return;
            }
            self.heads.pop_front();
            if waits {
                let error = StreamError::local(
                    Code::REQUEST_INCOMPLETE,
                    "the head of a request did not arrive in time",
                );
                self.give_up(transport, id, error);
            }
        }
    }

    pub(super) fn forget_if_over(&mut self, id: StreamId) {
        if self.streams.get(&id).is_some_and(|stream| stream.is_over()) {
            self.streams.remove(&id);
            self.early_priorities.remove(&id);
            self.shutdown.on_ended(self.shared.now);
        }
    }
}

/// Whether the application does not know of a stream: on a server, one whose header has not arrived.
fn is_unknown_to_application(stream: &RequestStream, side: Side) -> bool {
    side == Side::Server && stream.receiving.expects() == Expects::Head
}
