//! Output of commands: results on stdout, messages on stderr.
//!
//! A result that cannot be written is a [`Failure`]. A message that cannot be written is dropped: there is no other place for it,
//! and the command goes on.
//!
//! Both contain names from files and of servers, and a terminal would obey the control characters in them: they are
//! [`printable`] wherever they reach a terminal. The data of `query` and `get` are written as they are.

use std::{
    fmt::Write as _,
    io::{self, IsTerminal, Write},
    path::Path,
    process::ExitCode,
};

use anstyle::Style;

use crate::{failure::Failure, files};

#[cfg(test)]
mod tests;

/// Writes a result to stdout; on a terminal, as [`printable`] text.
pub(crate) fn print(result: impl AsRef<str>) -> Result<(), Failure> {
    print_data(shown(result.as_ref(), &io::stdout()))
}

/// Writes data to stdout, as they are.
pub(crate) fn print_data(data: impl AsRef<[u8]>) -> Result<(), Failure> {
    write_all(io::stdout().lock(), data.as_ref())
}

/// Writes [`printable`] texts to stdout, in these styles where stdout is a terminal that shows them.
pub(crate) fn print_styled(texts: &[(Style, String)]) -> Result<(), Failure> {
    write_all(anstream::stdout().lock(), styled(texts).as_bytes())
}

fn styled(texts: &[(Style, String)]) -> String {
    let texts = texts.iter();
    let styled = texts.map(|(style, text)| format!("{style}{}{style:#}", printable(text)));
    styled.collect()
}

/// What a stream shows of a text: it is [`printable`] on a terminal.
pub(crate) fn shown(text: &str, stream: &impl IsTerminal) -> String {
    if stream.is_terminal() {
        printable(text)
    } else {
        text.to_owned()
    }
}

/// The number of columns of the terminal that stdout is; `None` if it is another file.
pub(crate) fn width() -> Option<usize> {
    let stdout = io::stdout();
    let size = stdout
        .is_terminal()
        .then(|| rustix::termios::tcgetwinsize(&stdout))?
        .ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}

fn write_all(mut stdout: impl Write, bytes: &[u8]) -> Result<(), Failure> {
    let written = stdout.write_all(bytes).and_then(|()| stdout.flush());
    written.map_err(|error| Failure::stdout(&error))
}

/// A number of things: `1 server`, `2 servers`.
pub(crate) fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Writes a message to stderr, with a line break unless it ends with one, and control characters escaped ([`printable`]).
pub(crate) fn notice(message: impl AsRef<str>) {
    let mut text = printable(message.as_ref());
    if !text.ends_with('\n') {
        text.push('\n');
    }
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Writes a whole file that is a result, and reports it.
pub(crate) fn save(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    files::write(path, bytes)?;
    wrote(path);
    Ok(())
}

/// Reports a file or directory that was written. All commands have this sentence.
pub(crate) fn wrote(path: &Path) {
    wrote_as(path, "");
}

/// Reports a file or directory that was written, and what it has.
pub(crate) fn wrote_as(path: &Path, what: &str) {
    let separator = if what.is_empty() { "" } else { ": " };
    notice(format!("wrote {}{separator}{what}", path.display()));
}

/// Writes a [`printable`] message to stderr, in this style where stderr is a terminal that shows it.
pub(crate) fn styled_notice(style: Style, message: impl Into<String>) {
    let text = styled(&[(style, message.into()), (Style::new(), "\n".to_owned())]);
    let _ = anstream::stderr().lock().write_all(text.as_bytes());
}

/// Warns about a file of secrets that any user can read or write.
pub(crate) fn warn_if_exposed(path: &Path) {
    if let Some(mode) = files::exposed_mode(path) {
        notice(format!(
            "warning: any user can read `{}`: mode {mode:04o} (expected 0600)",
            path.display()
        ));
    }
}

/// Writes the error of a command to stderr, and returns its exit code.
pub(crate) fn report(failure: &Failure) -> ExitCode {
    let (what, code) = match failure {
        Failure::Usage(what) => (what, ExitCode::from(2)),
        Failure::Run(what) => (what, ExitCode::FAILURE),
        Failure::Interrupted => {
            notice("interrupted");
            return ExitCode::from(130);
        }
        Failure::BrokenPipe => return ExitCode::SUCCESS,
    };
    error(format!("error: {what}"));
    code
}

/// Writes an error to stderr, with long quotations and lines shortened: they can be whole files, or from a hostile server.
pub(crate) fn error(message: impl AsRef<str>) {
    notice(shortened(message.as_ref()));
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

/// Maximum length of a quotation or a word in an error, and what is left of a line longer than [`LINE_MAX`], in characters.
const QUOTE_MAX: usize = 200;
/// Maximum length of a line of an error, in characters: some quote a line of a file.
const LINE_MAX: usize = 1000;

/// The text, without the middle of long quotations, words and lines. URLs and paths are words, and what is wrong with them follows.
fn shortened(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let mut pieces: Vec<String> = line.split('`').map(str::to_owned).collect();
        // Without a closing quotation mark, what is quoted is unknown.
        let is_paired = pieces.len() % 2 == 1;
        for (index, piece) in pieces.iter_mut().enumerate() {
            *piece = if is_paired && index % 2 == 1 {
                without_middle(piece, QUOTE_MAX)
            } else {
                let words = piece.split(' ');
                let words: Vec<String> =
                    words.map(|word| without_middle(word, QUOTE_MAX)).collect();
                words.join(" ")
            };
        }
        without_middle(&pieces.join("`"), LINE_MAX)
    });
    let lines: Vec<String> = lines.collect();
    lines.join("\n")
}

/// A text of at most `max` characters; of a longer one, [`QUOTE_MAX`] characters.
fn without_middle(text: &str, max: usize) -> String {
    let len = text.chars().count();
    if len <= max {
        return text.to_owned();
    }
    let start: String = text.chars().take(QUOTE_MAX / 2).collect();
    let end: String = text.chars().skip(len - QUOTE_MAX / 2).collect();
    format!("{start}…{end}")
}
