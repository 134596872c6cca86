//! How a command ends that cannot do what it was asked for: what is wrong, on stderr, and an exit code.

use std::{fmt, io, process::ExitCode};

/// Why a command cannot go on.
#[derive(Debug)]
pub(crate) enum Failure {
    /// What was asked for cannot be: exit code 2.
    Usage(String),
    /// It went wrong: exit code 1.
    Run(String),
    /// Whoever reads our output wants no more of it: nothing is said.
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

    #[expect(clippy::print_stderr, reason = "errors go to stderr")]
    pub(crate) fn report(&self) -> ExitCode {
        match self {
            Self::Usage(what) => {
                eprintln!("error: {what}");
                ExitCode::from(2)
            }
            Self::Run(what) => {
                eprintln!("error: {what}");
                ExitCode::FAILURE
            }
            Self::BrokenPipe => ExitCode::SUCCESS,
        }
    }
}
