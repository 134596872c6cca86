//! Propagation from the bottleneck to the far end: adds delay and may reorder packets.
//!
//! Packets that arrive in order are kept in a FIFO. Only packets that others may overtake are kept in a heap.

use alloc::collections::{BinaryHeap, VecDeque};
use core::{cmp::Ordering, time::Duration};

use lastbyte_units::nanos;

use crate::{
    Config, Count, Spacing, Time,
    access::Access,
    packet::Item,
    random::{Component, Random},
};

/// Random delay per packet, in addition to the propagation delay.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Jitter {
    /// The distribution of the delay.
    pub spread: Spread,
    /// Whether packets may overtake each other. If not, a packet that would arrive before its predecessor arrives
    /// together with it.
    pub may_reorder: bool,
}

/// A distribution of delays.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Spread {
    /// Uniformly distributed between zero and this maximum.
    Uniform(Duration),
    /// Exponentially distributed with this mean, and at most 37 times the mean.
    Exponential(Duration),
}

impl Spread {
    fn draw(self, random: Random, index: u64) -> u64 {
        match self {
            Self::Uniform(max) => random.up_to(index, nanos(max)),
            Self::Exponential(mean) => (nanos(mean) as f64 * random.exponential(index)) as u64,
        }
    }
}

/// Holds back random packets, so that later ones overtake them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Reordering {
    /// The probability that a packet is held back.
    pub probability: f64,
    /// The additional delay of a packet that is held back. Packets that arrive in the meantime overtake it.
    pub extra: Duration,
}

/// A single change of the propagation delay, as by a route change. If the delay becomes shorter, packets still arrive
/// in order unless jitter may reorder them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PathChange {
    /// When the change takes effect, compared with the time at which a packet leaves the bottleneck.
    pub at: Time,
    /// The new delay.
    pub delay: Duration,
}

#[derive(Debug)]
struct InTransit<T> {
    arrives: Time,
    departure_index: u64,
    item: Item<T>,
}

/// Ordered for a max-heap: the greatest entry is the one that arrives first or, among equal times, departed first.
#[derive(Debug)]
struct HeapEntry<T>(InTransit<T>);

impl<T> HeapEntry<T> {
    const fn key(&self) -> (Time, u64) {
        (self.0.arrives, self.0.departure_index)
    }
}

impl<T> PartialEq for HeapEntry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for HeapEntry<T> {}

impl<T> PartialOrd for HeapEntry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for HeapEntry<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

/// The times at which held packets are released.
#[derive(Debug)]
struct Releases {
    spacing: Spacing,
    random: Random,
    next: Time,
    drawn: u64,
}

impl Releases {
    /// The first release time at or after `ready`.
    fn after(&mut self, ready: Time) -> Time {
        match self.spacing {
            Spacing::Fixed(period) => {
                let period = nanos(period);
                Time::from_nanos(ready.as_nanos().div_ceil(period).saturating_mul(period))
            }
            Spacing::Random(mean) => {
                if self.next < ready {
                    // A Poisson process is memoryless, so the next release time can be drawn from any point in time.
                    let wait = nanos(mean) as f64 * self.random.exponential(self.drawn);
                    self.next = ready.plus(wait as u64);
                    self.drawn += 1;
                }
                self.next
            }
        }
    }
}

#[derive(Debug)]
pub(crate) struct Propagation<T> {
    access: Access,
    delay: u64,
    change: Option<(Time, u64)>,
    jitter: Option<(Jitter, Random)>,
    reordering: Option<(Reordering, Random)>,
    releases: Option<Releases>,
    in_order: VecDeque<InTransit<T>>,
    reorderable: BinaryHeap<HeapEntry<T>>,
    /// The number of packets that have departed.
    departed: u64,
    inside: Count,
}

impl<T> Propagation<T> {
    pub(crate) fn new(config: &Config, seed: u64) -> Self {
        Self {
            access: Access::new(config, seed),
            delay: nanos(config.delay),
            change: config
                .path_change
                .map(|change| (change.at, nanos(change.delay))),
            jitter: config
                .jitter
                .map(|jitter| (jitter, Random::new(seed, Component::Jitter, 0))),
            reordering: config
                .reordering
                .map(|reordering| (reordering, Random::new(seed, Component::Reordering, 0))),
            releases: config.release.map(|spacing| Releases {
                spacing,
                random: Random::new(seed, Component::Release, 0),
                next: Time::ZERO,
                drawn: 0,
            }),
            in_order: VecDeque::new(),
            reorderable: BinaryHeap::new(),
            departed: 0,
            inside: Count::default(),
        }
    }

    fn delay_at(&self, now: Time) -> u64 {
        match self.change {
            Some((at, delay)) if now >= at => delay,
            _ => self.delay,
        }
    }

    /// Accepts a packet that leaves the bottleneck at `now`. `now` must not decrease.
    pub(crate) fn depart(&mut self, now: Time, item: Item<T>) {
        let mut arrives = self.access.granted(now).plus(self.delay_at(now));
        let mut may_be_overtaken = false;
        if let Some((jitter, random)) = &self.jitter {
            arrives = arrives.plus(jitter.spread.draw(*random, item.tag));
            may_be_overtaken = jitter.may_reorder;
        }
        if let Some((reordering, random)) = &self.reordering
            && random.happens(item.tag, reordering.probability)
        {
            arrives = arrives.plus(nanos(reordering.extra));
            may_be_overtaken = true;
        }
        if let Some(releases) = &mut self.releases {
            arrives = releases.after(arrives);
        }
        if !may_be_overtaken && let Some(ahead) = self.in_order.back() {
            arrives = arrives.max(ahead.arrives);
        }
        self.inside.add(item.packet.bytes);
        let packet = InTransit {
            arrives,
            departure_index: self.departed,
            item,
        };
        self.departed += 1;
        if may_be_overtaken {
            self.reorderable.push(HeapEntry(packet));
        } else {
            self.in_order.push_back(packet);
        }
    }

    /// Removes and returns the next packet that arrives at or before `now`.
    pub(crate) fn arrive(&mut self, now: Time) -> Option<(Time, Item<T>)> {
        let next_in_order = self
            .in_order
            .front()
            .map(|packet| (packet.arrives, packet.departure_index));
        let is_from_heap = match (next_in_order, self.reorderable.peek().map(HeapEntry::key)) {
            (Some(fifo), Some(heap)) => heap < fifo,
            (fifo, _) => fifo.is_none(),
        };
        let first = if is_from_heap {
            self.reorderable
                .peek()
                .filter(|entry| entry.0.arrives <= now)?;
            self.reorderable.pop()?.0
        } else {
            self.in_order
                .front()
                .filter(|packet| packet.arrives <= now)?;
            self.in_order.pop_front()?
        };
        self.inside.take(first.item.packet.bytes);
        Some((first.arrives, first.item))
    }

    /// The next arrival of a packet that has left the bottleneck.
    pub(crate) fn next_arrival(&self) -> Option<Time> {
        let fifo = self.in_order.front().map(|packet| packet.arrives);
        let heap = self.reorderable.peek().map(|entry| entry.0.arrives);
        fifo.into_iter().chain(heap).min()
    }

    /// The earliest arrival of a packet that leaves the bottleneck at `departure` or later. If the path becomes
    /// shorter, a later packet may arrive earlier.
    pub(crate) fn earliest_arrival(&self, departure: Time) -> Time {
        let arrival = departure.plus(self.delay_at(departure));
        match self.change {
            Some((at, delay)) if departure < at => arrival.min(at.plus(delay)),
            _ => arrival,
        }
    }

    /// The packets in transit.
    pub(crate) const fn inside(&self) -> Count {
        self.inside
    }
}

#[cfg(test)]
mod tests;
