//! The HTTP/3 server of one worker without a socket, a clock and threads: datagrams and time in, datagrams and deadlines out.
//!
//! Owns the order of a turn, which is that of [`lastbyte_driver::Worker`]. Tests, fuzz targets and simulations run the
//! application that way.

use std::{fmt, io, sync::Arc, time::Duration};

use lastbyte_congestion::Time;
use lastbyte_driver::{
    Application as _, Datagram,
    application::{notify_ready, receive},
};
use lastbyte_http3 as http3;
use lastbyte_quic::{
    ack::Ecn,
    connection::{NetworkPath, Transmit},
    endpoint::{Endpoint, EndpointConfig, ServerConfig},
};

use super::{Command, Connections, Http3Server, Mailbox, Served, Shared, Statistics};
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
pub struct PureServer {
    endpoint: Connections,
    application: Http3Server,
    is_done: bool,
    deadline: Option<Time>,
}

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
            predecessor: None,
            on_end: Arc::new(|_, _| {}),
        };
        Ok(Self {
            endpoint: Endpoint::with_data(endpoint, seed).map_err(io::Error::other)?,
            application: Http3Server::new(shared, 0, Arc::<Mailbox>::default()),
            is_done: false,
            deadline: None,
        })
    }

    /// Receives a datagram.
    pub fn receive(&mut self, now: Time, path: NetworkPath, ecn: Ecn, bytes: &mut [u8]) {
        let datagram = Datagram { path, ecn, bytes };
        receive(&mut self.application, &mut self.endpoint, now, datagram);
    }

    /// Accepts no more requests, and ends those in flight within this time.
    pub fn shut_down(&mut self, now: Time, limit: Duration) {
        let command = Command::ShutDown(limit);
        self.application
            .on_command(now, &mut self.endpoint, command);
    }

    /// Does what is due. To be called after datagrams were received, at [`PureServer::deadline`], and when a handler's task
    /// has made progress.
    pub fn run(&mut self, now: Time) {
        while self.endpoint.poll_timeout(now).is_some() {}
        notify_ready(&mut self.application, &mut self.endpoint, now);
        let turn = self.application.on_turn(now, &mut self.endpoint);
        notify_ready(&mut self.application, &mut self.endpoint, now);
        while let Some(closed) = self.endpoint.poll_closed() {
            self.application.on_closed(now, closed);
        }
        self.is_done = turn.is_done;
        self.deadline = turn.deadline.filter(|_| !turn.is_done);
    }

    /// The next datagrams to send.
    pub fn poll_transmit(&mut self, now: Time, buffer: &mut [u8]) -> Option<Transmit> {
        self.endpoint.poll_transmit(now, buffer)
    }

    /// When it is to run next, if nothing is received before.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        [self.endpoint.deadline(), self.deadline]
            .into_iter()
            .flatten()
            .min()
    }

    /// Whether the shutdown is complete, but for what [`PureServer::poll_transmit`] returns.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        self.is_done
    }

    /// The counters.
    #[must_use]
    pub const fn statistics(&self) -> &Statistics {
        &self.application.common.measure.statistics
    }

    /// What it keeps for requests.
    pub fn kept(&mut self) -> Kept {
        let mut kept = Kept::default();
        for handle in self.endpoint.handles().collect::<Vec<_>>() {
            let Some((connection, served)) = self.endpoint.entry(handle) else {
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
        kept.held += self.application.starting.len();
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
        f.debug_struct("PureServer")
            .field("statistics", self.statistics())
            .finish_non_exhaustive()
    }
}
