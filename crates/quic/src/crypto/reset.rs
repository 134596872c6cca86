//! Stateless reset tokens (RFC 9000 §10.3.2).
//!
//! Owns the function that derives a token from a connection ID, so that a server that has lost a connection's state can
//! still reset it. It neither stores tokens nor sends resets.
//!
//! Decision: HMAC-SHA256 truncated to 16 bytes, with a key of its own. All servers that may receive each other's
//! packets need the same key, and a connection ID must never be used twice with it: a token is known to the peer
//! (§10.3.2).

use std::fmt;

use aws_lc_rs::hmac;
use lastbyte_wire::{ConnectionId, StatelessResetToken};

#[cfg(test)]
mod tests;

/// The key from which stateless reset tokens are derived.
pub struct ResetKey(hmac::Key);

impl ResetKey {
    /// Its length in bytes.
    pub const LEN: usize = 32;

    /// A key with these bytes: random, secret, and not used elsewhere.
    #[must_use]
    pub fn new(key: &[u8; Self::LEN]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, key))
    }

    /// The token of a connection ID that we issued.
    pub fn token(&self, connection_id: &ConnectionId) -> StatelessResetToken {
        let tag = hmac::sign(&self.0, connection_id.as_slice());
        // 32 bytes contain 16.
        let token = tag.as_ref().first_chunk().copied().unwrap_or_default();
        StatelessResetToken::new(token)
    }
}

impl fmt::Debug for ResetKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResetKey(..)")
    }
}
