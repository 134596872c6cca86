//! The client of a flow: sends requests, and measures the responses.
//!
//! Decides what is requested and when, and records times. [`crate::protocol`] encodes the requests.

use core::time::Duration;

use lastbyte_congestion::Time;
use lastbyte_quic::connection::{Connection, Event};
use lastbyte_units::Direction;

use lastbyte_scenario::FlowPlan;
use lastbyte_wire::StreamId;

use crate::{
    outcome::{FlowOutcome, Progress, ResponseOutcome},
    protocol::{ClientApplication, ClientProtocol, Incoming},
    server::Messages,
};

/// The client of a flow.
pub(crate) struct Client {
    protocol: Box<dyn ClientProtocol>,
    plan: FlowPlan,
    /// When to connect, or to send the next requests.
    wakeup_at: Option<Time>,
    handshake: Option<Duration>,
    /// From the start to the first request.
    first_request: Option<Duration>,
    measures: Measures,
}

/// Progress of the responses.
pub(crate) struct Measures {
    started_at: Time,
    responses: Vec<ResponseOutcome>,
    /// The stream of each response.
    streams: Vec<StreamId>,
    /// Requests without a complete response.
    open: usize,
    /// Bytes of the first response received.
    arrived: u64,
    progress: Vec<Progress>,
    next_progress: usize,
    /// Whether the last open response has just completed.
    is_done: bool,
    /// The requests, which are the data of uploads.
    requests: Messages,
}

impl Measures {
    /// Returns the response on a stream, and its index.
    fn response(&mut self, stream: StreamId) -> Option<(usize, &mut ResponseOutcome)> {
        let index = self.streams.iter().rposition(|one| *one == stream)?;
        Some((index, self.responses.get_mut(index)?))
    }

    /// Records body bytes received in order.
    pub(crate) fn on_body(&mut self, now: Time, stream: StreamId, len: usize) {
        let Some((index, response)) = self.response(stream) else {
            return;
        };
        if len > 0 {
            let after = now.since(response.requested_at);
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

    /// Records the end of a response.
    pub(crate) fn on_end(&mut self, now: Time, stream: StreamId) {
        if let Some((_, response)) = self.response(stream)
            && response.last_byte.is_none()
        {
            response.last_byte = Some(now.since(response.requested_at));
            self.open -= 1;
            self.is_done = self.open == 0;
        }
    }

    /// Records that a whole request was acknowledged.
    pub(crate) fn on_request_acked(&mut self, now: Time) {
        self.requests.on_acked(now);
    }
}

impl Client {
    pub(crate) fn new(protocol: Box<dyn ClientProtocol>, plan: &FlowPlan) -> Self {
        let start = Time::ZERO + plan.start;
        let progress = plan.progress.iter().map(|bytes| Progress {
            bytes: *bytes,
            after: None,
        });
        Self {
            protocol,
            plan: plan.clone(),
            wakeup_at: Some(start),
            handshake: None,
            first_request: None,
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
        let responses = &self.measures.responses;
        responses.len() == self.plan.requests.len()
            && responses.iter().all(|one| one.last_byte.is_some())
    }

    /// Counts of its requests.
    pub(crate) const fn requests(&self) -> Messages {
        self.measures.requests
    }

    /// Its measurements.
    pub(crate) fn outcome(&self) -> FlowOutcome {
        FlowOutcome {
            started_at: self.measures.started_at,
            path_rtt: Duration::ZERO,
            handshake: self.handshake,
            first_request: self.first_request,
            planned: self.plan.requests.len(),
            responses: self.measures.responses.clone(),
            progress: self.measures.progress.clone(),
            server: None,
            drops: Vec::new(),
            failure: None,
        }
    }
}

impl ClientApplication for Client {
    fn deadline(&self) -> Option<Time> {
        Time::earlier(self.wakeup_at, self.protocol.deadline())
    }

    fn take_wakeup(&mut self, now: Time) -> bool {
        self.wakeup_at.take_if(|at| *at <= now).is_some()
    }

    fn on_connection_started(&mut self, now: Time, connection: &mut Connection) {
        if connection.is_zero_rtt() {
            self.schedule_requests(now, connection);
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
                // Unless it was sent in 0-RTT.
                if self.first_request.is_none() && self.wakeup_at.is_none() {
                    self.schedule_requests(now, connection);
                }
            }
            Event::ZeroRtt { is_accepted: false } => self.protocol.on_zero_rtt_rejected(),
            _ => {}
        }
    }

    fn process_events(&mut self, now: Time, connection: &mut Connection) {
        self.protocol
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
            let Ok(stream) = self
                .protocol
                .send_request(connection, request.size, direction)
            else {
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
