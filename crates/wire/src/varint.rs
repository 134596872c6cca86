//! Variable-length integers (RFC 9000 §16).

use core::fmt;

#[cfg(test)]
mod tests;

/// An integer from 0 to 2^62 − 1, the range of a variable-length integer (RFC 9000 §16).
///
/// ```
/// use lastbyte_wire::VarInt;
///
/// let length = VarInt::from_u32(494_878_333);
/// assert_eq!(length.encoded_len(), 4);
/// assert_eq!(VarInt::new(1 << 62), None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct VarInt(u64);

impl VarInt {
    /// 0.
    pub const ZERO: Self = Self(0);
    /// The largest value, 2^62 − 1.
    pub const MAX: Self = Self((1 << 62) - 1);

    /// Creates a `VarInt`, or returns `None` if `value` exceeds [`VarInt::MAX`].
    pub const fn new(value: u64) -> Option<Self> {
        if value <= Self::MAX.0 {
            Some(Self(value))
        } else {
            None
        }
    }

    /// Creates a `VarInt` from a value that is always in range.
    #[must_use]
    pub const fn from_u32(value: u32) -> Self {
        Self(value as u64)
    }

    /// Creates a `VarInt`, clamped to [`VarInt::MAX`].
    #[must_use]
    pub const fn saturating(value: u64) -> Self {
        if value <= Self::MAX.0 {
            Self(value)
        } else {
            Self::MAX
        }
    }

    /// Masks off the two most significant bits, which encode the length.
    pub(crate) const fn from_low_bits(value: u64) -> Self {
        Self(value & Self::MAX.0)
    }

    /// The value as an integer.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The length of the shortest encoding in bytes: 1, 2, 4 or 8.
    pub const fn encoded_len(self) -> usize {
        encoded_len(self.0)
    }

    /// The sum, or `None` if it exceeds [`VarInt::MAX`].
    pub const fn checked_add(self, other: u64) -> Option<Self> {
        match self.0.checked_add(other) {
            Some(sum) => Self::new(sum),
            None => None,
        }
    }
}

/// The length in bytes of the shortest encoding of `value`. Values out of range count as 8 bytes.
pub(crate) const fn encoded_len(value: u64) -> usize {
    if value < 1 << 6 {
        1
    } else if value < 1 << 14 {
        2
    } else if value < 1 << 30 {
        4
    } else {
        8
    }
}

/// [`encoded_len`] for a `usize`.
pub(crate) const fn encoded_len_usize(value: usize) -> usize {
    encoded_len(value as u64)
}

impl fmt::Debug for VarInt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for VarInt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl From<u8> for VarInt {
    fn from(value: u8) -> Self {
        Self(u64::from(value))
    }
}

impl From<u16> for VarInt {
    fn from(value: u16) -> Self {
        Self(u64::from(value))
    }
}

impl From<u32> for VarInt {
    fn from(value: u32) -> Self {
        Self(u64::from(value))
    }
}

impl From<VarInt> for u64 {
    fn from(value: VarInt) -> Self {
        value.0
    }
}

/// Conversions between [`VarInt`] and the types that contain one.
macro_rules! contains_varint {
    ($type:ident) => {
        impl From<VarInt> for $type {
            fn from(value: VarInt) -> Self {
                Self(value)
            }
        }

        impl From<$type> for VarInt {
            fn from(value: $type) -> Self {
                value.0
            }
        }
    };
}
pub(crate) use contains_varint;

/// The value exceeds 2^62 − 1 and cannot be encoded as a variable-length integer (RFC 9000 §16).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("value exceeds 2^62 - 1")]
pub struct VarIntOutOfRange;

impl TryFrom<u64> for VarInt {
    type Error = VarIntOutOfRange;

    fn try_from(value: u64) -> Result<Self, Self::Error> {
        Self::new(value).ok_or(VarIntOutOfRange)
    }
}

impl TryFrom<usize> for VarInt {
    type Error = VarIntOutOfRange;

    fn try_from(value: usize) -> Result<Self, Self::Error> {
        Self::new(value as u64).ok_or(VarIntOutOfRange)
    }
}
