//! Where the generators of connections come from, and the simplest of them.
//!
//! Owns: [`ConnectionIds`], what an endpoint has one of and each connection gets a generator from; [`RandomIds`]. Never:
//! knows which IDs are in use (RFC 9000 §5.1).

use std::{fmt, sync::Arc};

use lastbyte_wire::{ConnectionId, StatelessResetToken};

use super::ConnectionIdGenerator;
use crate::{
    crypto::reset::ResetKey,
    random::{Random, Seed},
};

#[cfg(test)]
mod tests;

/// The connection IDs of one endpoint: gives each of its connections a generator.
pub trait ConnectionIds: fmt::Debug + Send {
    /// How many bytes each ID has, 0 to 20: always the same, as short headers do not say (RFC 9000 §5.2).
    fn id_len(&self) -> usize;

    /// A generator for one connection. No two make the same ID. `reset_key` is what reset tokens are made with, and all
    /// that is random comes from `seed`.
    fn generator(
        &self,
        reset_key: &Arc<ResetKey>,
        seed: Seed,
    ) -> Box<dyn ConnectionIdGenerator + Send>;

    /// Whether this endpoint may have made an ID. False means that the packet belongs to another worker or server: the
    /// endpoint must not disown it with a stateless reset. What says nothing is our own.
    fn is_own(&self, _id: &[u8]) -> bool {
        true
    }
}

/// IDs of random bytes, which carry no information.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RandomIds {
    len: usize,
}

impl RandomIds {
    /// IDs of this many bytes; `None` for more than 20. Fewer than 4 count as 0: IDs so short would soon come
    /// twice. Only a client can do without (RFC 9000 §5.1).
    #[must_use]
    pub const fn new(len: usize) -> Option<Self> {
        match len {
            0..4 => Some(Self { len: 0 }),
            4..=ConnectionId::MAX_LEN => Some(Self { len }),
            _ => None,
        }
    }

    /// Empty IDs, for clients: their connections are distinguished by addresses alone.
    #[must_use]
    pub const fn empty() -> Self {
        Self { len: 0 }
    }
}

impl Default for RandomIds {
    /// 8 bytes: among 10^5 of them, two are the same once in 10^9 endpoints.
    fn default() -> Self {
        Self { len: 8 }
    }
}

impl ConnectionIds for RandomIds {
    fn id_len(&self) -> usize {
        self.len
    }

    fn generator(
        &self,
        reset_key: &Arc<ResetKey>,
        seed: Seed,
    ) -> Box<dyn ConnectionIdGenerator + Send> {
        Box::new(RandomGenerator {
            len: self.len,
            random: Random::new(seed),
            reset_key: Arc::clone(reset_key),
        })
    }
}

struct RandomGenerator {
    len: usize,
    random: Random,
    reset_key: Arc<ResetKey>,
}

impl ConnectionIdGenerator for RandomGenerator {
    fn generate(&mut self) -> ConnectionId {
        let bytes: [u8; ConnectionId::MAX_LEN] = self.random.bytes();
        let id = bytes.get(..self.len).and_then(ConnectionId::new);
        id.unwrap_or(ConnectionId::EMPTY)
    }

    fn reset_token(&self, id: &ConnectionId) -> StatelessResetToken {
        self.reset_key.token(id)
    }
}
