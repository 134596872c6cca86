//! A short history of values.

use alloc::vec::Vec;

/// The latest [`HISTORY_LEN`] values, each of which can be removed. Ages count from the newest, which is 0. Does not
/// allocate before the first value.
#[derive(Clone, Debug)]
pub(crate) struct History<T> {
    oldest_first: Vec<T>,
}

/// As many congestion events can be undone: adaptive loss thresholds need as many round trips to adapt to late packets.
const HISTORY_LEN: usize = 4;

impl<T> History<T> {
    pub(crate) const fn new() -> Self {
        Self {
            oldest_first: Vec::new(),
        }
    }

    /// Adds a value; replaces the oldest if full.
    pub(crate) fn push(&mut self, value: T) {
        if self.oldest_first.len() == HISTORY_LEN {
            self.oldest_first.remove(0);
        }
        self.oldest_first.push(value);
    }

    pub(crate) fn newest(&self) -> Option<&T> {
        self.oldest_first.last()
    }

    pub(crate) fn newest_mut(&mut self) -> Option<&mut T> {
        self.oldest_first.last_mut()
    }

    pub(crate) fn get_mut(&mut self, age: usize) -> Option<&mut T> {
        let index = self.index(age)?;
        self.oldest_first.get_mut(index)
    }

    /// Removes one; older ones become one younger.
    pub(crate) fn remove(&mut self, age: usize) -> Option<T> {
        let index = self.index(age)?;
        Some(self.oldest_first.remove(index))
    }

    fn index(&self, age: usize) -> Option<usize> {
        self.oldest_first.len().checked_sub(age + 1)
    }

    /// All of them, the newest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.oldest_first.iter().rev()
    }

    /// The lowest age for which this holds.
    pub(crate) fn position(&self, is_wanted: impl FnMut(&T) -> bool) -> Option<usize> {
        self.iter().position(is_wanted)
    }
}

impl<T> Default for History<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_latest_entries_in_order() {
        let mut history = History::new();
        (0..HISTORY_LEN as u32 + 3).for_each(|number| history.push(number));
        assert_eq!(history.iter().count(), HISTORY_LEN);
        assert_eq!(history.newest(), Some(&6));
        assert_eq!(history.remove(2), Some(4));
        assert_eq!(history.remove(0), Some(6));
        let left: Vec<u32> = history.iter().copied().collect();
        assert_eq!(left, [5, 3]);
        assert_eq!(history.remove(2), None);
        assert_eq!(history.position(|number| *number == 3), Some(1));
    }
}
