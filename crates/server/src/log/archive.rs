//! Rotated log files: `NAME.1` is the newest, compressed or not.
//!
//! Owns their names and number, and compresses them in a separate thread. The current file is not changed.
//!
//! # Decisions
//!
//! - *Only rotated files are compressed.* The current file consists of complete lines that can be read at once, and a
//!   process that is killed loses none of them.
//! - *A file is compressed to a temporary file* (`NAME.1.gz.part`), which is synchronised and renamed before the
//!   original is removed. An interruption leaves the original, which the next start or rotation compresses.
//! - *No file is rotated during compression*: the current one grows beyond its size. So names do not change during
//!   compression, and the writing thread never waits.

use std::{
    fs::{self, File},
    io::{self, BufRead, BufReader},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

use lastbyte_record::packed::{PackedLines, Packing};

use super::settings::LogSettings;

const PACKINGS: [Packing; 3] = [Packing::None, Packing::Gzip, Packing::Zstd];

/// The files of one log.
#[derive(Debug)]
pub(super) struct Archive {
    path: PathBuf,
    keep: u32,
    packing: Packing,
    /// The compressing thread, if it was started.
    packer: Option<JoinHandle<()>>,
    is_ending: Arc<AtomicBool>,
}

impl Archive {
    /// Compresses logs of an earlier process.
    pub(super) fn open(path: &Path, settings: &LogSettings) -> Self {
        let mut archive = Self {
            path: path.to_owned(),
            keep: settings.keep.max(1),
            packing: settings.packing,
            packer: None,
            is_ending: Arc::default(),
        };
        archive.pack();
        archive
    }

    /// Whether a file can be rotated now.
    pub(super) fn is_ready(&self) -> bool {
        self.packer.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Rotates the file of the log, and removes the oldest.
    pub(super) fn rotate(&mut self) -> io::Result<()> {
        for number in (1..self.keep).rev() {
            self.shift(number)?;
        }
        self.remove(1)?;
        fs::rename(&self.path, numbered(&self.path, 1, Packing::None))?;
        self.pack();
        Ok(())
    }

    /// Renames `NAME.1` to `NAME.2`, compressed or not.
    fn shift(&self, number: u32) -> io::Result<()> {
        self.remove(number + 1)?;
        for packing in PACKINGS {
            let (from, to) = (
                numbered(&self.path, number, packing),
                numbered(&self.path, number + 1, packing),
            );
            unless_missing(fs::rename(from, to))?;
        }
        Ok(())
    }

    fn remove(&self, number: u32) -> io::Result<()> {
        PACKINGS.into_iter().try_for_each(|packing| {
            unless_missing(fs::remove_file(numbered(&self.path, number, packing)))
        })
    }

    fn pack(&mut self) {
        if self.packing == Packing::None {
            return;
        }
        let (path, keep, packing) = (self.path.clone(), self.keep, self.packing);
        let is_ending = Arc::clone(&self.is_ending);
        self.work(move || {
            for number in 1..=keep {
                // A file that cannot be compressed, for example on a full disk, is kept, and tried again.
                let _ = pack(&path, number, packing, &is_ending);
            }
        });
    }

    pub(super) fn work(&mut self, work: impl FnOnce() + Send + 'static) {
        let thread = thread::Builder::new().name("log-pack".into());
        self.packer = thread.spawn(work).ok();
    }

    /// Until everything is compressed.
    #[cfg(test)]
    pub(super) fn wait(&mut self) {
        if let Some(packer) = self.packer.take() {
            packer.join().expect("it does not panic");
        }
    }
}

impl Drop for Archive {
    /// Waits only for the piece being compressed.
    fn drop(&mut self) {
        self.is_ending.store(true, Ordering::Relaxed);
        if let Some(packer) = self.packer.take() {
            let _ = packer.join();
        }
    }
}

fn pack(path: &Path, number: u32, packing: Packing, is_ending: &AtomicBool) -> io::Result<()> {
    let plain = numbered(path, number, Packing::None);
    let file = match File::open(&plain) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        file => file?,
    };
    let packed = numbered(path, number, packing);
    let part = with_suffix(&packed, ".part");
    let written = write(file, &part, packing, is_ending);
    match written {
        Ok(()) => {
            fs::rename(&part, &packed)?;
            fs::remove_file(&plain)
        }
        Err(error) => {
            let _ = fs::remove_file(&part);
            Err(error)
        }
    }
}

fn write(file: File, part: &Path, packing: Packing, is_ending: &AtomicBool) -> io::Result<()> {
    let mut lines = BufReader::with_capacity(1 << 16, file);
    let mut packed = PackedLines::new(File::create(part)?, packing);
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line)? > 0 {
        if is_ending.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        // Lines are text, except for one truncated by a full disk.
        packed.line(&String::from_utf8_lossy(&line))?;
        line.clear();
    }
    packed.seal()?;
    drop(packed);
    File::open(part)?.sync_all()
}

fn numbered(path: &Path, number: u32, packing: Packing) -> PathBuf {
    with_suffix(path, &format!(".{number}{}", packing.suffix()))
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn unless_missing(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
