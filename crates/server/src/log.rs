//! Log files, written by a thread of their own.
//!
//! Owns the queue, the current file, and the length of fields that peers fill; [`archive`] handles rotated files. Workers
//! never wait: a line that does not fit the queue is dropped and counted.
//!
//! Lines are written whole and in order of arrival, several per call, as soon as the queue is empty. A process that is
//! killed loses the lines in the queue; the file ends with a complete line, unless the system was interrupted during a
//! write.

#![expect(clippy::disallowed_types, reason = "a server writes its log itself")]

pub use self::settings::LogSettings;
use std::{
    fmt,
    fs::{self, File, Metadata, OpenOptions},
    io::{self, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::{self, JoinHandle},
};

mod archive;
mod settings;
#[cfg(test)]
mod tests;

use self::archive::Archive;

/// Maximum number of lines in the queue.
const QUEUE_MAX: usize = 16_384;
/// Maximum number of bytes in the queue.
const QUEUE_BYTES_MAX: usize = 16 << 20;
/// Maximum number of bytes per write, except for a longer line.
const WRITE_LEN: usize = 64 * 1024;
/// Maximum length of a field that a peer fills, in bytes, escaped as in any format.
const FIELD_MAX: usize = 512;
/// The end of a field that was longer.
const CUT: &str = "…";

/// The sending end of a log, cloned for each thread. The file is written completely when all of them and the
/// [`LogThread`] are dropped.
#[derive(Clone)]
pub struct LogWriter {
    lines: SyncSender<String>,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    written: AtomicU64,
    dropped: AtomicU64,
    failed: AtomicU64,
    /// Bytes in the queue.
    queued: AtomicUsize,
}

/// Counters of lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogStatistics {
    /// Written.
    pub written: u64,
    /// Dropped because the queue was full.
    pub dropped: u64,
    /// Lost because they could not be written, for example to a full disk.
    pub failed: u64,
}

/// Access to the counters at any time; it does not keep the log open.
#[derive(Clone, Debug)]
pub struct LogCounts(Arc<Counts>);

impl LogCounts {
    /// The current counters.
    #[must_use]
    pub fn read(&self) -> LogStatistics {
        self.0.read()
    }
}

/// The writing thread.
#[derive(Debug)]
pub struct LogThread {
    thread: JoinHandle<Option<io::Error>>,
    counts: Arc<Counts>,
}

/// Opens a file for appending.
///
/// # Errors
///
/// Returns the error of opening the file.
pub fn start(path: &Path, settings: &LogSettings) -> io::Result<(LogWriter, LogThread)> {
    let file = Output::open(path, settings)?;
    let (lines, queue) = sync_channel(QUEUE_MAX);
    let counts = Arc::new(Counts::default());
    let writer = LogWriter {
        lines,
        counts: Arc::clone(&counts),
    };
    let for_thread = Arc::clone(&counts);
    let thread = thread::Builder::new()
        .name("log".into())
        .spawn(move || write_all(&queue, file, &for_thread))?;
    Ok((writer, LogThread { thread, counts }))
}

/// A log without a file or a thread: the other end receives the lines.
#[must_use]
pub fn in_memory() -> (LogWriter, Receiver<String>) {
    let (lines, queue) = sync_channel(QUEUE_MAX);
    let counts = Arc::default();
    (LogWriter { lines, counts }, queue)
}

impl LogWriter {
    /// The counters.
    #[must_use]
    pub fn counts(&self) -> LogCounts {
        LogCounts(Arc::clone(&self.counts))
    }

    /// Queues a line, without its line end.
    pub fn write(&self, line: String) {
        let Counts {
            queued, dropped, ..
        } = &*self.counts;
        let bytes = line.capacity();
        let before = queued.fetch_add(bytes, Ordering::Relaxed);
        let is_full = before.saturating_add(bytes) > QUEUE_BYTES_MAX;
        if is_full || self.lines.try_send(line).is_err() {
            queued.fetch_sub(bytes, Ordering::Relaxed);
            dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl LogThread {
    /// Waits until everything is written, which requires that no [`LogWriter`] is left. Returns the first error too.
    #[must_use]
    pub fn finish(self) -> (LogStatistics, Option<io::Error>) {
        let error = match self.thread.join() {
            Ok(error) => error,
            Err(_) => Some(io::Error::other("the log's thread panicked")),
        };
        (self.counts.read(), error)
    }

    /// The current counters.
    #[must_use]
    pub fn statistics(&self) -> LogStatistics {
        self.counts.read()
    }
}

impl Counts {
    fn read(&self) -> LogStatistics {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        LogStatistics {
            written: of(&self.written),
            dropped: of(&self.dropped),
            failed: of(&self.failed),
        }
    }
}

/// The text of a field that a peer fills. Escaped in any format it has at most [`FIELD_MAX`] bytes, and the end shows if it
/// was cut.
pub(crate) fn field(text: &str) -> String {
    let (mut len, mut end) = (0, 0);
    for (at, character) in text.char_indices() {
        if len + CUT.len() <= FIELD_MAX {
            end = at;
        }
        len += match character {
            '"' | '\\' => 2,
            // `\u0000`, the longest escape.
            character if character.is_control() => 6,
            character => character.len_utf8(),
        };
        if len > FIELD_MAX {
            return [text.get(..end).unwrap_or_default(), CUT].concat();
        }
    }
    text.to_owned()
}

fn write_all(queue: &Receiver<String>, mut file: Output, counts: &Counts) -> Option<io::Error> {
    let mut first_error = None;
    let mut text = String::new();
    while let Ok(line) = queue.recv() {
        text.clear();
        let mut count = 0;
        let mut next = Some(line);
        while let Some(line) = next {
            counts.queued.fetch_sub(line.capacity(), Ordering::Relaxed);
            text.push_str(&line);
            text.push('\n');
            count += 1;
            next = if text.len() < WRITE_LEN {
                queue.try_recv().ok()
            } else {
                None
            };
        }
        match file.write(text.as_bytes()) {
            Ok(()) => counts.written.fetch_add(count, Ordering::Relaxed),
            Err(error) => {
                // The next line may find room again.
                first_error.get_or_insert(error);
                counts.failed.fetch_add(count, Ordering::Relaxed)
            }
        };
    }
    first_error
}

/// The file.
struct Output {
    path: PathBuf,
    rotate_at: Option<u64>,
    archive: Archive,
    file: File,
    /// Device and number, which identify this file.
    identity: (u64, u64),
    len: u64,
    /// Whether the last write stopped in the middle of a line.
    is_torn: bool,
}

impl Output {
    fn open(path: &Path, settings: &LogSettings) -> io::Result<Self> {
        let (file, identity, len) = append(path)?;
        Ok(Self {
            path: path.to_owned(),
            rotate_at: settings.rotate_at,
            archive: Archive::open(path, settings),
            file,
            identity,
            len,
            is_torn: false,
        })
    }

    /// Reopens the file if it was renamed or removed, for example by logrotate; detects truncation.
    fn follow_name(&mut self) -> io::Result<()> {
        match fs::metadata(&self.path) {
            Ok(found) if identity(&found) == self.identity => {
                self.len = found.len();
                Ok(())
            }
            Ok(_) => self.begin(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.begin(),
            Err(error) => Err(error),
        }
    }

    fn begin(&mut self) -> io::Result<()> {
        (self.file, self.identity, self.len) = append(&self.path)?;
        self.is_torn = false;
        Ok(())
    }

    fn write(&mut self, text: &[u8]) -> io::Result<()> {
        self.follow_name()?;
        if self.rotate_at.is_some_and(|at| self.len >= at) && self.archive.is_ready() {
            self.archive.rotate()?;
            self.begin()?;
        }
        if self.is_torn {
            // A partially written line stays invalid; the next one is complete.
            self.file.write_all(b"\n")?;
            self.is_torn = false;
        }
        self.is_torn = true;
        self.file.write_all(text)?;
        self.is_torn = false;
        Ok(())
    }
}

fn append(path: &Path) -> io::Result<(File, (u64, u64), u64)> {
    let file = OpenOptions::new().create(true).append(true).open(path)?;
    let found = file.metadata()?;
    Ok((file, identity(&found), found.len()))
}

fn identity(found: &Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

impl fmt::Debug for LogWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogWriter").finish_non_exhaustive()
    }
}
