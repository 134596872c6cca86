//! The TLS sessions of a thread. All its connections go to one server, so there is one list.

use core::fmt;
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rustls::{
    NamedGroup,
    client::{ClientSessionStore, Resumption, Tls12ClientSessionValue, Tls13ClientSessionValue},
    pki_types::ServerName,
};

use crate::mix::Handshake;

/// Sessions that are kept for each connection of a thread. Servers usually issue two with each handshake.
const PER_CONNECTION_MAX: usize = 2;
/// The most sessions that a thread keeps, whatever the number of its connections.
const SESSIONS_MAX: usize = 10_000;

/// The sessions of a thread: the newest ones, up to a limit. A session of TLS 1.3 is used once (RFC 8446 §C.4).
#[derive(Clone)]
pub(crate) struct Sessions {
    max: usize,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// Sessions of TLS 1.3, the newest last.
    tls13: VecDeque<Tls13ClientSessionValue>,
    /// The session of TLS 1.2, which can be used again and again.
    tls12: Option<Tls12ClientSessionValue>,
    /// The group of the last key exchange, so that the next `ClientHello` has a key share that the server accepts.
    group: Option<NamedGroup>,
}

impl Sessions {
    /// For a thread with this number of connections.
    pub(crate) fn new(connections: usize) -> Self {
        let max = connections.saturating_mul(PER_CONNECTION_MAX);
        Self {
            max: max.clamp(1, SESSIONS_MAX),
            state: Arc::default(),
        }
    }

    /// What rustls needs for a connection with this handshake. A full handshake resumes no session, and its tickets are kept
    /// for others.
    pub(crate) fn resumption(&self, handshake: Handshake) -> Resumption {
        Resumption::store(Arc::new(Store {
            sessions: self.clone(),
            is_resuming: handshake != Handshake::Full,
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep<T>(max: usize, sessions: &mut VecDeque<T>, session: T) {
        if sessions.len() >= max {
            sessions.pop_front();
        }
        sessions.push_back(session);
    }
}

/// The store of one TLS configuration.
struct Store {
    sessions: Sessions,
    /// Whether sessions are given out.
    is_resuming: bool,
}

impl ClientSessionStore for Store {
    fn set_kx_hint(&self, _: ServerName<'static>, group: NamedGroup) {
        self.sessions.state().group = Some(group);
    }

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        self.sessions.state().group
    }

    fn set_tls12_session(&self, _: ServerName<'static>, session: Tls12ClientSessionValue) {
        self.sessions.state().tls12 = Some(session);
    }

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        let state = self.sessions.state();
        state.tls12.clone().filter(|_| self.is_resuming)
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {
        self.sessions.state().tls12 = None;
    }

    fn insert_tls13_ticket(&self, _: ServerName<'static>, session: Tls13ClientSessionValue) {
        Sessions::keep(self.sessions.max, &mut self.sessions.state().tls13, session);
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.is_resuming
            .then(|| self.sessions.state().tls13.pop_back())
            .flatten()
    }
}

/// Sessions are secret.
impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("is_resuming", &self.is_resuming)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that issues many tickets costs a bounded number of sessions, and the newest are kept.
    #[test]
    fn the_newest_sessions_are_kept_up_to_the_limit() {
        for (connections, expected) in [(0, 1), (3, 6), (1_000_000, SESSIONS_MAX)] {
            let max = Sessions::new(connections).max;
            assert_eq!(max, expected);
            let mut kept = VecDeque::new();
            for number in 0..max + 5 {
                Sessions::keep(max, &mut kept, number);
            }
            assert_eq!(kept.len(), max);
            assert_eq!((kept.front(), kept.back()), (Some(&5), Some(&(max + 4))));
        }
    }
}
