//! The message received on a request stream (RFC 9114 §4.1), as a state machine.
//!
//! Owns the progress of the peer's message, and the interpretation of its next bytes. It buffers no body data,
//! nor more of a field section than its limit, and accepts no frame where it is not permitted.

use lastbyte_wire::{Side, StreamId};

use super::{
    shared::{ReceiveError, Shared, TakeBody},
    traced::TracedFrame,
};
use crate::{
    Code, ConnectionError, Event, Fields, Priority, StreamError,
    frame::{FrameHeader, FrameType, PartialHeader},
    message::check::{self, Facts, RequestKind},
    qpack::Decoded,
};

/// `PRIORITY_UPDATE` frames that a request adds to the allowance: one when it is sent, and one change.
const PRIORITY_UPDATES_EACH: u64 = 2;

/// The part of the peer's message that is expected next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Expects {
    #[default]
    /// A header; for a client, interim responses may precede the final one.
    Head,
    /// Body, trailers or the end.
    Body,
    /// The end.
    End,
    /// Nothing: it ended or was cancelled.
    Nothing,
}

/// Body data that the application has not read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Unread {
    /// None.
    #[default]
    None,
    /// Some, to be reported.
    Found,
    /// It was reported or is being read.
    Reported,
}

/// The meaning of the next bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Inside {
    /// A frame's header.
    #[default]
    Between,
    /// None are read: a field section waits for insertions into the dynamic table.
    Blocked,
    /// Bytes of a frame that remain.
    Headers(u64),
    Data(u64),
    Skipped(u64),
}

/// The state of a message being received.
#[derive(Debug, Default)]
pub(super) struct Receiving {
    expects: Expects,
    header: PartialHeader,
    inside: Inside,
    /// A field section that has arrived in part, or that waits for insertions.
    section: Vec<u8>,
    unread: Unread,
    /// Whether the transport has delivered the last byte.
    has_end: bool,
    /// Bytes of body received.
    body_len: u64,
    /// Bytes announced by `content-length`.
    content_length: Option<u64>,
    kind: RequestKind,
    informational: u16,
    /// The priority of a request whose header has arrived, until it is taken.
    new_priority: Option<Priority>,
    /// Whether a timer runs for its header.
    pub(super) is_timed: bool,
    /// Whether the stream is in the queue of streams to be read.
    pub(super) is_ready: bool,
}

impl Receiving {
    /// The response to a request of this kind.
    pub(super) fn response_to(kind: RequestKind) -> Self {
        Self {
            kind,
            ..Self::default()
        }
    }

    // ---- queries -------------------------------------------------------------------------------------------------

    /// The part that is expected next.
    pub(super) const fn expects(&self) -> Expects {
        self.expects
    }

    /// The kind of the request.
    pub(super) const fn kind(&self) -> RequestKind {
        self.kind
    }

    /// Whether nothing more is expected.
    pub(super) fn is_over(&self) -> bool {
        self.expects == Expects::Nothing
    }

    /// Whether a field section waits for insertions.
    pub(super) fn is_blocked(&self) -> bool {
        self.inside == Inside::Blocked
    }

    /// Whether the transport has delivered the last byte.
    pub(super) const fn has_end(&self) -> bool {
        self.has_end
    }

    /// Whether a sink may receive the next bytes.
    pub(super) fn is_in_body(&self) -> bool {
        self.expects == Expects::Body && !self.is_blocked() && !self.has_end
    }

    /// Whether the message may be complete: all bytes arrived and none are waiting.
    pub(super) fn is_at_end(&self) -> bool {
        self.has_end && !self.is_blocked() && !self.is_over()
    }

    // ---- changes -------------------------------------------------------------------------------------------------

    /// The transport has delivered the last byte.
    pub(super) const fn set_end(&mut self) {
        self.has_end = true;
    }

    /// The rest of the message is not needed. Returns whether this is new.
    pub(super) fn give_up(&mut self) -> bool {
        std::mem::replace(&mut self.expects, Expects::Nothing) != Expects::Nothing
    }

    /// Whether there is body data that the application has neither read nor been notified of.
    pub(super) fn take_unreported(&mut self) -> bool {
        let is_found = self.unread == Unread::Found;
        if is_found {
            self.unread = Unread::Reported;
        }
        is_found
    }

    /// The application starts reading: what it leaves unread needs no event meanwhile.
    pub(super) const fn start_read(&mut self) {
        self.unread = Unread::Reported;
    }

    /// The application has read: further data is reported.
    pub(super) const fn end_read(&mut self) {
        self.unread = Unread::None;
    }

    /// The priority of a request whose head has come since the last call.
    pub(super) const fn take_new_priority(&mut self) -> Option<Priority> {
        self.new_priority.take()
    }

    /// Processes received bytes and passes body data to `body`. Returns how many bytes were consumed: less than all if
    /// body data was not accepted, or a section waits.
    pub(super) fn take(
        &mut self,
        id: StreamId,
        bytes: &[u8],
        mut body: Option<&mut TakeBody<'_>>,
        shared: &mut Shared,
    ) -> Result<usize, ReceiveError> {
        let mut rest = bytes;
        if self.unread == Unread::Found {
            self.unread = Unread::None;
        }
        while !rest.is_empty() {
            match self.inside {
                Inside::Blocked => break,
                Inside::Between => {
                    if let Some(header) = self.header.take(&mut rest) {
                        self.inside = self.begin_frame(id, header, shared)?;
                        self.end_of_empty_frame(id, shared)?;
                    }
                }
                Inside::Data(left) => {
                    let piece = first(rest, left);
                    let taken = match &mut body {
                        Some(body) => body(piece).min(piece.len()),
                        None => 0,
                    };
                    self.body_len += taken as u64;
                    rest = rest.get(taken..).unwrap_or_default();
                    self.inside = Inside::Data(left - taken as u64).or_between();
                    if taken < piece.len() {
                        if self.unread == Unread::None {
                            self.unread = Unread::Found;
                        }
                        break;
                    }
                    self.check_length()?;
                }
                Inside::Headers(left) => {
                    let piece = first(rest, left);
                    rest = rest.get(piece.len()..).unwrap_or_default();
                    let left = left - piece.len() as u64;
                    self.inside = Inside::Headers(left).or_between();
                    if left > 0 {
                        self.section.extend_from_slice(piece);
                    } else if self.section.is_empty() {
                        // Usually it arrives as a whole, and need not be copied.
                        self.on_section(id, piece, shared)?;
                    } else {
                        self.section.extend_from_slice(piece);
                        self.resume(id, shared)?;
                    }
                }
                Inside::Skipped(left) => {
                    let piece = first(rest, left);
                    rest = rest.get(piece.len()..).unwrap_or_default();
                    self.inside = Inside::Skipped(left - piece.len() as u64).or_between();
                }
            }
        }
        Ok(bytes.len() - rest.len())
    }

    /// The state after a frame's header (§7).
    fn begin_frame(
        &self,
        id: StreamId,
        header: FrameHeader,
        shared: &mut Shared,
    ) -> Result<Inside, ReceiveError> {
        let unexpected =
            |reason| ReceiveError::Connection(ConnectionError::new(Code::FRAME_UNEXPECTED, reason));
        match header.frame_type {
            FrameType::DATA => {
                if self.expects != Expects::Body {
                    return Err(unexpected("DATA before a head, or behind trailers"));
                }
                shared.on_data_frame(header.len)?;
                shared.trace(|| TracedFrame::parsed(id, FrameType::DATA, header.len));
                Ok(Inside::Data(header.len))
            }
            FrameType::HEADERS => {
                if self.expects == Expects::End {
                    return Err(unexpected("HEADERS behind trailers"));
                }
                if self.expects == Expects::Body && self.kind == RequestKind::Connect {
                    return Err(unexpected("HEADERS in a tunnel"));
                }
                if header.len > u64::from(shared.config.field_section_size_max) {
                    return Err(self.too_large(shared.side));
                }
                Ok(Inside::Headers(header.len))
            }
            FrameType::PUSH_PROMISE if shared.side == Side::Client => {
                // §7.2.5: beyond what was permitted, which is nothing.
                Err(ConnectionError::new(Code::ID_ERROR, "a push that was not permitted").into())
            }
            frame_type if frame_type.is_known() => {
                Err(unexpected("a frame that may not be on a request stream"))
            }
            frame_type => {
                shared.on_unknown(header.len)?;
                shared.trace(|| TracedFrame::parsed(id, frame_type, header.len));
                Ok(Inside::Skipped(header.len))
            }
        }
    }

    /// A frame without payload ends with its header.
    fn end_of_empty_frame(
        &mut self,
        id: StreamId,
        shared: &mut Shared,
    ) -> Result<(), ReceiveError> {
        let inside = self.inside;
        self.inside = inside.or_between();
        if inside == Inside::Headers(0) {
            self.on_section(id, &[], shared)?;
        }
        Ok(())
    }

    fn too_large(&self, side: Side) -> ReceiveError {
        if side == Side::Server && self.expects == Expects::Head {
            ReceiveError::HeadTooLarge
        } else {
            ReceiveError::Stream(StreamError::local(
                Code::EXCESSIVE_LOAD,
                "a field section larger than is taken",
            ))
        }
    }

    /// Tries to decode the buffered section again.
    pub(super) fn resume(&mut self, id: StreamId, shared: &mut Shared) -> Result<(), ReceiveError> {
        let section = std::mem::take(&mut self.section);
        self.inside = Inside::Between;
        self.on_section(id, &section, shared)?;
        if self.is_blocked() {
            return Ok(());
        }
        self.section = section;
        self.section.clear();
        Ok(())
    }

    /// A complete field section has arrived.
    fn on_section(
        &mut self,
        id: StreamId,
        section: &[u8],
        shared: &mut Shared,
    ) -> Result<(), ReceiveError> {
        let mut fields = shared.fields();
        let limits = shared.section_limits();
        match shared
            .decoder
            .decode(id.get(), section, limits, &mut fields)?
        {
            Decoded::Done => {}
            Decoded::Blocked => {
                shared.statistics.blocked += 1;
                shared.recycle(fields);
                self.section = section.to_vec();
                self.inside = Inside::Blocked;
                return Ok(());
            }
            Decoded::TooLarge => return Err(self.too_large(shared.side)),
        }
        let len = section.len() as u64;
        shared.trace(|| TracedFrame::parsed(id, FrameType::HEADERS, len).head(&fields));
        shared.statistics.sections_received += len;
        shared.statistics.text_received += fields.section_size();
        match (self.expects, shared.side) {
            (Expects::Head, Side::Server) => self.on_request(id, fields, shared),
            (Expects::Head, Side::Client) => self.on_response(id, fields, shared),
            _ => {
                check::trailers(&fields)?;
                self.expects = Expects::End;
                shared
                    .events
                    .push_back(Event::Trailers { stream: id, fields });
                Ok(())
            }
        }
    }

    fn on_request(
        &mut self,
        id: StreamId,
        fields: Fields,
        shared: &mut Shared,
    ) -> Result<(), ReceiveError> {
        let (request, facts) = check::request(fields, shared.config.extended_connect)?;
        self.kind = facts.kind;
        self.begin_body(facts);
        self.new_priority = Some(request.priority());
        shared.statistics.requests += 1;
        shared.guard.priority_updates.give(PRIORITY_UPDATES_EACH);
        shared.events.push_back(Event::Request {
            stream: id,
            request,
        });
        Ok(())
    }

    fn on_response(
        &mut self,
        id: StreamId,
        fields: Fields,
        shared: &mut Shared,
    ) -> Result<(), ReceiveError> {
        let (response, facts) = check::response(fields)?;
        if response.is_informational() {
            self.informational = self.informational.saturating_add(1);
            if self.informational > shared.config.limits.informational {
                return Err(ReceiveError::Stream(StreamError::local(
                    Code::EXCESSIVE_LOAD,
                    "too many interim responses",
                )));
            }
            shared.events.push_back(Event::Informational {
                stream: id,
                response,
            });
            return Ok(());
        }
        self.begin_body(facts);
        // RFC 9110 §8.6: these describe a body that is not sent.
        let is_success = matches!(response.status(), 200..300);
        if self.kind == RequestKind::Head || matches!(response.status(), 204 | 304) {
            self.content_length = Some(0);
        } else if self.kind == RequestKind::Connect && is_success {
            self.content_length = None;
        } else {
            // The response to a failed CONNECT is an ordinary one.
            self.kind = RequestKind::Ordinary;
        }
        shared.statistics.responses += 1;
        shared.events.push_back(Event::Response {
            stream: id,
            response,
        });
        Ok(())
    }

    fn begin_body(&mut self, facts: Facts) {
        self.expects = Expects::Body;
        self.content_length = facts
            .content_length
            .filter(|_| self.kind != RequestKind::Connect);
    }

    /// Checks that the body is not longer than announced (§4.1.2).
    fn check_length(&self) -> Result<(), ReceiveError> {
        if self.content_length.is_some_and(|len| self.body_len > len) {
            return Err(StreamError::malformed("more body than `content-length` says").into());
        }
        Ok(())
    }

    /// The peer's stream ended and all of it was processed.
    pub(super) fn on_end(&mut self, id: StreamId, shared: &mut Shared) -> Result<(), ReceiveError> {
        // §7.1.
        if !self.header.is_empty() || self.inside != Inside::Between {
            return Err(
                ConnectionError::new(Code::FRAME_ERROR, "a stream ends inside of a frame").into(),
            );
        }
        if self.expects == Expects::Head {
            return Err(match shared.side {
                Side::Server => StreamError::local(
                    Code::REQUEST_INCOMPLETE,
                    "a request ends before its head does",
                ),
                Side::Client => StreamError::malformed("a response ends before its head does"),
            }
            .into());
        }
        if self.content_length.is_some_and(|len| self.body_len != len) {
            return Err(StreamError::malformed("less body than `content-length` says").into());
        }
        self.expects = Expects::Nothing;
        if shared.side == Side::Client {
            shared.on_completed();
        }
        shared.events.push_back(Event::Finished { stream: id });
        Ok(())
    }
}

/// The first `len` bytes, or all.
fn first(bytes: &[u8], len: u64) -> &[u8] {
    let len = usize::try_from(len).map_or(bytes.len(), |len| len.min(bytes.len()));
    bytes.get(..len).unwrap_or_default()
}

impl Inside {
    /// Ends a frame that has no bytes left.
    const fn or_between(self) -> Self {
        match self {
            Self::Headers(0) | Self::Data(0) | Self::Skipped(0) => Self::Between,
            other => other,
        }
    }
}

#[cfg(test)]
mod tests;
