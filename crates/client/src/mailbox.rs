//! What other threads have to say to the client: resolvers, and connections over TCP.
//!
//! Owns a queue, and wakes the worker when there is something in it. What is in it is bounded by those who write: an answer
//! for each lookup, and for each exchange what its window permits.

use std::{
    collections::VecDeque,
    net::IpAddr,
    sync::{Mutex, OnceLock, PoisonError},
};

use lastbyte_driver::Remote;
use lastbyte_quic::Time;

use crate::{Family, Service, tcp};

/// Something that another thread says.
pub(crate) enum Event {
    /// A resolver has answered.
    Resolved {
        /// The number of the server.
        server: usize,
        /// The name that was asked for.
        host: String,
        family: Family,
        at: Time,
        found: Result<Vec<IpAddr>, String>,
    },
    /// A DNS server has answered for an HTTPS record, or was not asked.
    Services {
        server: usize,
        at: Time,
        found: Option<Result<Vec<Service>, String>>,
    },
    /// Something happened to a connection over TCP.
    Tcp { connection: usize, what: tcp::Event },
    /// There is more to be sent of an upload.
    Readable,
}

/// A queue that wakes who reads it.
#[derive(Default)]
pub(crate) struct Mailbox {
    events: Mutex<VecDeque<Event>>,
    remote: OnceLock<Remote<()>>,
}

impl Mailbox {
    /// Who is woken.
    pub(crate) fn connect(&self, remote: Remote<()>) {
        // It is connected once.
        let _ = self.remote.set(remote);
    }

    pub(crate) fn post(&self, event: Event) {
        let was_empty = {
            let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
            let was_empty = events.is_empty();
            events.push_back(event);
            was_empty
        };
        if was_empty && let Some(remote) = self.remote.get() {
            // If it has more to listen to than it can hold, it is awake.
            let _ = remote.send(());
        }
    }

    pub(crate) fn take(&self) -> VecDeque<Event> {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        core::mem::take(&mut *events)
    }
}
