//! A file as the body of a response.
//!
//! Holds the open file and its attributes when it was found, and guarantees that only this content is sent as complete.
//! A file that is replaced by a new one with the same name is sent completely as it was. A file that is changed in
//! place or truncated is detected, and its response is reset. A change within the same tick of the file system's clock
//! as the opening, which does not change the length either, is not detected.
//!
//! A response that is read in order reads its file ahead, into a buffer of the thread's pool ([`read_ahead`]). Other
//! reads, such as those of retransmissions, read their own bytes only.

use std::{cell::Cell, sync::Arc};

use lastbyte_quic::stream::{Source, SourceError};
use lastbyte_wire::VarInt;
use rustix::io::{Errno, pread};

use super::{
    open_files::OpenFile,
    read_ahead::{self, BUFFER_LEN, Loan},
};

/// `H3_INTERNAL_ERROR` (RFC 9114 §8.1): a file that was changed while it was sent.
pub(super) const INTERNAL_ERROR: VarInt = VarInt::from_u32(0x102);

/// Bytes read between checks that the file is unchanged.
const CHECK_EVERY: u64 = 256 << 10;
/// Minimum read-ahead, in bytes.
const AHEAD_MIN: usize = 8 << 10;
/// Reads of at least this many bytes go directly to their destination.
const DIRECT_MIN: usize = 16 << 10;

/// An open file.
#[derive(Debug)]
pub(crate) struct FileSource {
    file: Arc<OpenFile>,
    /// The offset from which reads check that the file is unchanged; 0 for all.
    check_at: Cell<u64>,
    /// Where the next read starts, if the file is read in order.
    next: Cell<Option<u64>>,
    ahead: Cell<Option<Loan>>,
    /// How much to read ahead: halved if the buffer was passed to another response before all of it was sent, otherwise
    /// doubled.
    ahead_len: Cell<usize>,
}

impl FileSource {
    pub(super) const fn new(file: Arc<OpenFile>) -> Self {
        Self {
            file,
            check_at: Cell::new(CHECK_EVERY),
            next: Cell::new(Some(0)),
            ahead: Cell::new(None),
            ahead_len: Cell::new(BUFFER_LEN),
        }
    }

    /// Only parts of the file are read: each read checks that the file is unchanged, since any may be the last, and only
    /// from the second read in order is anything read ahead.
    pub(super) fn in_parts(self) -> Self {
        self.check_at.set(0);
        self.next.set(None);
        self
    }

    /// Returns whether it read ahead.
    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<bool, Errno> {
        let is_next = self.next.get() == Some(offset);
        let mut has_read_ahead = false;
        let mut offset = offset;
        let mut rest = buffer;
        while !rest.is_empty() {
            if let Some(count) = self.copy(offset, rest) {
                offset += count as u64;
                rest = rest.get_mut(count..).unwrap_or_default();
            } else if is_next && self.read_ahead(offset, rest.len())? {
                has_read_ahead = true;
            } else {
                read_exact(&self.file, offset, rest)?;
                offset += rest.len() as u64;
                rest = &mut [];
            }
        }
        if self.next.get().is_none_or(|next| next < offset) {
            self.next.set(Some(offset));
        }
        Ok(has_read_ahead)
    }

    /// Copies bytes that were read ahead. Returns how many; `None` if there are none.
    fn copy(&self, offset: u64, buffer: &mut [u8]) -> Option<usize> {
        let loan = self.ahead.get()?;
        if offset < loan.start {
            return None;
        }
        let left = loan.end.checked_sub(offset).filter(|left| *left > 0);
        let Some(left) = left else {
            // The reader continued elsewhere.
            self.end_loan();
            return None;
        };
        let count = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
        if !read_ahead::copy(&loan, offset, buffer.get_mut(..count)?) {
            self.ahead.set(None);
            self.ahead_len
                .set((self.ahead_len.get() / 2).max(AHEAD_MIN));
            return None;
        }
        if count as u64 == left {
            self.end_loan();
            self.ahead_len
                .set((self.ahead_len.get() * 2).min(BUFFER_LEN));
        }
        Some(count)
    }

    /// Reads ahead, if that is worth it for a read of `wanted` bytes, and a buffer is free.
    fn read_ahead(&self, offset: u64, wanted: usize) -> Result<bool, Errno> {
        let left = self.len().saturating_sub(offset);
        let len = usize::try_from(left).map_or(BUFFER_LEN, |left| left.min(self.ahead_len.get()));
        if len <= wanted || wanted >= DIRECT_MIN {
            return Ok(false);
        }
        let fill = |buffer: &mut [u8]| read_exact(&self.file, offset, buffer);
        let Some(loan) = read_ahead::lend(offset, len, fill) else {
            return Ok(false);
        };
        self.ahead.set(Some(loan?));
        Ok(true)
    }

    fn end_loan(&self) {
        if let Some(loan) = self.ahead.take() {
            read_ahead::return_loan(&loan);
        }
    }
}

fn read_exact(file: &OpenFile, offset: u64, buffer: &mut [u8]) -> Result<(), Errno> {
    let mut offset = offset;
    let mut rest = buffer;
    while !rest.is_empty() {
        match pread(file, &mut *rest, offset) {
            // It was truncated.
            Ok(0) => return Err(Errno::IO),
            Ok(count) => {
                offset += count as u64;
                rest = rest.get_mut(count..).unwrap_or_default();
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

impl Source for FileSource {
    fn len(&self) -> u64 {
        self.file.key().identity.len
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), SourceError> {
        let changed = |_| SourceError {
            code: INTERNAL_ERROR,
        };
        let has_read_ahead = self.read(offset, buffer).map_err(changed)?;
        // Checked after reading: bytes read before the change belong to the old content. The last bytes of the file are
        // checked in any case.
        let end = offset + buffer.len() as u64;
        if has_read_ahead || end >= self.check_at.get() || end == self.len() {
            if !self.file.is_unchanged() {
                return Err(changed(Errno::STALE));
            }
            // After the end, every read is checked: retransmitted bytes must be the same.
            if end == self.len() {
                self.check_at.set(0);
            } else if self.check_at.get() > 0 {
                self.check_at.set(end + CHECK_EVERY);
            }
        }
        Ok(())
    }
}

impl Drop for FileSource {
    fn drop(&mut self) {
        self.end_loan();
    }
}

#[cfg(test)]
mod tests;
