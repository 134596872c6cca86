//! Connection IDs (RFC 9000 §5.1): those that were given to the peer, and those that it gave.
//!
//! What an ID of ours says, such as server and worker, is the [`ConnectionIdGenerator`]'s business. There are two kinds:
//! [`RandomIds`], which say nothing, and [`QuicLbIds`], which lead load balancers and socket filters.

mod generator;
mod local;
mod peer;
mod quic_lb;

use lastbyte_wire::{ConnectionId, StatelessResetToken};

pub use generator::{ConnectionIds, RandomIds};
pub use local::{LocalIds, RetireError};
pub use peer::{PeerIdError, PeerIds};
pub use quic_lb::{Decoded, QuicLb, QuicLbConfig, QuicLbError, QuicLbIds, Worker};

/// Makes connection IDs that the peer will send packets to.
pub trait ConnectionIdGenerator {
    /// A new ID, different from all before. All have the same length, so that short headers can be read.
    fn generate(&mut self) -> ConnectionId;

    /// The stateless reset token of an ID: always the same for the same ID (RFC 9000 §10.3.2).
    fn reset_token(&self, id: &ConnectionId) -> StatelessResetToken;
}
