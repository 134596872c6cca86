//! PADDING frames (RFC 9000 §19.1).

use core::num::NonZeroUsize;

use crate::{BufferFull, Encode, Reader, Writer};

#[cfg(test)]
mod tests;

/// Consecutive PADDING frames (RFC 9000 §19.1). Each is a single zero byte; decoding them one by one would be slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Padding {
    /// The number of frames, which is also their length in bytes.
    pub len: NonZeroUsize,
}

impl Padding {
    /// Decodes the remaining frames after the first.
    pub(super) fn decode(reader: &mut Reader<'_>) -> Self {
        let len = leading_zeros(reader.rest());
        // Cannot fail: `len` bytes have just been counted in the rest.
        let len = reader.bytes(len).map_or(0, <[u8]>::len);
        Self {
            len: NonZeroUsize::MIN.saturating_add(len),
        }
    }
}

/// The number of leading zero bytes. Compares eight at a time, because most of a client's first datagram is PADDING.
fn leading_zeros(bytes: &[u8]) -> usize {
    let words = bytes
        .chunks_exact(8)
        .take_while(|word| **word == [0; 8])
        .count();
    let rest = bytes.iter().skip(words * 8);
    words * 8 + rest.take_while(|byte| **byte == 0).count()
}

impl Encode for Padding {
    fn encoded_len(&self) -> usize {
        self.len.get()
    }

    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), BufferFull> {
        writer.zeros(self.len.get())
    }
}
