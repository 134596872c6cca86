//! A path and a sender in virtual time, packet by packet, for any [`Controller`].
//!
//! A packet passes a policer, random loss, a drop-tail queue and a link of some rate, then the propagation delay; the
//! receiver acknowledges each at once, or in batches where ACKs are aggregated. The sender obeys window and pacing, and
//! detects losses by the packet threshold of RFC 9002 §6.1.1 and, without ACKs, by a timeout. One seed determines
//! everything.

use core::time::Duration;
use std::{cmp::Reverse, collections::BinaryHeap};

use crate::{
    Ack, Bandwidth, Controller, Loss, Packet, Phase, Rtt, Sent, Time,
    bbr::{Bbr, Config, random::Random},
};

pub(super) const SIZE: u64 = 1200;
const PACKET_THRESHOLD: usize = 3;

/// Properties of the network. Fields may be changed while a flow runs.
#[derive(Clone, Debug)]
pub(super) struct Path {
    pub(super) rate: Bandwidth,
    /// Round-trip time without queueing and transmission.
    pub(super) delay: Duration,
    /// Size of the drop-tail queue before the link.
    pub(super) queue_bytes: u64,
    /// Fraction of packets lost at random.
    pub(super) loss: f64,
    /// ACKs arrive only at multiples of this; zero for no aggregation.
    pub(super) ack_interval: Duration,
    pub(super) policer: Option<Policer>,
    /// Delays every second one of the next packets by this much, so that others overtake it.
    pub(super) reorder: Option<(u64, Duration)>,
    /// Every second one of this many next packets is lost.
    pub(super) drop_alternate: u64,
}

impl Path {
    /// A path with a queue of `queue_bdps` bandwidth-delay products.
    pub(super) fn new(bits_per_second: u64, delay: Duration, queue_bdps: f64) -> Self {
        let rate = Bandwidth::from_bits_per_second(bits_per_second);
        let queue = rate.bytes_in(delay) as f64 * queue_bdps;
        Self {
            rate,
            delay,
            queue_bytes: (queue as u64).max(10 * SIZE),
            loss: 0.0,
            ack_interval: Duration::ZERO,
            policer: None,
            reorder: None,
            drop_alternate: 0,
        }
    }

    pub(super) fn bdp(&self) -> u64 {
        self.rate.bytes_in(self.delay)
    }
}

/// A token bucket that drops excess packets.
#[derive(Clone, Debug)]
pub(super) struct Policer {
    rate: Bandwidth,
    burst: u64,
    tokens: u64,
    at: Time,
}

impl Policer {
    pub(super) const fn new(rate: Bandwidth, burst: u64) -> Self {
        Self {
            rate,
            burst,
            tokens: burst,
            at: Time::ZERO,
        }
    }

    fn passes(&mut self, now: Time) -> bool {
        self.tokens = (self.tokens + self.rate.bytes_in(now.since(self.at))).min(self.burst);
        self.at = now;
        let passes = self.tokens >= SIZE;
        if passes {
            self.tokens -= SIZE;
        }
        passes
    }
}

/// What the application sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Greedy,
    /// One packet at a time, at this rate.
    Steady(Bandwidth),
    Silent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    InFlight,
    Acked,
    Lost,
}

/// A sender and its path.
#[derive(Debug)]
pub(super) struct Flow<C> {
    pub(super) controller: C,
    pub(super) path: Path,
    pub(super) source: Source,
    pub(super) now: Time,
    pub(super) rtt: Rtt,
    pub(super) in_flight: u64,
    /// Bytes acknowledged, dropped and sent.
    pub(super) delivered: u64,
    pub(super) dropped: u64,
    pub(super) sent: u64,
    /// Each phase entered, and when.
    pub(super) phases: Vec<(Time, Phase)>,
    random: Random,
    packets: Vec<(Packet, Fate)>,
    /// Arrivals of acknowledgments at the sender.
    acks: BinaryHeap<Reverse<(Time, usize)>>,
    /// All older packets are acknowledged or lost.
    oldest: usize,
    largest_acked: Option<usize>,
    link_free_at: Time,
    pacer_at: Time,
    source_at: Time,
    active_at: Time,
    told_app_limited: bool,
}

impl Flow<Bbr> {
    /// For five seconds from now.
    pub(super) fn postpone_probe_rtt(&mut self) {
        self.controller.min_rtt.on_probed(self.now);
    }
}

/// A greedy BBR flow with an initial window of ten datagrams.
pub(super) fn flow(path: Path) -> Flow<Bbr> {
    Flow::new(
        Bbr::new(Config {
            initial_window: 10 * SIZE,
            max_datagram_size: SIZE,
            seed: 1,
            burst: None,
        }),
        path,
    )
}

impl<C: Controller> Flow<C> {
    pub(super) fn new(controller: C, path: Path) -> Self {
        Self {
            phases: vec![(Time::ZERO, controller.state().phase)],
            controller,
            path,
            source: Source::Greedy,
            now: Time::ZERO,
            rtt: Rtt::default(),
            in_flight: 0,
            delivered: 0,
            dropped: 0,
            sent: 0,
            random: Random::new(42),
            packets: Vec::new(),
            acks: BinaryHeap::new(),
            oldest: 0,
            largest_acked: None,
            link_free_at: Time::ZERO,
            pacer_at: Time::ZERO,
            source_at: Time::ZERO,
            active_at: Time::ZERO,
            told_app_limited: false,
        }
    }

    pub(super) fn phase(&self) -> Phase {
        self.controller.state().phase
    }

    /// Runs for a span; returns the delivery rate in it.
    pub(super) fn run(&mut self, span: Duration) -> Bandwidth {
        let (end, delivered) = (self.now + span, self.delivered);
        self.run_until(span, |_| false);
        self.now = end;
        Bandwidth::from_delivery(self.delivered - delivered, span)
    }

    /// Runs until this holds; returns whether it did within the limit.
    pub(super) fn run_until(&mut self, limit: Duration, done: impl Fn(&Self) -> bool) -> bool {
        let end = self.now + limit;
        while !done(self) {
            let ack = self.acks.peek().map_or(Time::MAX, |Reverse((at, _))| *at);
            let timeout = self.timeout();
            let send = self.next_send().unwrap_or(Time::MAX).max(self.now);
            let next = ack.min(timeout).min(send);
            if next > end {
                return false;
            }
            self.now = next;
            if next == ack {
                self.receive_acks();
            } else if next == send {
                self.send();
            } else {
                self.time_out();
            }
            let phase = self.phase();
            if self.phases.last().is_none_or(|(_, last)| *last != phase) {
                self.phases.push((self.now, phase));
            }
        }
        true
    }

    pub(super) fn run_to(&mut self, phase: Phase, limit: Duration) {
        assert!(
            self.run_until(limit, |flow| flow.phase() == phase),
            "no {phase} within {limit:?}: {:?}",
            self.phases
        );
    }

    /// Bytes queued at the link.
    pub(super) fn queued(&self) -> u64 {
        self.path.rate.bytes_in(self.link_free_at.since(self.now))
    }

    /// Changes the rate of the link; queued packets are sent at the new one.
    pub(super) fn set_rate(&mut self, rate: Bandwidth) {
        let queued = self.queued();
        self.path.rate = rate;
        self.link_free_at = self.now + rate.time_for(queued);
    }

    fn next_send(&mut self) -> Option<Time> {
        if self.in_flight + SIZE > self.controller.window() {
            return None;
        }
        let ready_at = match self.source {
            Source::Greedy => Time::ZERO,
            Source::Steady(_) => self.source_at,
            Source::Silent => Time::MAX,
        };
        if ready_at > self.now && self.pacer_at <= self.now && !self.told_app_limited {
            self.told_app_limited = true;
            self.controller.on_app_limited(self.now, self.in_flight);
        }
        (ready_at < Time::MAX).then(|| self.pacer_at.max(ready_at))
    }

    fn send(&mut self) {
        self.told_app_limited = false;
        if let Source::Steady(rate) = self.source {
            self.source_at = self.source_at.max(self.now) + rate.time_for(SIZE);
        }
        self.in_flight += SIZE;
        self.sent += SIZE;
        let receipt = self.controller.on_sent(&Sent {
            now: self.now,
            bytes: SIZE,
            in_flight: self.in_flight,
            rtt: &self.rtt,
        });
        let pacing = self.controller.pacing(&self.rtt);
        let credit = pacing.rate.time_for(pacing.burst);
        let earliest =
            Time::from_nanos(self.now.as_nanos().saturating_sub(credit.as_nanos() as u64));
        self.pacer_at = self.pacer_at.max(earliest) + pacing.rate.time_for(SIZE);
        let packet = Packet {
            bytes: SIZE,
            sent_at: self.now,
            receipt,
        };
        self.packets.push((packet, Fate::InFlight));
        self.active_at = self.now;
        self.transmit(self.packets.len() - 1);
    }

    fn transmit(&mut self, index: usize) {
        let now = self.now;
        if !self
            .path
            .policer
            .as_mut()
            .is_none_or(|policer| policer.passes(now))
            || self.random.below_one_second().as_secs_f64() < self.path.loss
            || self.queued() + SIZE > self.path.queue_bytes + SIZE
        {
            self.dropped += SIZE;
            return;
        }
        if self.path.drop_alternate > 0 {
            self.path.drop_alternate -= 1;
            if self.path.drop_alternate % 2 == 1 {
                self.dropped += SIZE;
                return;
            }
        }
        self.link_free_at = self.link_free_at.max(now) + self.path.rate.time_for(SIZE);
        let mut at = self.link_free_at + self.path.delay;
        if let Some((count, extra)) = &mut self.path.reorder {
            *count -= 1;
            if *count % 2 == 1 {
                at = at + *extra;
            } else if *count == 0 {
                self.path.reorder = None;
            }
        }
        let interval = self.path.ack_interval.as_nanos() as u64;
        if interval > 0 {
            at = Time::from_nanos(at.as_nanos().next_multiple_of(interval));
        }
        self.acks.push(Reverse((at, index)));
    }

    /// Processes all acknowledgments that arrive now as one ACK frame.
    fn receive_acks(&mut self) {
        let mut acked = Vec::new();
        while let Some(Reverse((at, index))) = self.acks.peek().copied()
            && at == self.now
        {
            self.acks.pop();
            let (packet, fate) = &mut self.packets[index];
            self.delivered += SIZE;
            if *fate == Fate::Lost {
                self.controller.on_spurious_loss(at, packet);
            } else {
                self.in_flight -= SIZE;
                acked.push(*packet);
            }
            *fate = Fate::Acked;
            if self.largest_acked.is_none_or(|largest| index > largest) {
                self.largest_acked = Some(index);
            }
        }
        let largest = self.largest_acked.unwrap_or(0);
        let has_rtt_sample = acked
            .iter()
            .any(|packet| packet.receipt.send_index() as usize == largest);
        if has_rtt_sample {
            let latest = self.now.since(self.packets[largest].0.sent_at);
            self.rtt.update(self.now, latest, Duration::ZERO, None);
        }
        let lost = self.take_lost(largest.saturating_sub(PACKET_THRESHOLD - 1));
        for packet in &acked {
            self.controller.on_packet_acked(self.now, packet);
        }
        self.tell_lost(&lost, false);
        self.controller.on_ack(&Ack {
            now: self.now,
            in_flight: self.in_flight,
            rtt: &self.rtt,
            has_rtt_sample,
        });
        self.active_at = self.now;
    }

    /// Packets before this one that are still in flight are lost.
    fn take_lost(&mut self, before: usize) -> Vec<Packet> {
        let mut lost = Vec::new();
        while self.oldest < before {
            let (packet, fate) = &mut self.packets[self.oldest];
            if *fate == Fate::InFlight {
                *fate = Fate::Lost;
                self.in_flight -= SIZE;
                lost.push(*packet);
            }
            self.oldest += 1;
        }
        lost
    }

    fn tell_lost(&mut self, lost: &[Packet], persistent: bool) {
        for packet in lost {
            self.controller.on_packet_lost(self.now, packet);
        }
        if !lost.is_empty() {
            self.controller.on_lost(&Loss {
                now: self.now,
                in_flight: self.in_flight,
                rtt: &self.rtt,
                persistent,
            });
        }
    }

    fn timeout(&self) -> Time {
        if self.in_flight == 0 {
            return Time::MAX;
        }
        self.active_at + self.rtt.probe_timeout(self.path.ack_interval) + self.path.delay
    }

    /// No ACK for a long time: everything in flight is lost.
    fn time_out(&mut self) {
        self.lose_all(false);
        self.active_at = self.now;
    }

    /// Declares everything in flight lost. It may still arrive.
    pub(super) fn lose_all(&mut self, persistent: bool) {
        let lost = self.take_lost(self.packets.len());
        self.tell_lost(&lost, persistent);
    }
}
