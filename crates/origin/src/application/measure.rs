//! The counters of a worker.
//!
//! Each worker has its own counters, and totals of the transport's statistics of closed connections. Other threads
//! receive a copy, by a command.
//!
//! A copy contains the totals over all connections. So it is computed in slices of [`SLICE`] connections, one in each
//! turn of the worker, and nothing else of it takes time that grows with the number of connections: between two slices,
//! the worker receives and sends as usual.

use std::{collections::BTreeMap, ops::Range, time::Duration};

use lastbyte_quic::{
    connection::Connection,
    crypto::tickets::Refusal,
    endpoint::{self, Closed, Endpoint},
};
use lastbyte_record::connection_log::{Snapshot, schema::Value};

use crate::{
    arms::ArmsInUse,
    counters::summed,
    histogram::Histogram,
    times::{ClassTimes, RequestTimes},
};

#[cfg(test)]
mod tests;

/// Counters over all connections of a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Connections that clients opened.
    pub accepted: u64,
    /// Completed handshakes.
    pub handshakes: u64,
    /// Of those, handshakes that resumed an earlier session.
    pub resumed: u64,
    /// Of those, handshakes whose 0-RTT was accepted.
    pub zero_rtt: u64,
    /// Resumed handshakes in which 0-RTT was refused, in the order of [`Refusal::ALL`].
    pub zero_rtt_refused: [u64; Refusal::ALL.len()],
    /// Requests.
    pub requests: u64,
    /// Of those, requests received in 0-RTT.
    pub early_requests: u64,
    /// Started responses, by the first digit of their status: 2xx is at 2.
    pub responses: [u64; 6],
    /// Responses that were acknowledged whole.
    pub sent: u64,
    /// Requests that clients cancelled, or that were malformed, before their response was complete.
    pub resets: u64,
    /// Responses that the server, its upstream or a limit ended before they were complete.
    pub cut_off: u64,
    /// Connections that violated HTTP/3.
    pub failed: u64,
}

impl Statistics {
    /// Adds another worker's.
    pub fn add(&mut self, other: &Self) {
        self.accepted += other.accepted;
        self.handshakes += other.handshakes;
        self.resumed += other.resumed;
        self.zero_rtt += other.zero_rtt;
        self.requests += other.requests;
        self.early_requests += other.early_requests;
        self.sent += other.sent;
        self.resets += other.resets;
        self.cut_off += other.cut_off;
        self.failed += other.failed;
        for (sum, more) in self.responses.iter_mut().zip(other.responses) {
            *sum += more;
        }
        let refused = self.zero_rtt_refused.iter_mut();
        for (sum, more) in refused.zip(other.zero_rtt_refused) {
            *sum += more;
        }
    }
}

/// Receives a copy of all counters, on the worker's thread.
pub type Answer = Box<dyn FnOnce(Measured) + Send>;

pub(super) struct Measure {
    pub(super) statistics: Statistics,
    /// Times of requests.
    pub(super) times: RequestTimes,
    /// The transport's statistics in the order of [`summed`], summed over closed connections.
    ended: Vec<u64>,
    /// Time to the last byte of the first response, by arm.
    ttlb: BTreeMap<String, Histogram>,
    /// The copy being computed.
    pass: Option<Pass>,
    /// What receives that copy.
    answers: Vec<Answer>,
}

/// The most receivers of a copy: beyond, the oldest is dropped.
const ANSWERS_MAX: usize = 64;

/// Connections per slice, or empty slots of the endpoint.
const SLICE: u32 = 32;

/// Totals over all connections, in slices by their index. Each connection that existed at the start is added once: with
/// its current statistics in its slice, or with its final ones when it closes before that. Some of those that open later
/// are left out. So a total is never smaller than that of an earlier pass.
#[derive(Debug)]
struct Pass {
    sums: Vec<u64>,
    /// The indices of connections not added yet.
    left: Range<u32>,
}

impl Pass {
    /// Whether a connection with this index that closes now has not been added.
    fn is_ahead(&self, closed: u32) -> bool {
        self.left.contains(&closed)
    }

    /// The indices of the next slice.
    fn next_slice(&mut self) -> Range<u32> {
        let start = self.left.start;
        self.left.start = self.left.end.min(start.saturating_add(SLICE));
        start..self.left.start
    }
}

/// A copy of all counters.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// The counters of the worker.
    pub statistics: Statistics,
    /// In the order of [`summed`], summed over all connections, open and closed.
    pub transport: Vec<u64>,
    /// Times to the last byte of the first response, by arm.
    pub ttlb: BTreeMap<String, Histogram>,
    /// Times of requests, by route and status class.
    pub times: Vec<ClassTimes>,
    /// The counters of the endpoint.
    pub endpoint: endpoint::Statistics,
    /// Open connections.
    pub connections: u64,
    /// Of those, connections in the handshake.
    pub handshakes: u64,
}

impl Measure {
    /// For a handler with this many routes.
    pub(super) fn new(routes: usize) -> Self {
        Self {
            statistics: Statistics::default(),
            times: RequestTimes::new(routes),
            ended: Vec::new(),
            ttlb: BTreeMap::new(),
            pass: None,
            answers: Vec::new(),
        }
    }

    pub(super) fn on_handshake(&mut self, connection: &Connection) {
        let session = connection.session();
        self.statistics.handshakes += 1;
        self.statistics.resumed += u64::from(session.is_resumed() == Some(true));
        let is_early = connection.statistics().packets.zero_rtt_received > 0;
        self.statistics.zero_rtt += u64::from(is_early);
        let refusal = session.resumed_ticket().and_then(|ticket| ticket.refusal);
        if let Some(refusal) = refusal
            && let Some(count) = self.statistics.zero_rtt_refused.get_mut(refusal as usize)
        {
            *count += 1;
        }
    }

    pub(super) fn on_response(&mut self, status: u16) {
        let class = usize::from(status / 100).min(self.statistics.responses.len() - 1);
        if let Some(count) = self.statistics.responses.get_mut(class) {
            *count += 1;
        }
    }

    pub(super) fn on_first_sent(
        &mut self,
        arms: &ArmsInUse,
        connection: &Connection,
        ttlb: Option<Duration>,
    ) {
        if let (Some(ttlb), Some(arm)) = (ttlb, arms.name_of(connection.config())) {
            self.ttlb.entry(arm).or_default().add(ttlb);
        }
    }

    pub(super) fn on_closed<D>(&mut self, closed: &Closed<D>) {
        add(&mut self.ended, &closed.connection);
        if let Some(pass) = &mut self.pass
            && pass.is_ahead(closed.handle.index())
        {
            add(&mut pass.sums, &closed.connection);
        }
    }

    /// Starts to compute a copy, or adds a receiver to the one being computed.
    pub(super) fn begin<D>(&mut self, endpoint: &Endpoint<D>, answer: Answer) {
        if self.answers.len() >= ANSWERS_MAX {
            // Its receiver has probably timed out.
            drop(self.answers.remove(0));
        }
        self.answers.push(answer);
        self.pass.get_or_insert_with(|| Pass {
            sums: self.ended.clone(),
            left: 0..endpoint.index_end(),
        });
    }

    /// Continues to compute a copy, and sends it when it is complete. Returns whether it is not.
    pub(super) fn advance<D>(&mut self, endpoint: &Endpoint<D>) -> bool {
        let Some(pass) = &mut self.pass else {
            return false;
        };
        for connection in endpoint.connections_at(pass.next_slice()) {
            add(&mut pass.sums, connection);
        }
        if !pass.left.is_empty() {
            return true;
        }
        let transport = self.pass.take().map_or(Vec::new(), |pass| pass.sums);
        let measured = Measured {
            statistics: self.statistics,
            transport,
            ttlb: self.ttlb.clone(),
            times: self.times.read(),
            endpoint: *endpoint.statistics(),
            connections: endpoint.connections() as u64,
            handshakes: endpoint.handshakes() as u64,
        };
        for answer in self.answers.drain(..) {
            answer(measured.clone());
        }
        false
    }
}

fn add(sums: &mut Vec<u64>, connection: &Connection) {
    let fields = summed();
    sums.resize(fields.len(), 0);
    let snapshot = Snapshot::of(connection);
    for (sum, field) in sums.iter_mut().zip(fields) {
        if let Value::Integer(value) = field.value(&snapshot) {
            *sum = sum.saturating_add(value);
        }
    }
}
