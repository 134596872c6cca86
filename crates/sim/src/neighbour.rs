//! Throughput, loss and delay of neighbours, counted on the downlink while they are observed.

use core::time::Duration;

use lastbyte_congestion::Time;
use lastbyte_link::Event;
use lastbyte_scenario::neighbour::Observation;
use lastbyte_units::Direction;

use crate::listener::{LinkEvent, Listener};

#[cfg(test)]
mod tests;

/// Delivery, loss and delay of a neighbour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NeighbourOutcome {
    /// Bytes that the bottleneck transmitted.
    pub delivered_bytes: u64,
    /// Packets that the bottleneck started to transmit.
    pub packets: u64,
    /// Packets that the link dropped, for any reason and on any hop.
    pub lost: u64,
    /// The sum of the packets' queueing delays on all hops.
    pub waited: Duration,
}

impl NeighbourOutcome {
    /// The loss rate, 0 to 1. `None` without packets.
    pub fn loss(&self) -> Option<f64> {
        let all = self.packets + self.lost;
        (all > 0).then(|| self.lost as f64 / all as f64)
    }

    /// The mean time in the queue. `None` without packets.
    pub fn delay(&self) -> Option<Duration> {
        let packets = u32::try_from(self.packets).unwrap_or(u32::MAX);
        self.waited.checked_div(packets)
    }
}

/// Counts the packets of all flows but the measured ones. Without an observation it counts nothing.
#[derive(Debug)]
pub struct NeighbourCounter {
    /// The number of measured flows, which have the lowest numbers.
    flows: usize,
    /// Start and end of the observation.
    window: Option<(Time, Time)>,
    outcome: NeighbourOutcome,
}

impl NeighbourCounter {
    /// Creates a counter for a scenario with this number of measured flows.
    #[must_use]
    pub fn new(flows: usize, observation: Option<&Observation>) -> Self {
        Self {
            flows,
            window: observation.map(|one| (Time::ZERO + one.from, Time::ZERO + one.until)),
            outcome: NeighbourOutcome::default(),
        }
    }

    /// The neighbour's outcome; `None` without an observation.
    pub fn outcome(&self) -> Option<NeighbourOutcome> {
        self.window.map(|_| self.outcome)
    }
}

impl Listener for NeighbourCounter {
    fn wants_link_events(&self) -> bool {
        self.window.is_some()
    }

    fn on_link(&mut self, event: &LinkEvent) {
        let is_observed = self
            .window
            .is_some_and(|(from, until)| (from..=until).contains(&event.at));
        if event.direction != Direction::Down
            || !is_observed
            || event.flow.is_some_and(|flow| flow < self.flows)
        {
            return;
        }
        let outcome = &mut self.outcome;
        match event.event {
            Event::ServiceStarted { waited } => {
                outcome.packets += u64::from(event.is_bottleneck);
                outcome.waited += waited;
            }
            Event::ServiceEnded { .. } if event.is_bottleneck => {
                outcome.delivered_bytes += u64::from(event.bytes);
            }
            Event::Dropped(_) => outcome.lost += 1,
            _ => {}
        }
    }
}
