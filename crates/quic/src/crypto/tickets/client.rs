//! A client's sessions, stored across processes (RFC 8446 §2.2, §4.6.1; RFC 9000 §7.4.1; RFC 9001 §4.5).
//!
//! Owns sessions as bytes ([`SavedSession`]), the trait of their store ([`SessionStore`]), and their extraction from
//! and restoration into rustls. It accesses no files and never fails a connection: a saved session that cannot be used
//! leads to a full handshake.
//!
//! rustls stores a client's sessions in values that can be neither read nor constructed. But everything in them can be
//! observed: the server's ticket, its transport parameters and its certificates; and the pre-shared key, which rustls
//! derives with the provider's HKDF, is visible to a provider with our HKDF ([`crate::crypto::provider`]).
//!
//! To restore a session, this client completes a handshake in memory with a temporary server that presents the saved
//! certificates and sends no ticket; then it receives the saved `NewSessionTicket`, while our HKDF returns the saved
//! key ([`restore`]). rustls then has a session equal to the original one. This takes some tenths of a millisecond.
//!
//! | module | holds |
//! |---|---|
//! | [`saved`] | a session, and its bytes |
//! | [`store`] | the trait of a store, and one in memory |
//! | [`restore`] | restoring a saved session into rustls |
//! | [`watch`] | saving sessions from received tickets |
//!
//! # Decisions
//!
//! - *Certificates are verified again*: when a session is restored, the server's chain is verified by name and current
//!   time. Only the signature of the in-memory handshake is accepted unchecked, since it has no signer: by a verifier
//!   created for this one connection, which is strict again before any byte is sent. A stapled OCSP response is not
//!   saved, so a verifier that requires one leads to full handshakes.
//! - *One use each* (RFC 8446 §C.4): taking a session removes it from the store. The group of the key exchange is saved
//!   with it, so that the next `ClientHello` has a key share that the server accepts.
//! - *One store*: sessions of this process are handled like those of another, so that there is one code path.
//! - *Tied to the version of rustls*: another version does full handshakes and saves new sessions.
//! - *If the hook observes nothing*, because a future rustls derives keys differently, nothing is saved.

use std::{fmt, sync::Arc};

use lastbyte_wire::packet::Version;
use rustls::{
    ClientConfig,
    client::{Resumption, danger::ServerCertVerifier},
    pki_types::ServerName,
};

use super::clock::WallClock;

mod restore;
mod saved;
mod store;
#[cfg(test)]
mod tests;
mod watch;

pub use saved::{SAVED_MAX, SavedSession, SavedSessionError};
pub use store::{MemorySessions, PER_SERVER_MAX, SessionStore};
pub(in crate::crypto) use watch::SessionWatch;

/// Maximum number of saved sessions tried for one connection.
const TRIES: usize = PER_SERVER_MAX;

/// A client's session handling. Shared by all connections of a configuration.
#[derive(Clone)]
pub struct ClientSessions {
    /// The store.
    pub store: Arc<dyn SessionStore>,
    /// The verifier of servers' certificates, for handshakes and for restored sessions. It replaces the configuration's
    /// own, which rustls does not expose.
    pub verifier: Arc<dyn ServerCertVerifier>,
    /// The clock for ticket ages.
    pub clock: Arc<dyn WallClock>,
}

impl ClientSessions {
    /// The configuration of one connection, with a session to resume if there is one.
    pub(in crate::crypto) fn configure(
        &self,
        config: &ClientConfig,
        name: &ServerName<'static>,
        server: &str,
        version: Version,
    ) -> ClientConfig {
        (0..TRIES)
            .map_while(|_| self.store.take(server, version))
            .find_map(|saved| restore::restore(self, config, name, server, version, &saved))
            .unwrap_or_else(|| {
                let mut config = config.clone();
                config.resumption = Resumption::disabled();
                config
            })
    }
}

impl fmt::Debug for ClientSessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientSessions")
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}
