//! One direction of a path, as a chain of components.

use crate::{
    Config, ConfigError, Count, Delivery, DropReason, Event, Observer, Packet, Statistics, Time,
    bottleneck::Bottleneck,
    loss::LossProcess,
    packet::{DUPLICATE, Item},
    policer::TokenBucket,
    propagation::Propagation,
    queue::Sink,
    random::{Component, Random},
};
use alloc::vec::Vec;

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
#[derive(Debug)]
pub struct Link<T> {
    black_hole: Option<BlackHole>,
    policer: Option<TokenBucket>,
    losses: Vec<LossProcess>,
    duplication: Option<(f64, Random)>,
    bottleneck: Bottleneck<T>,
    propagation: Propagation<T>,
    statistics: Statistics,
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
        let random = Random::new(seed, Component::Duplication, 0);
        Ok(Self {
            black_hole: config.black_hole,
            policer: config.policer.as_ref().map(TokenBucket::new),
            losses: config
                .loss
                .iter()
                .enumerate()
                .map(|(index, model)| LossProcess::new(model, seed, index))
                .collect(),
            duplication: (config.duplication > 0.0).then_some((config.duplication, random)),
            bottleneck: Bottleneck::new(&config.capacity, &config.queue, config.departure, seed),
            propagation: Propagation::new(config, seed),
            statistics: Statistics::default(),
            now: Time::ZERO,
        })
    }

    /// Sends a packet.
    pub fn send<O: Observer<T>>(&mut self, now: Time, packet: Packet<T>, observer: &mut O) {
        self.advance(now, observer);
        let now = self.now;
        let number = self.statistics.sent.packets;
        self.statistics.sent.add(packet.bytes);
        // Every model must see every packet, so that its later decisions do not depend on other components.
        let mut is_lost = false;
        for model in &mut self.losses {
            is_lost |= model.is_lost(now, number);
        }
        let reason = if self
            .black_hole
            .is_some_and(|hole| packet.bytes > hole.mtu && now >= hole.from)
        {
            Some(DropReason::BlackHole)
        } else if self
            .policer
            .as_mut()
            .is_some_and(|policer| !policer.admits(now, packet.bytes))
        {
            Some(DropReason::Policer)
        } else {
            is_lost.then_some(DropReason::Loss)
        };
        let item = Item {
            packet,
            tag: number,
            queued_at: now,
        };
        let mut sink = Sink {
            statistics: &mut self.statistics,
            observer,
        };
        let depth = self.bottleneck.queue().depth();
        if let Some(reason) = reason {
            return sink.drop(now, reason, &item, depth);
        }
        let copy = match self.duplication {
            Some((probability, random)) if random.happens(number, probability) => {
                sink.statistics.duplicated.add(item.packet.bytes);
                sink.emit(now, Event::Duplicated, &item, depth);
                Some(Item {
                    tag: number | DUPLICATE,
                    ..item.clone()
                })
            }
            _ => None,
        };
        let out = &mut self.propagation;
        self.bottleneck.offer(now, item, &mut sink, out);
        if let Some(copy) = copy {
            self.bottleneck.offer(now, copy, &mut sink, out);
        }
    }

    /// Returns the next packet that arrived at or before `now`, in order of arrival. Call it until it returns `None`.
    pub fn poll<O: Observer<T>>(&mut self, now: Time, observer: &mut O) -> Option<Delivery<T>> {
        self.advance(now, observer);
        let (at, item) = self.propagation.arrive(self.now)?;
        self.statistics.delivered.add(item.packet.bytes);
        Some(Delivery {
            at,
            number: item.number(),
            packet: item.packet,
        })
    }

    /// When to call [`poll`](Self::poll) next, or `None` if there is nothing to wait for. No packet arrives earlier.
    /// With a fixed delay, a packet arrives at the deadline unless the queue drops it; with variable delays or a trace,
    /// it may take further deadlines.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        let departs = self.bottleneck.next_departure();
        let departs = departs.map(|departure| self.propagation.earliest_arrival(departure));
        earliest(departs, self.propagation.next_arrival())
    }

    /// The time of the next internal event: the end of a transmission, a delivery opportunity of a trace, or an
    /// arrival. Each call to the link catches up on past events, so observers receive them late, but with the correct
    /// time. To observe events or queue depths at the exact time, call [`poll`](Self::poll) at these times. Packets are
    /// not affected.
    #[must_use]
    pub fn next_event(&self) -> Option<Time> {
        earliest(
            self.bottleneck.next_event(),
            self.propagation.next_arrival(),
        )
    }

    /// The number of bytes in the queue, without the packet in service, as of the last call of [`send`](Self::send) or
    /// [`poll`](Self::poll).
    #[must_use]
    pub const fn queue_bytes(&self) -> u64 {
        self.bottleneck.queue().depth().bytes
    }

    /// The number of packets in the queue, counted like [`queue_bytes`](Self::queue_bytes).
    #[must_use]
    pub const fn queue_packets(&self) -> u64 {
        self.bottleneck.queue().depth().packets
    }

    /// The packets inside the link: queued, in service or in transit.
    #[must_use]
    pub fn inside(&self) -> Count {
        let mut inside = self.propagation.inside();
        for part in [
            self.bottleneck.queue().depth(),
            self.bottleneck.in_service(),
        ] {
            inside.packets += part.packets;
            inside.bytes += part.bytes;
        }
        inside
    }

    /// The counters as of the last call.
    #[must_use]
    pub const fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    #[inline]
    fn advance<O: Observer<T>>(&mut self, now: Time, observer: &mut O) {
        self.now = self.now.max(now);
        let mut sink = Sink {
            statistics: &mut self.statistics,
            observer,
        };
        self.bottleneck
            .advance(self.now, &mut sink, &mut self.propagation);
    }
}

/// The earlier of two times. [`Time::MAX`] counts as `None`.
fn earliest(a: Option<Time>, b: Option<Time>) -> Option<Time> {
    a.into_iter().chain(b).min().filter(|at| *at < Time::MAX)
}

#[cfg(test)]
mod tests;
