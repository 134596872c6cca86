//! A file as the body of a response.
//!
//! Owns: the open file, what it was when it was opened, and the promise that what is sent is that. A file that is replaced
//! (a new one under its name) goes on to be sent as it was. One that is changed in place, or cut short, is noticed: its
//! response is reset and never ends as if it were whole. As far as clocks tell: a change within the same tick of the file
//! system's clock as the opening, which does not change the length either, goes unnoticed.

use std::{cell::Cell, sync::Arc};

use lastbyte_quic::stream::{Source, SourceError};
use lastbyte_wire::VarInt;
use rustix::{
    fs::fstat,
    io::{Errno, pread},
};

use super::{file_identity::Identity, open_files::OpenFile};

/// `H3_INTERNAL_ERROR` (RFC 9114 §8.1): a file that was changed while it was sent.
pub(super) const INTERNAL_ERROR: VarInt = VarInt::from_u32(0x102);

/// Bytes read between checks that the file is unchanged.
const CHECK_EVERY: u64 = 256 << 10;

/// An open file.
#[derive(Debug)]
pub(crate) struct FileSource {
    file: Arc<OpenFile>,
    identity: Identity,
    /// From this offset on it is to be looked whether the file is still the same; 0 for always.
    check_at: Cell<u64>,
}

impl FileSource {
    pub(super) const fn new(file: Arc<OpenFile>, identity: Identity) -> Self {
        Self {
            file,
            identity,
            check_at: Cell::new(CHECK_EVERY),
        }
    }

    /// Looks at each read, since parts of it are wanted and nobody knows here which is the last.
    pub(super) fn in_parts(self) -> Self {
        self.check_at.set(0);
        self
    }

    pub(super) const fn identity(&self) -> Identity {
        self.identity
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), Errno> {
        let mut offset = offset;
        let mut rest = buffer;
        while !rest.is_empty() {
            match pread(&self.file, &mut *rest, offset) {
                // It was cut short.
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
}

impl Source for FileSource {
    fn len(&self) -> u64 {
        self.identity.len
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), SourceError> {
        let changed = |_| SourceError {
            code: INTERNAL_ERROR,
        };
        self.read(offset, buffer).map_err(changed)?;
        // Looked at after reading: what was read before the file was changed is what it was. The last bytes of the file are
        // looked at in any case.
        let end = offset + buffer.len() as u64;
        if end >= self.check_at.get() || end == self.identity.len {
            let stat = fstat(&self.file).map_err(changed)?;
            if Identity::of(&stat) != self.identity {
                return Err(changed(Errno::STALE));
            }
            // From the end on, every read is looked at: bytes that are sent again have to be the same, too.
            if end == self.identity.len {
                self.check_at.set(0);
            } else if self.check_at.get() > 0 {
                self.check_at.set(end + CHECK_EVERY);
            }
        }
        Ok(())
    }
}
