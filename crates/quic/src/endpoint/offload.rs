//! Retry packets that a load balancer sends in place of servers (draft-ietf-quic-retry-offload, with shared state).
//!
//! Owns the decision about a client's first packet, and the Retry. When clients have to validate their address, and where
//! packets go, is decided by the balancer. Servers accept its tokens by [`TokenStore::set_balancers`].
//!
//! # Decisions
//!
//! - *Tokens are those of servers ([`crate::crypto::token`])*, not the draft's: a server opens both kinds by one function,
//!   and the identity of the key distinguishes them.
//! - *A token that does not open counts as none*, and is answered with a Retry, which a client accepts in place of a token of
//!   an earlier connection (RFC 9000 §17.2.5.2). To forward it would let any bytes pass.
//! - *The connection ID of a Retry is not routable*: the client's next packet takes the same way as its first one.

use core::{fmt, net::SocketAddr};
use std::sync::Arc;

use lastbyte_wire::{ConnectionId, packet::InitialHeader};

use super::{
    TokenStore,
    accept::DESTINATION_MIN,
    address::{Proof, Tokens},
    retry::RetryPacket,
    route::is_initial_size,
};
use crate::{
    WallTime,
    connection::RetryIds,
    crypto::token::{Lifetimes, TokenKeys},
    random::{Random, Seed},
};

/// Sends Retry packets and checks their tokens. It keeps no state about clients.
pub struct RetryOffload {
    tokens: Tokens,
    random: Random,
}

/// What to do with a client's datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffloadDecision {
    /// It does not start with an Initial packet of a supported version.
    NotInitial,
    /// To be forwarded: its token shows that the client receives at its address.
    Validated,
    /// To be dropped: its token has expired or is another client's, or it cannot be a client's first packet. The client would
    /// ignore a second Retry.
    Invalid,
    /// To be answered with this many bytes of the buffer, a Retry packet.
    Retry(usize),
}

impl RetryOffload {
    /// The size of the buffer for a Retry packet in bytes. Initial packets have at least 1200.
    pub const RETRY_LEN_MAX: usize = 256;

    /// With the secrets of [`RetryBalancers::secrets`](super::RetryBalancers::secrets). `seed` must not be used twice. `None`
    /// if there is no secret.
    pub fn new(secrets: &[[u8; TokenKeys::SECRET_LEN]], seed: Seed) -> Option<Self> {
        let mut random = Random::new(seed);
        let store = TokenStore::new(TokenKeys::derive(secrets)?, random.bytes());
        Some(Self {
            tokens: Tokens::new(Arc::new(store), Lifetimes::default()),
            random,
        })
    }

    /// Decides about a datagram of the client at `remote`.
    pub fn decide(
        &mut self,
        now: WallTime,
        remote: SocketAddr,
        datagram: &[u8],
        buffer: &mut [u8; Self::RETRY_LEN_MAX],
    ) -> OffloadDecision {
        let Some(initial) = InitialHeader::decode(datagram) else {
            return OffloadDecision::NotInitial;
        };
        let destination = initial.destination;
        if !is_initial_size(datagram) || destination.len() < DESTINATION_MIN {
            return OffloadDecision::Invalid;
        }
        match self.tokens.check(initial.token, remote, &destination, now) {
            Proof::Retry(_) => return OffloadDecision::Validated,
            Proof::Invalid => return OffloadDecision::Invalid,
            Proof::None | Proof::Earlier { .. } | Proof::Replayed => {}
        }
        let written = self.write_retry(now, remote, &initial, buffer);
        written.map_or(OffloadDecision::Invalid, OffloadDecision::Retry)
    }

    fn write_retry(
        &mut self,
        now: WallTime,
        remote: SocketAddr,
        initial: &InitialHeader<'_>,
        buffer: &mut [u8],
    ) -> Option<usize> {
        let mut id: [u8; DESTINATION_MIN] = self.random.bytes();
        id[0] |= UNROUTABLE;
        let ids = RetryIds {
            original_destination: initial.destination,
            retry_source: ConnectionId::new(&id)?,
        };
        let nonce = self.random.bytes();
        let [unused_bits] = self.random.bytes();
        let token = self.tokens.seal_retry(&ids, remote, now, nonce)?;
        let packet = RetryPacket {
            version: initial.version,
            client: initial.source,
            original_destination: initial.destination,
            source: ids.retry_source,
            token: &token,
            unused_bits,
        };
        packet.write(buffer)
    }
}

impl fmt::Debug for RetryOffload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RetryOffload(..)")
    }
}

/// The configuration ID 7 in the first byte (draft-ietf-quic-load-balancers §3.1).
const UNROUTABLE: u8 = 0xe0;
