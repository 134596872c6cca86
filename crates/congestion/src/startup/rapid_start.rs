//! The growth rule of Rapid Start (draft-kazuho-ccwg-rapid-start-02 §3.2): 3× a round trip while there is no sign of a
//! queue, 2× otherwise.
//!
//! ```text
//! threshold = min(min_rtt + 4 ms, min_rtt × 1.10)       draft
//!             max(min_rtt + 4 ms, min_rtt × 35/32)      quicly
//! growth    = 2 × newly acked   if the smallest RTT of the last round trip ≤ threshold     (3× a round trip)
//!             1 × newly acked   otherwise                                                  (2× a round trip)
//! ```
//!
//! The decision is made again on every ACK, so growth may return to 3×. The smallest RTT of the last round trip is kept
//! in four slots of a quarter of `min_rtt` each: the three newest and part of the fourth, so the filter covers between
//! three quarters of and one `min_rtt` (the draft asks for "about one round"; quicly does the same). Without a sample
//! in that time the factor is 2×.
//!
//! While growing 3×, the pacer releases three windows in a round trip, so that it is not the limit.
//!
//! The editors' copy of 26 September 2026, the newest text found, differs from revision 02 in these clauses. `variant=editor` sets the
//! keys that they name, except for the last:
//!
//! | clause | here |
//! |---|---|
//! | §3.1.1: the initial window over the full round trip, no faster than classic paced slow start | `first-flight=jump` does this once ten datagrams are in flight, which leave back to back; with `burst=2p` they are paced as well |
//! | §3.1.2: the sender ought to pace later rounds over the full round trip | `startup-pacing-gain=1`: a window a round trip. By default, see above. It slows the growth: with windows that triple by each one acknowledged, but wait for the pacer, to 2.35× a round trip, and with those that double, to 1.76× |
//! | §3.3.1: a larger beta where the congestion is not an overflow, such as the 0.8 of RFC 8511 for marks | `startup-beta-ecn=0.8` |
//! | §3.2: may be combined with HyStart++ | `hystart-exit=on`: growth by 3× and 2× as above until HyStart++ finds a queue ([`HyStart`]), then its Conservative Slow Start, which ends startup unless the round-trip time falls again |

use core::time::Duration;

use lastbyte_units::Time;

use super::{Growth, HyStart, Startup, StartupAck};
use crate::{rtt::Rtt, spec::Settings, state::Phase};

/// Rapid Start's growth.
#[derive(Clone, Debug)]
pub struct RapidStart {
    threshold: QueueThreshold,
    floor: RttFloor,
    tripling: bool,
    hystart: Option<HyStart>,
}

/// The round-trip time above which Rapid Start assumes a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueThreshold {
    /// `min(min_rtt + 4 ms, min_rtt × 1.10)`: the draft. The lower of the two at any RTT, so always below the threshold
    /// of HyStart++.
    Min,
    /// `max(min_rtt + 4 ms, min_rtt × 35/32)`, and no tripling at all on paths below 4 ms: quicly as shipped.
    Max,
}

impl QueueThreshold {
    /// The value of `queue-threshold`, or otherwise that of `variant`.
    #[must_use]
    pub fn of(settings: &Settings) -> Self {
        let by_variant = match settings.choice("variant") {
            Some("quicly") => "max",
            _ => "min",
        };
        match settings.choice("queue-threshold").unwrap_or(by_variant) {
            "max" => Self::Max,
            _ => Self::Min,
        }
    }

    fn round_trip(self, min_rtt: Duration) -> Duration {
        const MARGIN: Duration = Duration::from_millis(4);
        let added = min_rtt.saturating_add(MARGIN);
        match self {
            Self::Min => added.min(min_rtt.saturating_add(min_rtt / 10)),
            Self::Max => added.max(min_rtt.saturating_add(min_rtt.saturating_mul(3) / 32)),
        }
    }

    /// quicly stores whole milliseconds in four slots of a quarter of `min_rtt`, and disables Rapid Start where such a
    /// slot would be empty.
    fn applies_to(self, min_rtt: Duration) -> bool {
        match self {
            Self::Min => true,
            Self::Max => min_rtt >= Duration::from_millis(4),
        }
    }
}

impl RapidStart {
    /// Growth with this threshold.
    #[must_use]
    pub const fn new(threshold: QueueThreshold) -> Self {
        Self {
            threshold,
            floor: RttFloor::new(),
            tripling: false,
            hystart: None,
        }
    }

    /// Growth with the keys `queue-threshold`, `variant` and `hystart-exit`.
    #[must_use]
    pub fn of(settings: &Settings) -> Self {
        let has_hystart = settings.switch("hystart-exit").unwrap_or(false);
        Self {
            hystart: has_hystart.then(HyStart::new),
            ..Self::new(QueueThreshold::of(settings))
        }
    }
}

impl Startup for RapidStart {
    fn name(&self) -> &'static str {
        "rapid"
    }

    fn on_ack(&mut self, ack: &StartupAck<'_>) -> Growth {
        if let Some(sample) = ack.rtt_sample {
            self.floor.sample(ack.now, sample, ack.rtt);
        }
        let min_rtt = ack.rtt.min();
        self.tripling = self.threshold.applies_to(min_rtt)
            && self
                .floor
                .smallest(ack.now, min_rtt)
                .is_some_and(|floor| floor <= self.threshold.round_trip(min_rtt));
        if let Some(hystart) = &mut self.hystart {
            let growth = hystart.on_ack(ack);
            if hystart.phase() == Phase::ConservativeSlowStart {
                self.tripling = false;
                return growth;
            }
        }
        Growth::by(if self.tripling {
            ack.bytes.saturating_mul(2)
        } else {
            ack.bytes
        })
    }

    fn phase(&self) -> Phase {
        self.hystart.as_ref().map_or(Phase::Startup, Startup::phase)
    }

    fn pacing_gain(&self) -> f64 {
        if self.tripling { 3.0 } else { 2.0 }
    }
}

/// The smallest RTT sample of about the last round trip.
#[derive(Clone, Debug)]
struct RttFloor {
    /// The smallest sample of each slot, the newest first.
    slots: [Option<Duration>; SLOTS],
    /// When the newest slot started.
    newest_since: Time,
}

const SLOTS: usize = 4;

impl RttFloor {
    const fn new() -> Self {
        Self {
            slots: [None; SLOTS],
            newest_since: Time::ZERO,
        }
    }

    fn sample(&mut self, now: Time, sample: Duration, rtt: &Rtt) {
        self.shift(now, rtt.min());
        if let Some(newest) = self.slots.first_mut() {
            *newest = Some(newest.map_or(sample, |smallest| smallest.min(sample)));
        }
    }

    fn smallest(&mut self, now: Time, min_rtt: Duration) -> Option<Duration> {
        self.shift(now, min_rtt);
        self.slots.iter().flatten().min().copied()
    }

    /// Shifts the slots by as many quarters of `min_rtt` as have passed.
    fn shift(&mut self, now: Time, min_rtt: Duration) {
        let slot = (min_rtt / SLOTS as u32).max(Duration::from_nanos(1));
        let passed = now.since(self.newest_since).as_nanos() / slot.as_nanos();
        if passed == 0 {
            return;
        }
        let distance = usize::try_from(passed).unwrap_or(SLOTS).min(SLOTS);
        self.slots.rotate_right(distance);
        for vacated in self.slots.iter_mut().take(distance) {
            *vacated = None;
        }
        // After a long pause the grid of slots restarts at `now`.
        self.newest_since = if distance == SLOTS {
            now
        } else {
            self.newest_since + slot.saturating_mul(distance as u32)
        };
    }
}

#[cfg(test)]
mod tests;
