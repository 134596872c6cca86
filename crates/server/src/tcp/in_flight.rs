//! A connection as its requests see it, and the number of requests in flight.

use std::{
    fmt,
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use lastbyte_driver::Clock;
use lastbyte_http3::{Allowance, Limits, Priority, Response};

use super::{
    Shared,
    interim::Interim,
    observed::Observation,
    turns::{Turn, Turns},
};
use crate::budget::ConnectionBudget;

/// State shared by the requests of a connection.
pub(super) struct Connection {
    pub(super) shared: Arc<Shared>,
    pub(super) remote: SocketAddr,
    /// Its number, in the logs.
    pub(super) number: u64,
    /// The hash of the server's configuration when it was accepted.
    pub(super) config_hash: Option<Arc<str>>,
    pub(super) observation: Option<Arc<Observation>>,
    /// The limit on its buffered bytes of bodies.
    pub(super) budget: Arc<ConnectionBudget>,
    pub(super) clock: Clock,
    /// Over HTTP/2.
    pub(super) body_read: Counter,
    /// Over HTTP/2.
    pub(super) turns: Option<Arc<Turns>>,
    /// Over HTTP/1.1, if interim responses are sent.
    pub(super) interim: Option<Arc<Interim>>,
    started: AtomicUsize,
    in_flight: AtomicUsize,
    /// Requests that the client may cancel: as many as over HTTP/3.
    cancels: Mutex<Allowance>,
    has_cancelled_too_many: AtomicBool,
    /// Whether its client took nothing for too long, so that it is closed.
    has_stalled: Arc<AtomicBool>,
    /// Over HTTP/1.1: whether its client left in the middle of a request.
    has_left: AtomicBool,
}

/// Bytes of request bodies that were read on a connection. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Counter(Arc<AtomicU64>);

impl Counter {
    pub(super) fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Connection {
    pub(super) fn new(
        shared: &Arc<Shared>,
        (remote, number): (SocketAddr, u64),
        config_hash: Option<Arc<str>>,
        observation: Option<Arc<Observation>>,
        turns: Option<Arc<Turns>>,
        has_stalled: Arc<AtomicBool>,
    ) -> Arc<Self> {
        Arc::new(Self {
            shared: Arc::clone(shared),
            remote,
            number,
            config_hash,
            observation,
            budget: shared.budget.connection(),
            clock: Clock::new(),
            body_read: Counter::default(),
            interim: (shared.interim_http1 && turns.is_none()).then(Arc::default),
            turns,
            started: AtomicUsize::new(0),
            in_flight: AtomicUsize::new(0),
            cancels: Mutex::new(Allowance::new(Limits::default().resets)),
            has_cancelled_too_many: AtomicBool::new(false),
            has_stalled,
            has_left: AtomicBool::new(false),
        })
    }

    /// A request with this priority starts.
    pub(super) fn begin(self: &Arc<Self>, priority: impl FnOnce() -> Priority) -> InFlight {
        self.started.fetch_add(1, Ordering::Relaxed);
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        InFlight {
            connection: Arc::clone(self),
            turn: self
                .turns
                .as_ref()
                .and_then(|turns| turns.begin(priority())),
        }
    }

    /// The number of requests so far.
    pub(super) fn started(&self) -> usize {
        self.started.load(Ordering::Relaxed)
    }

    /// A response ended: it was answered, or the client cancelled it ("rapid reset", RFC 9113 §10.5).
    pub(super) fn on_end(&self, is_cancelled: bool) {
        let mut cancels = self.cancels.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_cancelled {
            cancels.give(1);
        } else if !cancels.take(1, self.clock.now()) {
            self.has_cancelled_too_many.store(true, Ordering::Relaxed);
        }
    }

    /// Ready once the client cancelled more requests than it may. Wakes no task.
    pub(super) fn poll_cancelled_too_many(&self) -> Poll<()> {
        if self.has_cancelled_too_many.load(Ordering::Relaxed) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    /// Whether the server closes it before its responses are complete: by a limit, or at the end of a shutdown.
    pub(super) fn is_ended_by_server(&self) -> bool {
        let is_closing = self.shared.is_closing.load(Ordering::Relaxed);
        is_closing || self.has_stalled.load(Ordering::Relaxed)
    }

    /// The body of a request over HTTP/1.1 broke off, or is invalid: the client does not wait for a response.
    pub(super) fn on_left(&self) {
        self.has_left.store(true, Ordering::Relaxed);
    }

    pub(super) fn has_left(&self) -> bool {
        self.has_left.load(Ordering::Relaxed)
    }

    /// Whether no request is in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.in_flight.load(Ordering::Relaxed) == 0
    }
}

/// A request, in flight until this is dropped.
#[derive(Debug)]
pub(super) struct InFlight {
    pub(super) connection: Arc<Connection>,
    turn: Option<Turn>,
}

impl InFlight {
    /// Its response has a header.
    pub(super) fn on_head(&mut self, response: &Response) {
        if let (Some(turns), Some(turn)) = (&self.connection.turns, &mut self.turn) {
            turns.prioritise(turn, response.priority(turn.priority()));
        }
    }

    /// Waits until a piece of the response may be sent. `len` is the number of bytes that are there, with the piece.
    pub(super) fn poll_turn(
        &self,
        context: &mut Context<'_>,
        (piece, len): (usize, u64),
    ) -> Poll<()> {
        match (&self.connection.turns, self.turn) {
            (Some(turns), Some(turn)) => turns.poll_take(context, turn, (piece, len)),
            _ => Poll::Ready(()),
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if let (Some(turns), Some(turn)) = (&self.connection.turns, self.turn) {
            turns.end(turn);
        }
        self.connection.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("remote", &self.remote)
            .finish_non_exhaustive()
    }
}
