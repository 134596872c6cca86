//! A file that grows: reads it, waits for more, and follows its name when it is rotated or truncated.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the binary is the edge where files are opened and time passes"
)]

use crate::jobs::Interrupt;
use lastbyte_query::{ByteSource, Follow, Input};
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read, Seek};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Interval between two looks at a file that did not grow.
const WAIT: Duration = Duration::from_millis(100);

/// Interval between two refreshed results.
const REFRESH: Duration = Duration::from_secs(1);

/// Clears a terminal: cursor home, erase to the end.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// The settings for a run that follows a file.
pub(super) fn settings(is_terminal: bool) -> Follow {
    Follow {
        before: if is_terminal { CLEAR } else { "" }.to_owned(),
        ..Follow::default()
    }
}

pub(super) fn input(name: &str, follow: &Follow, interrupt: &Interrupt) -> Input {
    let (path, due) = (PathBuf::from(name), Arc::clone(&follow.due));
    let interrupt = interrupt.clone();
    Input::new(name, move || {
        Ok(Box::new(Growing {
            file: File::open(&path)?,
            path,
            position: 0,
            ends_line: true,
            interrupt,
            due,
            has_news: false,
            next_refresh: Instant::now() + REFRESH,
        }) as ByteSource)
    })
    .live()
}

struct Growing {
    file: File,
    path: PathBuf,
    /// Number of bytes read of the file.
    position: u64,
    /// The last byte read ends a line.
    ends_line: bool,
    interrupt: Interrupt,
    due: Arc<AtomicBool>,
    /// Bytes were read after the last refresh.
    has_news: bool,
    next_refresh: Instant,
}

impl Growing {
    fn read_some(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut count = self.file.read(buffer)?;
        self.position += count as u64;
        // When a file is truncated, a writer that does not append goes on where it was, behind zeros.
        while self.ends_line && buffer[..count].first() == Some(&0) {
            let zeros = buffer[..count].iter().take_while(|byte| **byte == 0);
            let zeros = zeros.count();
            buffer.copy_within(zeros..count, 0);
            count -= zeros;
            if count == 0 {
                count = self.file.read(buffer)?;
                self.position += count as u64;
            }
        }
        if let Some(last) = buffer[..count].last() {
            self.ends_line = *last == b'\n';
            self.has_news = true;
        }
        Ok(count)
    }

    /// Sets `due` once per interval if there are news.
    fn check_refresh(&mut self) -> bool {
        let is_due = self.has_news && Instant::now() >= self.next_refresh;
        if is_due {
            self.has_news = false;
            self.next_refresh = Instant::now() + REFRESH;
            self.due.store(true, Ordering::Relaxed);
        }
        is_due
    }

    /// Turns to the file that has the name now, or to the start of a truncated one. Returns whether it did.
    fn turn(&mut self) -> io::Result<bool> {
        let identity = |it: &Metadata| (it.dev(), it.ino());
        let named = match std::fs::metadata(&self.path) {
            Ok(named) => named,
            // Between two files of a rotation.
            Err(reason) if reason.kind() == ErrorKind::NotFound => return Ok(false),
            Err(reason) => return Err(reason),
        };
        let own = self.file.metadata()?;
        if identity(&named) != identity(&own) {
            // The rest of the old file is read after it was renamed.
            if own.len() > self.position {
                return Ok(true);
            }
            self.file = File::open(&self.path)?;
        } else if own.len() < self.position {
            self.file.rewind()?;
        } else {
            return Ok(false);
        }
        self.position = 0;
        Ok(true)
    }
}

impl Read for Growing {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            if self.interrupt.is_pressed() {
                return Ok(0);
            }
            let count = self.read_some(buffer)?;
            let is_due = self.check_refresh();
            if count > 0 {
                return Ok(count);
            }
            if is_due {
                return Err(ErrorKind::WouldBlock.into());
            }
            if !self.turn()? {
                std::thread::sleep(WAIT);
            } else if self.position == 0 && !std::mem::replace(&mut self.ends_line, true) {
                // The last line of the old file has no end.
                buffer[0] = b'\n';
                return Ok(1);
            }
        }
    }
}
