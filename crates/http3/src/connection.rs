//! One end of an HTTP/3 connection (RFC 9114 §3, §5, §6).
//!
//! It holds no transport: each call takes the transport of the connection. This file dispatches streams by their type; the
//! modules below read and write them.
//!
//! | file | responsibility |
//! |---|---|
//! | `request_stream`, `receiving`, `sending` | one request and its response: the state of both messages |
//! | `receive` | the effect of received frames |
//! | `send` | messages of the application |
//! | `critical` | our control and QPACK streams |
//! | `unidirectional`, `control` | the peer's control and QPACK streams |
//! | `priorities` | the order in which responses are sent (RFC 9218) |
//! | `shutdown` | GOAWAY, in both directions |
//! | `stalls` | requests whose clients neither read nor send |
//! | `shared`, `statistics` | state that they share |
//! | `traced` | frames for the trace of the transport |

mod control;
mod critical;
mod priorities;
mod receive;
mod receiving;
mod request_stream;
mod send;
mod sending;
mod shared;
mod shutdown;
mod stalls;
mod statistics;
mod traced;
mod unidirectional;

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use lastbyte_quic::{Time, stream::StreamEvent};
use lastbyte_wire::{Direction, Side, StreamId};

use self::{
    critical::OwnStreams,
    request_stream::RequestStream,
    shared::{ReceiveError, Shared},
    shutdown::Shutdown,
    unidirectional::PeerStreams,
};
pub use self::{
    receive::{BodySink, Sink},
    statistics::Statistics,
};
use crate::{
    Code, Config, ConnectionError, Event, Fields, Priority, Settings, Transport, qpack::Encoder,
};

/// The default of `max_ack_delay` (RFC 9000 §18.2): a response that is sent later does not carry the ACK of what the client
/// sent with its own ACK of the previous response.
const QUIET: Duration = Duration::from_millis(25);

/// One end of an HTTP/3 connection.
#[derive(Debug)]
pub struct Connection {
    shared: Shared,
    encoder: Encoder,
    own: OwnStreams,
    peer: PeerStreams,
    /// Request streams that have not ended. Boxed, since a node of the map holds eleven values.
    streams: BTreeMap<StreamId, Box<RequestStream>>,
    /// Streams for which a sink has received frames.
    ready: VecDeque<StreamId>,
    receive_errors: VecDeque<(StreamId, ReceiveError)>,
    /// The deadlines of requests whose header is incomplete, earliest first.
    heads: VecDeque<(Time, StreamId)>,
    /// When the progress of bodies is checked next, if any body is in progress.
    stalls_at: Option<Time>,
    early_priorities: BTreeMap<StreamId, Priority>,
    /// When a message was last acknowledged in full.
    sent_at: Option<Time>,
    shutdown: Shutdown,
    /// The peer's settings, or those remembered from an earlier connection.
    settings: Option<Settings>,
    remembered: Option<Settings>,
    failure: Option<ConnectionError>,
    is_failure_reported: bool,
    /// Scratch buffer for outgoing frames.
    outgoing: Vec<u8>,
    section: Vec<u8>,
}

impl Connection {
    /// Creates a client's end. It may be created before the handshake is complete.
    #[must_use]
    pub fn client(config: &Config) -> Self {
        Self::new(Side::Client, config)
    }

    /// Creates a server's end. It may be created before the handshake is complete.
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
            receive_errors: VecDeque::new(),
            heads: VecDeque::new(),
            stalls_at: None,
            early_priorities: BTreeMap::new(),
            sent_at: None,
            shutdown: Shutdown::default(),
            settings: None,
            remembered: None,
            failure: None,
            is_failure_reported: false,
            outgoing: Vec::new(),
            section: Vec::new(),
        }
    }

    /// Sets the server settings remembered with the ticket with which 0-RTT is sent (RFC 9114 §7.2.4.2). They apply
    /// until the server's own settings arrive, and are checked against those.
    #[must_use]
    pub fn with_remembered(mut self, settings: Settings) -> Self {
        self.remembered = Some(settings);
        self
    }

    /// The server rejected 0-RTT: its remembered settings no longer apply. The transport sends the data again.
    pub fn on_zero_rtt_rejected(&mut self) {
        self.remembered = None;
    }

    // ---- events and time ---------------------------------------------------------------------------------------------

    /// The next event. Call it until it returns `None`: after datagrams arrived, after timeouts, and once at the start.
    /// It takes all stream events of the transport, but not those of the transport's
    /// [`poll_event`](lastbyte_quic::connection::Connection::poll_event).
    pub fn poll(&mut self, transport: &mut dyn Transport, now: Time) -> Option<Event> {
        self.shared.now = now;
        let event = self.next_event(transport);
        if self.shared.traced.is_some() {
            self.report_frames(transport, now);
        }
        event
    }

    /// Reports the frames since the last report. Connections without a listener do not pay for it.
    #[cold]
    fn report_frames(&mut self, transport: &mut dyn Transport, now: Time) {
        for frame in self.shared.traced.iter_mut().flatten() {
            frame.report(transport, now);
        }
        self.shared.traced = Some(Vec::new());
    }

    fn next_event(&mut self, transport: &mut dyn Transport) -> Option<Event> {
        if self.failure.is_some() {
            return self.report_failure(transport);
        }
        if let Some(event) = self.shared.events.pop_front() {
            return Some(event);
        }
        self.open_own_streams(transport);
        self.check_heads(transport);
        self.check_shutdown(transport);
        loop {
            if self.failure.is_some() {
                return self.report_failure(transport);
            }
            if let Some(event) = self.shared.events.pop_front() {
                return Some(event);
            }
            if let Some((id, error)) = self.receive_errors.pop_front() {
                self.on_receive_error(transport, id, error);
            } else if let Some(id) = self.ready.pop_front() {
                self.read_arrived(transport, id);
            } else if let Some(event) = transport.poll_stream_event() {
                self.on_stream_event(transport, event);
            } else {
                break;
            }
        }
        self.flush(transport);
        // By now the application has read as much as it wants of the received data.
        self.check_stalls(transport);
        if self.failure.is_some() {
            return self.report_failure(transport);
        }
        self.check_drained();
        // Clients are expected to keep a connection open as long as responses are outstanding (RFC 9114 §5.1).
        transport.set_awaiting(self.shared.side == Side::Client && !self.streams.is_empty());
        self.shared.events.pop_front()
    }

    fn on_stream_event(&mut self, transport: &mut dyn Transport, event: StreamEvent) {
        match event {
            StreamEvent::Opened(Direction::Bidirectional) => self.accept_requests(transport),
            StreamEvent::Opened(Direction::Unidirectional) => self.accept_unidirectional(transport),
            StreamEvent::Available(Direction::Bidirectional) => {
                if self.shared.side == Side::Client {
                    self.shared.events.push_back(Event::RequestsAvailable);
                }
            }
            StreamEvent::Available(Direction::Unidirectional) => self.open_own_streams(transport),
            StreamEvent::Readable(id) if is_request(id) => self.read_arrived(transport, id),
            StreamEvent::Readable(id) => self.read_unidirectional(transport, id),
            StreamEvent::Reset { id, code } if is_request(id) => self.on_reset(transport, id, code),
            StreamEvent::Reset { id, .. } => self.on_unidirectional_end(id),
            StreamEvent::Stopped { id, code } if is_request(id) => self.on_stopped(id, code),
            StreamEvent::Stopped { id, .. } => self.on_own_stream_stopped(id),
            StreamEvent::SourceFailed { id, code } => self.on_source_failed(id, code),
            StreamEvent::Writable(id) if is_request(id) => {
                if self.streams.contains_key(&id) {
                    self.shared.events.push_back(Event::Writable { stream: id });
                }
            }
            StreamEvent::Writable(_) => self.flush(transport),
            StreamEvent::Finished(id) => self.on_sent(id),
        }
    }

    /// The client opened request streams (RFC 9114 §6.1).
    fn accept_requests(&mut self, transport: &mut dyn Transport) {
        if self.shared.side == Side::Client {
            self.fail(ConnectionError::new(
                Code::STREAM_CREATION_ERROR,
                "a bidirectional stream of the server's",
            ));
            return;
        }
        while let Some(id) = transport.accept(Direction::Bidirectional) {
            if self.shutdown.refuses(id) {
                self.refuse(transport, id);
                continue;
            }
            self.shutdown.on_accepted(id);
            // The first response of a connection fills the table.
            let is_quiet = |at: Time| self.shared.now.since(at) > QUIET;
            let stream = RequestStream {
                is_sparse: self.streams.is_empty() && self.sent_at.is_some_and(is_quiet),
                ..RequestStream::default()
            };
            self.streams.insert(id, Box::new(stream));
            if id.index() + 1 >= self.shared.config.limits.requests {
                let now = self.shared.now;
                self.shut_down(transport, now);
            }
        }
    }

    /// A rule that concerns the whole connection was broken.
    fn fail(&mut self, error: ConnectionError) {
        self.failure.get_or_insert(error);
    }

    fn report_failure(&mut self, transport: &mut dyn Transport) -> Option<Event> {
        let error = self.failure?;
        if std::mem::replace(&mut self.is_failure_reported, true) {
            return None;
        }
        self.shared.events.clear();
        let now = self.shared.now;
        transport.close(now, error.code.get());
        Some(Event::Failed(error))
    }

    /// When [`Connection::poll`] is due, if nothing happens before.
    pub fn deadline(&self) -> Option<Time> {
        if self.failure.is_some() {
            // A closed connection processes no events; the transport has its own closing timer.
            return None;
        }
        let head = self.heads.front().map(|(until, _)| *until);
        Time::earlier(
            head,
            Time::earlier(self.stalls_deadline(), self.shutdown_deadline()),
        )
    }

    /// Passes body data directly from packets to `body`, without a copy. Everything else, and body data that is not
    /// accepted, is kept for [`Connection::poll`] and [`Connection::read`].
    pub fn sink<'a>(&'a mut self, body: &'a mut dyn BodySink) -> Sink<'a> {
        Sink { http3: self, body }
    }

    // ---- messages ----------------------------------------------------------------------------------------------------

    /// Cancels both messages of a stream: a client its request, with `REQUEST_CANCELLED`; a server a request that it
    /// did not process, with `REQUEST_REJECTED` (RFC 9114 §4.1.1).
    pub fn cancel(
        &mut self,
        transport: &mut dyn Transport,
        now: Time,
        stream: StreamId,
        code: Code,
    ) {
        self.reset(transport, stream, code);
        self.stop(transport, now, stream, code);
    }

    // ---- the connection ----------------------------------------------------------------------------------------------

    /// Shuts down gracefully (RFC 9114 §5.2): sends GOAWAY, so that the peer starts no new requests. A round trip later, new
    /// ones are rejected. [`Event::Drained`] reports the end, on a server a second after the last response was acknowledged.
    pub fn shut_down(&mut self, transport: &mut dyn Transport, now: Time) {
        self.shared.now = now;
        self.begin_shutdown(transport);
    }

    /// Closes the connection at once.
    pub fn close(&mut self, transport: &mut dyn Transport, now: Time, code: Code) {
        self.flush(transport);
        transport.close(now, code.get());
    }

    /// The peer's settings, or those remembered from an earlier connection; `None` before they are known.
    pub const fn peer_settings(&self) -> Option<&Settings> {
        self.settings.as_ref()
    }

    /// Returns fields that are no longer needed, so that their memory is reused for the next message.
    pub fn recycle(&mut self, fields: Fields) {
        self.shared.recycle(fields);
    }

    /// Frees buffers that are empty, and what is allocated again on demand. To be called when the transport reports that the
    /// connection is [idle](lastbyte_quic::connection::Event::Idle).
    pub fn release_memory(&mut self) {
        self.shared.release_memory();
        self.encoder.release_memory();
        self.own.release_memory();
        self.peer.release_memory();
        if self.streams.is_empty() {
            // An empty map may keep a node.
            self.streams = BTreeMap::new();
        }
        self.ready.shrink_to_fit();
        self.receive_errors.shrink_to_fit();
        self.heads.shrink_to_fit();
        self.outgoing = Vec::new();
        self.section = Vec::new();
    }

    /// Why the connection failed, if it did.
    pub const fn error(&self) -> Option<ConnectionError> {
        self.failure
    }

    /// Counters.
    pub const fn statistics(&self) -> Statistics {
        self.shared.statistics
    }
}

/// Whether a stream carries a request.
fn is_request(id: StreamId) -> bool {
    id.direction() == Direction::Bidirectional
}
