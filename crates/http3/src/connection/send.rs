//! Sending messages on request streams (RFC 9114 §4.1).
//!
//! Owns the order of header, body and trailers, and their frames. A header and the DATA frame header after it are one
//! write; a body from a source is one DATA frame. A frame is never written in part: what does not fit is refused as a
//! whole.

use lastbyte_quic::stream::WriteError;
use lastbyte_wire::{Direction, Side, StreamId, VarInt};

use super::{
    Connection,
    receiving::{Expects, Receiving},
    request_stream::RequestStream,
    traced::TracedFrame,
};
use crate::{
    Body, Code, Event, Fields, Request, RequestError, Response, SendError, Transport,
    frame::{FrameHeader, FrameType},
    message::check::{self, Facts, RequestKind},
    qpack::{EncodeOptions, static_section},
};

/// The largest frame header, in bytes.
const FRAME_HEADER_MAX: usize = 16;
/// DATA frames of written bytes are not made smaller than this.
const WRITE_MIN: usize = 64;
/// Maximum overhead of each line of a section, and of the section, in bytes.
const LINE_OVERHEAD: usize = 16;
const SECTION_OVERHEAD: usize = 32;
/// Encoder instructions that one section may cause.
const INSTRUCTIONS_MAX: usize = 2048;
/// With less connection-level credit than this, no insertion is sent that could block the credit itself (RFC 9204
/// §2.1.3).
const BLOCKING_CREDIT_MIN: u64 = 16 << 10;

impl Connection {
    /// Sends a client's request. Returns its stream.
    ///
    /// # Errors
    ///
    /// Returns [`RequestError::NotClient`] on a server, [`RequestError::GoingAway`] after a failure or a GOAWAY,
    /// [`RequestError::Blocked`] if the peer permits no further stream now, [`RequestError::ExtendedConnect`] if it
    /// does not support extended CONNECT, and otherwise why the fields or the body are invalid. Nothing was sent.
    pub fn request(
        &mut self,
        transport: &mut dyn Transport,
        request: &Request,
        body: Body,
    ) -> Result<StreamId, RequestError> {
        if self.shared.side == Side::Server {
            return Err(RequestError::NotClient);
        }
        if self.failure.is_some() || self.shutdown.is_begun() {
            return Err(RequestError::GoingAway);
        }
        let settings = self.settings.as_ref().or(self.remembered.as_ref());
        if request.protocol().is_some()
            && !settings.is_some_and(|settings| settings.enable_connect_protocol)
        {
            return Err(RequestError::ExtendedConnect);
        }
        let fields = request.fields();
        let facts = self.check_outgoing(fields)?;
        let method = request.method();
        check_len(facts, &body, false)?;
        self.open_own_streams(transport);
        let id = transport
            .open(Direction::Bidirectional)
            .ok_or(RequestError::Blocked)?;
        let priority = request.priority();
        let stream = RequestStream {
            receiving: Receiving::response_to(RequestKind::of(method.as_bytes())),
            priority,
            ..RequestStream::default()
        };
        self.streams.insert(id, Box::new(stream));
        let _ = transport.set_priority(id, priority.for_transport());
        if let Err(error) = self.put_head(transport, id, fields, facts, body) {
            // Its buffer cannot hold a single header.
            self.streams.remove(&id);
            let _ = transport.reset(id, Code::REQUEST_CANCELLED.into());
            return Err(error.into());
        }
        self.shared.statistics.requests += 1;
        transport.set_awaiting(true);
        Ok(id)
    }

    /// Sends a server's interim response, such as 103 Early Hints (RFC 9110 §15.2, RFC 8297).
    ///
    /// # Errors
    ///
    /// Returns [`SendError::OutOfOrder`] if the status is not 1xx or is 101, or if the final response was sent;
    /// [`SendError::Stopped`] as [`Connection::respond`]; [`SendError::Blocked`] if there is no room now; and otherwise
    /// why the fields are invalid. Nothing was sent.
    pub fn inform(
        &mut self,
        transport: &mut dyn Transport,
        id: StreamId,
        response: &Response,
    ) -> Result<(), SendError> {
        self.check_can_respond(id)?;
        if !response.is_informational() || response.status() == 101 {
            return Err(SendError::OutOfOrder);
        }
        self.check_outgoing(response.fields())?;
        let result = self.put_section(transport, id, response.fields(), None);
        self.note_stop(id, result)
    }

    /// Sends a server's response. A `priority` field in it changes its scheduling (RFC 9218 §8).
    ///
    /// # Errors
    ///
    /// Returns [`SendError::OutOfOrder`] if no response is due, [`SendError::UnknownStream`] if the request is over,
    /// [`SendError::Stopped`] if the client does not want the response ([`Event::Stopped`] follows),
    /// [`SendError::ContentLength`] if the body's length differs from its fields, [`SendError::Blocked`] if there is no
    /// room now, and otherwise why the fields are invalid. Nothing was sent. A response that is larger than the client
    /// accepts counts as a request that the client gave up: it was as much work.
    pub fn respond(
        &mut self,
        transport: &mut dyn Transport,
        id: StreamId,
        response: &Response,
        body: Body,
    ) -> Result<(), SendError> {
        let result = self.put_response(transport, id, response, body);
        self.note_stop(id, result)
    }

    /// A write that finds the stream stopped is the stop: the transport's event may come after the head of the request,
    /// from the same packet.
    fn note_stop<T>(&mut self, id: StreamId, result: Result<T, SendError>) -> Result<T, SendError> {
        if let Err(SendError::Stopped(code)) = result {
            self.on_stopped(id, code.into());
        }
        result
    }

    fn put_response(
        &mut self,
        transport: &mut dyn Transport,
        id: StreamId,
        response: &Response,
        body: Body,
    ) -> Result<(), SendError> {
        let kind = self.check_can_respond(id)?;
        if !matches!(response.status(), 200..=999) {
            return Err(SendError::OutOfOrder);
        }
        let fields = response.fields();
        let checked = self.check_outgoing(fields);
        if checked == Err(SendError::FieldSectionTooLarge) {
            self.count_as_given_up(id);
        }
        let mut facts = checked?;
        let is_bare = kind == RequestKind::Head || matches!(response.status(), 204 | 304);
        check_len(facts, &body, is_bare)?;
        if kind == RequestKind::Connect {
            // A tunnel follows, not a body.
            facts.content_length = None;
        }
        self.put_head(transport, id, fields, facts, body)?;
        self.shared.statistics.responses += 1;
        if fields.get("priority").is_some()
            && let Some(stream) = self.streams.get_mut(&id)
        {
            stream.priority = response.priority(stream.priority);
            let priority = stream.priority.for_transport();
            let _ = transport.set_priority(id, priority);
        }
        Ok(())
    }

    /// Whether a server may respond now. Returns the kind of the request.
    fn check_can_respond(&self, id: StreamId) -> Result<RequestKind, SendError> {
        if self.shared.side == Side::Client {
            return Err(SendError::OutOfOrder);
        }
        let stream = self.streams.get(&id).ok_or(SendError::UnknownStream)?;
        stream.sending.check_head()?;
        if stream.receiving.expects() == Expects::Head && !stream.is_hidden {
            return Err(SendError::OutOfOrder);
        }
        Ok(stream.receiving.kind())
    }

    /// Whether fields may be sent, and to this peer (RFC 9114 §4.2, §4.2.2).
    fn check_outgoing(&self, fields: &Fields) -> Result<Facts, SendError> {
        let settings = self.settings.as_ref().or(self.remembered.as_ref());
        if settings.is_some_and(|settings| fields.section_size() > settings.max_field_section_size)
        {
            return Err(SendError::FieldSectionTooLarge);
        }
        check::outgoing(fields).ok_or(SendError::InvalidField)
    }

    /// Writes the header of a message, and its body if that is known.
    fn put_head(
        &mut self,
        transport: &mut dyn Transport,
        id: StreamId,
        fields: &Fields,
        facts: Facts,
        body: Body,
    ) -> Result<(), SendError> {
        let data_len = match &body {
            Body::Source(source) => Some(source.len()),
            Body::Empty | Body::Follows => None,
        };
        self.put_section(transport, id, fields, data_len)?;
        let follows = matches!(body, Body::Follows);
        if let Body::Source(source) = body {
            transport.send_source(id, source)?;
        }
        if !follows {
            transport.finish(id)?;
        }
        if let Some(stream) = self.streams.get_mut(&id) {
            if follows {
                stream.sending.start_body(facts.content_length);
            } else {
                stream.sending.end();
            }
        }
        Ok(())
    }

    /// Writes a HEADERS frame, and the header of a DATA frame of this length after it.
    fn put_section(
        &mut self,
        transport: &mut dyn Transport,
        id: StreamId,
        fields: &Fields,
        data_len: Option<u64>,
    ) -> Result<(), SendError> {
        // An upper bound of its size: once encoded, it must be sent.
        let text = usize::try_from(fields.section_size()).unwrap_or(usize::MAX);
        let lines = fields.all().size_hint().0;
        let need = text.saturating_add(lines * LINE_OVERHEAD) + SECTION_OVERHEAD;
        let room = transport.room(id, need)?;
        if room < need {
            let is_empty = room > 0 && transport.progress(id).is_none_or(|it| it.buffered == 0);
            return Err(if is_empty {
                // There will never be more room.
                SendError::FieldSectionTooLarge
            } else {
                SendError::Blocked
            });
        }
        self.section.clear();
        if self.encoder.is_static() || self.is_sparse(id) {
            let (encoded, lines) = match fields.prepared() {
                Some(prepared) => (&prepared.encoded[..], fields.raw_from(prepared.count)),
                None => (&[][..], fields.raw_from(0)),
            };
            static_section(encoded, lines, &mut self.section);
        } else {
            let options = self.encode_options(transport);
            self.encoder
                .encode_raw(id.get(), fields.all_raw(), options, &mut self.section);
        }
        self.outgoing.clear();
        let len = self.section.len() as u64;
        FrameHeader::put(FrameType::HEADERS, len, &mut self.outgoing);
        self.outgoing.extend_from_slice(&self.section);
        self.shared
            .trace(|| TracedFrame::created(id, FrameType::HEADERS, len).head(fields));
        if let Some(len) = data_len.filter(|len| *len > 0) {
            self.outgoing_data(id, len);
        }
        self.shared.statistics.sections_sent += len;
        self.shared.statistics.text_sent += fields.section_size();
        self.flush_encoder(transport);
        let written = transport.write(id, &self.outgoing)?;
        debug_assert_eq!(
            written,
            self.outgoing.len(),
            "there is as much room as was said"
        );
        Ok(())
    }

    /// Whether a response is alone, and no other was sent recently. If it referred to the dynamic table, the client would
    /// acknowledge the section (RFC 9204 §4.4.1), and no later response would carry our ACK of that.
    fn is_sparse(&self, id: StreamId) -> bool {
        let stream = self.streams.get(&id);
        self.streams.len() == 1 && stream.is_some_and(|stream| stream.is_sparse)
    }

    /// The permitted use of the dynamic table by the next section.
    fn encode_options(&mut self, transport: &mut dyn Transport) -> EncodeOptions {
        let waiting = self.encoder.instructions().len();
        let room = self.own.encoder_room(transport, waiting + INSTRUCTIONS_MAX);
        let is_covered = self.own.encoder_sent() + (waiting + INSTRUCTIONS_MAX) as u64
            <= transport.initial_unidirectional_credit()
            && transport.send_credit() >= BLOCKING_CREDIT_MIN;
        EncodeOptions {
            // A partially sent instruction could leave both sides waiting for credit (RFC 9204 §2.1.3).
            instructions_max: if room >= waiting + INSTRUCTIONS_MAX {
                waiting + INSTRUCTIONS_MAX
            } else {
                0
            },
            may_block: is_covered,
        }
    }

    /// The stream, if body data may be sent on it now.
    fn check_in_body(&self, id: StreamId, len: u64) -> Result<(), SendError> {
        let stream = self.streams.get(&id).ok_or(SendError::UnknownStream)?;
        stream.sending.check_body(len)
    }

    fn on_body_sent(&mut self, id: StreamId, len: u64) {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.sending.on_body(len);
        }
    }

    /// Sends bytes of a body, as many as there is room for; if not all, [`Event::Writable`] follows when there is room.
    /// Returns how many were accepted.
    ///
    /// # Errors
    ///
    /// Returns [`SendError::OutOfOrder`] if no body is due, [`SendError::UnknownStream`] if the message is over, and
    /// [`SendError::ContentLength`] if they exceed the rest of `content-length`.
    pub fn write(
        &mut self,
        transport: &mut dyn Transport,
        id: StreamId,
        bytes: &[u8],
    ) -> Result<usize, SendError> {
        let result = self.put_bytes(transport, id, bytes);
        self.note_stop(id, result)
    }

    fn put_bytes(
        &mut self,
        transport: &mut dyn Transport,
        id: StreamId,
        bytes: &[u8],
    ) -> Result<usize, SendError> {
        self.check_in_body(id, bytes.len() as u64)?;
        if bytes.is_empty() {
            return Ok(0);
        }
        let room = transport.room(id, bytes.len() + FRAME_HEADER_MAX)?;
        let len = bytes.len().min(room.saturating_sub(FRAME_HEADER_MAX));
        if len < bytes.len().min(WRITE_MIN) {
            return Ok(0);
        }
        self.put_data_header(transport, id, len as u64)?;
        let piece = bytes.get(..len).unwrap_or(bytes);
        transport.write(id, piece)?;
        // A write that fits completely cancels the request for a `Writable` event.
        if len < bytes.len() {
            transport.room(id, bytes.len() + FRAME_HEADER_MAX)?;
        }
        self.on_body_sent(id, len as u64);
        Ok(len)
    }

    fn put_data_header(
        &mut self,
        transport: &mut dyn Transport,
        id: StreamId,
        len: u64,
    ) -> Result<(), WriteError> {
        self.outgoing.clear();
        self.outgoing_data(id, len);
        transport.write(id, &self.outgoing).map(|_| ())
    }

    fn outgoing_data(&mut self, id: StreamId, len: u64) {
        FrameHeader::put(FrameType::DATA, len, &mut self.outgoing);
        self.shared
            .trace(|| TracedFrame::created(id, FrameType::DATA, len));
    }

    /// Ends a message whose body was written.
    ///
    /// # Errors
    ///
    /// Returns [`SendError::OutOfOrder`] if its header was not sent, [`SendError::UnknownStream`] if the message is
    /// over, and [`SendError::ContentLength`] if its body is shorter than `content-length`.
    pub fn finish(&mut self, transport: &mut dyn Transport, id: StreamId) -> Result<(), SendError> {
        let stream = self.streams.get_mut(&id).ok_or(SendError::UnknownStream)?;
        stream.sending.check_end()?;
        let result = transport.finish(id).map_err(SendError::from);
        if result.is_ok() {
            stream.sending.end();
        }
        self.note_stop(id, result)
    }

    /// Ends a message with trailers.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Connection::finish`], [`SendError::OutOfOrder`] in a tunnel, [`SendError::Blocked`] if
    /// there is no room now, and otherwise why the fields are invalid.
    pub fn trailers(
        &mut self,
        transport: &mut dyn Transport,
        id: StreamId,
        fields: &Fields,
    ) -> Result<(), SendError> {
        self.check_in_body(id, 0)?;
        let stream = self.streams.get(&id).ok_or(SendError::UnknownStream)?;
        if stream.receiving.kind() == RequestKind::Connect {
            return Err(SendError::OutOfOrder);
        }
        stream.sending.check_end()?;
        self.check_outgoing(fields)?;
        let result = self.put_section(transport, id, fields, None);
        self.note_stop(id, result)?;
        self.finish(transport, id)
    }

    /// Cancels our message. Has no effect if all of it was acknowledged, or if it was cancelled before. Returns whether it
    /// had one: then no event reports the end of the message.
    pub fn reset(&mut self, transport: &mut dyn Transport, id: StreamId, code: Code) -> bool {
        let Some(stream) = self.streams.get_mut(&id) else {
            return false;
        };
        if !stream.sending.finish() {
            return false;
        }
        let _ = transport.reset(id, code.into());
        self.forget_if_over(id);
        true
    }

    /// All of our message was acknowledged.
    pub(super) fn on_sent(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        if !stream.sending.finish() {
            return;
        }
        self.sent_at = Some(self.shared.now);
        if !stream.is_hidden {
            self.shared.events.push_back(Event::Sent { stream: id });
            // A response to a request that was reset is not what the client asked for.
            if self.shared.side == Side::Server && !stream.is_counted {
                self.shared.guard.resets.give(1);
                self.shared.on_completed();
            }
        }
        self.forget_if_over(id);
    }

    pub(super) fn on_source_failed(&mut self, id: StreamId, code: VarInt) {
        if let Some(stream) = self.streams.get_mut(&id)
            && stream.sending.finish()
        {
            self.shared.events.push_back(Event::SourceFailed {
                stream: id,
                code: Code::new(code),
            });
            self.forget_if_over(id);
        }
    }
}

/// Whether the length of a known body agrees with the fields. In some messages they describe a body that is not sent.
fn check_len(facts: Facts, body: &Body, is_bare: bool) -> Result<(), SendError> {
    let len = match body {
        Body::Follows => return Ok(()),
        Body::Empty => 0,
        Body::Source(source) => source.len(),
    };
    let is_right = if is_bare {
        len == 0
    } else {
        facts.content_length.is_none_or(|said| said == len)
    };
    if is_right {
        Ok(())
    } else {
        Err(SendError::ContentLength)
    }
}
