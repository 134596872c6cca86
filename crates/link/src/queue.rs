//! Queues in front of the bottleneck: scheduling order, drops and marks.
//!
//! The packet in service is not part of the queue: it counts neither toward limits nor toward depths. A packet that
//! finds the bottleneck idle, with no packet in service or queued, is always accepted, whatever the limit and its size.
//! A limit of zero therefore means a link without a buffer.

mod cobalt;
mod codel;
mod drop_tail;
mod dual_pi2;
mod fifo;
mod fq_codel;
mod pie;
mod updates;

use core::time::Duration;

pub(crate) use self::{
    codel::CoDelQueue, drop_tail::DropTailQueue, dual_pi2::DualPi2Queue, fq_codel::FqCoDelQueue,
    pie::PieQueue,
};
use crate::{
    Count, DropReason, Ecn, Event, Observation, Observer, Rate, Statistics, Time, packet::Item,
};

/// The limit of a queue. Default: unlimited.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Limit {
    /// No limit.
    #[default]
    Unlimited,
    /// A number of bytes, including the arriving packet.
    Bytes(u64),
    /// A number of packets, including the arriving one.
    Packets(u64),
    /// The number of bytes that pass in this time at the link's nominal rate: its constant rate, [`Schedule::nominal`]
    /// or [`Trace::nominal`]. The limit in bytes is fixed and does not follow rate changes.
    ///
    /// [`Schedule::nominal`]: crate::Schedule::nominal
    /// [`Trace::nominal`]: crate::Trace::nominal
    Time(Duration),
}

/// The queue in front of the bottleneck. Default: [`DropTail`] without a limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Queue {
    /// First in, first out. Packets that do not fit are dropped.
    DropTail(DropTail),
    /// First in, first out, with drops or marks at the head that keep the delay short (RFC 8289).
    CoDel(CoDel),
    /// One queue per flow, served in turn, each with `CoDel` (RFC 8290).
    FqCoDel(FqCoDel),
    /// First in, first out, with drops or marks on arrival by a probability that keeps the delay at a target (RFC 8033).
    Pie(Pie),
    /// A queue for L4S packets, ECT(1), and one for all others, coupled (RFC 9332).
    DualPi2(DualPi2),
    /// One queue per flow, served in turn, each with COBALT, as Linux's CAKE. Of CAKE, this has neither `DiffServ` tins, nor
    /// fairness between hosts, nor its ACK filter, nor the set-associative hash that avoids collisions; its shaper is the
    /// rate of the link.
    Cake(FqCoDel),
}

impl Queue {
    /// Whether it marks ECN-capable packets.
    pub const fn marks(&self) -> bool {
        match self {
            Self::DropTail(queue) => queue.mark_above.is_some(),
            Self::CoDel(queue) => queue.ecn,
            Self::FqCoDel(queue) | Self::Cake(queue) => queue.codel.ecn,
            Self::Pie(queue) => queue.ecn,
            Self::DualPi2(_) => true,
        }
    }
}

impl Default for Queue {
    fn default() -> Self {
        Self::DropTail(DropTail::default())
    }
}

/// First in, first out. A packet with which the queue would exceed the limit is dropped.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct DropTail {
    /// The limit. Default: unlimited.
    pub limit: Limit,
    /// ECN-capable packets with which the queue exceeds this threshold are marked on arrival, as with the step marking
    /// of RFC 8257 §3.1. Default: no marking.
    pub mark_above: Option<Limit>,
}

/// Controlled delay (RFC 8289).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CoDel {
    /// The acceptable standing queue delay. Default: 5 ms (RFC 8289 §4.4).
    pub target: Duration,
    /// How long the delay may stay above `target` before the first drop: about a round-trip time. Longer than zero.
    /// Default: 100 ms (RFC 8289 §4.3).
    pub interval: Duration,
    /// Whether to mark ECN-capable packets instead of dropping them. Default: `false`.
    pub ecn: bool,
    /// The total limit. `CoDel` drops arriving packets that do not fit; FQ-CoDel drops from the head of the largest
    /// flow. Default: 1000 packets, for FQ-CoDel 10240 (RFC 8290 §5.2.2).
    pub limit: Limit,
}

impl Default for CoDel {
    fn default() -> Self {
        Self {
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            ecn: false,
            limit: Limit::Packets(1000),
        }
    }
}

/// Flow queueing with controlled delay (RFC 8290).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FqCoDel {
    /// The `CoDel` parameters of each queue, and the limit of all queues together.
    pub codel: CoDel,
    /// The number of queues to which flows are hashed, 1 to 65536. Default: 1024.
    pub flows: u32,
    /// The number of bytes that a flow may send per round, at least 256. Default: 1514.
    pub quantum: u32,
}

impl Default for FqCoDel {
    fn default() -> Self {
        Self {
            codel: CoDel {
                limit: Limit::Packets(10_240),
                ..CoDel::default()
            },
            flows: 1024,
            quantum: 1514,
        }
    }
}

/// Proportional integral controller enhanced (RFC 8033).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Pie {
    /// The queue delay to keep: `QDELAY_REF`. Default: 15 ms (RFC 8033 §4.1).
    pub target: Duration,
    /// How long a burst after a pause is spared: `MAX_BURST`. Default: 150 ms (RFC 8033 §4.4).
    pub burst: Duration,
    /// Whether to mark ECN-capable packets instead of dropping them, while the probability is below 10 %. Default: `false`.
    pub ecn: bool,
    /// The limit. Arriving packets that do not fit are dropped. Default: 1000 packets.
    pub limit: Limit,
}

impl Default for Pie {
    fn default() -> Self {
        Self {
            target: Duration::from_millis(15),
            burst: Duration::from_millis(150),
            ecn: false,
            limit: Limit::Packets(1000),
        }
    }
}

/// Dual-queue coupled AQM (RFC 9332). ECN-capable packets are always marked in place of drops.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DualPi2 {
    /// The delay of the classic queue to keep. Default: 15 ms (RFC 9332 A.1).
    pub target: Duration,
    /// The limit of both queues together. Arriving packets that do not fit are dropped. Default: 10 000 packets, as in
    /// Linux.
    pub limit: Limit,
}

impl Default for DualPi2 {
    fn default() -> Self {
        Self {
            target: Duration::from_millis(15),
            limit: Limit::Packets(10_000),
        }
    }
}

/// A [`Limit`] in bytes and packets.
#[derive(Clone, Copy, Debug)]
struct ResolvedLimit {
    bytes: u64,
    packets: u64,
}

impl ResolvedLimit {
    fn new(limit: Limit, nominal: Rate) -> Self {
        let (bytes, packets) = match limit {
            Limit::Unlimited => (u64::MAX, u64::MAX),
            Limit::Bytes(bytes) => (bytes, u64::MAX),
            Limit::Packets(packets) => (u64::MAX, packets),
            Limit::Time(time) => (nominal.bytes_in(time), u64::MAX),
        };
        Self { bytes, packets }
    }

    const fn holds(self, depth: Count) -> bool {
        depth.bytes <= self.bytes && depth.packets <= self.packets
    }

    const fn holds_with(self, mut depth: Count, bytes: u32) -> bool {
        depth.add(bytes);
        self.holds(depth)
    }
}

/// Receives events from the components of a link.
#[derive(Debug)]
pub(crate) struct Sink<'a, O> {
    /// The number of the hop.
    pub(crate) hop: u8,
    pub(crate) statistics: &'a mut Statistics,
    pub(crate) observer: &'a mut O,
}

impl<O> Sink<'_, O> {
    #[inline]
    pub(crate) fn emit<T>(&mut self, at: Time, event: Event, item: &Item<T>, queue: Count)
    where
        O: Observer<T>,
    {
        self.observer.on_event(&Observation {
            at,
            hop: self.hop,
            event,
            number: item.number(),
            packet: &item.packet,
            queue,
        });
    }

    pub(crate) fn drop<T>(&mut self, at: Time, reason: DropReason, item: &Item<T>, queue: Count)
    where
        O: Observer<T>,
    {
        self.statistics.dropped[reason as usize].add(item.packet.bytes);
        self.emit(at, Event::Dropped(reason), item, queue);
    }

    fn mark<T>(&mut self, at: Time, item: &mut Item<T>, queue: Count)
    where
        O: Observer<T>,
    {
        // A packet that is already marked is not counted again.
        if item.packet.ecn != Ecn::Ce {
            item.packet.ecn = Ecn::Ce;
            self.statistics.marked.add(item.packet.bytes);
            self.emit(at, Event::Marked, item, queue);
        }
    }
}

/// A queue of any kind.
#[derive(Debug)]
pub(crate) enum Discipline<T> {
    DropTail(DropTailQueue<T>),
    CoDel(CoDelQueue<T>),
    FqCoDel(FqCoDelQueue<T>),
    Pie(PieQueue<T>),
    DualPi2(DualPi2Queue<T>),
}

impl<T> Discipline<T> {
    pub(crate) fn new(config: &Queue, nominal: Rate, seed: u64) -> Self {
        match config {
            Queue::DropTail(config) => Self::DropTail(DropTailQueue::new(config, nominal)),
            Queue::CoDel(config) => Self::CoDel(CoDelQueue::new(config, nominal)),
            Queue::FqCoDel(config) => Self::FqCoDel(FqCoDelQueue::new(config, nominal, seed)),
            Queue::Cake(config) => Self::FqCoDel(FqCoDelQueue::cake(config, nominal, seed)),
            Queue::Pie(config) => Self::Pie(PieQueue::new(config, nominal, seed)),
            Queue::DualPi2(config) => Self::DualPi2(DualPi2Queue::new(config, nominal)),
        }
    }

    /// Enqueues a packet, or drops it or others in its place. If `is_idle`, the bottleneck is idle and limits do not
    /// apply.
    pub(crate) fn enqueue<O: Observer<T>>(
        &mut self,
        now: Time,
        item: Item<T>,
        is_idle: bool,
        sink: &mut Sink<'_, O>,
    ) {
        match self {
            Self::DropTail(queue) => queue.enqueue(now, item, is_idle, sink),
            Self::CoDel(queue) => queue.enqueue(now, item, is_idle, sink),
            Self::FqCoDel(queue) => queue.enqueue(now, item, is_idle, sink),
            Self::Pie(queue) => queue.enqueue(now, item, is_idle, sink),
            Self::DualPi2(queue) => queue.enqueue(now, item, is_idle, sink),
        }
    }

    /// Dequeues the next packet. Returns `None` if the queue is empty, or all its packets were dropped.
    pub(crate) fn dequeue<O: Observer<T>>(
        &mut self,
        now: Time,
        sink: &mut Sink<'_, O>,
    ) -> Option<Item<T>> {
        match self {
            Self::DropTail(queue) => queue.dequeue(),
            Self::CoDel(queue) => queue.dequeue(now, sink),
            Self::FqCoDel(queue) => queue.dequeue(now, sink),
            Self::Pie(queue) => queue.dequeue(now),
            Self::DualPi2(queue) => queue.dequeue(now, sink),
        }
    }

    pub(crate) const fn depth(&self) -> Count {
        match self {
            Self::DropTail(queue) => queue.depth(),
            Self::CoDel(queue) => queue.depth(),
            Self::FqCoDel(queue) => queue.depth(),
            Self::Pie(queue) => queue.depth(),
            Self::DualPi2(queue) => queue.depth(),
        }
    }
}

#[cfg(test)]
mod tests;
