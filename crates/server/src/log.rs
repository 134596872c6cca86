//! Log files, written by a thread of their own.
//!
//! Responsible for the queue and the current file; [`archive`] handles rotated files. Workers never wait: a line that does not
//! fit the queue is dropped and counted.
//!
//! Lines are written whole and in order of arrival, several per call, as soon as the queue is empty. A process that is killed
//! loses the lines in the queue; the file ends with a complete line, unless the system was interrupted during a write.

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
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    },
    thread::{self, JoinHandle},
};

mod archive;
mod settings;
#[cfg(test)]
mod tests;

use self::archive::Archive;

/// How many lines wait at most.
const QUEUE_MAX: usize = 16_384;
/// How many bytes are written in one call, but for a longer line.
const WRITE_LEN: usize = 64 * 1024;

/// Where lines are handed in; for each thread its own. The file is written to its end when all of them, and the
/// [`LogThread`], are gone.
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
}

/// What became of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogStatistics {
    /// Written.
    pub written: u64,
    /// Dropped, since too many waited.
    pub dropped: u64,
    /// Lost, since they could not be written, for instance to a full disk.
    pub failed: u64,
}

/// What became of lines, to be asked for at any time; it keeps no log from ending.
#[derive(Clone, Debug)]
pub struct LogCounts(Arc<Counts>);

impl LogCounts {
    /// Until now.
    #[must_use]
    pub fn read(&self) -> LogStatistics {
        self.0.read()
    }
}

/// The thread that writes.
#[derive(Debug)]
pub struct LogThread {
    thread: JoinHandle<Option<io::Error>>,
    counts: Arc<Counts>,
}

/// Begins to append to a file.
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

impl LogWriter {
    /// What becomes of lines.
    #[must_use]
    pub fn counts(&self) -> LogCounts {
        LogCounts(Arc::clone(&self.counts))
    }

    /// Hands in a line, without its end.
    pub fn write(&self, line: String) {
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) =
            self.lines.try_send(line)
        {
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl LogThread {
    /// Waits until all that was handed in is written, which is when no [`LogWriter`] is left. With what went wrong first.
    #[must_use]
    pub fn finish(self) -> (LogStatistics, Option<io::Error>) {
        let error = match self.thread.join() {
            Ok(error) => error,
            Err(_) => Some(io::Error::other("the log's thread panicked")),
        };
        (self.counts.read(), error)
    }

    /// What became of lines until now.
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

fn write_all(queue: &Receiver<String>, mut file: Output, counts: &Counts) -> Option<io::Error> {
    let mut first_error = None;
    let mut text = String::new();
    while let Ok(line) = queue.recv() {
        text.clear();
        let mut count = 0;
        let mut next = Some(line);
        while let Some(line) = next {
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
                // The next may find room again.
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
    /// Device and number: who has them is this file.
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

    /// Goes on in a new file if somebody, such as logrotate, has moved this one away or taken it out; and sees if it was cut.
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
            self.archive.put_away()?;
            self.begin()?;
        }
        if self.is_torn {
            // What was begun stays a line that is none; the next is whole.
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
