//! What all workers of a server share, and the engine of one worker.

use core::{fmt, time::Duration};
use std::sync::Arc;

use lastbyte_congestion::Time;
use lastbyte_engine::Engine;
use lastbyte_http3 as http3;
use lastbyte_quic::{
    endpoint::{Endpoint, EndpointConfig, EndpointConfigError, ServerConfig},
    random::Seed,
    stream::WindowSize,
    trace::Trace,
};

use super::{Http3Server, Mailbox, Statistics};
use crate::{
    access::AccessLog,
    arms::{Arms, ArmsInUse},
    budget::{Budget, Limits},
    handler::Handler,
    log::LogWriter,
    sites::Sites,
};

/// The wall-clock time that belongs to a time, since the Unix epoch: for dates and logs.
pub type WallClock = Arc<dyn Fn(Time) -> Duration + Send + Sync>;

/// Creates a listener for a new connection, from its number and the time.
pub type MakeTrace = Arc<dyn Fn(u64, Time) -> Option<Box<dyn Trace>> + Send + Sync>;

/// What all workers of a server share.
#[derive(Clone)]
pub struct Shared {
    /// The number of workers. Default: 1.
    pub workers: usize,
    /// Responds to requests.
    pub handler: Arc<dyn Handler>,
    /// Settings of HTTP/3.
    pub http3: http3::Config,
    /// The memory for buffered bodies.
    pub budget: Budget,
    /// The arms of the experiment, with the configuration of connections.
    pub arms: Arc<ArmsInUse>,
    /// The names of sites for the logs. Default: none.
    pub sites: Sites,
    /// The connection log. Default: none.
    pub log: Option<LogWriter>,
    /// The access log. Default: none.
    pub access: Option<AccessLog>,
    /// The listeners of connections. Default: none.
    pub trace: Option<MakeTrace>,
    /// The wall-clock time, for dates and logs.
    pub wall: WallClock,
    /// Called with the index and the counters of a worker when it ends.
    pub on_end: Arc<dyn Fn(usize, Statistics) + Send + Sync>,
}

impl Shared {
    /// A server with one worker, without logs.
    #[must_use]
    pub fn new(handler: Arc<dyn Handler>, arms: Arms, wall: WallClock) -> Self {
        Self {
            workers: 1,
            handler,
            http3: http3::Config::default(),
            budget: Budget::new(Limits::default()),
            arms: Arc::new(ArmsInUse::new(arms)),
            sites: Sites::default(),
            log: None,
            access: None,
            trace: None,
            wall,
            on_end: Arc::new(|_, _| {}),
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("workers", &self.workers)
            .field("http3", &self.http3)
            .field("arms", &self.arms)
            .finish_non_exhaustive()
    }
}

/// The largest receive window for request bodies, by default, in bytes.
pub const UPLOAD_WINDOW_MAX: u64 = 16 << 20;

/// The receive window of a server's connection and of each of its streams. It grows with the bandwidth-delay product, up to
/// `maximum` bytes.
pub fn upload_window(maximum: u64) -> WindowSize {
    WindowSize {
        initial: maximum.min(1 << 20),
        maximum,
    }
}

/// The engine of a server's only worker. The configuration of connections, and their choice, are those of the arms.
///
/// # Errors
///
/// Returns an error if the configuration of the endpoint is not valid.
pub fn engine(
    shared: Shared,
    mut endpoint: EndpointConfig,
    seed: Seed,
) -> Result<Engine<Http3Server>, EndpointConfigError> {
    if let Some(ServerConfig { choose, .. }) = &mut endpoint.server {
        *choose = Some(shared.arms.clone());
    }
    let endpoint = Endpoint::with_data(endpoint, seed)?;
    let application = Http3Server::new(shared, 0, Arc::<Mailbox>::default());
    Ok(Engine::new(endpoint, application))
}
