//! The client of a flow: sends requests, and measures the responses.
//!
//! Decides what is requested and when, and records times. [`crate::http3`] encodes the requests.

use core::time::Duration;

use lastbyte_congestion::Time;
use lastbyte_engine::Datagram;
use lastbyte_quic::connection::{Connection, Event};
use lastbyte_units::Direction;

use lastbyte_scenario::FlowPlan;

use crate::{
    application::ClientApplication,
    http3,
    measures::{Measures, Messages},
    outcome::{FlowOutcome, ResponseOutcome},
};

/// The client of a flow.
pub(crate) struct Client {
    http3: http3::Client,
    plan: FlowPlan,
    /// When to connect, or to send the next requests.
    wakeup_at: Option<Time>,
    handshake: Option<Duration>,
    /// From the start to the first request.
    first_request: Option<Duration>,
    measures: Measures,
}

impl Client {
    pub(crate) fn new(http3: http3::Client, plan: &FlowPlan) -> Self {
        let start = Time::ZERO + plan.start;
        Self {
            http3,
            plan: plan.clone(),
            wakeup_at: Some(start),
            handshake: None,
            first_request: None,
            measures: Measures::new(start, &plan.progress),
        }
    }

    /// Sends the next requests, or sets the timer for their pause.
    fn schedule_requests(&mut self, now: Time, connection: &mut Connection) {
        match self.plan.requests.get(self.measures.responses.len()) {
            Some(next) if next.pause.is_zero() => self.send_requests(now, connection),
            Some(next) => self.wakeup_at = Some(now + next.pause),
            None => {}
        }
    }

    /// Whether all responses are complete.
    pub(crate) fn is_complete(&self) -> bool {
        let measures = &self.measures;
        measures.open == 0 && measures.responses.len() == self.plan.requests.len()
    }

    /// Counts of its requests.
    pub(crate) const fn requests(&self) -> Messages {
        self.measures.requests
    }

    /// Its measurements.
    pub(crate) fn outcome(&self) -> FlowOutcome {
        let mut responses = self.measures.responses.clone();
        if self.plan.direction == Direction::Up {
            // The first byte of a response that comes after the upload says nothing of it.
            for response in &mut responses {
                response.first_byte = None;
            }
        }
        FlowOutcome {
            started_at: self.measures.started_at,
            path_rtt: Duration::ZERO,
            handshake: self.handshake,
            first_request: self.first_request,
            planned: self.plan.requests.len(),
            responses,
            progress: self.measures.progress.clone(),
            server: None,
            drops: Vec::new(),
            failure: None,
        }
    }
}

impl ClientApplication for Client {
    fn deadline(&self) -> Option<Time> {
        Time::earlier(self.wakeup_at, self.http3.deadline())
    }

    fn take_wakeup(&mut self, now: Time) -> bool {
        self.wakeup_at.take_if(|at| *at <= now).is_some()
    }

    fn on_connection_started(&mut self, now: Time, connection: &mut Connection) {
        if connection.is_zero_rtt() {
            self.schedule_requests(now, connection);
        }
    }

    fn receive(&mut self, now: Time, connection: &mut Connection, datagram: Datagram<'_>) {
        self.http3
            .receive(now, connection, datagram, &mut self.measures);
    }

    fn on_event(&mut self, now: Time, connection: &mut Connection, event: &Event) {
        match event {
            Event::HandshakeComplete => {
                self.handshake = Some(now.since(self.measures.started_at));
                // Unless it was sent in 0-RTT.
                if self.first_request.is_none() && self.wakeup_at.is_none() {
                    self.schedule_requests(now, connection);
                }
            }
            Event::ZeroRtt { is_accepted: false } => self.http3.on_zero_rtt_rejected(),
            _ => {}
        }
    }

    fn process_events(&mut self, now: Time, connection: &mut Connection) {
        self.http3
            .process_events(connection, now, &mut self.measures);
        if std::mem::take(&mut self.measures.is_done) {
            self.schedule_requests(now, connection);
        }
    }

    fn send_requests(&mut self, now: Time, connection: &mut Connection) {
        let direction = self.plan.direction;
        let measures = &mut self.measures;
        let sent = measures.responses.len();
        let started_at = measures.started_at;
        for (index, request) in self.plan.requests.iter().enumerate().skip(sent) {
            if index > sent && !request.is_parallel {
                break;
            }
            let Some(stream) = self.http3.send_request(connection, request.size, direction) else {
                // The flow ends with a failure.
                connection.close(now, CLOSE_CODE);
                return;
            };
            if direction == Direction::Up && self.first_request.is_none() {
                connection.measure_transfer(now);
            }
            self.first_request.get_or_insert(now.since(started_at));
            measures.requests.on_started(now);
            measures.streams.push(stream);
            measures.open += 1;
            // Times of the first requests count from the client's first datagram, as a user perceives them.
            let is_first = sent == 0;
            measures.responses.push(ResponseOutcome {
                size: request.size,
                requested_at: if is_first { started_at } else { now },
                first_byte: None,
                last_byte: None,
            });
        }
    }
}

/// The error code of a client that cannot send its request: `H3_INTERNAL_ERROR` (RFC 9114 §8.1).
const CLOSE_CODE: u64 = 0x0102;
