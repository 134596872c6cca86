//! The HTTP/3 server of one worker without a socket, a clock and threads: datagrams and time in, datagrams and deadlines out.
//!
//! The server is an [`Engine`], as that of a [`lastbyte_driver::Worker`]. Tests, fuzz targets and simulations run it that way.

use std::{fmt, io, sync::Arc, time::Duration};

use lastbyte_congestion::Time;
use lastbyte_driver::Engine;
pub use lastbyte_driver::{Next, Status};
use lastbyte_http3 as http3;
use lastbyte_quic::{
    ack::Ecn,
    connection::{NetworkPath, Transmit},
    endpoint::{Endpoint, EndpointConfig, ServerConfig},
};

pub use super::WallClock;
use super::{Command, Http3Server, Mailbox, Served, Shared, Statistics};
use crate::{
    access::AccessLog,
    arms::{Arms, ArmsInUse},
    budget::{self, Budget},
    handler::Handler,
    log::LogWriter,
    sites::Sites,
};

/// What a [`PureServer`] consists of.
#[derive(Clone)]
pub struct Parts {
    /// Responds to requests.
    pub handler: Arc<dyn Handler>,
    /// Settings of HTTP/3.
    pub http3: http3::Config,
    /// The arms of the experiment, with the configuration of connections.
    pub arms: Arms,
    /// Limits on buffered bodies.
    pub budget: budget::Limits,
    /// The connection log.
    pub log: Option<LogWriter>,
    /// The access log.
    pub access: Option<AccessLog>,
    /// The wall-clock time, for dates and logs.
    pub wall: WallClock,
}

/// What a server keeps for the requests of its connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Open connections.
    pub connections: usize,
    /// Streams of these connections that have not ended, of the control and QPACK streams too.
    pub streams: usize,
    /// Entries for the access log.
    pub records: usize,
    /// Responses that arrive piece by piece.
    pub running: usize,
    /// Responses that are delayed.
    pub delayed: usize,
    /// Requests that wait to be passed to a handler's task.
    pub held: usize,
}

/// The HTTP/3 server of one worker.
pub struct PureServer(Engine<Http3Server>);

impl PureServer {
    /// A server with these parts. The configuration of connections, and their choice, are those of the arms.
    ///
    /// # Errors
    ///
    /// Returns an error if the configuration of the endpoint is not valid.
    pub fn new(parts: Parts, mut endpoint: EndpointConfig, seed: [u8; 32]) -> io::Result<Self> {
        let arms = Arc::new(ArmsInUse::new(parts.arms));
        if let Some(ServerConfig { choose, .. }) = &mut endpoint.server {
            *choose = Some(arms.clone());
        }
        let shared = Shared {
            workers: 1,
            handler: parts.handler,
            http3: parts.http3,
            budget: Budget::new(parts.budget),
            arms,
            sites: Sites::default(),
            log: parts.log,
            access: parts.access,
            trace: None,
            wall: parts.wall,
            on_end: Arc::new(|_, _| {}),
        };
        let endpoint = Endpoint::with_data(endpoint, seed).map_err(io::Error::other)?;
        let application = Http3Server::new(shared, 0, Arc::<Mailbox>::default());
        Ok(Self(Engine::new(endpoint, application)))
    }

    /// Receives a datagram.
    pub fn receive(&mut self, now: Time, path: NetworkPath, ecn: Ecn, bytes: &mut [u8]) {
        self.0.receive(now, path, ecn, bytes);
    }

    /// Accepts no more requests, and ends those in flight within this time.
    pub fn shut_down(&mut self, now: Time, limit: Duration) {
        self.0.command(now, Command::ShutDown(limit));
    }

    /// Does what is due. To be called after datagrams were received, when the next turn is due, and when a handler's task has
    /// made progress.
    pub fn run(&mut self, now: Time) {
        self.0.run(now);
    }

    /// Whether a handler's task has made progress since the last turn.
    #[must_use]
    pub fn is_woken(&mut self) -> bool {
        self.0.application().mailbox.is_full()
    }

    /// The next datagrams to send.
    pub fn poll_transmit(&mut self, now: Time, buffer: &mut [u8]) -> Option<Transmit> {
        self.0.poll_transmit(now, buffer)
    }

    /// Ends the turn. Returns when the next one is due, and whether the server has ended ([`Engine::finish`]).
    pub fn finish(&mut self, now: Time) -> Next {
        self.0.finish(now, false)
    }

    /// The counters.
    #[must_use]
    pub const fn statistics(&mut self) -> &Statistics {
        &self.0.application().common.measure.statistics
    }

    /// What it keeps for requests.
    pub fn kept(&mut self) -> Kept {
        let mut kept = Kept::default();
        let (endpoint, application) = self.0.parts();
        for handle in endpoint.handles().collect::<Vec<_>>() {
            let Some((connection, served)) = endpoint.entry(handle) else {
                continue;
            };
            let Served {
                records,
                running,
                delayed,
                held,
                ..
            } = &**served;
            kept.connections += 1;
            kept.streams += connection.streams().live();
            kept.records += records.len();
            kept.running += running.len();
            kept.delayed += delayed.len();
            kept.held += held.len();
        }
        kept.held += application.starting.len();
        kept
    }
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts")
            .field("http3", &self.http3)
            .field("arms", &self.arms)
            .field("budget", &self.budget)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for PureServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PureServer").field(&self.0).finish()
    }
}
