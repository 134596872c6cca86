//! A cursor over the buffer of a packet under construction.

use crate::VarInt;

#[cfg(test)]
mod tests;

/// The buffer has too little space left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the buffer has too little space left")]
pub struct BufferFull;

/// A value that can be encoded.
pub trait Encode {
    /// The exact number of bytes that [`Encode::encode`] writes.
    fn encoded_len(&self) -> usize;

    /// Writes the complete encoding, or nothing.
    ///
    /// # Errors
    ///
    /// Returns [`BufferFull`] if fewer than [`Encode::encoded_len`] bytes are left.
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), BufferFull>;
}

/// Writes consecutive fields into a caller-owned buffer. It never grows and never panics: a write that does not fit
/// returns an error and changes nothing.
///
/// To limit a packet to the size of a datagram, pass a slice of that size.
#[derive(Debug)]
pub struct Writer<'a> {
    buffer: &'a mut [u8],
    /// Never beyond the end of the buffer.
    position: usize,
}

impl<'a> Writer<'a> {
    /// Creates a writer positioned at the start of the buffer.
    #[must_use]
    pub const fn new(buffer: &'a mut [u8]) -> Self {
        Self {
            buffer,
            position: 0,
        }
    }

    /// The number of bytes written so far.
    pub const fn position(&self) -> usize {
        self.position
    }

    /// The number of bytes that still fit.
    pub const fn remaining(&self) -> usize {
        self.buffer.len() - self.position
    }

    /// The bytes written so far.
    pub fn written(&self) -> &[u8] {
        self.buffer.get(..self.position).unwrap_or_default()
    }

    /// The bytes written so far, mutable for in-place encryption and header protection.
    pub fn written_mut(&mut self) -> &mut [u8] {
        self.buffer.get_mut(..self.position).unwrap_or_default()
    }

    /// Returns to an earlier [`Writer::position`] and discards everything written since. Has no effect if `position` is
    /// ahead.
    pub fn rewind(&mut self, position: usize) {
        self.position = self.position.min(position);
    }

    /// Runs `write`, and restores the position if it fails.
    ///
    /// # Errors
    ///
    /// Returns the error of `write`.
    #[inline]
    pub fn atomically<T, E>(
        &mut self,
        write: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<T, E> {
        let before = self.position;
        let result = write(self);
        if result.is_err() {
            self.position = before;
        }
        result
    }

    /// Advances by `len` bytes and returns them for the caller to fill. Their contents are unspecified.
    ///
    /// # Errors
    ///
    /// Returns [`BufferFull`] if fewer bytes are left.
    #[inline]
    pub fn reserve(&mut self, len: usize) -> Result<&mut [u8], BufferFull> {
        let end = self.position.checked_add(len).ok_or(BufferFull)?;
        let slice = self.buffer.get_mut(self.position..end).ok_or(BufferFull)?;
        self.position = end;
        Ok(slice)
    }

    /// Writes bytes.
    ///
    /// # Errors
    ///
    /// Returns [`BufferFull`] if they do not fit.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<(), BufferFull> {
        self.reserve(bytes.len())?.copy_from_slice(bytes);
        Ok(())
    }

    /// Writes `len` zero bytes.
    ///
    /// # Errors
    ///
    /// Returns [`BufferFull`] if they do not fit.
    #[inline]
    pub fn zeros(&mut self, len: usize) -> Result<(), BufferFull> {
        // Avoids a call of `memset` for the many packets without padding.
        if len > 0 {
            self.reserve(len)?.fill(0);
        }
        Ok(())
    }

    /// Writes one byte.
    ///
    /// # Errors
    ///
    /// Returns [`BufferFull`] if it does not fit.
    #[inline]
    pub fn u8(&mut self, value: u8) -> Result<(), BufferFull> {
        self.array([value])
    }

    /// Writes two bytes in network byte order.
    ///
    /// # Errors
    ///
    /// Returns [`BufferFull`] if they do not fit.
    #[inline]
    pub fn u16(&mut self, value: u16) -> Result<(), BufferFull> {
        self.array(value.to_be_bytes())
    }

    /// Writes four bytes in network byte order.
    ///
    /// # Errors
    ///
    /// Returns [`BufferFull`] if they do not fit.
    #[inline]
    pub fn u32(&mut self, value: u32) -> Result<(), BufferFull> {
        self.array(value.to_be_bytes())
    }

    /// Writes a variable-length integer in its shortest encoding (RFC 9000 §16).
    ///
    /// # Errors
    ///
    /// Returns [`BufferFull`] if it does not fit.
    #[inline]
    pub fn varint(&mut self, value: VarInt) -> Result<(), BufferFull> {
        let value = value.get();
        match value {
            0..0x40 => self.u8(value as u8),
            0x40..0x4000 => self.u16(value as u16 | 0x4000),
            0x4000..0x4000_0000 => self.u32(value as u32 | 0x8000_0000),
            _ => self.array((value | 0xc000_0000_0000_0000).to_be_bytes()),
        }
    }

    /// Writes the length of `bytes` as a variable-length integer, and the bytes.
    ///
    /// # Errors
    ///
    /// Returns [`BufferFull`] if they do not fit.
    #[inline]
    pub fn varint_prefixed(&mut self, bytes: &[u8]) -> Result<(), BufferFull> {
        let len = VarInt::try_from(bytes.len()).map_err(|_| BufferFull)?;
        self.atomically(|writer| {
            writer.varint(len)?;
            writer.bytes(bytes)
        })
    }

    #[inline]
    fn array<const N: usize>(&mut self, array: [u8; N]) -> Result<(), BufferFull> {
        *self
            .buffer
            .get_mut(self.position..)
            .and_then(<[u8]>::first_chunk_mut)
            .ok_or(BufferFull)? = array;
        self.position += N;
        Ok(())
    }

    /// Overwrites bytes that have already been written.
    pub(crate) fn overwrite(&mut self, position: usize, bytes: &[u8]) -> Result<(), BufferFull> {
        let end = position.checked_add(bytes.len()).ok_or(BufferFull)?;
        self.written_mut()
            .get_mut(position..end)
            .ok_or(BufferFull)?
            .copy_from_slice(bytes);
        Ok(())
    }
}
