//! TLS sessions: none is kept.

use lastbyte_quic::crypto::tickets::client::{SavedSession, SessionStore};
use lastbyte_wire::packet::Version;

/// No session is resumed, so that each connection costs a full handshake.
#[derive(Debug)]
pub(crate) struct NoSessions;

impl SessionStore for NoSessions {
    fn put(&self, _: SavedSession) {}

    fn take(&self, _: &str, _: Version) -> Option<SavedSession> {
        None
    }
}
