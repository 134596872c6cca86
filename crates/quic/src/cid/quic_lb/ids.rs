//! A generator of QUIC-LB connection IDs.
//!
//! Owns the nonces of one server ID, for all connections together. It decodes IDs only to recognize its own.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use lastbyte_wire::{ConnectionId, StatelessResetToken};

use super::{
    super::{ConnectionIdGenerator, ConnectionIds},
    PLAINTEXT_MAX, QuicLb, QuicLbConfig, QuicLbError,
    cipher::Cipher,
};
use crate::{
    crypto::reset::ResetKey,
    random::{Random, Seed},
};

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
}

impl QuicLbIds {
    /// The IDs of this server ID. `seed` determines the first nonce: it must differ for each start of a server, or
    /// nonces repeat.
    ///
    /// # Errors
    ///
    /// Returns [`QuicLbError`] if the configuration is invalid, or the server ID does not have the configured length.
    pub fn new(config: QuicLbConfig, server_id: &[u8], seed: Seed) -> Result<Self, QuicLbError> {
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
            }),
        })
    }

    /// The codec, to decode IDs with.
    #[must_use]
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
        self.layout.encode(&self.server_id, nonce, random)
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
        Box::new(QuicLbGenerator {
            shared: Arc::clone(&self.shared),
            random: Random::new(seed),
            reset_key: Arc::clone(reset_key),
        })
    }

    fn is_own(&self, id: &[u8]) -> bool {
        let decoded = self.shared.layout.decode(id);
        decoded.is_some_and(|decoded| decoded.server_id() == self.shared.server_id)
    }
}

struct QuicLbGenerator {
    shared: Arc<Shared>,
    random: Random,
    reset_key: Arc<ResetKey>,
}

impl ConnectionIdGenerator for QuicLbGenerator {
    fn generate(&mut self) -> ConnectionId {
        let [random] = self.random.bytes();
        // The lengths were checked when the codec was created.
        self.shared.next(random).unwrap_or(ConnectionId::EMPTY)
    }

    fn reset_token(&self, id: &ConnectionId) -> StatelessResetToken {
        self.reset_key.token(id)
    }
}
