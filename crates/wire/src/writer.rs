//! A cursor over the buffer of a packet that is being built.

use core::fmt;

use crate::VarInt;

#[cfg(test)]
mod tests;

/// The buffer has too little room left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferFull;

impl fmt::Display for BufferFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the buffer has too little room left")
    }
}

impl core::error::Error for BufferFull {}

/// What can be put on the wire.
pub trait Encode {
    /// How many bytes [`Encode::encode`] writes, exactly.
    fn encoded_len(&self) -> usize;

    /// Writes all of it, or nothing.
    ///
    /// # Errors
    ///
    /// Fewer than [`Encode::encoded_len`] bytes are left.
    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), BufferFull>;
}

/// Writes fields one behind the other into a buffer that the caller owns. It never grows, and never panics: a write that
/// does not fit is an error and changes nothing.
///
/// To keep a packet within a datagram, hand in a slice of that size.
#[derive(Debug)]
pub struct Writer<'a> {
    buffer: &'a mut [u8],
    /// Never beyond the end of the buffer.
    position: usize,
}

impl<'a> Writer<'a> {
    /// A writer at the start of the buffer.
    #[must_use]
    pub const fn new(buffer: &'a mut [u8]) -> Self {
        Self {
            buffer,
            position: 0,
        }
    }

    /// How many bytes have been written.
    #[must_use]
    pub const fn position(&self) -> usize {
        self.position
    }

    /// How many bytes there is room for.
    #[must_use]
    pub const fn remaining(&self) -> usize {
        self.buffer.len() - self.position
    }

    /// What has been written.
    #[must_use]
    pub fn written(&self) -> &[u8] {
        self.buffer.get(..self.position).unwrap_or_default()
    }

    /// What has been written, to be changed in place: sealing and header protection do.
    pub fn written_mut(&mut self) -> &mut [u8] {
        self.buffer.get_mut(..self.position).unwrap_or_default()
    }

    /// Goes back to an earlier [`Writer::position`], forgetting what was written since. Never goes forward.
    pub fn rewind(&mut self, position: usize) {
        self.position = self.position.min(position);
    }

    /// Runs `write`. If it fails, the writer is where it was before.
    ///
    /// # Errors
    ///
    /// Those of `write`.
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

    /// Takes the next `len` bytes of the buffer, with whatever they hold, for the caller to fill.
    ///
    /// # Errors
    ///
    /// Fewer are left.
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
    /// They do not fit.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<(), BufferFull> {
        self.reserve(bytes.len())?.copy_from_slice(bytes);
        Ok(())
    }

    /// Writes `len` zero bytes.
    ///
    /// # Errors
    ///
    /// They do not fit.
    pub fn zeros(&mut self, len: usize) -> Result<(), BufferFull> {
        self.reserve(len)?.fill(0);
        Ok(())
    }

    /// Writes one byte.
    ///
    /// # Errors
    ///
    /// It does not fit.
    #[inline]
    pub fn u8(&mut self, value: u8) -> Result<(), BufferFull> {
        self.array([value])
    }

    /// Writes two bytes, most significant first.
    ///
    /// # Errors
    ///
    /// They do not fit.
    #[inline]
    pub fn u16(&mut self, value: u16) -> Result<(), BufferFull> {
        self.array(value.to_be_bytes())
    }

    /// Writes four bytes, most significant first.
    ///
    /// # Errors
    ///
    /// They do not fit.
    #[inline]
    pub fn u32(&mut self, value: u32) -> Result<(), BufferFull> {
        self.array(value.to_be_bytes())
    }

    /// Writes a variable-length integer in its shortest encoding (RFC 9000 §16).
    ///
    /// # Errors
    ///
    /// It does not fit.
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
    /// They do not fit.
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

    /// Replaces bytes written before.
    pub(crate) fn overwrite(&mut self, position: usize, bytes: &[u8]) -> Result<(), BufferFull> {
        let end = position.checked_add(bytes.len()).ok_or(BufferFull)?;
        self.written_mut()
            .get_mut(position..end)
            .ok_or(BufferFull)?
            .copy_from_slice(bytes);
        Ok(())
    }
}
