//! One hop of a link, as a chain of components.

use crate::{
    BlackHole, Config, Count, DropReason, Event, Observer, Statistics, Time,
    bottleneck::Bottleneck,
    loss::LossProcess,
    packet::{DUPLICATE, Item},
    policer::TokenBucket,
    propagation::Propagation,
    queue::Sink,
    random::{Component, Random},
};
use alloc::vec::Vec;

#[derive(Debug)]
pub(crate) struct Hop<T> {
    /// Its number, from 0.
    index: u8,
    black_hole: Option<BlackHole>,
    policer: Option<TokenBucket>,
    losses: Vec<LossProcess>,
    duplication: Option<(f64, Random)>,
    bottleneck: Bottleneck<T>,
    propagation: Propagation<T>,
    statistics: Statistics,
    now: Time,
}

impl<T: Clone> Hop<T> {
    /// Creates an empty hop. Requires a configuration that [`Config::check`] accepts.
    pub(crate) fn new(config: &Config, index: u8, seed: u64) -> Self {
        let random = Random::new(seed, Component::Duplication, 0);
        Self {
            index,
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
        }
    }

    /// Accepts a packet. Requires that [`Self::advance`] has been called for the same time.
    pub(crate) fn receive<O: Observer<T>>(&mut self, item: Item<T>, observer: &mut O) {
        let now = self.now;
        let packet = &item.packet;
        // Packets are lost by their number on this hop: that of the link is not in order behind queues of flows.
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
        let mut sink = Sink {
            hop: self.index,
            statistics: &mut self.statistics,
            observer,
        };
        let depth = self.bottleneck.queue().depth();
        if let Some(reason) = reason {
            return sink.drop(now, reason, &item, depth);
        }
        let copy = match self.duplication {
            Some((probability, random)) if random.happens(item.tag, probability) => {
                sink.statistics.duplicated.add(item.packet.bytes);
                sink.emit(now, Event::Duplicated, &item, depth);
                Some(Item {
                    tag: item.tag | DUPLICATE,
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

    /// Returns the next packet that arrived at or before `now`, and when.
    #[inline]
    pub(crate) fn poll<O: Observer<T>>(
        &mut self,
        now: Time,
        observer: &mut O,
    ) -> Option<(Time, Item<T>)> {
        self.advance(now, observer);
        let (at, item) = self.propagation.arrive(self.now)?;
        self.statistics.delivered.add(item.packet.bytes);
        Some((at, item))
    }

    /// Does what happens at or before `now`. A time before the latest one counts as the latest one.
    #[inline]
    pub(crate) fn advance<O: Observer<T>>(&mut self, now: Time, observer: &mut O) {
        self.now = self.now.max(now);
        let mut sink = Sink {
            hop: self.index,
            statistics: &mut self.statistics,
            observer,
        };
        self.bottleneck
            .advance(self.now, &mut sink, &mut self.propagation);
    }

    /// No packet arrives at the end of this hop before this time.
    pub(crate) fn deadline(&self) -> Option<Time> {
        let departs = self.bottleneck.next_departure();
        let departs = departs.map(|departure| self.propagation.earliest_arrival(departure));
        earliest(departs, self.propagation.next_arrival())
    }

    pub(crate) fn next_event(&self) -> Option<Time> {
        earliest(
            self.bottleneck.next_event(),
            self.propagation.next_arrival(),
        )
    }

    /// The depth of the queue.
    pub(crate) const fn depth(&self) -> Count {
        self.bottleneck.queue().depth()
    }

    /// The packets queued, in service or in transit.
    pub(crate) fn inside(&self) -> Count {
        let parts = [self.depth(), self.bottleneck.in_service()];
        parts
            .into_iter()
            .fold(self.propagation.inside(), Count::plus)
    }

    pub(crate) const fn statistics(&self) -> &Statistics {
        &self.statistics
    }
}

/// The earlier of two times. [`Time::MAX`] counts as `None`.
fn earliest(a: Option<Time>, b: Option<Time>) -> Option<Time> {
    Time::earlier(a, b).filter(|at| *at < Time::MAX)
}
