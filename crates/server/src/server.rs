//! A server: sockets, workers, TLS, handler, arms and log together.

use std::{
    fmt, io,
    net::SocketAddr,
    num::NonZeroUsize,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

use aws_lc_rs::{hmac, rand};
use lastbyte_congestion::Time;
use lastbyte_driver::{Clock, Crew, Owners, worker};
use lastbyte_http3 as http3;
use lastbyte_quic::{
    cid::{QuicLbConfig, QuicLbIds},
    connection::Config,
    crypto::{
        key_log::KeyLogLines,
        provider,
        tickets::{Tickets, ZeroRtt, clock::WallClock, keys::TicketKeys, register::StrikeRegister},
        tls::TlsServer,
    },
    endpoint::{Endpoint, EndpointConfig, ResetSecret, RetryPolicy},
    random::Seed,
    trace::Trace,
};
use lastbyte_udp::{Capabilities, Options, Steering, bind_group};

use super::{
    access::AccessLog,
    application::{Command, Http3Server, Mailbox, Shared, Statistics},
    arms::{Arms, ArmsInUse},
    handler::Handler,
    identity::Identity,
    log::LogWriter,
};

/// What a server is made of.
pub struct Settings {
    /// Where it listens; port 0 is any that is free.
    pub address: SocketAddr,
    /// How many threads work. Default: as many as there are cores.
    pub workers: Option<NonZeroUsize>,
    /// Who it is.
    pub identity: Identity,
    /// Which configuration its connections get.
    pub arms: Arms,
    /// The experiment's name, for the log.
    pub experiment: Option<String>,
    /// What answers requests.
    pub handler: Arc<dyn Handler>,
    /// Where the line of each connection goes.
    pub log: Option<LogWriter>,
    /// Where the line of each request goes.
    pub access: Option<AccessLog>,
    /// Where secrets go, a line each, for debuggers.
    pub key_log: Option<KeyLog>,
    /// Makes a listener for each connection, with its number and the time at its begin: for qlog.
    pub trace: Option<TraceMaker>,
    /// When clients have to show where they are.
    pub retry: RetryPolicy,
    /// Whether 0-RTT is taken.
    pub takes_zero_rtt: bool,
    /// The first bytes of connection IDs, by which load balancers find this server. One byte.
    pub server_id: u8,
    /// What can be set for the sockets.
    pub sockets: Options,
    /// What can be set for HTTP/3.
    pub http3: http3::Config,
}

/// Takes the lines of a key log.
pub type KeyLog = Arc<dyn Fn(&str) + Send + Sync>;

/// Makes a listener for a connection.
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
            workers: None,
            identity,
            arms,
            experiment: None,
            handler,
            log: None,
            access: None,
            key_log: None,
            trace: None,
            retry: RetryPolicy::UnderLoad { handshakes: 500 },
            takes_zero_rtt: true,
            server_id: 0,
            sockets: Options::default(),
            http3: http3::Config::default(),
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

/// Why a server cannot start.
#[derive(Debug)]
pub enum StartError {
    /// The address cannot be listened on.
    Bind(SocketAddr, io::Error),
    /// Certificate and key cannot be used.
    Tls(String),
    /// The system gives no threads, or no randomness.
    System(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bind(address, error) => write!(f, "cannot listen on {address}: {error}"),
            Self::Tls(error) => write!(f, "cannot use certificate and key: {error}"),
            Self::System(error) => write!(f, "cannot start: {error}"),
        }
    }
}

impl std::error::Error for StartError {}

/// A server that runs.
#[derive(Debug)]
pub struct Server {
    crew: Crew<Command>,
    address: SocketAddr,
    capabilities: Capabilities,
    steering: Steering,
    ends: Arc<Mutex<Vec<Statistics>>>,
}

/// What a server has done.
#[derive(Debug)]
pub struct Report {
    /// Of HTTP/3, all workers together.
    pub statistics: Statistics,
    /// Of each worker, or why it ended.
    pub workers: Vec<io::Result<worker::Statistics>>,
}

/// The byte of a connection ID that tells the worker: after octet 0 and the server's.
const WORKER_BYTE: u8 = 2;

/// How many `ClientHello`s with 0-RTT are remembered, so that none is taken twice.
const STRIKES: usize = 1 << 16;

impl Server {
    /// Starts it.
    ///
    /// # Errors
    ///
    /// It cannot.
    pub fn start(settings: Settings) -> Result<Self, StartError> {
        let workers = settings
            .workers
            .or_else(|| thread::available_parallelism().ok())
            .map_or(1, NonZeroUsize::get)
            .min(usize::from(u8::MAX));
        let steering = Steering::ByConnectionId { byte: WORKER_BYTE };
        let (sockets, steering) =
            bind_group(settings.address, workers, &settings.sockets, steering)
                .map_err(|error| StartError::Bind(settings.address, error))?;
        let (address, capabilities) = sockets
            .first()
            .map(|socket| (socket.local_address(), socket.capabilities()))
            .ok_or_else(|| StartError::System(io::Error::other("no socket")))?;
        let crypto = Arc::new(tls(&settings)?);
        let key = settings.identity.key.secret_der();
        let reset_secret = reset_secret(key, settings.server_id);
        let ends = Arc::new(Mutex::new(vec![Statistics::default(); workers]));
        let at_end = Arc::clone(&ends);
        let arms = Arc::new(ArmsInUse::new(settings.arms));
        let mailboxes: Vec<Arc<Mailbox>> = (0..workers).map(|_| Arc::default()).collect();
        let shared = Shared {
            handler: settings.handler,
            http3: settings.http3,
            arms: Arc::clone(&arms),
            experiment: settings.experiment,
            log: settings.log,
            access: settings.access,
            trace: settings.trace,
            on_end: Arc::new(move |worker, statistics| {
                let mut ends = at_end.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(end) = ends.get_mut(worker) {
                    *end = statistics;
                }
            }),
        };
        let (server_id, retry) = (settings.server_id, settings.retry);
        let for_workers = mailboxes.clone();
        let make = move |worker: usize| {
            let ids = QuicLbConfig {
                rotation: 0,
                server_id_len: 2,
                nonce_len: 5,
                key: None,
                encodes_length: false,
            };
            let ids = QuicLbIds::new(ids, &[server_id, worker as u8], random_io()?)
                .map_err(|error| io::Error::other(error.to_string()))?;
            let mut config = EndpointConfig {
                ids: Box::new(ids),
                reset_key: Some(reset_secret),
                ..EndpointConfig::server(first_config(&arms.current()), crypto.clone())
            };
            if let Some(server) = &mut config.server {
                server.retry = retry;
                server.choose = Some(arms.clone());
            }
            let endpoint = Endpoint::new(config, random_io()?).map_err(io::Error::other)?;
            let mailbox = for_workers.get(worker).cloned().unwrap_or_default();
            let application = Http3Server::new(shared.clone(), worker, workers, mailbox);
            Ok((endpoint, application))
        };
        let owners = Owners {
            byte: WORKER_BYTE,
            workers,
            steering,
        };
        let crew = Crew::start(sockets, owners, Clock::new(), make).map_err(StartError::System)?;
        for (mailbox, remote) in mailboxes.iter().zip(crew.remotes()) {
            mailbox.connect(remote.clone());
        }
        Ok(Self {
            crew,
            address,
            capabilities,
            steering,
            ends,
        })
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// What the system can do.
    #[must_use]
    pub const fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    /// Who leads datagrams to their worker.
    #[must_use]
    pub const fn steering(&self) -> Steering {
        self.steering
    }

    /// How many workers there are.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.crew.remotes().len()
    }

    /// Takes no more requests, lets those at hand be answered for so long, and ends. Says what was done.
    #[must_use]
    pub fn shut_down(self, limit: Duration) -> Report {
        for remote in self.crew.remotes() {
            // One that is gone already has nothing to finish.
            let _ = remote.say(Command::ShutDown(limit));
        }
        let workers = self.crew.join();
        let ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        let mut statistics = Statistics::default();
        for end in ends.iter() {
            statistics.add(end);
        }
        Report {
            statistics,
            workers,
        }
    }
}

/// What connections get that nobody chose for.
fn first_config(arms: &Arms) -> Arc<Config> {
    Arc::clone(&arms.all()[0].config)
}

/// The time of day.
#[derive(Debug)]
struct TimeOfDay;

impl WallClock for TimeOfDay {
    fn since_epoch(&self) -> Duration {
        Clock::since_epoch()
    }
}

fn tls(settings: &Settings) -> Result<TlsServer, StartError> {
    let error = |error: &dyn fmt::Display| StartError::Tls(error.to_string());
    let provider = Arc::new(provider(rustls::crypto::aws_lc_rs::default_provider()));
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|found| error(&found))?
        .with_no_client_auth()
        .with_single_cert(
            settings.identity.chain.clone(),
            settings.identity.key.clone_key(),
        )
        .map_err(|found| error(&found))?;
    config.alpn_protocols = vec![http3::ALPN.to_vec()];
    if let Some(key_log) = settings.key_log.clone() {
        config.key_log = Arc::new(KeyLogLines(move |line: &str| key_log(line)));
    }
    let keys = TicketKeys::new(&[random()?]).map_err(|found| error(&found))?;
    let mut tickets = Tickets::new(keys, Arc::new(TimeOfDay));
    if settings.takes_zero_rtt {
        // Tickets of an earlier process do not open, so there is nothing that it saw and this one has forgotten.
        let register = StrikeRegister::new(STRIKES, Duration::ZERO);
        tickets = tickets.with_zero_rtt(ZeroRtt::ThisServer(Arc::new(register)));
    }
    TlsServer::with_tickets(config, Arc::new(tickets)).map_err(|found| error(&found))
}

/// What stateless resets are made from (RFC 9000 §10.3.2): of the private key, so that a server that was killed and is
/// there again can tell the clients of the one before; and of the server's number, so that another server with the same
/// certificate, to which a packet is led astray, cannot end a connection (§21.11).
fn reset_secret(private_key: &[u8], server_id: u8) -> ResetSecret {
    let key = hmac::Key::new(hmac::HMAC_SHA256, private_key);
    let label = [b"lastbyte stateless reset ".as_slice(), &[server_id]].concat();
    let mut secret = [0; 32];
    secret.copy_from_slice(hmac::sign(&key, &label).as_ref());
    ResetSecret(secret)
}

fn random_io() -> io::Result<Seed> {
    let mut seed = [0; 32];
    rand::fill(&mut seed).map_err(|_| io::Error::other("the system gives no randomness"))?;
    Ok(seed)
}

fn random() -> Result<Seed, StartError> {
    random_io().map_err(StartError::System)
}

#[cfg(test)]
mod tests;
