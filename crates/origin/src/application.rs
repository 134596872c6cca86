//! HTTP/3 on one worker.
//!
//! Owns the connections of the worker (`served`), requests that are answered later, counters, and graceful shutdown.
//! Requests are handled by the handler.

mod kept;
mod mailbox;
mod measure;
mod running;
mod served;
mod shared;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, mem,
    sync::Arc,
    time::Duration,
    vec,
};

use lastbyte_congestion::Time;
use lastbyte_engine::{Application, Datagram, Next, Status};
use lastbyte_http3::{self as http3, Code, Event, Origin, Request};
use lastbyte_quic::{
    cid::QuicLbIds,
    connection::{self, Connection, Stage},
    endpoint::{Closed, Endpoint, Handle},
};
use lastbyte_wire::StreamId;

pub use self::{
    kept::{Kept, kept},
    mailbox::Mailbox,
    measure::{Answer, Measured, Statistics},
    served::Served,
    shared::{MakeTrace, Shared, UPLOAD_WINDOW_MAX, WallClock, engine, upload_window},
};
use self::{
    measure::Measure,
    running::{Running, SentBody},
    served::{Entry, First, Sink, Start},
};
use super::{
    access::{AccessLog, ConnectionRef},
    date::Date,
    exchange::exchange,
    handler::{FullResponse, Handler, HandlerResponse, Peer, Version},
    log,
};

/// Commands from other threads to a worker.
pub enum Command {
    /// Accept no more requests; finish those in flight within this time.
    ShutDown(Duration),
    /// Send the counters.
    Measure(Answer),
    /// Issue connection IDs of another layout to new clients.
    ReplaceIds(Box<QuicLbIds>),
}

/// The connections of a worker.
type Connections = Endpoint<Box<Served>>;

/// What all connections of a worker use.
struct Common {
    shared: Shared,
    measure: Measure,
    date: Date,
}

impl Common {
    fn wall(&self, now: Time) -> Duration {
        (self.shared.wall)(now)
    }

    /// The `date` of a response.
    fn date(&mut self, now: Time) -> &str {
        let wall = self.wall(now);
        self.date.at(wall)
    }
}

/// HTTP/3 on one worker.
///
/// # What is kept for a request, and what removes it
///
/// A request is kept in `Served::records`, in one of `Served::delayed` and `Served::running`, and until
/// the end of the turn in `starting`, or until the client's address is validated in `Served::held`. The transport permits
/// [`max_streams`](lastbyte_quic::stream::Config) requests at a time, and each of the maps has at most one entry for each. All
/// of them are removed by the event that ends the response ([`Event`] lists them), whatever it is:
///
/// | the response | removed by |
/// |---|---|
/// | is acknowledged | `Sent` |
/// | is stopped by the client, before or after it was written, in the packet of its request or later | `Stopped`, by [`Served::abandon`] |
/// | is cancelled, since the request is malformed or its client too slow | `Reset` with `cancels_ours` |
/// | cannot be written: a field that is invalid, or larger than the client accepts | [`Served::cut_off`], where it fails |
/// | has a body that cannot be read | `SourceFailed` |
/// | is given up by the handler | [`Served::cut_off`], or `Sent` if the client received 502 |
/// | is in flight when the connection closes, idles or is closed at a shutdown | `on_closed`, or the close in `on_turn` |
///
/// A request that the client resets (`Reset` without `cancels_ours`) is still answered, and ends with its response. `starting`
/// and `held` are passed on or dropped when they are reached: an entry whose request has ended is dropped there. A deadline in
/// `due` is removed when it fires, changes, or its connection closes.
pub struct Http3Server {
    common: Common,
    worker: usize,
    mailbox: Arc<Mailbox>,
    /// Deadlines of connections: few have one.
    due: BTreeSet<(Time, Handle)>,
    /// Requests passed to other threads at the end of the turn.
    starting: Vec<Start>,
    /// Until when requests in flight may last, once no more are accepted.
    ends_at: Option<Time>,
    /// Whether that time has passed.
    is_closing: bool,
    /// Connections that the present step of the shutdown has not reached.
    unreached: vec::IntoIter<Handle>,
}

/// Connections that a step of the shutdown reaches in one turn, so that the others are served, and so that the packets that
/// close them are sent in the same turn.
const SHUTDOWN_SLICE: usize = 64;

impl Http3Server {
    /// The application of a worker, by its index.
    #[must_use]
    pub fn new(shared: Shared, worker: usize, mailbox: Arc<Mailbox>) -> Self {
        Self {
            common: Common {
                measure: Measure::new(shared.handler.routes().len()),
                shared,
                date: Date::default(),
            },
            worker,
            mailbox,
            due: BTreeSet::new(),
            starting: Vec::new(),
            ends_at: None,
            is_closing: false,
            unreached: Vec::new().into_iter(),
        }
    }

    /// The counters.
    pub const fn statistics(&self) -> &Statistics {
        &self.common.measure.statistics
    }

    /// Whether a handler's task has made progress since the last turn, so that another is needed.
    pub fn is_woken(&self) -> bool {
        self.mailbox.is_full()
    }

    /// A number that is unique in this process.
    const fn number(&self) -> u64 {
        (self.common.measure.statistics.accepted - 1) * self.common.shared.workers as u64
            + self.worker as u64
    }

    /// A request, as far as its response is known.
    fn on_request(
        &mut self,
        now: Time,
        handle: Handle,
        connection: &mut Connection,
        served: &mut Served,
        stream: StreamId,
        request: Request,
    ) {
        let peer = Peer {
            remote: served.remote,
            version: Version::Http3,
            is_early: connection.stage() == Stage::Handshaking,
        };
        let (reply, route) = reply(&*self.common.shared.handler, &request, &peer);
        self.common.measure.statistics.requests += 1;
        self.common.measure.statistics.early_requests += u64::from(peer.is_early);
        if self.common.shared.log.is_some() && served.first.is_none() {
            connection.measure_transfer(now);
        }
        served.first.get_or_insert_with(|| First {
            stream,
            began: now,
            method: log::field(request.method()),
            content_length: None,
            body: SentBody::default(),
            site: self
                .common
                .shared
                .sites
                .of(
                    request.authority().unwrap_or_default(),
                    request.path().unwrap_or_default(),
                )
                .cloned(),
        });
        let record = self.common.shared.access.is_some().then(|| {
            let connection_ref = ConnectionRef {
                conn_id: served.number,
                worker: self.worker,
                origin: self.common.shared.arms.origin_of(connection.config()),
            };
            let record = AccessLog::begin(&request, &peer, connection_ref, self.common.wall(now));
            Box::new(record)
        });
        let entry = Entry {
            began: now,
            route,
            status: 0,
            is_tunnel: request.protocol().is_some(),
            is_cancelled: false,
            body: SentBody::default(),
            record,
            notes: None,
        };
        served.records.insert(stream, entry);
        let is_head = request.method() == "HEAD";
        let is_expecting = request.fields().get("expect").is_some();
        served.http3.recycle(request.into_fields());
        match reply {
            HandlerResponse::Now(answer) => {
                served.respond(now, connection, stream, answer, &mut self.common);
            }
            HandlerResponse::Hinted(hint, span, answer) => {
                // Failing to send a hint must not fail the request.
                let _ = served.http3.inform(connection, stream, &hint);
                served.delayed.insert((now + span, stream), answer);
            }
            HandlerResponse::After(span, answer) => {
                served.delayed.insert((now + span, stream), answer);
            }
            HandlerResponse::Task(task) => {
                let (exchange, channels) = exchange(&served.budget);
                if let Some(entry) = served.records.get_mut(&stream) {
                    entry.notes = Some(Arc::clone(&channels.notes));
                }
                let waker = mailbox::waker(&self.mailbox, handle, stream);
                served.running.insert(
                    stream,
                    Box::new(Running::new(channels, waker, (is_head, is_expecting))),
                );
                let start = Start {
                    handle,
                    stream,
                    task,
                    exchange,
                };
                if connection.is_address_validated() {
                    self.starting.push(start);
                } else {
                    served.held.push(start);
                }
            }
        }
    }

    fn on_event(
        &mut self,
        now: Time,
        handle: Handle,
        connection: &mut Connection,
        served: &mut Served,
        event: Event,
    ) {
        match event {
            Event::Request { stream, request } => {
                self.on_request(now, handle, connection, served, stream, request);
            }
            Event::Data { stream } => match served.running.get_mut(&stream) {
                Some(running) => running.read_body(&mut served.http3, connection, now, stream),
                None => {
                    let _ = served.http3.read(connection, now, stream, &mut <[u8]>::len);
                }
            },
            Event::Trailers { stream, fields } => {
                if let Some(running) = served.running.get(&stream) {
                    running.on_trailers(fields);
                }
            }
            Event::Finished { stream } => {
                if let Some(running) = served.running.get_mut(&stream) {
                    running.on_finished();
                    if running.is_over() {
                        served.running.remove(&stream);
                    }
                }
            }
            Event::Writable { stream } => {
                served.flush_response(now, connection, stream, &mut self.common);
            }
            Event::Reset {
                stream,
                error,
                cancels_ours,
            } => {
                let is_malformed = error.code == Code::MESSAGE_ERROR;
                if error.origin == Origin::Peer || is_malformed {
                    served.on_cancelled(&mut self.common, stream);
                }
                if cancels_ours && is_malformed {
                    served.abandon(&self.common, now, connection, stream);
                } else if cancels_ours {
                    served.cut_off(&mut self.common, now, connection, stream);
                } else if let Some(running) = served.running.get_mut(&stream) {
                    running.on_reset();
                    if running.is_over() {
                        served.running.remove(&stream);
                    }
                }
            }
            Event::Stopped { stream, .. } => {
                served.on_cancelled(&mut self.common, stream);
                served.abandon(&self.common, now, connection, stream);
            }
            Event::SourceFailed { stream, .. } => {
                served.cut_off(&mut self.common, now, connection, stream);
            }
            Event::Sent { stream } => {
                if let Some(running) = served.running.get_mut(&stream) {
                    running.on_sent();
                    if running.is_over() {
                        served.running.remove(&stream);
                    }
                }
                self.common.measure.statistics.sent += 1;
                served.end_record(&self.common, now, (connection, stream), true);
                if served.is_first(stream) {
                    let ttlb = served.log(&self.common, connection, now, true);
                    self.common
                        .measure
                        .on_first_sent(&self.common.shared.arms, connection, ttlb);
                }
            }
            Event::Failed(_) => self.common.measure.statistics.failed += 1,
            Event::Drained => served.http3.close(connection, now, Code::NO_ERROR),
            _ => {}
        }
    }

    /// Passes on requests that other threads answer, unless they were cancelled in the turn in which they arrived: a
    /// client that sends and cancels requests at once costs those threads nothing.
    fn start(&mut self, now: Time, endpoint: &mut Connections) {
        for start in mem::take(&mut self.starting) {
            let Some((connection, served)) = endpoint.entry(start.handle) else {
                continue;
            };
            if !served.running.contains_key(&start.stream) {
                continue;
            }
            (start.task)(start.exchange);
            served.flush_response(now, connection, start.stream, &mut self.common);
        }
    }

    /// Sends the delayed responses that are due.
    fn answer_delayed(&mut self, now: Time, connection: &mut Connection, served: &mut Served) {
        while let Some(first) = served.delayed.first_entry()
            && first.key().0 <= now
        {
            let ((_, stream), answer) = first.remove_entry();
            served.respond(now, connection, stream, answer(), &mut self.common);
        }
    }

    /// Streams with data from other threads.
    fn read_mail(&mut self, now: Time, endpoint: &mut Connections) {
        for (handle, stream) in self.mailbox.take() {
            // The connection may be over.
            let Some((connection, served)) = endpoint.entry(handle) else {
                continue;
            };
            served.flush_response(now, connection, stream, &mut self.common);
            if let Some(running) = served.running.get_mut(&stream) {
                running.read_body(&mut served.http3, connection, now, stream);
            }
            self.on_ready(now, handle, connection, served);
        }
    }

    fn reschedule(&mut self, handle: Handle, served: &mut Served) {
        let due = served.next_deadline();
        let before = mem::replace(&mut served.due, due);
        if before != due {
            if let Some(before) = before {
                self.due.remove(&(before, handle));
            }
            if let Some(due) = due {
                self.due.insert((due, handle));
            }
        }
    }

    /// Lets the next connections take the present step of the shutdown: GOAWAY, and then the close.
    fn advance_shutdown(&mut self, now: Time, endpoint: &mut Connections) {
        for handle in self
            .unreached
            .by_ref()
            .take(SHUTDOWN_SLICE)
            .collect::<Vec<_>>()
        {
            // It may have closed since.
            let Some((connection, served)) = endpoint.entry(handle) else {
                continue;
            };
            if self.is_closing {
                served.http3.close(connection, now, Code::NO_ERROR);
                let entries = served.records.values();
                let cut_off = entries.filter(|entry| entry.is_wanted()).count() as u64;
                self.common.measure.statistics.cut_off += cut_off;
                served.end_all_records(&self.common, now, connection);
                let _ = served.log(&self.common, connection, now, false);
            } else {
                served.http3.shut_down(connection, now);
                // The client may be gone, so that no datagram arrives that would cause the next step.
                self.on_ready(now, handle, connection, served);
            }
        }
    }
}

impl Application for Http3Server {
    type Command = Command;
    type Data = Box<Served>;

    fn on_accepted(&mut self, now: Time, _: Handle, connection: &mut Connection) -> Box<Served> {
        self.common.measure.statistics.accepted += 1;
        let number = self.number();
        if let Some(trace) = self
            .common
            .shared
            .trace
            .as_ref()
            .and_then(|make| make(number, now))
        {
            connection.set_trace(trace);
        }
        Box::new(Served {
            number,
            remote: connection.network().remote,
            http3: http3::Connection::server(&self.common.shared.http3),
            budget: self.common.shared.budget.connection(),
            first: None,
            is_logged: false,
            is_counted: false,
            due: None,
            delayed: BTreeMap::new(),
            running: BTreeMap::new(),
            held: Vec::new(),
            records: BTreeMap::new(),
        })
    }

    fn on_datagram(
        &mut self,
        now: Time,
        _: Handle,
        connection: &mut Connection,
        served: &mut Box<Served>,
        datagram: Datagram<'_>,
    ) {
        let Datagram { path, ecn, bytes } = datagram;
        let mut sink = Sink(&served.running);
        let mut sink = served.http3.sink(&mut sink);
        connection.handle_datagram(now, &path, ecn, bytes, &mut sink);
    }

    fn on_ready(
        &mut self,
        now: Time,
        handle: Handle,
        connection: &mut Connection,
        served: &mut Box<Served>,
    ) {
        while let Some(event) = connection.poll_event() {
            if event == connection::Event::Idle {
                served.release_memory();
            }
        }
        if !served.is_counted && connection.stage() != Stage::Handshaking {
            served.is_counted = true;
            self.common.measure.on_handshake(connection);
        }
        // Before the events: a response that cannot be written causes one.
        self.answer_delayed(now, connection, served);
        while let Some(event) = served.http3.poll(connection, now) {
            self.on_event(now, handle, connection, served, event);
        }
        if connection.is_address_validated() {
            self.starting.append(&mut served.held);
        }
        let mut failing = Vec::new();
        for (stream, running) in &mut served.running {
            running.count_held(connection, *stream);
            if running.is_failing() {
                failing.push(*stream);
            }
        }
        for stream in failing {
            served.flush_response(now, connection, stream, &mut self.common);
        }
        self.reschedule(handle, served);
    }

    fn on_closed(&mut self, now: Time, mut closed: Closed<Box<Served>>) {
        self.common.measure.on_closed(&closed);
        let served = &mut closed.data;
        if let Some(due) = served.due {
            self.due.remove(&(due, closed.handle));
        }
        served.end_all_records(&self.common, now, &mut closed.connection);
        let _ = served.log(&self.common, &mut closed.connection, now, false);
    }

    fn on_command(&mut self, now: Time, endpoint: &mut Connections, command: Command) {
        match command {
            Command::ShutDown(limit) => {
                self.ends_at = Some(now + limit);
                endpoint.set_accepting(false);
                self.unreached = endpoint.handles().collect::<Vec<_>>().into_iter();
            }
            Command::Measure(answer) => self.common.measure.begin(endpoint, answer),
            // Their length was checked.
            Command::ReplaceIds(ids) => drop(endpoint.replace_ids(ids)),
        }
    }

    fn on_turn(&mut self, now: Time, endpoint: &mut Connections) -> Next {
        self.read_mail(now, endpoint);
        while let Some((due, handle)) = self.due.first().copied()
            && due <= now
        {
            self.due.pop_first();
            if let Some((connection, served)) = endpoint.entry(handle) {
                served.due = None;
                self.on_ready(now, handle, connection, served);
            }
        }
        self.start(now, endpoint);
        let next = self.due.first().map(|(due, _)| *due);
        let slice = self.common.measure.advance(endpoint).then_some(now);
        let deadline = Time::earlier(Time::earlier(next, self.ends_at), slice);
        let Some(ends_at) = self.ends_at else {
            return Next {
                deadline,
                status: Status::Running,
            };
        };
        if ends_at <= now && !self.is_closing {
            self.is_closing = true;
            self.unreached = endpoint.handles().collect::<Vec<_>>().into_iter();
        }
        self.advance_shutdown(now, endpoint);
        let is_reached = self.unreached.len() == 0;
        let more = (!is_reached).then_some(now);
        Next {
            deadline: Time::earlier(deadline, more),
            status: if self.is_closing && is_reached {
                Status::Stopped
            } else if endpoint.connections() == 0 {
                Status::Finished
            } else {
                Status::Running
            },
        }
    }
}

impl Drop for Http3Server {
    fn drop(&mut self) {
        (self.common.shared.on_end)(self.worker, self.common.measure.statistics);
    }
}

/// The handler's reply to a request, and the index of its route. A request in 0-RTT may be a replay: only safe methods are handled then (RFC 8470
/// §5.2, RFC 9110 §9.2.1).
fn reply(handler: &dyn Handler, request: &Request, peer: &Peer) -> (HandlerResponse, usize) {
    let refuse = |response: FullResponse| (response.into(), 0);
    if peer.is_early && !matches!(request.method(), "GET" | "HEAD" | "OPTIONS" | "TRACE") {
        let text = "Too early: repeat the request after the handshake\n";
        return refuse(FullResponse::text(425, text));
    }
    if request.method() == "CONNECT" {
        return match request.protocol() {
            Some("websocket") if handler.takes_tunnel(request) => {
                handler.handle_routed(request, peer)
            }
            Some(_) => refuse(FullResponse::no_tunnel()),
            None => refuse(FullResponse::no_connect()),
        };
    }
    let is_known = |value: &[u8]| value.eq_ignore_ascii_case(b"100-continue");
    if !request.fields().get_all("expect").all(is_known) {
        return refuse(FullResponse::unknown_expectation());
    }
    let (reply, route) = handler.handle_routed(request, peer);
    if request.method() == "HEAD" {
        return (reply.head_only(), route);
    }
    (reply, route)
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ShutDown(limit) => f.debug_tuple("ShutDown").field(limit).finish(),
            Self::Measure(_) => f.write_str("Measure"),
            Self::ReplaceIds(_) => f.write_str("ReplaceIds"),
        }
    }
}

impl fmt::Debug for Http3Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http3Server")
            .field("worker", &self.worker)
            .finish_non_exhaustive()
    }
}
