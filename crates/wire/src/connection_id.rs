//! Connection IDs of QUIC versions 1 and 2 (RFC 9000 §5.1, §17.2).

use core::{
    borrow::Borrow,
    fmt,
    hash::{Hash, Hasher},
};

#[cfg(test)]
mod tests;

/// A connection ID of 0 to 20 bytes, stored inline.
///
/// It hashes and compares like its bytes, so a map keyed by connection ID can be looked up with a slice of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct ConnectionId {
    len: u8,
    /// The bytes from `len` on are zero.
    bytes: [u8; Self::MAX_LEN],
}

impl ConnectionId {
    /// The longest connection ID of versions 1 and 2: 20 bytes (RFC 9000 §17.2).
    pub const MAX_LEN: usize = 20;
    /// The zero-length connection ID (RFC 9000 §5.1).
    pub const EMPTY: Self = Self {
        len: 0,
        bytes: [0; Self::MAX_LEN],
    };

    /// Creates a connection ID from `id`, or returns `None` if `id` is longer than 20 bytes.
    pub fn new(id: &[u8]) -> Option<Self> {
        let mut bytes = [0; Self::MAX_LEN];
        bytes.get_mut(..id.len())?.copy_from_slice(id);
        Some(Self {
            len: id.len() as u8,
            bytes,
        })
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.len()).unwrap_or_default()
    }

    /// The length in bytes.
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether this is the zero-length connection ID.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Hash for ConnectionId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_slice().hash(state);
    }
}

impl Borrow<[u8]> for ConnectionId {
    fn borrow(&self) -> &[u8] {
        self.as_slice()
    }
}

impl AsRef<[u8]> for ConnectionId {
    fn as_ref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl fmt::Display for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice()
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ConnectionId({self})")
    }
}
