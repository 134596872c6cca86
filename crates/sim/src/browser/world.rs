//! The event loop of a page load.
//!
//! Simultaneous events are processed in a fixed order: arrivals at the browser, arrivals at servers, timers, the browser, then sending
//! of each end with events, by connection.

use core::time::Duration;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use lastbyte_congestion::{Registry, Spec, Time};
use lastbyte_link::{self as link, DropReason, Link};
use lastbyte_page::{InFlight, Load, Party, Pool, Use, is_low_priority};
use lastbyte_quic::ack::Ecn;
use lastbyte_units::Direction;
use lastbyte_wire::Side;

use super::{
    Arrival, HttpVersion, PageLoad, PageOutcome, TlsVersion, Upgrade,
    http3::{PageClient, PageHandler},
    tcp::TcpConnection,
};
use crate::{
    error::SimError,
    handshake::credentials,
    node::{Node, Setup},
    server::ServerSettings,
    tcp::{self, Segment, Tls},
    timers::Timers,
    world::{expand, mix},
};
use lastbyte_scenario::{Handshake, Transport};

/// Loads a page.
///
/// ```
/// use std::sync::Arc;
/// use lastbyte_page::{Host, Kind, Page, Resource};
/// use lastbyte_scenario::{HttpVersion, network::PathText};
/// use lastbyte_sim::{PageLoad, load_page};
///
/// let page = Page {
///     name: "a document".to_owned(),
///     hosts: vec![Host::first_party("www.example")],
///     resources: vec![Resource::new(0, Kind::Document, 20_000)],
/// };
/// let path = PathText::named("vdsl")?.path(&mut |file| Err(file.to_owned()))?;
/// let outcome = load_page(&PageLoad::new(Arc::new(page), HttpVersion::Http3, path))?;
/// assert!(outcome.loaded.is_some_and(|at| (70..150).contains(&at.as_millis())));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// The load cannot be simulated: [`SimError`]. A page that does not load in time is not an error.
pub fn load_page(input: &PageLoad) -> Result<PageOutcome, SimError> {
    let mut world = World::new(input)?;
    world.run()?;
    Ok(world.into_outcome())
}

/// A packet on a link.
#[derive(Clone, Debug)]
enum Packet {
    Datagram(Vec<u8>),
    Segment(Segment),
}

/// A packet and its destination: twice the connection's index, plus one for the server.
#[derive(Clone, Debug)]
struct Addressed {
    to: usize,
    packet: Packet,
}

/// What connections belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    /// Those of HTTP/1.1 to a host.
    Host(u16),
    /// That of HTTP/2 or 3 to a group of hosts.
    Group(u16, HttpVersion),
}

/// Both ends of a connection.
struct Connection {
    key: Key,
    endpoints: Endpoints,
    /// Extra one-way delay to its server.
    extra_delay: Duration,
}

enum Endpoints {
    Quic {
        client: Node<PageClient>,
        server: Node<PageClient>,
    },
    Tcp(Box<TcpConnection>),
}

struct World<'a> {
    input: &'a PageLoad,
    congestion: Spec,
    tcp: tcp::Config,
    load: Load<'a>,
    now: Time,
    down: Link<Addressed>,
    up: Link<Addressed>,
    /// Overhead of a packet beside its UDP payload, in bytes.
    overhead: u32,
    connections: Vec<Connection>,
    pools: BTreeMap<Key, Pool>,
    in_flight: InFlight,
    /// Requests over HTTP/2 and 3 that are held back, by urgency and in the order of the page.
    held_back: BTreeSet<(u8, u16)>,
    /// Requests of low priority in flight over HTTP/2 and 3.
    low_priority: usize,
    has_rendered: bool,
    /// Whether a queued request may have become sendable.
    can_dispatch_queued: bool,
    /// When the name of each host is resolved.
    resolved_at: BTreeMap<u16, Time>,
    /// Requests that wait for name resolution.
    unresolved: BTreeSet<(Time, u16)>,
    timers: Timers,
    touched: BTreeSet<usize>,
    /// Packets between the uplink and servers farther away, by arrival time and sending order.
    delayed: BTreeMap<(Time, u64), (Ecn, Addressed)>,
    delayed_count: u64,
    /// How much nearer than the first host a server may be: subtracted from the delay of the uplink.
    nearest: Duration,
    arrivals: Vec<Arrival>,
    spare: Vec<Vec<u8>>,
    packets: u64,
    failed: u32,
}

impl<'a> World<'a> {
    fn new(input: &'a PageLoad) -> Result<Self, SimError> {
        let transport = &input.transport;
        if !(1200..=65_527).contains(&transport.datagram_size) {
            return Err(SimError::DatagramSize(transport.datagram_size));
        }
        input
            .page
            .check()
            .map_err(|error| SimError::Page(error.to_string()))?;
        if !input.path.moves.is_empty() {
            return Err(SimError::Page(
                "the path has `moves` (expected none: clients of pages do not move)".to_owned(),
            ));
        }
        if !input.path.cross.is_empty() {
            return Err(SimError::Page(
                "the path has `cross` (expected none: page loads have no cross traffic)".to_owned(),
            ));
        }
        let mut path = input.path.clone();
        let nearest = input.page.hosts.iter().map(|host| host.rtt_extra_us).min();
        let nearest = nearest.unwrap_or(0).min(0).unsigned_abs();
        // A server is nearer by half the round-trip time at most.
        let nearest = Duration::from_micros(nearest.into()).min(path.up.delay);
        path.up.delay -= nearest;
        let link = |direction, config, stream| {
            Link::new(config, mix(input.seed, stream))
                .map_err(|error| SimError::Link(direction, error))
        };
        let cubic = || Registry::builtin().parse(QUIC_DEFAULT);
        let congestion = match &input.congestion {
            Some(spec) => spec.clone(),
            None => cubic().map_err(|error| SimError::Page(error.to_string()))?,
        };
        Ok(Self {
            input,
            congestion,
            tcp: tcp_config(input),
            load: Load::new(&input.page, input.view, Time::ZERO),
            now: Time::ZERO,
            down: link(Direction::Down, &path.down, 0)?,
            up: link(Direction::Up, &path.up, 1)?,
            overhead: path.overhead,
            connections: Vec::new(),
            pools: BTreeMap::new(),
            in_flight: InFlight::default(),
            held_back: BTreeSet::new(),
            low_priority: 0,
            has_rendered: false,
            can_dispatch_queued: false,
            resolved_at: BTreeMap::new(),
            unresolved: BTreeSet::new(),
            timers: Timers::default(),
            touched: BTreeSet::new(),
            delayed: BTreeMap::new(),
            delayed_count: 0,
            nearest,
            arrivals: Vec::new(),
            spare: Vec::new(),
            packets: 0,
            failed: 0,
        })
    }

    fn run(&mut self) -> Result<(), SimError> {
        let limit = Time::ZERO + self.input.time_limit;
        self.dispatch()?;
        self.flush();
        while self.load.loaded().is_none() {
            let links = Time::earlier(self.down.deadline(), self.up.deadline());
            let delayed = self.delayed.first_key_value().map(|((at, _), _)| *at);
            let unresolved = self.unresolved.first().map(|(at, _)| *at);
            let ends = Time::earlier(self.timers.next(), delayed);
            let browser = Time::earlier(self.load.deadline(), unresolved);
            let Some(next) = Time::earlier(links, Time::earlier(ends, browser)) else {
                break;
            };
            if next > limit {
                break;
            }
            self.now = self.now.max(next);
            self.deliver();
            self.fire_timers();
            self.run_ends()?;
            self.run_browser()?;
            self.flush();
        }
        Ok(())
    }

    fn deliver(&mut self) {
        while let Some(delivery) = self.down.poll(self.now, &mut ()) {
            let ecn = delivery.packet.ecn;
            self.arrive(ecn, delivery.packet.payload);
        }
        while let Some(delivery) = self.up.poll(self.now, &mut ()) {
            let ecn = delivery.packet.ecn;
            let addressed = delivery.packet.payload;
            let connection = self.connections.get(addressed.to / 2);
            match connection.map(|connection| connection.extra_delay) {
                Some(extra) if !extra.is_zero() => {
                    let place = (self.now + extra, self.delayed_count);
                    self.delayed_count += 1;
                    self.delayed.insert(place, (ecn, addressed));
                }
                _ => self.arrive(ecn, addressed),
            }
        }
        while let Some(entry) = self.delayed.first_entry()
            && entry.key().0 <= self.now
        {
            let (ecn, addressed) = entry.remove();
            self.arrive(ecn, addressed);
        }
    }

    fn arrive(&mut self, ecn: Ecn, addressed: Addressed) {
        let Addressed { to, packet } = addressed;
        let now = self.now;
        let Some(connection) = self.connections.get_mut(to / 2) else {
            return;
        };
        match (&mut connection.endpoints, packet) {
            (Endpoints::Quic { client, server }, Packet::Datagram(mut bytes)) => {
                let node = if side(to) == Side::Client {
                    client
                } else {
                    server
                };
                node.receive(now, ecn, &mut bytes, to / 2, &mut ());
                self.spare.push(bytes);
            }
            (Endpoints::Tcp(tcp), Packet::Segment(segment)) => {
                tcp.on_segment(side(to), now, &segment);
            }
            _ => {}
        }
        self.touched.insert(to);
    }

    /// Handles expired timers.
    fn fire_timers(&mut self) {
        while let Some(end) = self.timers.pop_due(self.now) {
            if self.deadline(end).is_none_or(|at| at > self.now) {
                self.timers.set(end, self.deadline(end));
                continue;
            }
            if let Some(connection) = self.connections.get_mut(end / 2)
                && let Endpoints::Tcp(tcp) = &mut connection.endpoints
            {
                tcp.on_time(side(end), self.now);
            }
            self.touched.insert(end);
        }
    }

    /// Lets the ends of QUIC connections run that have events.
    fn run_ends(&mut self) -> Result<(), SimError> {
        let touched = std::mem::take(&mut self.touched);
        for end in &touched {
            self.run_end(*end)?;
        }
        self.touched = touched;
        Ok(())
    }

    fn run_end(&mut self, end: usize) -> Result<(), SimError> {
        if let Some(connection) = self.connections.get_mut(end / 2)
            && let Endpoints::Quic { client, server } = &mut connection.endpoints
        {
            let node = if side(end) == Side::Client {
                client
            } else {
                server
            };
            node.run(self.now, end / 2, &mut ())
                .map_err(SimError::Connect)?;
        }
        Ok(())
    }

    fn deadline(&self, end: usize) -> Option<Time> {
        match &self.connections.get(end / 2)?.endpoints {
            Endpoints::Quic { client, server } => match side(end) {
                Side::Client => client.deadline(),
                Side::Server => server.deadline(),
            },
            Endpoints::Tcp(tcp) => tcp.deadline(side(end)),
        }
    }

    /// Passes arrivals to the browser, and sends its new requests.
    fn run_browser(&mut self) -> Result<(), SimError> {
        let mut arrivals = std::mem::take(&mut self.arrivals);
        for &end in &self.touched {
            if side(end) == Side::Client
                && let Some(connection) = self.connections.get_mut(end / 2)
            {
                match &mut connection.endpoints {
                    Endpoints::Quic { client, .. } => {
                        if let Some(client) = client.client_side() {
                            client.take_arrivals(&mut arrivals);
                        }
                    }
                    Endpoints::Tcp(tcp) => {
                        tcp.take_arrivals(&mut arrivals);
                        let is_ready = tcp.is_ready();
                        if let Some(pool) = self.pools.get_mut(&connection.key)
                            && let Some((_, used)) =
                                pool.connections.iter_mut().find(|(it, _)| *it == end / 2)
                            && *used == Use::Connecting
                            && is_ready
                        {
                            *used = Use::Idle;
                            self.can_dispatch_queued = true;
                        }
                    }
                }
            }
        }
        for arrival in arrivals.drain(..) {
            match arrival {
                Arrival::Hints => self.load.on_early_hints(self.now),
                Arrival::Head(resource) => self.load.on_first_byte(resource, self.now),
                Arrival::Body(resource, bytes) => self.load.on_body(resource, bytes, self.now),
                Arrival::End(resource) => {
                    self.release(resource);
                    self.load.on_complete(resource, self.now);
                }
                Arrival::Failed(resource) => {
                    self.failed += 1;
                    self.release(resource);
                    self.load.on_failed(resource, self.now);
                }
            }
        }
        self.arrivals = arrivals;
        self.load.on_deadline(self.now);
        while let Some(&(at, resource)) = self.unresolved.first()
            && at <= self.now
        {
            self.unresolved.pop_first();
            self.assign(resource)?;
        }
        self.dispatch()
    }

    /// The version that a host has.
    fn version(&self, host: u16) -> HttpVersion {
        let host = &self.input.page.hosts[usize::from(host)];
        match (self.input.upgrade, self.input.version) {
            (Upgrade::FirstParty, _) if host.party == Party::Third => HttpVersion::Http1,
            (_, HttpVersion::Http3) if !host.has_http3 => HttpVersion::Http2,
            (_, version) => version,
        }
    }

    /// The request of a resource has ended: its HTTP/1.1 connection is idle, and requests that it held back may be sent.
    fn release(&mut self, resource: u16) {
        let description = &self.input.page.resources[usize::from(resource)];
        self.can_dispatch_queued |= if self.version(description.host) == HttpVersion::Http1 {
            let pool = self.pools.get_mut(&Key::Host(description.host));
            pool.is_some_and(|pool| pool.release(resource, &mut self.in_flight))
        } else {
            let urgency = description.priority.urgency;
            let was_low = usize::from(is_low_priority(urgency));
            self.low_priority = self.low_priority.saturating_sub(was_low);
            self.in_flight.remove_multiplexed(urgency) || !self.held_back.is_empty()
        };
    }

    /// Sends the browser's pending requests.
    fn dispatch(&mut self) -> Result<(), SimError> {
        while let Some(resource) = self.load.next_request() {
            let host = self.input.page.resources[usize::from(resource)].host;
            let resolved = self.resolved_at.entry(host);
            let resolved = *resolved.or_insert(self.now + self.input.dns);
            if resolved > self.now {
                self.unresolved.insert((resolved, resource));
            } else {
                self.assign(resource)?;
            }
        }
        let has_rendered = self.load.first_render().is_some();
        if self.can_dispatch_queued || has_rendered != self.has_rendered {
            self.can_dispatch_queued = false;
            self.has_rendered = has_rendered;
            let keys: Vec<Key> = self.pools.keys().copied().collect();
            for key in keys {
                self.dispatch_queued(key)?;
            }
            while self.permits_low_priority()
                && let Some((_, resource)) = self.held_back.pop_first()
            {
                self.multiplex(resource)?;
            }
        }
        Ok(())
    }

    /// Assigns a request to a connection, or queues it.
    fn assign(&mut self, resource: u16) -> Result<(), SimError> {
        let page = &self.input.page;
        let description = &page.resources[usize::from(resource)];
        if self.version(description.host) == HttpVersion::Http1 {
            let pool = self.pools.entry(Key::Host(description.host)).or_default();
            pool.push(resource, description.priority.urgency);
            self.can_dispatch_queued = true;
            return Ok(());
        }
        let urgency = description.priority.urgency;
        if is_low_priority(urgency) && !self.permits_low_priority() {
            self.held_back.insert((urgency, resource));
            return Ok(());
        }
        self.multiplex(resource)
    }

    /// Whether a request of low priority may be sent over HTTP/2 and 3.
    fn permits_low_priority(&self) -> bool {
        !self.input.holds_back
            || self.load.first_render().is_some()
            || self.low_priority < LOW_PRIORITY_MAX
    }

    /// Sends a request over the HTTP/2 or 3 connection of its host.
    fn multiplex(&mut self, resource: u16) -> Result<(), SimError> {
        let page = &self.input.page;
        let description = &page.resources[usize::from(resource)];
        let host = &page.hosts[usize::from(description.host)];
        let version = self.version(description.host);
        let urgency = description.priority.urgency;
        self.low_priority += usize::from(is_low_priority(urgency));
        self.in_flight.add_multiplexed(urgency);
        let key = Key::Group(host.group, version);
        let open = self
            .pools
            .get(&key)
            .and_then(|pool| pool.connections.first());
        let connection = match open {
            Some((connection, _)) => *connection,
            None => self.open(key, description.host, version)?,
        };
        self.request(connection, resource)
    }

    /// Sends queued requests on the connections of a host, and opens more if needed.
    fn dispatch_queued(&mut self, key: Key) -> Result<(), SimError> {
        let Key::Host(host) = key else {
            return Ok(());
        };
        let has_rendered = self.has_rendered;
        while let Some(pool) = self.pools.get_mut(&key)
            && let Some((connection, resource)) = pool.assign(&mut self.in_flight, has_rendered)
        {
            self.request(connection, resource)?;
        }
        let wanted = self.pools.get(&key);
        let wanted = wanted.map_or(0, |pool| pool.wanted(&self.in_flight, has_rendered));
        for _ in 0..wanted {
            self.open(key, host, HttpVersion::Http1)?;
        }
        Ok(())
    }

    fn request(&mut self, connection: usize, resource: u16) -> Result<(), SimError> {
        let end = 2 * connection;
        match self
            .connections
            .get_mut(connection)
            .map(|it| &mut it.endpoints)
        {
            Some(Endpoints::Quic { client, .. }) => {
                if let Some(client) = client.client_side() {
                    client.request(resource);
                }
                self.run_end(end)?;
                self.touched.insert(end);
            }
            Some(Endpoints::Tcp(tcp)) => {
                tcp.request(resource);
                self.touched.insert(end);
            }
            None => {}
        }
        Ok(())
    }

    /// Opens a connection to a host.
    fn open(&mut self, key: Key, host: u16, version: HttpVersion) -> Result<usize, SimError> {
        let page = &self.input.page;
        let extra = i64::from(page.hosts[usize::from(host)].rtt_extra_us);
        let extra = extra + self.nearest.as_micros() as i64;
        let number = self.connections.len();
        let has_hints = self.input.early_hints && page.resources.iter().any(|one| one.is_hinted);
        let endpoints = match version {
            HttpVersion::Http3 => self.open_quic(number, has_hints)?,
            HttpVersion::Http1 | HttpVersion::Http2 => {
                let is_http2 = version == HttpVersion::Http2;
                self.tcp.seed = mix(self.input.seed, 2 * number as u64 + 2);
                let page = Arc::clone(page);
                let tcp = TcpConnection::new(page, &self.tcp, is_http2, has_hints, self.now);
                Endpoints::Tcp(Box::new(tcp))
            }
        };
        self.connections.push(Connection {
            key,
            endpoints,
            extra_delay: Duration::from_micros(u64::try_from(extra).unwrap_or(0)),
        });
        let pool = self.pools.entry(key).or_default();
        pool.connections.push((number, Use::Connecting));
        self.touched.extend([2 * number, 2 * number + 1]);
        Ok(number)
    }

    fn open_quic(&self, number: usize, has_hints: bool) -> Result<Endpoints, SimError> {
        let input = self.input;
        let transport = &input.transport;
        let stream = 2 * number as u64 + 2;
        let seeds = [stream, stream + 1].map(|stream| expand(mix(input.seed, stream)));
        let server = ServerSettings::of(transport, &self.congestion);
        let config = server.config(&self.congestion);
        let credentials = credentials(transport, &server, &config, &seeds)?;
        let setup = Setup {
            flow: number,
            transport,
            server: &server,
            config,
            client_crypto: credentials.client,
            server_crypto: credentials.server,
            seeds,
        };
        let handler = PageHandler::new(Arc::clone(&input.page), has_hints);
        let mut server = Node::server(&setup, Arc::new(handler)).map_err(SimError::Endpoint)?;
        let token = match transport.handshake {
            Handshake::Full => None,
            Handshake::Resumed | Handshake::ZeroRtt => server.token(None),
        };
        let client = PageClient::new(Arc::clone(&input.page), transport.handshake);
        let client = Node::client(&setup, client, token.unwrap_or_default(), &[])
            .map_err(SimError::Endpoint)?;
        Ok(Endpoints::Quic { client, server })
    }

    /// Lets each end with events send, and sets its timer.
    fn flush(&mut self) {
        while let Some(end) = self.touched.pop_first() {
            self.send(end);
            self.timers.set(end, self.deadline(end));
        }
    }

    fn send(&mut self, end: usize) {
        let (now, to) = (self.now, end ^ 1);
        let direction = match side(end) {
            Side::Client => Direction::Up,
            Side::Server => Direction::Down,
        };
        let room = usize::from(self.input.transport.datagram_size).max(1500);
        loop {
            let Some(connection) = self.connections.get_mut(end / 2) else {
                return;
            };
            match &mut connection.endpoints {
                Endpoints::Quic { client, server } => {
                    let node = if side(end) == Side::Client {
                        client
                    } else {
                        server
                    };
                    let mut buffer = self.spare.pop().unwrap_or_default();
                    buffer.resize(room, 0);
                    let Some(transmit) = node.poll_transmit(now, &mut buffer) else {
                        node.finish(now);
                        self.spare.push(buffer);
                        return;
                    };
                    // Several short datagrams may be in a buffer.
                    buffer.truncate(transmit.len);
                    let len = transmit.segment_len.max(1);
                    while buffer.len() > len {
                        let rest = buffer.split_off(len);
                        self.send_packet(direction, to, buffer.len() as u32, transmit.ecn, buffer);
                        buffer = rest;
                    }
                    self.send_packet(direction, to, buffer.len() as u32, transmit.ecn, buffer);
                }
                Endpoints::Tcp(tcp) => {
                    let Some(segment) = tcp.poll_transmit(side(end), now) else {
                        return;
                    };
                    self.packets += 1;
                    // The links count UDP payload, and what else a packet has.
                    let bytes = segment.wire_bytes.saturating_sub(UDP_HEADERS) + self.overhead;
                    let packet = Packet::Segment(segment);
                    let packet = link::Packet::new(bytes, Addressed { to, packet });
                    self.link(direction)
                        .send(now, packet.with_flow((to / 2) as u32), &mut ());
                }
            }
        }
    }

    fn send_packet(
        &mut self,
        direction: Direction,
        to: usize,
        len: u32,
        ecn: Ecn,
        buffer: Vec<u8>,
    ) {
        self.packets += 1;
        let packet = Packet::Datagram(buffer);
        let packet = link::Packet::new(len + self.overhead, Addressed { to, packet });
        let packet = packet.with_ecn(ecn).with_flow((to / 2) as u32);
        let now = self.now;
        self.link(direction).send(now, packet, &mut ());
    }

    const fn link(&mut self, direction: Direction) -> &mut Link<Addressed> {
        match direction {
            Direction::Down => &mut self.down,
            Direction::Up => &mut self.up,
        }
    }

    fn into_outcome(self) -> PageOutcome {
        let since_start = |at: Time| at.since(Time::ZERO);
        let resources = 0..self.input.page.resources.len();
        let down = self.down.statistics();
        let dropped = DropReason::ALL.iter();
        let dropped = dropped.map(|reason| down.dropped(*reason).packets);
        PageOutcome {
            first_render: self.load.first_render().map(since_start),
            loaded: self.load.loaded().map(since_start),
            byte_index: self.load.byte_index(),
            resources: resources
                .map(|index| self.load.moment(index as u16))
                .collect(),
            connections: self.connections.len() as u32,
            failed: self.failed,
            packets: self.packets,
            bytes_down: down.sent.bytes,
            bytes_up: self.up.statistics().sent.bytes,
            drops_down: dropped.sum(),
        }
    }
}

const fn side(end: usize) -> Side {
    if end.is_multiple_of(2) {
        Side::Client
    } else {
        Side::Server
    }
}

/// Settings of TCP endpoints.
fn tcp_config(input: &PageLoad) -> tcp::Config {
    let Transport {
        handshake,
        certificate_chain,
        ..
    } = &input.transport;
    let tls = match (input.tls, handshake) {
        (TlsVersion::None, _) => Tls::none(),
        (TlsVersion::V12, Handshake::Full) => Tls::v12((*certificate_chain).into()),
        (TlsVersion::V12, _) => Tls::v12_resumed(),
        (TlsVersion::V13, Handshake::Full) => Tls::v13((*certificate_chain).into()),
        (TlsVersion::V13, Handshake::Resumed) => Tls::v13_resumed(),
        (TlsVersion::V13, Handshake::ZeroRtt) => Tls::v13_early(),
    };
    let mut config = tcp::Config {
        tls,
        ..tcp::Config::default()
    };
    if let Some(spec) = &input.congestion {
        config.congestion = Arc::new(spec.clone());
    }
    config
}

/// Headers of IPv4 and UDP.
const UDP_HEADERS: u32 = 28;
/// Requests of low priority in flight before the first render, where they are held back (Blink's `ResourceLoadScheduler`, `kTight`).
const LOW_PRIORITY_MAX: usize = 2;
/// Congestion control of QUIC endpoints.
const QUIC_DEFAULT: &str = "cubic";
