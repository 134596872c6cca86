//! What a thread makes of a part of the input.

use crate::reducers::packed::PackedScope;
use crate::reducers::portable::PackedRow;

/// The outcome of a part, besides what was printed.
pub(super) enum Work {
    /// Nothing but what it printed.
    Printed,
    /// Rows for the next stage, with their lines within the part.
    Rows(Vec<(usize, PackedRow)>),
    Merge(PackedScope),
}

impl Work {
    /// About how many bytes it takes.
    pub(super) fn weight(&self) -> usize {
        match self {
            Work::Printed => 0,
            Work::Rows(rows) => rows.iter().map(|(_, row)| row.weight()).sum(),
            Work::Merge(scope) => scope.weight(),
        }
    }
}
