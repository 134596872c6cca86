//! Address validation by tokens (RFC 9000 §8.1).
//!
//! Owns the server's token keys, what tokens are bound to, and which of them were used. It does not decide whether the
//! client is accepted.
//!
//! # Decisions
//!
//! - *A Retry token is bound to address, port and the connection ID in the Retry*, a token of an earlier connection to
//!   the address alone (§8.1.2, §8.1.3).
//! - *Tokens that are not ours, or corrupt, are ignored*: only a Retry token that opens, but is expired or another
//!   client's, is answered with an error (§8.1.2).
//! - *A token of an earlier connection counts once* (§8.1.4), at all endpoints that share a [`TokenStore`], within a
//!   record of fixed size: 4096 entries in sets of four, for tokens and for the connections that saved a path. A flood only evicts tokens one by one, and replaying one still
//!   requires the address. Another process, such as the next one with the same keys, accepts it once more.
//! - *A Retry token of a load balancer ([`RetryBalancers`]) counts as our own* if the packet came from an address of one. It is
//!   bound to the client's address, which the balancer has checked, and which only that sees. For the same reason a token of an
//!   earlier connection validates no address in a packet of a balancer.

use core::net::{IpAddr, SocketAddr};
use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard},
};

use lastbyte_congestion::{SavedPath, Time};
use lastbyte_wire::ConnectionId;

use lastbyte_units::SipHash;

use super::demux::address_bytes;
use crate::{
    WallTime,
    connection::RetryIds,
    crypto::token::{
        Address, Claim, Lifetimes, Token, TokenError, TokenKeys, TokenKind, TokenPath,
    },
    random::{Random, Seed},
};

/// The result of checking a client's token.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Proof {
    /// No valid token.
    None,
    /// The client validated this address in an earlier connection; with its path measurements, unless they are too old.
    Earlier {
        path: Option<TokenPath>,
        /// Whether the address is the client's. In packets of a load balancer it is the balancer's.
        is_validated: bool,
    },
    /// It was used before, and counts as no token.
    Replayed,
    /// The client received our Retry.
    Retry(RetryIds),
    /// The client received a Retry of ours, but long ago or at another address: `INVALID_TOKEN`.
    Invalid,
}

impl Proof {
    /// Whether the client's address counts as validated.
    pub(super) const fn is_validated(&self) -> bool {
        matches!(
            self,
            Self::Retry(_)
                | Self::Earlier {
                    is_validated: true,
                    ..
                }
        )
    }
}

/// Token keys, and the record of used tokens: shared by all endpoints of a process, so that a token of one is valid at
/// any other, and once in total.
pub struct TokenStore {
    keys: RwLock<TokenKeys>,
    used: Mutex<UsedTokens>,
    /// The keys of load balancers, and their addresses.
    balancers: RwLock<Option<(TokenKeys, Vec<IpAddr>)>>,
}

/// Load balancers that send Retry packets in place of servers (draft-ietf-quic-retry-offload), with [`RetryOffload`].
///
/// [`RetryOffload`]: super::RetryOffload
#[derive(Clone, PartialEq, Eq)]
pub struct RetryBalancers {
    /// The secrets of token keys, shared by balancers and servers: random, and used for nothing else. The first one seals,
    /// all open.
    pub secrets: Vec<[u8; TokenKeys::SECRET_LEN]>,
    /// The addresses from which packets of balancers reach a server. Their tokens are ignored in packets from elsewhere,
    /// whose sender no balancer has checked.
    pub addresses: Vec<IpAddr>,
}

impl fmt::Debug for RetryBalancers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryBalancers")
            .field("addresses", &self.addresses)
            .finish_non_exhaustive()
    }
}

impl TokenStore {
    /// A store with these keys. `seed` is random, so that no client can choose which tokens are evicted.
    #[must_use]
    pub fn new(keys: TokenKeys, seed: Seed) -> Self {
        let mut random = Random::new(seed);
        let hash = SipHash::new([random.number(), random.number()]);
        Self {
            keys: RwLock::new(keys),
            used: Mutex::new(UsedTokens::new(hash)),
            balancers: RwLock::new(None),
        }
    }

    /// Replaces the load balancers whose Retry tokens are accepted, at all endpoints. Default: none.
    pub fn set_balancers(&self, balancers: Option<&RetryBalancers>) {
        let balancers = balancers.and_then(|balancers| {
            let addresses = balancers.addresses.iter().map(IpAddr::to_canonical);
            Some((TokenKeys::derive(&balancers.secrets)?, addresses.collect()))
        });
        let current = self.balancers.write();
        *current.unwrap_or_else(PoisonError::into_inner) = balancers;
    }

    /// Whether packets from this address are those of a balancer.
    fn is_balancer(&self, remote: SocketAddr) -> bool {
        let balancers = self.balancers.read();
        let balancers = balancers.unwrap_or_else(PoisonError::into_inner);
        let remote = remote.ip().to_canonical();
        let mut trusted = balancers.iter();
        trusted.any(|(_, addresses)| addresses.contains(&remote))
    }

    /// Opens a token of a balancer.
    fn open_of_balancer(
        &self,
        token: &[u8],
        remote: SocketAddr,
        claim: &Claim<'_>,
    ) -> Result<Token, TokenError> {
        let balancers = self.balancers.read();
        let balancers = balancers.unwrap_or_else(PoisonError::into_inner);
        let remote = remote.ip().to_canonical();
        let trusted = balancers.as_ref();
        let (keys, _) = trusted
            .filter(|(_, addresses)| addresses.contains(&remote))
            .ok_or(TokenError::UnknownKey)?;
        keys.open(
            token,
            &Claim {
                address: None,
                ..*claim
            },
        )
    }

    /// Replaces the keys, at all endpoints.
    pub fn set_keys(&self, keys: TokenKeys) {
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = keys;
    }

    /// A thread that panicked did not leave the keys half replaced.
    fn keys(&self) -> RwLockReadGuard<'_, TokenKeys> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// After a panic, at worst a token counts as used.
    fn used(&self) -> MutexGuard<'_, UsedTokens> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for TokenStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenStore")
            .field("keys", &*self.keys())
            .finish_non_exhaustive()
    }
}

/// The server's tokens.
pub(super) struct Tokens {
    pub(super) store: Arc<TokenStore>,
    lifetimes: Lifetimes,
}

impl Tokens {
    pub(super) const fn new(store: Arc<TokenStore>, lifetimes: Lifetimes) -> Self {
        Self { store, lifetimes }
    }

    /// Checks the token of an Initial packet to `destination`, without using it up.
    pub(super) fn check(
        &self,
        token: &[u8],
        remote: SocketAddr,
        destination: &ConnectionId,
        now: WallTime,
    ) -> Proof {
        if token.is_empty() {
            return Proof::None;
        }
        let address = address_bytes(remote);
        let claim = Claim {
            address: Some(Address {
                for_retry: &address,
                for_new_token: ip_of(&address),
            }),
            now,
            lifetimes: self.lifetimes,
        };
        let opened = match self.store.keys().open(token, &claim) {
            Err(TokenError::UnknownKey) => self.store.open_of_balancer(token, remote, &claim),
            opened => opened,
        };
        match opened {
            Ok(Token {
                kind:
                    TokenKind::Retry {
                        original_destination,
                        retry_source,
                    },
                ..
            }) => {
                // The client must send to the Retry's source until it receives another packet (§17.2.5.2).
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
                issued,
                path,
            }) => {
                if self.store.used().contains(token) {
                    Proof::Replayed
                } else {
                    let is_recent = now.since(issued) <= self.lifetimes.path;
                    let path = path.filter(|_| is_recent);
                    Proof::Earlier {
                        path,
                        is_validated: !self.store.is_balancer(remote),
                    }
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

    /// Uses up a token of an earlier connection. Returns whether it was unused: another endpoint may have been first.
    pub(super) fn spend(&self, token: &[u8]) -> bool {
        let mut used = self.store.used();
        let is_good = !used.contains(token);
        used.add(token);
        is_good
    }

    /// Consumes the path measurements of a connection. Returns them if no other token of that connection was used before (RFC 9959 §3.2): a client
    /// may have several, and use them at the same time.
    pub(super) fn spend_path(&self, path: &TokenPath) -> Option<SavedPath> {
        // No token is as short.
        let identity = path.connection.to_be_bytes();
        self.spend(&identity).then_some(path.saved)
    }

    /// Creates a Retry token. `None` if that fails, which does not happen.
    pub(super) fn seal_retry(
        &self,
        ids: &RetryIds,
        remote: SocketAddr,
        now: WallTime,
        nonce: [u8; 12],
    ) -> Option<Vec<u8>> {
        let token = Token {
            kind: TokenKind::Retry {
                original_destination: ids.original_destination,
                retry_source: ids.retry_source,
            },
            issued: now,
            path: None,
        };
        self.store
            .keys()
            .seal(&token, &address_bytes(remote), nonce)
            .ok()
    }

    /// Creates a token for a later connection. `None` if that fails, which does not happen.
    pub(super) fn seal_new_token(
        &self,
        remote: SocketAddr,
        path: Option<TokenPath>,
        now: WallTime,
        nonce: [u8; 12],
    ) -> Option<Vec<u8>> {
        let token = Token {
            kind: TokenKind::NewToken,
            issued: now,
            path,
        };
        let address = address_bytes(remote);
        self.store.keys().seal(&token, ip_of(&address), nonce).ok()
    }
}

/// The address without the port.
fn ip_of(address: &[u8; 18]) -> &[u8] {
    address.split_last_chunk::<2>().map_or(&[], |(ip, _)| ip)
}

/// The current wall-clock time.
#[derive(Clone, Copy, Debug)]
pub(super) struct WallClock {
    at: Time,
    wall_time: WallTime,
}

impl WallClock {
    pub(super) const fn new(at: Time, wall_time: WallTime) -> Self {
        Self { at, wall_time }
    }

    pub(super) fn read(&self, now: Time) -> WallTime {
        self.wall_time + now.since(self.at)
    }
}

/// Fingerprints of tokens, in sets in which the oldest is replaced.
struct UsedTokens {
    hash: SipHash,
    sets: Vec<[u64; SET_LEN]>,
}

const SETS: usize = 1024;
const SET_LEN: usize = 4;

impl UsedTokens {
    const fn new(hash: SipHash) -> Self {
        Self {
            hash,
            sets: Vec::new(),
        }
    }

    /// The set of a token, and its fingerprint, which is never zero, as that marks a free slot.
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
