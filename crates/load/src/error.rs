//! Why a run could not start, or failed.

use core::fmt;
use std::io;

use lastbyte_client::RunError;

/// The reason why a run could not start, or failed.
#[derive(Debug)]
pub enum Error {
    /// The settings contradict each other.
    Settings(String),
    /// The name of the server cannot be resolved.
    Resolve(String),
    /// TLS cannot be set up.
    Tls(RunError),
    /// A socket or a thread failed.
    Io(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Settings(what) | Self::Resolve(what) => f.write_str(what),
            Self::Tls(error) => error.fmt(f),
            Self::Io(error) => write!(f, "a connection thread failed: {error}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}
