//! The way from the bottleneck to the far end: it takes time, and may change the order.
//!
//! Packets that keep their order stand in a line, so the next to arrive is the first; only those that others may overtake
//! are kept in a heap.

use alloc::collections::{BinaryHeap, VecDeque};
use core::{cmp::Ordering, time::Duration};

use crate::{
    Config, Count, Spacing, Time,
    packet::Item,
    random::{Piece, Random},
    time::nanos,
};

/// Delay that is another for each packet, added to the propagation delay.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Jitter {
    /// How much.
    pub spread: Spread,
    /// Whether packets may overtake each other. If not, one that would arrive before the packet ahead arrives together
    /// with it.
    pub may_reorder: bool,
}

/// A distribution of delays.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Spread {
    /// Each between zero and this is as likely as any other.
    Uniform(Duration),
    /// Exponentially distributed with this mean, and at most 37 times as much.
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

/// Some packets are held up, and those behind them go ahead.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Reordering {
    /// The probability that a packet is held up.
    pub probability: f64,
    /// For how long; the packets that arrive meanwhile overtake it.
    pub extra: Duration,
}

/// The propagation delay changes once: the path becomes another. If it becomes shorter, packets still arrive in order,
/// unless jitter may reorder them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PathChange {
    /// From when on, by the instant at which a packet leaves the bottleneck.
    pub at: Time,
    /// The delay from then on.
    pub delay: Duration,
}

#[derive(Debug)]
struct Line<T> {
    arrives: Time,
    order: u64,
    item: Item<T>,
}

/// Greatest is what arrives first, and of what arrives together, what left first.
#[derive(Debug)]
struct Late<T>(Line<T>);

impl<T> Late<T> {
    const fn key(&self) -> (Time, u64) {
        (self.0.arrives, self.0.order)
    }
}

impl<T> PartialEq for Late<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for Late<T> {}

impl<T> PartialOrd for Late<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Late<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

/// Instants at which what has gathered is released.
#[derive(Debug)]
struct Releases {
    spacing: Spacing,
    random: Random,
    next: Time,
    drawn: u64,
}

impl Releases {
    /// The first instant at or after `ready`.
    fn after(&mut self, ready: Time) -> Time {
        match self.spacing {
            Spacing::Fixed(period) => {
                let period = nanos(period);
                Time::from_nanos(ready.as_nanos().div_ceil(period).saturating_mul(period))
            }
            Spacing::Random(mean) => {
                if self.next < ready {
                    // A Poisson process has no memory: from any instant on, the next is this far.
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
    delay: u64,
    change: Option<(Time, u64)>,
    jitter: Option<(Jitter, Random)>,
    reordering: Option<(Reordering, Random)>,
    releases: Option<Releases>,
    line: VecDeque<Line<T>>,
    late: BinaryHeap<Late<T>>,
    /// How many departed.
    departed: u64,
    inside: Count,
}

impl<T> Propagation<T> {
    pub(crate) fn new(config: &Config, seed: u64) -> Self {
        Self {
            delay: nanos(config.delay),
            change: config
                .path_change
                .map(|change| (change.at, nanos(change.delay))),
            jitter: config
                .jitter
                .map(|jitter| (jitter, Random::new(seed, Piece::Jitter, 0))),
            reordering: config
                .reordering
                .map(|reordering| (reordering, Random::new(seed, Piece::Reordering, 0))),
            releases: config.release.map(|spacing| Releases {
                spacing,
                random: Random::new(seed, Piece::Release, 0),
                next: Time::ZERO,
                drawn: 0,
            }),
            line: VecDeque::new(),
            late: BinaryHeap::new(),
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

    /// Takes a packet that leaves the bottleneck at `now`, which never goes back.
    pub(crate) fn depart(&mut self, now: Time, item: Item<T>) {
        let mut arrives = now.plus(self.delay_at(now));
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
        if !may_be_overtaken && let Some(ahead) = self.line.back() {
            arrives = arrives.max(ahead.arrives);
        }
        self.inside.add(item.packet.bytes);
        let line = Line {
            arrives,
            order: self.departed,
            item,
        };
        self.departed += 1;
        if may_be_overtaken {
            self.late.push(Late(line));
        } else {
            self.line.push_back(line);
        }
    }

    /// The next packet that arrives at or before `now`.
    pub(crate) fn arrive(&mut self, now: Time) -> Option<(Time, Item<T>)> {
        let in_line = self.line.front().map(|line| (line.arrives, line.order));
        let is_late = match (in_line, self.late.peek().map(Late::key)) {
            (Some(line), Some(late)) => late < line,
            (line, _) => line.is_none(),
        };
        let first = if is_late {
            self.late.peek().filter(|late| late.0.arrives <= now)?;
            self.late.pop()?.0
        } else {
            self.line.front().filter(|line| line.arrives <= now)?;
            self.line.pop_front()?
        };
        self.inside.take(first.item.packet.bytes);
        Some((first.arrives, first.item))
    }

    /// When the next packet arrives, of those that left the bottleneck.
    pub(crate) fn next_arrival(&self) -> Option<Time> {
        let line = self.line.front().map(|line| line.arrives);
        let late = self.late.peek().map(|late| late.0.arrives);
        line.into_iter().chain(late).min()
    }

    /// The earliest arrival of a packet that leaves the bottleneck at `departure` or later: by a path that becomes shorter,
    /// a later one may come first.
    pub(crate) fn earliest_arrival(&self, departure: Time) -> Time {
        let arrival = departure.plus(self.delay_at(departure));
        match self.change {
            Some((at, delay)) if departure < at => arrival.min(at.plus(delay)),
            _ => arrival,
        }
    }

    /// What is on the way.
    pub(crate) const fn inside(&self) -> Count {
        self.inside
    }
}

#[cfg(test)]
mod tests;
