//! HTTP/3 on one worker.
//!
//! Owns the connections of the worker (`served`), requests that are answered later, counters, and graceful shutdown.
//! Requests are handled by the handler.

mod mailbox;
mod measure;
mod running;
mod served;

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    os::fd::OwnedFd,
    sync::Arc,
    time::Duration,
};

use lastbyte_congestion::Time;
use lastbyte_driver::{Application, Datagram, Predecessor, Statistics as WorkerStatistics, Turn};
use lastbyte_http3::{self as http3, Code, Event, Origin, Request};
use lastbyte_quic::{
    cid::QuicLbIds,
    connection::{self, Connection, Stage},
    endpoint::{Closed, Endpoint, Handle},
    trace::Trace,
};
use lastbyte_wire::StreamId;
use tokio::sync::oneshot;

pub(crate) use self::{mailbox::Mailbox, measure::Measured};
use self::{
    measure::Measure,
    running::Running,
    served::{First, Served, Sink, Start},
};
use super::{
    access::{AccessLog, ConnectionRef},
    arms::ArmsInUse,
    budget::Budget,
    date::Date,
    exchange::exchange,
    handler::{FullResponse, Handler, HandlerResponse, Peer, Version},
    log::LogWriter,
    sites::Sites,
};

pub use self::measure::Statistics;

/// Commands from other threads to a worker.
#[derive(Debug)]
pub(crate) enum Command {
    /// Accept no more requests; finish those in flight within this time.
    ShutDown(Duration),
    /// There are entries in the mailbox.
    Mail,
    /// Send the counters.
    Measure(oneshot::Sender<Measured>),
    /// Respond at once.
    Ping(oneshot::Sender<()>),
    /// Do not read the socket from now on, and respond then.
    Pause(std::sync::mpsc::Sender<()>),
    /// Read the socket again.
    Resume,
    /// Issue connection IDs of another layout to new clients.
    ReplaceIds(Box<QuicLbIds>),
}

/// State shared by all workers.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) workers: usize,
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) http3: http3::Config,
    pub(crate) budget: Budget,
    pub(crate) arms: Arc<ArmsInUse>,
    pub(crate) experiment: Option<String>,
    pub(crate) sites: Sites,
    pub(crate) log: Option<LogWriter>,
    pub(crate) access: Option<AccessLog>,
    /// The listeners of a connection, by its number.
    pub(crate) trace: Option<MakeTrace>,
    /// The link to an earlier process that finishes its connections.
    pub(crate) predecessor: Option<Arc<OwnedFd>>,
    pub(crate) on_end: Arc<dyn Fn(usize, Statistics) + Send + Sync>,
}

/// Creates a listener for a new connection, from its number and the time.
pub(crate) type MakeTrace = Arc<dyn Fn(u64, Time) -> Option<Box<dyn Trace>> + Send + Sync>;

/// The connections of a worker.
type Connections = Endpoint<Box<Served>>;

/// HTTP/3 on one worker.
pub(crate) struct Http3Server {
    shared: Shared,
    worker: usize,
    mailbox: Arc<Mailbox>,
    /// Deadlines of connections: few have one.
    due: BTreeSet<(Time, Handle)>,
    measure: Measure,
    date: Date,
    /// Requests passed to other threads at the end of the turn.
    starting: Vec<Start>,
    /// Since when no more requests are accepted, and until when those in flight may last.
    ends_at: Option<Time>,
    is_closing: bool,
    /// Whether it reads its socket, and not a later process.
    is_receiving: bool,
    predecessor: Option<Predecessor>,
}

/// Interval at which a worker without connections checks whether an earlier process still has some.
const PREDECESSOR_INTERVAL: Duration = Duration::from_millis(50);

impl Http3Server {
    pub(crate) fn new(shared: Shared, worker: usize, mailbox: Arc<Mailbox>) -> Self {
        let link = shared.predecessor.clone();
        Self {
            is_receiving: true,
            predecessor: link.map(|link| Predecessor::new(link, worker as u8)),
            shared,
            worker,
            mailbox,
            due: BTreeSet::new(),
            measure: Measure::default(),
            date: Date::default(),
            starting: Vec::new(),
            ends_at: None,
            is_closing: false,
        }
    }

    /// A number that is unique in this process.
    const fn number(&self) -> u64 {
        (self.measure.statistics.accepted - 1) * self.shared.workers as u64 + self.worker as u64
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
        let reply = reply(&*self.shared.handler, &request, &peer);
        self.measure.statistics.requests += 1;
        self.measure.statistics.early_requests += u64::from(peer.is_early);
        if self.shared.log.is_some() && served.first.is_none() {
            connection.measure_transfer(now);
        }
        served.first.get_or_insert_with(|| First {
            stream,
            began: now,
            method: request.method().to_owned(),
            content_length: 0,
            site: self
                .shared
                .sites
                .of(
                    request.authority().unwrap_or_default(),
                    request.path().unwrap_or_default(),
                )
                .cloned(),
        });
        if self.shared.access.is_some() {
            let connection_ref = ConnectionRef {
                conn_id: served.number,
                worker: self.worker,
                origin: self.shared.arms.origin_of(connection.config()),
            };
            let record = AccessLog::begin(&request, &peer, connection_ref);
            served.records.insert(stream, Box::new((now, record)));
        }
        let is_head = request.method() == "HEAD";
        served.http3.recycle(request.into_fields());
        match reply {
            HandlerResponse::Now(answer) => {
                served.respond(
                    connection,
                    stream,
                    answer,
                    &mut self.measure,
                    &mut self.date,
                );
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
                let waker = mailbox::waker(&self.mailbox, handle, stream);
                served
                    .running
                    .insert(stream, Box::new(Running::new(channels, waker, is_head)));
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
                served.flush_response(connection, stream, &mut self.measure, &mut self.date);
            }
            Event::Reset { stream, error } => {
                self.measure.statistics.resets += 1;
                if error.origin == Origin::Local {
                    // The response was cancelled with it.
                    self.measure.statistics.cut_off += 1;
                    served.cut_off(&self.shared, now, stream);
                } else if let Some(running) = served.running.get_mut(&stream) {
                    running.on_reset();
                }
            }
            Event::Stopped { stream, .. } | Event::SourceFailed { stream, .. } => {
                self.measure.statistics.cut_off += 1;
                served.cut_off(&self.shared, now, stream);
            }
            Event::Sent { stream } => {
                if let Some(running) = served.running.get_mut(&stream) {
                    running.on_sent();
                    if running.is_over() {
                        served.running.remove(&stream);
                    }
                }
                served.end_record(&self.shared, now, stream, true);
                if served.is_first(stream) {
                    let ttlb = served.log(&self.shared, connection, Some(now));
                    self.measure
                        .on_first_sent(&self.shared.arms, connection, ttlb);
                }
            }
            Event::Failed(_) => self.measure.statistics.failed += 1,
            Event::Drained => served.http3.close(connection, now, Code::NO_ERROR),
            _ => {}
        }
    }

    /// Passes on requests that other threads answer, unless they were cancelled in the turn in which they arrived: a
    /// client that sends and cancels requests at once costs those threads nothing.
    fn start(&mut self, endpoint: &mut Connections) {
        for start in mem::take(&mut self.starting) {
            let Some((connection, served)) = endpoint.entry(start.handle) else {
                continue;
            };
            if !served.running.contains_key(&start.stream) {
                continue;
            }
            (start.task)(start.exchange);
            served.flush_response(connection, start.stream, &mut self.measure, &mut self.date);
        }
    }

    /// Sends the delayed responses that are due.
    fn answer_delayed(&mut self, now: Time, connection: &mut Connection, served: &mut Served) {
        while let Some(first) = served.delayed.first_entry()
            && first.key().0 <= now
        {
            let ((_, stream), answer) = first.remove_entry();
            served.respond(
                connection,
                stream,
                answer(),
                &mut self.measure,
                &mut self.date,
            );
        }
    }

    /// Streams with data from other threads.
    fn read_mail(&mut self, now: Time, endpoint: &mut Connections) {
        for (handle, stream) in self.mailbox.take() {
            // The connection may be over.
            let Some((connection, served)) = endpoint.entry(handle) else {
                continue;
            };
            served.flush_response(connection, stream, &mut self.measure, &mut self.date);
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

    fn begin_shutdown(&mut self, now: Time, endpoint: &mut Connections, limit: Duration) {
        self.ends_at = Some(now + limit);
        endpoint.set_accepting(false);
        for handle in endpoint.handles().collect::<Vec<_>>() {
            let Some((connection, served)) = endpoint.entry(handle) else {
                continue;
            };
            served.http3.shut_down(connection, now);
            // The client may be gone, so that no datagram arrives that would cause the next step.
            self.on_ready(now, handle, connection, served);
        }
    }
}

impl Application for Http3Server {
    type Command = Command;
    type Data = Box<Served>;

    fn on_accepted(&mut self, now: Time, _: Handle, connection: &mut Connection) -> Box<Served> {
        self.measure.statistics.accepted += 1;
        let number = self.number();
        if let Some(trace) = self
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
            http3: http3::Connection::server(&self.shared.http3),
            budget: self.shared.budget.connection(),
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
            self.measure.on_handshake(connection);
        }
        while let Some(event) = served.http3.poll(connection, now) {
            self.on_event(now, handle, connection, served, event);
        }
        if connection.is_address_validated() {
            self.starting.append(&mut served.held);
        }
        self.answer_delayed(now, connection, served);
        for (stream, running) in &mut served.running {
            running.count_held(connection, *stream);
        }
        self.reschedule(handle, served);
    }

    fn on_closed(&mut self, now: Time, mut closed: Closed<Box<Served>>) {
        self.measure.on_closed(&closed);
        let served = &mut closed.data;
        if let Some(due) = served.due {
            self.due.remove(&(due, closed.handle));
        }
        served.end_all_records(&self.shared, now);
        let _ = served.log(&self.shared, &closed.connection, None);
    }

    fn on_statistics(&mut self, statistics: &WorkerStatistics) {
        self.measure.worker = *statistics;
    }

    fn on_command(&mut self, now: Time, endpoint: &mut Connections, command: Command) {
        match command {
            Command::ShutDown(limit) => self.begin_shutdown(now, endpoint, limit),
            // Called in each turn.
            Command::Mail => {}
            Command::Measure(answer) => self.measure.begin(endpoint, answer),
            // The receiver may have timed out.
            Command::Ping(answer) => drop(answer.send(())),
            Command::Pause(answer) => {
                self.is_receiving = false;
                let _ = answer.send(());
            }
            Command::Resume => self.is_receiving = true,
            // Their length was checked.
            Command::ReplaceIds(ids) => drop(endpoint.replace_ids(ids)),
        }
    }

    fn on_turn(&mut self, now: Time, endpoint: &mut Connections) -> Turn {
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
        self.start(endpoint);
        let next = self.due.first().map(|(due, _)| *due);
        let slice = self.measure.advance(endpoint).then_some(now);
        let deadline = [next, self.ends_at, slice].into_iter().flatten().min();
        let Some(ends_at) = self.ends_at else {
            return Turn {
                deadline,
                is_done: false,
            };
        };
        if ends_at <= now && !self.is_closing {
            self.is_closing = true;
            for handle in endpoint.handles().collect::<Vec<_>>() {
                if let Some((connection, served)) = endpoint.entry(handle) {
                    served.http3.close(connection, now, Code::NO_ERROR);
                    served.end_all_records(&self.shared, now);
                    let _ = served.log(&self.shared, connection, None);
                }
            }
        }
        // A later process reaches the earlier one through this one.
        let is_empty = endpoint.connections() == 0;
        let is_between = is_empty
            && !self.is_closing
            && self.predecessor.as_ref().is_some_and(Predecessor::is_open);
        let check = is_between.then(|| now + PREDECESSOR_INTERVAL);
        Turn {
            deadline: [deadline, check].into_iter().flatten().min(),
            is_done: (is_empty && !is_between) || self.is_closing,
        }
    }

    fn is_receiving(&self) -> bool {
        self.is_receiving
    }

    fn take_predecessor(&mut self) -> Option<Predecessor> {
        self.predecessor.clone()
    }
}

impl Drop for Http3Server {
    fn drop(&mut self) {
        (self.shared.on_end)(self.worker, self.measure.statistics);
    }
}

/// The handler's reply to a request. A request in 0-RTT may be a replay: only safe methods are handled then (RFC 8470
/// §5.2, RFC 9110 §9.2.1).
fn reply(handler: &dyn Handler, request: &Request, peer: &Peer) -> HandlerResponse {
    if peer.is_early && !matches!(request.method(), "GET" | "HEAD" | "OPTIONS" | "TRACE") {
        let text = "Too early: repeat the request after the handshake\n";
        return FullResponse::text(425, text).into();
    }
    handler.handle(request, peer)
}
