//! Counts and measurements of one thread. Recording a response does not allocate.

use core::time::Duration;
use std::collections::BTreeMap;

use lastbyte_quic::Time;

use crate::{dispatcher::Due, histogram::Histogram, timeline::Timeline};

#[cfg(test)]
mod tests;

/// The most different errors that are listed. The others are counted together.
const ERRORS_MAX: usize = 32;

/// Counters, with the names of h2load. Requests of the warm-up do not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests sent.
    pub started: u64,
    /// Responses received completely, whatever their status.
    pub done: u64,
    /// Of those, responses with status 2xx or 3xx.
    pub succeeded: u64,
    /// Requests without a successful response: [`Self::errored`], and those with another status.
    pub failed: u64,
    /// Requests without a complete response, and requests that could not be sent because the connection failed.
    pub errored: u64,
    /// Of those, requests that took longer than the time limit of a request or a connection.
    pub timed_out: u64,
    /// Requests that the server refused before it processed them, and that were sent a second time.
    pub retried: u64,
    /// Requests that were in progress at the end of the measured time, or when the run was interrupted.
    pub unfinished: u64,
    /// Requests of an open loop that were due, but not sent: no stream was free until the end.
    pub not_started: u64,
    /// Responses by the first digit of their status. Index 0 is not used.
    pub statuses: [u64; 6],
    /// Bytes received: UDP payloads with HTTP/3, and otherwise bytes of TCP streams after decryption.
    pub total_bytes: u64,
    /// Bytes of response headers as received.
    pub header_bytes: u64,
    /// Bytes of response headers without compression: names and values.
    pub header_text_bytes: u64,
    /// Bytes of response bodies.
    pub data_bytes: u64,
    /// Connections established, over the whole run.
    pub connected: u64,
    /// Connection attempts that failed, over the whole run.
    pub connect_failed: u64,
    /// Established connections that ended before the run did.
    pub disconnected: u64,
    /// Full TLS handshakes, over the whole run.
    pub full_handshakes: u64,
    /// Handshakes that resumed a TLS session, over the whole run.
    pub resumed_handshakes: u64,
    /// Connections whose early data the server accepted, over the whole run.
    pub early_data_accepted: u64,
    /// Connections whose early data the server rejected, so that it was sent again after the handshake.
    pub early_data_rejected: u64,
    /// Moves of connections to another port, over the whole run.
    pub migrations: u64,
    /// Moves that failed: the connection stayed on its port, or ended.
    pub migrations_failed: u64,
    /// Requests that were lost because their connection ended while it moved.
    pub migration_losses: u64,
    /// UDP datagrams sent, over the whole run.
    pub datagrams_sent: u64,
    /// UDP datagrams received, over the whole run.
    pub datagrams_received: u64,
}

impl Counts {
    fn add(&mut self, other: &Self) {
        let Self {
            started,
            done,
            succeeded,
            failed,
            errored,
            timed_out,
            retried,
            unfinished,
            not_started,
            statuses,
            total_bytes,
            header_bytes,
            header_text_bytes,
            data_bytes,
            connected,
            connect_failed,
            disconnected,
            full_handshakes,
            resumed_handshakes,
            early_data_accepted,
            early_data_rejected,
            migrations,
            migrations_failed,
            migration_losses,
            datagrams_sent,
            datagrams_received,
        } = other;
        for (sum, more) in self.statuses.iter_mut().zip(statuses) {
            *sum += more;
        }
        for (sum, more) in [
            (&mut self.started, started),
            (&mut self.done, done),
            (&mut self.succeeded, succeeded),
            (&mut self.failed, failed),
            (&mut self.errored, errored),
            (&mut self.timed_out, timed_out),
            (&mut self.retried, retried),
            (&mut self.unfinished, unfinished),
            (&mut self.not_started, not_started),
            (&mut self.total_bytes, total_bytes),
            (&mut self.header_bytes, header_bytes),
            (&mut self.header_text_bytes, header_text_bytes),
            (&mut self.data_bytes, data_bytes),
            (&mut self.connected, connected),
            (&mut self.connect_failed, connect_failed),
            (&mut self.disconnected, disconnected),
            (&mut self.full_handshakes, full_handshakes),
            (&mut self.resumed_handshakes, resumed_handshakes),
            (&mut self.early_data_accepted, early_data_accepted),
            (&mut self.early_data_rejected, early_data_rejected),
            (&mut self.migrations, migrations),
            (&mut self.migrations_failed, migrations_failed),
            (&mut self.migration_losses, migration_losses),
            (&mut self.datagrams_sent, datagrams_sent),
            (&mut self.datagrams_received, datagrams_received),
        ] {
            *sum += more;
        }
    }
}

/// A request in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFlight {
    /// When it was due. In a closed loop, the same as `sent`.
    pub due: Time,
    /// When it was sent; if the server has refused it, the first time.
    pub sent: Time,
    /// Whether it counts.
    pub is_measured: bool,
    /// The status of its response; 0 before the header arrives.
    pub status: u16,
    /// Its index in the list of requests.
    pub request: usize,
    /// Whether it was sent before, and refused.
    pub is_retry: bool,
}

impl InFlight {
    /// A request that is being sent now.
    #[must_use]
    pub const fn new(due: &Due, now: Time) -> Self {
        Self {
            due: due.at,
            sent: match due.first_sent {
                Some(sent) => sent,
                None => now,
            },
            is_measured: due.is_measured,
            status: 0,
            request: due.request,
            is_retry: due.first_sent.is_some(),
        }
    }

    /// The request again, over the client's next connection, after the server has refused it without processing it. `None`
    /// if it may not be sent again: it was refused before, or the server has started to respond.
    pub const fn retry(&self) -> Option<Due> {
        if self.is_retry || self.status != 0 {
            return None;
        }
        Some(Due {
            request: self.request,
            at: self.due,
            is_measured: self.is_measured,
            handshake: None,
            first_sent: Some(self.sent),
        })
    }
}

/// Why a request has no complete response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The connection or the stream failed.
    Error,
    /// A time limit was exceeded.
    Timeout,
}

/// Counts and measurements of one thread.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recorder {
    /// The counters.
    pub counts: Counts,
    /// From when a request was sent to the end of its response, in ns.
    pub service: Histogram,
    /// From when a request was due to the end of its response, in ns: corrected for coordinated omission.
    pub latency: Histogram,
    /// Time to establish each connection, in ns.
    pub connect: Histogram,
    /// For each connection, the time from its start to the first byte of a response, in ns.
    pub first_byte: Histogram,
    /// For each connection, its responses per second.
    pub rates: Vec<f64>,
    /// Errors, with their counts.
    pub errors: BTreeMap<String, u64>,
    /// When the first TLS handshake started, and when the last one was complete.
    pub handshakes: Option<(Time, Time)>,
    /// When the last response ended.
    pub last: Option<Time>,
    /// Latencies and failures over time.
    pub timeline: Timeline,
}

impl Recorder {
    /// A recorder with room for the values of this number of connections.
    #[must_use]
    pub fn new(connections: usize) -> Self {
        Self {
            rates: Vec::with_capacity(connections),
            ..Self::default()
        }
    }

    /// A request was sent. One that was refused before counts as retried, and is still one request.
    pub fn on_started(&mut self, request: &InFlight) {
        let count = if request.is_retry {
            &mut self.counts.retried
        } else {
            &mut self.counts.started
        };
        *count += u64::from(request.is_measured);
    }

    /// A request was not sent after all, and will be sent again.
    pub fn on_unsent(&mut self, request: &InFlight) {
        let count = if request.is_retry {
            &mut self.counts.retried
        } else {
            &mut self.counts.started
        };
        *count -= u64::from(request.is_measured);
    }

    /// A request that is due was not sent until the end. One that was refused before is unfinished, since it was started.
    pub fn on_not_sent(&mut self, due: &Due) {
        let count = if due.first_sent.is_some() {
            &mut self.counts.unfinished
        } else {
            &mut self.counts.not_started
        };
        *count += u64::from(due.is_measured);
    }

    /// A response is complete.
    pub fn on_done(&mut self, request: &InFlight, now: Time) {
        if !request.is_measured {
            return;
        }
        let counts = &mut self.counts;
        counts.done += 1;
        if let Some(count) = counts.statuses.get_mut(usize::from(request.status / 100)) {
            *count += 1;
        }
        if (200..400).contains(&request.status) {
            counts.succeeded += 1;
        } else {
            counts.failed += 1;
        }
        self.service.record(now.nanos_since(request.sent));
        let latency = now.nanos_since(request.due);
        self.latency.record(latency);
        self.timeline.on_done(now, latency);
        self.last = self.last.max(Some(now));
    }

    /// A request will have no complete response.
    pub fn on_failed(&mut self, request: &InFlight, cause: Cause, why: &str) {
        if request.is_measured {
            self.count_failed(1, cause, why);
        }
    }

    /// These requests cannot be sent, because their connection failed.
    pub fn on_abandoned(&mut self, requests: u64, cause: Cause, why: &str) {
        self.count_failed(requests, cause, why);
    }

    fn count_failed(&mut self, requests: u64, cause: Cause, why: &str) {
        if requests == 0 {
            return;
        }
        self.counts.failed += requests;
        self.counts.errored += requests;
        self.timeline.on_failed(requests);
        if cause == Cause::Timeout {
            self.counts.timed_out += requests;
        }
        self.on_error(requests, why);
    }

    /// Something went wrong this number of times.
    pub fn on_error(&mut self, times: u64, why: &str) {
        if let Some(count) = self.errors.get_mut(why) {
            *count += times;
        } else if self.errors.len() < ERRORS_MAX {
            self.errors.insert(why.to_owned(), times);
        } else {
            *self.errors.entry("other errors".to_owned()).or_default() += times;
        }
    }

    /// A request was in progress at the end.
    pub fn on_unfinished(&mut self, request: &InFlight) {
        self.counts.unfinished += u64::from(request.is_measured);
    }

    /// A connection that was started at this time is established. `is_resumed` is whether a TLS session was resumed; `None`
    /// without TLS.
    pub fn on_connected(&mut self, started: Time, now: Time, is_resumed: Option<bool>) {
        let counts = &mut self.counts;
        counts.connected += 1;
        counts.full_handshakes += u64::from(is_resumed == Some(false));
        counts.resumed_handshakes += u64::from(is_resumed == Some(true));
        self.connect.record(now.nanos_since(started));
        if is_resumed.is_some() {
            self.on_handshakes((started, now));
        }
    }

    fn on_handshakes(&mut self, (started, ended): (Time, Time)) {
        let (first, last) = self.handshakes.unwrap_or((started, ended));
        self.handshakes = Some((first.min(started), last.max(ended)));
    }

    /// TLS handshakes per second, in the time from the start of the first to the end of the last.
    pub fn handshake_rate(&self) -> f64 {
        let count = self.counts.full_handshakes + self.counts.resumed_handshakes;
        let lasted = self.handshakes.map(|(first, last)| last.since(first));
        match lasted.filter(|lasted| !lasted.is_zero()) {
            Some(lasted) => count as f64 / lasted.as_secs_f64(),
            None => 0.0,
        }
    }

    /// A connection has answered this number of requests in this time.
    pub fn on_connection_end(&mut self, done: u64, lasted: Duration) {
        if !lasted.is_zero() {
            self.rates.push(done as f64 / lasted.as_secs_f64());
        }
    }

    /// Adds what another thread has recorded.
    pub fn merge(&mut self, other: &Self) {
        self.counts.add(&other.counts);
        self.service.merge(&other.service);
        self.latency.merge(&other.latency);
        self.connect.merge(&other.connect);
        self.first_byte.merge(&other.first_byte);
        self.rates.extend_from_slice(&other.rates);
        for (why, times) in &other.errors {
            self.on_error(*times, why);
        }
        self.last = self.last.max(other.last);
        if let Some(handshakes) = other.handshakes {
            self.on_handshakes(handshakes);
        }
        self.timeline.merge(&other.timeline);
    }
}
