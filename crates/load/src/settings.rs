//! The settings of a run, and what progress it reports.

use core::{
    fmt,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Duration,
};
use std::{net::IpAddr, sync::Arc};

use lastbyte_client::Url;
use lastbyte_emulate::PathModel;
use lastbyte_http3::Fields;
use lastbyte_units::SplitMix64;

use crate::{
    connection_log::LineSink,
    dispatcher::{Amount, Arrivals},
    error::Error,
    mix::Mix,
};

/// The version of HTTP of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.1, over TLS or without it.
    Http1,
    /// HTTP/2, over TLS, or with prior knowledge without it.
    Http2,
    /// HTTP/3.
    Http3,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http1 => "HTTP/1.1",
            Self::Http2 => "HTTP/2",
            Self::Http3 => "HTTP/3",
        })
    }
}

/// A request that is sent again and again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The target URI. All requests of a run have the same origin.
    pub url: Url,
    /// Its weight relative to the other requests.
    pub weight: u32,
}

/// Model paths between the connections and the server.
#[derive(Clone, Debug)]
pub struct Network {
    /// Its name, for reports.
    pub name: String,
    /// At least one path. Connections take them in turn, each with random numbers of its own.
    pub paths: Vec<PathModel>,
}

impl Network {
    /// The path of a connection, by its index among those of all threads.
    pub fn path_of(&self, connection: usize) -> PathModel {
        let path = self.paths.get(connection % self.paths.len().max(1));
        let mut path = path.cloned().unwrap_or_default();
        path.seed = SplitMix64::stream(path.seed, connection as u64).number();
        path
    }
}

/// The settings of a run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// TLS, QUIC and addresses. Its limits of fetches have no effect. The QPACK table capacity of `http3` is also the size of
    /// the table of HPACK, for the headers of responses.
    pub client: lastbyte_client::Settings,
    /// The version of HTTP.
    pub version: Version,
    /// The requests, at least one, in the order in which each connection sends them.
    pub requests: Vec<Request>,
    /// The header fields of all requests.
    pub fields: Fields,
    /// The body of all requests. With one, they are POST requests, and otherwise GET requests.
    pub body: Option<Arc<[u8]>>,
    /// The length of the run.
    pub amount: Amount,
    /// When requests start.
    pub arrivals: Arrivals,
    /// The number of connections, at least 1.
    pub connections: usize,
    /// The connections that all threads together open per second, at equal intervals. Default: none, and all are opened at once.
    pub connect_rate: Option<f64>,
    /// The most requests in progress on a connection, at least 1. HTTP/1.1 has one.
    pub streams: usize,
    /// The number of threads, at least 1 and at most the number of connections.
    pub threads: usize,
    /// The time limit of a request.
    pub timeout: Duration,
    /// How each request gets its connection. Default: all requests of a client use one connection, which is established again
    /// by a full handshake if it ends.
    pub mix: Option<Mix>,
    /// The interval at which each connection moves to another local port, over HTTP/3. Default: never.
    pub migrate: Option<Duration>,
    /// The local addresses that they move to in turn. Default: none, and the system chooses the address.
    pub migrate_to: Vec<IpAddr>,
    /// The seed of Poisson arrivals and of the mix.
    pub seed: u64,
    /// Model paths, with HTTP/3 on Linux. Default: none, the real network alone.
    pub network: Option<Network>,
    /// Receives a line for each connection at its end, with HTTP/3. Default: none.
    pub connection_log: Option<Arc<dyn LineSink>>,
}

impl Settings {
    /// The method of the requests.
    pub const fn method(&self) -> &'static str {
        if self.body.is_some() { "POST" } else { "GET" }
    }

    /// Whether connections resume TLS sessions.
    pub(crate) fn is_resuming(&self) -> bool {
        self.mix.is_some_and(Mix::is_resuming)
    }

    /// Whether requests are sent in early data.
    fn uses_zero_rtt(&self) -> bool {
        self.mix.is_some_and(|mix| mix.zero_rtt > 0)
    }

    /// Checks that the settings do not contradict each other, for a server with or without TLS.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Settings`] with the reason.
    pub(crate) fn check(&self, is_tls: bool) -> Result<(), Error> {
        let wrong = |why: String| Err(Error::Settings(why));
        if self.threads > self.connections {
            return wrong(format!(
                "more threads than connections: {} (expected at most {})",
                self.threads, self.connections
            ));
        }
        if self.mix.is_some() && self.streams > 1 {
            return wrong(format!(
                "with --mix, a connection has one request at a time: `-m {}` (expected `-m 1`; add connections with `-c`)",
                self.streams
            ));
        }
        if self.migrate.is_some() && self.version != Version::Http3 {
            let version = self.version;
            return wrong(format!(
                "connections of {version} cannot move to another port (expected HTTP/3)"
            ));
        }
        if self.migrate.is_some() && self.network.is_some() {
            return wrong("connections over model paths cannot move to another port".to_owned());
        }
        if self.is_resuming() && !is_tls {
            return wrong("`http` has no sessions to resume (expected `https`)".to_owned());
        }
        if self.uses_zero_rtt() && self.version != Version::Http3 {
            let version = self.version;
            return wrong(format!(
                "0-RTT is not supported over {version} (expected HTTP/3)"
            ));
        }
        if self.uses_zero_rtt() && self.body.is_some() {
            return wrong(
                "a POST request cannot be sent in 0-RTT, since it could be replayed (expected no body)"
                    .to_owned(),
            );
        }
        Ok(())
    }
}

/// Progress and stop flag of a run, for other threads.
#[derive(Debug)]
pub struct Control {
    /// Set it to end the run at once.
    pub stop: Arc<AtomicBool>,
    /// The progress of each thread.
    pub threads: Vec<Progress>,
}

/// The progress of a thread, updated ten times a second.
#[derive(Debug, Default)]
pub struct Progress {
    /// Responses, including those of the warm-up.
    pub done: AtomicU64,
    /// Requests without a successful response.
    pub failed: AtomicU64,
    /// The median of the corrected latency in ns, so far; 0 if unknown.
    pub p50: AtomicU64,
    /// Its 99th percentile; 0 if unknown.
    pub p99: AtomicU64,
    /// The 99th percentile of the last tenth of a second that had 1000 responses; 0 if there was none.
    pub recent_p99: AtomicU64,
}

impl Control {
    /// For this number of threads; the flag stops them.
    #[must_use]
    pub fn new(threads: usize, stop: Arc<AtomicBool>) -> Self {
        Self {
            stop,
            threads: (0..threads).map(|_| Progress::default()).collect(),
        }
    }

    /// Whether the run is to end at once.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
