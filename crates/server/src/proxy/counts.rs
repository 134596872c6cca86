//! Counters of an upstream server, for metrics and the access log.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use lastbyte_origin::{histogram::Histogram, times};
use tokio::time::Instant;

use crate::exchange::Notes;

/// The error types of RFC 9209 §2.3 that a proxy reports.
pub(super) const ERRORS: [&str; 10] = [
    CONNECTION_LIMIT,
    "connection_refused",
    "connection_timeout",
    "tls_certificate_error",
    "http_protocol_error",
    "http_response_timeout",
    INCOMPLETE,
    READ_TIMEOUT,
    "http_response_transfer_coding",
    "http_upgrade_failed",
];
/// Too many requests are in flight.
pub(super) const CONNECTION_LIMIT: &str = "connection_limit_reached";
/// The response ended early.
pub(super) const INCOMPLETE: &str = "http_response_incomplete";
/// The response stalled.
pub(super) const READ_TIMEOUT: &str = "connection_read_timeout";

/// The counters of one upstream.
#[derive(Debug, Default)]
pub(super) struct Counts {
    response: times::Counts,
    connect: times::Counts,
    errors: [AtomicU64; ERRORS.len()],
    retries: AtomicU64,
    /// For each server, checks that failed.
    failed_checks: Box<[AtomicU64]>,
}

impl Counts {
    /// For this number of servers.
    pub(super) fn new(servers: usize) -> Arc<Self> {
        Arc::new(Self {
            failed_checks: (0..servers).map(|_| AtomicU64::new(0)).collect(),
            ..Self::default()
        })
    }

    pub(super) fn on_check(&self, server: usize, has_passed: bool) {
        if let Some(count) = self.failed_checks.get(server).filter(|_| !has_passed) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn on_connected(&self, took: Duration) {
        self.connect.add(took);
    }

    pub(super) fn on_retry(&self) {
        self.retries.fetch_add(1, Ordering::Relaxed);
    }
}

/// A request, for the counters of its upstream and the notes for the access log.
#[derive(Clone, Debug)]
pub(super) struct Observed {
    notes: Arc<Notes>,
    counts: Arc<Counts>,
    began: Instant,
}

impl Observed {
    pub(super) fn new(counts: &Arc<Counts>, notes: &Arc<Notes>) -> Self {
        Self {
            notes: Arc::clone(notes),
            counts: Arc::clone(counts),
            began: Instant::now(),
        }
    }

    /// The header of the response arrived.
    pub(super) fn on_response(&self) {
        let took = self.began.elapsed();
        self.notes.set_upstream(took);
        self.counts.response.add(took);
    }

    /// There is no response, or not all of it.
    pub(super) fn on_error(&self, error: &'static str) {
        if self.notes.upstream().is_none() {
            self.notes.set_upstream(self.began.elapsed());
        }
        self.notes.set_error(error);
        let index = ERRORS.iter().position(|known| *known == error);
        if let Some(count) = index.and_then(|index| self.counts.errors.get(index)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Access to the counters of an upstream at any time.
#[derive(Clone)]
pub struct UpstreamCounts {
    pub(super) name: String,
    pub(super) counts: Arc<Counts>,
    /// The number of connections that are kept.
    pub(super) kept: Arc<dyn Fn() -> usize + Send + Sync>,
    /// The servers, and whether each receives requests.
    pub(super) servers: Arc<dyn Fn() -> Vec<(String, bool)> + Send + Sync>,
}

impl fmt::Debug for UpstreamCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("UpstreamCounts").field(&self.name).finish()
    }
}

/// Counters of an upstream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpstreamStatistics {
    /// Its URL.
    pub name: String,
    /// Times from a request until the header of its response, with the time for a connection.
    pub response: Histogram,
    /// Times to open a connection, with TLS.
    pub connect: Histogram,
    /// Requests without a complete response, by error type (RFC 9209 §2.3).
    pub errors: Vec<(&'static str, u64)>,
    /// Repeated attempts to send a request.
    pub retries: u64,
    /// Open connections that are kept for requests: idle ones, and over HTTP/2 those in use.
    pub kept: usize,
    /// Its servers, if there are several, or if they are checked.
    pub servers: Vec<ServerStatistics>,
}

/// Health of a server of an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerStatistics {
    /// Its URL.
    pub name: String,
    /// Whether it receives requests.
    pub is_up: bool,
    /// Checks that failed.
    pub failed_checks: u64,
}

impl UpstreamCounts {
    /// The current counters.
    pub fn read(&self) -> UpstreamStatistics {
        let counts = &self.counts;
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        UpstreamStatistics {
            name: self.name.clone(),
            response: counts.response.read(),
            connect: counts.connect.read(),
            errors: ERRORS
                .into_iter()
                .zip(counts.errors.iter().map(of))
                .collect(),
            retries: of(&counts.retries),
            kept: (self.kept)(),
            servers: (self.servers)()
                .into_iter()
                .zip(&counts.failed_checks)
                .map(|((name, is_up), failed)| ServerStatistics {
                    name,
                    is_up,
                    failed_checks: of(failed),
                })
                .collect(),
        }
    }
}

impl UpstreamStatistics {
    /// Adds those of another pool of connections to the same server.
    pub(crate) fn add(&mut self, other: &Self) {
        self.response.merge(&other.response);
        self.connect.merge(&other.connect);
        for ((_, sum), (_, more)) in self.errors.iter_mut().zip(&other.errors) {
            *sum += more;
        }
        self.retries += other.retries;
        self.kept += other.kept;
        for (sum, more) in self.servers.iter_mut().zip(&other.servers) {
            sum.is_up &= more.is_up;
            sum.failed_checks += more.failed_checks;
        }
    }
}
