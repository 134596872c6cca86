//! The lines of logs between the workers and the thread that writes them.
//!
//! Owns the queue, its bounds, the counters of lines, and the length of fields that peers fill. Workers never wait: a line that
//! does not fit the queue is dropped and counted.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
};

/// Maximum number of lines in the queue.
const QUEUE_MAX: usize = 16_384;
/// Maximum number of bytes in the queue.
pub const QUEUE_BYTES_MAX: usize = 16 << 20;
/// Maximum length of a field that a peer fills, in bytes, escaped as in any format.
const FIELD_MAX: usize = 512;
/// The end of a field that was longer.
const CUT: &str = "…";

/// The sending end of a log, cloned for each thread.
#[derive(Clone)]
pub struct LogWriter {
    lines: SyncSender<String>,
    counts: Arc<Counts>,
}

/// The receiving end of a log.
#[derive(Debug)]
pub struct LogQueue {
    lines: Receiver<String>,
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
    pub fn read(&self) -> LogStatistics {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        LogStatistics {
            written: of(&self.0.written),
            dropped: of(&self.0.dropped),
            failed: of(&self.0.failed),
        }
    }
}

/// Both ends of a log.
pub fn queue() -> (LogWriter, LogQueue) {
    let (lines, queue) = sync_channel(QUEUE_MAX);
    let counts = Arc::<Counts>::default();
    let writer = LogWriter {
        lines,
        counts: Arc::clone(&counts),
    };
    let lines = queue;
    (writer, LogQueue { lines, counts })
}

impl LogWriter {
    /// The counters.
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

impl LogQueue {
    /// The next line. Waits until there is one. `None` once no [`LogWriter`] is left.
    pub fn next(&self) -> Option<String> {
        self.lines.recv().ok().map(|line| self.taken(line))
    }

    /// The next line, if it is there.
    pub fn try_next(&self) -> Option<String> {
        self.lines.try_recv().ok().map(|line| self.taken(line))
    }

    /// The lines that are there.
    pub fn try_iter(&self) -> impl Iterator<Item = String> {
        std::iter::from_fn(|| self.try_next())
    }

    /// Counts lines that were written, or could not be.
    pub fn count(&self, lines: u64, are_written: bool) {
        let Counts {
            written, failed, ..
        } = &*self.counts;
        let count = if are_written { written } else { failed };
        count.fetch_add(lines, Ordering::Relaxed);
    }

    /// The counters.
    pub fn counts(&self) -> LogCounts {
        LogCounts(Arc::clone(&self.counts))
    }

    fn taken(&self, line: String) -> String {
        let bytes = line.capacity();
        self.counts.queued.fetch_sub(bytes, Ordering::Relaxed);
        line
    }
}

/// The text of a field that a peer fills. Escaped in any format it has at most [`FIELD_MAX`] bytes, and the end shows if it
/// was cut.
pub fn field(text: &str) -> String {
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

impl fmt::Debug for LogWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogWriter").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_fields_are_cut_at_a_character_and_marked() {
        assert_eq!(field("/path"), "/path");
        let long = "é".repeat(256);
        assert_eq!(field(&long), long);
        assert_eq!(field(&format!("a{long}")), format!("a{}…", "é".repeat(254)));
        assert_eq!(field(&"\"".repeat(257)), format!("{}…", "\"".repeat(254)));
        assert_eq!(field(&"\n".repeat(86)), format!("{}…", "\n".repeat(84)));
    }
}
