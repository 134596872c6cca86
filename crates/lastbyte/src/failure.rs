//! Failures of commands.

use std::{fmt, io};

/// Failure of a command.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Usage error: exit code 2.
    Usage(String),
    /// Runtime failure: exit code 1.
    Run(String),
    /// Ctrl-C, before there was a result: exit code 130.
    Interrupted,
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
}
