//! The bank: simulated paths, and what each algorithm did on each of them.

use crate::line::Line;

/// A simulated path: which of the bank's populations and which class of access it was drawn from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BankPath {
    /// The seed of the draw.
    pub seed: u64,
    /// The index of its population. Errors of the match are measured on whole populations that it has not seen.
    pub population: u32,
    /// The class of access.
    pub class: String,
}

/// Simulated paths and their lines under each arm.
#[derive(Clone, Debug, Default)]
pub struct Bank {
    paths: Vec<BankPath>,
    arms: Vec<(String, Vec<Option<Line>>)>,
}

impl Bank {
    /// A bank of these paths, without arms.
    #[must_use]
    pub const fn new(paths: Vec<BankPath>) -> Self {
        Self {
            paths,
            arms: Vec::new(),
        }
    }

    /// Adds an arm: the line of each path in their order, `None` where the transfer was not completed.
    ///
    /// # Panics
    ///
    /// Panics unless there is a line for each path.
    pub fn add_arm(&mut self, name: &str, lines: Vec<Option<Line>>) {
        assert_eq!(lines.len(), self.paths.len(), "a line for each path");
        self.arms.push((name.to_owned(), lines));
    }

    /// The paths.
    pub fn paths(&self) -> &[BankPath] {
        &self.paths
    }

    /// The lines of an arm, by path.
    pub fn lines(&self, arm: &str) -> Option<&[Option<Line>]> {
        let found = self.arms.iter().find(|(name, _)| name == arm);
        found.map(|(_, lines)| lines.as_slice())
    }

    /// The number of paths on which the transfer under this arm was not completed.
    pub fn incomplete(&self, arm: &str) -> usize {
        self.lines(arm).map_or(0, |lines| {
            lines.iter().filter(|line| line.is_none()).count()
        })
    }
}
