//! Access to a shared or sleeping medium: delays between the bottleneck and the path.
//!
//! Both delays keep the order of packets. Two links of a path wait independently, although on Wi-Fi they share a medium.

use core::time::Duration;

use lastbyte_units::nanos;

use crate::{
    Config, Time,
    random::{Component, Random},
};

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

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;
    use crate::{
        Link, Packet,
        testing::{Bench, at_ms, ms},
    };

    #[test]
    fn packets_after_a_pause_wait_for_the_radio() {
        let config = Config {
            wake_up: Some(WakeUp {
                after: ms(100),
                delay: ms(30),
            }),
            delay: ms(10),
            ..Config::default()
        };
        let mut bench = Bench::new(&config, 1);
        for at in [0, 10, 30, 31, 100, 200, 300, 301, 431] {
            bench.send(at_ms(at), Packet::new(1000, ()));
        }
        bench.run();
        let arrivals: Vec<u64> = bench.arrivals_ms().iter().map(|(at, _)| *at).collect();
        assert_eq!(arrivals, [40, 40, 40, 41, 110, 210, 310, 311, 471]);
    }

    fn medium(share: f64, busy: Duration, seed: u64) -> Medium {
        Medium::new(
            &Contention { share, busy },
            Random::new(seed, Component::Contention, 0),
        )
    }

    #[test]
    fn contention_delays_isolated_packets_by_share_and_period() {
        let mut medium = medium(0.3, ms(5), 1);
        let count = 50_000;
        let (mut waited, mut total) = (0, 0.0);
        for index in 1..=count {
            let ready = at_ms(index * 1000);
            let wait = medium.idle_from(ready).since(ready);
            waited += u64::from(!wait.is_zero());
            total += wait.as_secs_f64();
        }
        let share = waited as f64 / count as f64;
        assert!((share - 0.3).abs() < 0.01, "{share}");
        let mean = total / waited as f64;
        assert!((mean / 0.005 - 1.0).abs() < 0.03, "{mean}");
    }

    #[test]
    fn adjacent_packets_share_contention_periods() {
        // Every 10 us over 1000 s: the medium changes state as seldom as its periods are long.
        let mut medium = medium(0.25, ms(2), 3);
        let (mut busy, mut periods, mut was_busy) = (0_u64, 0_u64, false);
        let steps = 2_000_000_u64;
        for index in 0..steps {
            let ready = Time::from_nanos(index * 10_000);
            let is_busy = medium.idle_from(ready) > ready;
            busy += u64::from(is_busy);
            periods += u64::from(is_busy && !was_busy);
            was_busy = is_busy;
        }
        let share = busy as f64 / steps as f64;
        assert!((share - 0.25).abs() < 0.02, "{share}");
        // Idle and busy together last 8 ms in the mean.
        let expected = steps as f64 * 10e-6 / 8e-3;
        assert!(
            (periods as f64 / expected - 1.0).abs() < 0.1,
            "{periods} {expected}"
        );
    }

    proptest! {
        #[test]
        fn any_contention_keeps_the_order_and_only_delays(
            share in 0.0..=1.0,
            busy in 1u64..1 << 40,
            gaps in vec(0u64..1 << 34, 1..100),
            seed: u64,
        ) {
            let config = Config {
                contention: Some(Contention { share, busy: Duration::from_nanos(busy) }),
                wake_up: Some(WakeUp { after: ms(5), delay: ms(1) }),
                ..Config::default()
            };
            let mut link: Link<u64> = Link::new(&config, seed).expect("valid configuration");
            let mut now = Time::ZERO;
            for (gap, index) in gaps.iter().zip(0..) {
                now = now.plus(*gap);
                link.send(now, Packet::new(100, index), &mut ());
            }
            let mut numbers = Vec::new();
            while let Some(delivery) = link.poll(Time::MAX, &mut ()) {
                numbers.push(delivery.number);
            }
            prop_assert_eq!(numbers, (0..gaps.len() as u64).collect::<Vec<_>>());
        }
    }
}
