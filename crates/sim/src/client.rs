//! The client of a flow: asks for one thing after the other, and measures how it comes.
//!
//! Owns: what is asked for and when, and times. Never: knows how it is said; that is for [`crate::protocol`].

use core::time::Duration;

use lastbyte_congestion::Time;
use lastbyte_quic::connection::{Connection, Event};

use crate::{
    outcome::{FlowOutcome, Progress, ResponseOutcome},
    protocol::{Asks, ClientSide, Incoming},
    scenario::FlowPlan,
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
    /// Bytes of the last response.
    arrived: u64,
    progress: Vec<Progress>,
    next_progress: usize,
    /// A response has just come to its end.
    is_done: bool,
}

impl Measures {
    /// Body of the last response came, in order.
    pub(crate) fn on_body(&mut self, now: Time, len: usize) {
        let is_first = self.responses.len() == 1;
        self.arrived += len as u64;
        if let Some(response) = self.responses.last_mut()
            && len > 0
        {
            let after = now.since(response.asked_at);
            response.first_byte.get_or_insert(after);
        }
        while is_first
            && let Some(mark) = self.progress.get_mut(self.next_progress)
            && self.arrived >= mark.bytes
        {
            mark.after = Some(now.since(self.started_at));
            self.next_progress += 1;
        }
    }

    /// The last response came to its end.
    pub(crate) fn on_end(&mut self, now: Time) {
        if let Some(response) = self.responses.last_mut() {
            response.last_byte = Some(now.since(response.asked_at));
            self.is_done = true;
        }
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
                arrived: 0,
                progress: progress.collect(),
                next_progress: 0,
                is_done: false,
            },
        }
    }

    /// Sends the next request after its pause: at once, if there is none.
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

    /// What it measured.
    pub(crate) fn outcome(&self) -> FlowOutcome {
        FlowOutcome {
            started_at: self.measures.started_at,
            handshake: self.handshake,
            first_asked: self.first_asked,
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
        let index = self.measures.responses.len();
        let Some(request) = self.plan.requests.get(index) else {
            return;
        };
        if self.protocol.ask(connection, request.size).is_err() {
            // The flow ends, and says that it did.
            connection.close(now, NO_REQUEST);
            return;
        }
        let started_at = self.measures.started_at;
        self.first_asked.get_or_insert(now.since(started_at));
        self.measures.arrived = 0;
        self.measures.responses.push(ResponseOutcome {
            size: request.size,
            asked_at: if index == 0 { started_at } else { now },
            first_byte: None,
            last_byte: None,
        });
    }
}

/// The code that a client closes with which cannot ask: `H3_INTERNAL_ERROR` (RFC 9114 §8.1).
const NO_REQUEST: u64 = 0x0102;
