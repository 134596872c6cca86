//! Files that were found recently.
//!
//! A request for a cached file needs no system call to find it: the entry holds the open file, or its content if that
//! is small, its compressed siblings, and the headers of its responses. An entry is valid for a configured time after
//! the file was looked up; then the file is looked up again, and the entry is kept if nothing changed.
//!
//! # Decisions
//!
//! - **One part per thread**, so that no thread waits for another. A thread that finds its part in use by another looks
//!   the file up without the cache.
//! - **Bounded** per part: [`ENTRIES_MAX`] entries, [`BYTES_MAX`] bytes, and a share of a quarter of the files that
//!   responses may hold open. If no descriptor is left, the open files of all parts are released.
//! - **Clock with counters** for eviction: an entry is evicted when it was used less often than the hand passed it.
//!   Requests for many different files evict each other's entries, and not those of frequently requested files. Paths
//!   are compared after decoding, so a file has one entry, however it is spelled.
//! - **Files changed less than a second ago are not cached**: a second change could have the same date. Neither are
//!   paths without a file, so a new file is found at once.

use std::{
    cell::Cell,
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, TryLockError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use lastbyte_congestion::Time;
use lastbyte_driver::Clock;

use super::found::{Found, FoundFile};

/// Maximum size of files kept in memory.
const BODY_MAX: u64 = 64 << 10;
/// Maximum number of entries of a part.
const ENTRIES_MAX: usize = 4096;
/// Maximum size of a part, in bytes.
const BYTES_MAX: usize = 16 << 20;
/// The size that counts for an entry besides its path and content, in bytes.
const ENTRY_SIZE: usize = 2 << 10;
/// Maximum of an entry's use counter.
const USES_MAX: u8 = 15;

/// The files that were found recently, by thread.
#[derive(Debug)]
pub(super) struct FileCache {
    valid_for: Duration,
    clock: Clock,
    parts: Box<[Mutex<Part>]>,
}

#[derive(Debug)]
struct Part {
    index: BTreeMap<Arc<str>, usize>,
    entries: Vec<Entry>,
    /// The position of the clock hand.
    hand: usize,
    bytes: usize,
    descriptors: usize,
    descriptors_max: usize,
}

#[derive(Debug)]
struct Entry {
    path: Arc<str>,
    file: Arc<FoundFile>,
    checked_at: Time,
    /// Uses since the hand passed, up to a maximum.
    uses: u8,
}

impl FileCache {
    /// Entries are used for `valid_for` after each look-up; responses may hold `open_files` files open.
    pub(super) fn new(valid_for: Duration, open_files: usize) -> Self {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        // HTTP/3 and the other versions have separate threads.
        let parts = 2 * threads;
        let part = || Mutex::new(Part::new(open_files / 4 / parts));
        Self {
            valid_for,
            clock: Clock::new(),
            parts: std::iter::repeat_with(part).take(parts).collect(),
        }
    }

    /// Resolves a decoded path: from the cache, or by `look_up`.
    pub(super) fn find(&self, path: &str, look_up: impl Fn() -> Found) -> Found {
        let Some(mut part) = self.part() else {
            return look_up();
        };
        let now = self.clock.now();
        if let Some(entry) = part.get(path)
            && now.since(entry.checked_at) < self.valid_for
            && entry.file.is_unchanged()
        {
            entry.on_use();
            return Found::File(Arc::clone(&entry.file));
        }
        let mut found = look_up();
        if matches!(found, Found::Exhausted) {
            part.close_files();
            for other in self.parts.iter().filter_map(lock) {
                let mut other = other;
                other.close_files();
            }
            found = look_up();
        }
        match found {
            Found::File(file) => Found::File(part.keep(path, file, now)),
            other => {
                part.remove(path);
                other
            }
        }
    }

    /// The part of this thread, unless another uses it.
    fn part(&self) -> Option<MutexGuard<'_, Part>> {
        static THREADS: AtomicUsize = AtomicUsize::new(0);
        thread_local! {
            static THREAD: Cell<usize> = Cell::new(THREADS.fetch_add(1, Ordering::Relaxed));
        }
        lock(self.parts.get(THREAD.get() % self.parts.len())?)
    }
}

fn lock(part: &Mutex<Part>) -> Option<MutexGuard<'_, Part>> {
    match part.try_lock() {
        Ok(part) => Some(part),
        Err(TryLockError::Poisoned(part)) => Some(part.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

impl Part {
    const fn new(descriptors_max: usize) -> Self {
        Self {
            index: BTreeMap::new(),
            entries: Vec::new(),
            hand: 0,
            bytes: 0,
            descriptors: 0,
            descriptors_max,
        }
    }

    fn get(&mut self, path: &str) -> Option<&mut Entry> {
        self.entries.get_mut(*self.index.get(path)?)
    }

    /// Caches a file that was looked up, if possible. Returns the file to send.
    fn keep(&mut self, path: &str, file: Arc<FoundFile>, now: Time) -> Arc<FoundFile> {
        if let Some(entry) = self.get(path)
            && entry.file.is_same(&file)
        {
            entry.on_use();
            entry.checked_at = now;
            return Arc::clone(&entry.file);
        }
        self.remove(path);
        if !file.is_settled {
            return file;
        }
        // Not shared yet.
        let mut file = file;
        if Arc::get_mut(&mut file).is_none_or(|file| file.load(BODY_MAX).is_err()) {
            return file;
        }
        let entry = Entry {
            path: path.into(),
            file: Arc::clone(&file),
            checked_at: now,
            uses: 0,
        };
        self.insert(entry);
        file
    }

    fn insert(&mut self, entry: Entry) {
        let (bytes, descriptors) = (entry.bytes(), entry.file.descriptors());
        if bytes > BYTES_MAX || descriptors > self.descriptors_max {
            return;
        }
        while self.entries.len() >= ENTRIES_MAX
            || self.bytes + bytes > BYTES_MAX
            || self.descriptors + descriptors > self.descriptors_max
        {
            self.evict();
        }
        self.bytes += bytes;
        self.descriptors += descriptors;
        self.index
            .insert(Arc::clone(&entry.path), self.entries.len());
        self.entries.push(entry);
    }

    /// Removes the first entry at or after the hand that was not used since the hand passed it.
    fn evict(&mut self) {
        loop {
            if self.hand >= self.entries.len() {
                self.hand = 0;
            }
            let Some(entry) = self.entries.get_mut(self.hand) else {
                return;
            };
            let is_used = entry.uses > 0;
            entry.uses = entry.uses.saturating_sub(1);
            if !is_used {
                self.remove_at(self.hand);
            }
            // The newest entry fills the gap, and counts as passed.
            self.hand += 1;
            if !is_used {
                return;
            }
        }
    }

    fn remove(&mut self, path: &str) {
        if let Some(at) = self.index.get(path) {
            self.remove_at(*at);
        }
    }

    fn remove_at(&mut self, at: usize) {
        let entry = self.entries.swap_remove(at);
        self.index.remove(&entry.path);
        self.bytes -= entry.bytes();
        self.descriptors -= entry.file.descriptors();
        if let Some(moved) = self.entries.get(at)
            && let Some(index) = self.index.get_mut(&moved.path)
        {
            *index = at;
        }
    }

    /// Removes the entries that hold files open.
    fn close_files(&mut self) {
        let mut at = 0;
        while let Some(entry) = self.entries.get(at) {
            if entry.file.descriptors() > 0 {
                self.remove_at(at);
            } else {
                at += 1;
            }
        }
    }
}

impl Entry {
    fn on_use(&mut self) {
        self.uses = (self.uses + 1).min(USES_MAX);
    }

    /// Its size as counted by the limit.
    fn bytes(&self) -> usize {
        self.path.len() + self.file.loaded() + ENTRY_SIZE
    }
}

#[cfg(test)]
mod tests;
