//! Both ends of an HTTP/1.1 or 2 connection of a page load, over the model of TCP.
//!
//! The model of TCP carries byte counts. A [`MessageQueue`] maps them to messages, which the other end reads as far as
//! bytes have arrived in order: a lost segment delays everything behind it.
//!
//! - HTTP/1.1 (RFC 9112): one request at a time, no pipelining; headers have the sizes of the page.
//! - HTTP/2 (RFC 9113): frames of up to 16 KiB with headers of 9 bytes; windows of Chromium (6 MiB a stream, 15 MiB a
//!   connection). HPACK: the first header section in each direction has its full size, later ones [`HPACK_FIXED`] bytes and an
//!   eighth of it (assumed). The server sends by urgency; within one, responses that are not incremental come first, one after
//!   the other, then the incremental ones in turn, a frame each: RFC 9218 §10, as in H2O and in the HTTP/3 server.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use lastbyte_congestion::Time;
use lastbyte_page::{Page, Priority};
use lastbyte_wire::Side;

use super::Arrival;
use crate::tcp::{Config, Endpoint, Segment};

/// Both ends of a connection.
#[derive(Debug)]
pub(super) struct TcpConnection {
    client: Endpoint,
    server: Endpoint,
    is_http2: bool,
    has_hints: bool,
    page: Arc<Page>,
    /// Messages from the client.
    requests: MessageQueue<ClientMessage>,
    /// Messages from the server.
    responses: MessageQueue<ServerMessage>,
    /// Requests with the time of their response.
    waiting: BTreeSet<(Time, u16)>,
    /// Responses in progress at the server.
    sending: Vec<Sending>,
    turns: u64,
    /// Flow control windows of the server, in bytes.
    windows: Windows,
    /// Bytes of each body that arrived at the client.
    received: BTreeMap<u16, u64>,
    /// Bytes that the client received since its last `WINDOW_UPDATE`, on the connection and on each stream.
    consumed: u64,
    consumed_by: BTreeMap<u16, u64>,
    is_first_request: bool,
    is_first_response: bool,
    arrivals: Vec<Arrival>,
}

#[derive(Clone, Copy, Debug)]
enum ClientMessage {
    Request(u16),
    /// `WINDOW_UPDATE` of a stream, or of the connection.
    Window(Option<u16>, u64),
    /// Preface and settings.
    Other,
}

#[derive(Clone, Copy, Debug)]
enum ServerMessage {
    Hints,
    Head(u16, IsLast),
    /// A frame of a body: resource, offset in the body, and whether it is the last.
    Data(u16, u64, IsLast),
    Other,
}

type IsLast = bool;

#[derive(Clone, Copy, Debug)]
struct Sending {
    resource: u16,
    priority: Priority,
    is_head_sent: bool,
    remaining: u64,
    /// When it last sent a frame, as a count of frames; 0 for responses that are not incremental.
    turn: u64,
}

#[derive(Debug)]
struct Windows {
    connection: u64,
    streams: BTreeMap<u16, u64>,
}

/// Messages of one direction, with the bytes of the stream that each occupies.
#[derive(Debug)]
struct MessageQueue<T> {
    written: u64,
    parts: VecDeque<Part<T>>,
}

#[derive(Clone, Copy, Debug)]
struct Part<T> {
    start: u64,
    end: u64,
    message: T,
}

impl<T: Copy> MessageQueue<T> {
    const fn new() -> Self {
        Self {
            written: 0,
            parts: VecDeque::new(),
        }
    }

    fn write(&mut self, end: &mut Endpoint, bytes: u64, message: T) {
        end.write(bytes);
        let start = self.written;
        self.written += bytes;
        self.parts.push_back(Part {
            start,
            end: self.written,
            message,
        });
    }

    /// Returns the next message if all its bytes have arrived.
    fn pop(&mut self, received: u64) -> Option<Part<T>> {
        let is_complete = self.parts.front().is_some_and(|part| part.end <= received);
        is_complete.then(|| self.parts.pop_front()).flatten()
    }
}

impl TcpConnection {
    /// Creates a connection, and starts its handshake.
    pub(super) fn new(
        page: Arc<Page>,
        config: &Config,
        is_http2: bool,
        has_hints: bool,
        now: Time,
    ) -> Self {
        let mut connection = Self {
            client: Endpoint::client(config),
            server: Endpoint::server(config),
            is_http2,
            has_hints,
            page,
            requests: MessageQueue::new(),
            responses: MessageQueue::new(),
            waiting: BTreeSet::new(),
            sending: Vec::new(),
            turns: 0,
            windows: Windows {
                connection: CONNECTION_WINDOW,
                streams: BTreeMap::new(),
            },
            received: BTreeMap::new(),
            consumed: 0,
            consumed_by: BTreeMap::new(),
            is_first_request: true,
            is_first_response: true,
            arrivals: Vec::new(),
        };
        connection.client.connect(now);
        if is_http2 {
            let client = &mut connection.client;
            connection
                .requests
                .write(client, CLIENT_PREFACE, ClientMessage::Other);
        }
        connection
    }

    /// Whether the client may send requests.
    pub(super) const fn is_ready(&self) -> bool {
        self.client.is_ready()
    }

    /// Appends what has arrived at the client since the last call.
    pub(super) fn take_arrivals(&mut self, into: &mut Vec<Arrival>) {
        into.append(&mut self.arrivals);
    }

    /// Requests a resource.
    pub(super) fn request(&mut self, resource: u16) {
        let header = self.page.resources[usize::from(resource)].request_header;
        let bytes = self.header(header, self.is_first_request);
        self.is_first_request = false;
        let message = ClientMessage::Request(resource);
        self.requests.write(&mut self.client, bytes, message);
    }

    pub(super) fn deadline(&self, side: Side) -> Option<Time> {
        match side {
            Side::Client => self.client.deadline(),
            Side::Server => {
                let waiting = self.waiting.first().map(|(at, _)| *at);
                Time::earlier(waiting, self.server.deadline())
            }
        }
    }

    pub(super) fn on_time(&mut self, side: Side, now: Time) {
        match side {
            Side::Client => self.client.handle_timeout(now),
            Side::Server => {
                self.server.handle_timeout(now);
                self.serve(now);
            }
        }
    }

    pub(super) fn on_segment(&mut self, side: Side, now: Time, segment: &Segment) {
        match side {
            Side::Client => {
                self.client.handle_segment(now, segment);
                self.read();
            }
            Side::Server => {
                self.server.handle_segment(now, segment);
                self.serve(now);
            }
        }
    }

    pub(super) fn poll_transmit(&mut self, side: Side, now: Time) -> Option<Segment> {
        match side {
            Side::Client => self.client.poll_transmit(now),
            Side::Server => self.server.poll_transmit(now),
        }
    }

    /// Bytes of a header section.
    fn header(&self, full: u32, is_first: bool) -> u64 {
        let full = u64::from(full.max(1));
        match (self.is_http2, is_first) {
            (false, _) => full,
            (true, true) => FRAME_HEADER + full,
            (true, false) => FRAME_HEADER + full.min(HPACK_FIXED + full / 8),
        }
    }

    /// The server reads requests, and writes responses.
    fn serve(&mut self, now: Time) {
        let received = self.server.received();
        while let Some(part) = self.requests.pop(received) {
            match part.message {
                ClientMessage::Request(resource) => {
                    if resource == 0 && self.has_hints {
                        let hinted = self.page.resources.iter();
                        let hinted = hinted.filter(|resource| resource.is_hinted).count() as u64;
                        let bytes = FRAME_HEADER + HINT * hinted;
                        self.responses
                            .write(&mut self.server, bytes, ServerMessage::Hints);
                    }
                    let wait = self.page.resources[usize::from(resource)].wait;
                    self.waiting.insert((now + wait, resource));
                }
                ClientMessage::Window(None, bytes) => self.windows.connection += bytes,
                ClientMessage::Window(Some(resource), bytes) => {
                    if let Some(window) = self.windows.streams.get_mut(&resource) {
                        *window += bytes;
                    }
                }
                ClientMessage::Other => {
                    self.responses
                        .write(&mut self.server, SERVER_PREFACE, ServerMessage::Other);
                }
            }
        }
        while let Some(&(at, resource)) = self.waiting.first()
            && at <= now
        {
            self.waiting.pop_first();
            let description = &self.page.resources[usize::from(resource)];
            self.windows.streams.insert(resource, STREAM_WINDOW);
            self.sending.push(Sending {
                resource,
                priority: description.priority,
                is_head_sent: false,
                remaining: description.body,
                turn: 0,
            });
        }
        while self.send() {}
    }

    /// Writes the next frame if one is pending and the window permits it. Returns whether it did.
    fn send(&mut self) -> bool {
        let room = self.server.write_room();
        if room == 0 {
            return false;
        }
        let sendable = self.sending.iter().enumerate().filter(|(_, one)| {
            let window = self.windows.streams.get(&one.resource).copied();
            let window = window.unwrap_or(0).min(self.windows.connection);
            !one.is_head_sent || !self.is_http2 || window > 0
        });
        let next = sendable.min_by_key(|(place, one)| {
            let priority = one.priority;
            (priority.urgency, priority.is_incremental, one.turn, *place)
        });
        let Some(place) = next.map(|(place, _)| place) else {
            return false;
        };
        let mut one = self.sending[place];
        if one.is_head_sent {
            let framing = if self.is_http2 { FRAME_HEADER } else { 0 };
            let mut bytes = one.remaining.min(FRAME_MAX);
            bytes = bytes.min(room.saturating_sub(framing));
            if self.is_http2
                && let Some(window) = self.windows.streams.get_mut(&one.resource)
            {
                bytes = bytes.min(*window).min(self.windows.connection);
                *window -= bytes;
                self.windows.connection -= bytes;
            }
            if bytes == 0 {
                return false;
            }
            let offset = self.page.resources[usize::from(one.resource)].body - one.remaining;
            one.remaining -= bytes;
            self.turns += 1;
            if one.priority.is_incremental {
                one.turn = self.turns;
            }
            let message = ServerMessage::Data(one.resource, offset, one.remaining == 0);
            self.responses
                .write(&mut self.server, framing + bytes, message);
        } else {
            let header = self.page.resources[usize::from(one.resource)].response_header;
            let bytes = self.header(header, self.is_first_response);
            self.is_first_response = false;
            one.is_head_sent = true;
            let message = ServerMessage::Head(one.resource, one.remaining == 0);
            self.responses.write(&mut self.server, bytes, message);
        }
        if one.remaining == 0 {
            self.sending.remove(place);
        } else {
            self.sending[place] = one;
        }
        true
    }

    /// The client reads responses.
    fn read(&mut self) {
        let received = self.client.received();
        while let Some(part) = self.responses.pop(received) {
            match part.message {
                ServerMessage::Hints => self.arrivals.push(Arrival::Hints),
                ServerMessage::Head(resource, is_last) => {
                    self.arrivals.push(Arrival::Head(resource));
                    if is_last {
                        self.arrivals.push(Arrival::End(resource));
                    }
                }
                ServerMessage::Data(resource, offset, is_last) => {
                    self.body(resource, offset, part, received);
                    if is_last {
                        self.arrivals.push(Arrival::End(resource));
                    }
                }
                ServerMessage::Other => {}
            }
        }
        // A browser reads parts of a DATA frame as they arrive.
        if let Some(part) = self.responses.parts.front().copied()
            && let ServerMessage::Data(resource, offset, _) = part.message
        {
            self.body(resource, offset, part, received);
        }
    }

    /// Processes a DATA frame at `offset` in its body, of which all or some bytes have arrived.
    fn body(&mut self, resource: u16, offset: u64, part: Part<ServerMessage>, received: u64) {
        let framing = if self.is_http2 { FRAME_HEADER } else { 0 };
        let Some(arrived) = received
            .min(part.end)
            .checked_sub(part.start + framing)
            .filter(|arrived| *arrived > 0)
        else {
            return;
        };
        let total = offset + arrived;
        let before = self.received.insert(resource, total).unwrap_or(0);
        if total <= before {
            return;
        }
        self.arrivals.push(Arrival::Body(resource, total));
        if self.is_http2 {
            self.consume(resource, total - before);
        }
    }

    /// Sends `WINDOW_UPDATE` for windows of which half is consumed.
    fn consume(&mut self, resource: u16, bytes: u64) {
        self.consumed += bytes;
        let of_stream = self.consumed_by.entry(resource).or_default();
        *of_stream += bytes;
        let mut updates = [None; 2];
        if *of_stream >= STREAM_WINDOW / 2 {
            updates[0] = Some((Some(resource), std::mem::take(of_stream)));
        }
        if self.consumed >= CONNECTION_WINDOW / 2 {
            updates[1] = Some((None, std::mem::take(&mut self.consumed)));
        }
        for (stream, bytes) in updates.into_iter().flatten() {
            let message = ClientMessage::Window(stream, bytes);
            self.requests
                .write(&mut self.client, WINDOW_UPDATE, message);
        }
    }
}

const FRAME_HEADER: u64 = 9;
const FRAME_MAX: u64 = 16_384;
/// `SETTINGS_INITIAL_WINDOW_SIZE` and the connection's window of Chromium (`http_network_session.cc`).
const STREAM_WINDOW: u64 = 6 << 20;
const CONNECTION_WINDOW: u64 = 15 << 20;
/// `WINDOW_UPDATE` (RFC 9113 §6.9).
const WINDOW_UPDATE: u64 = FRAME_HEADER + 4;
/// Preface, `SETTINGS` and `WINDOW_UPDATE` of Chromium; `SETTINGS` and its acknowledgment of a server.
const CLIENT_PREFACE: u64 = 24 + FRAME_HEADER + 24 + WINDOW_UPDATE;
const SERVER_PREFACE: u64 = FRAME_HEADER + 18 + FRAME_HEADER;
/// Size of the part of a header section that changes with each request, such as the path, in bytes (assumed).
const HPACK_FIXED: u64 = 48;
/// A `link` field of a 103 response, in bytes (assumed).
const HINT: u64 = 60;
