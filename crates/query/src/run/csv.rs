//! Comma-separated input (RFC 4180) as lines of JSON. The first line names the fields of the others. An empty field is
//! null, and an unquoted one that is a number of JSON is a number; all others are texts. Each record keeps its line
//! numbers: the header is an empty line, and so is each further line of a record that spans several.

use crate::json::csv::is_number;
use std::io::{self, ErrorKind, Read};
use std::mem;

/// Read size in bytes.
const BUFFER: usize = 64 << 10;

/// Maximum size of a record in bytes.
const RECORD_BYTES_MAX: usize = 256 << 20;

/// A byte-order mark, which spreadsheets write.
const MARK: &[u8] = b"\xef\xbb\xbf";

enum At {
    Start,
    Plain,
    Quoted,
    /// After a quote in a quoted field: its end, or the first of two.
    Quote,
    /// After this number of carriage returns outside of quotes: one line end if a line feed follows, else one each.
    Returns(usize),
}

struct Field {
    text: Vec<u8>,
    quoted: bool,
}

/// Reads comma-separated records, and gives lines of JSON.
pub(super) struct Csv<R> {
    reader: R,
    buffer: Vec<u8>,
    at: At,
    /// The field that is read, and those before it.
    text: Vec<u8>,
    quoted: bool,
    fields: Vec<Field>,
    record_bytes: usize,
    record_bytes_max: usize,
    /// The keys as JSON, each with its colon.
    keys: Option<Vec<Vec<u8>>>,
    /// The line that is read, and the first line of its record and of its quoted field.
    line: usize,
    record_line: usize,
    quote_line: usize,
    out: Vec<u8>,
    given: usize,
    ended: bool,
    /// Returned after the records before it.
    failure: Option<io::Error>,
    /// Carriage returns without a line feed end lines, as after the header.
    ends_at_return: bool,
}

impl<R: Read> Csv<R> {
    pub(super) fn new(reader: R) -> Csv<R> {
        Csv {
            reader,
            buffer: vec![0; BUFFER],
            at: At::Start,
            text: Vec::new(),
            quoted: false,
            fields: Vec::new(),
            record_bytes: 0,
            record_bytes_max: RECORD_BYTES_MAX,
            keys: None,
            line: 1,
            record_line: 1,
            quote_line: 1,
            out: Vec::new(),
            given: 0,
            ended: false,
            failure: None,
            ends_at_return: false,
        }
    }

    fn feed_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while let Some((first, rest)) = bytes.split_first() {
            let is_text = |byte: &u8| match self.at {
                At::Plain => !matches!(byte, b',' | b'"' | b'\r' | b'\n'),
                At::Quoted => !matches!(byte, b'"' | b'\n'),
                _ => false,
            };
            let end = bytes.iter().position(|byte| !is_text(byte));
            let room = self.record_bytes_max - self.record_bytes;
            let run = end.unwrap_or(bytes.len()).min(room);
            if run > 0 {
                self.record_bytes += run;
                self.text.extend_from_slice(&bytes[..run]);
                bytes = &bytes[run..];
            } else {
                self.feed(*first)?;
                bytes = rest;
            }
        }
        Ok(())
    }

    fn feed(&mut self, byte: u8) -> io::Result<()> {
        self.record_bytes += 1;
        if self.record_bytes > self.record_bytes_max {
            return Err(self.wrong(format!(
                "the record is longer than {} bytes",
                self.record_bytes_max
            )));
        }
        match (&self.at, byte) {
            (At::Quoted, b'"') => self.at = At::Quote,
            (At::Quoted, _) => {
                self.line += usize::from(byte == b'\n');
                self.text.push(byte);
            }
            (At::Quote, b'"') => {
                self.text.push(byte);
                self.at = At::Quoted;
            }
            (At::Returns(count), b'\r') => self.at = At::Returns(count + 1),
            (At::Returns(count), _) if byte != b'\n' => {
                let count = *count;
                if self.keys.is_some() && !self.ends_at_return {
                    return Err(self.wrong(
                        "a carriage return in a field without quotes (expected line ends like that of the header)",
                    ));
                }
                self.ends_at_return = true;
                self.end_line(count)?;
                return self.feed(byte);
            }
            (_, b',') => self.end_field(),
            (_, b'\n') => self.end_line(1)?,
            (_, b'\r') => self.at = At::Returns(1),
            (At::Quote, _) => {
                return Err(self.wrong("a quoted field continues after its closing quote"));
            }
            (At::Start, b'"') => self.start_quoted(),
            (At::Plain, b'"') if self.keys.is_none() && self.text == MARK => {
                self.text.clear();
                self.start_quoted();
            }
            (_, b'"') => {
                return Err(self.wrong("a quote in a field that does not begin with one"));
            }
            _ => {
                self.text.push(byte);
                self.at = At::Plain;
            }
        }
        Ok(())
    }

    fn start_quoted(&mut self) {
        self.at = At::Quoted;
        self.quoted = true;
        self.quote_line = self.line;
    }

    fn end_field(&mut self) {
        self.fields.push(Field {
            text: mem::take(&mut self.text),
            quoted: mem::take(&mut self.quoted),
        });
        self.at = At::Start;
    }

    /// Ends a record at this number of line ends.
    fn end_line(&mut self, ends: usize) -> io::Result<()> {
        self.end_field();
        self.end_record()?;
        self.line += ends;
        self.record_line = self.line;
        self.out.extend(std::iter::repeat_n(b'\n', ends - 1));
        Ok(())
    }

    fn end_record(&mut self) -> io::Result<()> {
        self.record_bytes = 0;
        let mut fields = mem::take(&mut self.fields);
        let is_blank = matches!(&fields[..], [only] if !only.quoted && only.text.is_empty());
        match &self.keys {
            _ if is_blank => {}
            None => {
                if let Some(first) = fields.first_mut()
                    && first.text.starts_with(MARK)
                {
                    first.text.drain(..MARK.len());
                }
                self.keys = Some(self.header(&fields)?);
            }
            Some(keys) if fields.len() > keys.len() => {
                return Err(self.wrong(format!(
                    "{} fields (expected {}, as in the header)",
                    fields.len(),
                    keys.len()
                )));
            }
            Some(keys) => {
                let out = &mut self.out;
                for (at, key) in keys.iter().enumerate() {
                    out.push(if at == 0 { b'{' } else { b',' });
                    out.extend_from_slice(key);
                    match fields.get(at) {
                        Some(field) if field.quoted => write_text(out, &field.text),
                        Some(field) if is_number(&field.text) => out.extend_from_slice(&field.text),
                        Some(field) if !field.text.is_empty() => write_text(out, &field.text),
                        _ => out.extend_from_slice(b"null"),
                    }
                }
                out.push(b'}');
            }
        }
        let lines = self.line - self.record_line + 1;
        self.out.extend(std::iter::repeat_n(b'\n', lines));
        Ok(())
    }

    fn header(&self, fields: &[Field]) -> io::Result<Vec<Vec<u8>>> {
        if let [only] = fields
            && !only.quoted
            && let Some(other) = only.text.iter().find(|byte| b";\t|".contains(byte))
        {
            let other = char::from(*other);
            return Err(self.wrong(format!(
                "the header has one column, with {other:?} in its name (expected columns separated by commas)"
            )));
        }
        let mut keys: Vec<Vec<u8>> = Vec::with_capacity(fields.len());
        let mut known = std::collections::BTreeSet::new();
        for field in fields {
            if !known.insert(&field.text) {
                let name = String::from_utf8_lossy(&field.text);
                return Err(self.wrong(format!("the header has two columns `{name}`")));
            }
            let mut key = Vec::new();
            write_text(&mut key, &field.text);
            key.push(b':');
            keys.push(key);
        }
        Ok(keys)
    }

    fn end(&mut self) -> io::Result<()> {
        if let At::Quoted = self.at {
            return Err(self.wrong(format!(
                "the quoted field that begins in line {} has no end",
                self.quote_line
            )));
        }
        if self.record_bytes > 0 {
            self.end_field();
            self.end_record()?;
        }
        Ok(())
    }

    fn wrong(&self, what: impl std::fmt::Display) -> io::Error {
        let what = format!("invalid CSV in line {}: {what}", self.line);
        io::Error::new(ErrorKind::InvalidData, what)
    }

    /// Converts the next bytes.
    fn convert(&mut self) -> io::Result<()> {
        let mut buffer = mem::take(&mut self.buffer);
        let read = self.reader.read(&mut buffer);
        let done = match &read {
            Ok(0) => {
                self.ended = true;
                self.end()
            }
            Ok(count) => self.feed_all(&buffer[..*count]),
            Err(_) => Ok(()),
        };
        self.buffer = buffer;
        read.and(done)
    }
}

impl<R: Read> Read for Csv<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.given == self.out.len() {
            if let Some(failure) = self.failure.take() {
                self.ended = true;
                return Err(failure);
            }
            if self.ended || buffer.is_empty() {
                return Ok(0);
            }
            self.given = 0;
            self.out.clear();
            if let Err(failure) = self.convert() {
                if matches!(
                    failure.kind(),
                    ErrorKind::Interrupted | ErrorKind::WouldBlock
                ) {
                    return Err(failure);
                }
                self.failure = Some(failure);
            }
        }
        let count = buffer.len().min(self.out.len() - self.given);
        buffer[..count].copy_from_slice(&self.out[self.given..self.given + count]);
        self.given += count;
        Ok(count)
    }
}

/// Writes a text as JSON. Invalid UTF-8 is left to the parser, which reports it.
fn write_text(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    for byte in text {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', *byte]),
            0..0x20 => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.push(*byte),
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests;
