//! Buffers for reading files ahead.
//!
//! Each thread has one pool of at most [`BUFFERS_MAX`] buffers of [`BUFFER_LEN`] bytes, whatever the number of
//! responses. A response holds a buffer only while a part of its content is unsent. A buffer that was not used for
//! [`IDLE_READS`] reads of the thread belongs to a stalled response, and is given to the next response that needs one;
//! so stalled responses cost no memory, and at most one read per `IDLE_READS` reads and buffer is repeated.

use std::{
    cell::RefCell,
    sync::atomic::{AtomicU64, Ordering},
};

use rustix::io::Errno;

/// The size of a buffer, in bytes.
pub(super) const BUFFER_LEN: usize = 64 << 10;
/// Maximum number of buffers of a thread: 4 MiB.
pub(super) const BUFFERS_MAX: usize = 64;
/// The number of reads on a thread after which a buffer counts as idle.
const IDLE_READS: u64 = 1024;

thread_local! {
    static POOL: RefCell<Pool> = const { RefCell::new(Pool::new()) };
}

/// The numbers of loans, over all threads: a source may move from one thread to another.
static LOANS: AtomicU64 = AtomicU64::new(1);

/// A part of a file in a buffer of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Loan {
    /// The index of the buffer in its pool.
    index: usize,
    number: u64,
    /// The offset of the first byte in the file.
    pub(super) start: u64,
    pub(super) end: u64,
}

struct Pool {
    buffers: Vec<Buffer>,
    /// Indices of free buffers; the last one returned, which is likely in the CPU's cache, is used first.
    free: Vec<usize>,
    reads: u64,
}

struct Buffer {
    bytes: Box<[u8]>,
    /// The loan; 0 if it is not lent.
    number: u64,
    /// The count of reads at its last use.
    used_at: u64,
}

/// Fills a buffer from the pool with `fill`, and lends it. `None` if all buffers are in use.
pub(super) fn lend(
    start: u64,
    len: usize,
    fill: impl FnOnce(&mut [u8]) -> Result<(), Errno>,
) -> Option<Result<Loan, Errno>> {
    POOL.with_borrow_mut(|pool| {
        pool.reads += 1;
        let index = pool.find()?;
        let buffer = pool.buffers.get_mut(index)?;
        let place = buffer.bytes.get_mut(..len)?;
        buffer.number = LOANS.fetch_add(1, Ordering::Relaxed);
        buffer.used_at = pool.reads;
        let loan = Loan {
            index,
            number: buffer.number,
            start,
            end: start + len as u64,
        };
        match fill(place) {
            Ok(()) => Some(Ok(loan)),
            Err(error) => {
                pool.take_back(&loan);
                Some(Err(error))
            }
        }
    })
}

/// Copies from a loan. `false` if the buffer was given to another response, or belongs to another thread.
pub(super) fn copy(loan: &Loan, offset: u64, into: &mut [u8]) -> bool {
    POOL.with_borrow_mut(|pool| {
        pool.reads += 1;
        let from = (offset - loan.start) as usize;
        let Some(buffer) = pool.buffers.get_mut(loan.index) else {
            return false;
        };
        let Some(bytes) = buffer.bytes.get(from..from + into.len()) else {
            return false;
        };
        if buffer.number != loan.number {
            return false;
        }
        into.copy_from_slice(bytes);
        buffer.used_at = pool.reads;
        true
    })
}

/// Returns a loan to the pool. Has no effect if the buffer was given to another response, or belongs to another thread.
pub(super) fn return_loan(loan: &Loan) {
    // A thread that ends may have dropped its pool already.
    let _ = POOL.try_with(|pool| pool.borrow_mut().take_back(loan));
}

impl Pool {
    const fn new() -> Self {
        Self {
            buffers: Vec::new(),
            free: Vec::new(),
            reads: 0,
        }
    }

    /// The index of a buffer that can be lent.
    fn find(&mut self) -> Option<usize> {
        if let Some(index) = self.free.pop() {
            return Some(index);
        }
        if self.buffers.len() < BUFFERS_MAX {
            self.buffers.push(Buffer {
                bytes: vec![0; BUFFER_LEN].into_boxed_slice(),
                number: 0,
                used_at: 0,
            });
            return Some(self.buffers.len() - 1);
        }
        let (index, idlest) = self
            .buffers
            .iter()
            .enumerate()
            .min_by_key(|(_, buffer)| buffer.used_at)?;
        (self.reads - idlest.used_at >= IDLE_READS).then_some(index)
    }

    fn take_back(&mut self, loan: &Loan) {
        if let Some(buffer) = self.buffers.get_mut(loan.index)
            && buffer.number == loan.number
        {
            buffer.number = 0;
            self.free.push(loan.index);
        }
    }
}

#[cfg(test)]
mod tests;
