//! Reserved transport parameters (RFC 9000 §18.1).

use super::ParameterId;
use crate::VarInt;

/// A reserved parameter with an ID of the form 31 × N + 27 and no meaning (RFC 9000 §18.1). Sending one exercises the
/// requirement that peers ignore unknown parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReservedParameter {
    id: ParameterId,
    value: [u8; Self::VALUE_LEN_MAX],
    len: usize,
}

impl ReservedParameter {
    /// The maximum length of the value in bytes. The RFC sets no limit.
    pub const VALUE_LEN_MAX: usize = 16;

    /// Creates a parameter with an ID derived from `random`. A `value` longer than 16 bytes is truncated.
    #[must_use]
    pub fn new(random: u64, value: &[u8]) -> Self {
        // The largest N for which 31 × N + 27 fits in a variable-length integer.
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

    /// The parameter ID.
    pub const fn id(&self) -> ParameterId {
        self.id
    }

    /// The value.
    pub fn value(&self) -> &[u8] {
        self.value.get(..self.len).unwrap_or_default()
    }
}
