//! Output of commands: results on stdout, messages on stderr.
//!
//! A result that cannot be written is a [`Failure`]. A message that cannot be written is dropped: there is no other place for it,
//! and the command goes on.

use std::{
    fmt::Write as _,
    io::{self, Write},
};

use crate::failure::Failure;

/// Writes a result to stdout.
pub(crate) fn print(result: impl AsRef<[u8]>) -> Result<(), Failure> {
    write_all(io::stdout().lock(), result.as_ref())
}

/// Writes a result to stdout, without its escape sequences unless stdout is a terminal that shows them.
pub(crate) fn print_styled(result: &str) -> Result<(), Failure> {
    write_all(anstream::stdout().lock(), result.as_bytes())
}

fn write_all(mut stdout: impl Write, bytes: &[u8]) -> Result<(), Failure> {
    let written = stdout.write_all(bytes).and_then(|()| stdout.flush());
    written.map_err(|error| Failure::stdout(&error))
}

/// Writes a message to stderr, with a line break unless it ends with one, and control characters escaped ([`printable`]).
pub(crate) fn notice(message: impl AsRef<str>) {
    let mut text = printable(message.as_ref());
    if !text.ends_with('\n') {
        text.push('\n');
    }
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// A message with control characters escaped, except line breaks and tabs. Messages quote names and contents of files, and a
/// terminal would obey the sequences in them.
pub(crate) fn printable(message: &str) -> String {
    let mut text = String::with_capacity(message.len());
    for character in message.chars() {
        if character.is_control() && !matches!(character, '\n' | '\t') {
            // Writing to a `String` does not fail.
            let _ = write!(text, "{}", character.escape_default());
        } else {
            text.push(character);
        }
    }
    text
}

/// Messages of others on stderr, as [`printable`] text.
pub(crate) struct Messages;

impl Write for Messages {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = printable(&String::from_utf8_lossy(bytes));
        io::stderr().write_all(text.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
