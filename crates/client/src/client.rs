//! The client as an application that runs on a worker: schedules fetches on connections.
//!
//! | module | responsibility |
//! |---|---|
//! | `application` | callbacks of the worker: datagrams, turns, deadlines |
//! | `fetches` | the life of a fetch: start, retries, end |
//! | `servers` | name resolution and connection attempts for each origin |
//! | `quic` | QUIC connections and their requests |
//! | `tcp` | TCP connections and their requests |
//! | `event` | events from other threads |
//! | `events` | events from QUIC and HTTP/3 |
//! | `moves` | migration of QUIC connections when the local address changes |
//! | `limits` | time limits |
//!
//! Opens no sockets and reads no clock; both belong to the worker.

mod application;
mod event;
mod events;
mod fetches;
mod limits;
mod moves;
mod quic;
mod servers;
mod tcp;

use core::{net::SocketAddr, time::Duration};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use lastbyte_driver::{Clock, NextSocket};
use lastbyte_quic::{Time, connection, endpoint::Handle};

pub(crate) use self::event::Event;
use self::{servers::Servers, tcp::TcpConnections};
use crate::{
    crypto::Crypto,
    fetch::{Fetch, Outcome},
    fetch_state::FetchStates,
    link::Link,
    listener::Listener,
    mailbox::Mailbox,
    memory::Memory,
    network::NetworkWatch,
    resolve::Lookup,
    settings::Settings,
};

/// The interval between calls of [`Listener::on_tick`].
const TICK: Duration = Duration::from_millis(100);

/// Performs fetches, as an application that runs on a worker.
pub struct Client<'a> {
    settings: &'a Settings,
    memory: &'a Memory,
    crypto: Arc<Crypto>,
    transport: Arc<connection::Config>,
    /// The local address of the UDP socket.
    local: SocketAddr,
    /// A UDP socket that takes its place after this turn.
    next_socket: NextSocket,
    /// Reports changes of the network, where that is possible.
    network: Option<NetworkWatch>,
    has_network_watch: bool,
    /// Whether a connection may have to move that could not yet.
    is_move_pending: bool,
    mailbox: Arc<Mailbox<Event>>,
    /// The clock for resolver and TCP threads. The client itself receives the time as an argument.
    clock: Clock,
    fetches: FetchStates<'a>,
    /// The index of the next fetch to start.
    next: usize,
    /// The fetches in progress.
    active: BTreeSet<usize>,
    servers: Servers,
    /// QUIC connections.
    links: BTreeMap<Handle, Link>,
    /// TCP connections.
    tcp: TcpConnections,
    /// The number of connections so far, over QUIC and TCP.
    connections: usize,
    /// Connections that are no longer needed.
    to_close: Vec<Handle>,
    next_limit: Option<Time>,
    next_tick: Time,
    ended: Option<Time>,
}

impl core::fmt::Debug for Client<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Client")
            .field("fetches", &self.fetches.all.len())
            .field("next", &self.next)
            .field("active", &self.active)
            .field("links", &self.links.len())
            .finish_non_exhaustive()
    }
}

/// The components of a client.
pub(crate) struct Parts<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) memory: &'a Memory,
    pub(crate) crypto: Arc<Crypto>,
    pub(crate) local: SocketAddr,
    /// Where the client puts a socket on another port.
    pub(crate) next_socket: NextSocket,
    pub(crate) mailbox: Arc<Mailbox<Event>>,
    pub(crate) clock: Clock,
    pub(crate) listener: &'a mut dyn Listener,
}

impl<'a> Client<'a> {
    pub(crate) fn new(parts: Parts<'a>, fetches: Vec<Fetch>) -> Self {
        Self {
            transport: Arc::new(parts.settings.transport.clone()),
            settings: parts.settings,
            memory: parts.memory,
            crypto: parts.crypto,
            local: parts.local,
            next_socket: parts.next_socket,
            network: None,
            has_network_watch: false,
            is_move_pending: false,
            mailbox: parts.mailbox,
            clock: parts.clock,
            fetches: FetchStates::new(fetches, parts.listener, parts.memory),
            next: 0,
            active: BTreeSet::new(),
            servers: Servers::default(),
            links: BTreeMap::new(),
            tcp: TcpConnections::default(),
            connections: 0,
            to_close: Vec::new(),
            next_limit: None,
            next_tick: Time::ZERO,
            ended: None,
        }
    }

    /// Takes the outcomes of all fetches, and the lookups.
    pub(crate) fn take_report(&mut self) -> (Vec<Outcome>, Vec<Lookup>) {
        let fetches = core::mem::take(&mut self.fetches.all);
        let outcomes = fetches.into_iter().map(|fetch| fetch.outcome).collect();
        (outcomes, self.servers.take_lookups())
    }
}
