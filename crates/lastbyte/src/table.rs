//! Tables of text: columns two spaces apart, the first to the left, the others to the right.

/// A table with a header.
pub(crate) struct Table(Vec<Vec<String>>);

impl Table {
    pub(crate) fn new(header: impl IntoIterator<Item: Into<String>>) -> Self {
        Self(vec![header.into_iter().map(Into::into).collect()])
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.0.push(cells.into_iter().collect());
    }

    /// The lines. Cells have one column for each character.
    pub(crate) fn text(&self) -> String {
        let columns = self.0.iter().map(Vec::len).max().unwrap_or(0);
        let len = |row: &Vec<String>, column| {
            row.get(column)
                .map_or(0, |cell: &String| cell.chars().count())
        };
        let widths = (0..columns).map(|column| self.0.iter().map(|row| len(row, column)).max());
        let widths: Vec<usize> = widths.map(Option::unwrap_or_default).collect();
        let line = |row: &Vec<String>| {
            let cells = row.iter().zip(&widths).enumerate();
            let cells = cells.map(|(column, (cell, &width))| match column {
                0 => format!("{cell:<width$}"),
                _ => format!("{cell:>width$}"),
            });
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        self.0.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::Table;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(["arm", "p50", ""]);
        table.row(["a".to_owned(), "–".to_owned(), "1".to_owned()]);
        table.row(["longer".to_owned(), "100 ms".to_owned(), String::new()]);
        let expected = "arm        p50\na            –  1\nlonger  100 ms";
        assert_eq!(table.text(), expected);
    }
}
