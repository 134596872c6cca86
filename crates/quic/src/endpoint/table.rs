//! A hash table whose order is not observable, and whose collisions no peer can choose.
//!
//! Open addressing with linear probing, with a keyed hash. It has no iteration, so that nothing can depend on the key,
//! and never shrinks, so that a table that has grown once allocates no more.
//!
//! Decision: our own, as the standard library's cannot be seeded through its safe and stable interface without a hasher
//! type as long as this. At most three quarters of the slots are in use; a removal shifts later entries back, and
//! leaves no tombstones, so that lookups stay short however often entries are added and removed. Hashes are not stored: a server
//! has about ten slots for each connection.

use lastbyte_units::SipHash;

#[cfg(test)]
mod tests;

/// A key of the table.
pub(super) trait Key: Copy + Eq {
    /// Its hash.
    fn hash(&self, hash: &SipHash) -> u64;
}

#[derive(Clone)]
pub(super) struct Table<K, V> {
    hash: SipHash,
    /// A power of two, or none.
    slots: Vec<Option<(K, V)>>,
    len: usize,
}

impl<K: Key, V: Copy> Table<K, V> {
    pub(super) const fn new(hash: SipHash) -> Self {
        Self {
            hash,
            slots: Vec::new(),
            len: 0,
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn get(&self, key: &K) -> Option<V> {
        // Without such keys, nothing is hashed.
        if self.len == 0 {
            return None;
        }
        let at = self.find(key)?;
        self.slots.get(at)?.as_ref().map(|(_, value)| *value)
    }

    pub(super) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let at = self.find(key)?;
        let slot = self.slots.get_mut(at)?;
        slot.as_mut().map(|(_, value)| value)
    }

    /// Inserts a value. Returns whether the key was new; otherwise its value is kept.
    pub(super) fn insert(&mut self, key: K, value: V) -> bool {
        if (self.len + 1) * 4 > self.slots.len() * 3 {
            self.grow();
        }
        let is_new = self.place((key, value));
        self.len += usize::from(is_new);
        is_new
    }

    /// Removes the key, if `is_it` accepts its value.
    pub(super) fn remove_if(&mut self, key: &K, is_it: impl FnOnce(&V) -> bool) -> bool {
        let Some(at) = self.find(key) else {
            return false;
        };
        let is_it = self
            .slots
            .get(at)
            .and_then(Option::as_ref)
            .is_some_and(|(_, value)| is_it(value));
        if is_it {
            self.empty(at);
            self.len -= 1;
        }
        is_it
    }

    /// The slot where the search for a key starts.
    fn preferred(&self, key: &K) -> usize {
        key.hash(&self.hash) as usize & self.mask()
    }

    /// Not meaningful while there are no slots.
    const fn mask(&self) -> usize {
        self.slots.len().wrapping_sub(1)
    }

    /// The slot of a key, or else the first free one for it, which exists unless there are no slots.
    fn slot(&self, key: &K) -> usize {
        let mut at = self.preferred(key);
        while let Some(Some((other, _))) = self.slots.get(at)
            && other != key
        {
            at = (at + 1) & self.mask();
        }
        at
    }

    fn find(&self, key: &K) -> Option<usize> {
        let at = self.slot(key);
        self.slots.get(at)?.is_some().then_some(at)
    }

    /// Adds an entry, for which there must be a free slot, unless its key is there.
    fn place(&mut self, entry: (K, V)) -> bool {
        let at = self.slot(&entry.0);
        match self.slots.get_mut(at) {
            Some(slot @ None) => {
                *slot = Some(entry);
                true
            }
            _ => false,
        }
    }

    /// Empties a slot, and shifts back later entries that collided with it.
    fn empty(&mut self, at: usize) {
        let mask = self.mask();
        let mut hole = at;
        let mut next = at;
        loop {
            next = (next + 1) & mask;
            let wanted = match self.slots.get(next) {
                Some(Some((key, _))) => self.preferred(key),
                _ => break,
            };
            // The hole lies between its preferred slot and its actual one: it may move there.
            if next.wrapping_sub(wanted) & mask >= next.wrapping_sub(hole) & mask {
                self.slots.swap(hole, next);
                hole = next;
            }
        }
        if let Some(slot) = self.slots.get_mut(hole) {
            *slot = None;
        }
    }

    fn grow(&mut self) {
        let size = (self.slots.len() * 2).max(SLOTS_MIN);
        let old = core::mem::take(&mut self.slots);
        self.slots.resize_with(size, || None);
        for entry in old.into_iter().flatten() {
            self.place(entry);
        }
    }
}

const SLOTS_MIN: usize = 16;
