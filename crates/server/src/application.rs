//! HTTP/3 on one worker.
//!
//! Owns: the HTTP/3 state of each connection, which request a log line is about, and the end in peace. Never: looks into
//! requests; that is for the handler.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use lastbyte_congestion::Time;
use lastbyte_driver::{Application, Clock, Datagram, Turn};
use lastbyte_http3::{self as http3, BodySink, Code, Event};
use lastbyte_quic::{
    connection::{Connection, Stage},
    endpoint::{Closed, Endpoint, Handle},
    trace::Trace,
};
use lastbyte_record::connection_log::{self, Experiment, Header, Snapshot};
use lastbyte_wire::StreamId;

use super::{
    arms::Arms,
    handler::{Answer, Handler},
    log::LogWriter,
};

/// What was counted, of all connections of a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Connections that clients began.
    pub accepted: u64,
    /// Of those, the ones that resumed an earlier one.
    pub resumed: u64,
    /// Requests answered.
    pub requests: u64,
    /// Of those, the ones that came as 0-RTT.
    pub early_requests: u64,
    /// Connections that broke a rule of HTTP/3.
    pub failed: u64,
}

/// What other threads say to a worker.
#[derive(Clone, Debug)]
pub(crate) enum Command {
    /// No more requests; what is being answered is finished, until this much time has passed.
    ShutDown(Duration),
}

/// What all workers share.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) http3: http3::Config,
    pub(crate) arms: Arc<Arms>,
    pub(crate) experiment: Option<String>,
    pub(crate) log: Option<LogWriter>,
    /// What listens to a connection, by its number.
    pub(crate) trace: Option<MakeTrace>,
    pub(crate) on_end: Arc<dyn Fn(usize, Statistics) + Send + Sync>,
}

/// Makes a listener for a new connection: with its number, and the time now.
pub(crate) type MakeTrace = Arc<dyn Fn(u64, Time) -> Option<Box<dyn Trace>> + Send + Sync>;

/// HTTP/3 on one worker.
pub(crate) struct Http3Server {
    shared: Shared,
    worker: usize,
    workers: usize,
    /// By the number of their handle.
    connections: Vec<Option<Box<Served>>>,
    count: usize,
    /// When HTTP/3 of which connection wants to be called: few have such a time.
    due: BTreeSet<(Time, Handle)>,
    statistics: Statistics,
    /// Since when no more requests are taken, and until when the present ones may last.
    ends_at: Option<Time>,
    has_said_goodbye: bool,
}

/// A connection.
struct Served {
    number: u64,
    http3: http3::Connection,
    /// The first request: its stream, when it came, its method, and how long the response is.
    first: Option<First>,
    is_logged: bool,
    is_counted: bool,
    /// Where it stands in `Http3Server::due`.
    due: Option<Time>,
}

struct First {
    stream: StreamId,
    began: Time,
    method: String,
    content_length: u64,
}

impl Served {
    fn is_first(&self, stream: StreamId) -> bool {
        self.first
            .as_ref()
            .is_some_and(|first| first.stream == stream)
    }
}

/// Bodies of requests are not looked at.
struct Discard;

impl BodySink for Discard {
    fn body(&mut self, _stream: StreamId, bytes: &[u8]) -> usize {
        bytes.len()
    }
}

impl Http3Server {
    pub(crate) const fn new(shared: Shared, worker: usize, workers: usize) -> Self {
        Self {
            shared,
            worker,
            workers,
            connections: Vec::new(),
            count: 0,
            due: BTreeSet::new(),
            statistics: Statistics {
                accepted: 0,
                resumed: 0,
                requests: 0,
                early_requests: 0,
                failed: 0,
            },
            ends_at: None,
            has_said_goodbye: false,
        }
    }

    fn served(&mut self, handle: Handle) -> Option<&mut Box<Served>> {
        self.connections.get_mut(handle.index() as usize)?.as_mut()
    }

    /// A number that no other connection of this process has.
    const fn number(&self) -> u64 {
        (self.statistics.accepted - 1) * self.workers as u64 + self.worker as u64
    }
}

impl Application for Http3Server {
    type Command = Command;

    fn on_accepted(&mut self, now: Time, handle: Handle, connection: &mut Connection) {
        self.statistics.accepted += 1;
        let number = self.number();
        if let Some(trace) = self
            .shared
            .trace
            .as_ref()
            .and_then(|make| make(number, now))
        {
            connection.set_trace(trace);
        }
        let served = Served {
            number,
            http3: http3::Connection::server(&self.shared.http3),
            first: None,
            is_logged: false,
            is_counted: false,
            due: None,
        };
        let index = handle.index() as usize;
        if self.connections.len() <= index {
            self.connections.resize_with(index + 1, || None);
        }
        self.connections[index] = Some(Box::new(served));
        self.count += 1;
    }

    fn on_datagram(
        &mut self,
        now: Time,
        handle: Handle,
        connection: &mut Connection,
        datagram: Datagram<'_>,
    ) {
        let Some(served) = self.served(handle) else {
            return;
        };
        let Datagram { path, ecn, bytes } = datagram;
        let mut discard = Discard;
        let mut sink = served.http3.sink(&mut discard);
        connection.handle_datagram(now, &path, ecn, bytes, &mut sink);
    }

    fn on_ready(&mut self, now: Time, handle: Handle, connection: &mut Connection) {
        let Some(served) = self
            .connections
            .get_mut(handle.index() as usize)
            .and_then(Option::as_mut)
        else {
            return;
        };
        while connection.poll_event().is_some() {}
        if !served.is_counted && connection.stage() != Stage::Handshaking {
            served.is_counted = true;
            let is_resumed = connection.session().is_resumed() == Some(true);
            self.statistics.resumed += u64::from(is_resumed);
        }
        while let Some(event) = served.http3.poll(connection, now) {
            match event {
                Event::Request { stream, request } => {
                    let is_early = connection.stage() == Stage::Handshaking;
                    let answer = answer(&*self.shared.handler, &request, is_early);
                    self.statistics.requests += 1;
                    self.statistics.early_requests += u64::from(is_early);
                    served.first.get_or_insert_with(|| First {
                        stream,
                        began: now,
                        method: request.method().to_owned(),
                        content_length: answer.body_len,
                    });
                    served.http3.recycle(request.into_fields());
                    // If the client is gone in the meantime there is nobody to tell.
                    let _ = served
                        .http3
                        .respond(connection, stream, &answer.response, answer.body);
                }
                Event::Data { stream } => {
                    let _ = served.http3.read(connection, now, stream, &mut <[u8]>::len);
                }
                Event::Sent { stream } if served.is_first(stream) => {
                    log(&self.shared, served, connection, Some(now));
                }
                Event::Failed(_) => self.statistics.failed += 1,
                Event::Drained => served.http3.close(connection, now, Code::NO_ERROR),
                _ => {}
            }
        }
        let due = served.http3.deadline();
        let before = std::mem::replace(&mut served.due, due);
        if before != due {
            if let Some(before) = before {
                self.due.remove(&(before, handle));
            }
            if let Some(due) = due {
                self.due.insert((due, handle));
            }
        }
    }

    fn on_closed(&mut self, _now: Time, closed: Closed) {
        let index = closed.handle.index() as usize;
        if let Some(mut served) = self.connections.get_mut(index).and_then(Option::take) {
            self.count -= 1;
            if let Some(due) = served.due {
                self.due.remove(&(due, closed.handle));
            }
            log(&self.shared, &mut served, &closed.connection, None);
        }
    }

    fn on_command(&mut self, now: Time, endpoint: &mut Endpoint, command: Command) {
        let Command::ShutDown(limit) = command;
        self.ends_at = Some(now + limit);
        let handles: Vec<Handle> = endpoint.handles().collect();
        for handle in handles {
            if let (Some(connection), Some(served)) = (
                endpoint.connection(handle),
                self.connections
                    .get_mut(handle.index() as usize)
                    .and_then(Option::as_mut),
            ) {
                served.http3.shut_down(connection, now);
            }
        }
    }

    fn on_turn(&mut self, now: Time, endpoint: &mut Endpoint) -> Turn {
        while let Some((due, handle)) = self.due.first().copied()
            && due <= now
        {
            self.due.pop_first();
            if let Some(served) = self.served(handle) {
                served.due = None;
            }
            if let Some(connection) = endpoint.connection(handle) {
                self.on_ready(now, handle, connection);
            }
        }
        let next = self.due.first().map(|(due, _)| *due);
        let deadline = [next, self.ends_at].into_iter().flatten().min();
        let Some(ends_at) = self.ends_at else {
            return Turn {
                deadline,
                is_done: false,
            };
        };
        if ends_at <= now && !self.has_said_goodbye {
            self.has_said_goodbye = true;
            for handle in endpoint.handles().collect::<Vec<_>>() {
                let served = self.connections.get_mut(handle.index() as usize);
                if let (Some(connection), Some(served)) =
                    (endpoint.connection(handle), served.and_then(Option::as_mut))
                {
                    served.http3.close(connection, now, Code::NO_ERROR);
                    log(&self.shared, served, connection, None);
                }
            }
        }
        Turn {
            deadline,
            is_done: self.count == 0 || self.has_said_goodbye,
        }
    }
}

impl Drop for Http3Server {
    fn drop(&mut self) {
        (self.shared.on_end)(self.worker, self.statistics);
    }
}

/// What a request is answered with. One that came as 0-RTT may be a replay: only safe methods are answered then (RFC 8470
/// §5.2, RFC 9110 §9.2.1).
fn answer(handler: &dyn Handler, request: &http3::Request, is_early: bool) -> Answer {
    if is_early && !matches!(request.method(), "GET" | "HEAD" | "OPTIONS" | "TRACE") {
        return Answer::text(425, "too early: send it again once the handshake is done\n");
    }
    handler.answer(request)
}

/// Writes the line of a connection, once: when its first response was acknowledged (`Some`), or when it is over.
fn log(shared: &Shared, served: &mut Served, connection: &Connection, sent: Option<Time>) {
    let Some(log) = shared.log.as_ref().filter(|_| !served.is_logged) else {
        return;
    };
    served.is_logged = true;
    let first = served.first.as_ref();
    let ttlb = first.zip(sent).map(|(first, sent)| sent.since(first.began));
    let millis = |span: Duration| u64::try_from((span.as_nanos() + 500_000) / 1_000_000);
    let header = Header {
        time_ms: u64::try_from(Clock::since_epoch().as_millis()).unwrap_or(u64::MAX),
        conn_id: served.number,
        method: first.map_or(String::new(), |first| first.method.clone()),
        content_length: first.map_or(0, |first| first.content_length),
        ttlb_ms: ttlb.and_then(|ttlb| millis(ttlb).ok()),
    };
    let experiment = Experiment {
        experiment: shared.experiment.clone(),
        arm: shared
            .arms
            .of(connection.config())
            .map(|arm| arm.name.clone()),
        ..Experiment::default()
    };
    let mut line = String::new();
    connection_log::write(&mut line, &header, &Snapshot::of(connection), &experiment);
    log.write(line);
}
