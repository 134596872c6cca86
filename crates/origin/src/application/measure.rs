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

#[cfg(test)]
mod tests {
    use std::{
        collections::{BTreeMap, BTreeSet},
        sync::mpsc,
    };

    use lastbyte_quic::endpoint::EndpointConfig;

    use super::*;

    #[test]
    fn the_counters_of_all_workers_are_added() {
        let one = Statistics {
            accepted: 1,
            handshakes: 2,
            resumed: 3,
            zero_rtt: 4,
            zero_rtt_refused: [1, 2, 3, 4, 5, 6, 7],
            requests: 5,
            early_requests: 6,
            responses: [7, 8, 9, 10, 11, 12],
            sent: 16,
            resets: 13,
            cut_off: 14,
            failed: 15,
        };
        let mut sum = Statistics::default();
        for workers in 1..=3 {
            sum.add(&one);
            let expected = Statistics {
                accepted: workers,
                handshakes: 2 * workers,
                resumed: 3 * workers,
                zero_rtt: 4 * workers,
                zero_rtt_refused: one.zero_rtt_refused.map(|count| count * workers),
                requests: 5 * workers,
                early_requests: 6 * workers,
                responses: one.responses.map(|count| count * workers),
                sent: 16 * workers,
                resets: 13 * workers,
                cut_off: 14 * workers,
                failed: 15 * workers,
            };
            assert_eq!(sum, expected);
        }
    }

    /// They are removed when the copy is complete, and the oldest when there are too many.
    #[test]
    fn receivers_of_a_copy_are_bounded_and_each_is_called_once() {
        let config = EndpointConfig::client();
        let endpoint = Endpoint::<()>::new(config, [1; 32]).expect("an endpoint");
        let mut measure = Measure::new(0);
        let (sender, receiver) = mpsc::channel();
        for number in 0..ANSWERS_MAX + 3 {
            let sender = sender.clone();
            measure.begin(&endpoint, Box::new(move |_| _ = sender.send(number)));
        }
        assert!(!measure.advance(&endpoint));
        assert!(receiver.try_iter().eq(3..ANSWERS_MAX + 3));
        assert!(measure.answers.is_empty() && !measure.advance(&endpoint));
    }

    #[test]
    fn a_slice_is_bounded() {
        let mut pass = Pass {
            sums: Vec::new(),
            left: 0..10 * SLICE + 1,
        };
        let mut next = 0;
        for left in (0..=10).rev() {
            let slice = pass.next_slice();
            assert_eq!(slice.start, next);
            assert!(slice.len() <= SLICE as usize);
            next = slice.end;
            assert_eq!(pass.left.is_empty(), left == 0);
        }
        assert_eq!(next, 10 * SLICE + 1);
        assert!(pass.next_slice().is_empty());
    }

    /// Connections open, count and close between slices, and indices are reused.
    #[test]
    fn each_connection_is_added_once_and_sums_never_decrease() {
        // A linear congruential generator.
        let mut state = 7_u64;
        let mut below = move |limit: u32| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as u32 % limit
        };
        // By index: the number of the connection, and its count.
        let mut open = BTreeMap::<u32, (u64, u64)>::new();
        let (mut opened, mut ended, mut before) = (0, 0, 0);
        for _ in 0..200 {
            let at_start: Vec<u64> = open.values().map(|(number, _)| *number).collect();
            let end = open.last_key_value().map_or(0, |(index, _)| index + 1);
            let mut pass = Pass {
                sums: vec![ended],
                left: 0..end,
            };
            let mut added = BTreeSet::new();
            while !pass.left.is_empty() {
                for (number, count) in open.range(pass.next_slice()).map(|(_, one)| one) {
                    pass.sums[0] += count;
                    assert!(added.insert(*number), "{number} twice");
                }
                for _ in 0..20 {
                    let index = below(300);
                    match open.get(&index).copied() {
                        None => {
                            opened += 1;
                            open.insert(index, (opened, 1));
                        }
                        Some((number, count)) if below(2) == 0 => {
                            open.remove(&index);
                            ended += count;
                            if pass.is_ahead(index) {
                                pass.sums[0] += count;
                                assert!(added.insert(number), "{number} twice");
                            }
                        }
                        Some((number, count)) => {
                            open.insert(index, (number, count + u64::from(below(10))));
                        }
                    }
                }
            }
            assert!(at_start.iter().all(|number| added.contains(number)));
            assert!(pass.sums[0] >= before);
            before = pass.sums[0];
            // Between two passes.
            for index in 0..300 {
                if !open.contains_key(&index) && below(3) == 0 {
                    opened += 1;
                    open.insert(index, (opened, u64::from(below(5))));
                }
            }
        }
        assert!(before > 10_000, "{before}");
    }
}
