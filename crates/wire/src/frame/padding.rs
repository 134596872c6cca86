//! PADDING frames (RFC 9000 §19.1).

use core::num::NonZeroUsize;

use crate::{BufferFull, Encode, Reader, Writer};

#[cfg(test)]
mod tests;

/// A run of PADDING frames (RFC 9000 §19.1). Each is a single zero byte; taken one by one they would be slow and of no
/// use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Padding {
    /// How many frames, and as many bytes.
    pub len: NonZeroUsize,
}

impl Padding {
    /// The first frame of the run has been read; takes the others.
    pub(super) fn decode(reader: &mut Reader<'_>) -> Self {
        let len = leading_zeros(reader.rest());
        // As many are left, since they were just counted.
        let len = reader.bytes(len).map_or(0, <[u8]>::len);
        Self {
            len: NonZeroUsize::MIN.saturating_add(len),
        }
    }
}

/// How many zero bytes come first. Eight at a time: a client's first datagram is mostly these.
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
