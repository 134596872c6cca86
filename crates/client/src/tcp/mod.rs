//! HTTP/1.1 and HTTP/2 over TCP: connections, in a thread of their own with an asynchronous runtime.
//!
//! Owns the thread, and what is said to it and by it. What happens is told by the mailbox; what is asked for goes by a
//! channel for each connection. Never: decides what is asked for, or when.
//!
//! | module | owns |
//! |---|---|
//! | `dial` | a connection: addresses in turn, TLS, which version of HTTP |
//! | `tunnel` | a way through a proxy |
//! | `exchange` | a request and its response |
//! | `outgoing` | the body of a request |
//!
//! What waits between the two threads is bounded: of each body as much as its window permits ([`WINDOW_LEN`]), which grows
//! again when the body was handed on.

mod connect;
mod exchange;
mod outgoing;
mod tunnel;

use core::{net::SocketAddr, time::Duration};
use std::{
    io,
    sync::{Arc, atomic::AtomicU64},
    thread::{self, JoinHandle},
};

use bytes::Bytes;
use lastbyte_driver::Clock;
use lastbyte_http3::{Fields, Request, Response};
use lastbyte_quic::{Time, stream::Source};
use tokio::{
    runtime,
    sync::{Semaphore, mpsc, oneshot},
    task::AbortHandle,
};

use crate::{failure::Failure, head::Version, listener::Handshake, mailbox::Sender};

/// How many bytes of a body may be between the threads.
pub(crate) const WINDOW_LEN: usize = 1 << 20;
/// The largest response head over HTTP/1.1, in bytes.
const HEAD_LEN_MAX: usize = 400 << 10;
/// How long connections may take to close.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(250);

/// What happens to a connection.
pub(crate) enum Event {
    /// TCP is connected, TLS comes.
    Connected { at: Time },
    /// Requests can be made.
    Open { at: Time, handshake: Handshake },
    /// It came to nothing.
    Failed(Failure),
    /// An interim response.
    Interim { exchange: u64, head: OwnedHead },
    /// The head of the response.
    Head {
        exchange: u64,
        at: Time,
        head: OwnedHead,
    },
    /// Part of the body.
    Body { exchange: u64, bytes: Bytes },
    /// Trailers.
    Trailers { exchange: u64, fields: Fields },
    /// The response is there as a whole.
    End { exchange: u64, at: Time },
    /// It is not, and will not be.
    ExchangeFailed { exchange: u64, why: ExchangeError },
    /// The connection is over.
    Closed { why: String },
}

/// A head that is on its way.
pub(crate) struct OwnedHead {
    pub(crate) version: Version,
    pub(crate) response: Response,
    pub(crate) reason: String,
}

/// Why a response will not come, or not come to its end.
#[derive(Debug)]
pub(crate) enum ExchangeError {
    /// The request was not sent, or the server says that it did not process it.
    NotProcessed(String),
    /// The connection ended without any of the response.
    Empty,
    /// What comes is not HTTP.
    Protocol(String),
    /// What was to be sent cannot be read.
    Upload,
    /// The request is none that can be sent.
    Request(String),
    /// The way, or the server, failed.
    Other(String),
}

/// Where and how to connect.
pub(crate) struct ConnectPlan {
    pub(crate) addresses: Vec<SocketAddr>,
    /// After how long without an answer the next address is tried.
    pub(crate) attempt_delay: Duration,
    /// How long all of it may take, TLS included.
    pub(crate) timeout: Duration,
    pub(crate) host: String,
    /// `None` for clear text.
    pub(crate) tls: Option<Arc<rustls::ClientConfig>>,
    /// HTTP/2 is spoken without asking.
    pub(crate) is_http2: bool,
    /// The addresses are those of a proxy.
    pub(crate) proxy: Option<ProxyRoute>,
}

/// How a proxy is used.
#[derive(Clone, Debug)]
pub(crate) struct ProxyRoute {
    /// Who we are to it.
    pub(crate) authorization: Option<String>,
    /// Whom it is to connect to (RFC 9110 §9.3.6); `None` where it is asked for what the server is to be asked for.
    pub(crate) tunnel: Option<String>,
}

/// A request that is asked for.
pub(crate) struct Command {
    pub(crate) exchange: u64,
    pub(crate) request: Request,
    pub(crate) content: Content,
    /// How many bytes were sent of it.
    pub(crate) sent: Arc<AtomicU64>,
    /// How much of the response's body may come.
    pub(crate) window: Arc<Semaphore>,
    /// Resolved when nobody wants the response any more.
    pub(crate) cancelled: oneshot::Receiver<()>,
}

/// What is sent with a request.
pub(crate) enum Content {
    Empty,
    Source(Arc<dyn Source + Sync>),
    Stream(mpsc::Receiver<io::Result<Bytes>>),
}

/// The thread.
pub(crate) struct TcpThread {
    runtime: runtime::Handle,
    /// Everyone who is at work holds one.
    alive: Option<mpsc::Sender<()>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    clock: Clock,
}

impl TcpThread {
    /// # Errors
    ///
    /// There are no threads or file descriptors left.
    pub(crate) fn start(clock: Clock) -> io::Result<Self> {
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let (alive, mut all) = mpsc::channel::<()>(1);
        let thread = thread::Builder::new()
            .name("tcp".to_owned())
            .spawn(move || {
                runtime.block_on(async move {
                    // Told, or forgotten: both end it.
                    let _ = stopped.await;
                    // Nothing is ever sent; it ends when nobody is left who could.
                    let _ = tokio::time::timeout(CLOSE_TIMEOUT, all.recv()).await;
                });
            })?;
        Ok(Self {
            runtime: handle,
            alive: Some(alive),
            stop: Some(stop),
            thread: Some(thread),
            clock,
        })
    }

    /// Begins a connection. Requests that are sent too early wait for it.
    pub(crate) fn connect(
        &self,
        plan: ConnectPlan,
        events: Sender<Event>,
    ) -> (mpsc::UnboundedSender<Command>, AbortHandle) {
        let (sender, commands) = mpsc::unbounded_channel();
        let alive = self.alive.clone();
        let clock = self.clock;
        let work = async move {
            connect::run(plan, commands, events, clock).await;
            drop(alive);
        };
        (sender, self.runtime.spawn(work).abort_handle())
    }
}

impl Drop for TcpThread {
    fn drop(&mut self) {
        self.alive = None;
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // It panicked, or not: it is over.
            let _ = thread.join();
        }
    }
}
