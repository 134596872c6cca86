//! Connection IDs that lead load balancers and socket filters to a server, and to a worker on it (QUIC-LB,
//! draft-ietf-quic-load-balancers §3 to §5).
//!
//! Owns: the layout of such an ID, both ways ([`QuicLb`]), and a generator of them ([`QuicLbIds`]). Never: routes.
//!
//! | octets | plaintext |
//! |---|---|
//! | 0 | configuration in use (3 bits), length of the rest or random (5 bits) |
//! | 1 .. 1 + s | server ID; with [`Worker`]s the server's own bytes, and then the worker in one |
//! | .. | nonce |
//!
//! With a key, all but octet 0 is encrypted.
//!
//! # Decisions
//!
//! - *The worker is the last byte of the server ID*, so that a load balancer that knows nothing of workers routes by the
//!   bytes before it, and a filter on a socket group finds it at a fixed place: without a key, it is at byte
//!   1 + (length of the server's own bytes) of the connection ID, and so at that plus 1 in a packet with a short header.
//!   With a key only [`QuicLb::decode`] tells.
//! - *The first packets of a client* name an ID of its own choosing: whichever worker gets them takes them.
//! - *Nonces count*, from a random start, so that none comes twice (§5.4.1). Without a key they would tell which IDs are
//!   of one connection (§5.2): there, the counter goes through the same cipher under a key of the generator's own.
//! - *Octets for the server's own use* (§3.2) there are none.

use std::fmt;

use lastbyte_wire::ConnectionId;

use self::cipher::Cipher;
pub use self::ids::QuicLbIds;

mod cipher;
mod ids;
#[cfg(test)]
mod tests;

/// What load balancers and servers agree on (§3).
#[derive(Clone, PartialEq, Eq)]
pub struct QuicLbConfig {
    /// Which configuration this is, 0 to 6, of those in use at a time (§3.1). 7 means that there is none.
    pub rotation: u8,
    /// How many bytes the server ID has, the worker's among them: 1 to 15.
    pub server_id_len: usize,
    /// How many bytes the nonce has: 4 to 18, and with the server ID 5 to 19.
    pub nonce_len: usize,
    /// The key, if server IDs are to be hidden from others. With a server ID and a nonce of 16 bytes together the cipher
    /// is AES-128 itself; otherwise one of four rounds that resists casual looks only (§5.4).
    pub key: Option<[u8; 16]>,
    /// Whether octet 0 says how long the ID is, for hardware that has to know (§3.1). Otherwise those bits are random.
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

/// A configuration that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuicLbError {
    /// Not 0 to 6.
    Rotation,
    /// A server ID or nonce too short, or both together too long.
    Lengths,
    /// A server ID that is not of the length that was agreed on.
    ServerId,
    /// The cipher refuses the key, which it has no reason to.
    Key,
}

impl fmt::Display for QuicLbError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rotation => "the configuration's number is not 0 to 6",
            Self::Lengths => {
                "the server ID needs 1 byte or more, the nonce 4, and both together have 19 at most"
            }
            Self::ServerId => "the server ID is not as long as was agreed on",
            Self::Key => "the cipher refuses the key",
        })
    }
}

impl std::error::Error for QuicLbError {}

/// The layout, both ways.
#[derive(Debug)]
pub struct QuicLb {
    config: QuicLbConfig,
    cipher: Option<Cipher>,
}

/// What an ID says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded {
    plaintext: [u8; PLAINTEXT_MAX],
    server_id_len: usize,
    len: usize,
}

impl Decoded {
    /// The server ID, with the worker.
    #[must_use]
    pub fn server_id(&self) -> &[u8] {
        self.plaintext.get(..self.server_id_len).unwrap_or_default()
    }

    /// The nonce.
    #[must_use]
    pub fn nonce(&self) -> &[u8] {
        self.plaintext
            .get(self.server_id_len..self.len)
            .unwrap_or_default()
    }

    /// Server and worker, where the server ID was made of them.
    #[must_use]
    pub fn worker(&self) -> Option<Worker<'_>> {
        let (worker, server) = self.server_id().split_last()?;
        Some(Worker {
            server,
            worker: *worker,
        })
    }
}

/// A worker on a server: together, a server ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Worker<'a> {
    /// The server's own bytes.
    pub server: &'a [u8],
    /// Which of its workers.
    pub worker: u8,
}

impl Worker<'_> {
    /// As a server ID.
    #[must_use]
    pub fn server_id(&self) -> Vec<u8> {
        [self.server, &[self.worker]].concat()
    }
}

impl QuicLb {
    /// The layout of a configuration.
    ///
    /// # Errors
    ///
    /// The configuration cannot be.
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

    /// What was agreed on.
    #[must_use]
    pub const fn config(&self) -> &QuicLbConfig {
        &self.config
    }

    /// How many bytes an ID has.
    #[must_use]
    pub const fn id_len(&self) -> usize {
        1 + self.config.server_id_len + self.config.nonce_len
    }

    /// Where in an ID the worker's byte is, if server IDs are made of [`Worker`]s and there is no key.
    #[must_use]
    pub const fn worker_offset(&self) -> usize {
        // Behind octet 0, the last of the server ID.
        self.config.server_id_len
    }

    /// Makes an ID. `random` fills the bits of octet 0 that say nothing. `None` if server ID or nonce are not as long as
    /// was agreed on.
    #[must_use]
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

    /// What an ID says, or what of a packet begins with one; `None` if it is not of this configuration, or too short.
    /// That server and nonce were ever given out, it does not show: IDs that clients choose decode to anything.
    #[must_use]
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

/// The most bytes of server ID and nonce together.
const PLAINTEXT_MAX: usize = ConnectionId::MAX_LEN - 1;
/// The fewest bytes of a nonce.
const NONCE_MIN: usize = 4;
/// Says in octet 0 that an ID leads nowhere (§3.1).
const NO_CONFIGURATION: u8 = 7;
/// The bits of octet 0 that are the length, or random.
const LOW_BITS: u8 = 0x1f;
