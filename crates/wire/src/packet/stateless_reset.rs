//! Stateless resets (RFC 9000 §10.3).

use super::first_byte::{FIXED_BIT, HEADER_FORM};
use crate::StatelessResetToken;

#[cfg(test)]
mod tests;

/// The minimum length in bytes of a stateless reset: 5 bytes that look like a short header, and the token (RFC 9000
/// §10.3).
pub const STATELESS_RESET_LEN_MIN: usize = 5 + StatelessResetToken::LEN;

/// A datagram by which an endpoint without connection state terminates a connection (RFC 9000 §10.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatelessReset {
    /// The token that distinguishes it from other packets.
    pub token: StatelessResetToken,
}

impl StatelessReset {
    /// Interprets the datagram as a stateless reset. The caller must compare the token with those received from the
    /// peer. Returns `None` if the datagram is too short. Datagrams that start with a long header can be stateless
    /// resets too (RFC 9000 §10.3.1).
    pub fn decode(datagram: &[u8]) -> Option<Self> {
        if datagram.len() < STATELESS_RESET_LEN_MIN {
            return None;
        }
        datagram.last_chunk().map(|token| Self {
            token: StatelessResetToken::new(*token),
        })
    }

    /// Turns a datagram of random bytes into a stateless reset. Returns `None` if it is too short. The datagram must be
    /// shorter than the packet that triggered it (RFC 9000 §10.3.3).
    pub fn encode(&self, random: &mut [u8]) -> Option<()> {
        if random.len() < STATELESS_RESET_LEN_MIN {
            return None;
        }
        let first_byte = random.first_mut()?;
        *first_byte = *first_byte & !HEADER_FORM | FIXED_BIT;
        *random.last_chunk_mut()? = *self.token.as_bytes();
        Some(())
    }
}
