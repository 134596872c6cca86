//! TLS configurations for programs that drive connections of their own, such as a load generator.

use std::{io, sync::Arc};

use lastbyte_quic::{
    close::CloseReason,
    crypto::{ClientCrypto, tickets::client::SessionStore},
};

use crate::{
    crypto::{self, Crypto},
    failure::Failure,
    link,
    run::RunError,
    settings::{Settings, Versions},
    tcp,
};

/// The TLS configurations that [`run`](crate::run) would use for these settings.
#[derive(Debug)]
pub struct Tls {
    crypto: Crypto,
    connect_timeout: core::time::Duration,
}

impl Tls {
    /// Builds the configurations. QUIC sessions are kept in `store`.
    ///
    /// # Errors
    ///
    /// Returns [`RunError::Trust`] if there are no trusted roots, and [`RunError::Identity`] if the client certificate or
    /// its key is invalid.
    pub fn new(settings: &Settings, store: &Arc<dyn SessionStore>) -> Result<Self, RunError> {
        Ok(Self {
            crypto: crypto::build(settings, store)?,
            connect_timeout: settings.connect_timeout,
        })
    }

    /// The configuration for QUIC.
    #[must_use]
    pub fn quic(&self) -> Arc<dyn ClientCrypto> {
        Arc::clone(&self.crypto.client)
    }

    /// The configuration for TCP, with the ALPN protocols of these versions.
    #[must_use]
    pub fn tcp(&self, versions: Versions) -> Arc<rustls::ClientConfig> {
        self.crypto.tcp(versions)
    }

    /// Why a QUIC handshake failed: the verifier's reason, if it rejected the certificate.
    #[must_use]
    pub fn quic_failure(&self, close: Option<CloseReason>, phrase: &str) -> Failure {
        link::handshake_failure(close, phrase, &self.crypto.verifier, self.connect_timeout)
    }

    /// Why an established QUIC connection ended.
    #[must_use]
    pub fn close_reason(close: Option<CloseReason>, phrase: &str) -> String {
        link::reason(close, phrase)
    }

    /// Why a TLS handshake over TCP failed.
    #[must_use]
    pub fn tcp_failure(error: &io::Error) -> Failure {
        tcp::tls_failure(error)
    }
}
