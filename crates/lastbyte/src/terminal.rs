//! Output of commands: results on stdout, messages on stderr.
//!
//! A result that cannot be written is a [`Failure`]. A message that cannot be written is dropped: there is no other place for it,
//! and the command goes on.

use std::{
    fmt::Write as _,
    io::{self, Write},
    process::ExitCode,
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

/// Writes the error of a command to stderr, and returns its exit code.
pub(crate) fn report(failure: &Failure) -> ExitCode {
    let (what, code) = match failure {
        Failure::Usage(what) => (what, ExitCode::from(2)),
        Failure::Run(what) => (what, ExitCode::FAILURE),
        Failure::BrokenPipe => return ExitCode::SUCCESS,
    };
    notice(format!("error: {}", shortened(what)));
    code
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

/// Maximum length of a line of an error, in characters: some quote a line of a file.
const LINE_MAX: usize = 1000;

/// The text, without the middle of long lines.
fn shortened(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let len = line.chars().count();
        if len <= LINE_MAX {
            return line.to_owned();
        }
        let start: String = line.chars().take(LINE_MAX / 4).collect();
        let end: String = line.chars().skip(len - LINE_MAX / 4).collect();
        format!("{start} … {end}")
    });
    let lines: Vec<String> = lines.collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_contain_no_sequences_for_terminals() {
        let message = "a `\u{1b}]0;x\u{7}\u{9b}31m`\r\n\tüb";
        assert_eq!(
            printable(message),
            "a `\\u{1b}]0;x\\u{7}\\u{9b}31m`\\r\n\tüb"
        );
    }

    #[test]
    fn long_lines_of_errors_lose_their_middle() {
        let short = "a\nb";
        assert_eq!(shortened(short), short);
        let long = format!("`x`: invalid host `{}` (expected a name)", "é".repeat(5000));
        let text = shortened(&long);
        assert!(text.starts_with("`x`: invalid host `éé"), "{text}");
        assert!(text.ends_with("éé` (expected a name)"), "{text}");
        assert!(text.chars().count() < LINE_MAX, "{text}");
    }
}
