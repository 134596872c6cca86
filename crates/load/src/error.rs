//! Why a run could not start, or failed.

use std::io;

use lastbyte_client::RunError;

/// The reason why a run could not start, or failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The settings contradict each other.
    #[error("{0}")]
    Settings(String),
    /// The name of the server cannot be resolved.
    #[error("{0}")]
    Resolve(String),
    /// TLS cannot be set up.
    #[error("{0}")]
    Tls(RunError),
    /// A socket or a thread failed.
    #[error("a connection thread failed: {0}")]
    Io(io::Error),
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}
