//! Helpers shared by the tests.

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

/// One byte per microsecond: 1000 bytes take 1 ms.
pub(crate) const BYTE_A_MICROSECOND: Rate = Rate::from_bits_per_second(8_000_000);

/// Time, packet number, event and queue depth after the event.
pub(crate) type LogEntry = (Time, u64, Event, Count);

/// Records events.
#[derive(Debug, Default)]
pub(crate) struct EventLog(pub(crate) Vec<LogEntry>);

impl<T> Observer<T> for EventLog {
    fn on_event(&mut self, seen: &Observation<'_, T>) {
        assert!(self.0.last().is_none_or(|last| last.0 <= seen.at));
        self.0.push((seen.at, seen.number, seen.event, seen.queue));
    }
}

impl EventLog {
    /// Times and packet numbers of the events that match.
    pub(crate) fn of(&self, fits: impl Fn(Event) -> bool) -> Vec<(Time, u64)> {
        let fitting = self.0.iter().filter(|entry| fits(entry.2));
        fitting.map(|entry| (entry.0, entry.1)).collect()
    }
}

/// A drop-tail queue in front of a constant rate, without delay.
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

/// A link with its recorded events and arrivals.
pub(crate) struct Bench<T> {
    pub(crate) link: Link<T>,
    pub(crate) events: EventLog,
    pub(crate) arrived: Vec<Delivery<T>>,
}

impl<T: Clone> Bench<T> {
    pub(crate) fn new(config: &Config, seed: u64) -> Self {
        Self {
            link: Link::new(config, seed).expect("valid configuration"),
            events: EventLog::default(),
            arrived: Vec::new(),
        }
    }

    /// Sends a packet after processing all earlier arrivals.
    pub(crate) fn send(&mut self, now: Time, packet: Packet<T>) {
        self.run_until(now);
        self.link.send(now, packet, &mut self.events);
    }

    /// Polls the link at each deadline up to `end`.
    pub(crate) fn run_until(&mut self, end: Time) {
        while let Some(at) = self.link.deadline().filter(|at| *at <= end) {
            let before = self.link.next_event();
            let count = self.arrived.len();
            while let Some(delivery) = self.link.poll(at, &mut self.events) {
                assert_eq!(delivery.at, at, "packets arrive only at a deadline");
                self.arrived.push(delivery);
            }
            // After the deadline of a packet that a later hop drops, there may be none.
            let has_moved =
                self.arrived.len() > count || self.link.deadline().is_none_or(|next| next > at);
            assert!(has_moved, "stuck at {at:?}, {before:?}");
        }
        assert!(self.link.poll(end, &mut self.events).is_none());
    }

    /// Polls the link until it has no deadline.
    pub(crate) fn run(&mut self) {
        while let Some(at) = self.link.deadline() {
            self.run_until(at);
        }
    }

    /// Arrival times in milliseconds and packet numbers.
    pub(crate) fn arrivals_ms(&self) -> Vec<(u64, u64)> {
        let arrived = self.arrived.iter();
        arrived
            .map(|delivery| (delivery.at.as_nanos() / 1_000_000, delivery.number))
            .collect()
    }
}
