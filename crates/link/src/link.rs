//! The link: one direction of a path, as a chain of its pieces.

use crate::{
    Config, ConfigError, Count, Delivery, DropReason, Event, Observer, Packet, Statistics, Time,
    bottleneck::Bottleneck,
    loss::Losses,
    packet::{DUPLICATE, Item},
    policer::Bucket,
    propagation::Propagation,
    queue::Sink,
    random::{Piece, Random},
};
use alloc::vec::Vec;

/// Packets larger than the path carries vanish without a word, as where ICMP is filtered (RFC 8899 §3).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BlackHole {
    /// The largest packet that passes, in bytes.
    pub mtu: u32,
    /// From when on; packets handed in before pass whatever their size.
    pub from: Time,
}

/// One direction of a path: packets go in, and come out later, or not at all. Two of them are a path.
///
/// It does nothing by itself. Whoever drives it hands in packets with [`send`](Self::send), asks for the
/// [`deadline`](Self::deadline), and takes out what arrived with [`poll`](Self::poll). Times handed in should never go back;
/// one that does counts as the latest before it.
#[derive(Debug)]
pub struct Link<T> {
    black_hole: Option<BlackHole>,
    policer: Option<Bucket>,
    losses: Vec<Losses>,
    duplication: Option<(f64, Random)>,
    bottleneck: Bottleneck<T>,
    propagation: Propagation<T>,
    statistics: Statistics,
    now: Time,
}

impl<T: Clone> Link<T> {
    /// A link at the epoch, with nothing inside. What happens by chance follows from the seed: the same seed and the same
    /// packets at the same times meet the same fates.
    ///
    /// # Errors
    ///
    /// As [`Config::check`].
    pub fn new(config: &Config, seed: u64) -> Result<Self, ConfigError> {
        config.check()?;
        let random = Random::new(seed, Piece::Duplication, 0);
        Ok(Self {
            black_hole: config.black_hole,
            policer: config.policer.as_ref().map(Bucket::new),
            losses: config
                .loss
                .iter()
                .enumerate()
                .map(|(index, model)| Losses::new(model, seed, index))
                .collect(),
            duplication: (config.duplication > 0.0).then_some((config.duplication, random)),
            bottleneck: Bottleneck::new(&config.capacity, &config.queue, config.departure, seed),
            propagation: Propagation::new(config, seed),
            statistics: Statistics::default(),
            now: Time::ZERO,
        })
    }

    /// Hands a packet to the link.
    pub fn send<O: Observer<T>>(&mut self, now: Time, packet: Packet<T>, observer: &mut O) {
        self.advance(now, observer);
        let now = self.now;
        let number = self.statistics.sent.packets;
        self.statistics.sent.add(packet.bytes);
        // Each model is asked about each packet, so that what it does to the next depends on nothing else.
        let mut is_lost = false;
        for model in &mut self.losses {
            is_lost |= model.takes(now, number);
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
                sink.tell(now, Event::Duplicated, &item, depth);
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

    /// The next packet that arrived at or before `now`, in the order of arrival. To be called until there is none.
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

    /// When to call [`poll`](Self::poll) next; none if there is nothing to wait for. No packet arrives before. With a delay
    /// that is fixed, one arrives just then, if the queue does not drop it; with others, or over a trace, it may take
    /// another deadline or more.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        let departs = self.bottleneck.next_departure();
        let departs = departs.map(|departure| self.propagation.earliest_arrival(departure));
        earliest(departs, self.propagation.next_arrival())
    }

    /// When anything happens next inside: the end of a packet's service, an opportunity of a trace, an arrival. Between two
    /// calls a link catches up with what happened, and tells observers late, though with the right time. Whoever wants to
    /// hear of it, or read depths, at the very time, calls [`poll`](Self::poll) at these instants; packets fare the same.
    #[must_use]
    pub fn next_event(&self) -> Option<Time> {
        earliest(
            self.bottleneck.next_event(),
            self.propagation.next_arrival(),
        )
    }

    /// The bytes that wait in the queue, without the packet in service, at the last call of [`send`](Self::send) or
    /// [`poll`](Self::poll).
    #[must_use]
    pub const fn queue_bytes(&self) -> u64 {
        self.bottleneck.queue().depth().bytes
    }

    /// The packets that wait in the queue, as [`queue_bytes`](Self::queue_bytes) counts them.
    #[must_use]
    pub const fn queue_packets(&self) -> u64 {
        self.bottleneck.queue().depth().packets
    }

    /// All that is inside: waiting, in service, or on the way.
    #[must_use]
    pub fn inside(&self) -> Count {
        let mut inside = self.propagation.inside();
        let waiting = self.bottleneck.queue().depth();
        inside.packets += waiting.packets;
        inside.bytes += waiting.bytes;
        if let Some(bytes) = self.bottleneck.in_service() {
            inside.add(bytes);
        }
        inside
    }

    /// What was counted up to the last call.
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

/// The earlier of two; never is none.
fn earliest(a: Option<Time>, b: Option<Time>) -> Option<Time> {
    a.into_iter().chain(b).min().filter(|at| *at < Time::MAX)
}

#[cfg(test)]
mod tests;
