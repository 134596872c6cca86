//! Access to a shared or sleeping medium: delays between the bottleneck and the path.
//!
//! Both delays keep the order of packets. Two links of a path wait independently, although on Wi-Fi they share a medium.

use core::time::Duration;

use lastbyte_units::nanos;

use crate::{
    Config, Time,
    random::{Component, Random},
};

#[cfg(test)]
mod tests;

/// Other stations use the medium from time to time, as on Wi-Fi: a packet that is ready meanwhile waits until they are done.
/// Busy and idle periods alternate and have exponential lengths, so a packet waits with probability `share` at most, and
/// then for `busy` in the mean.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Contention {
    /// The share of time in which the medium is busy, 0 to 1.
    pub share: f64,
    /// The mean length of a busy period. Longer than zero.
    pub busy: Duration,
}

/// A radio that sleeps when unused: the first packet after a pause waits until it is awake, as do those behind it. It sleeps
/// at first.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct WakeUp {
    /// The pause after which the radio sleeps.
    pub after: Duration,
    /// Time to wake up.
    pub delay: Duration,
}

/// The state of a medium.
#[derive(Debug)]
struct Medium {
    share: f64,
    busy: f64,
    random: Random,
    drawn: u64,
    /// The end of the latest busy period.
    busy_until: Time,
    /// When the medium was known to be idle; `None` if it was never observed.
    idle_at: Option<Time>,
}

impl Medium {
    fn new(config: &Contention, random: Random) -> Self {
        Self {
            share: config.share,
            busy: nanos(config.busy) as f64,
            random,
            drawn: 0,
            busy_until: Time::ZERO,
            idle_at: None,
        }
    }

    /// When the medium is idle, at `ready` or later. A two-state Markov process, observed at these times.
    fn idle_from(&mut self, ready: Time) -> Time {
        if ready < self.busy_until {
            return self.busy_until;
        }
        let probability = match self.idle_at {
            None => self.share,
            Some(idle_at) => {
                // Both rates together: 1/busy + 1/idle, where idle is busy (1 - share) / share.
                let rate = 1.0 / (self.busy * (1.0 - self.share));
                let passed = ready.nanos_since(idle_at) as f64;
                self.share * (1.0 - libm::exp(-passed * rate))
            }
        };
        let index = self.drawn;
        self.drawn += 2;
        let idle_from = if self.random.happens(index, probability) {
            self.busy_until = ready.plus((self.busy * self.random.exponential(index + 1)) as u64);
            self.busy_until
        } else {
            ready
        };
        self.idle_at = Some(idle_from);
        idle_from
    }
}

/// The state of a radio.
#[derive(Debug)]
struct Radio {
    after: u64,
    delay: u64,
    awake_from: Time,
    /// `None` before the first packet.
    used_at: Option<Time>,
}

impl Radio {
    /// When the radio is awake, at `ready` or later.
    fn wake_up(&mut self, ready: Time) -> Time {
        let sleeps = self
            .used_at
            .is_none_or(|used| ready.nanos_since(used) > self.after);
        if sleeps {
            self.awake_from = ready.plus(self.delay);
        }
        let from = self.awake_from.max(ready);
        self.used_at = Some(from);
        from
    }
}

/// The shared medium and the radio.
#[derive(Debug)]
pub(crate) struct Access {
    radio: Option<Radio>,
    medium: Option<Medium>,
}

impl Access {
    pub(crate) fn new(config: &Config, seed: u64) -> Self {
        Self {
            radio: config.wake_up.map(|wake_up| Radio {
                after: nanos(wake_up.after),
                delay: nanos(wake_up.delay),
                awake_from: Time::ZERO,
                used_at: None,
            }),
            medium: config
                .contention
                .map(|config| Medium::new(&config, Random::new(seed, Component::Contention, 0))),
        }
    }

    /// When a packet that is ready at `now` may leave. `now` must not decrease.
    pub(crate) fn granted(&mut self, now: Time) -> Time {
        let awake = match &mut self.radio {
            Some(radio) => radio.wake_up(now),
            None => now,
        };
        match &mut self.medium {
            Some(medium) => medium.idle_from(awake),
            None => awake,
        }
    }
}
