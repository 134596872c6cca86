//! rustls configurations for QUIC, and the sessions created from them.

use std::sync::Arc;

use lastbyte_wire::{ConnectionId, Side, packet::Version};
use rustls::quic;

use super::{Choice, Resumption, SecretLog, TlsSession};
use crate::crypto::{
    ClientCrypto, Keys, ServerCrypto, Session, StartError, VersionOffer, initial,
    kdf_hook::is_hooked,
    tickets::{
        ServerTickets, Tickets,
        client::{ClientSessions, SessionWatch},
        clock::TlsTime,
    },
};

/// The source of a client's TLS sessions.
#[derive(Clone, Debug)]
pub struct TlsClient {
    config: Arc<rustls::ClientConfig>,
    sessions: Option<Arc<ClientSessions>>,
}

/// The source of a server's TLS sessions.
#[derive(Clone, Debug)]
pub struct TlsServer {
    config: Arc<rustls::ServerConfig>,
    tickets: Option<Arc<Tickets>>,
}

/// Why a TLS configuration cannot be used for QUIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// `alpn_protocols` is empty (RFC 9001 §8.1).
    #[error("QUIC needs an application protocol: set `alpn_protocols`")]
    NoApplicationProtocol,
    /// It has no TLS 1.3 cipher suite that supports QUIC (RFC 9001 §4.2).
    #[error("QUIC needs a cipher suite of TLS 1.3 that knows of it")]
    NoCipherSuite,
    /// Its crypto provider cannot save sessions: use [`crate::crypto::provider`].
    #[error("sessions can be saved only with a provider of `crypto::provider`")]
    ClosedProvider,
    /// It issues tickets itself, with its `ticketer`.
    #[error("the configuration has a `ticketer`, whose tickets allow no 0-RTT")]
    Ticketer,
    /// `max_early_data_size` is neither 0 nor 2^32 − 1 (RFC 9001 §4.6.1).
    #[error("in QUIC `max_early_data_size` is 0 or 0xffff_ffff")]
    EarlyDataSize,
}

impl TlsClient {
    /// Wraps a configuration. To offer 0-RTT set its `enable_early_data`; to log secrets, its `key_log`.
    ///
    /// # Errors
    ///
    /// Returns [`ConfigError`] if it cannot be used for QUIC.
    pub fn new(config: impl Into<Arc<rustls::ClientConfig>>) -> Result<Self, ConfigError> {
        let config = config.into();
        check(&config.alpn_protocols, config.crypto_provider())?;
        Ok(Self {
            config,
            sessions: None,
        })
    }

    /// Wraps a configuration, with stored sessions. Their verifier replaces its own, their clock its `time_provider`,
    /// and its `resumption` is not used. To offer 0-RTT set its `enable_early_data`.
    ///
    /// # Errors
    ///
    /// Returns [`ConfigError`] if it cannot be used for QUIC, or was not built with a provider of
    /// [`crate::crypto::provider`].
    pub fn with_sessions(
        mut config: rustls::ClientConfig,
        sessions: ClientSessions,
    ) -> Result<Self, ConfigError> {
        if !is_hooked(config.crypto_provider()) {
            return Err(ConfigError::ClosedProvider);
        }
        let verifier = Arc::clone(&sessions.verifier);
        config.dangerous().set_certificate_verifier(verifier);
        config.time_provider = Arc::new(TlsTime(Arc::clone(&sessions.clock)));
        let client = Self::new(config)?;
        Ok(Self {
            sessions: Some(Arc::new(sessions)),
            ..client
        })
    }
}

impl TlsServer {
    /// Wraps a configuration. To accept 0-RTT set its `max_early_data_size`; to log secrets, its `key_log`.
    ///
    /// # Errors
    ///
    /// Returns [`ConfigError`] if it cannot be used for QUIC.
    pub fn new(config: impl Into<Arc<rustls::ServerConfig>>) -> Result<Self, ConfigError> {
        let config = config.into();
        check(&config.alpn_protocols, config.crypto_provider())?;
        if ![0, u32::MAX].contains(&config.max_early_data_size) {
            return Err(ConfigError::EarlyDataSize);
        }
        Ok(Self {
            config,
            tickets: None,
        })
    }

    /// Wraps a configuration, with stateless tickets. They decide about 0-RTT, whatever its `max_early_data_size`;
    /// their clock replaces its `time_provider`, and its `session_storage` is not used. The number of tickets is still
    /// set by its `send_tls13_tickets` and `max_tls13_tickets` (RFC 9149).
    ///
    /// # Errors
    ///
    /// Returns [`ConfigError`] if it cannot be used for QUIC, or has a `ticketer`, which rustls would use, without
    /// 0-RTT.
    pub fn with_tickets(
        mut config: rustls::ServerConfig,
        tickets: Arc<Tickets>,
    ) -> Result<Self, ConfigError> {
        if config.ticketer.enabled() {
            return Err(ConfigError::Ticketer);
        }
        let takes_early_data = tickets.takes_zero_rtt();
        config.max_early_data_size = if takes_early_data { u32::MAX } else { 0 };
        config.time_provider = Arc::new(TlsTime(tickets.clock()));
        let server = Self::new(config)?;
        Ok(Self {
            tickets: Some(tickets),
            ..server
        })
    }
}

impl TlsServer {
    /// Whether keys can be derived with the labels of another version.
    pub(super) fn can_relabel(&self) -> bool {
        is_hooked(self.config.crypto_provider())
    }

    /// A connection that the client started in the `first` version, and that continues in the same or another one.
    pub(super) fn connect(
        &self,
        first: Version,
        version: Version,
        parameters: &[u8],
    ) -> Result<(quic::Connection, Resumption), StartError> {
        let (config, resumption) = match &self.tickets {
            None => (Arc::clone(&self.config), Resumption::Stores),
            Some(tickets) => {
                let random = self.config.crypto_provider().secure_random;
                let tickets = ServerTickets::new(tickets, random, (first, version), parameters);
                let mut config = rustls::ServerConfig::clone(&self.config);
                config.session_storage = tickets.store();
                let log = Arc::new(SecretLog::new(Arc::clone(&config.key_log)));
                config.key_log = Arc::clone(&log) as _;
                (Arc::new(config), Resumption::Server(tickets, log))
            }
        };
        let version = super::version(version);
        quic::ServerConnection::new(config, version, parameters.to_vec())
            .map(|connection| (connection.into(), resumption))
            .map_err(|error| StartError::Configuration(error.to_string()))
    }
}

fn check(
    protocols: &[Vec<u8>],
    provider: &rustls::crypto::CryptoProvider,
) -> Result<(), ConfigError> {
    if protocols.is_empty() {
        return Err(ConfigError::NoApplicationProtocol);
    }
    let mut suites = provider.cipher_suites.iter();
    if suites.all(|suite| suite.tls13().is_none_or(|suite| suite.quic.is_none())) {
        return Err(ConfigError::NoCipherSuite);
    }
    Ok(())
}

impl ClientCrypto for TlsClient {
    fn can_follow(&self) -> bool {
        is_hooked(self.config.crypto_provider())
    }

    fn initial_keys(&self, version: Version, destination: &ConnectionId) -> Keys {
        initial::keys(Side::Client, version, destination)
    }

    fn start(
        &self,
        version: Version,
        server_name: &str,
        parameters: &[u8],
    ) -> Result<Box<dyn Session>, StartError> {
        let name = rustls::pki_types::ServerName::try_from(server_name)
            .map_err(|_| StartError::ServerName(server_name.to_owned()))?
            .to_owned();
        let (config, resumption) = match &self.sessions {
            None => (Arc::clone(&self.config), Resumption::Stores),
            Some(sessions) => {
                let config = sessions.configure(&self.config, &name, server_name, version);
                let watch = SessionWatch::new(Arc::clone(sessions), server_name, version);
                (Arc::new(config), Resumption::Client(watch))
            }
        };
        let wanted = super::version(version);
        let connection = quic::ClientConnection::new(config, wanted, name, parameters.to_vec())
            .map_err(|error| StartError::Configuration(error.to_string()))?;
        TlsSession::client(connection, version, server_name, resumption)
            .map(|session| Box::new(session) as Box<dyn Session>)
            .map_err(|error| StartError::Configuration(error.to_string()))
    }
}

impl ServerCrypto for TlsServer {
    fn initial_keys(&self, version: Version, destination: &ConnectionId) -> Keys {
        initial::keys(Side::Server, version, destination)
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
        let (connection, resumption) = self.connect(version, version, parameters)?;
        let mut session = TlsSession::new(connection, version, resumption);
        if !better.is_empty() {
            session.choice = Some(Box::new(Choice {
                server: self.clone(),
                better,
            }));
        }
        Ok(Box::new(session))
    }
}
