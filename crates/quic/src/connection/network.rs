//! Addresses of a path, and the batch of datagrams that goes to them.

use core::net::SocketAddr;

use crate::ack::EcnCodepoint;

/// The two addresses of a path (RFC 9000 §9): a 4-tuple without the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NetworkPath {
    /// Ours. With an unspecified IP address where the socket does not tell which it was; such a one is the same as any.
    pub local: SocketAddr,
    /// The peer's.
    pub remote: SocketAddr,
}

impl NetworkPath {
    /// Whether it is one path, as far as is known.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        let is_vague = || self.local.ip().is_unspecified() || other.local.ip().is_unspecified();
        self.remote == other.remote
            && (self.local == other.local
                || (self.local.port() == other.local.port() && is_vague()))
    }

    /// Whether at most the peer's port differs, as when a NAT forgets its mapping (RFC 9000 §9.4).
    #[must_use]
    pub fn is_same_but_for_port(&self, other: &Self) -> bool {
        self.remote.ip() == other.remote.ip()
    }
}

/// Datagrams to be sent: those in the buffer, back to back, all of one size but the last, which may be shorter. That is
/// the shape of UDP segmentation offload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Where from, and where to.
    pub path: NetworkPath,
    /// The ECN codepoint of each.
    pub ecn: EcnCodepoint,
    /// How many bytes of the buffer are filled.
    pub len: usize,
    /// How many bytes each datagram has, but for the last.
    pub segment_len: usize,
}
