//! The application on a worker: who is fetched when, over which connection.
//!
//! | module | owns |
//! |---|---|
//! | `application` | what the worker calls: datagrams, turns, deadlines |
//! | `fetches` | the life of a fetch: its turn, its retries, its end |
//! | `servers` | names to addresses, addresses to connections: resolutions and races |
//! | `quic` | connections over QUIC, and the requests on them |
//! | `tcp` | connections over TCP, and the requests on them |
//! | `event` | what other threads report |
//! | `events` | what QUIC and HTTP/3 tell |
//! | `limits` | how long things may take |
//!
//! Never: opens a socket of its own, or reads a clock.

mod application;
mod event;
mod events;
mod fetches;
mod limits;
mod quic;
mod servers;
mod tcp;

use core::{net::SocketAddr, time::Duration};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use lastbyte_driver::Clock;
use lastbyte_quic::{Time, connection, endpoint::Handle};

pub(crate) use self::event::Event;
use self::{servers::Servers, tcp::Streams};
use crate::{
    crypto::Crypto,
    fetch::{Fetch, Outcome},
    fetch_state::FetchStates,
    link::Link,
    listener::Listener,
    mailbox::Mailbox,
    memory::Memory,
    resolve::Lookup,
    settings::Settings,
};

/// How often the listener is asked whether to go on.
const TICK: Duration = Duration::from_millis(100);

/// Fetches, as an application of a worker.
pub struct Client<'a> {
    settings: &'a Settings,
    memory: &'a Memory,
    crypto: Arc<Crypto>,
    transport: Arc<connection::Config>,
    /// Where we are.
    local: SocketAddr,
    mailbox: Arc<Mailbox<Event>>,
    /// For what other threads do; nothing here reads it.
    clock: Clock,
    fetches: FetchStates<'a>,
    /// The first whose turn has not come.
    next: usize,
    /// Those under way.
    active: BTreeSet<usize>,
    /// Those that are begun again, and when.
    delayed: BTreeSet<(Time, usize)>,
    servers: Servers,
    /// Connections over QUIC.
    links: BTreeMap<Handle, Link>,
    /// Connections over TCP.
    streams: Streams,
    /// How many there have been, of both kinds.
    connections: usize,
    /// Connections that are not needed any more.
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

/// What a client is made of.
pub(crate) struct Parts<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) memory: &'a Memory,
    pub(crate) crypto: Arc<Crypto>,
    pub(crate) local: SocketAddr,
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
            mailbox: parts.mailbox,
            clock: parts.clock,
            fetches: FetchStates::new(fetches, parts.listener, parts.memory),
            next: 0,
            active: BTreeSet::new(),
            delayed: BTreeSet::new(),
            servers: Servers::default(),
            links: BTreeMap::new(),
            streams: Streams::default(),
            connections: 0,
            to_close: Vec::new(),
            next_limit: None,
            next_tick: Time::ZERO,
            ended: None,
        }
    }

    /// What came of each fetch, and how names were resolved.
    pub(crate) fn take_report(&mut self) -> (Vec<Outcome>, Vec<Lookup>) {
        let fetches = core::mem::take(&mut self.fetches.all);
        let outcomes = fetches.into_iter().map(|fetch| fetch.outcome).collect();
        (outcomes, self.servers.take_lookups())
    }
}
