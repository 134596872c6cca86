//! What tests of several pieces share.

use core::time::Duration;

use crate::{
    Capacity, Config, Count, Delivery, DropTail, Event, Limit, Link, Observation, Observer, Packet,
    Queue, Rate, Time,
};

pub(crate) fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub(crate) fn at_ms(ms: u64) -> Time {
    Time::ZERO + self::ms(ms)
}

pub(crate) fn at_us(us: u64) -> Time {
    Time::ZERO + Duration::from_micros(us)
}

/// A byte a microsecond: 1000 bytes are a millisecond.
pub(crate) const BYTE_A_MICROSECOND: Rate = Rate::from_bits_per_second(8_000_000);

/// An event, and when, to which packet, at which depth after it.
pub(crate) type Note = (Time, u64, Event, Count);

/// Writes down what happens.
#[derive(Debug, Default)]
pub(crate) struct Notes(pub(crate) Vec<Note>);

impl<T> Observer<T> for Notes {
    fn on_event(&mut self, seen: &Observation<'_, T>) {
        assert!(self.0.last().is_none_or(|last| last.0 <= seen.at));
        self.0.push((seen.at, seen.number, seen.event, seen.queue));
    }
}

impl Notes {
    /// When, and to which packets, something happened that fits.
    pub(crate) fn of(&self, fits: impl Fn(Event) -> bool) -> Vec<(Time, u64)> {
        let fitting = self.0.iter().filter(|note| fits(note.2));
        fitting.map(|note| (note.0, note.1)).collect()
    }
}

/// A drop-tail queue before a constant rate, without delay.
pub(crate) fn drop_tail(rate: Rate, limit: Limit) -> Config {
    Config {
        capacity: Capacity::Constant(rate),
        queue: Queue::DropTail(DropTail {
            limit,
            mark_above: None,
        }),
        ..Config::default()
    }
}

/// A link, and what was noted of it.
pub(crate) struct Bench<T> {
    pub(crate) link: Link<T>,
    pub(crate) notes: Notes,
    pub(crate) arrived: Vec<Delivery<T>>,
}

impl<T: Clone> Bench<T> {
    pub(crate) fn new(config: &Config, seed: u64) -> Self {
        Self {
            link: Link::new(config, seed).expect("a configuration"),
            notes: Notes::default(),
            arrived: Vec::new(),
        }
    }

    /// Sends a packet, after all that arrives up to then.
    pub(crate) fn send(&mut self, now: Time, packet: Packet<T>) {
        self.run_until(now);
        self.link.send(now, packet, &mut self.notes);
    }

    /// All that arrives up to `end`, by the link's own deadlines.
    pub(crate) fn run_until(&mut self, end: Time) {
        while let Some(at) = self.link.deadline().filter(|at| *at <= end) {
            let before = self.link.next_event();
            let count = self.arrived.len();
            while let Some(delivery) = self.link.poll(at, &mut self.notes) {
                assert_eq!(delivery.at, at, "arrives at a deadline");
                self.arrived.push(delivery);
            }
            let has_moved = self.arrived.len() > count || self.link.deadline() > Some(at);
            assert!(has_moved, "stuck at {at:?}, {before:?}");
        }
        assert!(self.link.poll(end, &mut self.notes).is_none());
    }

    /// All that arrives at all.
    pub(crate) fn run(&mut self) {
        while let Some(at) = self.link.deadline() {
            self.run_until(at);
        }
    }

    /// Arrivals in milliseconds, and the numbers of the packets.
    pub(crate) fn arrivals_ms(&self) -> Vec<(u64, u64)> {
        let arrived = self.arrived.iter();
        arrived
            .map(|delivery| (delivery.at.as_nanos() / 1_000_000, delivery.number))
            .collect()
    }
}
