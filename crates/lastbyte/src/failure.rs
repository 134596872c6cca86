//! Failures of commands: an error message on stderr and an exit code.

use std::{fmt, io, process::ExitCode};

use crate::terminal::notice;

/// Failure of a command.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Usage error: exit code 2.
    Usage(String),
    /// Runtime failure: exit code 1.
    Run(String),
    /// The reader of stdout closed the pipe: exit code 0, without a message.
    BrokenPipe,
}

impl Failure {
    pub(crate) fn usage(error: impl fmt::Display) -> Self {
        Self::Usage(error.to_string())
    }

    pub(crate) fn run(error: impl fmt::Display) -> Self {
        Self::Run(error.to_string())
    }

    /// Writing to stdout failed.
    pub(crate) fn stdout(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::BrokenPipe
        } else {
            Self::Run(format!("cannot write to stdout: {error}"))
        }
    }

    pub(crate) fn report(&self) -> ExitCode {
        match self {
            Self::Usage(what) => {
                notice(format!("error: {}", shortened(what)));
                ExitCode::from(2)
            }
            Self::Run(what) => {
                notice(format!("error: {}", shortened(what)));
                ExitCode::FAILURE
            }
            Self::BrokenPipe => ExitCode::SUCCESS,
        }
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
