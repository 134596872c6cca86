//! The bounds on memory, and what ends a run.

use std::io::{self, Read, Seek, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::class::Class;
use crate::value::exception::{Eval, error};

/// A limit on the memory that a run uses.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// Maximum number of bytes. A row that exceeds it is an error.
    pub bytes_max: u64,
    /// Returns the number of bytes that the process uses, or `None` if unknown.
    pub used: fn() -> Option<u64>,
}

/// What ends a run while it works on a row.
#[derive(Clone, Default)]
pub(crate) struct Bounds {
    /// Memory limit.
    pub(crate) memory: Option<Memory>,
    /// Set to end the run.
    pub(crate) interrupt: Option<Arc<AtomicBool>>,
}

impl Bounds {
    /// Returns an error if the run is to end, or would use too much memory with this number of bytes more.
    #[cold]
    pub(crate) fn check(&self, bytes: usize) -> Eval<()> {
        if let Some(interrupt) = &self.interrupt
            && interrupt.load(Ordering::Relaxed)
        {
            return Err(error(Class::Interrupt, ""));
        }
        let Some(memory) = self.memory else {
            return Ok(());
        };
        let used = (memory.used)().map(|used| used.saturating_add(bytes as u64));
        match used {
            Some(used) if used > memory.bytes_max => Err(error(
                Class::NoMemoryError,
                format!(
                    "{used} bytes of memory are used (expected at most {})",
                    memory.bytes_max
                ),
            )),
            _ => Ok(()),
        }
    }
}

/// A text that grows within bounds, which are checked from time to time.
pub(crate) struct Growth<'a> {
    bounds: &'a Bounds,
    /// Its length at the last check.
    checked: usize,
}

/// Bytes between two checks.
const GROWTH: usize = 1 << 20;

impl<'a> Growth<'a> {
    /// Of a text of this length.
    pub(crate) const fn of(bounds: &'a Bounds, len: usize) -> Self {
        Self {
            bounds,
            checked: len,
        }
    }

    /// Of another text, with the same bounds.
    pub(crate) const fn of_another(&self) -> Self {
        Self::of(self.bounds, 0)
    }

    /// The limit of a text, which is called with its length.
    pub(crate) fn limit(mut self) -> impl FnMut(usize) -> Eval<()> {
        move |len| self.to(len)
    }

    /// The text has this length now.
    #[inline]
    pub(crate) fn to(&mut self, len: usize) -> Eval<()> {
        if len < self.checked.saturating_add(GROWTH) {
            return Ok(());
        }
        self.checked = len;
        self.bounds.check(0)
    }
}

/// Temporary files for the rows of `sort` and of groups beyond a limit.
#[derive(Clone, Debug)]
pub struct Spill {
    /// Maximum number of bytes of rows in memory, for each `sort`; the groups of a stage may take half as many again.
    pub bytes_max: u64,
    /// The directory of the files, for errors.
    pub directory: String,
    /// Creates an empty file that disappears when it is closed.
    pub create: fn() -> io::Result<Box<dyn TemporaryFile>>,
}

/// A file that is written and then read.
pub trait TemporaryFile: Read + Write + Seek {}

impl<T: Read + Write + Seek> TemporaryFile for T {}
