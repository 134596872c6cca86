//! Configuration of sessions without cryptography.

use lastbyte_wire::{ConnectionId, Side, packet::Version};

use super::{
    Limits,
    handshake::{PlainSession, Role},
    initial_keys,
    messages::Sizes,
};
use crate::crypto::{ClientCrypto, Keys, ServerCrypto, Session, StartError, VersionOffer};

/// The source of a client's sessions.
#[derive(Clone, Debug)]
pub struct PlainClient {
    /// The seed of all bytes.
    pub seed: u64,
    /// The application protocols offered, by preference, of at most 255 bytes each.
    pub alpn: Vec<Vec<u8>>,
    /// Message sizes.
    pub sizes: Sizes,
    /// Key usage limits, and the coverage of the tags.
    pub limits: Limits,
    /// An earlier connection to resume.
    pub resumption: Option<Resumption>,
}

/// State that a client remembers of an earlier connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resumption {
    /// The server's transport parameters (RFC 9000 §7.4.1).
    pub parameters: Vec<u8>,
    /// Whether 0-RTT is offered.
    pub early_data: bool,
}

/// The source of a server's sessions.
#[derive(Clone, Debug)]
pub struct PlainServer {
    /// The seed of all bytes.
    pub seed: u64,
    /// The application protocols, by preference.
    pub alpn: Vec<Vec<u8>>,
    /// Message sizes.
    pub sizes: Sizes,
    /// Key usage limits, and the coverage of the tags.
    pub limits: Limits,
    /// Whether earlier connections are resumed. Default: true.
    pub resumes: bool,
    /// Whether 0-RTT of resumed connections is accepted. Default: true.
    pub accepts_early_data: bool,
}

impl PlainClient {
    /// A client that resumes no session.
    #[must_use]
    pub fn new(seed: u64, alpn: Vec<Vec<u8>>) -> Self {
        Self {
            seed,
            alpn,
            sizes: Sizes::default(),
            limits: Limits::default(),
            resumption: None,
        }
    }
}

impl PlainServer {
    /// A server that resumes sessions and accepts 0-RTT.
    #[must_use]
    pub fn new(seed: u64, alpn: Vec<Vec<u8>>) -> Self {
        Self {
            seed,
            alpn,
            sizes: Sizes::default(),
            limits: Limits::default(),
            resumes: true,
            accepts_early_data: true,
        }
    }
}

impl ClientCrypto for PlainClient {
    fn can_follow(&self) -> bool {
        true
    }

    fn initial_keys(&self, version: Version, destination: &ConnectionId) -> Keys {
        initial_keys(Side::Client, version, destination)
    }

    fn start(
        &self,
        version: Version,
        server_name: &str,
        parameters: &[u8],
    ) -> Result<Box<dyn Session>, StartError> {
        PlainSession::client(self, version, server_name, parameters)
            .map(|session| Box::new(session) as Box<dyn Session>)
            .map_err(|error| StartError::Configuration(error.to_string()))
    }
}

impl ServerCrypto for PlainServer {
    fn initial_keys(&self, version: Version, destination: &ConnectionId) -> Keys {
        initial_keys(Side::Server, version, destination)
    }

    fn start(&self, version: Version, parameters: &[u8]) -> Result<Box<dyn Session>, StartError> {
        self.start_with(version, parameters, Vec::new())
    }

    fn start_with(
        &self,
        version: Version,
        parameters: &[u8],
        better: Vec<VersionOffer>,
    ) -> Result<Box<dyn Session>, StartError> {
        Ok(Box::new(PlainSession::new(
            Role::Server(self.clone(), better),
            version,
            (self.seed, self.sizes, self.limits),
            parameters,
        )))
    }
}
