//! `-o table`: records as columns that fit the terminal.

use crate::table::Table;
use lastbyte_query::Value;
use std::ops::ControlFlow;

#[cfg(test)]
mod tests;

/// Maximum number of records, and of cells.
const ROWS_MAX: usize = 1000;
const CELLS_MAX: usize = 100_000;

/// Characters of a cell that are shown at least.
const CELL_MIN: usize = 40;

/// The first records of a result.
pub(super) struct Records {
    /// Characters of a cell at most.
    cell_max: usize,
    width: usize,
    names: Vec<String>,
    /// Cells, with whether each is that of a text.
    rows: Vec<Vec<(String, bool)>>,
    /// There are records that are not shown.
    pub(super) is_cut: bool,
}

impl Records {
    /// Records for a terminal of this number of columns.
    pub(super) fn new(width: usize) -> Self {
        Self {
            cell_max: 0,
            width,
            names: Vec::new(),
            rows: Vec::new(),
            is_cut: false,
        }
    }

    /// Adds a record, unless there are too many.
    pub(super) fn push(&mut self, names: &[String], fields: &[Value]) -> ControlFlow<()> {
        if self.names.is_empty() {
            self.cell_max = (self.width / names.len().max(1)).max(CELL_MIN);
            let shown = names.iter().map(|name| shown(name, self.cell_max));
            self.names = shown.collect();
        }
        self.is_cut = self.rows.len() >= ROWS_MAX || self.rows.len() * names.len() >= CELLS_MAX;
        if self.is_cut {
            return ControlFlow::Break(());
        }
        let cells = fields.iter().map(|field| match field {
            Value::Null => (String::new(), false),
            Value::String(text) => (shown(text, self.cell_max), true),
            Value::Integer(_) | Value::BigInteger(_) | Value::Float(_) => {
                (shown(&field.to_string(), self.cell_max), false)
            }
            other => (shown(&other.to_string(), self.cell_max), true),
        });
        self.rows.push(cells.collect());
        ControlFlow::Continue(())
    }

    /// The table; a single record has a line for each field. `None` without records.
    pub(super) fn table(self) -> Option<Table> {
        if let [record] = &self.rows[..]
            && record.len() > 1
        {
            let has_text = record.iter().any(|(_, is_text)| *is_text);
            let mut table = Table::new(["key", "value"]).with_left(vec![true, has_text]);
            for (name, (cell, _)) in self.names.into_iter().zip(record) {
                table.row([name, cell.clone()]);
            }
            return Some(table);
        }
        let is_text = |column: usize| {
            let mut rows = self.rows.iter();
            rows.any(|row| row.get(column).is_some_and(|(_, is_text)| *is_text))
        };
        let left = (0..self.names.len()).map(is_text).collect();
        let mut table = Table::new(self.names).with_left(left);
        for row in &self.rows {
            table.row(row.iter().map(|(cell, _)| cell.clone()));
        }
        (!self.rows.is_empty()).then_some(table)
    }
}

/// A text on one line, with `…` where it is cut.
pub(super) fn shown(text: &str, max: usize) -> String {
    let mut shown = String::new();
    let mut count = 0;
    for character in text.chars() {
        let piece = if character.is_control() {
            character.escape_default().to_string()
        } else {
            character.to_string()
        };
        count += piece.chars().count();
        if count > max {
            // Without the last character that fits, for the mark.
            while shown.chars().count() >= max {
                shown.pop();
            }
            shown.push('…');
            break;
        }
        shown.push_str(&piece);
    }
    shown
}
