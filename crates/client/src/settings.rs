//! What can be set, and what is remembered from one connection to the next.

use core::{fmt, time::Duration};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use lastbyte_driver::Clock;
use lastbyte_http3 as http3;
use lastbyte_quic::{
    WallTime, connection,
    crypto::{
        self, ClientCrypto,
        tickets::{
            client::{ClientSessions, MemorySessions, SessionStore},
            clock::WallClock,
        },
        tls::TlsClient,
    },
    flow::WindowSize,
};
use rustls::client::danger::ServerCertVerifier;

use crate::{
    CookieJar, Origin, Url,
    alt_svc::AltSvc,
    proxy::Proxies,
    resolve::{Detour, Family, Override},
    sessions::Remembered,
    trust::{Identity, Trust, Verifier},
};

/// Which versions of HTTP are spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Versions {
    /// HTTP/3 first, and HTTP/2 or 1.1 a little later, whichever is there first; without TLS HTTP/1.1.
    #[default]
    Any,
    /// Only HTTP/3.
    Http3,
    /// HTTP/2, or 1.1 where the server does not speak it; without TLS HTTP/1.1.
    Http2,
    /// Only HTTP/2, without asking the server, without TLS too (RFC 9113 §3.3).
    Http2Only,
    /// Only HTTP/1.1.
    Http11,
}

impl Versions {
    /// Whether QUIC is tried.
    pub(crate) const fn has_quic(self) -> bool {
        matches!(self, Self::Any | Self::Http3)
    }

    /// Whether TCP is tried.
    pub(crate) const fn has_tcp(self) -> bool {
        !matches!(self, Self::Http3)
    }

    /// What is offered over TCP (RFC 7301).
    fn alpn(self) -> Vec<Vec<u8>> {
        let names: &[&[u8]] = match self {
            Self::Any | Self::Http3 | Self::Http2 => &[b"h2", b"http/1.1"],
            Self::Http2Only => &[b"h2"],
            Self::Http11 => &[b"http/1.1"],
        };
        names.iter().map(|name| name.to_vec()).collect()
    }
}

/// Why the settings cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SettingsError {
    /// There is nobody to trust.
    Trust(String),
    /// The client's own certificate is none.
    Identity(String),
}

/// What can be set for a run.
#[derive(Clone)]
pub struct Settings {
    /// The transport.
    pub transport: connection::Config,
    /// HTTP/3.
    pub http3: http3::Config,
    /// Which versions of HTTP are spoken. Default: all.
    pub versions: Versions,
    /// How long HTTP/3 is tried alone, if others may be tried, too. Default: 200 ms.
    pub head_start: Duration,
    /// Whom to trust.
    pub trust: Trust,
    /// Which servers to trust, of those that are trusted: the SHA-256 of their public keys (`SubjectPublicKeyInfo`), in
    /// Base64; one of them is to be the server's. Default: all.
    pub pins: Vec<String>,
    /// Who we are, to servers that ask. Default: nobody.
    pub identity: Option<Identity>,
    /// Where secrets go, for debuggers. Default: nowhere.
    pub key_log: Option<Arc<dyn rustls::KeyLog>>,
    /// Whether safe requests are sent early where a session is resumed (RFC 8470). Default: no.
    pub early_data: bool,
    /// Which kinds of addresses are used. Default: all.
    pub family: Family,
    /// Where hosts are that the resolver need not be asked for. Default: none.
    pub overrides: Vec<Override>,
    /// Who is asked in place of servers: over TCP alone, whatever the versions. Default: nobody.
    pub proxies: Proxies,
    /// Where to connect in place of hosts. Default: nowhere.
    pub detours: Vec<Detour>,
    /// DNS servers that are asked for names. Default: none, and the system is.
    pub dns_servers: Vec<core::net::SocketAddr>,
    /// Whether DNS is asked for HTTPS records (RFC 9460), where the versions are [`Versions::Any`]. Default: yes.
    pub https_records: bool,
    /// How long it may take to resolve a name and to connect, all addresses together. Default: 10 s.
    pub connect_timeout: Duration,
    /// After how long without a handshake the next address is tried beside the last. Default: 250 ms (RFC 8305 §5).
    pub attempt_delay: Duration,
    /// How long a fetch may take. Default: for ever.
    pub time_limit: Option<Duration>,
    /// A fetch of which less than so many bytes a second move, for so long, is ended. Default: none is.
    pub speed_limit: Option<(u64, Duration)>,
    /// Whether TLS 1.2 is spoken, over TCP. Default: yes.
    pub tls12: bool,
    /// Whether TLS 1.3 is spoken, without which there is no QUIC. Default: yes.
    pub tls13: bool,
    /// How many fetches are under way at a time. Default: 100; at least 1.
    pub parallel: usize,
    /// Whether requests to one server go over an open connection to another, where both have the address and the certificate
    /// in common (RFC 9114 §3.3). Default: yes.
    pub coalesces: bool,
    /// How many connections there are to a server that takes one request at a time (HTTP/1.1). Default: 6; at least 1.
    pub connections_per_host: usize,
    /// How often a request is sent again that the server refused, or may not have heard (RFC 9114 §4.1.1). Default: 3.
    pub retries: u32,
    /// How long to wait at the end for a ticket, if none has come. Default: zero. For the next run's 0-RTT.
    pub ticket_wait: Duration,
}

/// What a server may send ahead of what was read, on one stream to begin with and at most. What comes is handed on at once,
/// so this is not about memory; a smaller window would hold up the very first flights of a server that starts fast. As
/// Chromium has it.
const STREAM_WINDOW: WindowSize = WindowSize {
    initial: 6 << 20,
    maximum: 24 << 20,
};
/// The same of all streams together.
const CONNECTION_WINDOW: WindowSize = WindowSize {
    initial: 15 << 20,
    maximum: 48 << 20,
};

impl Settings {
    /// The defaults, for this transport, with receive windows as browsers have them.
    #[must_use]
    pub fn new(mut transport: connection::Config) -> Self {
        transport.streams.stream_window = STREAM_WINDOW;
        transport.streams.connection_window = CONNECTION_WINDOW;
        Self {
            transport,
            http3: http3::Config::default(),
            versions: Versions::default(),
            head_start: Duration::from_millis(200),
            trust: Trust::default(),
            pins: Vec::new(),
            identity: None,
            key_log: None,
            early_data: false,
            family: Family::default(),
            overrides: Vec::new(),
            proxies: Proxies::default(),
            detours: Vec::new(),
            dns_servers: Vec::new(),
            https_records: true,
            connect_timeout: Duration::from_secs(10),
            attempt_delay: Duration::from_millis(250),
            time_limit: None,
            speed_limit: None,
            tls12: true,
            tls13: true,
            parallel: 100,
            coalesces: true,
            connections_per_host: 6,
            retries: 3,
            ticket_wait: Duration::ZERO,
        }
    }

    /// What handshakes are made with: what the memory has, if it was made with the same settings.
    ///
    /// # Errors
    ///
    /// There is nobody to trust, or we are nobody.
    pub(crate) fn crypto(&self, memory: &Memory) -> Result<Arc<Crypto>, SettingsError> {
        let key = CryptoKey {
            trust: self.trust.clone(),
            pins: self.pins.clone(),
            identity: self.identity.clone(),
            early_data: self.early_data,
            versions: (self.tls12, self.tls13),
            key_log: self.key_log.as_ref().map(|it| Arc::as_ptr(it).addr()),
        };
        let mut kept = memory.crypto.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, crypto)) = &*kept
            && *of == key
        {
            return Ok(Arc::clone(crypto));
        }
        let crypto = Arc::new(self.new_crypto(memory)?);
        *kept = Some((key, Arc::clone(&crypto)));
        Ok(crypto)
    }

    fn new_crypto(&self, memory: &Memory) -> Result<Crypto, SettingsError> {
        let wrong = |error: &dyn fmt::Display| SettingsError::Trust(error.to_string());
        let own = |error: &dyn fmt::Display| SettingsError::Identity(error.to_string());
        let plain = rustls::crypto::aws_lc_rs::default_provider();
        let provider = crypto::provider(plain.clone());
        // The library gathers entropy when randomness is first wanted, which takes it a tenth of a second: not a delay of
        // the first connection's, as its timing would say.
        let mut unused = [0; 1];
        let drawn = provider.secure_random.fill(&mut unused);
        drawn.map_err(|_| wrong(&"there is no randomness"))?;
        let provider = Arc::new(provider);
        let verifier = self.trust.verifier(&self.pins, &provider);
        let verifier = Arc::new(verifier.map_err(SettingsError::Trust)?);
        let shared: Arc<dyn ServerCertVerifier> = Arc::clone(&verifier) as _;
        let identity = match &self.identity {
            Some(identity) => Some(identity.parse().map_err(SettingsError::Identity)?),
            None => None,
        };
        let build = |provider: Arc<rustls::crypto::CryptoProvider>,
                     versions: &[&'static rustls::SupportedProtocolVersion]| {
            let builder = rustls::ClientConfig::builder_with_provider(provider)
                .with_protocol_versions(versions)
                .map_err(|error| wrong(&error))?
                .dangerous()
                .with_custom_certificate_verifier(Arc::clone(&shared));
            let mut config = match &identity {
                None => builder.with_no_client_auth(),
                Some((chain, key)) => builder
                    .with_client_auth_cert(chain.clone(), key.clone_key())
                    .map_err(|error| {
                        own(&format!(
                            "the client certificate and its key do not fit: {error}"
                        ))
                    })?,
            };
            if let Some(key_log) = &self.key_log {
                config.key_log = Arc::clone(key_log);
            }
            Ok(config)
        };
        let mut config = build(provider, &[&rustls::version::TLS13])?;
        config.alpn_protocols = vec![http3::ALPN.to_vec()];
        config.enable_early_data = self.early_data;
        // Over TCP, the library resumes sessions within a process; it can neither save them nor send 0-RTT for hyper.
        let versions: Vec<_> = [
            self.tls13.then_some(&rustls::version::TLS13),
            self.tls12.then_some(&rustls::version::TLS12),
        ]
        .into_iter()
        .flatten()
        .collect();
        let tcp = Arc::new(build(Arc::new(plain), &versions)?);
        let sessions = ClientSessions {
            store: Arc::clone(&memory.sessions),
            verifier: Arc::clone(&shared),
            clock: Arc::new(SystemClock),
        };
        let client = TlsClient::with_sessions(config, sessions).map_err(|error| wrong(&error))?;
        Ok(Crypto {
            client: Arc::new(client),
            verifier,
            tcp,
        })
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("trust", &self.trust)
            .field("early_data", &self.early_data)
            .field("parallel", &self.parallel)
            .finish_non_exhaustive()
    }
}

/// What handshakes are made with.
pub(crate) struct Crypto {
    pub(crate) client: Arc<dyn ClientCrypto>,
    pub(crate) verifier: Arc<Verifier>,
    /// For TCP, without protocols to choose from.
    tcp: Arc<rustls::ClientConfig>,
}

impl Crypto {
    /// For TCP, with what these versions offer.
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

/// What was made, and from what.
type Made = (CryptoKey, Arc<Crypto>);

/// What `Crypto` was made from.
#[derive(Debug, PartialEq, Eq)]
struct CryptoKey {
    trust: Trust,
    pins: Vec<String>,
    identity: Option<Identity>,
    early_data: bool,
    versions: (bool, bool),
    /// Where it is: such things cannot be compared.
    key_log: Option<usize>,
}

#[derive(Debug)]
struct SystemClock;

impl WallClock for SystemClock {
    fn now(&self) -> WallTime {
        Clock::wall_time()
    }
}

/// What is remembered of servers, from one connection to the next and from one run to the next: sessions, address tokens,
/// settings. Cheap to clone, and then the same.
#[derive(Clone, Debug)]
pub struct Memory {
    sessions: Arc<dyn SessionStore>,
    servers: Arc<Mutex<BTreeMap<Origin, Remembered>>>,
    alternatives: Arc<Mutex<AltSvc>>,
    /// None while they are not kept.
    cookies: Arc<Mutex<Option<CookieJar>>>,
    crypto: Arc<Mutex<Option<Made>>>,
}

impl Memory {
    /// Sessions are kept there, all else in memory.
    #[must_use]
    pub fn new(sessions: Arc<dyn SessionStore>) -> Self {
        Self {
            sessions,
            servers: Arc::default(),
            alternatives: Arc::default(),
            cookies: Arc::default(),
            crypto: Arc::default(),
        }
    }

    pub(crate) fn set_remembered(&self, servers: BTreeMap<Origin, Remembered>) {
        *self.servers() = servers;
    }

    pub(crate) fn remembered(&self) -> BTreeMap<Origin, Remembered> {
        self.servers().clone()
    }

    /// What is known of alternative services, to be saved.
    #[must_use]
    pub fn alternatives(&self) -> AltSvc {
        self.alt_svc().clone()
    }

    /// What was known of alternative services.
    pub fn set_alternatives(&self, alternatives: AltSvc) {
        *self.alt_svc() = alternatives;
    }

    pub(crate) fn put_alternatives(&self, origin: &Origin, value: &str, now: Duration) {
        self.alt_svc().put(origin, value, now);
    }

    /// The port of the host's where HTTP/3 is spoken for an origin, as it said itself.
    pub(crate) fn alternative_port(&self, origin: &Origin, now: Duration) -> Option<u16> {
        let alternatives = self.alt_svc();
        let mut of = alternatives.of(origin, "h3", now);
        // Other hosts would have to be looked up, and speak for this one all the same.
        of.find(|it| it.host == origin.host).map(|it| it.port)
    }

    /// The cookies that are known; `None` if they are not kept.
    #[must_use]
    pub fn cookies(&self) -> Option<CookieJar> {
        self.jar().clone()
    }

    /// Keeps cookies from here on, beginning with these: what servers set is sent to them again.
    pub fn set_cookies(&self, cookies: CookieJar) {
        *self.jar() = Some(cookies);
    }

    pub(crate) fn put_cookie(&self, url: &Url, value: &str, now: Duration) {
        if let Some(jar) = &mut *self.jar() {
            jar.put(url, value, now);
        }
    }

    pub(crate) fn cookies_for(&self, url: &Url, now: Duration) -> Option<String> {
        self.jar().as_ref()?.header(url, now)
    }

    fn jar(&self) -> MutexGuard<'_, Option<CookieJar>> {
        self.cookies.lock().unwrap_or_else(PoisonError::into_inner)
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
        server.map_or_else(Vec::new, |server| std::mem::take(&mut server.token))
    }

    pub(crate) fn put_settings(&self, origin: &Origin, settings: &http3::Settings) {
        self.servers().entry(origin.clone()).or_default().settings = Some(*settings);
    }

    pub(crate) fn settings(&self, origin: &Origin) -> Option<http3::Settings> {
        self.servers().get(origin)?.settings
    }

    pub(crate) fn put_remote(&self, origin: &Origin, remote: core::net::SocketAddr) {
        self.servers().entry(origin.clone()).or_default().remote = Some(remote);
    }

    pub(crate) fn remote(&self, origin: &Origin) -> Option<core::net::SocketAddr> {
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
