//! Cuts inputs into blocks of whole lines, in reused buffers.

use super::input::Input;
use std::fmt;
use std::io::{self, ErrorKind, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Why an input cannot be read further.
#[derive(Debug)]
pub(super) enum Failure {
    Unreadable(io::Error),
    /// A line is longer than this limit, in bytes.
    LineTooLong(usize),
}

/// Cuts an input at line ends.
pub(super) struct Lines {
    reader: Box<dyn Read + Send>,
    /// The start of a line whose end has not been read.
    rest: Vec<u8>,
    live: bool,
    line_bytes_max: usize,
    ended: bool,
    /// Set to end the input.
    interrupt: Option<Arc<AtomicBool>>,
}

impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lines").finish_non_exhaustive()
    }
}

impl Lines {
    pub(super) fn open(input: Input, line_bytes_max: usize) -> Result<Lines, Failure> {
        let live = input.live;
        Ok(Lines {
            reader: input.open().map_err(Failure::Unreadable)?,
            rest: Vec::new(),
            live,
            line_bytes_max,
            ended: false,
            interrupt: None,
        })
    }

    /// Ends before the next read once this is set.
    pub(super) fn until(mut self, interrupt: Option<Arc<AtomicBool>>) -> Lines {
        self.interrupt = interrupt;
        self
    }

    fn is_interrupted(&self) -> bool {
        let interrupt = self.interrupt.as_ref();
        interrupt.is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    /// Whether rows may come slowly.
    pub(super) fn live(&self) -> bool {
        self.live
    }

    /// Whether the end of the input was reached.
    pub(super) fn ended(&self) -> bool {
        self.ended
    }

    /// Fills the buffer with at least one line, and with about `size` bytes if they are available without waiting. The
    /// last line may lack its line feed. Returns the number of bytes, 0 at the end of the input, and the failure that
    /// ends it, if any. A reader that has nothing yet may return `WouldBlock`: then there are 0 bytes, or those that were
    /// read before, and the input has not ended.
    ///
    /// The buffer grows only for longer lines. Its bytes after the lines are undefined.
    pub(super) fn next(&mut self, buffer: &mut Vec<u8>, size: usize) -> (usize, Option<Failure>) {
        if self.ended {
            return (0, None);
        }
        let mut filled = self.rest.len();
        // A line is too long or not, whatever the size is.
        let size = size.clamp(1, self.line_bytes_max.max(1));
        if buffer.len() < size.max(filled) {
            buffer.resize(size.max(filled), 0);
        }
        buffer[..filled].copy_from_slice(&self.rest);
        self.rest.clear();
        self.rest.shrink_to(size);
        // The bytes after the last line feed.
        let mut end = 0;
        while end == 0 || filled < size && !self.live {
            if filled == buffer.len() {
                if filled >= self.line_bytes_max {
                    self.ended = true;
                    return (0, Some(Failure::LineTooLong(self.line_bytes_max)));
                }
                buffer.resize((filled * 2).min(self.line_bytes_max).max(filled + 1), 0);
            }
            let read = if self.is_interrupted() {
                Ok(0)
            } else {
                self.reader.read(&mut buffer[filled..])
            };
            match read {
                // The beginning of a line is not one.
                Ok(0) if self.is_interrupted() => {
                    self.ended = true;
                    return (end, None);
                }
                Ok(0) => {
                    self.ended = true;
                    return (filled, None);
                }
                Ok(count) => {
                    let read = &buffer[filled..filled + count];
                    if let Some(at) = memchr::memrchr(b'\n', read) {
                        end = filled + at + 1;
                    }
                    filled += count;
                }
                Err(reason) if reason.kind() == ErrorKind::Interrupted => {}
                Err(reason) if reason.kind() == ErrorKind::WouldBlock => break,
                Err(reason) => {
                    self.ended = true;
                    return (end, Some(Failure::Unreadable(reason)));
                }
            }
        }
        self.rest.extend_from_slice(&buffer[end..filled]);
        (end, None)
    }
}

/// Releases the memory of a very long line.
pub(super) fn trim(buffer: &mut Vec<u8>, size: usize) {
    if buffer.len() > size.saturating_mul(4) {
        *buffer = Vec::new();
    }
}

#[cfg(test)]
mod tests;
