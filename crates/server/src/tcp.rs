//! HTTP/1.1 and 2 over TLS, beside HTTP/3 and with the same handler.
//!
//! Owns the limits of a connection, the counters, and graceful shutdown. Does not use the QUIC workers, and does not inspect
//! requests.
//!
//! | module | owns |
//! |---|---|
//! | `admission` | the number of connections, in all and per address |
//! | `threads` | the threads, each with a runtime of its own |
//! | `accept` | accepting connections, and their distribution over the threads |
//! | `connection` | one connection: handshake, version, HTTP/1.1 by hyper, close |
//! | `http2` | HTTP/2 by h2: requests accepted, responses sent, idle timeout, shutdown |
//! | `request` | requests converted for handlers, replies converted back (RFC 9112, RFC 9113) |
//! | `request_body` | request bodies, passed on or discarded |
//! | `in_flight` | a connection as its requests see it, and their number |
//! | `body` | response bodies, from sources and from exchanges |
//! | `observed` | measurements of a connection, for the connection log |
//! | `turns` | which response over HTTP/2 is sent next |
//! | `transport` | the stream under HTTP/2, which sends once for many frames |
//! | `interim` | interim responses over HTTP/1.1 |
//! | `pace` | a response over HTTP/2 that its client does not read |
//! | `stalled` | a peer that reads nothing for too long |
//! | `tunnel` | WebSocket: which requests ask for it; its bytes over HTTP/1.1 |
//! | `lingering` | the close of a socket without loss of written data |
//! | `plain` | the listener that redirects from `http` to `https` |

#![expect(
    clippy::disallowed_types,
    reason = "listeners are opened on one thread and used on another"
)]

mod accept;
pub(crate) mod admission;
mod body;
mod connection;
mod http2;
mod in_flight;
mod interim;
mod lingering;
mod observed;
mod pace;
mod plain;
mod request;
mod request_body;
mod stalled;
#[cfg(test)]
mod test_tls;
pub(crate) mod threads;
mod transport;
mod tunnel;
mod turns;

pub(crate) use self::plain::Text;
use self::threads::Threads;
pub use self::{
    admission::{Admission, Admitted},
    stalled::Stalled,
};

use std::{
    io, net,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use lastbyte_origin::times::{ClassTimes, RequestTimes};
use lastbyte_quic::stream::WindowBudget;
use tokio::{
    runtime::Handle,
    sync::{Notify, mpsc, watch},
    time,
};
use tokio_rustls::TlsAcceptor;

use super::{
    access::AccessLog, arms::ArmsInUse, budget::Budget, challenges::Challenges, date::DateField,
    handler::Handler, log::LogWriter, sites::Sites,
};

/// Limits over TCP, for all threads together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum connections, of the listener that redirects too. Default: 10 000.
    pub connections: usize,
    /// Maximum connections of one address (IPv6: of one /56), which never has more than there is room left; more are
    /// closed. Default: 1000.
    pub connections_per_prefix: usize,
    /// Time limit for a TLS handshake. Default: 10 s.
    pub handshake: Duration,
    /// Time limit for the head of a request. Over HTTP/1.1 it starts at the end of the previous request, so it is also the
    /// idle timeout. Default: 30 s.
    pub head: Duration,
    /// Time limit for a connection of HTTP/2 without a request. Default: 60 s.
    pub idle: Duration,
    /// Time limit for a client that reads nothing of a response, or sends nothing of a request body that is waited for.
    /// Default: 30 s.
    pub stall: Duration,
    /// Bytes of a request body, or of a response over HTTP/2, that must move in that time. Default: 3000.
    pub stall_bytes: u64,
    /// Maximum size of the head of a request, in bytes. Default: 64 KiB. Larger ones get 431, over HTTP/2 too.
    pub head_size: usize,
    /// Maximum concurrent requests on a connection of HTTP/2. Default: 128.
    pub streams: u32,
    /// Maximum window of a request body over HTTP/2, in bytes, below 2^30. It starts with 256 KiB. Default: 16 MiB.
    pub upload_window: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 10_000,
            connections_per_prefix: 1000,
            handshake: Duration::from_secs(10),
            head: Duration::from_secs(30),
            idle: Duration::from_secs(60),
            stall: Duration::from_secs(30),
            stall_bytes: 3000,
            head_size: 64 << 10,
            streams: 128,
            upload_window: 16 << 20,
        }
    }
}

/// Why a TLS handshake failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandshakeFailure {
    /// It took longer than [`Limits::handshake`].
    Timeout,
    /// The client closed the connection, or the connection failed.
    Connection,
    /// The server name is not a DNS name (RFC 6066 §3).
    ServerName,
    /// The client sent something else that is not acceptable, or an alert.
    Tls,
}

impl HandshakeFailure {
    /// All of them, in their order.
    pub const ALL: [Self; 4] = [Self::Timeout, Self::Connection, Self::ServerName, Self::Tls];

    /// Its name in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Connection => "connection",
            Self::ServerName => "server_name",
            Self::Tls => "tls",
        }
    }

    fn of(error: &io::Error) -> Self {
        let name = rustls::PeerMisbehaved::ServerNameMustContainOneHostName;
        match error.get_ref().and_then(|error| error.downcast_ref()) {
            None => Self::Connection,
            Some(rustls::Error::PeerMisbehaved(how)) if *how == name => Self::ServerName,
            Some(_) => Self::Tls,
        }
    }
}

/// Counters over TCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Connections accepted.
    pub accepted: u64,
    /// Open connections.
    pub connections: u64,
    /// Failed attempts to accept a waiting connection, for instance because too many files are open. It keeps waiting.
    pub accepts_failed: u64,
    /// Connections closed at once, because their address had reached its limit.
    pub refused: u64,
    /// Completed handshakes.
    pub handshakes: u64,
    /// Of those, the ones that resumed an earlier session.
    pub resumed: u64,
    /// Handshakes that failed, by [`HandshakeFailure`].
    pub handshakes_failed: [u64; HandshakeFailure::ALL.len()],
    /// Requests over HTTP/1.0 and 1.1.
    pub requests_http1: u64,
    /// Requests over HTTP/2.
    pub requests_http2: u64,
    /// Started responses, by the first digit of their status.
    pub responses: [u64; 6],
    /// Responses that the server, its upstream or a limit ended before they were complete.
    pub cut_off: u64,
}

impl Statistics {
    /// Adds the counters of another thread.
    fn add(&mut self, other: &Self) {
        self.accepted += other.accepted;
        self.connections += other.connections;
        self.accepts_failed += other.accepts_failed;
        self.refused += other.refused;
        self.handshakes += other.handshakes;
        self.resumed += other.resumed;
        self.requests_http1 += other.requests_http1;
        self.requests_http2 += other.requests_http2;
        self.cut_off += other.cut_off;
        for (sum, more) in self.responses.iter_mut().zip(other.responses) {
            *sum += more;
        }
        for (sum, more) in self
            .handshakes_failed
            .iter_mut()
            .zip(other.handshakes_failed)
        {
            *sum += more;
        }
    }
}

/// The counters of one thread. Others read them.
#[derive(Debug, Default)]
struct Counts {
    accepted: AtomicU64,
    closed: AtomicU64,
    accepts_failed: AtomicU64,
    refused: AtomicU64,
    handshakes: AtomicU64,
    resumed: AtomicU64,
    handshakes_failed: [AtomicU64; HandshakeFailure::ALL.len()],
    requests_http1: AtomicU64,
    requests_http2: AtomicU64,
    responses: [AtomicU64; 6],
    cut_off: AtomicU64,
    /// Over HTTP/1.1 and 2.
    times: [RequestTimes; 2],
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Counts {
    fn read(&self) -> Statistics {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let closed = of(&self.closed);
        let accepted = of(&self.accepted);
        Statistics {
            accepted,
            connections: accepted.saturating_sub(closed),
            accepts_failed: of(&self.accepts_failed),
            refused: of(&self.refused),
            handshakes: of(&self.handshakes),
            resumed: of(&self.resumed),
            handshakes_failed: self.handshakes_failed.each_ref().map(of),
            requests_http1: of(&self.requests_http1),
            requests_http2: of(&self.requests_http2),
            responses: self.responses.each_ref().map(of),
            cut_off: of(&self.cut_off),
        }
    }
}

/// The parts of a server over TCP.
pub(crate) struct Parts {
    /// For HTTP/1.1 and 2: none, one for all threads, or one for each.
    pub(crate) listeners: Vec<net::TcpListener>,
    /// For requests over plain HTTP, which are redirected to `https`.
    pub(crate) plain: Option<net::TcpListener>,
    /// The port that they are redirected to.
    pub(crate) https_port: u16,
    pub(crate) threads: usize,
    pub(crate) tls: Arc<rustls::ServerConfig>,
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) access: Option<AccessLog>,
    /// For the line of each connection.
    pub(crate) log: Option<LogWriter>,
    /// The sites, for that line.
    pub(crate) sites: Sites,
    /// For the hash of the server's configuration.
    pub(crate) arms: Arc<ArmsInUse>,
    /// The value of `alt-svc`.
    pub(crate) alt_svc: Option<String>,
    /// Whether interim responses are sent over HTTP/1.1.
    pub(crate) interim_http1: bool,
    pub(crate) limits: Limits,
    /// The limit on buffered bytes of bodies.
    pub(crate) budget: Budget,
    pub(crate) window_budget: WindowBudget,
    /// For `http-01`.
    pub(crate) challenges: Option<Challenges>,
}

/// State shared by the connections of a thread.
struct Shared {
    /// The index of the thread.
    thread: usize,
    sites: Sites,
    arms: Arc<ArmsInUse>,
    acceptor: TlsAcceptor,
    handler: Arc<dyn Handler>,
    access: Option<AccessLog>,
    log: Option<LogWriter>,
    alt_svc: Option<http::HeaderValue>,
    interim_http1: bool,
    limits: Limits,
    budget: Budget,
    window_budget: WindowBudget,
    /// [`Limits::upload_window`] of new connections.
    upload_window: Arc<AtomicU32>,
    counts: Arc<Counts>,
    /// Of responses over HTTP/2; hyper adds its own over HTTP/1.1.
    date: DateField,
    /// The number of the next connection, of all threads.
    next_number: Arc<AtomicU64>,
    /// Notified when a handshake fails because of its server name.
    name_refused: Arc<Notify>,
    stopped: watch::Receiver<bool>,
    /// Whether the time of the shutdown is over, so that what is left is closed.
    is_closing: Arc<AtomicBool>,
}

/// A thread that serves connections.
#[derive(Clone)]
struct Thread {
    handle: Handle,
    shared: Arc<Shared>,
}

/// A server over TCP that runs.
#[derive(Debug)]
pub(crate) struct TcpServer {
    threads: Threads,
    /// By thread: connections poll it each time, and it has a lock.
    stop: Vec<watch::Sender<bool>>,
    /// Closed when all connections have ended.
    ended: mpsc::Receiver<()>,
    name_refused: Arc<Notify>,
    /// By thread.
    counts: Vec<Arc<Counts>>,
    upload_window: Arc<AtomicU32>,
    is_closing: Arc<AtomicBool>,
}

/// A stage of a connection: the handshake, the requests, the close. Each has an allocation of its own, so that an idle connection
/// has the memory of its stage, and not that of the largest.
type Stage<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Held by a connection until it ends.
type ConnectionGuard = mpsc::Sender<()>;

impl TcpServer {
    pub(crate) fn start(parts: Parts) -> io::Result<Self> {
        let threads = Threads::start("tcp", parts.threads)?;
        let (alive, ended) = mpsc::channel(1);
        let alt_svc: Option<http::HeaderValue> =
            parts.alt_svc.and_then(|text| text.try_into().ok());
        let next_number = Arc::default();
        let name_refused = Arc::<Notify>::default();
        let upload_window = Arc::new(AtomicU32::new(parts.limits.upload_window));
        let is_closing = Arc::<AtomicBool>::default();
        let stop: Vec<_> = threads
            .handles()
            .iter()
            .map(|_| watch::Sender::new(false))
            .collect();
        let all: Vec<Thread> = threads
            .handles()
            .iter()
            .zip(&stop)
            .enumerate()
            .map(|(thread, (handle, stop))| Thread {
                handle: handle.clone(),
                shared: Arc::new(Shared {
                    thread,
                    sites: parts.sites.clone(),
                    arms: Arc::clone(&parts.arms),
                    acceptor: TlsAcceptor::from(Arc::clone(&parts.tls)),
                    handler: Arc::clone(&parts.handler),
                    access: parts.access.clone(),
                    log: parts.log.clone(),
                    alt_svc: alt_svc.clone(),
                    interim_http1: parts.interim_http1,
                    limits: parts.limits,
                    budget: parts.budget.clone(),
                    window_budget: parts.window_budget.clone(),
                    upload_window: Arc::clone(&upload_window),
                    counts: Arc::new(Counts {
                        times: [0, 1].map(|_| RequestTimes::new(parts.handler.routes().len())),
                        ..Counts::default()
                    }),
                    date: DateField::default(),
                    next_number: Arc::clone(&next_number),
                    name_refused: Arc::clone(&name_refused),
                    stopped: stop.subscribe(),
                    is_closing: Arc::clone(&is_closing),
                }),
            })
            .collect();
        let limits = parts.limits;
        // For all listeners: each connection is a descriptor.
        let admission = Admission::new(limits.connections, limits.connections_per_prefix);
        let has_one_each = parts.listeners.len() == all.len();
        for (listener, thread) in parts.listeners.into_iter().zip(&all) {
            let alive = alive.clone();
            let serving = if has_one_each {
                vec![thread.clone()]
            } else {
                all.clone()
            };
            let serve = move |shared, stream, remote| {
                connection::serve(shared, stream, remote, alive.clone())
            };
            thread
                .handle
                .spawn(accept::accept(listener, serving, admission.clone(), serve));
        }
        if let (Some(listener), Some(thread)) = (parts.plain, all.first()) {
            let port = parts.https_port;
            let challenges = parts.challenges.unwrap_or_default();
            let serve = move |shared: Arc<Shared>, stream, _| {
                plain::serve(stream, shared.limits, port, challenges.clone())
            };
            thread
                .handle
                .spawn(accept::accept(listener, all.clone(), admission, serve));
        }
        Ok(Self {
            threads,
            stop,
            ended,
            name_refused,
            upload_window,
            is_closing,
            counts: all
                .iter()
                .map(|thread| Arc::clone(&thread.shared.counts))
                .collect(),
        })
    }

    /// A runtime for the listener of the metrics.
    pub(crate) fn runtime(&self) -> Option<&Handle> {
        self.threads.handles().first()
    }

    pub(crate) fn counts(&self) -> impl Fn() -> Statistics + Send + Sync + 'static + use<> {
        let counts = self.counts.clone();
        move || sum(&counts)
    }

    /// Times of requests by thread, with the version of HTTP.
    pub(crate) fn times(
        &self,
    ) -> impl Fn() -> Vec<(&'static str, ClassTimes)> + Send + Sync + use<> {
        let counts = self.counts.clone();
        move || {
            let all = counts.iter().flat_map(|counts| {
                let versions = ["1.1", "2"].into_iter().zip(&counts.times);
                versions.flat_map(|(version, times)| {
                    times.read().into_iter().map(move |times| (version, times))
                })
            });
            all.collect()
        }
    }

    /// Waits until a handshake fails because its server name is not a DNS name.
    pub(crate) async fn name_refused(&self) {
        self.name_refused.notified().await;
    }

    /// Replaces [`Limits::upload_window`] for new connections.
    pub(crate) fn set_upload_window(&self, bytes: u32) {
        self.upload_window.store(bytes, Ordering::Relaxed);
    }

    /// Announces the shutdown to clients: GOAWAY, `connection: close`.
    pub(crate) fn begin_shutdown(&self) {
        for stop in &self.stop {
            let _ = stop.send(true);
        }
    }

    /// Waits until all connections have ended, for up to `limit`, and closes those that are left.
    pub(crate) fn finish(self, limit: Duration) -> Statistics {
        self.begin_shutdown();
        let mut ended = self.ended;
        self.threads.end_after(async move {
            let _ = time::timeout(limit, ended.recv()).await;
            self.is_closing.store(true, Ordering::Relaxed);
        });
        sum(&self.counts)
    }
}

fn sum(counts: &[Arc<Counts>]) -> Statistics {
    let mut sum = Statistics::default();
    for counts in counts {
        sum.add(&counts.read());
    }
    sum
}
