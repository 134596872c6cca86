//! The bound on memory.

/// A bound on the memory that a run may use.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// Beyond so many bytes a row is an error.
    pub bytes_max: u64,
    /// How many bytes the process uses; `None` when that is not known.
    pub used: fn() -> Option<u64>,
}
