//! Stateless resets (RFC 9000 §10.3).

use super::first_byte::{FIXED_BIT, HEADER_FORM};
use crate::StatelessResetToken;

#[cfg(test)]
mod tests;

/// The shortest stateless reset: 5 bytes that look like a short header, and the token (RFC 9000 §10.3).
pub const STATELESS_RESET_LEN_MIN: usize = 5 + StatelessResetToken::LEN;

/// A datagram by which an endpoint that lost its state ends a connection (RFC 9000 §10.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatelessReset {
    /// What tells it from a packet.
    pub token: StatelessResetToken,
}

impl StatelessReset {
    /// What the datagram would be, if it were a stateless reset: the token is to be compared with those that the peer
    /// gave. `None` if it is too short. Long headers may be stateless resets too (RFC 9000 §10.3.1).
    #[must_use]
    pub fn decode(datagram: &[u8]) -> Option<Self> {
        if datagram.len() < STATELESS_RESET_LEN_MIN {
            return None;
        }
        datagram.last_chunk().map(|token| Self {
            token: StatelessResetToken::new(*token),
        })
    }

    /// Makes a stateless reset of a datagram of random bytes; `None` if it is too short. The caller chooses the length:
    /// less than that of the packet that it answers (RFC 9000 §10.3.3).
    #[must_use]
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
