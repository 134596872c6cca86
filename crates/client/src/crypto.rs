//! The TLS configurations for QUIC and TCP, built from the settings and cached for the next run.

use core::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use lastbyte_driver::Clock;
use lastbyte_http3 as http3;
use lastbyte_quic::{
    WallTime,
    crypto::{
        AeadProvider, ClientCrypto,
        tickets::{
            client::{ClientSessions, SessionStore},
            clock::WallClock,
        },
        tls::TlsClient,
    },
};
use rustls::client::danger::ServerCertVerifier;

use crate::{
    settings::{Settings, Versions},
    trust::{Identity, Trust, Verifier},
};

/// Why no TLS configuration can be built from the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CryptoError {
    /// There are no usable trusted roots.
    Trust(String),
    /// The client certificate or its key is invalid.
    Identity(String),
}

/// The last configurations, and the settings that they were built from.
#[derive(Debug, Default)]
pub(crate) struct CryptoCache(Mutex<Option<(CryptoKey, Arc<Crypto>)>>);

impl CryptoCache {
    /// The configurations for these settings: those of the last call if its settings were the same.
    ///
    /// # Errors
    ///
    /// Returns [`CryptoError::Trust`] if there are no trusted roots, and [`CryptoError::Identity`] if the client
    /// certificate or its key is invalid.
    pub(crate) fn get(
        &self,
        settings: &Settings,
        store: &Arc<dyn SessionStore>,
    ) -> Result<Arc<Crypto>, CryptoError> {
        let key = CryptoKey {
            trust: settings.trust.clone(),
            pins: settings.pins.clone(),
            identity: settings.identity.clone(),
            aead: settings.aead,
            early_data: settings.early_data,
            tls13: settings.tls13,
            key_log: settings.key_log.as_ref().map(|it| Arc::as_ptr(it).addr()),
        };
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, crypto)) = &*kept
            && *of == key
        {
            return Ok(Arc::clone(crypto));
        }
        let crypto = Arc::new(build(settings, store)?);
        *kept = Some((key, Arc::clone(&crypto)));
        Ok(crypto)
    }
}

fn build(settings: &Settings, store: &Arc<dyn SessionStore>) -> Result<Crypto, CryptoError> {
    let Configurations {
        mut quic,
        tcp,
        verifier,
    } = Configurations::new(settings)?;
    quic.enable_early_data = settings.early_data;
    let shared: Arc<dyn ServerCertVerifier> = Arc::clone(&verifier) as _;
    let sessions = ClientSessions {
        store: Arc::clone(store),
        verifier: shared,
        clock: Arc::new(SystemClock),
    };
    let client = TlsClient::with_sessions(quic, sessions)
        .map_err(|error| CryptoError::Trust(error.to_string()))?;
    Ok(Crypto {
        client: Arc::new(client),
        verifier,
        tcp: Arc::new(tcp),
    })
}

/// The TLS configurations of these settings, without sessions over QUIC.
pub(crate) struct Configurations {
    pub(crate) quic: rustls::ClientConfig,
    /// The configuration for TCP, without ALPN.
    pub(crate) tcp: rustls::ClientConfig,
    pub(crate) verifier: Arc<Verifier>,
}

impl Configurations {
    pub(crate) fn new(settings: &Settings) -> Result<Self, CryptoError> {
        let invalid = |error: &dyn fmt::Display| CryptoError::Trust(error.to_string());
        let invalid_identity = |error: &dyn fmt::Display| CryptoError::Identity(error.to_string());
        let plain = settings.aead.crypto_provider();
        let provider = lastbyte_quic::crypto::provider(plain.clone());
        // A library that is built with jitter entropy gathers it when random bytes are first drawn, which takes 20 to 50 ms. Draw
        // some now, so that this delay does not appear in the timing of the first connection.
        let mut unused = [0; 1];
        let drawn = provider.secure_random.fill(&mut unused);
        drawn.map_err(|_| invalid(&"cannot obtain random bytes"))?;
        let provider = Arc::new(provider);
        let verifier = settings.trust.verifier(&settings.pins, &provider);
        let verifier = Arc::new(verifier.map_err(CryptoError::Trust)?);
        let shared: Arc<dyn ServerCertVerifier> = Arc::clone(&verifier) as _;
        let identity = match &settings.identity {
            Some(identity) => Some(identity.parse().map_err(CryptoError::Identity)?),
            None => None,
        };
        let config_for =
            |provider: Arc<rustls::crypto::CryptoProvider>,
             versions: &[&'static rustls::SupportedProtocolVersion]| {
                let builder = rustls::ClientConfig::builder_with_provider(provider)
                    .with_protocol_versions(versions)
                    .map_err(|error| invalid(&error))?
                    .dangerous()
                    .with_custom_certificate_verifier(Arc::clone(&shared));
                let mut config = match &identity {
                    None => builder.with_no_client_auth(),
                    Some((chain, key)) => builder
                        .with_client_auth_cert(chain.clone(), key.clone_key())
                        .map_err(|error| {
                            invalid_identity(&format!(
                                "client certificate and key do not match: {error}"
                            ))
                        })?,
                };
                if let Some(key_log) = &settings.key_log {
                    config.key_log = Arc::clone(key_log);
                }
                Ok(config)
            };
        let mut config = config_for(provider, &[&rustls::version::TLS13])?;
        config.alpn_protocols = vec![http3::ALPN.to_vec()];
        // Over TCP, rustls resumes sessions within the process only: they cannot be saved, and hyper cannot send 0-RTT.
        let all = [&rustls::version::TLS12, &rustls::version::TLS13];
        let versions = if settings.tls13 { &all[..] } else { &all[..1] };
        let tcp = config_for(Arc::new(plain), versions)?;
        Ok(Self {
            quic: config,
            tcp,
            verifier,
        })
    }
}

/// The TLS configurations of a client.
pub(crate) struct Crypto {
    pub(crate) client: Arc<dyn ClientCrypto>,
    pub(crate) verifier: Arc<Verifier>,
    /// The configuration for TCP, without ALPN.
    tcp: Arc<rustls::ClientConfig>,
}

impl Crypto {
    /// The configuration for TCP, with the ALPN protocols of these versions.
    pub(crate) fn tcp(&self, versions: Versions) -> Arc<rustls::ClientConfig> {
        let mut config = rustls::ClientConfig::clone(&self.tcp);
        config.alpn_protocols = versions.alpn();
        Arc::new(config)
    }
}

impl fmt::Debug for Crypto {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Crypto").finish_non_exhaustive()
    }
}

/// The settings that a [`Crypto`] was built from.
#[derive(Debug, PartialEq, Eq)]
struct CryptoKey {
    trust: Trust,
    pins: Vec<String>,
    identity: Option<Identity>,
    aead: AeadProvider,
    early_data: bool,
    tls13: bool,
    /// The address of the key log: key logs cannot be compared.
    key_log: Option<usize>,
}

#[derive(Debug)]
struct SystemClock;

impl WallClock for SystemClock {
    fn now(&self) -> WallTime {
        Clock::wall_time()
    }
}
