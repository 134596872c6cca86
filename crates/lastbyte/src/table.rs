//! Tables of text: columns two spaces apart, the first to the left, the others to the right.
//!
//! On a terminal that is narrower than a table, columns that do not fit follow below the others, and long texts are wrapped.

use core::fmt::Write as _;

use crate::terminal;

#[cfg(test)]
mod tests;

/// A table with a header.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
    /// Whether the first column names the row: it is repeated where columns follow below the others.
    is_named: bool,
    /// Whether the last column is text, to the left.
    ends_in_text: bool,
    /// Whether each column is to the left; by default, the one with names is.
    left: Vec<bool>,
}

/// The space between two columns.
const GAP: usize = 2;
/// Texts are not wrapped to fewer columns than this.
const TEXT_MIN: usize = 16;

impl Table {
    pub(crate) fn new(header: impl IntoIterator<Item: Into<String>>) -> Self {
        Self {
            rows: vec![header.into_iter().map(Into::into).collect()],
            is_named: true,
            ends_in_text: false,
            left: Vec::new(),
        }
    }

    /// The same with a last column of text.
    pub(crate) fn with_text(header: impl IntoIterator<Item: Into<String>>) -> Self {
        Self {
            ends_in_text: true,
            ..Self::new(header)
        }
    }

    /// The same whose rows have no name: the first column is one of the others.
    pub(crate) fn without_names(self) -> Self {
        Self {
            is_named: false,
            ..self
        }
    }

    /// The same with these columns to the left.
    pub(crate) fn with_left(self, left: Vec<bool>) -> Self {
        Self { left, ..self }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The lines, for stdout. Cells have one column for each character.
    pub(crate) fn text(&self) -> String {
        self.text_within(terminal::width())
    }

    /// The lines, within this width.
    fn text_within(&self, width: Option<usize>) -> String {
        let widths = self.widths();
        let blocks = match width {
            Some(width) => self.blocks(&widths, width),
            None => vec![(0..widths.len()).collect()],
        };
        let blocks = blocks
            .iter()
            .map(|columns| self.block(columns, &widths, width));
        blocks.collect::<Vec<_>>().join("\n\n")
    }

    fn widths(&self) -> Vec<usize> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let of_cell = |row: &Vec<String>, column: usize| {
            row.get(column).map_or(0, |cell| cell.chars().count())
        };
        let widths =
            (0..columns).map(|column| self.rows.iter().map(|row| of_cell(row, column)).max());
        widths.map(Option::unwrap_or_default).collect()
    }

    /// The columns of each block: as many as fit.
    fn blocks(&self, widths: &[usize], width: usize) -> Vec<Vec<usize>> {
        let mut blocks: Vec<Vec<usize>> = Vec::new();
        let mut taken = 0;
        for (column, &own) in widths.iter().enumerate() {
            let is_text = self.ends_in_text && column + 1 == widths.len();
            let own = if is_text { own.min(TEXT_MIN) } else { own };
            match blocks.last_mut() {
                Some(block)
                    if taken + GAP + own <= width || column < 1 + usize::from(self.is_named) =>
                {
                    block.push(column);
                    taken += GAP + own;
                }
                Some(_) if self.is_named => {
                    blocks.push(vec![0, column]);
                    taken = widths[0] + GAP + own;
                }
                _ => {
                    blocks.push(vec![column]);
                    taken = own;
                }
            }
        }
        blocks
    }

    /// The lines of some of the columns.
    fn block(&self, columns: &[usize], widths: &[usize], width: Option<usize>) -> String {
        let mut lines = Vec::new();
        for row in &self.rows {
            let (mut line, mut rest) = (String::new(), Vec::new());
            for (place, &column) in columns.iter().enumerate() {
                if place > 0 {
                    line.push_str("  ");
                }
                let Some(cell) = row.get(column) else {
                    continue;
                };
                let own = widths[column];
                if self.ends_in_text && column + 1 == widths.len() {
                    let at = line.chars().count();
                    let room =
                        width.map_or(usize::MAX, |width| width.saturating_sub(at).max(TEXT_MIN));
                    let mut pieces = wrapped(cell, room).into_iter();
                    line.push_str(&pieces.next().unwrap_or_default());
                    rest.extend(pieces.map(|piece| format!("{:at$}{piece}", "")));
                // Writing to a `String` does not fail.
                } else if self
                    .left
                    .get(column)
                    .copied()
                    .unwrap_or(column == 0 && self.is_named)
                {
                    let _ = write!(line, "{cell:<own$}");
                } else {
                    let _ = write!(line, "{cell:>own$}");
                }
            }
            lines.push(line.trim_end().to_owned());
            lines.extend(rest);
        }
        lines.join("\n")
    }
}

/// The lines of a text: broken at spaces, and within words that are longer than a line.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let (mut line, mut taken) = (String::new(), 0);
    for word in text.split(' ') {
        let len = word.chars().count();
        if taken > 0 && taken + 1 + len > width {
            lines.push(core::mem::take(&mut line));
            taken = 0;
        } else if taken > 0 {
            line.push(' ');
            taken += 1;
        }
        for character in word.chars() {
            if taken == width {
                lines.push(core::mem::take(&mut line));
                taken = 0;
            }
            line.push(character);
            taken += 1;
        }
    }
    lines.push(line);
    lines
}
