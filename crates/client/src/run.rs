//! From a list of fetches to what came of them: names, a socket, a worker.

use core::fmt;
use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
};

use lastbyte_driver::{Clock, Worker};
use lastbyte_quic::{
    Time,
    endpoint::{Endpoint, EndpointConfig},
};
use lastbyte_udp::{Options, Socket};

use crate::{
    client::{Client, Parts},
    crypto::CryptoError,
    family::Family,
    fetch::{Fetch, Outcome},
    listener::Listener,
    mailbox::Mailbox,
    memory::Memory,
    resolve::Lookup,
    settings::Settings,
};

/// What a run came to.
#[derive(Debug)]
pub struct Report {
    /// Of each fetch, in their order.
    pub outcomes: Vec<Outcome>,
    /// Of each origin that was asked for something.
    pub lookups: Vec<Lookup>,
    /// When it began.
    pub start: Time,
}

/// Why nothing could be fetched at all.
#[derive(Debug)]
pub enum RunError {
    /// There is nobody to trust.
    Trust(String),
    /// Our own certificate is none.
    Identity(String),
    /// There is no socket, or it is broken.
    Socket(io::Error),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Trust(what) | Self::Identity(what) => f.write_str(what),
            Self::Socket(error) => write!(f, "cannot use a UDP socket: {error}"),
        }
    }
}

impl std::error::Error for RunError {}

impl From<io::Error> for RunError {
    fn from(error: io::Error) -> Self {
        Self::Socket(error)
    }
}

/// Fetches. Returns when all are over, well or not, and all connections closed.
///
/// # Errors
///
/// Nothing can be fetched at all. What concerns single fetches is in their outcomes.
pub fn run(
    settings: &Settings,
    memory: &Memory,
    clock: Clock,
    fetches: Vec<Fetch>,
    listener: &mut dyn Listener,
) -> Result<Report, RunError> {
    let crypto = memory.crypto(settings).map_err(|error| match error {
        CryptoError::Trust(what) => RunError::Trust(what),
        CryptoError::Identity(what) => RunError::Identity(what),
    })?;
    let start = clock.now();
    let socket = bind(settings.family)?;
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|error| io::Error::other(error.to_string()))?;
    let mut config = EndpointConfig::client();
    config.limits.handshake_timeout = settings.connect_timeout;
    let endpoint = Endpoint::new(config, seed).map_err(io::Error::other)?;
    let local = socket.local_address();
    let mailbox = Arc::new(Mailbox::default());
    let parts = Parts {
        settings,
        memory,
        crypto,
        local,
        mailbox: Arc::clone(&mailbox),
        clock,
        listener,
    };
    let client = Client::new(parts, fetches);
    let mut worker = Worker::new(socket, endpoint, client, clock)?;
    mailbox.connect(worker.remote());
    worker.run()?;
    let (outcomes, lookups) = worker.application().take_report();
    Ok(Report {
        outcomes,
        lookups,
        start,
    })
}

/// A socket for all families that are wanted, or for IPv4 where there is no IPv6.
fn bind(family: Family) -> io::Result<Socket> {
    let options = Options::default();
    let ipv4 = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0);
    let ipv6 = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), 0);
    match family {
        Family::Ipv4 => Socket::bind(ipv4, &options),
        Family::Ipv6 => Socket::bind(ipv6, &options),
        Family::Any => Socket::bind(ipv6, &options).or_else(|_| Socket::bind(ipv4, &options)),
    }
}
