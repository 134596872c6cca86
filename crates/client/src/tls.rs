//! TLS configurations for programs that drive connections of their own, such as a load generator.

use std::{fmt, io, sync::Arc};

use lastbyte_quic::{
    close::CloseReason,
    crypto::{ClientCrypto, tls::TlsClient},
};
use rustls::client::Resumption;

use crate::{
    crypto::Configurations,
    failure::Failure,
    link,
    run::RunError,
    settings::{Settings, Versions},
    tcp,
};

/// The TLS configurations that [`run`](crate::run) would use for these settings, with sessions that are kept by rustls.
pub struct Tls {
    configurations: Configurations,
    connect_timeout: core::time::Duration,
}

impl Tls {
    /// Builds the configurations.
    ///
    /// # Errors
    ///
    /// Returns [`RunError::Trust`] if there are no trusted roots, and [`RunError::Identity`] if the client certificate or
    /// its key is invalid.
    pub fn new(settings: &Settings) -> Result<Self, RunError> {
        Ok(Self {
            configurations: Configurations::new(settings)?,
            connect_timeout: settings.connect_timeout,
        })
    }

    /// A configuration for QUIC that resumes sessions as given, with or without 0-RTT.
    ///
    /// # Errors
    ///
    /// Returns [`RunError::Trust`] if the configuration cannot be used for QUIC.
    pub fn quic(
        &self,
        resumption: Resumption,
        early_data: bool,
    ) -> Result<Arc<dyn ClientCrypto>, RunError> {
        let mut config = self.configurations.quic.clone();
        config.resumption = resumption;
        config.enable_early_data = early_data;
        let client = TlsClient::new(config);
        let client = client.map_err(|error| RunError::Trust(error.to_string()))?;
        Ok(Arc::new(client))
    }

    /// A configuration for TCP that resumes sessions as given, with the ALPN protocols of these versions.
    pub fn tcp(&self, versions: Versions, resumption: Resumption) -> Arc<rustls::ClientConfig> {
        let mut config = self.configurations.tcp.clone();
        config.alpn_protocols = versions.alpn();
        config.resumption = resumption;
        Arc::new(config)
    }

    /// Why a QUIC handshake failed: the verifier's reason, if it rejected the certificate.
    pub fn quic_failure(&self, close: Option<CloseReason>, phrase: &str) -> Failure {
        link::handshake_failure(
            close,
            phrase,
            &self.configurations.verifier,
            self.connect_timeout,
        )
    }

    /// Why an established QUIC connection ended.
    pub fn close_reason(close: Option<CloseReason>, phrase: &str) -> String {
        link::reason(close, phrase)
    }

    /// Why a TLS handshake over TCP failed.
    pub fn tcp_failure(error: &io::Error) -> Failure {
        tcp::tls_failure(error)
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}
