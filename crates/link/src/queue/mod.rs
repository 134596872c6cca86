//! What waits before the bottleneck, in which order it leaves, and what is dropped or marked when there is too much.
//!
//! The packet in service is out of the queue: it counts neither for limits nor for depths. A packet that finds the
//! bottleneck idle, with nothing in service and nothing waiting, always gets in, however small the limit and however large
//! the packet; so a limit of zero is a link without a buffer.

mod codel;
mod drop_tail;
mod fq_codel;

use core::time::Duration;

pub(crate) use self::{codel::CoDelQueue, drop_tail::DropTailQueue, fq_codel::FqCoDelQueue};
use crate::{
    Count, DropReason, Ecn, Event, Observation, Observer, Rate, Statistics, Time, packet::Item,
};

/// How much may wait. Default: without a limit.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Limit {
    /// Any number of packets.
    #[default]
    Unlimited,
    /// So many bytes, with the packet that would join.
    Bytes(u64),
    /// So many packets, with the one that would join.
    Packets(u64),
    /// As many bytes as pass in this time at the link's nominal rate: its constant rate, or what [`Schedule::nominal`] or
    /// [`Trace::nominal`] say. A buffer has a size, which does not change when the rate does.
    ///
    /// [`Schedule::nominal`]: crate::Schedule::nominal
    /// [`Trace::nominal`]: crate::Trace::nominal
    Time(Duration),
}

/// The queue before the bottleneck. Default: [`DropTail`] without a limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Queue {
    /// First in, first out; what does not fit is dropped.
    DropTail(DropTail),
    /// First in, first out, with drops or marks at the head that keep the delay short (RFC 8289).
    CoDel(CoDel),
    /// A queue a flow, served in turn, each with `CoDel` (RFC 8290).
    FqCoDel(FqCoDel),
}

impl Default for Queue {
    fn default() -> Self {
        Self::DropTail(DropTail::default())
    }
}

/// First in, first out. A packet that would lift the queue above the limit is dropped.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct DropTail {
    /// How much may wait. Default: any number of packets.
    pub limit: Limit,
    /// Packets that are capable of ECN and lift the queue above this are marked as they join: the step of RFC 8257 §3.1.
    /// Default: none are marked.
    pub mark_above: Option<Limit>,
}

/// Controlled delay (RFC 8289).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CoDel {
    /// The delay that a standing queue may have. Default: 5 ms (RFC 8289 §4.4).
    pub target: Duration,
    /// How long the delay may stay above target before the first drop: a round trip. More than zero. Default: 100 ms
    /// (RFC 8289 §4.3).
    pub interval: Duration,
    /// Whether to mark packets that are capable of ECN where others are dropped. Default: no.
    pub ecn: bool,
    /// How much may wait in all. What does not fit is dropped at the tail by `CoDel`, from the head of the largest flow by
    /// FQ-CoDel. Default: 1000 packets, in FQ-CoDel 10240 (RFC 8290 §5.2.2).
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
    /// The control of each queue, and the limit of all of them together.
    pub codel: CoDel,
    /// How many queues flows are spread over by a hash, 1 to 65536. Default: 1024.
    pub flows: u32,
    /// How many bytes a flow may send in its turn, 256 or more. Default: 1514.
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

/// A limit in numbers that can be compared.
#[derive(Clone, Copy, Debug)]
struct Room {
    bytes: u64,
    packets: u64,
}

impl Room {
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

/// Where a link's pieces say what they do.
#[derive(Debug)]
pub(crate) struct Sink<'a, O> {
    pub(crate) statistics: &'a mut Statistics,
    pub(crate) observer: &'a mut O,
}

impl<O> Sink<'_, O> {
    #[inline]
    pub(crate) fn tell<T>(&mut self, at: Time, event: Event, item: &Item<T>, queue: Count)
    where
        O: Observer<T>,
    {
        self.observer.on_event(&Observation {
            at,
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
        self.tell(at, Event::Dropped(reason), item, queue);
    }

    fn mark<T>(&mut self, at: Time, item: &mut Item<T>, queue: Count)
    where
        O: Observer<T>,
    {
        // A second mark changes nothing, and is none.
        if item.packet.ecn != Ecn::Ce {
            item.packet.ecn = Ecn::Ce;
            self.statistics.marked.add(item.packet.bytes);
            self.tell(at, Event::Marked, item, queue);
        }
    }
}

/// Any of the queues.
#[derive(Debug)]
pub(crate) enum Discipline<T> {
    DropTail(DropTailQueue<T>),
    CoDel(CoDelQueue<T>),
    FqCoDel(FqCoDelQueue<T>),
}

impl<T> Discipline<T> {
    pub(crate) fn new(config: &Queue, nominal: Rate, seed: u64) -> Self {
        match config {
            Queue::DropTail(config) => Self::DropTail(DropTailQueue::new(config, nominal)),
            Queue::CoDel(config) => Self::CoDel(CoDelQueue::new(config, nominal)),
            Queue::FqCoDel(config) => Self::FqCoDel(FqCoDelQueue::new(config, nominal, seed)),
        }
    }

    /// Takes a packet in, or drops it, or others for it. `is_idle`: the bottleneck is, so limits do not matter.
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
        }
    }

    /// The packet that leaves next, if any. There is one if the queue is not empty.
    pub(crate) fn dequeue<O: Observer<T>>(
        &mut self,
        now: Time,
        sink: &mut Sink<'_, O>,
    ) -> Option<Item<T>> {
        match self {
            Self::DropTail(queue) => queue.dequeue(),
            Self::CoDel(queue) => queue.dequeue(now, sink),
            Self::FqCoDel(queue) => queue.dequeue(now, sink),
        }
    }

    pub(crate) const fn depth(&self) -> Count {
        match self {
            Self::DropTail(queue) => queue.depth(),
            Self::CoDel(queue) => queue.depth(),
            Self::FqCoDel(queue) => queue.depth(),
        }
    }
}

#[cfg(test)]
mod tests;
