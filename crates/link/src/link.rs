//! One direction of a path: a hop, or several in series.

use crate::{
    Config, ConfigError, Count, Delivery, Observer, Packet, Statistics, Time,
    hop::Hop,
    packet::Item,
    random::{Component, Random},
};
use alloc::{boxed::Box, collections::VecDeque, vec::Vec};

/// Silently drops packets above an MTU, like a path on which ICMP is filtered (RFC 8899 §3).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BlackHole {
    /// The largest packet that is not dropped, in bytes.
    pub mtu: u32,
    /// When the limit takes effect. Packets sent before pass regardless of their size.
    pub from: Time,
}

/// One direction of a path: packets go in, and come out later or not at all. A path consists of two links.
///
/// The caller drives the link: it passes in packets with [`send`](Self::send), queries the
/// [`deadline`](Self::deadline), and retrieves delivered packets with [`poll`](Self::poll). Times must not decrease; a
/// time before the latest one counts as the latest one.
///
/// A link has one hop, or several in series ([`Config::further`]). A packet passes all of them, or some
/// ([`Packet::through`]).
#[derive(Debug)]
pub struct Link<T> {
    first: Hop<T>,
    /// The hops after the first, if there are any.
    series: Option<Box<Series<T>>>,
}

/// The hops after the first.
#[derive(Debug)]
struct Series<T> {
    hops: Vec<Hop<T>>,
    /// The number of the bottleneck.
    bottleneck: usize,
    /// Packets that have left the link and are not yet retrieved, in order of arrival.
    arrived: VecDeque<(Time, Item<T>)>,
    arrived_bytes: u64,
    /// Packets sent into any hop.
    sent: Count,
    /// Packets retrieved from any hop.
    delivered: Count,
    now: Time,
}

impl<T: Clone> Link<T> {
    /// Creates an empty link at the epoch. All random decisions derive from `seed`: the same seed with the same packets
    /// at the same times gives the same result.
    ///
    /// # Errors
    ///
    /// Returns the [`ConfigError`] of [`Config::check`] if a setting is out of range.
    pub fn new(config: &Config, seed: u64) -> Result<Self, ConfigError> {
        config.check()?;
        let hops = config.further.iter().zip(1..);
        let hops: Vec<_> = hops
            .map(|(config, index)| {
                let seed = Random::new(seed, Component::Hop, u64::from(index)).at(0);
                Hop::new(config, index, seed)
            })
            .collect();
        Ok(Self {
            first: Hop::new(config, 0, seed),
            series: (!hops.is_empty()).then(|| {
                Box::new(Series {
                    hops,
                    bottleneck: config.bottleneck().0,
                    arrived: VecDeque::new(),
                    arrived_bytes: 0,
                    sent: Count::default(),
                    delivered: Count::default(),
                    now: Time::ZERO,
                })
            }),
        })
    }

    /// Sends a packet.
    pub fn send<O: Observer<T>>(&mut self, now: Time, packet: Packet<T>, observer: &mut O) {
        let Self { first, series } = self;
        let (hop, number) = match series {
            None => {
                first.advance(now, observer);
                let number = first.statistics().sent.packets;
                (first, number)
            }
            Some(series) => {
                series.advance(first, now, observer);
                let number = series.sent.packets;
                series.sent.add(packet.bytes);
                let last = series.hops.len();
                let hop = series.hop_mut(first, last.min(packet.enters.into()));
                (hop, number)
            }
        };
        let item = Item {
            packet,
            tag: number,
            queued_at: now,
        };
        hop.receive(item, observer);
    }

    /// Returns the next packet that arrived at or before `now`, in order of arrival. Call it until it returns `None`.
    pub fn poll<O: Observer<T>>(&mut self, now: Time, observer: &mut O) -> Option<Delivery<T>> {
        let (at, item) = match &mut self.series {
            None => self.first.poll(now, observer)?,
            Some(series) => {
                series.advance(&mut self.first, now, observer);
                series.retrieve()?
            }
        };
        Some(Delivery {
            at,
            number: item.number(),
            packet: item.packet,
        })
    }

    /// When to call [`poll`](Self::poll) next, or `None` if there is nothing to wait for. No packet arrives earlier.
    /// With a fixed delay, a packet arrives at the deadline unless the queue drops it; with variable delays, a trace or
    /// several hops, it may take further deadlines.
    pub fn deadline(&self) -> Option<Time> {
        self.next_of(Hop::deadline)
    }

    /// The time of the next internal event: the end of a transmission, a delivery opportunity of a trace, or an
    /// arrival. Each call to the link catches up on past events, so observers receive them late, but with the correct
    /// time. To observe events or queue depths at the exact time, call [`poll`](Self::poll) at these times. Packets are
    /// not affected.
    pub fn next_event(&self) -> Option<Time> {
        self.next_of(Hop::next_event)
    }

    /// The number of bytes in the queue of the bottleneck ([`Config::bottleneck`]), without the packet in service, as of
    /// the last call of [`send`](Self::send) or [`poll`](Self::poll).
    pub fn queue_bytes(&self) -> u64 {
        self.bottleneck().depth().bytes
    }

    /// The number of packets in the queue, counted like [`queue_bytes`](Self::queue_bytes).
    pub fn queue_packets(&self) -> u64 {
        self.bottleneck().depth().packets
    }

    /// The packets inside the link: queued, in service or in transit.
    pub fn inside(&self) -> Count {
        let first = self.first.inside();
        let Some(series) = &self.series else {
            return first;
        };
        let arrived = Count {
            packets: series.arrived.len() as u64,
            bytes: series.arrived_bytes,
        };
        let further = series.hops.iter().map(Hop::inside);
        further.fold(first.plus(arrived), Count::plus)
    }

    /// The counters as of the last call. With several hops, `served`, `busy` and the peaks of the queue are those of the
    /// bottleneck ([`Config::bottleneck`]); packets are duplicated, marked and dropped on any hop.
    pub fn statistics(&self) -> Statistics {
        let mut all = self.bottleneck().statistics().clone();
        if let Some(series) = &self.series {
            all.sent = series.sent;
            all.delivered = series.delivered;
            all.sum_up((0..=series.hops.len()).filter_map(|hop| self.hop_statistics(hop)));
        }
        all
    }

    /// The counters of one hop, numbered from 0, or `None` if the link has fewer hops. Packets that come from another
    /// hop count as sent, and those that go to another one as delivered.
    pub fn hop_statistics(&self, hop: usize) -> Option<&Statistics> {
        self.hop(hop).map(Hop::statistics)
    }

    fn hop(&self, index: usize) -> Option<&Hop<T>> {
        match index.checked_sub(1) {
            None => Some(&self.first),
            Some(index) => self.series.as_ref()?.hops.get(index),
        }
    }

    fn bottleneck(&self) -> &Hop<T> {
        let index = self.series.as_ref().map_or(0, |series| series.bottleneck);
        self.hop(index).unwrap_or(&self.first)
    }

    /// The earliest of these times of all hops, and of the packets to be retrieved.
    #[inline]
    fn next_of(&self, time: impl Fn(&Hop<T>) -> Option<Time>) -> Option<Time> {
        let first = time(&self.first);
        match &self.series {
            None => first,
            Some(series) => {
                let arrived = series.arrived.front().map(|(at, _)| *at);
                let further = series.hops.iter().filter_map(time);
                first.into_iter().chain(further).chain(arrived).min()
            }
        }
    }
}

impl<T: Clone> Series<T> {
    /// The hop with this number, or the first if there is none.
    fn hop_mut<'a>(&'a mut self, first: &'a mut Hop<T>, index: usize) -> &'a mut Hop<T> {
        let further = index.checked_sub(1);
        further
            .and_then(|index| self.hops.get_mut(index))
            .unwrap_or(first)
    }

    /// Does what happens on all hops at or before `now`, in order of time, and of hops at the same time.
    fn advance<O: Observer<T>>(&mut self, first: &mut Hop<T>, now: Time, observer: &mut O) {
        self.now = self.now.max(now);
        let now = self.now;
        loop {
            let further = self.hops.iter();
            let times = core::iter::once(&*first)
                .chain(further)
                .map(Hop::next_event);
            let next = times
                .enumerate()
                .filter_map(|(hop, at)| at.map(|at| (at, hop)))
                .min();
            match next {
                Some((at, hop)) if at <= now => self.advance_hop(first, hop, at, observer),
                _ => break,
            }
        }
        // What happens at the latest time of all is no event.
        for hop in 0..=self.hops.len() {
            self.advance_hop(first, hop, now, observer);
        }
    }

    /// Does what happens on a hop at or before `now`, and passes its packets to the next one.
    fn advance_hop<O: Observer<T>>(
        &mut self,
        first: &mut Hop<T>,
        index: usize,
        now: Time,
        observer: &mut O,
    ) {
        while let Some((at, item)) = self.hop_mut(first, index).poll(now, observer) {
            let has_next = index < self.hops.len() && index < item.packet.leaves.into();
            if has_next {
                let next = self.hop_mut(first, index + 1);
                next.advance(at, observer);
                next.receive(item, observer);
            } else {
                self.arrived_bytes += u64::from(item.packet.bytes);
                self.arrived.push_back((at, item));
            }
        }
    }

    /// Takes the next packet that has arrived.
    fn retrieve(&mut self) -> Option<(Time, Item<T>)> {
        let (at, item) = self.arrived.pop_front()?;
        self.arrived_bytes -= u64::from(item.packet.bytes);
        self.delivered.add(item.packet.bytes);
        Some((at, item))
    }
}

#[cfg(test)]
mod tests;
