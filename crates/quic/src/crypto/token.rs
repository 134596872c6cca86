//! Address validation tokens (RFC 9000 §8.1).
//!
//! Owns the tokens of Retry packets and of `NEW_TOKEN` frames, sealed so that only servers with the key can create or
//! read them, and the valid keys. Time and nonces are arguments. It does not record which tokens were used, nor decide
//! which bytes of an address count: for a Retry token address and port (§8.1.2), for a later connection the address
//! alone (§8.1.3).
//!
//! # Layout
//!
//! | bytes | |
//! |---|---|
//! | 4 | key, by its identity |
//! | 12 | nonce |
//! | | sealed, with the key's identity authenticated too: |
//! | 1 | kind: 1 Retry, 2 `NEW_TOKEN`, 3 `NEW_TOKEN` with a saved path |
//! | 8 | when it was issued, in milliseconds since the Unix epoch |
//! | 1 + n | address |
//! | 2 + n | of Retry only: original destination and retry source connection ID, each after its length |
//! | 8 + 8 + 8 | of a saved path only: window in bytes, RTT in microseconds (RFC 9959 §3.1), identity of the connection |
//! | 16 | tag |
//!
//! # Decisions
//!
//! - *AES-256-GCM-SIV*, since nonces are random and many servers share a key: a repeated nonce reveals only whether two
//!   tokens are equal.
//! - *The kind is encrypted*, so that both look alike to observers, and a token of one kind is not accepted as the
//!   other (§8.1.1).
//! - *A token from the future* is accepted up to [`CLOCK_SKEW`], as servers' clocks differ.

use std::{fmt, time::Duration};

use aws_lc_rs::{
    aead::{AES_256_GCM_SIV, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    hkdf,
};
use lastbyte_congestion::SavedPath;
use lastbyte_wire::{BufferFull, ConnectionId, Reader, UnexpectedEnd, Writer};

use super::TAG_LEN;
use crate::WallTime;

#[cfg(test)]
mod tests;

/// Maximum size of an address in bytes: 16 of IPv6 and 2 of the port.
pub const ADDRESS_MAX: usize = 18;
/// The overhead of a token besides kind, time and fields.
pub const OVERHEAD: usize = KEY_ID_LEN + NONCE_LEN + TAG_LEN;
/// The longest token: a longer one is invalid.
pub const TOKEN_MAX: usize = OVERHEAD + 1 + 8 + 1 + ADDRESS_MAX + 2 * (1 + ConnectionId::MAX_LEN);
/// Maximum lead of another server's clock.
pub const CLOCK_SKEW: Duration = Duration::from_secs(10);

const KEY_ID_LEN: usize = 4;

/// The content of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// The kind of packet it was sent in, with the fields of that kind.
    pub kind: TokenKind,
    /// When it was issued, in whole milliseconds.
    pub issued: WallTime,
    /// What congestion control measured of the path (RFC 9959). Only in [`TokenKind::NewToken`].
    pub path: Option<TokenPath>,
}

/// What congestion control measured of a path, in a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenPath {
    /// The measurement.
    pub saved: SavedPath,
    /// The identity of the connection that measured it, random: all its tokens have the same, and one of them is used in total
    /// (RFC 9959 §3.2).
    pub connection: u64,
}

/// The kind of packet that a token was sent in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// In a Retry packet (RFC 9000 §8.1.2).
    Retry {
        /// The destination connection ID of the client's first Initial packet: the server must return it in its
        /// transport parameters (RFC 9000 §7.3).
        original_destination: ConnectionId,
        /// The source connection ID of the Retry packet, to be returned likewise.
        retry_source: ConnectionId,
    },
    /// In a `NEW_TOKEN` frame, for a later connection (RFC 9000 §8.1.3).
    NewToken,
}

/// Token lifetimes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetimes {
    /// Of Retry tokens: a few round trips (RFC 9000 §8.1.3). Default: 15 seconds.
    pub retry: Duration,
    /// Of `NEW_TOKEN` tokens. Default: 7 days.
    pub new_token: Duration,
    /// Of the saved path in a `NEW_TOKEN` token: after it, the token only validates the address. RFC 9959 §4.3.1 suggests minutes
    /// to hours. Default: 1 hour.
    pub path: Duration,
}

impl Default for Lifetimes {
    fn default() -> Self {
        Self {
            retry: Duration::from_secs(15),
            new_token: Duration::from_secs(7 * 24 * 60 * 60),
            path: Duration::from_secs(60 * 60),
        }
    }
}

/// The values that a token is checked against: the sender and the time.
#[derive(Clone, Copy, Debug)]
pub struct Claim<'a> {
    /// The client's address for each kind of token; `None` if a load balancer has checked it.
    pub address: Option<Address<'a>>,
    /// The current time.
    pub now: WallTime,
    /// Token lifetimes.
    pub lifetimes: Lifetimes,
}

/// A client's address, in bytes chosen by the caller, at most [`ADDRESS_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address<'a> {
    /// What Retry tokens are bound to: address and port.
    pub for_retry: &'a [u8],
    /// What `NEW_TOKEN` tokens are bound to: the address.
    pub for_new_token: &'a [u8],
}

impl<'a> Address<'a> {
    const fn of(self, kind: &TokenKind) -> &'a [u8] {
        match kind {
            TokenKind::Retry { .. } => self.for_retry,
            TokenKind::NewToken => self.for_new_token,
        }
    }
}

/// Why a token is rejected.
///
/// A client with a Retry token that is [`Self::Expired`], or of another address, may be closed with `INVALID_TOKEN`;
/// all other tokens are ignored, since they may be another server's (RFC 9000 §8.1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// It is too short, too long, or has invalid content.
    #[error("the token is malformed")]
    Malformed,
    /// It was not sealed with a known key. It may never have been ours.
    #[error("the token was sealed with an unknown key")]
    UnknownKey,
    /// It names a known key, but was not sealed with it.
    #[error("the token was not sealed with the key it names")]
    Forged,
    /// It is of this kind, and has expired.
    #[error("the token has expired")]
    Expired(TokenKind),
    /// It is of this kind, and was issued in the future.
    #[error("the token was issued in the future")]
    NotYetValid(TokenKind),
    /// It is of this kind, and was sent to another address.
    #[error("the token was sent to another address")]
    OtherAddress(TokenKind),
}

/// A token cannot be created: the address is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the address of the token is too long")]
pub struct TokenTooLong;

/// A key that seals tokens, and its identity.
pub struct TokenKey {
    id: [u8; KEY_ID_LEN],
    key: LessSafeKey,
}

impl TokenKey {
    /// The length of a key in bytes.
    pub const LEN: usize = 32;

    /// A key with these bytes: random, secret, and not used elsewhere. No two keys in use may have the same identity.
    /// `None` if the AEAD rejects it, which does not happen.
    pub fn new(id: u32, key: &[u8; Self::LEN]) -> Option<Self> {
        Some(Self {
            id: id.to_be_bytes(),
            key: LessSafeKey::new(UnboundKey::new(&AES_256_GCM_SIV, key).ok()?),
        })
    }

    /// Key and identity derived from a secret (HKDF-SHA256, RFC 5869). The label separates them from everything else
    /// that is derived from the same secret.
    fn derive(secret: &[u8; TokenKeys::SECRET_LEN]) -> Option<Self> {
        let salt = hkdf::Salt::new(hkdf::HKDF_SHA256, b"lastbyte address validation token");
        let mut derived = [0; Self::LEN + KEY_ID_LEN];
        salt.extract(secret)
            .expand(&[], Derived)
            .and_then(|okm| okm.fill(&mut derived))
            .ok()?;
        let (key, id) = derived.split_first_chunk::<{ Self::LEN }>()?;
        Self::new(u32::from_be_bytes(id.try_into().ok()?), key)
    }
}

/// Key and identity, derived by HKDF.
struct Derived;

impl hkdf::KeyType for Derived {
    fn len(&self) -> usize {
        TokenKey::LEN + KEY_ID_LEN
    }
}

/// The valid keys: the first seals, all open.
#[derive(Debug)]
pub struct TokenKeys {
    /// The newest.
    first: TokenKey,
    /// Older ones.
    others: Vec<TokenKey>,
}

impl TokenKeys {
    /// The keys derived from these secrets, the newest first, such as the secrets of ticket keys: servers that share
    /// those accept each other's tokens, and a server accepts its own after a restart. Secrets are random. `None` if
    /// there is no secret.
    pub fn derive(secrets: &[[u8; Self::SECRET_LEN]]) -> Option<Self> {
        let (first, others) = secrets.split_first()?;
        Some(Self {
            first: TokenKey::derive(first)?,
            others: others.iter().map(TokenKey::derive).collect::<Option<_>>()?,
        })
    }

    /// The length of a secret in bytes.
    pub const SECRET_LEN: usize = 32;

    /// Creates a token. `address` is what this kind of token is bound to; `nonce` is random.
    ///
    /// # Errors
    ///
    /// Returns [`TokenTooLong`] if the address is too long.
    pub fn seal(
        &self,
        token: &Token,
        address: &[u8],
        nonce: [u8; NONCE_LEN],
    ) -> Result<Vec<u8>, TokenTooLong> {
        if address.len() > ADDRESS_MAX {
            return Err(TokenTooLong);
        }
        let mut buffer = [0; TOKEN_MAX];
        let mut writer = Writer::new(&mut buffer);
        encode(token, address, &mut writer).map_err(|_| TokenTooLong)?;
        let sealed_nonce = Nonce::assume_unique_for_key(nonce);
        let tag = self
            .first
            .key
            .seal_in_place_separate_tag(
                sealed_nonce,
                Aad::from(self.first.id),
                writer.written_mut(),
            )
            .map_err(|_| TokenTooLong)?;
        Ok([
            &self.first.id[..],
            &nonce[..],
            writer.written(),
            tag.as_ref(),
        ]
        .concat())
    }

    /// Opens a token, and checks it against its sender and the time.
    ///
    /// # Errors
    ///
    /// Returns [`TokenError`] if it is not a token of ours, or not valid for this client now.
    pub fn open(&self, token: &[u8], claim: &Claim<'_>) -> Result<Token, TokenError> {
        let (id, rest) = token.split_first_chunk().ok_or(TokenError::Malformed)?;
        let (nonce, sealed) = rest.split_first_chunk().ok_or(TokenError::Malformed)?;
        let key = [&self.first]
            .into_iter()
            .chain(&self.others)
            .find(|key| key.id == *id)
            .ok_or(TokenError::UnknownKey)?;
        let mut buffer = [0; TOKEN_MAX];
        let sealed_copy = buffer.get_mut(..sealed.len());
        let sealed_copy = sealed_copy.ok_or(TokenError::Malformed)?;
        sealed_copy.copy_from_slice(sealed);
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let opened = key
            .key
            .open_in_place(nonce, Aad::from(key.id), sealed_copy)
            .map_err(|_| TokenError::Forged)?;
        let (token, address) = decode(opened)?;
        let kind = token.kind;
        if claim.address.is_some_and(|of| of.of(&kind) != address) {
            return Err(TokenError::OtherAddress(kind));
        }
        if token.issued > claim.now + CLOCK_SKEW {
            return Err(TokenError::NotYetValid(kind));
        }
        let lifetime = match kind {
            TokenKind::Retry { .. } => claim.lifetimes.retry,
            TokenKind::NewToken => claim.lifetimes.new_token,
        };
        if claim.now.since(token.issued) > lifetime {
            return Err(TokenError::Expired(kind));
        }
        Ok(token)
    }
}

const RETRY: u8 = 1;
const NEW_TOKEN: u8 = 2;
const NEW_TOKEN_WITH_PATH: u8 = 3;

fn encode(token: &Token, address: &[u8], writer: &mut Writer<'_>) -> Result<(), BufferFull> {
    let issued = u64::try_from(token.issued.since_unix_epoch().as_millis()).unwrap_or(u64::MAX);
    writer.u8(match (&token.kind, token.path) {
        (TokenKind::Retry { .. }, _) => RETRY,
        (TokenKind::NewToken, None) => NEW_TOKEN,
        (TokenKind::NewToken, Some(_)) => NEW_TOKEN_WITH_PATH,
    })?;
    writer.bytes(&issued.to_be_bytes())?;
    writer.varint_prefixed(address)?;
    if let TokenKind::Retry {
        original_destination,
        retry_source,
    } = &token.kind
    {
        writer.varint_prefixed(original_destination.as_slice())?;
        writer.varint_prefixed(retry_source.as_slice())?;
    }
    if let (TokenKind::NewToken, Some(path)) = (&token.kind, token.path) {
        let rtt = u64::try_from(path.saved.rtt.as_micros()).unwrap_or(u64::MAX);
        writer.bytes(&path.saved.window.to_be_bytes())?;
        writer.bytes(&rtt.to_be_bytes())?;
        writer.bytes(&path.connection.to_be_bytes())?;
    }
    Ok(())
}

/// What we sealed ourselves decodes; but another version of this program may have sealed it.
fn decode(bytes: &[u8]) -> Result<(Token, &[u8]), TokenError> {
    let malformed = |_: UnexpectedEnd| TokenError::Malformed;
    let mut reader = Reader::new(bytes);
    let kind = reader.u8().map_err(malformed)?;
    let issued = u64::from_be_bytes(reader.array().map_err(malformed)?);
    let address = reader.varint_prefixed().map_err(malformed)?;
    let mut connection_id = || {
        let id = reader.varint_prefixed().map_err(malformed)?;
        ConnectionId::new(id).ok_or(TokenError::Malformed)
    };
    let has_path = kind == NEW_TOKEN_WITH_PATH;
    let kind = match kind {
        RETRY => TokenKind::Retry {
            original_destination: connection_id()?,
            retry_source: connection_id()?,
        },
        NEW_TOKEN | NEW_TOKEN_WITH_PATH => TokenKind::NewToken,
        _ => return Err(TokenError::Malformed),
    };
    let path = if has_path {
        let mut number = || reader.array().map(u64::from_be_bytes).map_err(malformed);
        Some(TokenPath {
            saved: SavedPath {
                window: number()?,
                rtt: Duration::from_micros(number()?),
            },
            connection: number()?,
        })
    } else {
        None
    };
    if !reader.is_empty() {
        return Err(TokenError::Malformed);
    }
    let token = Token {
        kind,
        issued: WallTime::from_unix(Duration::from_millis(issued)),
        path,
    };
    Ok((token, address))
}

impl fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TokenKey({:08x}, ..)", u32::from_be_bytes(self.id))
    }
}
