//! Connection IDs (RFC 9000 §5.1): those issued to the peer, and those that the peer issued.
//!
//! The content of our IDs, such as server and worker, is decided by the [`ConnectionIdGenerator`]. There are two kinds:
//! [`RandomIds`], without content, and [`QuicLbIds`], which are routable by load balancers and socket filters.

mod generator;
mod local;
mod peer;
mod quic_lb;

use lastbyte_wire::{ConnectionId, StatelessResetToken};

pub use generator::{ConnectionIds, RandomIds};
pub use local::{LocalIds, RetireError};
pub use peer::{PeerIdError, PeerIds};
pub use quic_lb::{Decoded, QuicLb, QuicLbConfig, QuicLbError, QuicLbIds, WORKERS_IN_OCTET_MAX};

/// Generates the connection IDs to which the peer will send packets.
pub trait ConnectionIdGenerator {
    /// A new ID, different from all before. All have the same length, so that short headers can be parsed.
    fn generate(&mut self) -> ConnectionId;

    /// The stateless reset token of an ID: always the same for an ID (RFC 9000 §10.3.2).
    fn reset_token(&self, id: &ConnectionId) -> StatelessResetToken;
}
