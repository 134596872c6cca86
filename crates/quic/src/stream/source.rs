//! Sources of stream data that need not be buffered: they can be read again at any offset.
//!
//! Owns the trait and its implementation for bytes in memory. Files and generated data implement it elsewhere. A stream
//! reads a source directly into the packet, and reads it again if the packet is lost, so nothing is buffered (RFC 9000
//! §13.3 requires that retransmitted data is the same).

use std::sync::Arc;

use lastbyte_wire::VarInt;

/// Data of known length that can be read again at an offset.
///
/// Reading must not block: a file should be in the page cache, or on a fast disk. The bytes at an offset must stay the
/// same (RFC 9000 §2.2).
pub trait Source: Send {
    /// The number of bytes. It must not change.
    fn len(&self) -> u64;

    /// Fills all of `buffer` with the bytes from `offset` on; `offset` + `buffer.len()` is at most [`Source::len`].
    ///
    /// # Errors
    ///
    /// Returns [`SourceError`] if the bytes cannot be read. The stream is then reset with its code.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), SourceError>;

    /// All bytes, if they are in memory and can be shared, for a transport that sends them without a copy. Default: none.
    fn share(&self) -> Option<Arc<[u8]>> {
        None
    }

    /// Whether there are no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A source cannot be read, for example because the file was truncated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot read the source (code {:#x})", .code.get())]
pub struct SourceError {
    /// The application's error code to reset the stream with.
    pub code: VarInt,
}

fn copy(bytes: &[u8], offset: u64, buffer: &mut [u8]) -> Result<(), SourceError> {
    let from = usize::try_from(offset).ok();
    let found = from
        .and_then(|from| bytes.get(from..))
        .and_then(|rest| rest.get(..buffer.len()));
    match found {
        Some(found) => {
            buffer.copy_from_slice(found);
            Ok(())
        }
        None => Err(SourceError { code: VarInt::ZERO }),
    }
}

impl Source for Arc<[u8]> {
    fn len(&self) -> u64 {
        (**self).len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), SourceError> {
        copy(self, offset, buffer)
    }

    fn share(&self) -> Option<Arc<[u8]>> {
        Some(Self::clone(self))
    }
}

impl Source for Vec<u8> {
    fn len(&self) -> u64 {
        self.as_slice().len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), SourceError> {
        copy(self, offset, buffer)
    }
}

impl Source for &'static [u8] {
    fn len(&self) -> u64 {
        (**self).len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), SourceError> {
        copy(self, offset, buffer)
    }
}
