//! Connections by handle.
//!
//! Owns the slots, and the generation by which a stale handle is detected.

use core::{fmt, ops::Range};

#[cfg(test)]
mod tests;

/// Identifies a connection of one endpoint. After the connection is removed the handle is invalid, even if its slot is
/// reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle {
    index: u32,
    generation: u32,
}

impl Handle {
    /// A number below the highest number of simultaneous connections so far, for tables beside the endpoint's. It is
    /// reused once this connection is removed.
    pub const fn index(self) -> u32 {
        self.index
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Handle({}.{})", self.index, self.generation)
    }
}

/// Values by handle.
#[derive(Debug)]
pub(super) struct Slab<T> {
    entries: Vec<Entry<T>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Entry<T> {
    generation: u32,
    value: Option<T>,
}

impl<T> Slab<T> {
    pub(super) const fn new() -> Self {
        Self {
            entries: Vec::new(),
            free: Vec::new(),
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// The handle of the next value.
    pub(super) fn next_handle(&self) -> Handle {
        let index = self.free.last().copied();
        let index = index.unwrap_or(self.entries.len() as u32);
        let generation = self
            .entries
            .get(index as usize)
            .map_or(0, |entry| entry.generation);
        Handle { index, generation }
    }

    pub(super) fn insert(&mut self, value: T) -> Handle {
        let handle = self.next_handle();
        self.free.pop();
        match self.entries.get_mut(handle.index as usize) {
            Some(entry) => entry.value = Some(value),
            None => self.entries.push(Entry {
                generation: handle.generation,
                value: Some(value),
            }),
        }
        handle
    }

    pub(super) fn get(&self, handle: Handle) -> Option<&T> {
        let entry = self.entries.get(handle.index as usize)?;
        let value = entry.value.as_ref();
        value.filter(|_| entry.generation == handle.generation)
    }

    pub(super) fn get_mut(&mut self, handle: Handle) -> Option<&mut T> {
        let entry = self.entries.get_mut(handle.index as usize)?;
        let value = entry.value.as_mut();
        value.filter(|_| entry.generation == handle.generation)
    }

    /// The handle of the value with this index.
    pub(super) fn handle_at(&self, index: u32) -> Option<Handle> {
        let entry = self.entries.get(index as usize)?;
        entry.value.is_some().then_some(Handle {
            index,
            generation: entry.generation,
        })
    }

    pub(super) fn remove(&mut self, handle: Handle) -> Option<T> {
        self.get(handle)?;
        let entry = self.entries.get_mut(handle.index as usize)?;
        entry.generation = entry.generation.wrapping_add(1);
        self.free.push(handle.index);
        entry.value.take()
    }

    /// One more than the highest index so far.
    pub(super) const fn end(&self) -> u32 {
        self.entries.len() as u32
    }

    /// The values with these indices.
    pub(super) fn range(&self, indices: Range<u32>) -> impl Iterator<Item = &T> {
        let len = self.entries.len();
        let indices = (indices.start as usize).min(len)..(indices.end as usize).min(len);
        let entries = self.entries.get(indices).unwrap_or_default();
        entries.iter().filter_map(|entry| entry.value.as_ref())
    }

    /// All handles, by index.
    pub(super) fn handles(&self) -> impl Iterator<Item = Handle> + '_ {
        (0..self.entries.len() as u32).filter_map(|index| self.handle_at(index))
    }
}
