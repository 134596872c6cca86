//! The world: flows over two links, in virtual time.
//!
//! Owns: what happens next, and in which order. All that falls together is done in one order: arrivals at clients, arrivals
//! at servers, timers by flow; then each end that was touched sends, by flow. So one seed gives one history.

use core::fmt;
use std::{cmp::Reverse, collections::BinaryHeap, sync::Arc};

use lastbyte_congestion::Time;
use lastbyte_link::{
    self as link, Capacity, ConfigError, Count, Ecn, Event, Link, Observation, Rate,
};
use lastbyte_quic::{
    ack::EcnCodepoint,
    endpoint::{ConnectError, EndpointConfigError},
    random::Seed,
};
use lastbyte_wire::Side;

use lastbyte_units::SplitMix64;

use crate::{
    client::Client,
    handshake::credentials,
    listener::{LinkEvent, Listener, Way},
    node::{Node, addresses, client_config, config},
    outcome::{BottleneckOutcome, Drop, FlowOutcome, Outcome, SenderOutcome},
    scenario::{CrossKind, FlowPlan, Handshake, Request, Scenario, Transport},
    server::Server,
};

/// A scenario cannot be simulated.
#[derive(Clone, Debug, PartialEq)]
pub enum SimError {
    /// There is no flow, or a flow without a request.
    NothingToDo,
    /// A datagram size is below 1200 bytes (RFC 9000 §14) or above 65527.
    DatagramSize(u16),
    /// A link cannot be like that.
    Link(Way, ConfigError),
    /// An endpoint cannot be like that.
    Endpoint(EndpointConfigError),
    /// A connection cannot be begun.
    Connect(ConnectError),
    /// The ends cannot shake hands as they should.
    Handshake(String),
}

impl fmt::Display for SimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NothingToDo => f.write_str("no flow, or a flow without requests"),
            Self::DatagramSize(size) => write!(
                f,
                "datagrams of {size} bytes: QUIC needs 1200 at least (RFC 9000, section 14), and UDP carries 65527"
            ),
            Self::Link(Way::Down, error) => write!(f, "the link down: {error}"),
            Self::Link(Way::Up, error) => write!(f, "the link up: {error}"),
            Self::Endpoint(error) => error.fmt(f),
            Self::Connect(error) => error.fmt(f),
            Self::Handshake(reason) => f.write_str(reason),
        }
    }
}

impl std::error::Error for SimError {}

/// Simulates a scenario.
///
/// ```
/// use core::time::Duration;
/// use lastbyte_link as link;
/// use lastbyte_sim::{Path, Scenario, simulate};
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
/// The scenario cannot be simulated. What goes wrong within it is no error, but in the outcome.
pub fn simulate(scenario: &Scenario, listener: &mut impl Listener) -> Result<Outcome, SimError> {
    let mut world = World::new(scenario, listener)?;
    world.run()?;
    Ok(world.into_outcome())
}

/// A datagram on its way.
#[derive(Clone, Debug)]
struct Datagram {
    buffer: Vec<u8>,
    len: usize,
    /// The node it goes to; none for cross traffic.
    to: Option<usize>,
}

/// Packets at a constant rate.
struct Constant {
    rate: Rate,
    next_at: Time,
}

struct World<'a, L> {
    scenario: &'a Scenario,
    listener: &'a mut L,
    now: Time,
    /// Client and server of each flow in turn.
    nodes: Vec<Node>,
    /// For each node, the earliest entry of it in `alarms`.
    alarm_of: Vec<Option<Time>>,
    /// Times at which to look at a node; it may turn out that there is nothing to do yet.
    alarms: BinaryHeap<Reverse<(Time, usize)>>,
    /// Nodes that have to send, and whether each is among them.
    touched: Vec<usize>,
    is_touched: Vec<bool>,
    constants: Vec<Constant>,
    down: Link<Datagram>,
    up: Link<Datagram>,
    watch: Watch,
    spare: Vec<Vec<u8>>,
    buffer_len: usize,
    datagrams: u64,
    /// How the server of each flow fared, once all was acknowledged.
    servers: Vec<Option<SenderOutcome>>,
    /// What the way down dropped of each flow.
    drops: Vec<Vec<Drop>>,
    unfinished: usize,
    unsatisfied: usize,
}

impl<'a, L: Listener> World<'a, L> {
    fn new(scenario: &'a Scenario, listener: &'a mut L) -> Result<Self, SimError> {
        let transport = &scenario.transport;
        if !(1200..=65_527).contains(&transport.datagram_size) {
            return Err(SimError::DatagramSize(transport.datagram_size));
        }
        if scenario.flows.is_empty() || scenario.flows.iter().any(|flow| flow.requests.is_empty()) {
            return Err(SimError::NothingToDo);
        }
        let link = |way, config, stream| {
            Link::new(config, mix(scenario.seed, stream))
                .map_err(|error| SimError::Link(way, error))
        };
        let mut world = Self {
            scenario,
            listener,
            now: Time::ZERO,
            nodes: Vec::new(),
            alarm_of: Vec::new(),
            alarms: BinaryHeap::new(),
            touched: Vec::new(),
            is_touched: Vec::new(),
            constants: Vec::new(),
            down: link(Way::Down, &scenario.path.down, 0)?,
            up: link(Way::Up, &scenario.path.up, 1)?,
            watch: Watch::default(),
            spare: Vec::new(),
            buffer_len: usize::from(transport.datagram_size).max(1500),
            datagrams: 0,
            servers: vec![None; scenario.flows.len()],
            drops: vec![Vec::new(); scenario.flows.len()],
            unfinished: scenario.flows.len(),
            unsatisfied: scenario.flows.len(),
        };
        for flow in &scenario.flows {
            world.add_flow(flow, transport)?;
        }
        let of_others = Transport {
            handshake: Handshake::Full,
            ..transport.clone()
        };
        for cross in &scenario.cross {
            let start = Time::ZERO + cross.start;
            match &cross.kind {
                CrossKind::Bulk(congestion) => {
                    let plan = FlowPlan {
                        congestion: congestion.clone(),
                        start: cross.start,
                        requests: vec![Request::of(ENDLESS)],
                        progress: Vec::new(),
                    };
                    world.add_flow(&plan, &of_others)?;
                }
                CrossKind::Constant(rate) => world.constants.push(Constant {
                    rate: *rate,
                    next_at: start,
                }),
            }
        }
        Ok(world)
    }

    fn add_flow(&mut self, plan: &FlowPlan, transport: &Transport) -> Result<(), SimError> {
        let flow = self.nodes.len() / 2;
        let stream = 2 * flow as u64 + 2;
        let seeds = [stream, stream + 1].map(|stream| expand(mix(self.scenario.seed, stream)));
        let config = config(transport, plan.congestion.clone());
        let credentials = credentials(transport, &config, &seeds).map_err(SimError::Handshake)?;
        let protocol = transport.protocol;
        let mut server = Node::server(
            Arc::clone(&config),
            Server::new(protocol.server()),
            credentials.server,
            addresses(flow, Side::Server),
            seeds[1],
        )
        .map_err(SimError::Endpoint)?;
        let token = match transport.handshake {
            Handshake::Full => None,
            Handshake::Resumed | Handshake::ZeroRtt => server.token(),
        };
        let client = Node::client(
            client_config(transport, &config),
            Client::new(protocol.client(transport.handshake), plan),
            credentials.client,
            token.unwrap_or_default(),
            addresses(flow, Side::Client),
            seeds[0],
        )
        .map_err(SimError::Endpoint)?;
        for node in [client, server] {
            self.nodes.push(node);
            self.alarm_of.push(None);
            self.is_touched.push(false);
            self.set_alarm(self.nodes.len() - 1);
        }
        Ok(())
    }

    fn run(&mut self) -> Result<(), SimError> {
        let limit = Time::ZERO + self.scenario.time_limit;
        while self.unfinished > 0 {
            let alarm = self.alarms.peek().map(|Reverse((at, _))| *at);
            let constant = self.constants.iter().map(|one| one.next_at).min();
            let next = [self.down.deadline(), self.up.deadline(), alarm, constant];
            let Some(next) = next.into_iter().flatten().min() else {
                break;
            };
            if next > limit {
                self.now = limit;
                break;
            }
            self.now = self.now.max(next);
            self.deliver(Way::Down);
            self.deliver(Way::Up);
            self.ring()?;
            self.send_constants();
            self.flush();
        }
        self.watch.end(self.now);
        Ok(())
    }

    fn deliver(&mut self, way: Way) {
        let now = self.now;
        loop {
            let (link, mut observer) = self.link(way);
            let Some(delivery) = link.poll(now, &mut observer) else {
                return;
            };
            let ecn = from_ecn(delivery.packet.ecn);
            let Datagram {
                mut buffer,
                len,
                to,
            } = delivery.packet.payload;
            if let Some(index) = to
                && let Some(node) = self.nodes.get_mut(index)
                && let Some(datagram) = buffer.get_mut(..len)
            {
                node.on_datagram(self.now, ecn, datagram, index / 2, self.listener);
                self.touch(index);
            }
            self.spare.push(buffer);
        }
    }

    /// Looks at the nodes whose time has come.
    fn ring(&mut self) -> Result<(), SimError> {
        while let Some(Reverse((at, index))) = self.alarms.peek().copied()
            && at <= self.now
        {
            self.alarms.pop();
            // Another entry was put before this one, and has taken its place.
            if self.alarm_of.get(index) != Some(&Some(at)) {
                continue;
            }
            let (Some(alarm), Some(node)) =
                (self.alarm_of.get_mut(index), self.nodes.get_mut(index))
            else {
                continue;
            };
            *alarm = None;
            if node.deadline().is_some_and(|at| at <= self.now) {
                node.on_time(self.now, index / 2, self.listener)
                    .map_err(SimError::Connect)?;
                // It sends before its next alarm is set.
                self.touch(index);
            } else {
                self.set_alarm(index);
            }
        }
        Ok(())
    }

    fn send_constants(&mut self) {
        let now = self.now;
        for index in 0..self.constants.len() {
            while let Some(constant) = self.constants.get_mut(index)
                && constant.next_at <= self.now
            {
                let bytes = CONSTANT_DATAGRAM + self.scenario.path.overhead;
                constant.next_at =
                    constant.next_at + constant.rate.time_for(bytes.into()).max(NANOSECOND);
                let datagram = Datagram {
                    buffer: Vec::new(),
                    len: 0,
                    to: None,
                };
                let flow = u32::MAX - index as u32;
                let packet = link::Packet::new(bytes, datagram).with_flow(flow);
                self.datagrams += 1;
                let (link, mut observer) = self.link(Way::Down);
                link.send(now, packet, &mut observer);
            }
        }
    }

    /// Lets each node with events send, and updates its alarm.
    fn flush(&mut self) {
        let mut touched = std::mem::take(&mut self.touched);
        touched.sort_unstable();
        for index in touched.drain(..) {
            if let Some(is_touched) = self.is_touched.get_mut(index) {
                *is_touched = false;
            }
            self.send(index);
            self.set_alarm(index);
            self.look_at(index / 2);
        }
        // Sending causes no events: what arrives immediately does so in the next turn.
        self.touched = touched;
    }

    fn send(&mut self, index: usize) {
        let overhead = self.scenario.path.overhead;
        let (way, peer) = if index.is_multiple_of(2) {
            (Way::Up, index + 1)
        } else {
            (Way::Down, index - 1)
        };
        let now = self.now;
        loop {
            let mut buffer = self.spare.pop().unwrap_or_default();
            buffer.resize(self.buffer_len, 0);
            let Some(node) = self.nodes.get_mut(index) else {
                return;
            };
            let Some(transmit) = node.poll_transmit(self.now, &mut buffer) else {
                self.spare.push(buffer);
                return;
            };
            // The buffer is too short for two of full size; several short ones are possible all the same.
            let mut from = transmit.segment_len;
            while from < transmit.len {
                let to = transmit.len.min(from + transmit.segment_len);
                let mut copy = self.spare.pop().unwrap_or_default();
                copy.clear();
                copy.extend_from_slice(buffer.get(from..to).unwrap_or_default());
                self.launch(way, now, copy, to - from, peer, transmit.ecn, overhead);
                from = to;
            }
            let len = transmit.len.min(transmit.segment_len);
            self.launch(way, now, buffer, len, peer, transmit.ecn, overhead);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "a datagram, and where it goes")]
    fn launch(
        &mut self,
        way: Way,
        now: Time,
        buffer: Vec<u8>,
        len: usize,
        to: usize,
        ecn: EcnCodepoint,
        overhead: u32,
    ) {
        let datagram = Datagram {
            buffer,
            len,
            to: Some(to),
        };
        let packet = link::Packet::new(len as u32 + overhead, datagram)
            .with_ecn(to_ecn(ecn))
            .with_flow((to / 2) as u32);
        self.datagrams += 1;
        let (link, mut observer) = self.link(way);
        link.send(now, packet, &mut observer);
    }

    /// Whether a flow has come to an end, of one kind or another.
    fn look_at(&mut self, flow: usize) {
        let Some(plan) = self.scenario.flows.get(flow) else {
            return;
        };
        let Some(Some([client, server])) = self
            .nodes
            .get(2 * flow..2 * flow + 2)
            .map(|ends| <&[Node; 2]>::try_from(ends).ok())
        else {
            return;
        };
        if server.has_begun() {
            self.watch.begin(self.now);
        }
        let has_ended = client.has_ended() || server.has_ended();
        if let Some(outcome) = self.servers.get_mut(flow)
            && outcome.is_none()
            && (has_ended || server.responses_acked() >= plan.requests.len() as u64)
        {
            *outcome = server.sender_outcome();
            self.unfinished -= usize::from(outcome.is_some() || has_ended);
        }
        if client.is_satisfied() && self.watch.ended.is_none() {
            let satisfied = self.nodes.iter().step_by(2).take(self.scenario.flows.len());
            self.unsatisfied = satisfied.filter(|client| !client.is_satisfied()).count();
            if self.unsatisfied == 0 {
                self.watch.end(self.now);
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

    /// Makes sure that there is an alarm no later than the node's deadline.
    fn set_alarm(&mut self, index: usize) {
        let deadline = self.nodes.get(index).and_then(Node::deadline);
        if let (Some(at), Some(alarm)) = (deadline, self.alarm_of.get_mut(index))
            && alarm.is_none_or(|set| at < set)
        {
            *alarm = Some(at);
            self.alarms.push(Reverse((at, index)));
        }
    }

    fn link(&mut self, way: Way) -> (&mut Link<Datagram>, Ears<'_, L>) {
        let link = match way {
            Way::Down => &mut self.down,
            Way::Up => &mut self.up,
        };
        let ears = Ears {
            way,
            watch: (way == Way::Down).then_some((&mut self.watch, &mut self.drops[..])),
            listener: self.listener,
        };
        (link, ears)
    }

    fn into_outcome(mut self) -> Outcome {
        let servers = std::mem::take(&mut self.servers);
        let drops = std::mem::take(&mut self.drops);
        let flows = servers.into_iter().zip(drops).enumerate();
        let flows = flows.filter_map(|(flow, (server, drops))| {
            let server = server.or_else(|| self.nodes.get(2 * flow + 1)?.sender_outcome());
            self.nodes.get(2 * flow)?.flow_outcome(server, drops)
        });
        let flows: Vec<FlowOutcome> = flows.collect();
        Outcome {
            flows,
            bottleneck: self
                .watch
                .outcome(nominal(&self.scenario.path.down.capacity)),
            down: self.down.statistics().clone(),
            up: self.up.statistics().clone(),
            path_rtt: self.scenario.path.down.delay + self.scenario.path.up.delay,
            datagrams: self.datagrams,
            ended_at: self.now,
        }
    }
}

/// Looks at how the bottleneck is used.
#[derive(Debug, Default)]
struct Watch {
    begun: Option<Time>,
    ended: Option<Time>,
    last_service_end: Option<Time>,
    served: Count,
    idle_gap_max: core::time::Duration,
}

impl Watch {
    fn begin(&mut self, now: Time) {
        self.begun.get_or_insert(now);
    }

    fn end(&mut self, now: Time) {
        self.ended.get_or_insert(now);
    }

    fn on_served(&mut self, began: Time, ended: Time, bytes: u32) {
        if self.begun.is_none_or(|begun| began < begun) || self.ended.is_some() {
            return;
        }
        self.served.packets += 1;
        self.served.bytes += u64::from(bytes);
        if let Some(last) = self.last_service_end {
            self.idle_gap_max = self.idle_gap_max.max(began.since(last));
        }
        self.last_service_end = Some(ended);
    }

    fn outcome(&self, rate: Option<Rate>) -> BottleneckOutcome {
        let span = match (self.begun, self.ended) {
            (Some(begun), Some(ended)) => ended.since(begun),
            _ => core::time::Duration::ZERO,
        };
        let capacity = rate.map(|rate| rate.bits_per_second() as f64 / 8.0 * span.as_secs_f64());
        BottleneckOutcome {
            span,
            served: self.served,
            utilisation: capacity
                .filter(|capacity| *capacity > 0.0)
                .map(|capacity| self.served.bytes as f64 / capacity),
            idle_gap_max: self.idle_gap_max,
        }
    }
}

/// Hears what a link says.
struct Ears<'a, L> {
    way: Way,
    /// Of the way down: how it is used, and what it drops of each flow.
    watch: Option<(&'a mut Watch, &'a mut [Vec<Drop>])>,
    listener: &'a mut L,
}

impl<L: Listener> link::Observer<Datagram> for Ears<'_, L> {
    fn on_event(&mut self, observation: &Observation<'_, Datagram>) {
        let at = observation.at;
        match (observation.event, &mut self.watch) {
            (Event::ServiceEnded { started }, Some((watch, _))) => {
                watch.on_served(started, at, observation.packet.bytes);
            }
            (Event::Dropped(reason), Some((_, drops))) => {
                let flow = observation.packet.payload.to.map(|node| node / 2);
                // Other traffic has no place there.
                if let Some(drops) = flow.and_then(|flow| drops.get_mut(flow)) {
                    drops.push(Drop { at, reason });
                }
            }
            _ => {}
        }
        if self.listener.listens_to_links() {
            self.listener.on_link(&LinkEvent {
                at,
                way: self.way,
                flow: observation.packet.payload.to.map(|node| node / 2),
                bytes: observation.packet.bytes,
                event: observation.event,
                queue: observation.queue,
            });
        }
    }
}

/// The rate that a link has, or mostly has.
fn nominal(capacity: &Capacity) -> Option<Rate> {
    match capacity {
        Capacity::Unlimited => None,
        Capacity::Constant(rate) => Some(*rate),
        Capacity::Schedule(schedule) => Some(schedule.nominal()),
        Capacity::Trace(trace) => Some(trace.nominal()),
    }
}

const fn to_ecn(ecn: EcnCodepoint) -> Ecn {
    match ecn {
        EcnCodepoint::NotEct => Ecn::NotEct,
        EcnCodepoint::Ect1 => Ecn::Ect1,
        EcnCodepoint::Ect0 => Ecn::Ect0,
        EcnCodepoint::Ce => Ecn::Ce,
    }
}

const fn from_ecn(ecn: Ecn) -> EcnCodepoint {
    match ecn {
        Ecn::NotEct => EcnCodepoint::NotEct,
        Ecn::Ect1 => EcnCodepoint::Ect1,
        Ecn::Ect0 => EcnCodepoint::Ect0,
        Ecn::Ce => EcnCodepoint::Ce,
    }
}

/// The seed of each part.
const fn mix(seed: u64, stream: u64) -> u64 {
    SplitMix64::new(seed.wrapping_add(stream.wrapping_mul(0xa076_1d64_78bd_642f))).at(0)
}

fn expand(seed: u64) -> Seed {
    let mut bytes = [0; 32];
    for (index, part) in bytes.chunks_exact_mut(8).enumerate() {
        part.copy_from_slice(&mix(seed, index as u64).to_le_bytes());
    }
    bytes
}

/// What bulk cross traffic asks for: more than fits into any time limit.
const ENDLESS: u64 = 1 << 50;
/// Cross traffic at a constant rate, in bytes of UDP payload.
const CONSTANT_DATAGRAM: u32 = 1200;
const NANOSECOND: core::time::Duration = core::time::Duration::from_nanos(1);
