//! The endpoint: many connections behind one socket (RFC 9000 §5.2, §6, §8.1, §10.3).
//!
//! Owns its connections; the routing of datagrams; responses to datagrams that belong to no connection; the order of
//! sending, and of timers. Time and randomness are arguments. It uses no socket, and does not process packets that
//! belong to a connection.
//!
//! | file | holds |
//! |---|---|
//! | `config.rs`, `statistics.rs` | configuration and counters |
//! | `handle.rs`, `slot.rs` | connections by handle, and the endpoint's state of each |
//! | `closing.rs` | the remaining state of a connection in the closing or draining state |
//! | `route.rs`, `demux.rs` | routing of datagrams |
//! | `accept.rs`, `address.rs` | a client's first packet; address validation by tokens |
//! | `prefix.rs` | handshakes in progress for each address prefix |
//! | `early.rs` | 0-RTT datagrams received before it |
//! | `retry.rs`, `version.rs`, `reset.rs`, `refusal.rs` | the four stateless responses |
//! | `offload.rs` | Retry packets that a load balancer sends in place of servers |
//! | `answers.rs`, `bucket.rs` | their queue and rate limits |
//! | `timers.rs`, `table.rs` | deadlines in order; hash tables for untrusted keys |
//!
//! # Usage
//!
//! 1. [`Endpoint::route`] each datagram; with a handle, [`Endpoint::connection`] and there
//!    [`Connection::handle_datagram`].
//! 2. [`Endpoint::poll_timeout`] until it returns `None`: each handle is a connection whose timer expired.
//! 3. The application's turn: [`Endpoint::poll_touched`] until it returns `None`: each handle names a connection that
//!    may have events, to be read with [`Endpoint::entry`] or [`Endpoint::connection`].
//! 4. [`Endpoint::poll_transmit`] until it returns `None`, and [`Endpoint::poll_closed`].
//! 5. Wait for a datagram, or until [`Endpoint::deadline`].
//!
//! A connection that was accessed in 1 to 3 is *ready*: step 4 lets it send, and records its timer and IDs. Others cost
//! nothing, however many there are.
//!
//! # Decisions
//!
//! - *A closed connection is returned to the caller* ([`Closed`]): it has unread events, which only the application can
//!   process. That is as soon as it is draining, or its `CONNECTION_CLOSE` was sent: then the endpoint repeats that, and
//!   recognizes late packets, without the connection's memory.
//! - *Timers are polled one by one*, so that the caller learns which connections may have events.
//! - *An Initial packet must be authentic before any state is kept for it.* Its keys are public (RFC 9001 §5.2), but
//!   this stops noise and corrupt packets.
//! - *The application's data of a connection is stored beside it* (`D`), so that no caller keeps a table by handle: it
//!   is made when a client is accepted ([`Endpoint::route_with`]), and is returned in [`Closed`].
//! - *Wall-clock time*, which only tokens need, is set once ([`Endpoint::set_wall_clock`]), and advances with `now`.

mod accept;
mod address;
mod answers;
mod bucket;
mod closing;
mod config;
mod demux;
mod early;
mod handle;
mod offload;
mod prefix;
mod refusal;
mod reset;
mod retry;
mod route;
mod slot;
mod statistics;
mod table;
mod timers;
mod version;

use core::{fmt, net::SocketAddr, ops::Range};
use std::{collections::VecDeque, sync::Arc};

use lastbyte_congestion::{SavedPath, Time};
use lastbyte_units::SipHash;
use lastbyte_wire::{ConnectionId, Side};

use self::{
    accept::Server,
    address::WallClock,
    answers::Answers,
    bucket::Bucket,
    demux::Demux,
    early::EarlyDatagrams,
    handle::Slab,
    prefix::Prefixes,
    slot::{Content, Handshake, Load, Slot},
    timers::Timers,
};
pub use self::{
    address::{RetryBalancers, TokenStore},
    bucket::RateLimit,
    config::{
        ChooseConfig, EndpointConfig, EndpointConfigError, Limits, ResetSecret, RetryPolicy,
        ServerConfig,
    },
    handle::Handle,
    offload::{OffloadDecision, RetryOffload},
    route::{Answer, Route},
    slot::Closed,
    statistics::{DropReason, Statistics},
};
use crate::{
    WallTime,
    cid::{ConnectionIdGenerator, ConnectionIds},
    connection::{self, ClientStart, Connection, NetworkPath, Stage, Transmit},
    crypto::{ClientCrypto, StartError, reset::ResetKey, token::TokenPath},
    random::{Random, Seed},
};

/// Many connections behind one socket, each with a `D` of the application's.
pub struct Endpoint<D = ()> {
    slots: Slab<Slot<D>>,
    demux: Demux,
    timers: Timers,
    /// Connections that are ready, each once.
    ready: VecDeque<Handle>,
    /// Connections that a datagram or a timer reached, each once, until they are polled or closed.
    touched: VecDeque<Handle>,
    /// Closed connections.
    closed: VecDeque<Closed<D>>,
    answers: Answers,
    early: EarlyDatagrams,
    server: Option<Server>,
    ids: Box<dyn ConnectionIds>,
    /// Those that they replaced, which open connections still use.
    earlier_ids: Option<Box<dyn ConnectionIds>>,
    /// For the endpoint's own IDs: those of Retry packets and refusals.
    own_ids: Box<dyn ConnectionIdGenerator + Send>,
    reset_key: Arc<ResetKey>,
    sends_resets: bool,
    limits: Limits,
    buckets: Buckets,
    load: Load,
    /// Of validated clients whose handshake is in progress.
    prefixes: Prefixes,
    /// Of clients whose handshake is complete.
    established: Prefixes,
    wall_clock: WallClock,
    random: Random,
    statistics: Statistics,
    /// A copy of an Initial packet, to check whether it is authentic.
    scratch: Vec<u8>,
}

/// Rate limits of stateless responses, to packets that prove nothing about their sender.
struct Buckets {
    resets: Bucket,
    version_negotiations: Bucket,
    refusals: Bucket,
}

/// Why a connection cannot be created.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// The limit is reached ([`Limits::connections`]).
    #[error("there are as many connections as there may be")]
    TooMany,
    /// Without connection IDs there can be only one connection for each pair of addresses, and there is one.
    #[error("there is a connection without IDs to this address")]
    PathInUse,
    /// The handshake cannot start.
    #[error("{0}")]
    Start(StartError),
}

impl Endpoint {
    /// An endpoint whose connections have no data of the application's; otherwise as [`Endpoint::with_data`].
    ///
    /// # Errors
    ///
    /// As [`Endpoint::with_data`].
    pub fn new(config: EndpointConfig, seed: Seed) -> Result<Self, EndpointConfigError> {
        Self::with_data(config, seed)
    }
}

impl<D> Endpoint<D> {
    /// An endpoint without connections. All its randomness comes from `seed`.
    ///
    /// # Errors
    ///
    /// Returns [`EndpointConfigError::IdLength`] if connection IDs are longer than 20 bytes, or if those of a server are empty,
    /// and [`EndpointConfigError::Key`] if no token keys can be derived.
    pub fn with_data(config: EndpointConfig, seed: Seed) -> Result<Self, EndpointConfigError> {
        let id_len = config.ids.id_len();
        if id_len > ConnectionId::MAX_LEN || (id_len == 0 && config.server.is_some()) {
            return Err(EndpointConfigError::IdLength);
        }
        let mut random = Random::new(seed);
        let secret = config
            .reset_key
            .map_or_else(|| random.bytes(), |secret| secret.0);
        let reset_key = Arc::new(ResetKey::new(&secret));
        let mut keys = || [random.number(), random.number()];
        let demux = Demux::new([keys(), keys(), keys(), keys()]);
        let server = match config.server {
            Some(server) => Some(Server::new(server, &mut random)?),
            None => None,
        };
        let own_ids = config.ids.generator(&reset_key, random.bytes());
        let prefix_hash = SipHash::new([random.number(), random.number()]);
        Ok(Self {
            slots: Slab::new(),
            demux,
            timers: Timers::default(),
            ready: VecDeque::new(),
            touched: VecDeque::new(),
            closed: VecDeque::new(),
            answers: Answers::new(config.limits.answers),
            early: EarlyDatagrams::default(),
            server,
            ids: config.ids,
            earlier_ids: None,
            own_ids,
            reset_key,
            sends_resets: config.reset_key.is_some(),
            limits: config.limits,
            buckets: Buckets {
                resets: Bucket::new(config.limits.resets),
                version_negotiations: Bucket::new(config.limits.version_negotiations),
                refusals: Bucket::new(config.limits.refusals),
            },
            load: Load::default(),
            prefixes: Prefixes::new(prefix_hash),
            established: Prefixes::new(prefix_hash),
            wall_clock: WallClock::new(Time::ZERO, WallTime::UNIX_EPOCH),
            random,
            statistics: Statistics::default(),
            scratch: Vec::new(),
        })
    }

    /// Sets the wall clock: `wall_time` at `now`. To be called at the start, and whenever the clock may have been set.
    /// Only tokens need it.
    pub fn set_wall_clock(&mut self, now: Time, wall_time: WallTime) {
        self.wall_clock = WallClock::new(now, wall_time);
    }

    /// Replaces the layout of the connection IDs of new connections. Open connections keep theirs, and the layout that is
    /// replaced is remembered, so that packets of connections that are unknown still get stateless resets.
    ///
    /// # Errors
    ///
    /// Returns [`EndpointConfigError::IdLength`] if the IDs have another length: it is the same for all connections, as
    /// short headers do not contain it (RFC 9000 §5.2).
    pub fn replace_ids(&mut self, ids: Box<dyn ConnectionIds>) -> Result<(), EndpointConfigError> {
        if ids.id_len() != self.ids.id_len() {
            return Err(EndpointConfigError::IdLength);
        }
        self.own_ids = ids.generator(&self.reset_key, self.random.bytes());
        self.earlier_ids = Some(std::mem::replace(&mut self.ids, ids));
        Ok(())
    }

    /// Creates a connection to the server of this name. `token` is of an earlier connection to it, or empty. The connection's data
    /// is the default; [`Endpoint::entry`] gives access to it.
    ///
    /// # Errors
    ///
    /// Returns [`ConnectError`] if there are too many connections, or the handshake cannot start.
    pub fn connect(
        &mut self,
        now: Time,
        path: NetworkPath,
        server_name: &str,
        config: &Arc<connection::Config>,
        crypto: Arc<dyn ClientCrypto>,
        token: Vec<u8>,
    ) -> Result<Handle, ConnectError>
    where
        D: Default,
    {
        if self.is_full() {
            return Err(ConnectError::TooMany);
        }
        if self.ids.id_len() == 0 && self.demux.by_path(&path).is_some() {
            return Err(ConnectError::PathInUse);
        }
        let (local_id, ids) = self.new_ids();
        let destination: [u8; DESTINATION_LEN] = self.random.bytes();
        let start = ClientStart {
            crypto,
            server_name,
            path,
            local_id,
            // 8 bytes always fit.
            destination: ConnectionId::new(&destination).unwrap_or(ConnectionId::EMPTY),
            token,
            ids,
            seed: self.random.bytes(),
        };
        let connection = Connection::client(now, config, start).map_err(ConnectError::Start)?;
        self.statistics.connected += 1;
        let handshake = Handshake {
            deadline: now + self.limits.handshake_timeout,
            validated: None,
        };
        Ok(self.add(connection, Side::Client, handshake, |_, _| D::default()))
    }

    /// A connection, mutable. The next [`Endpoint::poll_transmit`] lets it send. `None` once [`Endpoint::poll_closed`] returns it.
    pub fn connection(&mut self, handle: Handle) -> Option<&mut Connection> {
        self.entry(handle).map(|(connection, _)| connection)
    }

    /// A connection as [`Endpoint::connection`], and the application's data of it.
    pub fn entry(&mut self, handle: Handle) -> Option<(&mut Connection, &mut D)> {
        let slot = self.slots.get_mut(handle)?;
        let Content::Connection(connection, data) = &mut slot.content else {
            return None;
        };
        if !slot.is_ready {
            slot.is_ready = true;
            self.ready.push_back(handle);
        }
        Some((connection, data))
    }

    /// The next connection that [`Endpoint::route`] or [`Endpoint::poll_timeout`] returned since it was polled here last, in the
    /// order of their first return. A caller that handles each connection immediately does not need it.
    pub fn poll_touched(&mut self) -> Option<Handle> {
        let handle = self.touched.pop_front()?;
        if let Some(slot) = self.slots.get_mut(handle) {
            slot.is_touched = false;
        }
        Some(handle)
    }

    /// A connection, read-only.
    pub fn peek(&self, handle: Handle) -> Option<&Connection> {
        self.slots.get(handle).and_then(Slot::connection)
    }

    /// All connections, by index.
    pub fn handles(&self) -> impl Iterator<Item = Handle> + '_ {
        let handles = self.slots.handles();
        handles.filter(|handle| self.peek(*handle).is_some())
    }

    /// The connections with these indices ([`Handle::index`]), read-only. The time that this takes depends only on how many
    /// indices these are, so that a caller can visit all connections in parts.
    pub fn connections_at(&self, indices: Range<u32>) -> impl Iterator<Item = &Connection> {
        self.slots.range(indices).filter_map(Slot::connection)
    }

    /// One more than the highest index of a connection so far.
    pub const fn index_end(&self) -> u32 {
        self.slots.end()
    }

    /// Writes the next datagrams into `buffer`, which has room for at least 1500 bytes: first the endpoint's own
    /// responses, then datagrams of ready connections, in turn. To be called until it returns `None`.
    pub fn poll_transmit(&mut self, now: Time, buffer: &mut [u8]) -> Option<Transmit> {
        if let Some(transmit) = self.answers.pop(buffer) {
            return Some(transmit);
        }
        while let Some(handle) = self.ready.pop_front() {
            self.issue_owed_token(now, handle);
            let Some(slot) = self.slots.get_mut(handle) else {
                continue;
            };
            let (transmit, is_closed) = slot.poll_transmit(now, buffer);
            if let Some(transmit) = &transmit
                && !is_closed
            {
                self.ready.push_back(handle);
                if let Content::Connection(connection, _) = &slot.content {
                    // The response may arrive before the rest is sent.
                    self.demux.sync(handle, &mut slot.routes, connection);
                }
                return Some(*transmit);
            }
            slot.is_ready = false;
            if is_closed {
                let len = transmit.map_or(0, |transmit| transmit.len);
                self.release(handle, buffer.get(..len).unwrap_or_default());
            }
            self.settle(handle);
            if transmit.is_some() {
                return transmit;
            }
        }
        None
    }

    /// When [`Endpoint::poll_timeout`] is due; `None` for never. At once, while something is waiting to be sent.
    pub fn deadline(&self) -> Option<Time> {
        if self.ready.is_empty() && self.answers.len() == 0 {
            self.timers.next()
        } else {
            Some(Time::ZERO)
        }
    }

    /// Handles the next expired timer, and returns its connection. To be called until it returns `None`, and to be
    /// followed by [`Endpoint::poll_transmit`].
    pub fn poll_timeout(&mut self, now: Time) -> Option<Handle> {
        while let Some(index) = self.timers.due(now) {
            // Set again when the connection is settled.
            self.timers.set(index, None);
            let Some(handle) = self.slots.handle_at(index) else {
                continue;
            };
            let Some(slot) = self.slots.get_mut(handle) else {
                continue;
            };
            let connection = match &mut slot.content {
                Content::Connection(connection, _) => connection,
                Content::Closing(closing) => {
                    if closing.on_timeout(now) {
                        self.remove(handle, false);
                    }
                    continue;
                }
            };
            let is_late = slot.handshake.is_some_and(|handshake| {
                handshake.deadline <= now && connection.stage() == Stage::Handshaking
            });
            if is_late {
                self.statistics.handshake_timeouts += 1;
                self.remove(handle, true);
                continue;
            }
            self.connection(handle)?.on_timeout(now);
            self.touch(handle);
            return Some(handle);
        }
        None
    }

    /// The next closed connection.
    pub fn poll_closed(&mut self) -> Option<Closed<D>> {
        self.closed.pop_front()
    }

    /// Counters.
    pub const fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// The number of connections, including those whose late packets are still recognized after they were closed.
    pub const fn connections(&self) -> usize {
        self.slots.len()
    }

    /// The number of clients' handshakes in progress.
    pub const fn handshakes(&self) -> usize {
        self.load.handshakes
    }

    /// Sets whether a server accepts new clients; initially it does. Otherwise they receive `CONNECTION_REFUSED`.
    pub const fn set_accepting(&mut self, is_accepting: bool) {
        if let Some(server) = &mut self.server {
            server.is_accepting = is_accepting;
        }
    }

    /// A token for a client's next connection from this address, to be passed to [`Connection::send_new_token`]; with `saved`,
    /// it has parameters for the congestion control of that connection (RFC 9959). A server issues such tokens itself, where
    /// its congestion control [uses them](lastbyte_congestion::Controller::uses_saved_path). `None` without a server.
    pub fn new_token(
        &mut self,
        now: Time,
        remote: SocketAddr,
        saved: Option<SavedPath>,
    ) -> Option<Vec<u8>> {
        let path = saved.map(|saved| TokenPath {
            saved,
            connection: self.random.number(),
        });
        self.seal_token(now, remote, path)
    }

    fn seal_token(
        &mut self,
        now: Time,
        remote: SocketAddr,
        path: Option<TokenPath>,
    ) -> Option<Vec<u8>> {
        let server = self.server.as_ref()?;
        let nonce = self.random.bytes();
        let wall_time = self.wall_clock.read(now);
        server.tokens.seal_new_token(remote, path, wall_time, nonce)
    }

    /// Whether one more connection is permitted.
    fn is_full(&self) -> bool {
        self.room() == 0
    }

    /// Number of further connections permitted.
    fn room(&self) -> usize {
        let there = self.slots.len() + self.closed.len();
        self.limits.connections.saturating_sub(there)
    }

    /// A generator for a connection, and an unused ID from it.
    fn new_ids(&mut self) -> (ConnectionId, Box<dyn ConnectionIdGenerator + Send>) {
        let mut generator = self.ids.generator(&self.reset_key, self.random.bytes());
        let mut id = generator.generate();
        for _ in 0..ID_TRIES {
            if self.demux.by_id(id.as_slice()).is_none() {
                break;
            }
            id = generator.generate();
        }
        (id, generator)
    }
}

impl<D> fmt::Debug for Endpoint<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("connections", &self.connections())
            .field("load", &self.load)
            .field("routes", &self.demux.sizes())
            .field("timers", &self.timers.len())
            .field("ready", &self.ready.len())
            .field("statistics", &self.statistics)
            .finish_non_exhaustive()
    }
}

/// The length of a client's initial destination connection ID (RFC 9000 §7.2).
const DESTINATION_LEN: usize = 8;
/// Attempts to draw an unused ID.
const ID_TRIES: usize = 4;

#[cfg(test)]
mod tests;
