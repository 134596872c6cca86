//! Memory for buffered bodies: of clients that read responses slowly, and of handlers that read requests slowly.
//!
//! Counts the buffered bytes, per connection and for the process, and decides whether more are permitted. It holds no data
//! and wakes no task: a channel asks again when it is drained.
//!
//! # How it is used
//!
//! A server makes one [`Budget`], and of it one [`ConnectionBudget`] for each connection. Both channels of an
//! [`exchange`](crate::exchange) are made with that of their connection. A handler needs to do nothing: `Outgoing::data`
//! waits while there is no room, and a handler that awaits it before it reads the next piece from elsewhere, such as an
//! upstream server, holds one piece besides.
//!
//! # How much
//!
//! A connection may use [`Limits::connection`], but never more than a sixteenth of what the process has left: however
//! many connections wait, one more finds room. A channel that is empty always takes one piece of
//! [`PIECE_LEN`](crate::exchange::PIECE_LEN) bytes, whatever is left, so that every body moves at least piece by piece.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// Which part of what is left one connection may use.
const PART: usize = 16;

/// How many bytes may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// For all connections together. Default: 256 MiB.
    pub process: usize,
    /// For one. Default: 1 MiB.
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

/// What the process has. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    limits: Limits,
    used: Arc<AtomicUsize>,
}

impl Budget {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            used: Arc::default(),
        }
    }

    /// The part of a new connection.
    pub(crate) fn connection(&self) -> Arc<ConnectionBudget> {
        Arc::new(ConnectionBudget {
            process: self.clone(),
            used: AtomicUsize::new(0),
        })
    }

    /// How many bytes wait.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
}

/// What one connection has.
#[derive(Debug)]
pub(crate) struct ConnectionBudget {
    process: Budget,
    used: AtomicUsize,
}

impl ConnectionBudget {
    /// Whether more may wait.
    pub(crate) fn has_room(&self) -> bool {
        let Limits {
            process,
            connection,
        } = self.process.limits;
        let left = process.saturating_sub(self.process.used());
        self.used.load(Ordering::Relaxed) < connection.min(left / PART)
    }

    /// Adds waiting bytes.
    pub(crate) fn add(&self, bytes: usize) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
        self.process.used.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Removes bytes that were added before.
    pub(crate) fn remove(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        self.process.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_has_its_limit_and_a_part_of_what_is_left() {
        let budget = Budget::new(Limits {
            process: 1600,
            connection: 60,
        });
        let one = budget.connection();
        one.add(59);
        assert!(one.has_room());
        one.add(1);
        assert!(!one.has_room(), "its own limit");
        let many: Vec<_> = (0..200)
            .map(|_| {
                let connection = budget.connection();
                while connection.has_room() {
                    connection.add(1);
                }
                connection
            })
            .collect();
        assert!(budget.used() < 1600, "{}", budget.used());
        assert!(budget.used() > 1500, "{}", budget.used());
        for connection in many {
            connection.remove(connection.used.load(Ordering::Relaxed));
        }
        one.remove(60);
        assert_eq!(budget.used(), 0);
    }
}
