//! Generators of connection IDs.
//!
//! Owns: [`ConnectionIds`], of which an endpoint has one, and from which each connection gets a generator;
//! [`RandomIds`]. It does not know which IDs are in use (RFC 9000 §5.1).

use std::{fmt, sync::Arc};

use lastbyte_wire::{ConnectionId, StatelessResetToken};

use super::ConnectionIdGenerator;
use crate::{
    crypto::reset::ResetKey,
    random::{Random, Seed},
};

#[cfg(test)]
mod tests;

/// The connection IDs of one endpoint: creates a generator for each of its connections.
pub trait ConnectionIds: fmt::Debug + Send {
    /// The length of each ID, 0 to 20 bytes: constant, as short headers do not contain it (RFC 9000 §5.2).
    fn id_len(&self) -> usize;

    /// Creates a generator for one connection. No two produce the same ID. `reset_key` is the key of reset tokens, and
    /// all randomness comes from `seed`.
    fn generator(
        &self,
        reset_key: &Arc<ResetKey>,
        seed: Seed,
    ) -> Box<dyn ConnectionIdGenerator + Send>;

    /// Whether this endpoint may have issued an ID. False means that the packet belongs to another worker or server:
    /// the endpoint must not answer it with a stateless reset. IDs without information are considered our own.
    fn is_own(&self, _id: &[u8]) -> bool {
        true
    }
}

/// IDs of random bytes, which carry no information.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RandomIds {
    pub(crate) len: usize,
}

impl Default for RandomIds {
    /// 8 bytes: among 10^5 of them, two are equal in one of 10^9 endpoints.
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
