//! HTTP/1.1 and 2 over TLS, beside HTTP/3 and with the same handler.
//!
//! Owns: listeners, the threads of the runtime that hyper works on, what one connection may take, and graceful shutdown.
//! Never: touches a QUIC worker, or looks into requests.
//!
//! | module | owns |
//! |---|---|
//! | `lingering` | the close of a socket, such that nothing is lost that was written |
//! | `connection` | one connection: handshake, version, idleness, the end |
//! | `request` | requests into the words of handlers, replies into those of hyper (RFC 9112, RFC 9113) |
//! | `body` | bodies of responses, from sources and from exchanges |
//! | `observed` | what the connection is seen to do, for the connection log |
//! | `pace` | a response over HTTP/2 that its client does not take |
//! | `stalled` | a peer that takes nothing for too long |
//! | `prefixes` | how many connections each address has |
//! | `plain` | the listener that leads from `http` to `https` |

#![expect(
    clippy::disallowed_types,
    reason = "listeners over TCP are handed from here to the runtime"
)]

mod body;
mod connection;
mod lingering;
mod observed;
mod pace;
mod plain;
mod prefixes;
mod request;
mod stalled;

pub(crate) use self::plain::Text;
use self::prefixes::Prefixes;

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    net::{TcpListener, TcpStream},
    runtime,
    sync::{Semaphore, mpsc, watch},
    time,
};
use tokio_rustls::TlsAcceptor;

use super::{access::AccessLog, budget::Budget, handler::Handler, log::LogWriter};

/// How much of anything there may be, over TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at a time; more wait in the system's queue. Default: 10 000.
    pub connections: usize,
    /// Connections at a time of one address (IPv6: of one /64); more are closed. Default: 1000.
    pub connections_per_prefix: usize,
    /// How long a TLS handshake may take. Default: 10 s.
    pub handshake: Duration,
    /// How long the head of a request may take. Over HTTP/1.1 that begins with the end of the one before, so that it is
    /// also how long a connection may have nothing to do. Default: 30 s.
    pub head: Duration,
    /// How long a connection of HTTP/2 may have no request. Default: 60 s.
    pub idle: Duration,
    /// How long a client may take nothing of a response, or send nothing of a request's body that is waited for. Default:
    /// 30 s.
    pub stall: Duration,
    /// How many bytes of a request's body, or of a response over HTTP/2, must move in that time. Default: 3000.
    pub stall_bytes: u64,
    /// The largest head of a request, in bytes. Default: 64 KiB. Beyond: 431, over HTTP/2 too.
    pub head_size: usize,
    /// Requests at a time on a connection of HTTP/2. Default: 128.
    pub streams: u32,
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
        }
    }
}

/// What was counted over TCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Connections accepted.
    pub accepted: u64,
    /// Connections that are there now.
    pub connections: u64,
    /// How often a connection that waited could not be accepted, for instance since too many files are open. It goes on
    /// waiting.
    pub accepts_failed: u64,
    /// Connections closed at once, since their address had as many as it may have.
    pub refused: u64,
    /// Handshakes completed.
    pub handshakes: u64,
    /// Of those, the ones that resumed an earlier connection.
    pub resumed: u64,
    /// Handshakes that failed, or took too long.
    pub handshakes_failed: u64,
    /// Requests over HTTP/1.0 and 1.1.
    pub requests_http1: u64,
    /// Requests over HTTP/2.
    pub requests_http2: u64,
    /// Responses begun, by the first digit of their status.
    pub responses: [u64; 6],
    /// Responses that did not come to their end.
    pub cut_off: u64,
}

/// The same, as it is being counted.
#[derive(Debug, Default)]
struct Counts {
    accepted: AtomicU64,
    closed: AtomicU64,
    accepts_failed: AtomicU64,
    refused: AtomicU64,
    handshakes: AtomicU64,
    resumed: AtomicU64,
    handshakes_failed: AtomicU64,
    requests_http1: AtomicU64,
    requests_http2: AtomicU64,
    responses: [AtomicU64; 6],
    cut_off: AtomicU64,
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
            handshakes_failed: of(&self.handshakes_failed),
            requests_http1: of(&self.requests_http1),
            requests_http2: of(&self.requests_http2),
            responses: self.responses.each_ref().map(of),
            cut_off: of(&self.cut_off),
        }
    }
}

/// What a server over TCP is made of.
pub(crate) struct Parts {
    /// None if neither HTTP/1.1 nor 2 is spoken.
    pub(crate) listener: Option<std::net::TcpListener>,
    /// Where clients in clear text are led to `https` from.
    pub(crate) plain: Option<std::net::TcpListener>,
    /// The port that they are led to.
    pub(crate) https_port: u16,
    pub(crate) threads: usize,
    pub(crate) tls: Arc<rustls::ServerConfig>,
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) access: Option<AccessLog>,
    /// Where the line of each connection goes.
    pub(crate) log: Option<LogWriter>,
    /// The value of `alt-svc`.
    pub(crate) alt_svc: Option<String>,
    pub(crate) limits: Limits,
    /// How much of bodies may wait.
    pub(crate) budget: Budget,
}

/// What all connections share.
struct Shared {
    handler: Arc<dyn Handler>,
    access: Option<AccessLog>,
    log: Option<LogWriter>,
    alt_svc: Option<http::HeaderValue>,
    limits: Limits,
    budget: Budget,
    counts: Arc<Counts>,
}

/// A server over TCP that runs.
#[derive(Debug)]
pub(crate) struct TcpServer {
    runtime: runtime::Runtime,
    stop: watch::Sender<bool>,
    /// Ends when all connections have ended.
    ended: mpsc::Receiver<()>,
    counts: Arc<Counts>,
}

/// Lives as long as a connection does.
type Alive = mpsc::Sender<()>;

impl TcpServer {
    pub(crate) fn start(parts: Parts) -> io::Result<Self> {
        let runtime = runtime::Builder::new_multi_thread()
            .worker_threads(parts.threads.max(1))
            .thread_name("tcp")
            .enable_all()
            .build()?;
        let (stop, stopped) = watch::channel(false);
        let (alive, ended) = mpsc::channel(1);
        let counts = Arc::new(Counts::default());
        let shared = Arc::new(Shared {
            handler: parts.handler,
            access: parts.access,
            log: parts.log,
            alt_svc: parts.alt_svc.and_then(|text| text.try_into().ok()),
            limits: parts.limits,
            budget: parts.budget,
            counts: Arc::clone(&counts),
        });
        let _inside = runtime.enter();
        if let Some(listener) = parts.listener {
            let listener = TcpListener::from_std(listener)?;
            let acceptor = TlsAcceptor::from(parts.tls);
            let (shared, stopped, alive) = (shared, stopped.clone(), alive.clone());
            let limits = parts.limits;
            runtime.spawn(accept(
                listener,
                limits,
                stopped.clone(),
                Arc::clone(&counts),
                move |stream, remote| {
                    let (shared, acceptor) = (Arc::clone(&shared), acceptor.clone());
                    connection::serve(
                        shared,
                        acceptor,
                        stream,
                        remote,
                        stopped.clone(),
                        alive.clone(),
                    )
                },
            ));
        }
        if let Some(listener) = parts.plain {
            let listener = TcpListener::from_std(listener)?;
            let (limits, port) = (parts.limits, parts.https_port);
            runtime.spawn(accept(
                listener,
                limits,
                stopped,
                Arc::clone(&counts),
                move |stream, _| plain::serve(stream, limits, port),
            ));
        }
        Ok(Self {
            runtime,
            stop,
            ended,
            counts,
        })
    }

    /// The threads, for what else is to run on them.
    pub(crate) fn runtime(&self) -> &runtime::Handle {
        self.runtime.handle()
    }

    pub(crate) fn counts(&self) -> impl Fn() -> Statistics + Send + Sync + 'static + use<> {
        let counts = Arc::clone(&self.counts);
        move || counts.read()
    }

    /// Says to clients that this is the end: GOAWAY, `connection: close`.
    pub(crate) fn begin_shutdown(&self) {
        let _ = self.stop.send(true);
    }

    /// Waits until all connections are over, or so long.
    pub(crate) fn finish(mut self, limit: Duration) -> Statistics {
        self.begin_shutdown();
        let ended = self
            .runtime
            .block_on(async { time::timeout(limit, self.ended.recv()).await });
        // What is left is cut off here.
        drop(ended);
        let counts = Arc::clone(&self.counts);
        self.runtime.shutdown_timeout(Duration::from_millis(100));
        counts.read()
    }
}

/// After an error that will pass, such as too many open files, so long until the next try.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Accepts connections up to the limit, until shutdown.
async fn accept<F, S>(
    listener: TcpListener,
    limits: Limits,
    mut stopped: watch::Receiver<bool>,
    counts: Arc<Counts>,
    serve: F,
) where
    F: Fn(TcpStream, SocketAddr) -> S + Send + 'static,
    S: Future<Output = ()> + Send + 'static,
{
    let connections = limits.connections.clamp(1, Semaphore::MAX_PERMITS);
    let room = Arc::new(Semaphore::new(connections));
    let prefixes = Prefixes::new(limits.connections_per_prefix);
    loop {
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else {
            return;
        };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopped.changed() => return,
        };
        match accepted {
            Ok((stream, remote)) => {
                let Some(counted) = prefixes.count(remote.ip()) else {
                    count(&counts.refused);
                    continue;
                };
                let served = serve(stream, remote);
                tokio::spawn(async move {
                    served.await;
                    drop((permit, counted));
                });
            }
            // The client went away again before it was accepted.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(_) => {
                count(&counts.accepts_failed);
                time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}
