//! The bounds on memory.

use std::io::{self, Read, Seek, Write};

/// A limit on the memory that a run uses.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// Maximum number of bytes. A row that exceeds it is an error.
    pub bytes_max: u64,
    /// Returns the number of bytes that the process uses, or `None` if unknown.
    pub used: fn() -> Option<u64>,
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
