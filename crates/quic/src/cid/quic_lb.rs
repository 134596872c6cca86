//! Routable connection IDs: load balancers and socket filters find the server, and the worker on it, in the ID
//! (QUIC-LB, draft-ietf-quic-load-balancers §3 to §5).
//!
//! Owns encoding and decoding of such IDs ([`QuicLb`]), and a generator of them ([`QuicLbIds`]). Routing is done
//! elsewhere.
//!
//! | octets | plaintext |
//! |---|---|
//! | 0 | configuration in use (3 bits), length of the rest or random (5 bits) |
//! | 1 .. 1 + s | server ID, which may end with one byte for the worker |
//! | .. | nonce |
//!
//! With a key, all but octet 0 is encrypted.
//!
//! # Decisions
//!
//! - *The worker is the last byte of the server ID*, so that a load balancer that does not know of workers routes by
//!   the bytes before it, and a filter on a socket group finds it at a fixed offset: without a key, it is at byte 1 +
//!   (length of the server's own bytes) of the connection ID, and at that plus 1 in a packet with a short header. With
//!   a key, only [`QuicLb::decode`] can find it.
//! - *Or the worker is in the low bits of octet 0* ([`QuicLbIds::for_worker`]), which are never encrypted and otherwise
//!   random, so that a filter finds it in encrypted IDs, too.
//! - *The first packets of a client* have an ID that the client chose: any worker that receives them accepts them.
//! - *Nonces count*, from a random start, so that none repeats (§5.4.1). Without a key they would reveal which IDs
//!   belong to one connection (§5.2): in that case the counter is encrypted with the same cipher under a private key of
//!   the generator.
//! - *Octets for the server's own use* (§3.2) are not used.

use std::fmt;

use lastbyte_wire::ConnectionId;

use self::cipher::Cipher;
pub use self::ids::{QuicLbIds, WORKERS_IN_OCTET_MAX};

mod cipher;
mod ids;
#[cfg(test)]
mod tests;

/// The configuration shared by load balancers and servers (§3).
#[derive(Clone, PartialEq, Eq)]
pub struct QuicLbConfig {
    /// The configuration's ID, 0 to 6 (§3.1). 7 means none.
    pub rotation: u8,
    /// Length of the server ID in bytes, including the worker's: 1 to 15.
    pub server_id_len: usize,
    /// Length of the nonce in bytes: 4 to 18; together with the server ID 5 to 19.
    pub nonce_len: usize,
    /// The key, if server IDs are encrypted. With a server ID and a nonce of 16 bytes together the cipher is AES-128
    /// itself; otherwise one of four rounds that resists only casual observers (§5.4).
    pub key: Option<[u8; 16]>,
    /// Whether octet 0 contains the length of the ID, for hardware that needs it (§3.1). Otherwise those bits are
    /// random.
    pub encodes_length: bool,
}

impl fmt::Debug for QuicLbConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuicLbConfig")
            .field("rotation", &self.rotation)
            .field("server_id_len", &self.server_id_len)
            .field("nonce_len", &self.nonce_len)
            .field("has_key", &self.key.is_some())
            .field("encodes_length", &self.encodes_length)
            .finish()
    }
}

/// Why a configuration is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuicLbError {
    /// Not 0 to 6.
    #[error("invalid configuration ID (expected 0 to 6)")]
    Rotation,
    /// A server ID or nonce is too short, or both together are too long.
    #[error(
        "invalid lengths (expected 1 byte or more for the server ID, 4 or more for the nonce, at most 19 together)"
    )]
    Lengths,
    /// A server ID does not have the configured length.
    #[error("the server ID does not have the configured length")]
    ServerId,
    /// The cipher rejected the key, which does not happen.
    #[error("the cipher rejected the key")]
    Key,
    /// Octet 0 cannot distinguish this worker from the others.
    #[error(
        "too many workers for octet 0 of connection IDs (expected 32 at most, or 1 if it contains the length)"
    )]
    Worker,
}

/// Encodes and decodes IDs.
#[derive(Debug)]
pub struct QuicLb {
    config: QuicLbConfig,
    cipher: Option<Cipher>,
}

/// The content of an ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded {
    plaintext: [u8; PLAINTEXT_MAX],
    server_id_len: usize,
    len: usize,
}

impl Decoded {
    /// The server ID, including the worker.
    pub fn server_id(&self) -> &[u8] {
        self.plaintext.get(..self.server_id_len).unwrap_or_default()
    }
}

impl QuicLb {
    /// The codec of a configuration.
    ///
    /// # Errors
    ///
    /// Returns [`QuicLbError`] if the configuration is invalid.
    pub fn new(config: QuicLbConfig) -> Result<Self, QuicLbError> {
        if config.rotation >= NO_CONFIGURATION {
            return Err(QuicLbError::Rotation);
        }
        let is_possible = config.server_id_len >= 1
            && (NONCE_MIN..=PLAINTEXT_MAX).contains(&config.nonce_len)
            && config.server_id_len <= PLAINTEXT_MAX - config.nonce_len;
        if !is_possible {
            return Err(QuicLbError::Lengths);
        }
        let cipher = match &config.key {
            Some(key) => Some(Cipher::new(key).ok_or(QuicLbError::Key)?),
            None => None,
        };
        Ok(Self { config, cipher })
    }

    /// The length of an ID in bytes.
    pub const fn id_len(&self) -> usize {
        1 + self.config.server_id_len + self.config.nonce_len
    }

    /// Encodes an ID. `random` fills the unused bits of octet 0. `None` if server ID or nonce do not have the
    /// configured length.
    pub fn encode(&self, server_id: &[u8], nonce: &[u8], random: u8) -> Option<ConnectionId> {
        if server_id.len() != self.config.server_id_len || nonce.len() != self.config.nonce_len {
            return None;
        }
        let len = self.id_len();
        let mut bytes = [0; ConnectionId::MAX_LEN];
        let id = bytes.get_mut(..len)?;
        let (first, plaintext) = id.split_first_mut()?;
        let low_bits = if self.config.encodes_length {
            (len - 1) as u8
        } else {
            random
        };
        *first = self.config.rotation << 5 | low_bits & LOW_BITS;
        plaintext
            .get_mut(..server_id.len())?
            .copy_from_slice(server_id);
        plaintext.get_mut(server_id.len()..)?.copy_from_slice(nonce);
        if let Some(cipher) = &self.cipher {
            cipher.encrypt(plaintext)?;
        }
        ConnectionId::new(id)
    }

    /// Decodes an ID, or the start of a packet that begins with one; `None` if it is of another configuration, or too
    /// short. This does not prove that the server issued it: IDs that clients choose decode to arbitrary values.
    pub fn decode(&self, id: &[u8]) -> Option<Decoded> {
        let len = self.id_len() - 1;
        let (first, rest) = id.split_first()?;
        if first >> 5 != self.config.rotation {
            return None;
        }
        if self.config.encodes_length && usize::from(first & LOW_BITS) != len {
            return None;
        }
        let mut decoded = Decoded {
            plaintext: [0; PLAINTEXT_MAX],
            server_id_len: self.config.server_id_len,
            len,
        };
        let plaintext = decoded.plaintext.get_mut(..len)?;
        plaintext.copy_from_slice(rest.get(..len)?);
        if let Some(cipher) = &self.cipher {
            cipher.decrypt(plaintext)?;
        }
        Some(decoded)
    }
}

/// Maximum length of server ID and nonce together.
const PLAINTEXT_MAX: usize = ConnectionId::MAX_LEN - 1;
/// Minimum length of a nonce.
const NONCE_MIN: usize = 4;
/// The value of octet 0 for IDs that are not routable (§3.1).
const NO_CONFIGURATION: u8 = 7;
/// The bits of octet 0 that hold the length, or random bits.
const LOW_BITS: u8 = 0x1f;
