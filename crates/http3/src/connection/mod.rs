//! One end of an HTTP/3 connection (RFC 9114 §3, §5, §6).
//!
//! Owns no transport: each call takes the connection that it is about. Streams are told apart here; what comes on each is
//! read by its room.
//!
//! | file | owns |
//! |---|---|
//! | `request_stream`, `receive` | one request and its response: what comes; what follows from it |
//! | `send` | what the application says |
//! | `critical` | our control and QPACK streams |
//! | `unidirectional`, `control` | the peer's |
//! | `priorities` | who is to be served first (RFC 9218) |
//! | `shutdown` | GOAWAY, both ways |
//! | `stalls` | requests of clients that neither take nor send |
//! | `datagrams` | HTTP datagrams (RFC 9297) |
//! | `shared`, `statistics` | what they have in common |

mod control;
mod critical;
mod datagrams;
mod priorities;
mod receive;
mod request_stream;
mod send;
mod shared;
mod shutdown;
mod stalls;
mod statistics;
mod unidirectional;

use std::collections::{BTreeMap, VecDeque};

use lastbyte_quic::{
    Time, connection as transport,
    datagram::DatagramError,
    stream::{Source, StreamEvent},
};
use lastbyte_wire::{Direction, Side, StreamId};

use self::{
    critical::OwnStreams,
    request_stream::RequestStream,
    shared::{Fault, Shared},
    shutdown::Shutdown,
    unidirectional::PeerStreams,
};
pub use self::{
    receive::{BodySink, Sink},
    statistics::Statistics,
};
use crate::{
    Body, Code, Config, ConnectionError, Event, Fields, Priority, ReadError, Request, RequestError,
    Response, SendError, Settings, qpack::Encoder,
};

/// One end of an HTTP/3 connection.
#[derive(Debug)]
pub struct Connection {
    shared: Shared,
    encoder: Encoder,
    own: OwnStreams,
    peer: PeerStreams,
    /// Request streams that are not over.
    streams: BTreeMap<StreamId, RequestStream>,
    /// Streams that a sink found something on.
    ready: VecDeque<StreamId>,
    faults: VecDeque<(StreamId, Fault)>,
    /// Until when the heads of requests may take, the earliest first.
    heads: VecDeque<(Time, StreamId)>,
    /// When bodies are to be looked at, if there are any.
    stalls_at: Option<Time>,
    early_priorities: BTreeMap<StreamId, Priority>,
    shutdown: Shutdown,
    /// What the peer says about itself, or what was remembered.
    settings: Option<Settings>,
    remembered: Option<Settings>,
    failure: Option<ConnectionError>,
    is_failure_told: bool,
    /// What is being put together to be sent.
    outgoing: Vec<u8>,
    section: Vec<u8>,
}

impl Connection {
    /// A client's end. It may be made before the handshake is done.
    #[must_use]
    pub fn client(config: &Config) -> Self {
        Self::new(Side::Client, config)
    }

    /// A server's end. It may be made before the handshake is done.
    #[must_use]
    pub fn server(config: &Config) -> Self {
        Self::new(Side::Server, config)
    }

    fn new(side: Side, config: &Config) -> Self {
        Self {
            shared: Shared::new(side, config),
            encoder: Encoder::new(
                config.qpack_encoder_capacity,
                config.qpack_encoder_blocked_streams,
            ),
            own: OwnStreams::new(side, config),
            peer: PeerStreams::default(),
            streams: BTreeMap::new(),
            ready: VecDeque::new(),
            faults: VecDeque::new(),
            heads: VecDeque::new(),
            stalls_at: None,
            early_priorities: BTreeMap::new(),
            shutdown: Shutdown::default(),
            settings: None,
            remembered: None,
            failure: None,
            is_failure_told: false,
            outgoing: Vec::new(),
            section: Vec::new(),
        }
    }

    /// What the server said about itself when the ticket was given that 0-RTT is sent with (RFC 9114 §7.2.4.2). It holds
    /// until the server speaks for itself, and is checked then.
    #[must_use]
    pub fn with_remembered(mut self, settings: Settings) -> Self {
        self.remembered = Some(settings);
        self
    }

    /// The server rejected 0-RTT: what was remembered of it does not bind it. What was sent is sent again by the transport.
    pub fn on_zero_rtt_rejected(&mut self) {
        self.remembered = None;
    }

    // ---- events and time ---------------------------------------------------------------------------------------------

    /// The next thing that happened. To be called until there is nothing, after datagrams came in, after timeouts, and once
    /// at the start. It takes all events of the transport's streams; those of [`transport::Connection::poll_event`] are
    /// left to the caller.
    pub fn poll(&mut self, quic: &mut transport::Connection, now: Time) -> Option<Event> {
        self.shared.now = now;
        if self.failure.is_some() {
            return self.tell_failure(quic);
        }
        if let Some(event) = self.shared.events.pop_front() {
            return Some(event);
        }
        self.open_own_streams(quic);
        self.check_heads(quic);
        self.check_shutdown(quic);
        loop {
            if self.failure.is_some() {
                return self.tell_failure(quic);
            }
            if let Some(event) = self.shared.events.pop_front() {
                return Some(event);
            }
            if let Some((id, fault)) = self.faults.pop_front() {
                self.on_fault(quic, id, fault);
            } else if let Some(id) = self.ready.pop_front() {
                self.attend(quic, id);
            } else if let Some(event) = quic.streams().poll_event() {
                self.on_stream_event(quic, event);
            } else if !self.take_datagram(quic) {
                break;
            }
        }
        self.flush(quic);
        // By now the application has read what it wants of what came.
        self.check_stalls(quic);
        if self.failure.is_some() {
            return self.tell_failure(quic);
        }
        self.check_drained();
        // Clients are expected to keep a connection open as long as responses are outstanding (RFC 9114 §5.1).
        quic.set_awaiting(self.shared.side == Side::Client && !self.streams.is_empty());
        self.shared.events.pop_front()
    }

    fn on_stream_event(&mut self, quic: &mut transport::Connection, event: StreamEvent) {
        match event {
            StreamEvent::Opened(Direction::Bidirectional) => self.accept_requests(quic),
            StreamEvent::Opened(Direction::Unidirectional) => self.accept_unidirectional(quic),
            StreamEvent::Available(Direction::Bidirectional) => {
                if self.shared.side == Side::Client {
                    self.shared.events.push_back(Event::RequestsAvailable);
                }
            }
            StreamEvent::Available(Direction::Unidirectional) => self.open_own_streams(quic),
            StreamEvent::Readable(id) if is_request(id) => self.attend(quic, id),
            StreamEvent::Readable(id) => self.read_unidirectional(quic, id),
            StreamEvent::Reset { id, code } if is_request(id) => self.on_reset(quic, id, code),
            StreamEvent::Reset { id, .. } => self.on_unidirectional_end(id),
            StreamEvent::Stopped { id, code } if is_request(id) => self.on_stopped(id, code),
            StreamEvent::Stopped { id, .. } => self.on_own_stream_stopped(id),
            StreamEvent::SourceFailed { id, code } => self.on_source_failed(id, code),
            StreamEvent::Writable(id) if is_request(id) => {
                if self.streams.contains_key(&id) {
                    self.shared.events.push_back(Event::Writable { stream: id });
                }
            }
            StreamEvent::Writable(_) => self.flush(quic),
            StreamEvent::Finished(id) => self.on_sent(id),
        }
    }

    /// The client opened request streams (RFC 9114 §6.1).
    fn accept_requests(&mut self, quic: &mut transport::Connection) {
        if self.shared.side == Side::Client {
            self.fail(ConnectionError::new(
                Code::STREAM_CREATION_ERROR,
                "a bidirectional stream of the server's",
            ));
            return;
        }
        while let Some(id) = quic.streams().accept(Direction::Bidirectional) {
            if self.shutdown.refuses(id) {
                self.refuse(quic, id);
                continue;
            }
            self.shutdown.on_accepted(id);
            self.streams.insert(id, RequestStream::new());
            if id.index() + 1 >= self.shared.config.limits.requests {
                let now = self.shared.now;
                self.shut_down(quic, now);
            }
        }
    }

    /// A rule was broken that concerns all streams.
    fn fail(&mut self, error: ConnectionError) {
        self.failure.get_or_insert(error);
    }

    fn tell_failure(&mut self, quic: &mut transport::Connection) -> Option<Event> {
        let error = self.failure?;
        if std::mem::replace(&mut self.is_failure_told, true) {
            return None;
        }
        self.shared.events.clear();
        let now = self.shared.now;
        quic.close(now, error.code.get());
        Some(Event::Failed(error))
    }

    /// When [`Connection::poll`] wants to be called, if nothing happens before.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        if self.failure.is_some() {
            // Nothing is looked at any more; the transport has its own time for closing.
            return None;
        }
        let head = self.heads.front().map(|(until, _)| *until);
        [head, self.stalls_deadline(), self.shutdown.deadline()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Leads bodies from packets right to `body`, without a copy. What is not body, or not taken, is kept for
    /// [`Connection::poll`] and [`Connection::read`].
    pub fn sink<'a>(&'a mut self, body: &'a mut dyn BodySink) -> Sink<'a> {
        Sink { http3: self, body }
    }

    // ---- messages ----------------------------------------------------------------------------------------------------

    /// A client asks.
    ///
    /// # Errors
    ///
    /// The request cannot be sent, or not now. Nothing was.
    pub fn request(
        &mut self,
        quic: &mut transport::Connection,
        request: &Request,
        body: Body,
    ) -> Result<StreamId, RequestError> {
        self.send_request(quic, request, body)
    }

    /// A server says something before it answers, such as 103 Early Hints (RFC 9110 §15.2, RFC 8297).
    ///
    /// # Errors
    ///
    /// The response cannot be sent. Nothing was. A status that is not 1xx, or is 101, is out of order.
    pub fn inform(
        &mut self,
        quic: &mut transport::Connection,
        stream: StreamId,
        response: &Response,
    ) -> Result<(), SendError> {
        self.send_interim(quic, stream, response)
    }

    /// A server answers. A `priority` field in the response changes how it is scheduled (RFC 9218 §8).
    ///
    /// # Errors
    ///
    /// The response cannot be sent. Nothing was.
    pub fn respond(
        &mut self,
        quic: &mut transport::Connection,
        stream: StreamId,
        response: &Response,
        body: Body,
    ) -> Result<(), SendError> {
        self.send_response(quic, stream, response, body)
    }

    /// Sends all of a source as body, in one DATA frame.
    ///
    /// # Errors
    ///
    /// It cannot be sent. Nothing was.
    pub fn send(
        &mut self,
        quic: &mut transport::Connection,
        stream: StreamId,
        source: Box<dyn Source>,
    ) -> Result<(), SendError> {
        self.send_source(quic, stream, source)
    }

    /// Sends bytes of a body, as many as there is room for; if not all, [`Event::Writable`] follows when there is room.
    /// Returns how many were taken.
    ///
    /// # Errors
    ///
    /// They cannot be sent.
    pub fn write(
        &mut self,
        quic: &mut transport::Connection,
        stream: StreamId,
        bytes: &[u8],
    ) -> Result<usize, SendError> {
        self.send_bytes(quic, stream, bytes)
    }

    /// Ends a message whose body followed.
    ///
    /// # Errors
    ///
    /// It cannot end here: its head was not sent, or its body is not as long as it says.
    pub fn finish(
        &mut self,
        quic: &mut transport::Connection,
        stream: StreamId,
    ) -> Result<(), SendError> {
        self.send_end(quic, stream)
    }

    /// Ends a message with trailers.
    ///
    /// # Errors
    ///
    /// It cannot end here, or not with these fields.
    pub fn trailers(
        &mut self,
        quic: &mut transport::Connection,
        stream: StreamId,
        fields: &Fields,
    ) -> Result<(), SendError> {
        self.send_trailers(quic, stream, fields)
    }

    /// Hands out body that was received, slice by slice, until `read` takes less than it is given or there is no more.
    /// Returns how many bytes it took. That the message ends is told by [`Connection::poll`].
    ///
    /// # Errors
    ///
    /// There is nothing to be read, and will not be.
    pub fn read(
        &mut self,
        quic: &mut transport::Connection,
        now: Time,
        stream: StreamId,
        read: &mut dyn FnMut(&[u8]) -> usize,
    ) -> Result<usize, ReadError> {
        self.shared.now = now;
        self.read_body(quic, stream, read)
    }

    /// Gives our message up. Does nothing if it was sent.
    pub fn reset(&mut self, quic: &mut transport::Connection, stream: StreamId, code: Code) {
        self.reset_sending(quic, stream, code);
    }

    /// Asks the peer to send no more of its message, which is not told of any more. A server that needs no more of a request
    /// answers first, and then stops with `NO_ERROR` (RFC 9114 §4.1).
    pub fn stop(
        &mut self,
        quic: &mut transport::Connection,
        now: Time,
        stream: StreamId,
        code: Code,
    ) {
        self.shared.now = now;
        self.stop_receiving(quic, stream, code);
    }

    /// Gives up both messages of a stream: a client its request, with `REQUEST_CANCELLED`, or a server one that it did not
    /// process, with `REQUEST_REJECTED` (RFC 9114 §4.1.1).
    pub fn cancel(
        &mut self,
        quic: &mut transport::Connection,
        now: Time,
        stream: StreamId,
        code: Code,
    ) {
        self.reset(quic, stream, code);
        self.stop(quic, now, stream, code);
    }

    /// Says how important a response is from now on (RFC 9218 §7): a client tells the server, a server its scheduler.
    pub fn prioritise(
        &mut self,
        quic: &mut transport::Connection,
        stream: StreamId,
        priority: Priority,
    ) {
        self.set_priority(quic, stream, priority);
    }

    /// Sends an HTTP datagram (RFC 9297): once, or not at all.
    ///
    /// # Errors
    ///
    /// It cannot be sent, and is dropped.
    pub fn send_datagram(
        &mut self,
        quic: &mut transport::Connection,
        stream: StreamId,
        payload: &[u8],
    ) -> Result<(), DatagramError> {
        self.put_datagram(quic, stream, payload)
    }

    // ---- the connection ----------------------------------------------------------------------------------------------

    /// Shuts down in peace (RFC 9114 §5.2): the peer is told to begin nothing new; a round trip later, what it began
    /// nevertheless is refused; [`Event::Drained`] tells when nothing is left.
    pub fn shut_down(&mut self, quic: &mut transport::Connection, now: Time) {
        self.shared.now = now;
        self.begin_shutdown(quic);
    }

    /// Closes the connection at once.
    pub fn close(&mut self, quic: &mut transport::Connection, now: Time, code: Code) {
        self.flush(quic);
        quic.close(now, code.get());
    }

    /// What the peer has told about itself, or what was remembered of it; `None` before.
    #[must_use]
    pub const fn peer_settings(&self) -> Option<&Settings> {
        self.settings.as_ref()
    }

    /// Takes fields that are not needed any more, so that their memory serves the next message.
    pub fn recycle(&mut self, fields: Fields) {
        self.shared.recycle(fields);
    }

    /// Why the connection failed, if it did.
    #[must_use]
    pub const fn error(&self) -> Option<ConnectionError> {
        self.failure
    }

    /// What has been counted.
    #[must_use]
    pub const fn statistics(&self) -> Statistics {
        self.shared.statistics
    }
}

/// Whether a stream carries a request.
fn is_request(id: StreamId) -> bool {
    id.direction() == Direction::Bidirectional
}
