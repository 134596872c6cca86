//! The store of a client's sessions.
//!
//! Owns the trait, and a bounded store in memory. A store in files is implemented by the application.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

use lastbyte_wire::packet::Version;

use super::SavedSession;

#[cfg(test)]
mod tests;

/// Maximum number of sessions per server. Servers issue about two with each handshake.
pub const PER_SERVER_MAX: usize = 4;

/// Stores sessions by the server's name and the QUIC version. The name alone identifies a server: one name on several
/// ports counts as one server, as it does for certificates.
///
/// Called during handshakes, so it should return quickly.
pub trait SessionStore: fmt::Debug + Send + Sync {
    /// Stores a session for [`SavedSession::server`] and [`SavedSession::version`]. The store must bound the number of
    /// sessions per server, as servers decide how many they issue.
    fn put(&self, session: SavedSession);

    /// Removes and returns a session, preferably the newest: it must never be returned again (RFC 8446 §C.4).
    fn take(&self, server: &str, version: Version) -> Option<SavedSession>;
}

/// A store in memory: the newest [`PER_SERVER_MAX`] sessions of each server, for the most recent servers.
pub struct MemorySessions {
    servers_max: usize,
    state: Mutex<State>,
}

/// By name and version.
type Key = (String, u32);

#[derive(Default)]
struct State {
    /// The number of sessions stored so far.
    count: u64,
    servers: BTreeMap<Key, Server>,
}

#[derive(Default)]
struct Server {
    /// The number of its last session.
    last: u64,
    /// The newest is last.
    sessions: VecDeque<SavedSession>,
}

impl MemorySessions {
    /// A store for this many servers, at least one. Default: 256.
    #[must_use]
    pub fn new(servers_max: usize) -> Self {
        Self {
            servers_max: servers_max.max(1),
            state: Mutex::default(),
        }
    }

    /// Removes all sessions, the oldest of each server first, for example to save them; [`SessionStore::put`] in the
    /// same order restores them.
    pub fn take_all(&self) -> Vec<SavedSession> {
        let servers = std::mem::take(&mut self.state().servers);
        let sessions = servers.into_values().flat_map(|server| server.sessions);
        sessions.collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for MemorySessions {
    fn default() -> Self {
        Self::new(256)
    }
}

impl SessionStore for MemorySessions {
    fn put(&self, session: SavedSession) {
        let mut state = self.state();
        state.count += 1;
        let last = state.count;
        let key = (session.server.clone(), session.version.number().get());
        if !state.servers.contains_key(&key) && state.servers.len() >= self.servers_max {
            let servers = state.servers.iter();
            let oldest = servers.min_by_key(|(_, server)| server.last);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                state.servers.remove(&oldest);
            }
        }
        let server = state.servers.entry(key).or_default();
        server.last = last;
        if server.sessions.len() >= PER_SERVER_MAX {
            server.sessions.pop_front();
        }
        server.sessions.push_back(session);
    }

    fn take(&self, server: &str, version: Version) -> Option<SavedSession> {
        let mut state = self.state();
        let key = (server.to_owned(), version.number().get());
        let sessions = &mut state.servers.get_mut(&key)?.sessions;
        let session = sessions.pop_back();
        if sessions.is_empty() {
            state.servers.remove(&key);
        }
        session
    }
}

impl fmt::Debug for MemorySessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemorySessions")
            .field("servers_max", &self.servers_max)
            .field("servers", &self.state().servers.len())
            .finish_non_exhaustive()
    }
}
