//! Data to be sent on a stream: written bytes and sources, one after the other.
//!
//! Owns the data from the first unacknowledged byte to the last known one. A response is, for example, a written
//! header, a file, and written trailers, of which only the written parts take memory. Bytes are released in order, once
//! all bytes before them are acknowledged; sources likewise, as a whole.
//!
//! Bounds: the send buffer for written bytes, [`PARTS_MAX`] for parts.

use std::{collections::VecDeque, fmt, ops::Range};

use super::source::{Source, SourceError};

#[cfg(test)]
mod tests;

/// Maximum number of unacknowledged parts.
pub(super) const PARTS_MAX: usize = 64;
/// The memory of a written part is reused from this many bytes on.
const REUSED_MIN: usize = 1024;

enum Part {
    Written(VecDeque<u8>),
    Source(Box<dyn Source>, u64),
}

impl Part {
    fn len(&self) -> u64 {
        match self {
            Self::Written(bytes) => bytes.len() as u64,
            // Read once: a source whose length changes must not shift what follows it.
            Self::Source(_, len) => *len,
        }
    }

    /// Fills `buffer` from `offset` within the part.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), SourceError> {
        match self {
            Self::Written(bytes) => {
                let from = usize::try_from(offset)
                    .unwrap_or(usize::MAX)
                    .min(bytes.len());
                let (front, back) = bytes.as_slices();
                let front = front.get(from..).unwrap_or_default();
                let back = back
                    .get(from.saturating_sub(bytes.as_slices().0.len())..)
                    .unwrap_or_default();
                let (head, tail) = buffer.split_at_mut(front.len().min(buffer.len()));
                for (slot, piece) in [(head, front), (tail, back)] {
                    let len = slot.len();
                    if let Some(piece) = piece.get(..len) {
                        slot.copy_from_slice(piece);
                    }
                }
                Ok(())
            }
            Self::Source(source, _) => source.read_at(offset, buffer),
        }
    }
}

#[derive(Default)]
pub(super) struct Body {
    /// The offset of the first byte of the first part.
    start: u64,
    end: u64,
    /// The first part, since most streams have no more at a time.
    first: Option<Part>,
    /// The parts after it.
    rest: VecDeque<Part>,
    /// Bytes in the written parts.
    written: usize,
}

impl Body {
    /// The offset at which the data known so far ends.
    pub(super) const fn end(&self) -> u64 {
        self.end
    }

    /// Number of written bytes buffered.
    pub(super) const fn written(&self) -> usize {
        self.written
    }

    pub(super) fn has_room_for_part(&self) -> bool {
        self.has_room_for_parts(1)
    }

    pub(super) fn has_room_for_parts(&self, count: usize) -> bool {
        self.parts() + count <= PARTS_MAX
    }

    fn parts(&self) -> usize {
        usize::from(self.first.is_some()) + self.rest.len()
    }

    fn append(&mut self, part: Part) {
        if self.first.is_none() {
            self.first = Some(part);
        } else {
            self.rest.push_back(part);
        }
    }

    /// Appends bytes. The caller ensures that there is room.
    pub(super) fn write(&mut self, bytes: &[u8]) {
        match self.rest.back_mut().or(self.first.as_mut()) {
            Some(Part::Written(last)) => last.extend(bytes),
            _ => self.append(Part::Written(bytes.iter().copied().collect())),
        }
        self.written += bytes.len();
        self.end = self.end.saturating_add(bytes.len() as u64);
    }

    pub(super) fn push(&mut self, source: Box<dyn Source>) {
        let len = source.len();
        if len > 0 {
            self.end = self.end.saturating_add(len);
            self.append(Part::Source(source, len));
        }
    }

    /// Fills `buffer` with the bytes from `offset` on, which must exist.
    pub(super) fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), SourceError> {
        // Usually there is one part, or the first contains everything.
        if let Some(part) = &self.first
            && offset.saturating_add(buffer.len() as u64) <= self.start.saturating_add(part.len())
        {
            return part.read_at(offset.saturating_sub(self.start), buffer);
        }
        let mut part_start = self.start;
        let mut wanted = Range {
            start: offset,
            end: offset.saturating_add(buffer.len() as u64),
        };
        debug_assert!(
            self.start <= wanted.start && wanted.end <= self.end,
            "no such data"
        );
        let mut rest = buffer;
        for part in self.first.iter().chain(&self.rest) {
            let part_end = part_start.saturating_add(part.len());
            if wanted.start < part_end {
                let len = wanted.end.min(part_end).saturating_sub(wanted.start);
                let len = usize::try_from(len).map_or(rest.len(), |len| len.min(rest.len()));
                let (piece, behind) = rest.split_at_mut(len);
                part.read_at(wanted.start.saturating_sub(part_start), piece)?;
                wanted.start = part_end;
                rest = behind;
                if rest.is_empty() {
                    break;
                }
            }
            part_start = part_end;
        }
        Ok(())
    }

    /// All bytes before `offset` are acknowledged.
    pub(super) fn release(&mut self, offset: u64) {
        while let Some(part) = &mut self.first {
            let done = offset.saturating_sub(self.start);
            let len = part.len();
            match part {
                Part::Written(bytes) => {
                    let gone = usize::try_from(done).map_or(bytes.len(), |d| d.min(bytes.len()));
                    bytes.drain(..gone);
                    self.written = self.written.saturating_sub(gone);
                    self.start += gone as u64;
                    // A long one is kept if it is the last, since the next write reuses its memory.
                    if done < len || (self.rest.is_empty() && bytes.capacity() >= REUSED_MIN) {
                        return;
                    }
                }
                Part::Source(..) if done < len => return,
                Part::Source(..) => self.start += len,
            }
            self.first = self.rest.pop_front();
        }
    }

    /// Frees buffers that are empty.
    pub(super) fn release_memory(&mut self) {
        if self.parts() == 1
            && let Some(Part::Written(bytes)) = &self.first
            && bytes.is_empty()
        {
            self.first = None;
        }
        self.rest.shrink_to_fit();
    }

    /// Nothing will be sent any more: frees all memory.
    pub(super) fn clear(&mut self) {
        *self = Self {
            start: self.end,
            end: self.end,
            ..Self::default()
        };
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body")
            .field("start", &self.start)
            .field("end", &self.end)
            .field("parts", &self.parts())
            .field("written", &self.written)
            .finish_non_exhaustive()
    }
}
