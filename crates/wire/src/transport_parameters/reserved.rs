//! Transport parameters that mean nothing (RFC 9000 §18.1).

use super::ParameterId;
use crate::VarInt;

/// A parameter of the form 31 × N + 27, which peers have to ignore (RFC 9000 §18.1). Sending one now and then keeps them
/// able to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReservedParameter {
    id: ParameterId,
    value: [u8; Self::VALUE_LEN_MAX],
    len: usize,
}

impl ReservedParameter {
    /// The longest value that can be sent; the RFC has no limit.
    pub const VALUE_LEN_MAX: usize = 16;

    /// A parameter whose identifier is made of a random number. Of a longer value the first 16 bytes are taken.
    #[must_use]
    pub fn new(random: u64, value: &[u8]) -> Self {
        // The largest N for which 31 × N + 27 is a variable-length integer.
        const N_MAX: u64 = (VarInt::MAX.get() - 27) / 31;
        let mut bytes = [0; Self::VALUE_LEN_MAX];
        let len = bytes
            .iter_mut()
            .zip(value)
            .map(|(byte, value)| *byte = *value)
            .count();
        Self {
            id: VarInt::saturating(random % (N_MAX + 1) * 31 + 27).into(),
            value: bytes,
            len,
        }
    }

    /// The identifier.
    #[must_use]
    pub const fn id(&self) -> ParameterId {
        self.id
    }

    /// The value.
    #[must_use]
    pub fn value(&self) -> &[u8] {
        self.value.get(..self.len).unwrap_or_default()
    }
}
