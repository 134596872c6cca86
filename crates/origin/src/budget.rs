//! Memory for buffered bodies: of clients that read responses slowly, and of handlers that read requests slowly.
//!
//! Counts the buffered bytes, per connection and for the process, and decides whether more are permitted. It holds no
//! data and wakes no task: a channel asks again when it is drained.
//!
//! # How it is used
//!
//! A server creates one [`Budget`], and from it one [`ConnectionBudget`] for each connection, which both channels of an
//! [`exchange`](crate::exchange) use. A handler needs to do nothing: `Outgoing::data` waits while there is no room, and
//! a handler that awaits it before it reads the next piece from elsewhere, such as an upstream server, holds one
//! additional piece.
//!
//! # How much
//!
//! A connection may use [`Limits::connection`], but never more than a sixteenth of the remaining budget of the process: however
//! many connections wait, there is room for one more. An empty channel always accepts one piece of
//! [`PIECE_LEN`](crate::exchange::PIECE_LEN) bytes, so that every body makes progress at least piece by piece.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

#[cfg(test)]
mod tests;

/// The fraction of the remaining bytes that one connection may use.
const PART: usize = 16;

/// Limits on buffered bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// For all connections together. Default: 256 MiB.
    pub process: usize,
    /// For one connection. Default: 1 MiB.
    pub connection: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            process: 256 << 20,
            connection: 1 << 20,
        }
    }
}

/// The budget of the process. Clones share it.
#[derive(Clone, Debug)]
pub struct Budget {
    limits: Limits,
    used: Arc<AtomicUsize>,
}

impl Budget {
    /// A budget with these limits.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            used: Arc::default(),
        }
    }

    /// The budget of a new connection.
    pub fn connection(&self) -> Arc<ConnectionBudget> {
        Arc::new(ConnectionBudget {
            process: self.clone(),
            used: AtomicUsize::new(0),
        })
    }

    /// Bytes buffered.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
}

/// The budget of a connection.
#[derive(Debug)]
pub struct ConnectionBudget {
    process: Budget,
    used: AtomicUsize,
}

impl ConnectionBudget {
    /// Whether more may be buffered.
    pub fn has_room(&self) -> bool {
        let Limits {
            process,
            connection,
        } = self.process.limits;
        let left = process.saturating_sub(self.process.used());
        self.used.load(Ordering::Relaxed) < connection.min(left / PART)
    }

    /// Adds buffered bytes.
    pub fn add(&self, bytes: usize) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
        self.process.used.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Removes bytes that were added before.
    pub fn remove(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        self.process.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}
