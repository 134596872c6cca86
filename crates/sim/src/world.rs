//! The event loop: flows over two links, in virtual time.
//!
//! Simultaneous events are processed in a fixed order: arrivals at clients, arrivals at servers, timers by flow; then each end
//! with events sends, by flow. Background transfers come after all flows. So one seed gives one history.

use core::{net::SocketAddr, ops::RangeInclusive, time::Duration};
use std::{collections::BTreeMap, sync::Arc};

use lastbyte_congestion::{Spec, Time};
use lastbyte_link::{self as link, Count, Event, Link, Observation, Rate};
use lastbyte_quic::{ack::Ecn, random::Seed, stream::WindowBudget};
use lastbyte_wire::Side;

use lastbyte_scenario::{
    FlowPlan, Handshake, Request, Scenario, SettingError, Transport,
    arrivals::Arrivals,
    cross::{CrossKind, CrossTraffic},
};
use lastbyte_units::{Direction, SplitMix64};

use crate::{
    background::{self, Background},
    client::Client,
    error::SimError,
    handshake::credentials,
    http3,
    listener::{LinkEvent, Listener},
    moves::external,
    node::{Node, Setup, addresses},
    outcome::{BottleneckOutcome, Drop, FlowOutcome, Outcome, SenderOutcome},
    server::{ServerSettings, Transfers},
    timers::Timers,
};

/// Simulates a scenario.
///
/// ```
/// use core::time::Duration;
/// use lastbyte_link as link;
/// use lastbyte_scenario::{Path, Scenario};
/// use lastbyte_sim::simulate;
///
/// let mut path = Path::default();
/// path.down.capacity = link::Capacity::Constant(link::Rate::from_bits_per_second(55_000_000));
/// path.down.delay = Duration::from_micros(19_500);
/// path.up.delay = Duration::from_micros(19_500);
/// let scenario = Scenario::transfer(path, "rapid-start".parse()?, 200_000);
/// let outcome = simulate(&scenario, &mut ())?;
/// let response = outcome.flows[0].responses[0];
/// // A round trip for the handshake, another for the request, and the time that 200 kB take.
/// assert!(response.last_byte.is_some_and(|ttlb| ttlb > Duration::from_millis(2 * 39 + 29)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// Returns an error if the scenario cannot be simulated. Failures of transfers are part of the outcome.
pub fn simulate(scenario: &Scenario, listener: &mut impl Listener) -> Result<Outcome, SimError> {
    let congestion = measured(scenario).ok_or(SimError::NothingToDo)?;
    let server = ServerSettings::of(&scenario.transport, congestion);
    simulate_with(scenario, &server, listener)
}

/// Simulates a scenario, with a server that has these settings.
///
/// # Errors
///
/// As [`simulate`].
pub fn simulate_with(
    scenario: &Scenario,
    server: &ServerSettings,
    listener: &mut impl Listener,
) -> Result<Outcome, SimError> {
    // Each simulation has a budget of its own.
    let mut server = server.clone();
    let streams = &mut server.connections.streams;
    streams.window_budget = server.window_memory.map(WindowBudget::new);
    let mut world = World::new(scenario, server, listener)?;
    world.run()?;
    Ok(world.into_outcome())
}

/// The congestion control of what is measured: the flows, or without any, transfers that arrive at random until the horizon.
fn measured(scenario: &Scenario) -> Option<&Spec> {
    let arrivals = scenario.cross.iter().find_map(|cross| match &cross.kind {
        CrossKind::Arrivals(congestion, _) => Some(congestion),
        _ => None,
    });
    let flow = scenario.flows.first().map(|flow| &flow.congestion);
    flow.or(arrivals.filter(|_| !scenario.horizon.is_zero()))
}

/// Transfers that arrive at random, measured ones until the horizon.
fn arrivals_kind(
    scenario: &Scenario,
    direction: Direction,
    arrivals: &Arrivals,
) -> Result<background::Kind, SimError> {
    let (_, bottleneck) = scenario.path.link(direction).bottleneck();
    let rate = bottleneck.capacity.nominal().ok_or_else(|| {
        let link = format!("the {} without a rate", direction.name());
        SimError::Cross(SettingError::new("poisson", link, "a rate"))
    })?;
    let is_measured = scenario.flows.is_empty();
    Ok(background::Kind::Arrivals {
        sizes: arrivals.sizes,
        interval: arrivals.interval(rate),
        rate,
        until: is_measured.then(|| Time::ZERO + scenario.horizon),
    })
}

/// Turns between two questions to the listener whether the simulation goes on: a millisecond or two.
const CANCEL_TURNS: u64 = 1024;

/// A datagram in transit.
#[derive(Clone, Debug)]
enum Datagram {
    /// A datagram of a connection.
    Connection {
        buffer: Vec<u8>,
        len: usize,
        /// Index of the receiving node.
        to: usize,
        /// The client's address, as the number of changes before it.
        moved: usize,
    },
    /// A packet of a background transfer.
    Background {
        flow: usize,
        packet: background::Packet,
    },
    /// A packet at a constant rate.
    Constant,
}

impl Datagram {
    /// The flow it belongs to; `None` for traffic at a constant rate.
    const fn flow(&self) -> Option<usize> {
        match self {
            Self::Connection { to, .. } => Some(*to / 2),
            Self::Background { flow, .. } => Some(*flow),
            Self::Constant => None,
        }
    }
}

/// A source of packets at a constant rate.
struct Constant {
    direction: Direction,
    hops: RangeInclusive<u8>,
    rate: Rate,
    next_at: Time,
}

struct World<'a, L> {
    scenario: &'a Scenario,
    server: ServerSettings,
    listener: &'a mut L,
    now: Time,
    /// Client and server of each connection, alternating.
    nodes: Vec<Node>,
    /// Cross traffic without connections, numbered after the flows of the nodes.
    backgrounds: Vec<Background>,
    /// Timers of the nodes, then of background transfers.
    timers: Timers,
    /// Parts that must send, and whether each is among them.
    touched: Vec<usize>,
    is_touched: Vec<bool>,
    constants: Vec<Constant>,
    down: Link<Datagram>,
    up: Link<Datagram>,
    /// Extra round-trip time of each flow, added between the uplink and the server.
    extra_delays: Vec<Duration>,
    /// Datagrams between the uplink and the server, by arrival time and sending order.
    delayed: BTreeMap<(Time, u64), (Ecn, Datagram)>,
    /// The number of datagrams so delayed.
    delayed_count: u64,
    /// The link of the first flow's data.
    bottleneck: Direction,
    /// The hop with the lowest rate of each link, down and up.
    bottleneck_hops: (usize, usize),
    monitor: BottleneckMonitor,
    spare: Vec<Vec<u8>>,
    buffer_len: usize,
    datagrams: u64,
    /// The outcome of each flow's sender, once all data was acknowledged.
    servers: Vec<Option<SenderOutcome>>,
    /// Packets of each flow that the bottleneck dropped.
    drops: Vec<Vec<Drop>>,
    unfinished: usize,
    incomplete: usize,
}

impl<'a, L: Listener> World<'a, L> {
    fn new(
        scenario: &'a Scenario,
        server: ServerSettings,
        listener: &'a mut L,
    ) -> Result<Self, SimError> {
        let transport = &scenario.transport;
        let mtu = server.connections.mtu;
        for size in [transport.datagram_size, mtu.initial, mtu.maximum] {
            if !(1200..=65_527).contains(&size) {
                return Err(SimError::DatagramSize(size));
            }
        }
        if measured(scenario).is_none()
            || scenario.flows.iter().any(|flow| flow.requests.is_empty())
        {
            return Err(SimError::NothingToDo);
        }
        let link = |direction, config, stream| {
            Link::new(config, mix(scenario.seed, stream))
                .map_err(|error| SimError::Link(direction, error))
        };
        let mut world = Self {
            scenario,
            server,
            listener,
            now: Time::ZERO,
            nodes: Vec::new(),
            backgrounds: Vec::new(),
            timers: Timers::default(),
            touched: Vec::new(),
            is_touched: Vec::new(),
            constants: Vec::new(),
            down: link(Direction::Down, &scenario.path.down, 0)?,
            up: link(Direction::Up, &scenario.path.up, 1)?,
            extra_delays: Vec::new(),
            delayed: BTreeMap::new(),
            delayed_count: 0,
            bottleneck: scenario.direction(),
            bottleneck_hops: (
                scenario.path.down.bottleneck().0,
                scenario.path.up.bottleneck().0,
            ),
            monitor: BottleneckMonitor::default(),
            spare: Vec::new(),
            buffer_len: usize::from(mtu.maximum).max(1500),
            datagrams: 0,
            servers: vec![None; scenario.flows.len()],
            drops: vec![Vec::new(); scenario.flows.len()],
            unfinished: scenario.flows.len(),
            incomplete: scenario.flows.len(),
        };
        for flow in &scenario.flows {
            world.add_flow(flow, transport)?;
        }
        let of_others = Transport {
            handshake: Handshake::Full,
            saved_path: None,
            ..transport.clone()
        };
        let cross_traffic = || scenario.path.cross.iter().chain(&scenario.cross);
        for cross in cross_traffic() {
            let link = scenario.path.link(cross.direction);
            cross.check(link).map_err(SimError::Cross)?;
            if let CrossKind::Stack(congestion) = &cross.kind {
                let plan = FlowPlan {
                    congestion: congestion.clone(),
                    start: cross.start,
                    rtt: cross.rtt,
                    direction: Direction::Down,
                    requests: vec![Request::of(ENDLESS)],
                    progress: Vec::new(),
                };
                world.add_flow(&plan, &of_others)?;
            }
        }
        // After all connections, since their flows are numbered after them.
        for cross in cross_traffic() {
            match &cross.kind {
                CrossKind::Stack(_) => {}
                CrossKind::Bulk(congestion) => {
                    world.add_background(cross, congestion, background::Kind::Endless)?;
                }
                CrossKind::Pages(congestion, pages) => {
                    world.add_background(cross, congestion, background::Kind::Pages(*pages))?;
                }
                CrossKind::Arrivals(congestion, arrivals) => {
                    let kind = arrivals_kind(scenario, cross.direction, arrivals)?;
                    world.add_background(cross, congestion, kind)?;
                }
                CrossKind::Constant(rate) => world.constants.push(Constant {
                    direction: cross.direction,
                    hops: cross.hops(),
                    rate: *rate,
                    next_at: Time::ZERO + cross.start,
                }),
            }
        }
        for index in 0..world.nodes.len() + world.backgrounds.len() {
            world.is_touched.push(false);
            world.set_timer(index);
        }
        Ok(world)
    }

    fn add_background(
        &mut self,
        cross: &CrossTraffic,
        congestion: &Spec,
        kind: background::Kind,
    ) -> Result<(), SimError> {
        let path = &self.scenario.path;
        let delay = cross.delay(path.link(cross.direction));
        let least = match cross.direction {
            Direction::Down => delay + path.up.total_delay(),
            Direction::Up => path.down.total_delay() + delay,
        };
        let rtt = least + self.add_extra_delay(cross.rtt, least)?;
        let plan = background::Plan {
            congestion: congestion.clone(),
            direction: cross.direction,
            hops: cross.hops(),
            rtt,
            // The client's data follows the handshake; the server's data follows the request.
            handshake: match cross.direction {
                Direction::Up => rtt,
                Direction::Down => rtt + rtt.saturating_sub(delay),
            },
            delay,
            kind,
            seed: mix(
                self.scenario.seed,
                BACKGROUND_STREAM + self.backgrounds.len() as u64,
            ),
        };
        let start = Time::ZERO + cross.start;
        let transport = &self.scenario.transport;
        self.backgrounds
            .push(Background::new(plan, transport, start));
        Ok(())
    }

    /// Sets the extra delay of the next flow from its round-trip time and that of its path, and returns it.
    fn add_extra_delay(
        &mut self,
        rtt: Option<Duration>,
        path: Duration,
    ) -> Result<Duration, SimError> {
        let flow = rtt.unwrap_or(path);
        let Some(extra) = flow.checked_sub(path) else {
            return Err(SimError::RoundTrip { flow, path });
        };
        self.extra_delays.push(extra);
        Ok(extra)
    }

    fn add_flow(&mut self, plan: &FlowPlan, transport: &Transport) -> Result<(), SimError> {
        let flow = self.nodes.len() / 2;
        let stream = 2 * flow as u64 + 2;
        let seeds = [stream, stream + 1].map(|stream| expand(mix(self.scenario.seed, stream)));
        let config = self.server.config(&plan.congestion);
        let credentials = credentials(transport, &self.server, &config, &seeds)?;
        let setup = Setup {
            flow,
            transport,
            server: &self.server,
            config,
            client_crypto: credentials.client,
            server_crypto: credentials.server,
            seeds,
        };
        let mut server = Node::server(&setup, Arc::new(Transfers)).map_err(SimError::Endpoint)?;
        let token = match (transport.handshake, transport.saved_path) {
            (Handshake::Full, None) => None,
            (_, saved) => server.token(saved),
        };
        // Cross traffic does not move.
        let moves = if flow < self.scenario.flows.len() {
            self.scenario.path.moves.as_slice()
        } else {
            &[]
        };
        let http3 = http3::Client::new(transport.handshake, &self.server);
        let client = Client::new(http3, plan);
        let client = Node::client(&setup, client, token.unwrap_or_default(), moves)
            .map_err(SimError::Endpoint)?;
        self.add_extra_delay(plan.rtt, self.scenario.path.rtt())?;
        self.nodes.extend([client, server]);
        Ok(())
    }

    fn run(&mut self) -> Result<(), SimError> {
        let limit = Time::ZERO + self.scenario.time_limit;
        let horizon = Time::ZERO + self.scenario.horizon;
        for turn in 0_u64.. {
            let is_over = |one: &Background| !one.is_open_loop() || one.is_over();
            if self.unfinished == 0
                && self.now >= horizon
                && (!self.scenario.flows.is_empty() || self.backgrounds.iter().all(is_over))
            {
                break;
            }
            if turn % CANCEL_TURNS == 0 && self.listener.is_cancelled() {
                return Err(SimError::Cancelled);
            }
            let timer = self.timers.next();
            let constant = self.constants.iter().map(|one| one.next_at).min();
            let delayed = self.delayed.first_key_value().map(|((at, _), _)| *at);
            let on_links = Time::earlier(self.down.deadline(), self.up.deadline());
            let Some(next) = Time::earlier(
                on_links,
                Time::earlier(timer, Time::earlier(constant, delayed)),
            ) else {
                break;
            };
            if next > limit {
                self.now = limit;
                break;
            }
            self.now = self.now.max(next);
            self.deliver(Direction::Down);
            self.deliver(Direction::Up);
            self.deliver_delayed();
            self.fire_timers();
            self.send_constants();
            self.flush()?;
        }
        self.monitor.end(self.now);
        Ok(())
    }

    fn deliver(&mut self, direction: Direction) {
        let now = self.now;
        loop {
            let (link, mut observer) = self.link(direction);
            let Some(delivery) = link.poll(now, &mut observer) else {
                return;
            };
            let ecn = delivery.packet.ecn;
            let datagram = delivery.packet.payload;
            let flow = datagram.flow().filter(|_| direction == Direction::Up);
            match flow.and_then(|flow| self.extra_delays.get(flow)) {
                Some(extra) if !extra.is_zero() => {
                    let place = (now + *extra, self.delayed_count);
                    self.delayed_count += 1;
                    self.delayed.insert(place, (ecn, datagram));
                }
                _ => self.arrive(ecn, datagram),
            }
        }
    }

    /// Delivers datagrams whose extra delay has passed.
    fn deliver_delayed(&mut self) {
        while let Some(entry) = self.delayed.first_entry()
            && entry.key().0 <= self.now
        {
            let (ecn, datagram) = entry.remove();
            self.arrive(ecn, datagram);
        }
    }

    fn arrive(&mut self, ecn: Ecn, datagram: Datagram) {
        match datagram {
            Datagram::Connection {
                mut buffer,
                len,
                to,
                moved,
            } => {
                if self.resolve_address(to, moved)
                    && let Some(node) = self.nodes.get_mut(to)
                    && let Some(datagram) = buffer.get_mut(..len)
                {
                    node.receive(self.now, ecn, datagram, to / 2, self.listener);
                    self.touch(to);
                }
                self.spare.push(buffer);
            }
            Datagram::Background { flow, packet } => {
                let index = flow - self.nodes.len() / 2;
                if let Some(source) = self.backgrounds.get_mut(index) {
                    source.on_packet(self.now, ecn, packet);
                    self.touch(self.nodes.len() + index);
                }
            }
            Datagram::Constant => {}
        }
    }

    /// Returns whether a datagram reaches its node: a client's previous addresses are gone. Sets the source address that a server sees.
    fn resolve_address(&mut self, to: usize, moved: usize) -> bool {
        let all = &self.scenario.path.moves;
        let Some(node) = self.nodes.get_mut(to).filter(|_| !all.is_empty()) else {
            return true;
        };
        if to.is_multiple_of(2) {
            return node.moved() == moved;
        }
        let past = all.get(..moved).unwrap_or_default();
        node.set_remote(external(addresses(to / 2, Side::Client).local, past));
        true
    }

    /// The client's address of an outgoing datagram, as the number of changes before it.
    fn moved(&mut self, index: usize, remote: SocketAddr) -> usize {
        let moves = &self.scenario.path.moves;
        if moves.is_empty() {
            return 0;
        }
        if index.is_multiple_of(2) {
            return self.nodes.get_mut(index).map_or(0, Node::moved);
        }
        let first = addresses(index / 2, Side::Client).local;
        let is_remote =
            |past: &usize| external(first, moves.get(..*past).unwrap_or_default()) == remote;
        (0..=moves.len()).find(is_remote).unwrap_or_default()
    }

    /// Handles expired timers.
    fn fire_timers(&mut self) {
        while let Some(index) = self.timers.pop_due(self.now) {
            if self.deadline(index).is_none_or(|at| at > self.now) {
                self.set_timer(index);
                continue;
            }
            if let Some(background) = index.checked_sub(self.nodes.len())
                && let Some(source) = self.backgrounds.get_mut(background)
            {
                source.on_time(self.now);
            }
            // It runs and sends before its next timer is set.
            self.touch(index);
        }
    }

    fn send_constants(&mut self) {
        let now = self.now;
        for index in 0..self.constants.len() {
            while let Some(constant) = self.constants.get_mut(index)
                && constant.next_at <= self.now
            {
                let bytes = CONSTANT_DATAGRAM + self.scenario.path.overhead;
                let direction = constant.direction;
                constant.next_at =
                    constant.next_at + constant.rate.time_for(bytes.into()).max(NANOSECOND);
                let flow = u32::MAX - index as u32;
                let packet = link::Packet::new(bytes, Datagram::Constant)
                    .with_flow(flow)
                    .through(constant.hops.clone());
                self.datagrams += 1;
                let (link, mut observer) = self.link(direction);
                link.send(now, packet, &mut observer);
            }
        }
    }

    /// Lets each part with events run and send, and updates its timer.
    fn flush(&mut self) -> Result<(), SimError> {
        let mut touched = std::mem::take(&mut self.touched);
        touched.sort_unstable();
        for index in touched.drain(..) {
            if let Some(is_touched) = self.is_touched.get_mut(index) {
                *is_touched = false;
            }
            if let Some(node) = self.nodes.get_mut(index) {
                node.run(self.now, index / 2, self.listener)
                    .map_err(SimError::Connect)?;
                self.send(index);
                self.check_progress(index / 2);
            } else {
                self.send_background(index - self.nodes.len());
            }
            self.set_timer(index);
        }
        // Sending causes no events: what arrives immediately does so in the next turn.
        self.touched = touched;
        Ok(())
    }

    fn send(&mut self, index: usize) {
        let overhead = self.scenario.path.overhead;
        let (direction, peer) = if index.is_multiple_of(2) {
            (Direction::Up, index + 1)
        } else {
            (Direction::Down, index - 1)
        };
        let now = self.now;
        loop {
            let mut buffer = self.spare.pop().unwrap_or_default();
            if buffer.len() != self.buffer_len {
                buffer.resize(self.buffer_len, 0);
            }
            let Some(node) = self.nodes.get_mut(index) else {
                return;
            };
            let Some(transmit) = node.poll_transmit(self.now, &mut buffer) else {
                node.finish(self.now);
                self.spare.push(buffer);
                return;
            };
            let moved = self.moved(index, transmit.path.remote);
            // The buffer is too short for two full datagrams, but may hold several short ones.
            let mut from = transmit.segment_len;
            while from < transmit.len {
                let to = transmit.len.min(from + transmit.segment_len);
                let mut copy = self.spare.pop().unwrap_or_default();
                copy.clear();
                copy.extend_from_slice(buffer.get(from..to).unwrap_or_default());
                self.send_datagram(
                    direction,
                    now,
                    copy,
                    to - from,
                    (peer, moved),
                    transmit.ecn,
                    overhead,
                );
                from = to;
            }
            let len = transmit.len.min(transmit.segment_len);
            self.send_datagram(
                direction,
                now,
                buffer,
                len,
                (peer, moved),
                transmit.ecn,
                overhead,
            );
        }
    }

    #[expect(clippy::too_many_arguments, reason = "a datagram, and where it goes")]
    fn send_datagram(
        &mut self,
        direction: Direction,
        now: Time,
        buffer: Vec<u8>,
        len: usize,
        (to, moved): (usize, usize),
        ecn: Ecn,
        overhead: u32,
    ) {
        let datagram = Datagram::Connection {
            buffer,
            len,
            to,
            moved,
        };
        let packet = link::Packet::new(len as u32 + overhead, datagram)
            .with_ecn(ecn)
            .with_flow((to / 2) as u32);
        self.datagrams += 1;
        let (link, mut observer) = self.link(direction);
        link.send(now, packet, &mut observer);
    }

    fn send_background(&mut self, index: usize) {
        let (now, overhead) = (self.now, self.scenario.path.overhead);
        let flow = self.nodes.len() / 2 + index;
        while let Some(source) = self.backgrounds.get_mut(index)
            && let Some(transmit) = source.poll_transmit(now)
        {
            let datagram = Datagram::Background {
                flow,
                packet: transmit.packet,
            };
            let packet = link::Packet::new(transmit.bytes + overhead, datagram)
                .with_ecn(transmit.ecn)
                .with_flow(flow as u32)
                .through(transmit.hops);
            self.datagrams += 1;
            let (link, mut observer) = self.link(transmit.direction);
            link.send(now, packet, &mut observer);
        }
    }

    /// Checks whether a flow is complete or has failed.
    fn check_progress(&mut self, flow: usize) {
        let Some(plan) = self.scenario.flows.get(flow) else {
            return;
        };
        let Some(Some([client, server])) = self
            .nodes
            .get_mut(2 * flow..2 * flow + 2)
            .map(|ends| <&mut [Node; 2]>::try_from(ends).ok())
        else {
            return;
        };
        let has_ended = client.has_ended() || server.has_ended();
        let is_complete = client.is_complete();
        let (sender, is_received) = match plan.direction {
            Direction::Down => (server, true),
            Direction::Up => (client, is_complete),
        };
        let (sent, expected) = (sender.messages(), plan.requests.len() as u64);
        if sent.started > 0 {
            self.monitor.start(self.now);
        }
        if let Some(outcome) = self.servers.get_mut(flow)
            && outcome.is_none()
            && (has_ended || (sent.acked >= expected && is_received))
        {
            *outcome = sender.sender_outcome(expected);
            self.unfinished -= usize::from(outcome.is_some() || has_ended);
        }
        if is_complete && self.monitor.ended.is_none() {
            let flows = self.scenario.flows.len();
            let clients = self.nodes.iter_mut().step_by(2).take(flows);
            self.incomplete = clients
                .filter_map(|client| (!client.is_complete()).then_some(()))
                .count();
            if self.incomplete == 0 {
                self.monitor.end(self.now);
            }
        }
    }

    fn touch(&mut self, index: usize) {
        if let Some(is_touched) = self.is_touched.get_mut(index)
            && !std::mem::replace(is_touched, true)
        {
            self.touched.push(index);
        }
    }

    /// The deadline of a part.
    fn deadline(&self, index: usize) -> Option<Time> {
        match index.checked_sub(self.nodes.len()) {
            None => self.nodes.get(index)?.deadline(),
            Some(index) => self.backgrounds.get(index)?.deadline(),
        }
    }

    /// Sets the timer of a part to its deadline.
    fn set_timer(&mut self, index: usize) {
        self.timers.set(index, self.deadline(index));
    }

    fn link(&mut self, direction: Direction) -> (&mut Link<Datagram>, LinkObserver<'_, L>) {
        let link = match direction {
            Direction::Down => &mut self.down,
            Direction::Up => &mut self.up,
        };
        let observer = LinkObserver {
            direction,
            bottleneck: match direction {
                Direction::Down => self.bottleneck_hops.0,
                Direction::Up => self.bottleneck_hops.1,
            },
            monitor: (direction == self.bottleneck)
                .then_some((&mut self.monitor, &mut self.drops[..])),
            listener: self.listener,
        };
        (link, observer)
    }

    fn into_outcome(mut self) -> Outcome {
        let servers = std::mem::take(&mut self.servers);
        let drops = std::mem::take(&mut self.drops);
        let flows = servers.into_iter().zip(drops).enumerate();
        let flows = flows.filter_map(|(flow, (server, drops))| {
            let plan = self.scenario.flows.get(flow)?;
            let sender = 2 * flow + usize::from(plan.direction == Direction::Down);
            let expected = plan.requests.len() as u64;
            let server = server.or_else(|| self.nodes.get_mut(sender)?.sender_outcome(expected));
            let path_rtt = plan.rtt.unwrap_or_else(|| self.scenario.path.rtt());
            self.nodes
                .get_mut(2 * flow)?
                .flow_outcome(server, drops, path_rtt)
        });
        let flows: Vec<FlowOutcome> = flows.collect();
        let open_loops = self.backgrounds.iter().filter(|one| one.is_open_loop());
        Outcome {
            arrivals: open_loops.map(Background::outcome).collect(),
            flows,
            direction: self.bottleneck,
            bottleneck: self.monitor.outcome(&self.scenario.bottleneck().capacity),
            down: self.down.statistics(),
            up: self.up.statistics(),
            datagrams: self.datagrams,
            ended_at: self.now,
        }
    }
}

/// Measures the use of the bottleneck.
#[derive(Debug, Default)]
struct BottleneckMonitor {
    started: Option<Time>,
    ended: Option<Time>,
    last_service_end: Option<Time>,
    served: Count,
    idle_gap_max: Duration,
}

impl BottleneckMonitor {
    fn start(&mut self, now: Time) {
        self.started.get_or_insert(now);
    }

    fn end(&mut self, now: Time) {
        self.ended.get_or_insert(now);
    }

    fn on_served(&mut self, from: Time, ended: Time, bytes: u32) {
        if self.started.is_none_or(|started| from < started) || self.ended.is_some() {
            return;
        }
        self.served.packets += 1;
        self.served.bytes += u64::from(bytes);
        if let Some(last) = self.last_service_end {
            self.idle_gap_max = self.idle_gap_max.max(from.since(last));
        }
        self.last_service_end = Some(ended);
    }

    fn outcome(&self, capacity: &link::Capacity) -> BottleneckOutcome {
        let (span, possible) = match (self.started, self.ended) {
            (Some(started), Some(ended)) => {
                (ended.since(started), capacity.bytes_between(started, ended))
            }
            _ => (Duration::ZERO, None),
        };
        BottleneckOutcome {
            span,
            served: self.served,
            // Times are whole nanoseconds, in which a fraction of a byte more may pass.
            utilisation: possible
                .filter(|possible| *possible > 0.0)
                .map(|possible| (self.served.bytes as f64 / possible).min(1.0)),
            idle_gap_max: self.idle_gap_max,
        }
    }
}

/// Receives the events of a link.
struct LinkObserver<'a, L> {
    direction: Direction,
    /// The link's hop with the lowest rate.
    bottleneck: usize,
    /// For the link of the data: the bottleneck's monitor, and the drops of each flow.
    monitor: Option<(&'a mut BottleneckMonitor, &'a mut [Vec<Drop>])>,
    listener: &'a mut L,
}

impl<L: Listener> link::Observer<Datagram> for LinkObserver<'_, L> {
    fn on_event(&mut self, observation: &Observation<'_, Datagram>) {
        let at = observation.at;
        let is_bottleneck = usize::from(observation.hop) == self.bottleneck;
        match (observation.event, &mut self.monitor) {
            (Event::ServiceEnded { started }, Some((monitor, _))) if is_bottleneck => {
                monitor.on_served(started, at, observation.packet.bytes);
            }
            (Event::Dropped(reason), Some((_, drops))) => {
                let flow = observation.packet.payload.flow();
                // Cross traffic is not recorded.
                if let Some(drops) = flow.and_then(|flow| drops.get_mut(flow)) {
                    drops.push(Drop { at, reason });
                }
            }
            _ => {}
        }
        if self.listener.wants_link_events() {
            self.listener.on_link(&LinkEvent {
                at,
                direction: self.direction,
                hop: observation.hop,
                is_bottleneck,
                flow: observation.packet.payload.flow(),
                number: observation.number,
                bytes: observation.packet.bytes,
                event: observation.event,
                queue: observation.queue,
            });
        }
    }
}

/// Derives the seed of a part.
pub(crate) const fn mix(seed: u64, stream: u64) -> u64 {
    SplitMix64::new(seed.wrapping_add(stream.wrapping_mul(0xa076_1d64_78bd_642f))).at(0)
}

pub(crate) fn expand(seed: u64) -> Seed {
    let mut bytes = [0; 32];
    for (index, part) in bytes.chunks_exact_mut(8).enumerate() {
        part.copy_from_slice(&mix(seed, index as u64).to_le_bytes());
    }
    bytes
}

/// First random stream of background transfers; lower ones belong to the ends of connections.
const BACKGROUND_STREAM: u64 = 1 << 32;
/// Size of endless transfers, in bytes: more than fits into any time limit.
const ENDLESS: u64 = 1 << 50;
/// Cross traffic at a constant rate, in bytes of UDP payload.
const CONSTANT_DATAGRAM: u32 = 1200;
const NANOSECOND: Duration = Duration::from_nanos(1);
