//! State about servers that is kept from one connection to the next, and from one run to the next.

use core::{net::SocketAddr, time::Duration};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use lastbyte_http3 as http3;
use lastbyte_quic::crypto::tickets::client::{MemorySessions, SessionStore};

use crate::{
    alt_svc::AltSvc,
    crypto::{Crypto, CryptoCache, CryptoError},
    settings::Settings,
    url::Origin,
};

/// State about one origin, besides its TLS sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Remembered {
    /// The last address token, which is used once (RFC 9000 §8.1.3).
    pub(crate) token: Vec<u8>,
    pub(crate) settings: Option<http3::Settings>,
    /// The address of the last connection.
    pub(crate) remote: Option<SocketAddr>,
}

/// State about servers that is kept between connections and runs: TLS sessions, address tokens, HTTP/3 settings and
/// alternative services. Clones share the same state and are cheap.
#[derive(Clone, Debug)]
pub struct Memory {
    sessions: Arc<dyn SessionStore>,
    servers: Arc<Mutex<BTreeMap<Origin, Remembered>>>,
    alternatives: Arc<Mutex<AltSvc>>,
    crypto: Arc<CryptoCache>,
}

impl Memory {
    /// Keeps sessions in this store, and everything else in memory.
    #[must_use]
    pub fn new(sessions: Arc<dyn SessionStore>) -> Self {
        Self {
            sessions,
            servers: Arc::default(),
            alternatives: Arc::default(),
            crypto: Arc::default(),
        }
    }

    /// The TLS configurations for these settings.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`CryptoCache::get`].
    pub(crate) fn crypto(&self, settings: &Settings) -> Result<Arc<Crypto>, CryptoError> {
        self.crypto.get(settings, &self.sessions)
    }

    pub(crate) fn set_remembered(&self, servers: BTreeMap<Origin, Remembered>) {
        *self.servers() = servers;
    }

    pub(crate) fn remembered(&self) -> BTreeMap<Origin, Remembered> {
        self.servers().clone()
    }

    /// The known alternative services.
    pub fn alternatives(&self) -> AltSvc {
        self.alt_svc().clone()
    }

    pub(crate) fn put_alternatives(&self, origin: &Origin, value: &str, now: Duration) {
        self.alt_svc().put(origin, value, now);
    }

    /// The port of an alternative service for HTTP/3 on the origin's own host.
    pub(crate) fn alternative_port(&self, origin: &Origin, now: Duration) -> Option<u16> {
        let alternatives = self.alt_svc();
        let mut of = alternatives.of(origin, "h3", now);
        // Services on other hosts are ignored; their names would have to be resolved first.
        of.find(|it| it.host == origin.host).map(|it| it.port)
    }

    fn alt_svc(&self) -> MutexGuard<'_, AltSvc> {
        self.alternatives
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn put_token(&self, origin: &Origin, token: Vec<u8>) {
        self.servers().entry(origin.clone()).or_default().token = token;
    }

    pub(crate) fn take_token(&self, origin: &Origin) -> Vec<u8> {
        let mut servers = self.servers();
        let server = servers.get_mut(origin);
        server.map_or_else(Vec::new, |server| core::mem::take(&mut server.token))
    }

    pub(crate) fn put_settings(&self, origin: &Origin, settings: &http3::Settings) {
        self.servers().entry(origin.clone()).or_default().settings = Some(*settings);
    }

    pub(crate) fn settings(&self, origin: &Origin) -> Option<http3::Settings> {
        self.servers().get(origin)?.settings
    }

    pub(crate) fn put_remote(&self, origin: &Origin, remote: SocketAddr) {
        self.servers().entry(origin.clone()).or_default().remote = Some(remote);
    }

    pub(crate) fn remote(&self, origin: &Origin) -> Option<SocketAddr> {
        self.servers().get(origin)?.remote
    }

    fn servers(&self) -> MutexGuard<'_, BTreeMap<Origin, Remembered>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::new(Arc::new(MemorySessions::default()))
    }
}
