//! The values of a JSON file of any length, one at a time.
//!
//! A value that is not JSON is an error. Where the next value starts can be known nevertheless: behind the next record separator
//! (RFC 7464 §2.3), or in the next line if each value has a line of its own. [`Source::skip_damaged`] goes there.

use std::io::{self, Read};

/// The longest value that is kept in memory, in bytes.
const VALUE_MAX: usize = 16 << 20;
/// Size of a read, in bytes.
const CHUNK: usize = 1 << 18;
/// Brackets in brackets; the parser of values has a lower limit.
const DEPTH_MAX: u32 = 128;

/// Why a file cannot be read further.
#[derive(Debug)]
pub(super) enum Broken {
    Io(io::Error),
    Syntax(String),
    /// The value is not JSON, but the file goes on behind it.
    Damaged(String),
}

/// Where values start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Framing {
    /// Anywhere.
    #[default]
    Free,
    /// Behind record separators.
    Records,
    /// At the start of lines, and none spans lines.
    Lines,
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Broken {
    pub(super) fn unexpected(byte: u8, expected: &str) -> Self {
        let shown = match byte {
            b' '..=b'~' => format!("`{}`", char::from(byte)),
            _ => format!("byte 0x{byte:02x}"),
        };
        Self::Syntax(format!("unexpected {shown} (expected {expected})"))
    }

    fn end() -> Self {
        Self::Syntax("it ends in the middle of a value".to_owned())
    }
}

/// A file, of which a part is in memory.
pub(super) struct Source<R> {
    input: R,
    buffer: Vec<u8>,
    /// Start of the unused bytes in the buffer.
    at: usize,
    /// End of the bytes read into the buffer.
    end: usize,
    is_over: bool,
    framing: Framing,
    /// The number of record separators so far.
    record: u64,
    /// The number of line ends so far.
    line: u64,
}

impl<R: Read> Source<R> {
    pub(super) fn new(input: R) -> Self {
        Self {
            input,
            buffer: Vec::new(),
            at: 0,
            end: 0,
            is_over: false,
            framing: Framing::Free,
            record: 0,
            line: 0,
        }
    }

    pub(super) const fn framing(&self) -> Framing {
        self.framing
    }

    /// Values start at lines from here on, or anywhere. Record separators have precedence.
    pub(super) fn set_lines(&mut self, is_lines: bool) {
        if self.framing != Framing::Records {
            self.framing = if is_lines {
                Framing::Lines
            } else {
                Framing::Free
            };
        }
    }

    /// The number of line ends so far.
    pub(super) const fn line(&self) -> u64 {
        self.line
    }

    /// Skips a byte order mark.
    pub(super) fn skip_mark(&mut self) -> Result<(), Broken> {
        const MARK: &[u8] = b"\xef\xbb\xbf";
        while self.end - self.at < MARK.len() && self.fill()? {}
        if self.buffer[self.at..self.end].starts_with(MARK) {
            self.at += MARK.len();
        }
        Ok(())
    }

    /// Goes to the next record or line after a value that is not JSON. Returns the place of that value, or `None` if the next
    /// one cannot be found.
    pub(super) fn skip_damaged(&mut self) -> Result<Option<String>, Broken> {
        let (wanted, place) = match self.framing {
            Framing::Free => return Ok(None),
            Framing::Records => (0x1e, format!("record {}", self.record)),
            Framing::Lines => (b'\n', format!("line {}", self.line + 1)),
        };
        loop {
            let rest = &self.buffer[self.at..self.end];
            if let Some(found) = rest.iter().position(|byte| *byte == wanted) {
                self.line += lines(&rest[..found]);
                self.at += found;
                return Ok(Some(place));
            }
            self.line += lines(rest);
            self.at = self.end;
            if !self.fill()? {
                return Ok(Some(place));
            }
        }
    }

    /// Reads more. Returns whether there is more.
    fn fill(&mut self) -> Result<bool, Broken> {
        if self.is_over {
            return Ok(false);
        }
        if self.at > 0 {
            self.buffer.copy_within(self.at..self.end, 0);
            self.end -= self.at;
            self.at = 0;
        }
        if self.end > VALUE_MAX {
            return Err(Broken::Syntax(format!(
                "a value of more than {} MiB",
                VALUE_MAX >> 20
            )));
        }
        if self.buffer.len() < self.end + CHUNK {
            self.buffer.resize(self.end + CHUNK, 0);
        }
        loop {
            match self.input.read(&mut self.buffer[self.end..]) {
                Ok(0) => {
                    self.is_over = true;
                    return Ok(false);
                }
                Ok(count) => {
                    self.end += count;
                    return Ok(true);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The next byte of a value, after blanks, commas and record separators (RFC 7464). `None` at the end of the file.
    pub(super) fn peek(&mut self) -> Result<Option<u8>, Broken> {
        loop {
            while self.at < self.end {
                match self.buffer[self.at] {
                    b' ' | b'\t' | b'\r' | b',' => {}
                    b'\n' => self.line += 1,
                    0x1e => {
                        self.framing = Framing::Records;
                        self.record += 1;
                    }
                    other => return Ok(Some(other)),
                }
                self.at += 1;
            }
            if !self.fill()? {
                return Ok(None);
            }
        }
    }

    /// Skips the byte that [`Source::peek`] returned.
    pub(super) fn take(&mut self) -> Result<(), Broken> {
        if self.at >= self.end {
            return Err(Broken::end());
        }
        self.at += 1;
        Ok(())
    }

    /// Skips this bracket.
    pub(super) fn open(&mut self, bracket: u8) -> Result<(), Broken> {
        match self.peek()? {
            Some(byte) if byte == bracket => self.take(),
            Some(other) => Err(Broken::unexpected(
                other,
                &format!("`{}`", char::from(bracket)),
            )),
            None => Err(Broken::end()),
        }
    }

    /// Whether an array has another element. Skips its end.
    pub(super) fn has_element(&mut self) -> Result<bool, Broken> {
        match self.peek()? {
            Some(b']') => {
                self.take()?;
                Ok(false)
            }
            Some(_) => Ok(true),
            None => Err(Broken::end()),
        }
    }

    /// The next key of an object, with its colon; `None` at the end of the object, which is skipped.
    pub(super) fn key(&mut self) -> Result<Option<String>, Broken> {
        match self.peek()? {
            Some(b'}') => {
                self.take()?;
                return Ok(None);
            }
            Some(b'"') => {}
            Some(other) => return Err(Broken::unexpected(other, "a key")),
            None => return Err(Broken::end()),
        }
        let quoted = self.value()?;
        let key = quoted.get(1..quoted.len().saturating_sub(1));
        let key = String::from_utf8_lossy(key.unwrap_or_default()).into_owned();
        match self.peek()? {
            Some(b':') => self.take()?,
            Some(other) => return Err(Broken::unexpected(other, "`:`")),
            None => return Err(Broken::end()),
        }
        Ok(Some(key))
    }

    /// The text of the next value.
    pub(super) fn value(&mut self) -> Result<&[u8], Broken> {
        let Some(first) = self.peek()? else {
            return Err(Broken::end());
        };
        let len = match first {
            b'{' | b'[' | b'"' => self.nested()?,
            b'}' | b']' | b':' => {
                return Err(match Broken::unexpected(first, "a value") {
                    Broken::Syntax(why) if self.framing != Framing::Free => Broken::Damaged(why),
                    broken => broken,
                });
            }
            _ => self.scalar()?,
        };
        let from = self.at;
        self.at += len;
        let text = &self.buffer[from..from + len];
        if self.framing == Framing::Free {
            self.line += lines(text);
        }
        Ok(text)
    }

    /// The length of a value that ends with a bracket or a quote.
    fn nested(&mut self) -> Result<usize, Broken> {
        let (mut len, mut in_string) = (0, false);
        // The open brackets; the last one is the lowest bit, and 1 is `[`.
        let (mut depth, mut open) = (0_u32, 0_u128);
        let damaged = |why: &str| Err(Broken::Damaged(why.to_owned()));
        loop {
            let rest = &self.buffer[self.at + len..self.end];
            let mut bytes = rest.iter().enumerate();
            while let Some((place, byte)) = bytes.next() {
                if in_string {
                    match byte {
                        b'"' => in_string = false,
                        // A control character is escaped in a string (RFC 8259 §7).
                        b'\n' | 0x1e => return damaged("a string without an end"),
                        // The escaped byte is never a quote that ends the string.
                        b'\\' => {
                            if bytes.next().is_none() {
                                // It has not arrived yet: check both again.
                                len += place;
                                break;
                            }
                            continue;
                        }
                        _ => continue,
                    }
                } else {
                    match byte {
                        b'"' => {
                            in_string = true;
                            continue;
                        }
                        b'{' | b'[' => {
                            depth += 1;
                            open = open << 1 | u128::from(*byte == b'[');
                            if depth > DEPTH_MAX {
                                return damaged("it is nested too deeply");
                            }
                        }
                        b'}' | b']' => {
                            if (open & 1 == 1) != (*byte == b']') {
                                return damaged("brackets that do not match");
                            }
                            depth = depth.saturating_sub(1);
                            open >>= 1;
                        }
                        0x1e => return damaged("it has no end"),
                        b'\n' if self.framing == Framing::Lines => {
                            return damaged("it has no end");
                        }
                        _ => continue,
                    }
                }
                if depth == 0 && !in_string {
                    return Ok(len + place + 1);
                }
            }
            // All has been looked at, unless the last byte is half of an escape.
            let seen = self.end - self.at;
            let is_half = in_string && self.buffer[self.at + len..self.end] == *b"\\";
            if !is_half {
                len = seen;
            }
            if !self.fill()? {
                return Err(Broken::end());
            }
        }
    }

    /// The length of a number or a word.
    fn scalar(&mut self) -> Result<usize, Broken> {
        let mut len = 0;
        loop {
            while self.at + len < self.end {
                if matches!(
                    self.buffer[self.at + len],
                    b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n' | 0x1e
                ) {
                    return Ok(len);
                }
                len += 1;
            }
            if !self.fill()? {
                return Ok(len);
            }
        }
    }
}

fn lines(text: &[u8]) -> u64 {
    text.split(|byte| *byte == b'\n').count() as u64 - 1
}
