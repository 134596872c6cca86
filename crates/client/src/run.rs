//! Runs a list of fetches: opens the UDP socket, and drives the client on a worker until all fetches are complete.

use std::{io, sync::Arc};

use lastbyte_driver::{Clock, NextSocket, Worker};
use lastbyte_quic::{
    Time,
    endpoint::{Endpoint, EndpointConfig},
};

use crate::{
    client::{Client, Parts},
    crypto::CryptoError,
    fetch::{Fetch, Outcome},
    listener::Listener,
    mailbox::Mailbox,
    memory::Memory,
    resolve::Lookup,
    settings::Settings,
};

/// The result of a run.
#[derive(Debug)]
pub struct Report {
    /// The outcome of each fetch, in the order of the list.
    pub outcomes: Vec<Outcome>,
    /// The name resolution of each origin.
    pub lookups: Vec<Lookup>,
    /// When the run started.
    pub start: Time,
}

/// The reason why a run could not start, or ended early.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// There are no usable trusted roots.
    #[error("{0}")]
    Trust(String),
    /// The client certificate or its key is invalid.
    #[error("{0}")]
    Identity(String),
    /// The UDP socket cannot be opened, or has failed.
    #[error("UDP socket failed: {0}")]
    Socket(io::Error),
}

impl From<io::Error> for RunError {
    fn from(error: io::Error) -> Self {
        Self::Socket(error)
    }
}

impl From<CryptoError> for RunError {
    fn from(error: CryptoError) -> Self {
        match error {
            CryptoError::Trust(what) => Self::Trust(what),
            CryptoError::Identity(what) => Self::Identity(what),
        }
    }
}

/// Performs the fetches. Returns when each has succeeded or failed and all connections are closed.
///
/// # Errors
///
/// Returns [`RunError::Trust`] or [`RunError::Identity`] if the TLS settings are invalid, and [`RunError::Socket`] if
/// the UDP socket fails. The failure of a single fetch is reported in its [`Outcome::failure`].
pub fn run(
    settings: &Settings,
    memory: &Memory,
    clock: Clock,
    fetches: Vec<Fetch>,
    listener: &mut dyn Listener,
) -> Result<Report, RunError> {
    let crypto = memory.crypto(settings)?;
    let start = clock.now();
    let socket = settings.family.bind()?;
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|error| io::Error::other(error.to_string()))?;
    let mut config = EndpointConfig::client();
    config.limits.handshake_timeout = settings.connect_timeout;
    let endpoint = Endpoint::new(config, seed).map_err(io::Error::other)?;
    let local = socket.local_address();
    let mailbox = Arc::new(Mailbox::default());
    let next_socket = NextSocket::default();
    let parts = Parts {
        settings,
        memory,
        crypto,
        local,
        next_socket: next_socket.clone(),
        mailbox: Arc::clone(&mailbox),
        clock,
        listener,
    };
    let client = Client::new(parts, fetches);
    let worker = Worker::new(socket, endpoint, client, clock)?;
    let mut worker = worker.with_next_socket(next_socket);
    mailbox.connect(worker.remote());
    worker.run()?;
    let (outcomes, lookups) = worker.application().take_report();
    Ok(Report {
        outcomes,
        lookups,
        start,
    })
}
