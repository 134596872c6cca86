//! A cursor over received bytes.

use crate::VarInt;

/// The input ends before the end of the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the input ends before the end of the field")]
pub struct UnexpectedEnd;

/// Decodes fields from the front of a slice and tracks the position. Returned slices borrow from the input, not from
/// the reader. A failed read consumes nothing.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    len: usize,
}

impl<'a> Reader<'a> {
    /// Creates a reader positioned at the first byte.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes,
            len: bytes.len(),
        }
    }

    /// The number of bytes read so far.
    pub const fn position(&self) -> usize {
        self.len - self.rest.len()
    }

    /// The number of bytes left.
    pub const fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Whether all bytes have been read.
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The bytes left, without consuming them.
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Reads `N` bytes.
    ///
    /// # Errors
    ///
    /// Returns [`UnexpectedEnd`] if fewer bytes are left.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], UnexpectedEnd> {
        let (array, rest) = self.rest.split_first_chunk().ok_or(UnexpectedEnd)?;
        self.rest = rest;
        Ok(*array)
    }

    /// Reads one byte.
    ///
    /// # Errors
    ///
    /// Returns [`UnexpectedEnd`] if no byte is left.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, UnexpectedEnd> {
        self.array().map(u8::from_be_bytes)
    }

    /// Reads two bytes in network byte order.
    ///
    /// # Errors
    ///
    /// Returns [`UnexpectedEnd`] if fewer bytes are left.
    #[inline]
    pub fn u16(&mut self) -> Result<u16, UnexpectedEnd> {
        self.array().map(u16::from_be_bytes)
    }

    /// Reads four bytes in network byte order.
    ///
    /// # Errors
    ///
    /// Returns [`UnexpectedEnd`] if fewer bytes are left.
    #[inline]
    pub fn u32(&mut self) -> Result<u32, UnexpectedEnd> {
        self.array().map(u32::from_be_bytes)
    }

    /// Reads a variable-length integer, which need not be in its shortest encoding (RFC 9000 §16).
    ///
    /// # Errors
    ///
    /// Returns [`UnexpectedEnd`] if the input ends inside the integer.
    #[inline]
    pub fn varint(&mut self) -> Result<VarInt, UnexpectedEnd> {
        let first = *self.rest.first().ok_or(UnexpectedEnd)?;
        let value = match first >> 6 {
            0 => self.u8()?.into(),
            1 => (self.u16()? & 0x3fff).into(),
            2 => (self.u32()? & 0x3fff_ffff).into(),
            _ => u64::from_be_bytes(self.array()?),
        };
        Ok(VarInt::from_low_bits(value))
    }

    /// Reads `len` bytes.
    ///
    /// # Errors
    ///
    /// Returns [`UnexpectedEnd`] if fewer bytes are left.
    #[inline]
    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8], UnexpectedEnd> {
        let (bytes, rest) = self.rest.split_at_checked(len).ok_or(UnexpectedEnd)?;
        self.rest = rest;
        Ok(bytes)
    }

    /// Reads a variable-length integer and as many bytes as it says.
    ///
    /// # Errors
    ///
    /// Returns [`UnexpectedEnd`] if fewer bytes are left.
    #[inline]
    pub fn varint_prefixed(&mut self) -> Result<&'a [u8], UnexpectedEnd> {
        let mut ahead = self.clone();
        let len = ahead.varint()?;
        let bytes = ahead.bytes(usize::try_from(len.get()).map_err(|_| UnexpectedEnd)?)?;
        *self = ahead;
        Ok(bytes)
    }

    /// Reads all bytes that are left.
    #[inline]
    pub fn take_rest(&mut self) -> &'a [u8] {
        core::mem::take(&mut self.rest)
    }
}
