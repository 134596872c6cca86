//! Values that may span lines, from a buffer that moves on through the file.

use super::Query;
use super::input::Input;
use super::lines::{Failure, trim};
use super::pipeline::{Pipeline, Stop, column, not_json};
use crate::json::build::{Keys, Parser};
use lastbyte_json::parse::ParseError;
use std::io::{ErrorKind, Read};

/// Size of the window in bytes, while values are smaller.
const WINDOW_BYTES: usize = 64 << 10;

/// An error nearer to the end of what has been read may be the lack of the rest; no word or escape is longer.
const TOKEN_BYTES_MAX: usize = 64;

/// Bytes read and not parsed.
struct Window {
    bytes: Vec<u8>,
    start: usize,
    filled: usize,
    /// Start of the window in the file: the line, and the number of characters before it on that line.
    line: usize,
    column: usize,
    ended: bool,
}

impl Window {
    fn rest(&self) -> &[u8] {
        &self.bytes[self.start..self.filled]
    }

    /// A place in the file.
    fn place(&self, at: usize) -> (usize, usize) {
        let rest = self.rest();
        let before = &rest[..at.min(rest.len())];
        match memchr::memrchr(b'\n', before) {
            None => (self.line, self.column + column(before, before.len())),
            Some(end) => (
                self.line + memchr::memchr_iter(b'\n', before).count(),
                column(&before[end + 1..], before.len()),
            ),
        }
    }

    fn advance(&mut self, count: usize) {
        let (line, column) = self.place(count);
        (self.line, self.column) = (line, column - 1);
        self.start += count;
    }

    /// Reads what is there, and at least as much as there was if a value is not complete in that.
    fn more(&mut self, reader: &mut dyn Read, limit: usize, twice: bool) -> Option<Failure> {
        self.bytes.copy_within(self.start..self.filled, 0);
        self.filled -= self.start;
        self.start = 0;
        // Parsing a long value again each time that some of it came would take the square of its length.
        let long = twice && self.filled >= WINDOW_BYTES;
        let wanted = if long {
            self.filled * 2
        } else {
            self.filled + 1
        };
        loop {
            if self.filled == self.bytes.len() {
                if self.filled >= limit {
                    return Some(Failure::LineTooLong(limit));
                }
                let size = (self.filled * 2).max(WINDOW_BYTES).min(limit);
                self.bytes.resize(size.max(self.filled + 1), 0);
            }
            match reader.read(&mut self.bytes[self.filled..]) {
                Ok(0) => {
                    self.ended = true;
                    return None;
                }
                Ok(count) => self.filled += count,
                Err(reason) if reason.kind() == ErrorKind::Interrupted => {}
                Err(reason) => return Some(Failure::Unreadable(reason)),
            }
            if self.filled >= wanted {
                return None;
            }
        }
    }

    /// Whether an error may be gone when more has been read.
    fn incomplete(&self, wrong: &ParseError) -> bool {
        let rest = self.rest();
        let behind = &rest[wrong.at.min(rest.len())..];
        !self.ended
            && (wrong.message.starts_with("unexpected end")
                || behind.len() < TOKEN_BYTES_MAX
                || behind.iter().all(|byte| b"+-.0123456789Ee".contains(byte)))
    }
}

impl Pipeline<'_> {
    /// Runs a file whose values may span lines.
    pub(super) fn lax(&mut self, input: Input, query: &Query) -> Result<(), Stop> {
        let (name, is_live) = (input.name.clone(), input.live);
        self.start_file(&name);
        let mut reader = match input.open() {
            Ok(reader) => reader,
            Err(reason) => {
                self.unreadable(&name, reason);
                return Ok(());
            }
        };
        let mut window = Window {
            bytes: Vec::new(),
            start: 0,
            filled: 0,
            line: 1,
            column: 0,
            ended: false,
        };
        // Keys remember where the projection is, and this one is a copy.
        let (mut keys, projection) = (Keys::default(), self.projection.clone());
        let mut whole = true;
        let done = loop {
            let failure = window.more(&mut *reader, query.options.line_bytes_max, !whole);
            if query.options.is_interrupted() {
                break Ok(());
            }
            let mut parser = Parser::new(window.rest(), &mut keys);
            let (mut parsed, mut line) = (0, window.line);
            let stop = loop {
                match parser.next_of_stream(&projection) {
                    // A value that ends with the bytes read may continue.
                    Ok(Some(_)) if parser.position() >= window.rest().len() && !window.ended => {
                        break None;
                    }
                    Ok(None) => {
                        parsed = parser.position();
                        break None;
                    }
                    Ok(Some(row)) => {
                        let before = parsed..parser.position();
                        parsed = before.end;
                        let text = &window.rest()[before];
                        line += memchr::memchr_iter(b'\n', text).count();
                        self.search_row(&row, text);
                        if let Err(stop) = self.row(&name, line, 0, row) {
                            break Some(stop);
                        }
                    }
                    Err(wrong) if failure.is_some() || window.incomplete(&wrong) => break None,
                    Err(wrong) => {
                        let place = window.place(wrong.at);
                        self.fail(not_json(&name, place.0, place.1, &wrong));
                        break Some(Stop::File);
                    }
                }
            };
            if let Some(stop) = stop {
                break Err(stop);
            }
            if is_live {
                self.show()?;
            }
            whole = parsed > 0;
            window.advance(parsed);
            if let Some(failure) = failure {
                break Err(self.given_up(&name, window.line - 1, failure));
            }
            if window.ended {
                break Ok(());
            }
            if window.start == window.filled {
                (window.start, window.filled) = (0, 0);
                trim(&mut window.bytes, WINDOW_BYTES);
            }
        };
        match done {
            Err(Stop::Run) => Err(Stop::Run),
            _ => Ok(()),
        }
    }
}
