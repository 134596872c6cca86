//! Versions.

use core::fmt;

/// A version as it stands on the wire (RFC 8999 §5.1): any 32 bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct VersionNumber(u32);

impl VersionNumber {
    /// A version of this number.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }
}

impl fmt::Display for VersionNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#010x}", self.0)
    }
}

impl fmt::Debug for VersionNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
