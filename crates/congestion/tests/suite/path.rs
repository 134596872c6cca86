//! A bottleneck that any number of flows share: one rate, one drop-tail queue, a delay for each flow.
//!
//! Each flow is a sender with endless (or a given amount of) data, a controller, a pacer, and the loss detection of
//! RFC 9002 by packet threshold, with a probe timeout for tails. The receiver acknowledges each second packet, and at
//! once what comes out of order. Packets are all of one size. Time is virtual; nothing is random but what the seed says.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
    time::Duration,
};

use lastbyte_congestion::{
    Ack, Bandwidth, Controller, ControllerFactory, EcnCe, Environment, Loss, Pacer, Packet, Rtt,
    Sent, Spec, Time,
};

pub(crate) const DATAGRAM: u64 = 1200;

/// A path to test on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    pub(crate) rate: Bandwidth,
    /// The queue, in bytes.
    pub(crate) queue: u64,
    /// Packets are marked with CE when more than this is queued.
    pub(crate) mark_above: Option<u64>,
    /// One packet in this many is lost at random; 0 for none.
    pub(crate) loss_one_in: u64,
    pub(crate) seed: u64,
}

impl Path {
    pub(crate) fn new(mbit: u64, queue: Duration) -> Self {
        let rate = Bandwidth::from_bits_per_second(mbit * 1_000_000);
        Self {
            rate,
            queue: rate.bytes_in(queue),
            mark_above: None,
            loss_one_in: 0,
            seed: 1,
        }
    }
}

/// A sender to be.
#[derive(Clone, Debug)]
pub(crate) struct FlowSpec {
    pub(crate) spec: &'static str,
    pub(crate) rtt: Duration,
    pub(crate) start: Duration,
    /// How much it has to send.
    pub(crate) bytes: u64,
}

impl FlowSpec {
    pub(crate) fn endless(spec: &'static str, rtt_ms: u64) -> Self {
        Self {
            spec,
            rtt: Duration::from_millis(rtt_ms),
            start: Duration::ZERO,
            bytes: u64::MAX,
        }
    }

    pub(crate) fn starting(self, start: Duration) -> Self {
        Self { start, ..self }
    }
}

/// What became of a flow.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    /// Bytes that arrived.
    pub(crate) delivered: u64,
    /// Bytes that arrived in the second half of the run.
    pub(crate) delivered_late: u64,
    pub(crate) packets_sent: u64,
    pub(crate) packets_lost: u64,
    pub(crate) loss_episodes: u64,
    /// When the last byte was acknowledged, of a flow that ended.
    pub(crate) completed: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Start,
    Pace,
    /// The packet of this number arrives at the receiver.
    Arrive {
        number: u64,
        marked: bool,
    },
    /// An ACK frame arrives: everything received up to entry `upto` of the flow's record of arrivals.
    Ack {
        upto: usize,
    },
    Probe {
        generation: u64,
    },
}

struct Flow {
    controller: Box<dyn Controller>,
    pacer: Pacer,
    rtt: Rtt,
    delay: Duration,
    left: u64,
    in_flight: u64,
    next: u64,
    sent: BTreeMap<u64, Packet>,
    largest_acked: Option<u64>,
    /// Packets in the order of their arrival, with their marks; the sender has seen `acked` of them.
    arrived: Vec<(u64, bool)>,
    acked: usize,
    marks_seen: u64,
    expected: u64,
    unacknowledged: u32,
    probe_generation: u64,
    pace_pending: bool,
    outcome: Outcome,
}

pub(crate) struct World {
    path: Path,
    events: BinaryHeap<Reverse<(Time, u64, usize, Event)>>,
    sequence: u64,
    now: Time,
    /// When the bottleneck has sent all it has queued.
    link_free_at: Time,
    flows: Vec<Flow>,
    random: u64,
    half: Time,
}

/// Runs the flows for `length`.
pub(crate) fn run(path: Path, flows: &[FlowSpec], length: Duration) -> Vec<Outcome> {
    let mut world = World {
        path,
        events: BinaryHeap::new(),
        sequence: 0,
        now: Time::ZERO,
        link_free_at: Time::ZERO,
        flows: Vec::new(),
        random: path.seed.wrapping_mul(2).wrapping_add(1),
        half: Time::ZERO + length / 2,
    };
    for (index, flow) in flows.iter().enumerate() {
        let spec: Spec = flow.spec.parse().expect("a spec");
        let mut rtt = Rtt::default();
        // The handshake has measured the path.
        rtt.update(Time::ZERO, flow.rtt, Duration::ZERO, None);
        world.flows.push(Flow {
            controller: spec.build(&Environment {
                max_datagram_size: DATAGRAM,
                seed: path.seed + index as u64,
            }),
            pacer: Pacer::new(),
            rtt,
            delay: flow.rtt,
            left: flow.bytes,
            in_flight: 0,
            next: 0,
            sent: BTreeMap::new(),
            largest_acked: None,
            arrived: Vec::new(),
            acked: 0,
            marks_seen: 0,
            expected: 0,
            unacknowledged: 0,
            probe_generation: 0,
            pace_pending: false,
            outcome: Outcome::default(),
        });
        world.schedule(Time::ZERO + flow.start, index, Event::Start);
    }
    let end = Time::ZERO + length;
    while let Some(Reverse((at, _, index, event))) = world.events.pop() {
        if at > end {
            break;
        }
        world.now = at;
        world.handle(index, event);
    }
    world
        .flows
        .into_iter()
        .map(|flow| Outcome {
            loss_episodes: flow.controller.state().statistics.loss_episodes,
            ..flow.outcome
        })
        .collect()
}

impl World {
    fn schedule(&mut self, at: Time, flow: usize, event: Event) {
        self.sequence += 1;
        self.events.push(Reverse((at, self.sequence, flow, event)));
    }

    fn handle(&mut self, index: usize, event: Event) {
        match event {
            Event::Start => self.send(index),
            Event::Pace => {
                self.flows[index].pace_pending = false;
                self.send(index);
            }
            Event::Arrive { number, marked } => self.arrive(index, number, marked),
            Event::Ack { upto } => {
                self.acknowledge(index, upto);
                self.send(index);
            }
            Event::Probe { generation } => {
                if generation == self.flows[index].probe_generation
                    && self.flows[index].in_flight > 0
                {
                    self.transmit(index);
                }
            }
        }
    }

    /// Sends what window and pacer allow.
    fn send(&mut self, index: usize) {
        loop {
            let now = self.now;
            let flow = &mut self.flows[index];
            if flow.left == 0 {
                flow.controller.on_app_limited(now, flow.in_flight);
                return;
            }
            if flow.in_flight + DATAGRAM > flow.controller.window() {
                return;
            }
            let pacing = flow.controller.pacing(&flow.rtt);
            if flow.pacer.budget(now, &pacing) < DATAGRAM {
                if let Some(at) = flow.pacer.next_release(now, &pacing)
                    && !flow.pace_pending
                {
                    flow.pace_pending = true;
                    self.schedule(at, index, Event::Pace);
                }
                return;
            }
            flow.pacer.on_sent(now, DATAGRAM, &pacing);
            flow.left = flow.left.saturating_sub(DATAGRAM);
            self.transmit(index);
        }
    }

    fn transmit(&mut self, index: usize) {
        let (now, random) = (self.now, self.next_random());
        let flow = &mut self.flows[index];
        flow.in_flight += DATAGRAM;
        let number = flow.next;
        flow.next += 1;
        flow.outcome.packets_sent += 1;
        let receipt = flow.controller.on_sent(&Sent {
            now,
            bytes: DATAGRAM,
            in_flight: flow.in_flight,
            rtt: &flow.rtt,
        });
        flow.sent.insert(
            number,
            Packet {
                bytes: DATAGRAM,
                sent_at: now,
                receipt,
            },
        );
        let delay = flow.delay;
        self.arm_probe(index);

        let queued = self.path.rate.bytes_in(self.link_free_at.since(now));
        let is_lost = self.path.loss_one_in > 0 && random % self.path.loss_one_in == 0;
        if is_lost || queued + DATAGRAM > self.path.queue {
            return;
        }
        let marked = self.path.mark_above.is_some_and(|limit| queued > limit);
        let leaves = self.link_free_at.max(now) + self.path.rate.time_for(DATAGRAM);
        self.link_free_at = leaves;
        // All the delay is on the way to the receiver.
        self.schedule(leaves + delay, index, Event::Arrive { number, marked });
    }

    fn arrive(&mut self, index: usize, number: u64, marked: bool) {
        let now = self.now;
        let is_late = now >= self.half;
        let flow = &mut self.flows[index];
        flow.arrived.push((number, marked));
        flow.outcome.delivered += DATAGRAM;
        if is_late {
            flow.outcome.delivered_late += DATAGRAM;
        }
        let in_order = number == flow.expected;
        flow.expected = number + 1;
        flow.unacknowledged += 1;
        let is_last = flow.left == 0;
        if flow.unacknowledged >= 2 || !in_order || marked || is_last {
            flow.unacknowledged = 0;
            let upto = flow.arrived.len();
            self.schedule(now, index, Event::Ack { upto });
        }
    }

    fn acknowledge(&mut self, index: usize, upto: usize) {
        let now = self.now;
        let flow = &mut self.flows[index];
        if upto <= flow.acked {
            return;
        }
        let acked: Vec<(u64, bool)> = flow.arrived[flow.acked..upto].to_vec();
        flow.acked = upto;
        let largest = acked.iter().map(|(number, _)| *number).max().unwrap_or(0);
        let mut largest_packet = None;
        let mut newly_acked = Vec::new();
        for (number, _) in &acked {
            if let Some(packet) = flow.sent.remove(number) {
                flow.in_flight -= packet.bytes;
                if *number == largest {
                    largest_packet = Some(packet);
                }
                newly_acked.push(packet);
            }
        }
        let is_new = flow.largest_acked.is_none_or(|before| largest > before);
        if let Some(packet) = largest_packet.filter(|_| is_new) {
            flow.rtt
                .update(now, now.since(packet.sent_at), Duration::ZERO, None);
        }
        flow.largest_acked = flow.largest_acked.max(Some(largest));
        let newest = flow.largest_acked.unwrap_or(0);
        // RFC 9002 §6.1.1: kPacketThreshold.
        let lost: Vec<u64> = flow
            .sent
            .range(..newest.saturating_sub(2))
            .map(|(n, _)| *n)
            .collect();
        let lost: Vec<Packet> = lost
            .iter()
            .filter_map(|number| flow.sent.remove(number))
            .collect();
        for packet in &lost {
            flow.in_flight -= packet.bytes;
            flow.left = flow.left.saturating_add(packet.bytes);
        }
        flow.outcome.packets_lost += lost.len() as u64;
        for packet in &newly_acked {
            flow.controller.on_packet_acked(now, packet);
        }
        for packet in &lost {
            flow.controller.on_packet_lost(now, packet);
        }
        let marks = acked.iter().filter(|(_, marked)| *marked).count() as u64;
        flow.marks_seen += marks;
        if let Some(packet) = largest_packet.filter(|_| marks > 0) {
            flow.controller.on_ecn_ce(&EcnCe {
                now,
                newly_marked: marks,
                largest_acked: packet.receipt,
                in_flight: flow.in_flight,
                rtt: &flow.rtt,
            });
        }
        if !lost.is_empty() {
            flow.controller.on_lost(&Loss {
                now,
                in_flight: flow.in_flight,
                rtt: &flow.rtt,
                persistent: false,
            });
        }
        flow.controller.on_ack(&Ack {
            now,
            in_flight: flow.in_flight,
            rtt: &flow.rtt,
            has_rtt_sample: largest_packet.is_some() && is_new,
        });
        if flow.left == 0 && flow.in_flight == 0 && flow.outcome.completed.is_none() {
            flow.outcome.completed = Some(now.since(Time::ZERO));
        }
        self.arm_probe(index);
    }

    fn arm_probe(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        flow.probe_generation += 1;
        let generation = flow.probe_generation;
        let at = self.now + flow.rtt.probe_timeout(Duration::from_millis(25));
        self.schedule(at, index, Event::Probe { generation });
    }

    /// xorshift64.
    fn next_random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }
}
