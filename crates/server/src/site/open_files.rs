//! Files that responses hold open.
//!
//! Limits their number, and opens a file once for all responses that send it. A file is closed when no response needs it.
//! Files are identified by device and inode, and by length and modification time, checked when each response opens the file.

use std::{
    collections::BTreeMap,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use rustix::fs::{Stat, fstat};

use super::file_identity::Identity;

/// Identifies a file and its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    device: u64,
    inode: u64,
    pub(super) identity: Identity,
}

/// All open files.
#[derive(Debug)]
pub(super) struct OpenFiles {
    limit: usize,
    files: Mutex<BTreeMap<Key, Weak<OpenFile>>>,
}

/// An open file.
#[derive(Debug)]
pub(super) struct OpenFile {
    file: OwnedFd,
    key: Key,
    files: Arc<OpenFiles>,
}

impl OpenFiles {
    pub(super) const fn limit(&self) -> usize {
        self.limit
    }

    /// With this limit.
    pub(super) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            limit,
            files: Mutex::default(),
        })
    }

    fn files(&self) -> MutexGuard<'_, BTreeMap<Key, Weak<OpenFile>>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file, sharing an open descriptor if there is one. `None` if too many are open.
    pub(super) fn share(self: &Arc<Self>, file: OwnedFd, stat: &Stat) -> Option<Arc<OpenFile>> {
        let key = Key {
            device: stat.st_dev,
            inode: stat.st_ino,
            identity: Identity::of(stat),
        };
        let mut files = self.files();
        if let Some(known) = files.get(&key).and_then(Weak::upgrade) {
            drop(files);
            return Some(known);
        }
        if files.len() >= self.limit {
            return None;
        }
        let opened = Arc::new(OpenFile {
            file,
            key,
            files: Arc::clone(self),
        });
        files.insert(key, Arc::downgrade(&opened));
        Some(opened)
    }
}

impl OpenFile {
    pub(super) const fn key(&self) -> Key {
        self.key
    }

    /// Whether it still has the content that it was opened for.
    pub(super) fn is_unchanged(&self) -> bool {
        fstat(self).is_ok_and(|stat| Identity::of(&stat) == self.key.identity)
    }
}

impl AsFd for OpenFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        let mut files = self.files.files();
        // The same file may have been opened again in the meantime.
        let is_over = |known: &Weak<Self>| known.strong_count() == 0;
        if files.get(&self.key).is_some_and(is_over) {
            files.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{Mode, OFlags};

    use super::{super::Temporary, *};

    fn open(directory: &Temporary, name: &str) -> (OwnedFd, Stat) {
        let path = directory.0.join(name);
        let file = rustix::fs::open(path, OFlags::RDONLY, Mode::empty()).expect("it is there");
        let stat = fstat(&file).expect("it is open");
        (file, stat)
    }

    #[test]
    fn a_file_is_open_once_and_others_up_to_the_limit() {
        let directory = Temporary::new("open-files");
        for name in ["a", "b", "c"] {
            directory.file(name, name);
        }
        let files = OpenFiles::new(2);
        let share = |name| {
            let (file, stat) = open(&directory, name);
            files.share(file, &stat)
        };
        let one = share("a").expect("room");
        let again = share("a").expect("the same");
        assert!(Arc::ptr_eq(&one, &again));
        let other = share("b").expect("room");
        assert!(share("c").is_none());
        drop(one);
        assert!(share("c").is_none(), "it is still needed");
        drop(again);
        let third = share("c").expect("room again");
        drop((other, third));
        assert!(files.files().is_empty());
    }

    /// A response that started before continues with the old file.
    #[test]
    fn a_replaced_file_is_not_shared_with_the_old_one() {
        let directory = Temporary::new("open-replaced");
        directory.file("a", "old");
        let files = OpenFiles::new(2);
        let (file, stat) = open(&directory, "a");
        let old = files.share(file, &stat).expect("room");
        directory.file("new", "new");
        std::fs::rename(directory.0.join("new"), directory.0.join("a")).expect("it is there");
        let (file, stat) = open(&directory, "a");
        let new = files.share(file, &stat).expect("room");
        assert!(!Arc::ptr_eq(&old, &new));
    }
}
