//! Configurations of rustls that QUIC can use, and the start of sessions with them.

use std::{fmt, sync::Arc};

use lastbyte_wire::{ConnectionId, Side, packet::Version};
use rustls::quic;

use super::TlsSession;
use crate::crypto::{ClientCrypto, Keys, ServerCrypto, Session, StartError, initial};

/// Where a client's TLS sessions come from.
#[derive(Clone, Debug)]
pub struct TlsClient {
    config: Arc<rustls::ClientConfig>,
}

/// Where a server's TLS sessions come from.
#[derive(Clone, Debug)]
pub struct TlsServer {
    config: Arc<rustls::ServerConfig>,
}

/// Why a TLS configuration is not one for QUIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// No application protocol is named in `alpn_protocols` (RFC 9001 §8.1).
    NoApplicationProtocol,
    /// There is no cipher suite of TLS 1.3 for QUIC (RFC 9001 §4.2).
    NoCipherSuite,
    /// `max_early_data_size` is neither 0 nor 2^32 − 1 (RFC 9001 §4.6.1).
    EarlyDataSize,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoApplicationProtocol => {
                "QUIC needs an application protocol: set `alpn_protocols`"
            }
            Self::NoCipherSuite => "QUIC needs a cipher suite of TLS 1.3 that knows of it",
            Self::EarlyDataSize => "in QUIC `max_early_data_size` is 0 or 0xffff_ffff",
        })
    }
}

impl std::error::Error for ConfigError {}

impl TlsClient {
    /// Wraps a configuration. To offer 0-RTT set its `enable_early_data`; to log secrets, its `key_log`.
    ///
    /// # Errors
    ///
    /// It is not one for QUIC.
    pub fn new(config: impl Into<Arc<rustls::ClientConfig>>) -> Result<Self, ConfigError> {
        let config = config.into();
        check(&config.alpn_protocols, config.crypto_provider())?;
        Ok(Self { config })
    }
}

impl TlsServer {
    /// Wraps a configuration. To accept 0-RTT set its `max_early_data_size`; to log secrets, its `key_log`.
    ///
    /// # Errors
    ///
    /// It is not one for QUIC.
    pub fn new(config: impl Into<Arc<rustls::ServerConfig>>) -> Result<Self, ConfigError> {
        let config = config.into();
        check(&config.alpn_protocols, config.crypto_provider())?;
        if ![0, u32::MAX].contains(&config.max_early_data_size) {
            return Err(ConfigError::EarlyDataSize);
        }
        Ok(Self { config })
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
        let config = Arc::clone(&self.config);
        let version = super::version(version);
        let connection = quic::ClientConnection::new(config, version, name, parameters.to_vec())
            .map_err(|error| StartError::Configuration(error.to_string()))?;
        TlsSession::client(connection, server_name)
            .map(|session| Box::new(session) as Box<dyn Session>)
            .map_err(|error| StartError::Configuration(error.to_string()))
    }
}

impl ServerCrypto for TlsServer {
    fn initial_keys(&self, version: Version, destination: &ConnectionId) -> Keys {
        initial::keys(Side::Server, version, destination)
    }

    fn start(&self, version: Version, parameters: &[u8]) -> Result<Box<dyn Session>, StartError> {
        let config = Arc::clone(&self.config);
        let version = super::version(version);
        let connection = quic::ServerConnection::new(config, version, parameters.to_vec())
            .map_err(|error| StartError::Configuration(error.to_string()))?;
        Ok(Box::new(TlsSession::new(connection.into())))
    }
}
