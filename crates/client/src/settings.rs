//! What can be set, and what is remembered from one connection to the next.

use core::{fmt, time::Duration};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use lastbyte_driver::Clock;
use lastbyte_http3 as http3;
use lastbyte_quic::{
    connection,
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
    Origin,
    resolve::{Family, Override},
    trust::{Trust, Verifier},
};

/// What can be set for a run.
#[derive(Clone)]
pub struct Settings {
    /// The transport.
    pub transport: connection::Config,
    /// HTTP/3.
    pub http3: http3::Config,
    /// Whom to trust.
    pub trust: Trust,
    /// Where secrets go, for debuggers. Default: nowhere.
    pub key_log: Option<Arc<dyn rustls::KeyLog>>,
    /// Whether safe requests are sent early where a session is resumed (RFC 8470). Default: no.
    pub early_data: bool,
    /// Which kinds of addresses are used. Default: all.
    pub family: Family,
    /// Where hosts are that the resolver need not be asked for. Default: none.
    pub overrides: Vec<Override>,
    /// How long it may take to resolve a name and to connect, all addresses together. Default: 10 s.
    pub connect_timeout: Duration,
    /// After how long without a handshake the next address is tried beside the last. Default: 250 ms (RFC 8305 §5).
    pub attempt_delay: Duration,
    /// How long a fetch may take. Default: for ever.
    pub time_limit: Option<Duration>,
    /// How many fetches are under way at a time. Default: 100; at least 1.
    pub parallel: usize,
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
            trust: Trust::default(),
            key_log: None,
            early_data: false,
            family: Family::default(),
            overrides: Vec::new(),
            connect_timeout: Duration::from_secs(10),
            attempt_delay: Duration::from_millis(250),
            time_limit: None,
            parallel: 100,
            retries: 3,
            ticket_wait: Duration::ZERO,
        }
    }

    /// # Errors
    ///
    /// There is nobody to trust.
    pub(crate) fn crypto(&self, memory: &Memory) -> Result<Crypto, String> {
        let provider = crypto::provider(rustls::crypto::aws_lc_rs::default_provider());
        // The library gathers entropy when randomness is first wanted, which takes it a tenth of a second: not a delay of
        // the first connection's, as its timing would say.
        let mut unused = [0; 1];
        let drawn = provider.secure_random.fill(&mut unused);
        drawn.map_err(|_| "there is no randomness".to_owned())?;
        let provider = Arc::new(provider);
        let verifier = Arc::new(self.trust.verifier(&provider)?);
        let shared: Arc<dyn ServerCertVerifier> = Arc::clone(&verifier) as _;
        let mut config = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|error| error.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(Arc::clone(&shared))
            .with_no_client_auth();
        config.alpn_protocols = vec![http3::ALPN.to_vec()];
        config.enable_early_data = self.early_data;
        if let Some(key_log) = &self.key_log {
            config.key_log = Arc::clone(key_log);
        }
        let sessions = ClientSessions {
            store: Arc::clone(&memory.sessions),
            verifier: shared,
            clock: Arc::new(SystemClock),
        };
        let client =
            TlsClient::with_sessions(config, sessions).map_err(|error| error.to_string())?;
        Ok(Crypto {
            client: Arc::new(client),
            verifier,
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
}

#[derive(Debug)]
struct SystemClock;

impl WallClock for SystemClock {
    fn since_epoch(&self) -> Duration {
        Clock::since_epoch()
    }
}

/// What is remembered of servers, from one connection to the next and from one run to the next: sessions, address tokens,
/// settings. Cheap to clone, and then the same.
#[derive(Clone, Debug)]
pub struct Memory {
    sessions: Arc<dyn SessionStore>,
    servers: Arc<Mutex<BTreeMap<Origin, Server>>>,
}

#[derive(Debug, Default)]
struct Server {
    /// The last token, for one use (RFC 9000 §8.1.3).
    token: Vec<u8>,
    settings: Option<http3::Settings>,
    /// The address that answered.
    remote: Option<core::net::SocketAddr>,
}

impl Memory {
    /// Sessions are kept there, all else in memory.
    #[must_use]
    pub fn new(sessions: Arc<dyn SessionStore>) -> Self {
        Self {
            sessions,
            servers: Arc::default(),
        }
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

    fn servers(&self) -> MutexGuard<'_, BTreeMap<Origin, Server>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::new(Arc::new(MemorySessions::default()))
    }
}
