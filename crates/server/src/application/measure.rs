//! What a worker counts.
//!
//! Owns: the counts of its own, and the sums of the transport's over connections that are over. Never: is shared while it
//! counts; a command returns a copy.

use std::{collections::BTreeMap, time::Duration};

use lastbyte_driver::Statistics as WorkerStatistics;
use lastbyte_quic::connection::Connection;
use lastbyte_record::connection_log::{Snapshot, keys::STATISTICS, schema::Value};

use crate::{arms::ArmsInUse, metrics::histogram::Histogram};

/// What was counted, of all connections of a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Connections that clients began.
    pub accepted: u64,
    /// Handshakes that were completed.
    pub handshakes: u64,
    /// Of those, the ones that resumed an earlier connection.
    pub resumed: u64,
    /// Of those, the ones whose 0-RTT was taken.
    pub zero_rtt: u64,
    /// Requests that came.
    pub requests: u64,
    /// Of those, the ones that came as 0-RTT.
    pub early_requests: u64,
    /// Responses begun, by the first digit of their status: 2xx is at 2.
    pub responses: [u64; 6],
    /// Requests that clients gave up, or that were malformed.
    pub resets: u64,
    /// Responses that clients wanted no more of, or that could not be read to their end.
    pub cut_off: u64,
    /// Connections that broke a rule of HTTP/3.
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
    /// The transport's statistics in the order of the log's schema, summed over connections that are over.
    ended: Vec<u64>,
    /// Time to the last byte of the first response, by arm.
    ttlb: BTreeMap<String, Histogram>,
}

/// A copy of it all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Measured {
    pub(crate) statistics: Statistics,
    pub(crate) worker: WorkerStatistics,
    /// In the order of the log's schema, summed over all connections there ever were.
    pub(crate) transport: Vec<u64>,
    pub(crate) ttlb: BTreeMap<String, Histogram>,
    /// Connections that there are.
    pub(crate) connections: u64,
    /// Of those, the ones in their handshake.
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

    pub(super) fn on_closed(&mut self, connection: &Connection) {
        add(&mut self.ended, connection);
    }

    pub(super) fn report<'a>(
        &self,
        connections: usize,
        handshakes: usize,
        live: impl Iterator<Item = &'a Connection>,
    ) -> Measured {
        let mut transport = self.ended.clone();
        for connection in live {
            add(&mut transport, connection);
        }
        Measured {
            statistics: self.statistics,
            worker: self.worker,
            transport,
            ttlb: self.ttlb.clone(),
            connections: connections as u64,
            handshakes: handshakes as u64,
        }
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
