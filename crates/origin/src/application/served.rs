//! An HTTP/3 connection of this server.
//!
//! Owns its requests until their responses are over, which of them is the first, and its line in the log. The handler
//! decides on the responses.

use std::{collections::BTreeMap, fmt, mem, net::SocketAddr, sync::Arc, time::Duration};

use lastbyte_congestion::Time;
use lastbyte_http3::{self as http3, Body, BodySink, Code};
use lastbyte_quic::{connection::Connection, endpoint::Handle};
use lastbyte_record::connection_log::{self, Experiment, Header, Snapshot};
use lastbyte_wire::StreamId;

use super::{
    Common,
    running::{Running, SentBody, with_date},
};
use crate::{
    access::{Ending, Record},
    budget::ConnectionBudget,
    exchange::{Exchange, Notes},
    handler::{DelayedResponse, FullResponse, Task},
};

/// A connection.
pub struct Served {
    pub(super) number: u64,
    pub(super) remote: SocketAddr,
    pub(super) http3: http3::Connection,
    /// The budget of its buffered bodies.
    pub(super) budget: Arc<ConnectionBudget>,
    /// The first request, for the connection log.
    pub(super) first: Option<First>,
    pub(super) is_logged: bool,
    pub(super) is_counted: bool,
    /// Its entry in `Http3Server::due`.
    pub(super) due: Option<Time>,
    /// Delayed responses, at most one for each request that a client may have in flight.
    pub(super) delayed: BTreeMap<(Time, StreamId), DelayedResponse>,
    /// Responses that arrive piece by piece.
    pub(super) running: BTreeMap<StreamId, Box<Running>>,
    /// Of those, requests that wait for the client's address to be validated: a request in 0-RTT can have a spoofed
    /// source address, which an upstream might trust.
    pub(super) held: Vec<Start>,
    /// Requests whose response is not over.
    pub(super) records: BTreeMap<StreamId, Entry>,
}

/// A request, for metrics and the access log.
pub(super) struct Entry {
    /// When it arrived.
    pub(super) began: Time,
    /// The index of its route.
    pub(super) route: usize,
    /// The status of its response; 0 until that is known.
    pub(super) status: u16,
    pub(super) is_tunnel: bool,
    /// Whether its client cancelled it.
    pub(super) is_cancelled: bool,
    pub(super) body: SentBody,
    /// For the access log.
    pub(super) record: Option<Box<Record>>,
    /// If it is answered by a task.
    pub(super) notes: Option<Arc<Notes>>,
}

impl Entry {
    /// Whether its client waits for the response.
    pub(super) const fn is_wanted(&self) -> bool {
        !self.is_cancelled
    }
}

/// A request to be passed to another thread.
pub(super) struct Start {
    pub(super) handle: Handle,
    pub(super) stream: StreamId,
    pub(super) task: Task,
    pub(super) exchange: Exchange,
}

pub(super) struct First {
    pub(super) stream: StreamId,
    pub(super) began: Time,
    pub(super) method: String,
    /// The announced length of its response, if there is one.
    pub(super) content_length: Option<u64>,
    pub(super) body: SentBody,
    pub(super) site: Option<Arc<str>>,
}

impl Served {
    pub(super) fn is_first(&self, stream: StreamId) -> bool {
        self.first
            .as_ref()
            .is_some_and(|first| first.stream == stream)
    }

    /// Frees what an idle connection does not need.
    pub(super) fn release_memory(&mut self) {
        self.http3.release_memory();
        release(&mut self.delayed);
        release(&mut self.running);
        release(&mut self.records);
        self.held.shrink_to_fit();
    }

    fn first_on(&mut self, stream: StreamId) -> Option<&mut First> {
        self.first.as_mut().filter(|first| first.stream == stream)
    }

    /// Records the header of a response that was passed to the transport.
    fn on_response(&self, common: &mut Common, now: Time, stream: StreamId, status: u16) {
        let measure = &mut common.measure;
        let entry = self.records.get(&stream);
        // As in the log.
        measure.on_response(entry.map_or(status, |entry| entry.status));
        if let Some(entry) = entry {
            let span = now.since(entry.began);
            measure.times.on_first_byte(entry.route, entry.status, span);
        }
    }

    /// Records the header of a response, with the announced length of its body.
    fn note(&mut self, stream: StreamId, status: u16, content_length: Option<u64>) {
        if let Some(entry) = self.records.get_mut(&stream) {
            // Of a tunnel, the same in all versions.
            entry.status = if entry.is_tunnel && status == 200 {
                101
            } else {
                status
            };
        }
        if let Some(first) = self.first_on(stream) {
            first.content_length = content_length;
        }
    }

    /// Records the body of a response so far.
    fn note_body(&mut self, stream: StreamId, body: SentBody) {
        if let Some(entry) = self.records.get_mut(&stream) {
            entry.body = body;
        }
        if let Some(first) = self.first_on(stream) {
            first.body = body;
        }
    }

    /// A client cancelled a request, or it is malformed: counts it, once.
    pub(super) fn on_cancelled(&mut self, common: &mut Common, stream: StreamId) {
        if let Some(entry) = self.records.get_mut(&stream)
            && !mem::replace(&mut entry.is_cancelled, true)
        {
            common.measure.statistics.resets += 1;
        }
    }

    /// A response cannot be completed: ends it, and counts it unless its client cancelled the request.
    pub(super) fn cut_off(
        &mut self,
        common: &mut Common,
        now: Time,
        connection: &mut Connection,
        stream: StreamId,
    ) {
        let is_ours = self.records.get(&stream).is_some_and(Entry::is_wanted);
        common.measure.statistics.cut_off += u64::from(is_ours);
        self.abandon(common, now, connection, stream);
    }

    /// A response will not be completed: ends everything that is kept for it.
    pub(super) fn abandon(
        &mut self,
        common: &Common,
        now: Time,
        connection: &mut Connection,
        stream: StreamId,
    ) {
        if let Some(first) = self.first_on(stream) {
            first.body.settle(connection, stream);
        }
        if let Some(mut running) = self.running.remove(&stream) {
            running.on_stopped();
        }
        self.delayed.retain(|(_, delayed), _| *delayed != stream);
        self.end_record(common, now, (connection, stream), false);
    }

    pub(super) fn end_record(
        &mut self,
        common: &Common,
        now: Time,
        (connection, stream): (&mut Connection, StreamId),
        is_complete: bool,
    ) {
        let Some(mut entry) = self.records.remove(&stream) else {
            return;
        };
        let took = now.since(entry.began);
        if is_complete {
            let times = &common.measure.times;
            times.on_whole(entry.route, entry.status, took);
        }
        if let (Some(access), Some(mut record)) = (&common.shared.access, entry.record) {
            if !is_complete {
                entry.body.settle(connection, stream);
            }
            (record.status, record.body_len) = (entry.status, entry.body.len());
            let routes = common.shared.handler.routes();
            let ending = Ending {
                took,
                is_complete,
                route: routes.get(entry.route).map(String::as_str),
                notes: entry.notes.as_deref(),
            };
            access.end(&record, ending);
        }
    }

    pub(super) fn end_all_records(
        &mut self,
        common: &Common,
        now: Time,
        connection: &mut Connection,
    ) {
        let streams: Vec<StreamId> = self.records.keys().copied().collect();
        for stream in streams {
            self.end_record(common, now, (connection, stream), false);
        }
    }

    /// When something is due here.
    pub(super) fn next_deadline(&self) -> Option<Time> {
        let delayed = self.delayed.keys().next().map(|(at, _)| *at);
        Time::earlier(self.http3.deadline(), delayed)
    }

    /// Sends a complete response.
    pub(super) fn respond(
        &mut self,
        now: Time,
        connection: &mut Connection,
        stream: StreamId,
        answer: FullResponse,
        common: &mut Common,
    ) {
        let (status, body_len) = (answer.response.status(), answer.body_len());
        let FullResponse { response, body } = answer;
        let response = with_date(response, common.date(now));
        let body = body.map_or(Body::Empty, Body::Source);
        self.note(stream, status, Some(body_len));
        let result = self.http3.respond(connection, stream, &response, body);
        if result.is_ok() {
            let mut body = SentBody::default();
            body.add(connection, stream, body_len);
            self.note_body(stream, body);
            return self.on_response(common, now, stream, status);
        }
        // It must not leave the client waiting. If it had ended before, an event reports that.
        let code = Code::INTERNAL_ERROR;
        if self.http3.reset(connection, stream, code) {
            self.cut_off(common, now, connection, stream);
        }
    }

    /// Sends the parts of a streamed response that are ready.
    pub(super) fn flush_response(
        &mut self,
        now: Time,
        connection: &mut Connection,
        stream: StreamId,
        common: &mut Common,
    ) {
        let Some(running) = self.running.get_mut(&stream) else {
            return;
        };
        let date = common.date(now);
        let flushed = running.flush_response(&mut self.http3, connection, stream, date);
        let (is_over, body) = (running.is_over(), running.body());
        if let Some(sent) = flushed.sent {
            self.note(stream, sent.status, sent.content_length);
            self.on_response(common, now, stream, sent.status);
        }
        self.note_body(stream, body);
        if flushed.is_cut_off {
            self.cut_off(common, now, connection, stream);
        } else if is_over {
            self.running.remove(&stream);
        }
    }

    /// Writes the line of a connection, once: when its first response was acknowledged (`is_sent`), or when it closes.
    /// Returns the time to the last byte, if it is known.
    pub(super) fn log(
        &mut self,
        common: &Common,
        connection: &mut Connection,
        now: Time,
        is_sent: bool,
    ) -> Option<Duration> {
        let shared = &common.shared;
        if let Some(first) = self.first.as_mut().filter(|_| !is_sent) {
            first.body.settle(connection, first.stream);
        }
        let first = self.first.as_ref();
        let ttlb = first
            .filter(|_| is_sent)
            .map(|first| now.since(first.began));
        let Some(log) = shared.log.as_ref().filter(|_| !self.is_logged) else {
            return ttlb;
        };
        self.is_logged = true;
        let millis = |span: Duration| u64::try_from((span.as_nanos() + 500_000) / 1_000_000);
        let header = Header {
            time_ms: u64::try_from(common.wall(now).as_millis()).unwrap_or(u64::MAX),
            conn_id: self.number,
            method: first.map_or(String::new(), |first| first.method.clone()),
            content_length: first
                .map_or(0, |first| first.content_length.unwrap_or(first.body.len())),
            ttlb_ms: ttlb.and_then(|ttlb| millis(ttlb).ok()),
        };
        let origin = shared.arms.origin_of(connection.config());
        let site = match first {
            Some(first) => first.site.as_ref(),
            None => shared.sites.fallback(),
        };
        let experiment = Experiment {
            experiment: origin.experiment.map(|name| name.to_string()),
            arm: origin.arm,
            site: site.map(ToString::to_string),
            worker: Some(self.number % shared.workers as u64),
            config: origin.config_hash.map(|hash| hash.to_string()),
            ..Experiment::default()
        };
        let mut line = String::new();
        connection_log::write(&mut line, &header, &Snapshot::of(connection), &experiment);
        log.write(line);
        ttlb
    }
}

/// An empty map may keep a node.
fn release<K, V>(map: &mut BTreeMap<K, V>) {
    if map.is_empty() {
        *map = BTreeMap::new();
    }
}

/// The sink of request bodies that no handler reads.
pub(super) struct Sink<'a>(pub(super) &'a BTreeMap<StreamId, Box<Running>>);

impl BodySink for Sink<'_> {
    fn body(&mut self, _stream: StreamId, bytes: &[u8]) -> usize {
        bytes.len()
    }

    fn takes(&self, stream: StreamId) -> bool {
        !self.0.contains_key(&stream)
    }
}

impl fmt::Debug for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Served")
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}
