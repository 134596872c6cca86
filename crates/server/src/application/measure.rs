//! The counters of a worker.
//!
//! Each worker has its own counters, and totals of the transport's statistics of closed connections. Other threads
//! receive a copy, by a command.
//!
//! A copy contains the totals over all connections, which take about 3 µs each. So it is computed in slices of
//! [`SLICE`] connections, one in each turn of the worker: datagrams wait for at most 0.2 ms, whatever the number of
//! connections.

use std::{collections::BTreeMap, time::Duration, vec};

use lastbyte_driver::Statistics as WorkerStatistics;
use lastbyte_quic::{
    connection::Connection,
    endpoint::{Closed, Endpoint, Handle},
};
use lastbyte_record::connection_log::{Snapshot, keys::STATISTICS, schema::Value};
use tokio::sync::oneshot;

use crate::{arms::ArmsInUse, metrics::histogram::Histogram};

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
    /// Requests.
    pub requests: u64,
    /// Of those, requests received in 0-RTT.
    pub early_requests: u64,
    /// Started responses, by the first digit of their status: 2xx is at 2.
    pub responses: [u64; 6],
    /// Requests that clients cancelled, or that were malformed.
    pub resets: u64,
    /// Responses that clients cancelled, or whose body could not be read.
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
        self.resets += other.resets;
        self.cut_off += other.cut_off;
        self.failed += other.failed;
        for (sum, more) in self.responses.iter_mut().zip(other.responses) {
            *sum += more;
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Measure {
    pub(super) statistics: Statistics,
    pub(super) worker: WorkerStatistics,
    /// The transport's statistics in the order of the log's schema, summed over closed connections.
    ended: Vec<u64>,
    /// Time to the last byte of the first response, by arm.
    ttlb: BTreeMap<String, Histogram>,
    /// The copy being computed.
    pass: Option<Pass<Handle>>,
    /// The receivers of that copy.
    answers: Vec<oneshot::Sender<Measured>>,
}

/// Connections per slice.
const SLICE: usize = 64;

/// Totals over all connections, in slices. Each connection that existed at the start is added once: with its current
/// statistics in its slice, or with its final ones when it closes before that. Some of those that open later are left
/// out. So a total is never smaller than that of an earlier pass.
#[derive(Debug)]
struct Pass<H> {
    sums: Vec<u64>,
    /// Connections not added yet, in ascending order.
    left: vec::IntoIter<H>,
}

impl<H: Ord> Pass<H> {
    /// Whether a connection that closes now has not been added.
    fn is_ahead(&self, closed: &H) -> bool {
        let next = self.left.as_slice().first();
        next.is_some_and(|next| closed >= next)
    }

    /// Adds the connections of a slice. Returns whether it was the last.
    fn advance(&mut self, mut add: impl FnMut(&mut Vec<u64>, H)) -> bool {
        for handle in self.left.by_ref().take(SLICE) {
            add(&mut self.sums, handle);
        }
        self.left.as_slice().is_empty()
    }
}

/// A copy of all counters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Measured {
    pub(crate) statistics: Statistics,
    pub(crate) worker: WorkerStatistics,
    /// In the order of the log's schema, summed over all connections, open and closed.
    pub(crate) transport: Vec<u64>,
    pub(crate) ttlb: BTreeMap<String, Histogram>,
    /// Open connections.
    pub(crate) connections: u64,
    /// Of those, connections in the handshake.
    pub(crate) handshakes: u64,
}

impl Measure {
    pub(super) fn on_handshake(&mut self, connection: &Connection) {
        let session = connection.session();
        self.statistics.handshakes += 1;
        self.statistics.resumed += u64::from(session.is_resumed() == Some(true));
        let is_early = connection.statistics().packets.zero_rtt_received > 0;
        self.statistics.zero_rtt += u64::from(is_early);
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
            && pass.is_ahead(&closed.handle)
        {
            add(&mut pass.sums, &closed.connection);
        }
    }

    /// Starts to compute a copy, or adds a receiver to the one being computed.
    pub(super) fn begin<D>(&mut self, endpoint: &Endpoint<D>, answer: oneshot::Sender<Measured>) {
        self.answers.retain(|answer| !answer.is_closed());
        self.answers.push(answer);
        self.pass.get_or_insert_with(|| Pass {
            sums: self.ended.clone(),
            left: endpoint.handles().collect::<Vec<_>>().into_iter(),
        });
    }

    /// Continues to compute a copy, and sends it when it is complete. Returns whether it is not.
    pub(super) fn advance<D>(&mut self, endpoint: &Endpoint<D>) -> bool {
        let Some(pass) = &mut self.pass else {
            return false;
        };
        let is_complete = pass.advance(|sums, handle| {
            if let Some(connection) = endpoint.peek(handle) {
                add(sums, connection);
            }
        });
        if !is_complete {
            return true;
        }
        let transport = self.pass.take().map_or(Vec::new(), |pass| pass.sums);
        let measured = Measured {
            statistics: self.statistics,
            worker: self.worker,
            transport,
            ttlb: self.ttlb.clone(),
            connections: endpoint.connections() as u64,
            handshakes: endpoint.handshakes() as u64,
        };
        for answer in self.answers.drain(..) {
            // The receiver may have timed out.
            let _ = answer.send(measured.clone());
        }
        false
    }
}

fn add(sums: &mut Vec<u64>, connection: &Connection) {
    sums.resize(STATISTICS.len(), 0);
    let snapshot = Snapshot::of(connection);
    for (sum, field) in sums.iter_mut().zip(STATISTICS) {
        if let Value::Integer(value) = field.value(&snapshot) {
            *sum = sum.saturating_add(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_slice_is_bounded() {
        let mut pass = Pass {
            sums: Vec::new(),
            left: (0..10 * SLICE).collect::<Vec<_>>().into_iter(),
        };
        let (mut slices, mut total) = (0, 0);
        loop {
            let mut added = 0;
            let is_complete = pass.advance(|_, _| added += 1);
            assert!(added <= SLICE);
            slices += 1;
            total += added;
            if is_complete {
                break;
            }
        }
        assert_eq!((slices, total), (10, 10 * SLICE));
    }

    /// Connections open, count and close between slices, and slots are reused. Handles are slots and generations.
    #[test]
    fn each_connection_is_added_once_and_sums_never_decrease() {
        // A linear congruential generator.
        let mut state = 7_u64;
        let mut below = move |limit: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % limit
        };
        let mut open = BTreeMap::<(u64, u64), u64>::new();
        let (mut generation, mut ended, mut before) = (0, 0, 0);
        for _ in 0..200 {
            let at_start = open.clone();
            let mut pass = Pass {
                sums: vec![ended],
                left: open.keys().copied().collect::<Vec<_>>().into_iter(),
            };
            let mut added = BTreeMap::<(u64, u64), u32>::new();
            while !pass.advance(|sums, handle| {
                if let Some(count) = open.get(&handle) {
                    sums[0] += count;
                    *added.entry(handle).or_default() += 1;
                }
            }) {
                for _ in 0..20 {
                    let slot = below(300);
                    let live = open.range((slot, 0)..(slot + 1, 0)).next();
                    match live.map(|(handle, count)| (*handle, *count)) {
                        None => {
                            generation += 1;
                            open.insert((slot, generation), 1);
                        }
                        Some((handle, count)) if below(2) == 0 => {
                            open.remove(&handle);
                            ended += count;
                            if pass.is_ahead(&handle) {
                                pass.sums[0] += count;
                                *added.entry(handle).or_default() += 1;
                            }
                        }
                        Some((handle, count)) => {
                            open.insert(handle, count + below(10));
                        }
                    }
                }
            }
            assert!(added.values().all(|times| *times == 1), "{added:?}");
            assert!(at_start.keys().all(|handle| added.contains_key(handle)));
            assert!(pass.sums[0] >= before);
            before = pass.sums[0];
            // Between two passes.
            for slot in 0..300 {
                if open.range((slot, 0)..(slot + 1, 0)).next().is_none() && below(3) == 0 {
                    generation += 1;
                    open.insert((slot, generation), below(5));
                }
            }
        }
        assert!(before > 10_000, "{before}");
    }
}
