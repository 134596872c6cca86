//! The latest few of a kind.

/// The latest eight values, of which each may be taken out. Ages count from the newest, which is 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct History<T> {
    newest_first: [Option<T>; HISTORY_LEN],
}

/// As many congestion events can be undone: adaptive loss thresholds learn within as many round trips to wait for packets
/// that are late (RFC 9002 §6.1).
const HISTORY_LEN: usize = 8;

impl<T> History<T> {
    pub(crate) const fn new() -> Self {
        Self {
            newest_first: [const { None }; HISTORY_LEN],
        }
    }

    /// A new one; the oldest makes room for it.
    pub(crate) fn push(&mut self, value: T) {
        self.newest_first.rotate_right(1);
        if let Some(newest) = self.newest_first.first_mut() {
            *newest = Some(value);
        }
    }

    pub(crate) fn newest(&self) -> Option<&T> {
        self.newest_first.first()?.as_ref()
    }

    pub(crate) fn newest_mut(&mut self) -> Option<&mut T> {
        self.get_mut(0)
    }

    pub(crate) fn get_mut(&mut self, age: usize) -> Option<&mut T> {
        self.newest_first.get_mut(age)?.as_mut()
    }

    /// Takes one out; those older are one younger from then on.
    pub(crate) fn remove(&mut self, age: usize) -> Option<T> {
        let older = self.newest_first.get_mut(age..)?;
        let taken = older.first_mut()?.take();
        older.rotate_left(1);
        taken
    }

    /// All of them, the newest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.newest_first.iter().flatten()
    }

    /// The age of the first, from the newest, for which this holds.
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
    fn keeps_the_latest_in_order() {
        let mut history = History::new();
        (0..HISTORY_LEN as u32 + 3).for_each(|number| history.push(number));
        assert_eq!(history.iter().count(), HISTORY_LEN);
        assert_eq!(history.newest(), Some(&10));
        assert_eq!(history.remove(2), Some(8));
        assert_eq!(history.remove(0), Some(10));
        let left: Vec<u32> = history.iter().copied().collect();
        assert_eq!(left, [9, 7, 6, 5, 4, 3]);
        assert_eq!(history.remove(6), None);
        assert_eq!(history.position(|number| *number == 5), Some(3));
    }
}
