//! Stateless reset tokens (RFC 9000 §10.3).

use core::{fmt, hint::black_box};

/// The 16-byte token by which an endpoint recognizes a stateless reset (RFC 9000 §10.3).
///
/// Comparison takes constant time, as §10.3.1 requires. `Debug` does not print the bytes, which are secret until the
/// token is used.
#[derive(Clone, Copy)]
pub struct StatelessResetToken([u8; Self::LEN]);

impl StatelessResetToken {
    /// Length in bytes.
    pub const LEN: usize = 16;

    /// Creates a token from its bytes.
    #[must_use]
    pub const fn new(bytes: [u8; Self::LEN]) -> Self {
        Self(bytes)
    }

    /// The token's bytes.
    pub const fn as_bytes(&self) -> &[u8; Self::LEN] {
        &self.0
    }
}

impl PartialEq for StatelessResetToken {
    fn eq(&self, other: &Self) -> bool {
        let difference = self
            .0
            .iter()
            .zip(&other.0)
            .fold(0, |difference, (a, b)| black_box(difference | (a ^ b)));
        difference == 0
    }
}

impl Eq for StatelessResetToken {}

impl fmt::Debug for StatelessResetToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StatelessResetToken(..)")
    }
}

#[cfg(test)]
mod tests;
