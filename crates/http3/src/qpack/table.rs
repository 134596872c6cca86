//! The dynamic table (RFC 9204 §3.2).
//!
//! Owns the entries and their absolute indices, which count insertions from 0, and evicts the oldest to make room. The
//! encoder and decoder decide which entries may be referred to.

use std::collections::VecDeque;

use super::ENTRY_OVERHEAD;

/// A hash of text: not for secrets, and correctness never depends on it.
pub(super) const fn hash(text: &[u8]) -> u32 {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64 ^ text.len() as u64;
    let mut rest = text;
    while let Some((chunk, behind)) = rest.split_first_chunk::<8>() {
        state = (state ^ u64::from_le_bytes(*chunk)).wrapping_mul(FACTOR);
        state ^= state >> 29;
        rest = behind;
    }
    let mut last = 0u64;
    while let [byte, behind @ ..] = rest {
        last = last << 8 | *byte as u64;
        rest = behind;
    }
    state = (state ^ last).wrapping_mul(FACTOR);
    (state >> 32) as u32
}

const FACTOR: u64 = 0xd6e8_feb8_6659_fd93;

#[derive(Debug)]
struct Entry {
    text: Vec<u8>,
    name_len: usize,
}

impl Entry {
    fn size(&self) -> u64 {
        self.text.len() as u64 + ENTRY_OVERHEAD
    }
}

/// The dynamic table of one direction.
#[derive(Debug, Default)]
pub(super) struct Table {
    entries: VecDeque<Entry>,
    inserted: u64,
    size: u64,
    capacity: u64,
    /// The memory of an evicted entry, for reuse.
    spare: Vec<u8>,
}

impl Table {
    /// The number of insertions, which is the index of the next entry.
    pub(super) const fn inserted(&self) -> u64 {
        self.inserted
    }

    /// The oldest index in the table.
    pub(super) fn oldest(&self) -> u64 {
        self.inserted - self.entries.len() as u64
    }

    pub(super) const fn capacity(&self) -> u64 {
        self.capacity
    }

    pub(super) const fn size(&self) -> u64 {
        self.size
    }

    /// Name and value of an entry; `None` if it was not inserted yet or is evicted.
    #[inline]
    pub(super) fn get(&self, index: u64) -> Option<(&[u8], &[u8])> {
        let at = usize::try_from(index.checked_sub(self.oldest())?).ok()?;
        let entry = self.entries.get(at)?;
        entry.text.split_at_checked(entry.name_len)
    }

    pub(super) fn release_memory(&mut self) {
        self.entries.shrink_to_fit();
        self.spare = Vec::new();
    }

    /// Sets the capacity, and evicts what no longer fits (§3.2.3).
    pub(super) fn set_capacity(&mut self, capacity: u64) {
        self.capacity = capacity;
        self.evict_to(capacity);
    }

    /// The size of an entry (§3.2.1).
    pub(super) const fn size_of(name: &[u8], value: &[u8]) -> u64 {
        name.len() as u64 + value.len() as u64 + ENTRY_OVERHEAD
    }

    /// Whether an entry of this size can be inserted if only entries below `keep` are evicted.
    pub(super) fn has_room(&self, size: u64, keep: u64) -> bool {
        if size > self.capacity {
            return false;
        }
        let mut free = self.capacity - self.size;
        let mut entries = self.entries.iter().zip(self.oldest()..);
        while free < size {
            match entries.next() {
                Some((entry, index)) if index < keep => free += entry.size(),
                _ => return false,
            }
        }
        true
    }

    /// Inserts an entry, and evicts as many as needed. False if it is larger than the table (§3.2.2).
    pub(super) fn insert(&mut self, name: &[u8], value: &[u8]) -> bool {
        let size = Self::size_of(name, value);
        if size > self.capacity {
            return false;
        }
        self.evict_to(self.capacity - size);
        let mut text = std::mem::take(&mut self.spare);
        text.clear();
        text.extend_from_slice(name);
        text.extend_from_slice(value);
        self.push(text, name.len());
        true
    }

    /// Inserts an entry with the name of another entry or a copy of all of it; that entry may be evicted for it.
    pub(super) fn insert_from(&mut self, index: u64, value: Option<&[u8]>) -> bool {
        let mut text = std::mem::take(&mut self.spare);
        text.clear();
        let Some((name, own)) = self.get(index) else {
            return false;
        };
        text.extend_from_slice(name);
        text.extend_from_slice(value.unwrap_or(own));
        let name_len = name.len();
        let size = text.len() as u64 + ENTRY_OVERHEAD;
        if size > self.capacity {
            return false;
        }
        self.evict_to(self.capacity - size);
        self.push(text, name_len);
        true
    }

    fn push(&mut self, text: Vec<u8>, name_len: usize) {
        let entry = Entry { text, name_len };
        self.size += entry.size();
        self.inserted += 1;
        self.entries.push_back(entry);
    }

    fn evict_to(&mut self, size: u64) {
        while self.size > size
            && let Some(entry) = self.entries.pop_front()
        {
            self.size -= entry.size();
            self.spare = entry.text;
        }
    }
}
