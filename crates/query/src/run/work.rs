//! The work of a thread on a part of the input.

use crate::reducers::packed::PackedScope;
use crate::reducers::portable::PackedRow;

/// The outcome of a part, besides its output.
pub(super) enum Work {
    /// Output only.
    Printed,
    /// Rows for the next stage, with their lines within the part.
    Rows(Vec<(usize, PackedRow)>),
    Merge(PackedScope),
}

impl Work {
    /// Its approximate size, in bytes.
    pub(super) fn weight(&self) -> usize {
        match self {
            Work::Printed => 0,
            Work::Rows(rows) => rows.iter().map(|(_, row)| row.weight()).sum(),
            Work::Merge(scope) => scope.weight(),
        }
    }
}
