//! The keys that seal tickets, shared by all servers that accept each other's tickets (RFC 8446 §4.6.1, RFC 5077 §4).
//!
//! Owns keys and their identities, sealing and opening, and the format of the shared file ([`TicketKeys::parse`]). It
//! reads no file, draws no nonce, and does not know the content of a ticket.
//!
//! # Layout
//!
//! | bytes | |
//! |---|---|
//! | 4 | identity of the key |
//! | 12 | nonce |
//! | n | sealed, with the key's identity authenticated too |
//! | 16 | tag |
//!
//! # Decisions
//!
//! - *AES-256-GCM-SIV*: nonces are random and many servers share a key. A repeated nonce reveals only whether two
//!   tickets are equal, whereas with AES-GCM it would compromise the key, and 2^32 tickets would be the limit.
//! - *Key and identity are derived from the secret, the layout, and the version of the TLS library* (HKDF-SHA256, RFC
//!   5869). A ticket contains the library's own encoding of a session, which may differ between versions. Servers of
//!   two versions therefore do not accept each other's tickets, which costs full handshakes while a fleet is updated,
//!   and nothing else.
//! - *A key is only a secret*: there is no name or number to be kept in sync between servers.

use std::{fmt, slice};

use aws_lc_rs::{
    aead::{AES_256_GCM_SIV, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    hkdf,
};

use super::RUSTLS_VERSION;
use crate::crypto::TAG_LEN;

mod file;
#[cfg(test)]
mod tests;

pub use file::{KeyFileError, KeyFileErrorKind};

/// The length of a secret, in bytes.
pub const SECRET_LEN: usize = 32;
/// Maximum number of keys: with a new one each day, a week of them and as many again.
pub const KEYS_MAX: usize = 16;
/// The longest ticket that is opened or created, in bytes. It may contain a client's certificates.
pub const TICKET_MAX: usize = 16 * 1024;
/// The overhead of a ticket, in bytes.
pub const OVERHEAD: usize = KEY_ID_LEN + NONCE_LEN + TAG_LEN;

const KEY_ID_LEN: usize = 4;
const KEY_LEN: usize = 32;
/// Changes with every change of the content of tickets.
const LAYOUT: &[u8] = b"1";

/// The valid keys: the first seals, all open.
pub struct TicketKeys {
    /// The newest.
    first: TicketKey,
    /// Older ones: at most [`KEYS_MAX`] together with the newest.
    others: Vec<TicketKey>,
}

/// A key and its identity.
struct TicketKey {
    id: [u8; KEY_ID_LEN],
    aead: LessSafeKey,
}

/// There are more than [`KEYS_MAX`] keys, or none, or the AEAD rejects one, which does not happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("between 1 and {KEYS_MAX} ticket keys are needed")]
pub struct UnfitKeys;

impl TicketKeys {
    /// The keys derived from these secrets, the newest first. Secrets are random, and not used elsewhere.
    ///
    /// # Errors
    ///
    /// Returns [`UnfitKeys`] if there are none or too many.
    pub fn new(secrets: &[[u8; SECRET_LEN]]) -> Result<Self, UnfitKeys> {
        Self::of_version(secrets, RUSTLS_VERSION)
    }

    /// As [`Self::new`], for this version of the TLS library.
    fn of_version(secrets: &[[u8; SECRET_LEN]], version: &str) -> Result<Self, UnfitKeys> {
        let (first, others) = secrets.split_first().ok_or(UnfitKeys)?;
        if others.len() >= KEYS_MAX {
            return Err(UnfitKeys);
        }
        let derive = |secret| TicketKey::derive(secret, version).ok_or(UnfitKeys);
        Ok(Self {
            first: derive(first)?,
            others: others.iter().map(derive).collect::<Result<_, _>>()?,
        })
    }

    /// Parses the keys of a shared file: a secret of 64 hexadecimal digits a line, the newest first. A `#` starts a
    /// comment, which ends with its line; empty lines are ignored.
    ///
    /// To rotate keys without losing a ticket: append a new secret *last* on all servers; once all have read it, move
    /// it to the first line; remove an old one when its tickets have expired.
    ///
    /// # Errors
    ///
    /// Returns [`KeyFileError`] if a line is not a secret, a secret is repeated, or there are none or too many.
    pub fn parse(text: &[u8]) -> Result<Self, KeyFileError> {
        let secrets = file::secrets(text)?;
        Self::new(&secrets).map_err(|UnfitKeys| KeyFileError::of_count(secrets.len()))
    }

    /// Creates a ticket with the first key and a random nonce. `None` if it would be too long.
    pub(super) fn seal(&self, nonce: [u8; NONCE_LEN], content: &[u8]) -> Option<Vec<u8>> {
        let len = content.len() + OVERHEAD;
        if len > TICKET_MAX {
            return None;
        }
        let mut ticket = Vec::with_capacity(len);
        ticket.extend_from_slice(&self.first.id);
        ticket.extend_from_slice(&nonce);
        ticket.extend_from_slice(content);
        let sealed = ticket.get_mut(KEY_ID_LEN + NONCE_LEN..)?;
        let tag = self
            .first
            .aead
            .seal_in_place_separate_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(self.first.id),
                sealed,
            )
            .ok()?;
        ticket.extend_from_slice(tag.as_ref());
        Some(ticket)
    }

    /// The content of a ticket that was sealed with one of the keys.
    pub(super) fn open(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        if ticket.len() > TICKET_MAX {
            return None;
        }
        let (id, rest) = ticket.split_first_chunk::<KEY_ID_LEN>()?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_LEN>()?;
        self.all().filter(|key| key.id == *id).find_map(|key| {
            let nonce = Nonce::assume_unique_for_key(*nonce);
            let mut content = sealed.to_vec();
            let len = key
                .aead
                .open_in_place(nonce, Aad::from(key.id), &mut content)
                .ok()?
                .len();
            content.truncate(len);
            Some(content)
        })
    }

    /// Whether all keys of `others` are known here.
    pub(super) fn hold_all_of(&self, others: &Self) -> bool {
        let is_held = |other: &TicketKey| self.all().any(|key| key.id == other.id);
        others.all().all(is_held)
    }

    fn all(&self) -> impl Iterator<Item = &TicketKey> {
        slice::from_ref(&self.first).iter().chain(&self.others)
    }
}

impl fmt::Debug for TicketKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.all()).finish()
    }
}

/// Key and identity, derived by HKDF.
struct Derived;

impl hkdf::KeyType for Derived {
    fn len(&self) -> usize {
        KEY_LEN + KEY_ID_LEN
    }
}

impl TicketKey {
    fn derive(secret: &[u8; SECRET_LEN], version: &str) -> Option<Self> {
        let salt = hkdf::Salt::new(hkdf::HKDF_SHA256, b"lastbyte ticket key");
        let info = [LAYOUT, b" rustls ", version.as_bytes()];
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

impl fmt::Debug for TicketKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TicketKey({:08x}, ..)", u32::from_be_bytes(self.id))
    }
}
