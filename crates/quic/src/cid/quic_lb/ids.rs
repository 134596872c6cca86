//! A generator of QUIC-LB connection IDs.
//!
//! Owns the nonces of one server ID, for all connections together. It decodes IDs only to recognize its own.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use lastbyte_units::SplitMix64;
use lastbyte_wire::{ConnectionId, StatelessResetToken};

use super::{
    super::{ConnectionIdGenerator, ConnectionIds},
    LOW_BITS, PLAINTEXT_MAX, QuicLb, QuicLbConfig, QuicLbError,
    cipher::Cipher,
};
use crate::{
    crypto::reset::ResetKey,
    random::{Random, Seed},
};

/// Maximum number of workers that octet 0 of an ID can distinguish.
pub const WORKERS_IN_OCTET_MAX: u8 = 32;

/// The IDs of one server, or of one worker on it.
#[derive(Clone, Debug)]
pub struct QuicLbIds {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    layout: QuicLb,
    server_id: Vec<u8>,
    /// The counter of nonces, for all connections together.
    counter: AtomicU64,
    /// The bytes before the counter if a nonce has more than 8 bytes.
    prefix: [u8; PLAINTEXT_MAX],
    /// Encrypts the counter if the layout has no key.
    blind: Cipher,
    /// The worker in octet 0, and the number of workers.
    worker: (u8, u8),
}

impl QuicLbIds {
    /// The IDs of this server ID. `seed` determines the first nonce: it must differ for each start of a server, or
    /// nonces repeat.
    ///
    /// # Errors
    ///
    /// Returns [`QuicLbError`] if the configuration is invalid, or the server ID does not have the configured length.
    pub fn new(config: QuicLbConfig, server_id: &[u8], seed: Seed) -> Result<Self, QuicLbError> {
        Self::for_worker(config, server_id, (0, 1), seed)
    }

    /// The IDs of one of several workers that share a server ID, given as its index and their number, at most
    /// [`WORKERS_IN_OCTET_MAX`]. Octet 0 of its IDs, modulo the number of workers, is its index: of octet 0, the
    /// configuration is fixed, and the rest is random as far as this permits. A socket filter can read it although the
    /// rest of the ID is encrypted. To observers, it reveals the worker of a connection.
    ///
    /// # Errors
    ///
    /// As [`QuicLbIds::new`]; and [`QuicLbError::Worker`] if there are too many workers, no such worker, or several and
    /// octet 0 contains the length.
    pub fn for_worker(
        config: QuicLbConfig,
        server_id: &[u8],
        worker: (u8, u8),
        seed: Seed,
    ) -> Result<Self, QuicLbError> {
        let (index, workers) = worker;
        let is_one = worker == (0, 1);
        let is_possible = index < workers && workers <= WORKERS_IN_OCTET_MAX;
        if !is_one && (!is_possible || config.encodes_length) {
            return Err(QuicLbError::Worker);
        }
        if server_id.len() != config.server_id_len {
            return Err(QuicLbError::ServerId);
        }
        let mut random = Random::new(seed);
        let blind = Cipher::new(&random.bytes()).ok_or(QuicLbError::Key)?;
        Ok(Self {
            shared: Arc::new(Shared {
                layout: QuicLb::new(config)?,
                server_id: server_id.to_vec(),
                counter: AtomicU64::new(random.number()),
                prefix: random.bytes(),
                blind,
                worker,
            }),
        })
    }

    /// The codec, to decode IDs with.
    pub fn layout(&self) -> &QuicLb {
        &self.shared.layout
    }
}

impl Shared {
    fn next(&self, random: u8) -> Option<ConnectionId> {
        let nonce_len = self.layout.config.nonce_len;
        let count = self.counter.fetch_add(1, Ordering::Relaxed);
        let mut bytes = self.prefix;
        *bytes.last_chunk_mut()? = count.to_be_bytes();
        let nonce = bytes.get_mut(PLAINTEXT_MAX - nonce_len..)?;
        if self.layout.cipher.is_none() {
            self.blind.encrypt(nonce)?;
        }
        let octet = self.octet(random);
        self.layout.encode(&self.server_id, nonce, octet)
    }

    /// Low bits for octet 0 that lead to the worker.
    fn octet(&self, random: u8) -> u8 {
        let (worker, workers) = self.worker;
        if workers == 1 {
            return random;
        }
        let high_bits = self.layout.config.rotation << 5;
        let first = (worker + workers - high_bits % workers) % workers;
        let choices = (LOW_BITS - first) / workers + 1;
        first + workers * (random % choices)
    }
}

impl ConnectionIds for QuicLbIds {
    fn id_len(&self) -> usize {
        self.shared.layout.id_len()
    }

    fn generator(
        &self,
        reset_key: &Arc<ResetKey>,
        seed: Seed,
    ) -> Box<dyn ConnectionIdGenerator + Send> {
        let first = seed.first_chunk().copied().unwrap_or_default();
        Box::new(QuicLbGenerator {
            shared: Arc::clone(&self.shared),
            random: SplitMix64::new(u64::from_be_bytes(first)),
            reset_key: Arc::clone(reset_key),
        })
    }

    fn is_own(&self, id: &[u8]) -> bool {
        let shared = &self.shared;
        let (worker, workers) = shared.worker;
        let decoded = shared.layout.decode(id);
        id.first().is_some_and(|octet| octet % workers == worker)
            && decoded.is_some_and(|decoded| decoded.server_id() == shared.server_id)
    }
}

struct QuicLbGenerator {
    shared: Arc<Shared>,
    /// For the low bits of octet 0, which mean nothing: a few bits of each number do not reveal the next.
    random: SplitMix64,
    reset_key: Arc<ResetKey>,
}

impl ConnectionIdGenerator for QuicLbGenerator {
    fn generate(&mut self) -> ConnectionId {
        let random = (self.random.number() >> 56) as u8;
        // The lengths were checked when the codec was created.
        self.shared.next(random).unwrap_or(ConnectionId::EMPTY)
    }

    fn reset_token(&self, id: &ConnectionId) -> StatelessResetToken {
        self.reset_key.token(id)
    }
}
