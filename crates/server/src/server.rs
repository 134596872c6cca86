//! The server: sockets, workers, TLS, handler, arms and logs.

#![expect(
    clippy::disallowed_types,
    reason = "listeners over TCP are handed from here to the runtime"
)]

use std::{
    fmt, io,
    net::{SocketAddr, TcpListener},
    num::NonZeroUsize,
    os::fd::OwnedFd,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use aws_lc_rs::{hmac, rand};
use lastbyte_congestion::Time;
use lastbyte_driver::{Clock, Statistics as WorkerStatistics, SteeringRule, WorkerPool};
use lastbyte_http3 as http3;
use lastbyte_origin::application::{Command, Http3Server, Mailbox, Shared, Statistics};
use lastbyte_quic::{
    cid::{QuicLbConfig, QuicLbError, QuicLbIds},
    connection::Config,
    crypto::{AeadProvider, tls::TlsServer},
    endpoint::{
        self, Endpoint, EndpointConfig, ResetSecret, RetryBalancers, RetryPolicy, TokenStore,
    },
    random::Seed,
    stream::WindowBudget,
    trace::Trace,
};
use lastbyte_udp::{Capabilities, Options, Socket, Steering};
use tokio::{sync::watch, task::AbortHandle};

use super::{
    access::AccessLog,
    arms::{Arms, ArmsInUse},
    budget::{self, Budget},
    challenges::{ACME_TLS, Challenges},
    handler::Handler,
    handover::{Offer, Purpose},
    identity::Identity,
    log::{LogCounts, LogWriter},
    metrics,
    proxy::UpstreamCounts,
    sites::Sites,
    tcp::{self, TcpServer},
    tls::{self, Credentials, KeyLog, TlsConfigs},
};

mod inherited;
mod listeners;

pub use self::inherited::Inherited;

/// Settings of a server.
pub struct Settings {
    /// The address to listen on; port 0 is any free port. HTTP/3 uses UDP, HTTP/1.1 and 2 use TCP, on the same port.
    pub address: SocketAddr,
    /// Open sockets, used in place of addresses. Default: none.
    pub inherited: Inherited,
    /// The link to an earlier process whose sockets these are, from [`Settings::take_over`].
    /// Default: none.
    pub predecessor: Option<Arc<OwnedFd>>,
    /// Whether sockets and connections can be handed over to a later process ([`crate::handover`]). Default: no.
    pub hands_over: bool,
    /// The enabled versions of HTTP. Default: all.
    pub versions: Versions,
    /// Address of the plain-HTTP listener that redirects to HTTPS. Default: none.
    pub plain: Option<SocketAddr>,
    /// Address of the metrics and health endpoints, over plain HTTP. Default: none.
    pub metrics: Option<SocketAddr>,
    /// Number of threads for HTTP/3, and for HTTP/1.1 and 2. Default: the number of cores.
    pub workers: Option<NonZeroUsize>,
    /// The server's certificates, each with its key: a client gets the one that has its server name (SNI), or else the
    /// first. Several may have one name, for keys of different algorithms. At least one.
    pub identities: Vec<Identity>,
    /// The challenges of a certificate authority that are answered over TCP. Default: none.
    pub challenges: Option<Challenges>,
    /// The content of the file with the ticket keys shared by servers. Default: keys of this process alone.
    pub ticket_keys: Option<Vec<u8>>,
    /// The configurations of its connections.
    pub arms: Arms,
    /// The sites of connections, for the connection log. Default: none. [`AccessLog::with_sites`] sets those of requests.
    pub sites: Sites,
    /// The request handler.
    pub handler: Arc<dyn Handler>,
    /// The counters of upstream servers, for the metrics. Default: none.
    pub upstreams: Vec<UpstreamCounts>,
    /// The connection log.
    pub log: Option<LogWriter>,
    /// The access log.
    pub access: Option<AccessLog>,
    /// The library for AES-GCM in TLS 1.3 and QUIC. Default: aws-lc; `lastbyte_driver::AeadChoice` measures which is faster.
    pub aead: AeadProvider,
    /// The key log: receives one line for each secret.
    pub key_log: Option<KeyLog>,
    /// Creates a listener for each connection, from its number and start time: for qlog.
    pub trace: Option<TraceMaker>,
    /// When clients must validate their address.
    pub retry: RetryPolicy,
    /// Load balancers that send Retry packets in place of servers. Default: none.
    pub retry_balancers: Option<RetryBalancers>,
    /// Resource limits over QUIC, for each worker.
    pub quic: endpoint::Limits,
    /// Whether 0-RTT is accepted.
    pub takes_zero_rtt: bool,
    /// The server ID in connection IDs, by which load balancers route: one byte, or as long as
    /// [`Settings::connection_ids`] has it. Default: 0, and then [`Settings::host`] distinguishes servers that share a
    /// certificate.
    pub server_id: Option<u64>,
    /// The layout of connection IDs, which load balancers share. Octet 0 modulo the number of workers is the worker, so
    /// there are 32 workers at most, and one if octet 0 contains the length. Default: the server ID in one byte, the
    /// worker in another, and a nonce of 10 bytes, not encrypted, with configuration ID 0.
    pub connection_ids: Option<QuicLbConfig>,
    /// A value that no other host has and that survives a restart, such as name and machine ID: stateless reset keys
    /// are derived from it if there is no [`Settings::server_id`]. Default: empty.
    pub host: Vec<u8>,
    /// `max-age` of the `Alt-Svc` field that announces HTTP/3 to TCP clients (RFC 7838 §3.1). Default: a day; none to not announce
    /// it.
    pub alt_svc: Option<Duration>,
    /// Whether 103 (Early Hints) and other interim responses are sent over HTTP/1.1 too: some clients take the first for the
    /// response (RFC 8297 §3). Default: no.
    pub interim_http1: bool,
    /// Socket options.
    pub sockets: Options,
    /// HTTP/3 settings.
    pub http3: http3::Config,
    /// Resource limits over TCP.
    pub tcp: tcp::Limits,
    /// The kernel's congestion control for HTTP/1.1 and 2. Default: the system's, or that of a passed socket.
    pub tcp_congestion: Option<String>,
    /// Limits on buffered bodies.
    pub budget: budget::Limits,
    /// Bounds the growth of receive windows over HTTP/2, and over HTTP/3 if the [arms](Settings::arms) have it as well.
    /// Default: 256 MiB.
    pub window_budget: WindowBudget,
}

/// Versions of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    /// HTTP/1.1.
    pub http1: bool,
    /// HTTP/2.
    pub http2: bool,
    /// HTTP/3.
    pub http3: bool,
}

impl Versions {
    /// All of them.
    pub const ALL: Self = Self {
        http1: true,
        http2: true,
        http3: true,
    };

    /// Whether a version over TCP is enabled.
    const fn are_over_tcp(self) -> bool {
        self.http1 || self.http2
    }

    /// Their ALPN identifiers over TCP, in order of preference (RFC 7301).
    fn tcp_protocols(self) -> Vec<Vec<u8>> {
        let all = [(self.http2, b"h2".as_slice()), (self.http1, b"http/1.1")];
        let spoken = all.iter().filter(|(is_spoken, _)| *is_spoken);
        spoken.map(|(_, name)| name.to_vec()).collect()
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = [
            (self.http1, "HTTP/1.1"),
            (self.http2, "HTTP/2"),
            (self.http3, "HTTP/3"),
        ];
        let spoken = all.iter().filter(|(is_spoken, _)| *is_spoken);
        let names: Vec<_> = spoken.map(|(_, name)| *name).collect();
        f.write_str(&names.join(", "))
    }
}

/// Creates a listener for a connection.
pub type TraceMaker = Arc<dyn Fn(u64, Time) -> Option<Box<dyn Trace>> + Send + Sync>;

impl Settings {
    /// The defaults.
    #[must_use]
    pub fn new(
        address: SocketAddr,
        identity: Identity,
        arms: Arms,
        handler: Arc<dyn Handler>,
    ) -> Self {
        Self {
            address,
            inherited: Inherited::default(),
            predecessor: None,
            hands_over: false,
            versions: Versions::ALL,
            plain: None,
            metrics: None,
            workers: None,
            identities: vec![identity],
            challenges: None,
            ticket_keys: None,
            arms,
            sites: Sites::default(),
            handler,
            upstreams: Vec::new(),
            log: None,
            access: None,
            aead: AeadProvider::default(),
            key_log: None,
            trace: None,
            retry: RetryPolicy::UnderLoad { handshakes: 500 },
            retry_balancers: None,
            quic: endpoint::Limits::default(),
            takes_zero_rtt: true,
            server_id: None,
            connection_ids: None,
            host: Vec::new(),
            alt_svc: Some(Duration::from_secs(86_400)),
            interim_http1: false,
            sockets: Options::default(),
            http3: http3::Config::default(),
            tcp: tcp::Limits::default(),
            tcp_congestion: None,
            budget: budget::Limits::default(),
            window_budget: WindowBudget::new(256 << 20),
        }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("address", &self.address)
            .field("workers", &self.workers)
            .finish_non_exhaustive()
    }
}

/// Why a server cannot be started.
#[derive(Debug)]
pub enum StartError {
    /// The address cannot be bound.
    Bind(SocketAddr, io::Error),
    /// The passed sockets are not suitable.
    Inherited(String),
    /// Certificate and key cannot be used.
    Tls(String),
    /// The text is not a list of ticket keys.
    TicketKeys(String),
    /// The kernel does not have this congestion control for TCP, or does not permit it.
    TcpCongestion(String, io::Error),
    /// The system provides no threads, or no randomness.
    System(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bind(address, error) => write!(f, "cannot listen on `{address}`: {error}"),
            Self::Inherited(error) => {
                write!(f, "cannot use the passed sockets: {error}")
            }
            Self::TicketKeys(error) => write!(f, "cannot use the ticket keys: {error}"),
            Self::TcpCongestion(name, error) => {
                write!(f, "cannot use TCP congestion control `{name}`: {error}")
            }
            Self::Tls(error) => write!(f, "cannot use certificate and key: {error}"),
            Self::System(error) => write!(f, "cannot start: {error}"),
        }
    }
}

impl std::error::Error for StartError {}

/// A running server.
#[derive(Debug)]
pub struct Server {
    pool: Option<WorkerPool<Command>>,
    tcp: Option<TcpServer>,
    address: SocketAddr,
    versions: Versions,
    capabilities: Option<(Capabilities, Steering)>,
    plain: Option<SocketAddr>,
    metrics: Option<SocketAddr>,
    arms: Arc<ArmsInUse>,
    /// Its number in connection IDs.
    number: u64,
    /// The layout of the connection IDs of new clients, if it was configured.
    connection_ids: Mutex<Option<QuicLbConfig>>,
    credentials: Credentials,
    reloads: Arc<metrics::Reloads>,
    is_draining: Arc<AtomicBool>,
    ends: Arc<Mutex<Vec<Statistics>>>,
    /// Receives the number of a worker that ended although the server is running.
    failed: watch::Receiver<Option<usize>>,
    /// For a later process, until it is taken.
    offer: Option<Offer>,
}

/// The final report of a server.
#[derive(Debug)]
pub struct Report {
    /// Counters of HTTP/3, all workers together.
    pub statistics: Statistics,
    /// Counters of HTTP/1.1 and 2.
    pub tcp: tcp::Statistics,
    /// Of each worker: its counters, or why it ended.
    pub workers: Vec<io::Result<WorkerStatistics>>,
}

/// Offset of the byte of a connection ID that, modulo the number of workers, is the worker.
const fn worker_byte(settings: &Settings) -> u8 {
    match settings.connection_ids {
        Some(_) => 0,
        // After octet 0 and the server's byte.
        None => 2,
    }
}

/// Length of the nonce of a connection ID in bytes. Reset tokens are derived from IDs with a key that outlives the
/// process, so no ID may repeat after a restart (RFC 9000 §10.3.2). Nonces start at random: for 10^9 IDs before and
/// 10^9 after a restart, the probability of a repetition is 10^-6.
const NONCE_LEN: usize = 10;

impl Server {
    /// Starts the server.
    ///
    /// # Errors
    ///
    /// Returns the [`StartError`] of [`Server::check`]; [`StartError::Bind`] if an address cannot be bound,
    /// [`StartError::System`] if threads or sockets cannot be created, and the errors of passed sockets.
    pub fn start(mut settings: Settings) -> Result<Self, StartError> {
        Self::check(&settings)?;
        let versions = settings.versions;
        let tls_configs = tls_configs(&settings)?;
        let tokens = tls_configs.credentials.tokens();
        tokens.set_balancers(settings.retry_balancers.as_ref());
        // All listeners are created before any thread, so that an error leaves nothing running.
        let listeners = listeners::bind(&mut settings)?;
        let workers = listeners
            .udp
            .as_ref()
            .map_or(0, |(sockets, _)| sockets.len());
        let passed = settings.hands_over.then(|| listeners.duplicate());
        let passed = passed.transpose().map_err(StartError::System)?;
        let threads = listeners::threads(&settings);
        let address = listeners.address;
        let (plain, metrics_listener) = (listeners.plain, listeners.metrics);
        let local = |listener: &Option<TcpListener>| {
            let listener = listener.as_ref()?;
            listener.local_addr().ok()
        };
        let (plain_address, metrics_address) = (local(&plain), local(&metrics_listener));
        let arms = Arc::new(ArmsInUse::new(settings.arms.clone()));
        let ends = Arc::new(Mutex::new(vec![Statistics::default(); workers]));
        let is_draining = Arc::new(AtomicBool::new(false));
        let (fail, failed) = watch::channel(None);
        let clock = Clock::new();
        let budget = Budget::new(settings.budget);
        let logs = log_counts(&settings);
        let routes = settings.handler.routes().to_vec();
        let upstreams = std::mem::take(&mut settings.upstreams);
        let tcp = if !listeners.tcp.is_empty() || plain.is_some() || metrics_listener.is_some() {
            let tls = Arc::new(tls_configs.tcp);
            let listeners = (listeners.tcp, plain);
            let parts = tcp_parts(&settings, listeners, address, tls, threads, &budget, &arms);
            Some(TcpServer::start(parts).map_err(StartError::System)?)
        } else {
            None
        };
        let number = settings.server_id.unwrap_or(0);
        let connection_ids = Mutex::new(settings.connection_ids.clone());
        let (mut pool, mut capabilities) = (None, None);
        if let Some((sockets, steering)) = listeners.udp {
            capabilities = sockets
                .first()
                .map(|socket| (socket.capabilities(), steering));
            let parts = Http3Parts {
                workers,
                sockets,
                clock,
                crypto: tls_configs.quic,
                tokens,
                arms: Arc::clone(&arms),
                on_end: on_end(&ends, &is_draining, fail),
                budget: budget.clone(),
            };
            pool = Some(start_http3(settings, parts)?);
        }
        let reloads = Arc::new(metrics::Reloads::new());
        let runtime = tcp.as_ref().and_then(TcpServer::runtime);
        let mut metrics_task = None;
        if let (Some(listener), Some(tcp), Some(runtime)) = (metrics_listener, &tcp, runtime) {
            let sources = metrics::Sources {
                workers: pool
                    .as_ref()
                    .map_or(Vec::new(), |pool| pool.remotes().to_vec()),
                tcp: Box::new(tcp.counts()),
                tcp_times: Box::new(tcp.times()),
                routes,
                upstreams,
                budget,
                logs,
                certificates: tls_configs.credentials.certificates(),
                reloads: Arc::clone(&reloads),
                is_draining: Arc::clone(&is_draining),
                clock,
                began: clock.now(),
            };
            let task = metrics::listen(runtime, listener, sources).map_err(StartError::System)?;
            metrics_task = Some(task);
        }
        let workers = if workers > 0 { workers } else { threads };
        Ok(Self {
            offer: passed.map(|sockets| offer(sockets, workers, pool.as_ref(), metrics_task)),
            pool,
            tcp,
            address,
            versions,
            capabilities,
            plain: plain_address,
            metrics: metrics_address,
            arms,
            number,
            connection_ids,
            credentials: tls_configs.credentials,
            reloads,
            is_draining,
            ends,
            failed,
        })
    }

    /// Checks certificate, key and ticket keys, without starting anything.
    ///
    /// # Errors
    ///
    /// Returns [`StartError::Tls`] if certificate and key cannot be used, [`StartError::TicketKeys`] if the ticket keys
    /// cannot be parsed, and [`StartError::System`] if the server ID does not fit into connection IDs.
    pub fn check(settings: &Settings) -> Result<(), StartError> {
        Self::check_identities(&settings.identities)?;
        let layout = settings.connection_ids.as_ref();
        connection_ids(layout, settings.server_id.unwrap_or(0), (0, 1))
            .map_err(|error| StartError::System(io::Error::other(error)))?;
        settings
            .ticket_keys
            .as_deref()
            .map_or(Ok(()), Self::check_ticket_keys)
    }

    /// Checks certificates and their keys.
    ///
    /// # Errors
    ///
    /// Returns [`StartError::Tls`] if there is none, if one cannot be parsed, or if a key does not match its certificate.
    pub fn check_identities(identities: &[Identity]) -> Result<(), StartError> {
        tls::check(identities).map_err(StartError::Tls)
    }

    /// Checks a congestion control for TCP at this address.
    ///
    /// # Errors
    ///
    /// Returns [`StartError::TcpCongestion`] if the kernel does not have it, or does not permit it to this process.
    pub fn check_tcp_congestion(address: SocketAddr, name: &str) -> Result<(), StartError> {
        listeners::check_congestion(address, name)
    }

    /// Checks a list of ticket keys.
    ///
    /// # Errors
    ///
    /// Returns [`StartError::TicketKeys`] if `text` is not a list of ticket keys.
    pub fn check_ticket_keys(text: &[u8]) -> Result<(), StartError> {
        tls::check_ticket_keys(text).map_err(StartError::TicketKeys)
    }

    /// The address it listens on.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The enabled versions of HTTP.
    pub const fn versions(&self) -> Versions {
        self.versions
    }

    /// The address of the listener that redirects to HTTPS.
    pub const fn plain_address(&self) -> Option<SocketAddr> {
        self.plain
    }

    /// Address of the metrics and health endpoints.
    pub const fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics
    }

    /// The system's support for HTTP/3, and the distribution of datagrams to workers.
    pub const fn capabilities(&self) -> Option<(Capabilities, Steering)> {
        self.capabilities
    }

    /// The number of HTTP/3 workers.
    pub fn workers(&self) -> usize {
        self.pool.as_ref().map_or(0, |pool| pool.remotes().len())
    }

    /// The offer to a later process, if [`Settings::hands_over`] is set. The first call returns it. Drop it before
    /// [`Server::shut_down`]: it keeps the sockets open.
    pub const fn take_offer(&mut self) -> Option<Offer> {
        self.offer.take()
    }

    /// Replaces the certificates for new connections.
    ///
    /// # Errors
    ///
    /// Returns [`StartError::Tls`] if certificates and keys cannot be used; the current ones are kept.
    pub fn set_identities(&self, identities: &[Identity]) -> Result<(), StartError> {
        self.credentials
            .set_identities(identities)
            .map_err(StartError::Tls)
    }

    /// Records the result of a reload of the caller's configuration, for metrics. The start counts as a successful one.
    pub fn record_reload(&self, is_successful: bool) {
        self.reloads.record(is_successful);
    }

    /// Records the state of a ramp, for metrics.
    pub fn set_ramp(&self, ramp: Option<metrics::RampStatus>) {
        self.reloads.set_ramp(ramp);
    }

    /// Replaces the ticket keys.
    ///
    /// # Errors
    ///
    /// Returns [`StartError::TicketKeys`] if `text` is not a list of ticket keys; the current keys are kept.
    pub fn set_ticket_keys(&self, text: &[u8]) -> Result<(), StartError> {
        self.credentials
            .set_ticket_keys(text)
            .map_err(StartError::TicketKeys)
    }

    /// Replaces the load balancers whose Retry packets count as the server's.
    pub fn set_retry_balancers(&self, balancers: Option<&RetryBalancers>) {
        self.credentials.tokens().set_balancers(balancers);
    }

    /// Replaces the arms for new connections; existing ones stay in theirs.
    pub fn set_arms(&self, arms: Arms) {
        self.arms.set(arms);
    }

    /// Replaces [`tcp::Limits::upload_window`] for new connections. Over HTTP/3, the [arms](Server::set_arms) have the window.
    pub fn set_upload_window(&self, bytes: u32) {
        if let Some(tcp) = &self.tcp {
            tcp.set_upload_window(bytes);
        }
    }

    /// Checks whether [`Server::set_connection_ids`] accepts a layout.
    ///
    /// # Errors
    ///
    /// Returns the reason if it does not.
    pub fn check_connection_ids(&self, layout: &QuicLbConfig) -> Result<(), String> {
        self.new_connection_ids(layout).map(drop)
    }

    /// Replaces the layout of connection IDs for new connections; existing ones keep theirs, and so do stateless resets
    /// for the layout that it replaces. Returns whether it is another one.
    ///
    /// # Errors
    ///
    /// Returns the reason if connection IDs get another length, by which packets could not be parsed, or if the server
    /// was started without [`Settings::connection_ids`].
    pub fn set_connection_ids(&self, layout: &QuicLbConfig) -> Result<bool, String> {
        let ids = self.new_connection_ids(layout)?;
        let is_new = !ids.is_empty();
        if is_new {
            *self.layout() = Some(layout.clone());
        }
        let remotes = self.pool.iter().flat_map(WorkerPool::remotes);
        for (remote, ids) in remotes.zip(ids) {
            // A worker that has ended needs none.
            let _ = remote.send(Command::ReplaceIds(Box::new(ids)));
        }
        Ok(is_new)
    }

    fn layout(&self) -> MutexGuard<'_, Option<QuicLbConfig>> {
        let layout = self.connection_ids.lock();
        layout.unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection IDs of each worker by a layout; none if it is the current one.
    fn new_connection_ids(&self, layout: &QuicLbConfig) -> Result<Vec<QuicLbIds>, String> {
        let current = self.layout().clone();
        let Some(current) = current else {
            return Err("a layout of connection IDs requires a restart".to_owned());
        };
        if current == *layout {
            return Ok(Vec::new());
        }
        let len = |layout: &QuicLbConfig| layout.server_id_len + layout.nonce_len;
        if len(&current) != len(layout) {
            return Err(format!(
                "server ID and nonce have {} bytes: another length requires a restart (expected {})",
                len(layout),
                len(&current)
            ));
        }
        let workers = self.workers();
        let ids = |worker| connection_ids(Some(layout), self.number, (worker as u8, workers as u8));
        (0..workers).map(ids).collect()
    }

    /// Waits until a worker ends unexpectedly: it panicked, or its socket failed. Its share of the clients is no longer
    /// served, so the process should exit and be restarted. Returns its number.
    pub async fn worker_failed(&self) -> usize {
        let mut failed = self.failed.clone();
        loop {
            if let Some(worker) = *failed.borrow_and_update() {
                return worker;
            }
            if failed.changed().await.is_err() {
                // All workers have ended, as requested.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Waits until a TLS handshake over TCP fails because its server name is not a DNS name (RFC 6066 §3), such as a name with a
    /// port. Such clients never connect, and know of an alert only.
    pub async fn server_name_refused(&self) {
        match &self.tcp {
            Some(tcp) => tcp.name_refused().await,
            None => std::future::pending().await,
        }
    }

    /// Accepts no more requests, finishes those in flight for up to `limit`, and shuts down. Returns a report.
    pub fn shut_down(mut self, limit: Duration) -> Report {
        drop(self.offer.take());
        if let Some(tcp) = &self.tcp {
            tcp.begin_shutdown();
        }
        self.is_draining.store(true, Ordering::Release);
        let mut workers = Vec::new();
        let clock = Clock::new();
        let began = clock.now();
        if let Some(pool) = self.pool {
            for remote in pool.remotes() {
                // A worker that has ended has nothing to finish.
                let _ = remote.send(Command::ShutDown(limit));
            }
            workers = pool.join();
        }
        let left = limit.saturating_sub(clock.now().since(began));
        let tcp = self
            .tcp
            .map_or(tcp::Statistics::default(), |tcp| tcp.finish(left));
        let ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        let mut statistics = Statistics::default();
        for end in ends.iter() {
            statistics.add(end);
        }
        Report {
            statistics,
            tcp,
            workers,
        }
    }
}

/// The offer to a later process.
fn offer(
    sockets: Vec<(Purpose, OwnedFd)>,
    workers: usize,
    pool: Option<&WorkerPool<Command>>,
    metrics: Option<AbortHandle>,
) -> Offer {
    Offer {
        sockets,
        workers,
        remotes: pool.map_or(Vec::new(), |pool| pool.remotes().to_vec()),
        inlet: pool.map(WorkerPool::inlet),
        metrics,
    }
}

/// The counters of the logs, by what their lines describe.
fn log_counts(settings: &Settings) -> Vec<(&'static str, LogCounts)> {
    let connections = settings.log.as_ref();
    let connections = connections.map(|log| ("connections", log.counts()));
    let requests = settings.access.as_ref();
    let requests = requests.map(|log| ("requests", log.counts()));
    connections.into_iter().chain(requests).collect()
}

fn tcp_parts(
    settings: &Settings,
    (listeners, plain): (Vec<TcpListener>, Option<TcpListener>),
    address: SocketAddr,
    tls: Arc<rustls::ServerConfig>,
    threads: usize,
    budget: &Budget,
    arms: &Arc<ArmsInUse>,
) -> tcp::Parts {
    let port = address.port();
    let max_age = settings.alt_svc.filter(|_| settings.versions.http3);
    tcp::Parts {
        listeners,
        plain,
        https_port: port,
        threads,
        tls,
        handler: Arc::clone(&settings.handler),
        access: settings.access.clone(),
        log: settings.log.clone(),
        sites: settings.sites.clone(),
        arms: Arc::clone(arms),
        alt_svc: max_age.map(|age| format!("h3=\":{port}\"; ma={}", age.as_secs())),
        interim_http1: settings.interim_http1,
        limits: settings.tcp,
        budget: budget.clone(),
        window_budget: settings.window_budget.clone(),
        challenges: settings.challenges.clone(),
    }
}

fn tls_configs(settings: &Settings) -> Result<TlsConfigs, StartError> {
    tls::configure(tls::TlsSettings {
        identities: &settings.identities,
        challenges: settings.challenges.clone(),
        ticket_keys: settings.ticket_keys.as_deref(),
        takes_zero_rtt: settings.takes_zero_rtt,
        aead: settings.aead,
        key_log: settings.key_log.clone(),
        tcp_protocols: tcp_protocols(settings),
        ticket_secret: random()?,
        random: random()?,
    })
    .map_err(StartError::Tls)
}

/// ALPN identifiers over TCP, in order of preference (RFC 7301).
fn tcp_protocols(settings: &Settings) -> Vec<Vec<u8>> {
    let mut all = settings.versions.tcp_protocols();
    if settings.challenges.is_some() {
        all.push(ACME_TLS.to_vec());
    }
    all
}

/// Inputs of HTTP/3 besides the settings.
struct Http3Parts {
    workers: usize,
    sockets: Vec<Socket>,
    clock: Clock,
    crypto: TlsServer,
    tokens: Arc<TokenStore>,
    arms: Arc<ArmsInUse>,
    on_end: OnEnd,
    budget: Budget,
}

/// Called when a worker ends, for whatever reason.
type OnEnd = Arc<dyn Fn(usize, Statistics) + Send + Sync>;

/// Stores a worker's counters. One that ends before the server has failed.
fn on_end(
    ends: &Arc<Mutex<Vec<Statistics>>>,
    is_draining: &Arc<AtomicBool>,
    fail: watch::Sender<Option<usize>>,
) -> OnEnd {
    let (ends, is_draining) = (Arc::clone(ends), Arc::clone(is_draining));
    Arc::new(move |worker, statistics| {
        let mut ends = ends.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(end) = ends.get_mut(worker) {
            *end = statistics;
        }
        if !is_draining.load(Ordering::Relaxed) {
            fail.send_replace(Some(worker));
        }
    })
}

/// The private key of the first certificate.
fn first_key(settings: &Settings) -> &[u8] {
    let first = settings.identities.first();
    first.map_or(&[], |identity| identity.key.secret_der())
}

fn start_http3(settings: Settings, parts: Http3Parts) -> Result<WorkerPool<Command>, StartError> {
    let Http3Parts {
        workers,
        sockets,
        clock,
        crypto,
        tokens,
        arms,
        on_end,
        budget,
    } = parts;
    let worker_byte = worker_byte(&settings);
    let reset_secret = reset_secret(first_key(&settings), settings.server_id, &settings.host);
    let shared = Shared {
        handler: settings.handler,
        http3: http3::Config {
            extended_connect: true,
            ..settings.http3
        },
        budget,
        arms: Arc::clone(&arms),
        sites: settings.sites,
        workers,
        log: settings.log,
        access: settings.access,
        trace: settings.trace,
        wall: Arc::new(|_| Clock::since_epoch()),
        on_end,
    };
    let (retry, limits) = (settings.retry, settings.quic);
    let server_id = settings.server_id.unwrap_or(0);
    let layout = settings.connection_ids;
    let crypto = Arc::new(crypto);
    let mailboxes: Vec<Arc<Mailbox>> = (0..workers).map(|_| Arc::default()).collect();
    let for_workers = mailboxes.clone();
    let make = move |worker: usize| {
        let ids = connection_ids(layout.as_ref(), server_id, (worker as u8, workers as u8))
            .map_err(io::Error::other)?;
        let mut config = EndpointConfig {
            ids: Box::new(ids),
            reset_key: Some(reset_secret),
            limits,
            ..EndpointConfig::server(first_config(&arms.current()), crypto.clone())
        };
        if let Some(server) = &mut config.server {
            server.retry = retry;
            server.tokens = Some(Arc::clone(&tokens));
            server.choose = Some(arms.clone());
        }
        let endpoint = Endpoint::with_data(config, random_io()?).map_err(io::Error::other)?;
        let mailbox = for_workers.get(worker).cloned().unwrap_or_default();
        let application = Http3Server::new(shared.clone(), worker, mailbox);
        Ok((endpoint, application))
    };
    let steering = SteeringRule {
        byte: worker_byte,
        workers,
    };
    let predecessor = settings.predecessor.as_ref();
    let pool = WorkerPool::start(sockets, steering, clock, predecessor, make)
        .map_err(StartError::System)?;
    for (mailbox, remote) in mailboxes.iter().zip(pool.remotes()) {
        let remote = remote.clone();
        mailbox.connect(move || remote.wake());
    }
    Ok(pool)
}

/// The connection IDs of a worker, given as its index and their number.
fn connection_ids(
    layout: Option<&QuicLbConfig>,
    server_id: u64,
    worker: (u8, u8),
) -> Result<QuicLbIds, String> {
    let seed = random_io().map_err(|error| error.to_string())?;
    let ids = match layout {
        None => {
            let server_id =
                u8::try_from(server_id).map_err(|_| QuicLbError::ServerId.to_string())?;
            QuicLbIds::new(ids_config(), &[server_id, worker.0], seed)
        }
        Some(layout) => {
            let bytes = server_id.to_be_bytes();
            let len = layout.server_id_len.min(bytes.len());
            let (leading, rest) = bytes.split_at(bytes.len() - len);
            if leading.iter().any(|byte| *byte != 0) {
                return Err(QuicLbError::ServerId.to_string());
            }
            let mut padded = vec![0; layout.server_id_len - len];
            padded.extend_from_slice(rest);
            QuicLbIds::for_worker(layout.clone(), &padded, worker, seed)
        }
    };
    ids.map_err(|error| error.to_string())
}

/// The layout of connection IDs without a load balancer's: octet 0, the server, the worker, a nonce.
const fn ids_config() -> QuicLbConfig {
    QuicLbConfig {
        rotation: 0,
        server_id_len: 2,
        nonce_len: NONCE_LEN,
        key: None,
        encodes_length: false,
    }
}

/// Default listener of connections.
fn first_config(arms: &Arms) -> Arc<Config> {
    Arc::clone(&arms.all()[0].config)
}

/// The key of stateless resets (RFC 9000 §10.3.2): derived from the private key, so that a server that was killed and
/// restarted can reset the connections of its predecessor; and from the server's number, or otherwise its host, so that
/// another server with the same certificate, to which a packet is misrouted, cannot end a connection (§21.11).
fn reset_secret(private_key: &[u8], server_id: Option<u64>, host: &[u8]) -> ResetSecret {
    let key = hmac::Key::new(hmac::HMAC_SHA256, private_key);
    let label = match server_id {
        // One byte if it fits: restarted servers keep the key.
        Some(id) => {
            let bytes = id.to_be_bytes();
            let from = if id <= 0xff { 7 } else { 0 };
            [b"lastbyte stateless reset ".as_slice(), &bytes[from..]].concat()
        }
        None => [b"lastbyte stateless reset of host ".as_slice(), host].concat(),
    };
    let mut secret = [0; 32];
    secret.copy_from_slice(hmac::sign(&key, &label).as_ref());
    ResetSecret(secret)
}

fn random_io() -> io::Result<Seed> {
    let mut seed = [0; 32];
    rand::fill(&mut seed)
        .map_err(|_| io::Error::other("cannot get random bytes from the system"))?;
    Ok(seed)
}

fn random() -> Result<Seed, StartError> {
    random_io().map_err(StartError::System)
}

#[cfg(test)]
mod tests;
