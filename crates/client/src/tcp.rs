//! HTTP/1.1 and HTTP/2 over TCP. All connections run in one thread with a tokio runtime.
//!
//! Each connection receives commands through a channel and reports events through the mailbox. The client decides which
//! requests are sent.
//!
//! | module | responsibility |
//! |---|---|
//! | `connect` | a connection: addresses, TLS, version of HTTP |
//! | `exchange` | a request and its response |
//! | `outgoing` | the body of a request |
//!
//! The data queued between the threads is bounded: [`WINDOW_LEN`] bytes of each response body. Each byte returns to the
//! window when the client has processed it.

mod connect;
mod exchange;
mod outgoing;
mod received;

pub(crate) use self::connect::tls_failure;
pub use self::{exchange::is_unprocessed, received::Received};

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

/// The most bytes of a response body that are queued between the threads.
pub(crate) const WINDOW_LEN: usize = 1 << 20;
/// The largest response head over HTTP/1.1, in bytes.
const HEAD_LEN_MAX: usize = 400 << 10;
/// The time for which connections may close gracefully.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(250);

/// An event of a connection.
pub(crate) enum Event {
    /// The TCP connection is established. TLS follows.
    Connected { at: Time },
    /// The connection accepts requests.
    Open { at: Time, handshake: Handshake },
    /// The connection could not be established.
    Failed(Failure),
    /// An interim response.
    Interim { exchange: u64, head: OwnedHead },
    /// The head of the response.
    Head {
        exchange: u64,
        at: Time,
        head: OwnedHead,
    },
    /// A part of the body.
    Body { exchange: u64, bytes: Bytes },
    /// Trailers.
    Trailers { exchange: u64, fields: Fields },
    /// The response is complete.
    End { exchange: u64, at: Time },
    /// The exchange has failed.
    ExchangeFailed { exchange: u64, why: ExchangeError },
    /// The connection has ended.
    Closed { why: String },
}

/// The head of a response, as sent between the threads.
pub(crate) struct OwnedHead {
    pub(crate) version: Version,
    pub(crate) response: Response,
    pub(crate) reason: String,
}

/// Why an exchange failed.
#[derive(Debug)]
pub(crate) enum ExchangeError {
    /// The request was not sent, or the server did not process it.
    NotProcessed(String),
    /// The connection ended without a response.
    Empty,
    /// The response is not valid HTTP.
    Protocol(String),
    /// The upload cannot be read.
    Upload,
    /// The request is invalid.
    Request(String),
    /// Any other failure of the connection or the server.
    Other(String),
}

/// The parameters of a connection.
pub(crate) struct ConnectPlan {
    pub(crate) addresses: Vec<SocketAddr>,
    /// The delay before the next address is tried.
    pub(crate) attempt_delay: Duration,
    /// The time limit for connecting, including TLS.
    pub(crate) timeout: Duration,
    pub(crate) host: String,
    /// `None` without TLS.
    pub(crate) tls: Option<Arc<rustls::ClientConfig>>,
    /// Whether to use HTTP/2 with prior knowledge.
    pub(crate) is_http2: bool,
}

/// The command to send a request.
pub(crate) struct Command {
    pub(crate) exchange: u64,
    pub(crate) request: Request,
    pub(crate) content: Content,
    /// Counts the bytes of the body sent.
    pub(crate) sent: Arc<AtomicU64>,
    /// The bytes of the response body that may be queued.
    pub(crate) window: Arc<Semaphore>,
    /// Resolves when the request is cancelled.
    pub(crate) cancelled: oneshot::Receiver<()>,
}

/// The body of a request.
pub(crate) enum Content {
    Empty,
    Source(Arc<dyn Source + Sync>),
    Stream(mpsc::Receiver<io::Result<Bytes>>),
}

/// The thread of all TCP connections.
pub(crate) struct TcpThread {
    runtime: runtime::Handle,
    /// Each connection holds a clone, so that the thread can wait until all have ended.
    alive: Option<mpsc::Sender<()>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    clock: Clock,
}

impl TcpThread {
    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// Returns the system's error if no thread or file descriptor is available.
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
                    // Resolves when the sender is dropped.
                    let _ = stopped.await;
                    // Nothing is ever sent. `recv` returns when all connections have dropped their senders.
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

    /// Opens a connection. Commands that are sent before it is open wait.
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
            // The thread has ended, even if it panicked.
            let _ = thread.join();
        }
    }
}
