//! A client's sessions, from one process to the next (RFC 8446 §2.2, §4.6.1; RFC 9000 §7.4.1; RFC 9001 §4.5).
//!
//! Owns: sessions as bytes ([`SavedSession`]), the trait by which they are kept ([`SessionStore`]), and how rustls is made
//! to give them out and take them back. Never: reads or writes a file, or fails a connection: whatever is wrong with a
//! saved session leads to a full handshake.
//!
//! rustls keeps a client's sessions in values that can be neither read nor built. Yet all that they hold passes by: the
//! server's ticket, its transport parameters and its certificates. All but the pre-shared key, which rustls derives by the
//! provider's HKDF, and a provider whose HKDF is ours sees that ([`crate::crypto::provider`]).
//!
//! To restore a session, this client speaks, in memory, with a server that lives for that only, shows the saved
//! certificates, and sends no ticket; then it is given the saved `NewSessionTicket`, while our HKDF answers with the saved
//! key ([`restore`]). rustls itself then holds a session equal to the lost one. That takes some tenths of a millisecond.
//!
//! | module | holds |
//! |---|---|
//! | [`saved`] | a session, and its bytes |
//! | [`store`] | where sessions are kept; one in memory |
//! | [`restore`] | from a saved session to one of rustls' |
//! | [`watch`] | from tickets that arrive to saved sessions |
//!
//! # Decisions
//!
//! - *Certificates are held to the rules of today*: when a session is restored, the server's chain is verified once more,
//!   by name and time. Only the signature of the handshake is taken for good, since nobody is there to sign: by a verifier
//!   that is made for this one connection, and strict again before a byte of it is sent. A stapled OCSP response is not
//!   saved, so a verifier that insists on one leads to full handshakes.
//! - *One use each* (RFC 8446 §C.4): to take a session out of the store is to use it up. With it goes the group of the key
//!   exchange, so that the next `ClientHello` brings a share that the server takes.
//! - *All through one store*: sessions of this process go the same way as those of another, so that there is one way.
//! - *Tied to the version of rustls*, and nothing lost by it: another version makes full handshakes, and new sessions.
//! - *If the hook sees nothing*, because rustls derives keys in another way one day, nothing is saved.

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

/// How many saved sessions are tried for one connection.
const TRIES: usize = PER_SERVER_MAX;

/// How a client keeps its sessions. One for all connections of a configuration.
#[derive(Clone)]
pub struct ClientSessions {
    /// Where they are kept.
    pub store: Arc<dyn SessionStore>,
    /// What servers' certificates are verified by, now and when a session is restored. It takes the place of the
    /// configuration's own, which rustls does not show.
    pub verifier: Arc<dyn ServerCertVerifier>,
    /// What tickets are aged by.
    pub clock: Arc<dyn WallClock>,
}

impl ClientSessions {
    /// The configuration for one connection, with a session to resume if there is one.
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
