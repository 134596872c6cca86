//! Reorders received stream data (RFC 9000 §2.2).
//!
//! Owns the bytes that cannot be delivered yet, in one ring buffer per stream that exists only while there are such
//! bytes; rings return to a pool. No byte is delivered twice, out of order, or after it was discarded.
//!
//! Bounds: flow control, since the ring spans from the first unread byte to the highest offset received, which is what
//! flow control counts (§4.1); and a maximum number of gaps, since each costs memory and time of its own (§21.7). A
//! byte received twice may differ, and either is acceptable (§2.2): the last one is kept, unless it was delivered.

use std::{fmt, ops::Range};

use super::ranges::RangeSet;

#[cfg(test)]
mod tests;

/// The smallest ring, in bytes. An HTTP/3 client's control and QPACK streams start with a few dozen bytes.
const RING_MIN: usize = 256;

/// Unused rings.
#[derive(Default)]
pub(super) struct RingPool {
    free: Vec<Box<[u8]>>,
    bytes: usize,
    /// Those of streams that receive little, such as a request.
    small: Vec<Box<[u8]>>,
}

impl RingPool {
    /// Maximum size of a ring kept for the next stream, in bytes. Larger ones are freed.
    const BYTES_MAX: usize = 1 << 20;
    /// Smaller rings are kept apart: a stream that fills packets needs larger ones.
    const KEPT_MIN: usize = 2048;
    /// Maximum number of smaller rings.
    const SMALL_MAX: usize = 4;

    fn take(&mut self, len: usize) -> Box<[u8]> {
        if let Some(index) = self.small.iter().position(|ring| ring.len() >= len) {
            return self.small.swap_remove(index);
        }
        match self.free.iter().position(|ring| ring.len() >= len) {
            Some(index) => {
                let ring = self.free.swap_remove(index);
                self.bytes -= ring.len();
                ring
            }
            None => vec![0; len].into_boxed_slice(),
        }
    }

    /// Keeps the ring, and frees smaller ones instead: a large ring can replace those, and growing one again costs
    /// more.
    fn give(&mut self, ring: Box<[u8]>) {
        if ring.len() < Self::KEPT_MIN {
            self.give_small(ring);
            return;
        }
        if ring.len() > Self::BYTES_MAX {
            return;
        }
        self.bytes += ring.len();
        while self.bytes > Self::BYTES_MAX {
            let smaller = self.free.iter().position(|free| free.len() < ring.len());
            let Some(smaller) = smaller else {
                self.bytes -= ring.len();
                return;
            };
            self.bytes -= self.free.swap_remove(smaller).len();
        }
        self.free.push(ring);
    }

    fn give_small(&mut self, ring: Box<[u8]>) {
        if ring.is_empty() {
            return;
        }
        if self.small.len() < Self::SMALL_MAX {
            self.small.push(ring);
        } else if let Some(smaller) = self.small.iter_mut().find(|it| it.len() < ring.len()) {
            *smaller = ring;
        }
    }

    /// Frees all of them: future streams are not worth their memory.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

impl fmt::Debug for RingPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RingPool({} bytes)", self.bytes)
    }
}

/// More gaps than permitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooManyGaps;

#[derive(Default)]
pub(super) struct Assembler {
    /// All bytes before this offset have been read or discarded.
    read: u64,
    /// Received bytes from `read` on.
    held: RangeSet,
    /// The byte at `offset` is at `offset % ring.len()`. The length is a power of two, or 0.
    ring: Box<[u8]>,
    /// Only `held` is updated, since nothing will be read.
    discards: bool,
}

impl Assembler {
    pub(super) const fn read_offset(&self) -> u64 {
        self.read
    }

    /// End of the bytes received without a gap.
    pub(super) fn received_to(&self) -> u64 {
        match self.held.first() {
            Some(first) if first.start == self.read => first.end,
            _ => self.read,
        }
    }

    /// Whether all of these bytes have been received.
    pub(super) fn has(&self, bytes: Range<u64>) -> bool {
        bytes.end <= self.read || self.held.has(&(bytes.start.max(self.read)..bytes.end))
    }

    /// The memory of the ring in bytes.
    pub(super) fn memory(&self) -> usize {
        self.ring.len()
    }

    /// Adds received data. Bytes that were read before are skipped.
    pub(super) fn insert(
        &mut self,
        offset: u64,
        data: &[u8],
        gaps_max: usize,
        pool: &mut RingPool,
    ) -> Result<(), TooManyGaps> {
        let end = offset.saturating_add(data.len() as u64);
        let start = offset.max(self.read);
        let fresh = usize::try_from(start - offset)
            .ok()
            .and_then(|read| data.get(read..))
            .unwrap_or_default();
        if fresh.is_empty() {
            return Ok(());
        }
        if !self.discards {
            self.reach(end, pool);
            put(&mut self.ring, start, fresh);
        }
        self.held.insert(start..end);
        if self.discards {
            self.advance_to(self.received_to());
        }
        // The first range follows the read offset or a gap; each other follows a gap.
        if self.held.len() > gaps_max {
            return Err(TooManyGaps);
        }
        Ok(())
    }

    /// The next bytes in order, or some of them: up to where the ring wraps around.
    pub(super) fn peek(&self) -> &[u8] {
        let ready = self.received_to() - self.read;
        if ready == 0 || self.ring.is_empty() {
            return &[];
        }
        let at = place(self.ring.len(), self.read);
        let tail = self.ring.get(at..).unwrap_or_default();
        let len = usize::try_from(ready).map_or(tail.len(), |ready| ready.min(tail.len()));
        tail.get(..len).unwrap_or_default()
    }

    /// This many more bytes were read: those of [`Assembler::peek`], or in-order data that was never in the ring.
    pub(super) fn consume(&mut self, bytes: usize, pool: &mut RingPool) {
        self.advance_to(self.read.saturating_add(bytes as u64));
        self.release_if_empty(pool);
    }

    /// Nothing will be read: bytes are dropped, and only the received ranges are kept.
    pub(super) fn discard(&mut self, pool: &mut RingPool) {
        self.discards = true;
        self.advance_to(self.received_to());
        pool.give(std::mem::take(&mut self.ring));
    }

    fn advance_to(&mut self, offset: u64) {
        self.held.remove(0..offset);
        self.read = self.read.max(offset);
    }

    fn release_if_empty(&mut self, pool: &mut RingPool) {
        if self.held.is_empty() && !self.ring.is_empty() {
            if self.ring.len() < RingPool::KEPT_MIN {
                // A stream that receives little, and may receive no more.
                self.held = RangeSet::default();
            }
            pool.give(std::mem::take(&mut self.ring));
        }
    }

    /// Frees memory that is not in use. The ring is in use.
    pub(super) fn release_memory(&mut self) {
        self.held.release_memory();
    }

    /// Grows the ring to hold everything from the read offset to `end`.
    fn reach(&mut self, end: u64, pool: &mut RingPool) {
        let end = self.held.end().unwrap_or(end).max(end);
        let span = usize::try_from(end - self.read).unwrap_or(usize::MAX);
        if span <= self.ring.len() {
            return;
        }
        let len = span.checked_next_power_of_two().unwrap_or(span);
        let mut ring = pool.take(len.max(RING_MIN));
        for range in self.held.iter() {
            let mut offset = range.start;
            while offset < range.end {
                let at = place(self.ring.len(), offset);
                let tail = self.ring.get(at..).unwrap_or_default();
                let len =
                    usize::try_from(range.end - offset).map_or(tail.len(), |l| l.min(tail.len()));
                let Some(piece) = tail.get(..len).filter(|piece| !piece.is_empty()) else {
                    break;
                };
                put(&mut ring, offset, piece);
                offset += len as u64;
            }
        }
        pool.give(std::mem::replace(&mut self.ring, ring));
    }
}

impl fmt::Debug for Assembler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Assembler")
            .field("read", &self.read)
            .field("held", &self.held)
            .field("memory", &self.ring.len())
            .finish_non_exhaustive()
    }
}

/// Where in a ring of `len` bytes the byte at `offset` is.
fn place(len: usize, offset: u64) -> usize {
    // A ring is always shorter than 2^64 bytes, so the remainder fits.
    offset.checked_rem(len as u64).unwrap_or_default() as usize
}

/// Copies `data`, which is not longer than the ring, to its position.
fn put(ring: &mut [u8], offset: u64, data: &[u8]) {
    let at = place(ring.len(), offset);
    let (head, tail) = data.split_at(data.len().min(ring.len() - at));
    if let Some(slot) = ring.get_mut(at..at + head.len()) {
        slot.copy_from_slice(head);
    }
    if let Some(slot) = ring.get_mut(..tail.len()) {
        slot.copy_from_slice(tail);
    }
}
