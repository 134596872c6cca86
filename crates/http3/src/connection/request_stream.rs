//! One request and its response (RFC 9114 §4.1).
//!
//! Owns what of the peer's message has come, how its next bytes are to be read, and how far our message is. It must never
//! keep body, nor more of a field section than its limit; nor take a frame where it may not be.

use lastbyte_wire::{Side, StreamId};

use super::{
    shared::{Fault, Shared, TakeBody},
    stalls::Marks,
};
use crate::{
    Code, ConnectionError, Event, Fields, Priority, StreamError,
    frame::{FrameHeader, FrameType, PartialHeader},
    message::check::{self, Facts},
    qpack::Decoded,
};

/// How many `PRIORITY_UPDATE` frames a request gives back: one when it is made, and one change of mind.
const PRIORITY_UPDATES_EACH: u64 = 2;

/// What of the peer's message is expected next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expects {
    /// A head: of a client, an interim response may come before the final one.
    Head,
    /// Body, trailers or the end.
    Body,
    /// The end.
    End,
    /// Nothing: it ended, or was given up.
    Nothing,
}

/// How far our message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sends {
    /// A head is to come.
    Head,
    /// Body, trailers or the end.
    Body,
    /// All was said; not all is acknowledged.
    Ended,
    /// Nothing more will happen.
    Over,
}

/// What the next bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Inside {
    /// A frame's header.
    Between,
    /// So many bytes of a frame.
    Headers(u64),
    Data(u64),
    Skipped(u64),
}

#[derive(Debug)]
pub(super) struct RequestStream {
    pub(super) expects: Expects,
    pub(super) sends: Sends,
    header: PartialHeader,
    inside: Inside,
    /// A field section, as far as it has come in pieces, or as long as it waits.
    section: Vec<u8>,
    /// The section waits for insertions.
    pub(super) is_blocked: bool,
    /// The transport has given the last byte.
    pub(super) has_end: bool,
    /// There is body that nobody took.
    pub(super) has_body: bool,
    /// The application was told of it.
    pub(super) is_body_told: bool,
    /// Bytes of body received, and how many there should be.
    body_len: u64,
    content_length: Option<u64>,
    /// The request was HEAD, or a CONNECT.
    pub(super) is_head: bool,
    pub(super) is_tunnel: bool,
    informational: u16,
    /// How much of our body is to come, if its length was said.
    pub(super) send_left: Option<u64>,
    /// How important the response is, and whether the transport has yet to be told.
    pub(super) priority: Priority,
    pub(super) is_unscheduled: bool,
    /// The application knows nothing of this stream.
    pub(super) is_hidden: bool,
    /// A timer runs for its head.
    pub(super) is_timed: bool,
    /// It is in the queue of streams to be attended to.
    pub(super) is_ready: bool,
    /// It was counted as given up.
    pub(super) is_counted: bool,
    /// How far its bodies were when they were last looked at.
    pub(super) marks: Marks,
}

impl RequestStream {
    pub(super) fn new() -> Self {
        Self {
            expects: Expects::Head,
            sends: Sends::Head,
            header: PartialHeader::default(),
            inside: Inside::Between,
            section: Vec::new(),
            is_blocked: false,
            has_end: false,
            has_body: false,
            is_body_told: false,
            body_len: 0,
            content_length: None,
            is_head: false,
            is_tunnel: false,
            informational: 0,
            send_left: None,
            priority: Priority::default(),
            is_unscheduled: false,
            is_hidden: false,
            is_timed: false,
            is_ready: false,
            is_counted: false,
            marks: Marks::default(),
        }
    }

    /// Whether nothing will happen any more.
    pub(super) fn is_over(&self) -> bool {
        self.expects == Expects::Nothing && self.sends == Sends::Over
    }

    /// Whether a sink may have what comes next.
    pub(super) fn is_in_body(&self) -> bool {
        self.expects == Expects::Body && !self.is_blocked && !self.has_end
    }

    /// Takes received bytes, and hands the body among them to `body`. Returns how many were taken: less than all if body
    /// is not taken, or a section waits.
    pub(super) fn take(
        &mut self,
        id: StreamId,
        bytes: &[u8],
        mut body: Option<&mut TakeBody<'_>>,
        shared: &mut Shared,
    ) -> Result<usize, Fault> {
        let mut rest = bytes;
        self.has_body = false;
        while !rest.is_empty() && !self.is_blocked {
            match self.inside {
                Inside::Between => {
                    if let Some(header) = self.header.take(&mut rest) {
                        self.inside = self.begin_frame(header, shared)?;
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
                        self.has_body = true;
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
                        // Mostly it comes as a whole, and need not be copied.
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

    /// What follows a frame's header (§7).
    fn begin_frame(&self, header: FrameHeader, shared: &mut Shared) -> Result<Inside, Fault> {
        let unexpected =
            |reason| Fault::Connection(ConnectionError::new(Code::FRAME_UNEXPECTED, reason));
        match header.frame_type {
            FrameType::DATA => {
                if self.expects != Expects::Body {
                    return Err(unexpected("DATA before a head, or behind trailers"));
                }
                shared.on_data_frame(header.len)?;
                Ok(Inside::Data(header.len))
            }
            FrameType::HEADERS => {
                if self.expects == Expects::End {
                    return Err(unexpected("HEADERS behind trailers"));
                }
                if self.expects == Expects::Body && self.is_tunnel {
                    return Err(unexpected("HEADERS in a tunnel"));
                }
                if header.len > u64::from(shared.config.field_section_size_max) {
                    return Err(self.too_large(shared.side));
                }
                Ok(Inside::Headers(header.len))
            }
            FrameType::PUSH_PROMISE if shared.side == Side::Client => {
                // §7.2.5: beyond what was permitted, which is none.
                Err(ConnectionError::new(Code::ID_ERROR, "a push that was not permitted").into())
            }
            frame_type if frame_type.is_known() => {
                Err(unexpected("a frame that may not be on a request stream"))
            }
            _ => {
                shared.on_unknown(header.len)?;
                Ok(Inside::Skipped(header.len))
            }
        }
    }

    /// A frame without payload is over as it begins.
    fn end_of_empty_frame(&mut self, id: StreamId, shared: &mut Shared) -> Result<(), Fault> {
        if self.inside == Inside::Headers(0) {
            self.on_section(id, &[], shared)?;
        }
        self.inside = self.inside.or_between();
        Ok(())
    }

    fn too_large(&self, side: Side) -> Fault {
        if side == Side::Server && self.expects == Expects::Head {
            Fault::HeadTooLarge
        } else {
            Fault::Stream(StreamError::local(
                Code::EXCESSIVE_LOAD,
                "a field section larger than is taken",
            ))
        }
    }

    /// Tries the section that was kept again.
    pub(super) fn resume(&mut self, id: StreamId, shared: &mut Shared) -> Result<(), Fault> {
        let section = std::mem::take(&mut self.section);
        self.is_blocked = false;
        self.on_section(id, &section, shared)?;
        if self.is_blocked {
            return Ok(());
        }
        self.section = section;
        self.section.clear();
        Ok(())
    }

    /// A whole field section has come.
    fn on_section(
        &mut self,
        id: StreamId,
        section: &[u8],
        shared: &mut Shared,
    ) -> Result<(), Fault> {
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
                self.is_blocked = true;
                return Ok(());
            }
            Decoded::TooLarge => return Err(self.too_large(shared.side)),
        }
        shared.statistics.sections_received += section.len() as u64;
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
    ) -> Result<(), Fault> {
        let (request, facts) = check::request(fields, shared.config.extended_connect)?;
        self.is_head = facts.is_head;
        self.is_tunnel = facts.is_connect;
        self.begin_body(facts);
        self.priority = request.priority();
        self.is_unscheduled = true;
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
    ) -> Result<(), Fault> {
        let (response, facts) = check::response(fields)?;
        if response.is_informational() {
            self.informational = self.informational.saturating_add(1);
            if self.informational > shared.config.limits.informational {
                return Err(Fault::Stream(StreamError::local(
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
        // RFC 9110 §8.6: these say how long a body would be that does not come.
        let is_success = matches!(response.status(), 200..300);
        if self.is_head || matches!(response.status(), 204 | 304) {
            self.content_length = Some(0);
        } else if self.is_tunnel && is_success {
            self.content_length = None;
        } else {
            // Of a CONNECT that failed, the response is as any other.
            self.is_tunnel = false;
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
        self.content_length = facts.content_length.filter(|_| !self.is_tunnel);
    }

    /// Whether no more body came than there should be (§4.1.2).
    fn check_length(&self) -> Result<(), Fault> {
        if self.content_length.is_some_and(|len| self.body_len > len) {
            return Err(StreamError::malformed("more body than `content-length` says").into());
        }
        Ok(())
    }

    /// The peer's stream ended, and all of it was taken.
    pub(super) fn on_end(&mut self, id: StreamId, shared: &mut Shared) -> Result<(), Fault> {
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

/// The first `len` of the bytes, or all.
fn first(bytes: &[u8], len: u64) -> &[u8] {
    let len = usize::try_from(len).map_or(bytes.len(), |len| len.min(bytes.len()));
    bytes.get(..len).unwrap_or_default()
}

impl Inside {
    /// A frame of which nothing is left is over.
    const fn or_between(self) -> Self {
        match self {
            Self::Headers(0) | Self::Data(0) | Self::Skipped(0) => Self::Between,
            other => other,
        }
    }
}
