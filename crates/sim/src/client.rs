//! The client of a flow: asks for one thing after the other, and measures how it comes.
//!
//! Owns: what is asked for and when, and times. Never: knows how it is said; that is for [`crate::protocol`].

use core::time::Duration;

use lastbyte_congestion::Time;
use lastbyte_quic::connection::{Connection, Event};

use lastbyte_wire::StreamId;

use crate::{
    listener::Way,
    outcome::{FlowOutcome, Progress, ResponseOutcome},
    protocol::{Asks, ClientSide, Incoming},
    scenario::FlowPlan,
    server::Messages,
};

/// The client of a flow.
pub(crate) struct Client {
    protocol: Box<dyn Asks>,
    plan: FlowPlan,
    /// When it wants to do something: connect, or ask.
    wakes_at: Option<Time>,
    handshake: Option<Duration>,
    /// How long after the start the first request was made.
    first_asked: Option<Duration>,
    measures: Measures,
}

/// What of the responses has come, and when.
pub(crate) struct Measures {
    started_at: Time,
    responses: Vec<ResponseOutcome>,
    /// The stream of each.
    streams: Vec<StreamId>,
    /// Requests without a whole response yet.
    open: usize,
    /// Bytes of the first response.
    arrived: u64,
    progress: Vec<Progress>,
    next_progress: usize,
    /// All responses have just come to their ends.
    is_done: bool,
    /// The requests, which are the data of uploads.
    requests: Messages,
}

impl Measures {
    /// The response on a stream.
    fn response(&mut self, stream: StreamId) -> Option<(usize, &mut ResponseOutcome)> {
        let index = self.streams.iter().rposition(|one| *one == stream)?;
        Some((index, self.responses.get_mut(index)?))
    }

    /// Body of a response came, in order.
    pub(crate) fn on_body(&mut self, now: Time, stream: StreamId, len: usize) {
        let Some((index, response)) = self.response(stream) else {
            return;
        };
        if len > 0 {
            let after = now.since(response.asked_at);
            response.first_byte.get_or_insert(after);
        }
        if index > 0 {
            return;
        }
        self.arrived += len as u64;
        while let Some(mark) = self.progress.get_mut(self.next_progress)
            && self.arrived >= mark.bytes
        {
            mark.after = Some(now.since(self.started_at));
            self.next_progress += 1;
        }
    }

    /// A response came to its end.
    pub(crate) fn on_end(&mut self, now: Time, stream: StreamId) {
        if let Some((_, response)) = self.response(stream)
            && response.last_byte.is_none()
        {
            response.last_byte = Some(now.since(response.asked_at));
            self.open -= 1;
            self.is_done = self.open == 0;
        }
    }

    /// All of a request was acknowledged.
    pub(crate) fn on_request_acked(&mut self, now: Time) {
        self.requests.on_acked(now);
    }
}

impl Client {
    pub(crate) fn new(protocol: Box<dyn Asks>, plan: &FlowPlan) -> Self {
        let start = Time::ZERO + plan.start;
        let progress = plan.progress.iter().map(|bytes| Progress {
            bytes: *bytes,
            after: None,
        });
        Self {
            protocol,
            plan: plan.clone(),
            wakes_at: Some(start),
            handshake: None,
            first_asked: None,
            measures: Measures {
                started_at: start,
                responses: Vec::new(),
                streams: Vec::new(),
                open: 0,
                arrived: 0,
                progress: progress.collect(),
                next_progress: 0,
                is_done: false,
                requests: Messages::default(),
            },
        }
    }

    /// Sends the next requests after their pause: at once, if there is none.
    fn await_turn(&mut self, now: Time, connection: &mut Connection) {
        match self.plan.requests.get(self.measures.responses.len()) {
            Some(next) if next.pause.is_zero() => self.ask(now, connection),
            Some(next) => self.wakes_at = Some(now + next.pause),
            None => {}
        }
    }

    /// Whether all that it wanted has arrived.
    pub(crate) fn is_satisfied(&self) -> bool {
        let responses = &self.measures.responses;
        responses.len() == self.plan.requests.len()
            && responses.iter().all(|one| one.last_byte.is_some())
    }

    /// What it sent.
    pub(crate) const fn requests(&self) -> Messages {
        self.measures.requests
    }

    /// What it measured.
    pub(crate) fn outcome(&self) -> FlowOutcome {
        FlowOutcome {
            started_at: self.measures.started_at,
            handshake: self.handshake,
            first_asked: self.first_asked,
            planned: self.plan.requests.len(),
            responses: self.measures.responses.clone(),
            progress: self.measures.progress.clone(),
            server: None,
            drops: Vec::new(),
            failure: None,
        }
    }
}

impl ClientSide for Client {
    fn deadline(&self) -> Option<Time> {
        Time::earlier(self.wakes_at, self.protocol.deadline())
    }

    fn takes_wake(&mut self, now: Time) -> bool {
        self.wakes_at.take_if(|at| *at <= now).is_some()
    }

    fn on_begun(&mut self, now: Time, connection: &mut Connection) {
        if connection.is_zero_rtt() {
            self.await_turn(now, connection);
        }
    }

    fn receive(&mut self, connection: &mut Connection, incoming: Incoming<'_>) {
        self.protocol
            .receive(connection, incoming, &mut self.measures);
    }

    fn on_event(&mut self, now: Time, connection: &mut Connection, event: &Event) {
        match event {
            Event::HandshakeComplete => {
                self.handshake = Some(now.since(self.measures.started_at));
                // Unless it was asked in 0-RTT.
                if self.first_asked.is_none() && self.wakes_at.is_none() {
                    self.await_turn(now, connection);
                }
            }
            Event::ZeroRtt { is_accepted: false } => self.protocol.on_zero_rtt_rejected(),
            _ => {}
        }
    }

    fn attend(&mut self, now: Time, connection: &mut Connection) {
        self.protocol.attend(connection, now, &mut self.measures);
        if std::mem::take(&mut self.measures.is_done) {
            self.await_turn(now, connection);
        }
    }

    fn ask(&mut self, now: Time, connection: &mut Connection) {
        let way = self.plan.way;
        let measures = &mut self.measures;
        let asked = measures.responses.len();
        let started_at = measures.started_at;
        for (index, request) in self.plan.requests.iter().enumerate().skip(asked) {
            if index > asked && !request.is_parallel {
                break;
            }
            let Ok(stream) = self.protocol.ask(connection, request.size, way) else {
                // The flow ends, and says that it did.
                connection.close(now, NO_REQUEST);
                return;
            };
            if way == Way::Up && self.first_asked.is_none() {
                connection.measure_transfer(now);
            }
            self.first_asked.get_or_insert(now.since(started_at));
            measures.requests.on_begun(now);
            measures.streams.push(stream);
            measures.open += 1;
            // What is asked for first counts from the client's first datagram, as a user feels it.
            let is_first = asked == 0;
            measures.responses.push(ResponseOutcome {
                size: request.size,
                asked_at: if is_first { started_at } else { now },
                first_byte: None,
                last_byte: None,
            });
        }
    }
}

/// The code that a client closes with which cannot ask: `H3_INTERNAL_ERROR` (RFC 9114 §8.1).
const NO_REQUEST: u64 = 0x0102;
