//! Errors: of a query that cannot be compiled, and of a run.

use std::fmt;
use std::io::{self, ErrorKind};

/// The error of a query that cannot be compiled, with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileError {
    /// The source of the text: `query`, or a helper file's name.
    pub source: String,
    /// Characters from the beginning of the text, from 0; `None` when no place can be named.
    pub offset: Option<usize>,
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// The reason, and a remedy.
    pub message: String,
}

impl CompileError {
    /// An error about a whole text.
    pub(crate) fn whole(source: &str, message: impl Into<String>) -> CompileError {
        CompileError {
            source: source.to_owned(),
            offset: None,
            line: 1,
            column: 1,
            message: message.into(),
        }
    }

    /// An error at a byte of a text.
    pub(crate) fn at(
        source: &str,
        text: &str,
        byte: usize,
        message: impl Into<String>,
    ) -> CompileError {
        let mut byte = byte.min(text.len());
        while !text.is_char_boundary(byte) {
            byte -= 1;
        }
        let before = &text[..byte];
        CompileError {
            source: source.to_owned(),
            offset: Some(before.chars().count()),
            line: before.matches('\n').count() + 1,
            column: before
                .rsplit('\n')
                .next()
                .unwrap_or_default()
                .chars()
                .count()
                + 1,
            message: message.into(),
        }
    }
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.offset {
            Some(_) => write!(
                f,
                "{}:{}:{}: {}",
                self.source, self.line, self.column, self.message
            ),
            None => write!(f, "{}: {}", self.source, self.message),
        }
    }
}

impl std::error::Error for CompileError {}

/// An error of a run.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunError {
    /// The system has no memory for the stack of a run.
    Stack,
    /// An input cannot be opened, read or unpacked. Other inputs are read all the same.
    Unreadable {
        /// Name of the input.
        input: String,
        /// Why.
        reason: io::Error,
    },
    /// A line exceeds [`Options::line_bytes_max`](crate::Options::line_bytes_max). The rest of its input is not read.
    LineTooLong {
        /// Name of the input.
        input: String,
        /// Number of the line, from 1.
        line: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// A line is not JSON. The rest of its input is not read.
    NotJson {
        /// Name of the input.
        input: String,
        /// Number of the line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// The token found, and the expected ones.
        message: String,
        /// The value is nested too deeply.
        is_too_deep: bool,
    },
    /// A stage raised an exception that ends only its input: a `JSON::ParserError` or an `IOError`.
    RaisedForInput {
        /// Name of the input.
        input: String,
        /// The exception's class.
        class: &'static str,
        /// The exception's message.
        message: String,
    },
    /// A stage or a helper file raised an exception. The run ends.
    Raised {
        /// The exception's class.
        class: &'static str,
        /// The exception's message.
        message: String,
        /// The place: `log.ndjson:3, stage 0`, `end of input, stage 1` or `helper file`.
        place: String,
        /// What Ruby's message does not tell, such as the key whose value is nil.
        hint: Option<String>,
        /// The row, if a stage raised it for one: the keys that the query reads, or all.
        row: Option<lastbyte_json::Value>,
    },
    /// [`Options::interrupt`](crate::Options::interrupt) was set while a row was processed.
    Interrupted,
    /// A state of a query cannot be merged.
    State {
        /// Name of the input.
        input: String,
        /// Why.
        message: String,
    },
    /// The reducers of a stage hold values that no state can have.
    NotMergeable {
        /// Number of the stage, from 0.
        stage: usize,
    },
    /// The results cannot be written.
    Write(io::Error),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Stack => f.write_str("the system has no memory for a stack"),
            RunError::Unreadable { input, reason } => match reason.kind() {
                ErrorKind::NotFound => write!(f, "{input}: No such file or directory"),
                ErrorKind::PermissionDenied => write!(f, "{input}: Permission denied"),
                ErrorKind::IsADirectory => write!(f, "{input}: Is a directory"),
                _ => write!(f, "{input}: {reason}"),
            },
            RunError::LineTooLong {
                input,
                line,
                bytes_max,
            } => write!(
                f,
                "{input}: line {line} is longer than {} MiB; the rest of the file is not read",
                bytes_max >> 20
            ),
            RunError::NotJson {
                input,
                line,
                column,
                message,
                is_too_deep,
            } => {
                let class = if *is_too_deep {
                    "JSON::NestingError, a JSON::ParserError"
                } else {
                    "JSON::ParserError"
                };
                write!(
                    f,
                    "{input}: {message} at line {line} column {column} ({class})"
                )
            }
            RunError::RaisedForInput {
                input,
                class,
                message,
            } => write!(f, "{input}: {message} ({class})"),
            RunError::Raised {
                class,
                message,
                place,
                hint,
                ..
            } => {
                write!(f, "{message} ({class}) at {place}")?;
                match hint {
                    Some(hint) => write!(f, ": {hint}"),
                    None => Ok(()),
                }
            }
            RunError::State { input, message } => write!(f, "{input}: {message}"),
            RunError::NotMergeable { stage } => write!(
                f,
                "stage[{stage}] cannot be merged: its reducers hold other values than numbers, texts, arrays and hashes, hold large values many times, or sum other values than numbers"
            ),
            RunError::Interrupted => f.write_str("interrupted"),
            RunError::Write(reason) => write!(f, "cannot write: {reason}"),
        }
    }
}

impl std::error::Error for RunError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RunError::Unreadable { reason, .. } | RunError::Write(reason) => Some(reason),
            _ => None,
        }
    }
}

/// Lines that were left out because they are not JSON.
#[derive(Debug)]
pub struct SkippedLines {
    /// Number of lines.
    pub count: usize,
    /// The reason of the first one.
    pub first: RunError,
}

impl fmt::Display for SkippedLines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.count {
            1 => write!(
                f,
                "skipped 1 line that is not JSON; the first: {}",
                self.first
            ),
            count => write!(
                f,
                "skipped {count} lines that are not JSON; the first: {}",
                self.first
            ),
        }
    }
}

/// A constant key of the query that no row has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AbsentKey {
    /// The keys from the row on: `["a", "b"]` for `_["a"]["b"]`.
    pub path: Vec<String>,
    /// The path of the key with the most similar name, if one is similar. Rows at the start of the input are searched.
    pub nearest: Option<Vec<String>>,
    /// The built-in helper that reads it, if no row has any of the helper's keys: the query itself does not name them.
    pub helper: Option<String>,
    /// All rows of the input were read.
    pub is_whole: bool,
}

impl fmt::Display for AbsentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = if self.is_whole {
            "no row"
        } else {
            "none of the rows read"
        };
        if let Some(helper) = &self.helper {
            let path = KeyName(&self.path);
            return write!(
                f,
                "{rows} has a key that `{helper}` reads, such as `{path}`"
            );
        }
        write!(f, "{rows} has `{}`", KeyName(&self.path))?;
        match self.meant() {
            Some(meant) => write!(f, "; did you mean `{meant}`?"),
            None => Ok(()),
        }
    }
}

impl AbsentKey {
    /// The similar key: its name, or `_["a"]["b"]` where a name alone would not do.
    pub fn meant(&self) -> Option<String> {
        let nearest = self.nearest.as_ref()?;
        Some(match &nearest[..] {
            // A symbol, or one key for several.
            [name] if name.starts_with(':') || self.path.len() > 1 => format!("_{}", Index(name)),
            path => KeyName(path).to_string(),
        })
    }
}

/// A key by its name, and one within another as the query has it.
struct KeyName<'a>(&'a [String]);

impl fmt::Display for KeyName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [name] = self.0 {
            return f.write_str(name);
        }
        f.write_str("_")?;
        self.0
            .iter()
            .try_for_each(|key| write!(f, "{}", Index(key)))
    }
}

/// A key in brackets: a text, or a symbol if a colon is before it.
struct Index<'a>(&'a str);

impl fmt::Display for Index<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_word = |name: &str| {
            let is_part = |c: char| c.is_alphanumeric() || c == '_';
            !name.starts_with(|c: char| c.is_numeric()) && name.chars().all(is_part)
        };
        match self.0.strip_prefix(':') {
            Some(name) if is_word(name) => write!(f, "[:{name}]"),
            Some(name) => write!(f, "[:{name:?}]"),
            None => write!(f, "[{:?}]", self.0),
        }
    }
}
