//! Log files, written by a thread of their own.
//!
//! Owns the current file; [`archive`] handles rotated files. The queue is that of [`lastbyte_origin::log`].
//!
//! Lines are written whole and in order of arrival, several per call, as soon as the queue is empty. A process that is
//! killed loses the lines in the queue; the file ends with a complete line, unless the system was interrupted during a
//! write.

#![expect(clippy::disallowed_types, reason = "a server writes its log itself")]

pub use self::settings::LogSettings;
pub use lastbyte_origin::log::{LogCounts, LogQueue, LogStatistics, LogWriter, field, queue};
use std::{
    fs::{self, File, Metadata, OpenOptions},
    io::{self, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    thread::{self, JoinHandle},
};

use rustix::{fs::OFlags, io::Errno};

mod archive;
mod settings;
#[cfg(test)]
mod tests;

use self::archive::Archive;

/// Maximum number of bytes per write, except for a longer line.
const WRITE_LEN: usize = 64 * 1024;

/// The writing thread.
#[derive(Debug)]
pub struct LogThread {
    thread: JoinHandle<Option<io::Error>>,
    counts: LogCounts,
}

/// Opens a file for appending.
///
/// # Errors
///
/// Returns the error of opening the file.
pub fn start(path: &Path, settings: &LogSettings) -> io::Result<(LogWriter, LogThread)> {
    let file = Output::open(path, settings)?;
    let (writer, queue) = queue();
    let counts = queue.counts();
    let thread = thread::Builder::new()
        .name("log".into())
        .spawn(move || write_all(&queue, file))?;
    Ok((writer, LogThread { thread, counts }))
}

impl LogThread {
    /// Waits until everything is written, which requires that no [`LogWriter`] is left. Returns the first error too.
    pub fn finish(self) -> (LogStatistics, Option<io::Error>) {
        let error = match self.thread.join() {
            Ok(error) => error,
            Err(_) => Some(io::Error::other("the log's thread panicked")),
        };
        (self.counts.read(), error)
    }
}

fn write_all(queue: &LogQueue, mut file: Output) -> Option<io::Error> {
    let mut first_error = None;
    let mut text = String::new();
    while let Some(line) = queue.next() {
        text.clear();
        let mut count = 0;
        let mut next = Some(line);
        while let Some(line) = next {
            text.push_str(&line);
            text.push('\n');
            count += 1;
            next = if text.len() < WRITE_LEN {
                queue.try_next()
            } else {
                None
            };
        }
        let result = file.write(text.as_bytes());
        queue.count(count, result.is_ok());
        if let Err(error) = result {
            // The next line may find room again.
            first_error.get_or_insert(error);
        }
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
    // Opening a pipe without a reader would wait for one.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let mut options = OpenOptions::new();
    let file = options.create(true).append(true).custom_flags(flags);
    let file = file
        .open(path)
        .map_err(|error| match error.raw_os_error() {
            Some(code) if code == Errno::NXIO.raw_os_error() => {
                io::Error::new(error.kind(), "no process reads the pipe")
            }
            _ => error,
        })?;
    rustix::fs::fcntl_setfl(&file, OFlags::APPEND)?;
    let found = file.metadata()?;
    Ok((file, identity(&found), found.len()))
}

fn identity(found: &Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}
