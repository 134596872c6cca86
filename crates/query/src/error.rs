//! Why a query cannot run.

use std::fmt;

/// A query that cannot be compiled: what is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileError {
    /// Where the text stands: `query`, or a helper file's name.
    pub source: String,
    /// Characters from the beginning of the text, from 0; `None` when no place can be named.
    pub offset: Option<usize>,
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// What is wrong, and what to do.
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
