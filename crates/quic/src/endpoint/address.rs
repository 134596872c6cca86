//! Where a client is: the tokens that show it (RFC 9000 §8.1).
//!
//! Owns: the server's token keys, what tokens are bound to, which of them were seen. Never: decides what becomes of the
//! client.
//!
//! # Decisions
//!
//! - *A Retry token is bound to address, port and the ID that the Retry gave*, a token of an earlier connection to the
//!   address alone (§8.1.2, §8.1.3).
//! - *What is not ours, or damaged, is no token*: only a Retry token that opens, but is late or someone else's, tells the
//!   client that going on is of no use (§8.1.2).
//! - *A token of an earlier connection counts once* (§8.1.4), as far as a memory of fixed size goes: 4096 tokens in sets
//!   of four. Who floods it only gets its own tokens forgotten, one by one, and to replay one still takes the address.

use core::{net::SocketAddr, time::Duration};

use lastbyte_congestion::Time;
use lastbyte_wire::ConnectionId;

use super::{demux::address_bytes, siphash::SipHash};
use crate::{
    connection::RetryIds,
    crypto::token::{Address, Claim, Lifetimes, Token, TokenError, TokenKey, TokenKeys, TokenKind},
};

/// What a client's token shows.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Proof {
    /// Nothing.
    None,
    /// That it is where it was in an earlier connection; with what else the server wanted to know again.
    Earlier { extra: Vec<u8> },
    /// What it showed before: nothing.
    Replayed,
    /// That it got our Retry.
    Retry(RetryIds),
    /// That it got a Retry of ours, long ago or at another place: `INVALID_TOKEN`.
    Invalid,
}

/// The server's tokens.
pub(super) struct Tokens {
    keys: TokenKeys,
    lifetimes: Lifetimes,
    seen: SeenTokens,
}

impl Tokens {
    pub(super) fn new(keys: TokenKeys, lifetimes: Lifetimes, hash: SipHash) -> Self {
        Self {
            keys,
            lifetimes,
            seen: SeenTokens::new(hash),
        }
    }

    pub(super) fn rotate(&mut self, next: TokenKey) {
        self.keys.rotate(next);
    }

    /// What the token of an Initial packet to `destination` shows. Does not count it as seen.
    pub(super) fn judge(
        &self,
        token: &[u8],
        remote: SocketAddr,
        destination: &ConnectionId,
        since_epoch: Duration,
    ) -> Proof {
        if token.is_empty() {
            return Proof::None;
        }
        let address = address_bytes(remote);
        let claim = Claim {
            address: Address {
                for_retry: &address,
                for_new_token: ip_of(&address),
            },
            now: since_epoch,
            lifetimes: self.lifetimes,
        };
        match self.keys.open(token, &claim) {
            Ok(Token {
                kind:
                    TokenKind::Retry {
                        original_destination,
                        retry_source,
                    },
                ..
            }) => {
                // The client has to send to the Retry's source until it hears more (§17.2.5.2).
                if retry_source == *destination {
                    Proof::Retry(RetryIds {
                        original_destination,
                        retry_source,
                    })
                } else {
                    Proof::Invalid
                }
            }
            Ok(Token {
                kind: TokenKind::NewToken,
                extra,
                ..
            }) => {
                if self.seen.contains(token) {
                    Proof::Replayed
                } else {
                    Proof::Earlier { extra }
                }
            }
            Err(
                TokenError::Expired(TokenKind::Retry { .. })
                | TokenError::NotYetValid(TokenKind::Retry { .. })
                | TokenError::OtherAddress(TokenKind::Retry { .. }),
            ) => Proof::Invalid,
            Err(_) => Proof::None,
        }
    }

    /// A token of an earlier connection is used, and is good no more.
    pub(super) fn spend(&mut self, token: &[u8]) {
        self.seen.add(token);
    }

    /// Makes a Retry token. `None` if it cannot be made, for which there is no reason.
    pub(super) fn seal_retry(
        &self,
        ids: &RetryIds,
        remote: SocketAddr,
        since_epoch: Duration,
        nonce: [u8; 12],
    ) -> Option<Vec<u8>> {
        let token = Token {
            kind: TokenKind::Retry {
                original_destination: ids.original_destination,
                retry_source: ids.retry_source,
            },
            issued: since_epoch,
            extra: Vec::new(),
        };
        self.keys.seal(&token, &address_bytes(remote), nonce).ok()
    }

    /// Makes a token for a later connection. `None` if `extra` is too long.
    pub(super) fn seal_new_token(
        &self,
        remote: SocketAddr,
        extra: &[u8],
        since_epoch: Duration,
        nonce: [u8; 12],
    ) -> Option<Vec<u8>> {
        let token = Token {
            kind: TokenKind::NewToken,
            issued: since_epoch,
            extra: extra.to_vec(),
        };
        let address = address_bytes(remote);
        self.keys.seal(&token, ip_of(&address), nonce).ok()
    }
}

/// The address without the port.
fn ip_of(address: &[u8; 18]) -> &[u8] {
    address.split_last_chunk::<2>().map_or(&[], |(ip, _)| ip)
}

/// What time it is for others.
#[derive(Clone, Copy, Debug)]
pub(super) struct WallClock {
    at: Time,
    since_epoch: Duration,
}

impl WallClock {
    pub(super) const fn new(at: Time, since_epoch: Duration) -> Self {
        Self { at, since_epoch }
    }

    pub(super) const fn read(&self, now: Time) -> Duration {
        self.since_epoch.saturating_add(now.since(self.at))
    }
}

/// Fingerprints of tokens, in sets in which the oldest gives way.
struct SeenTokens {
    hash: SipHash,
    sets: Vec<[u64; SET_LEN]>,
}

const SETS: usize = 1024;
const SET_LEN: usize = 4;

impl SeenTokens {
    const fn new(hash: SipHash) -> Self {
        Self {
            hash,
            sets: Vec::new(),
        }
    }

    /// The set that a token is in, and what stands for it there. Zero stands for none.
    fn place(&self, token: &[u8]) -> (usize, u64) {
        let hash = self.hash.hash(token);
        ((hash >> 32) as usize % SETS, hash | 1)
    }

    fn contains(&self, token: &[u8]) -> bool {
        let (set, fingerprint) = self.place(token);
        self.sets
            .get(set)
            .is_some_and(|set| set.contains(&fingerprint))
    }

    fn add(&mut self, token: &[u8]) {
        if self.sets.is_empty() {
            self.sets.resize(SETS, [0; SET_LEN]);
        }
        let (set, fingerprint) = self.place(token);
        if let Some(set) = self.sets.get_mut(set) {
            set.rotate_right(1);
            if let Some(newest) = set.first_mut() {
                *newest = fingerprint;
            }
        }
    }
}

#[cfg(test)]
mod tests;
