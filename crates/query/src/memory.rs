//! The bound on memory.

/// A limit on the memory that a run uses.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// Maximum number of bytes. A row that exceeds it is an error.
    pub bytes_max: u64,
    /// Returns the number of bytes that the process uses, or `None` if unknown.
    pub used: fn() -> Option<u64>,
}
