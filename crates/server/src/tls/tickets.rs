//! Tickets of TLS over TCP, sealed with keys derived from the same secrets as those over QUIC.
//!
//! Owns sealing and opening; a ticket contains its time of creation, so that none is valid longer than permitted.
//! QUIC's tickets, which permit 0-RTT, are created by `lastbyte_quic`.
//!
//! AES-256-GCM-SIV, so that random nonces on many servers that share a secret are safe (RFC 8452).

use std::{
    fmt,
    sync::{PoisonError, RwLock},
    time::Duration,
};

use aws_lc_rs::{
    aead::{AES_256_GCM_SIV, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    hkdf, rand,
};
use lastbyte_driver::Clock;
use lastbyte_quic::{
    WallTime,
    crypto::tickets::{LIFETIME_MAX, RUSTLS_VERSION, keys::SECRET_LEN},
};
use rustls::server::ProducesTickets;

const KEY_ID_LEN: usize = 4;
const KEY_LEN: usize = 32;
/// The longest ticket that is opened: it may contain a client's certificates.
const TICKET_MAX: usize = 16 << 10;

/// Creates and opens tickets: the first key seals, all open.
pub(super) struct TcpTickets(RwLock<Vec<Key>>);

struct Key {
    id: [u8; KEY_ID_LEN],
    aead: LessSafeKey,
}

/// The secrets of a valid text: one per line, of 64 hexadecimal digits.
pub(super) fn secrets(text: &[u8]) -> Vec<[u8; SECRET_LEN]> {
    let text = String::from_utf8_lossy(text);
    let lines = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default().trim())
        .filter(|line| !line.is_empty());
    let secret = |line: &str| {
        let mut secret = [0; SECRET_LEN];
        for (index, byte) in secret.iter_mut().enumerate() {
            *byte = u8::from_str_radix(line.get(2 * index..2 * index + 2)?, 16).ok()?;
        }
        Some(secret)
    };
    lines.filter_map(secret).collect()
}

impl TcpTickets {
    pub(super) fn new(secrets: &[[u8; SECRET_LEN]]) -> Result<Self, String> {
        let keys: Option<Vec<Key>> = secrets.iter().map(Key::derive).collect();
        let keys = keys.ok_or("unusable ticket key")?;
        Ok(Self(RwLock::new(keys)))
    }

    /// Replaces the keys by those of another.
    pub(super) fn replace(&self, other: Self) {
        let keys = other.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = keys;
    }
}

struct Derived;

impl hkdf::KeyType for Derived {
    fn len(&self) -> usize {
        KEY_LEN + KEY_ID_LEN
    }
}

impl Key {
    fn derive(secret: &[u8; SECRET_LEN]) -> Option<Self> {
        let salt = hkdf::Salt::new(hkdf::HKDF_SHA256, b"lastbyte ticket key over TCP");
        // A ticket contains the library's own encoding of a session: another version has other keys.
        let info = [b"rustls ".as_slice(), RUSTLS_VERSION.as_bytes()];
        let mut derived = [0; KEY_LEN + KEY_ID_LEN];
        salt.extract(secret)
            .expand(&info, Derived)
            .and_then(|okm| okm.fill(&mut derived))
            .ok()?;
        let (key, id) = derived.split_first_chunk::<KEY_LEN>()?;
        Some(Self {
            id: id.try_into().ok()?,
            aead: LessSafeKey::new(UnboundKey::new(&AES_256_GCM_SIV, key).ok()?),
        })
    }
}

impl ProducesTickets for TcpTickets {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        LIFETIME_MAX.as_secs() as u32
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let keys = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let key = keys.first()?;
        let mut nonce = [0; NONCE_LEN];
        rand::fill(&mut nonce).ok()?;
        let now = Clock::wall_time().since_unix_epoch().as_secs();
        let mut content = now.to_be_bytes().to_vec();
        content.extend_from_slice(plain);
        let aad = Aad::from(key.id);
        let unique = Nonce::assume_unique_for_key(nonce);
        key.aead
            .seal_in_place_append_tag(unique, aad, &mut content)
            .ok()?;
        let ticket = [key.id.as_slice(), &nonce, &content].concat();
        (ticket.len() <= TICKET_MAX).then_some(ticket)
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        if ticket.len() > TICKET_MAX {
            return None;
        }
        let (id, rest) = ticket.split_first_chunk::<KEY_ID_LEN>()?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_LEN>()?;
        let keys = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let key = keys.iter().find(|key| key.id == *id)?;
        let mut content = sealed.to_vec();
        let unique = Nonce::assume_unique_for_key(*nonce);
        let opened = key
            .aead
            .open_in_place(unique, Aad::from(*id), &mut content)
            .ok()?;
        let (made, plain) = opened.split_first_chunk::<8>()?;
        let made = WallTime::from_unix(Duration::from_secs(u64::from_be_bytes(*made)));
        (Clock::wall_time().since(made) <= LIFETIME_MAX).then(|| plain.to_vec())
    }
}

impl fmt::Debug for TcpTickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TcpTickets").finish_non_exhaustive()
    }
}
