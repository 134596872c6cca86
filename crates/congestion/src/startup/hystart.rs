//! HyStart++ (RFC 9406): slow start that ends when the round-trip time shows that a queue is growing.
//!
//! Rounds are counted by send index: a round ends when the packet that was next to be sent at its start is
//! acknowledged. When the smallest RTT of a round exceeds that of the round before by an eighth of it (4 ms at least,
//! 16 ms at most), growth slows to a quarter for [`CSS_ROUNDS`] rounds, the Conservative Slow Start; if the RTT falls
//! below its value at the start of them, slow start continues as before, otherwise startup is over.
//!
//! The senders of this crate are paced, so the limit `L` on the growth per ACK is infinite (§4.3).

use core::time::Duration;

use super::{Growth, Startup, StartupAck};
use crate::state::Phase;

/// HyStart++, RFC 9406.
#[derive(Clone, Debug)]
pub struct HyStart {
    /// `windowEnd`: the round ends when this send index is acknowledged.
    window_end: Option<u64>,
    last_round_min: Option<Duration>,
    current_round_min: Option<Duration>,
    samples: u32,
    conservative: Option<Conservative>,
}

/// Conservative Slow Start, §4.2.
#[derive(Clone, Copy, Debug)]
struct Conservative {
    baseline_min: Duration,
    /// Rounds completed, including the one in which it started.
    rounds: u32,
}

impl HyStart {
    /// A new round.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            window_end: None,
            last_round_min: None,
            current_round_min: None,
            samples: 0,
            conservative: None,
        }
    }

    /// The smallest sample of this round, once the round has enough of them.
    fn round_min(&self) -> Option<Duration> {
        self.current_round_min
            .filter(|_| self.samples >= N_RTT_SAMPLE)
    }

    /// The checks of §4.2 on each ACK, once the round has enough samples.
    fn decide(&mut self) {
        let Some(current) = self.round_min() else {
            return;
        };
        match self.conservative {
            None => {
                let queued = self
                    .last_round_min
                    .is_some_and(|last| current >= last.saturating_add(threshold(last)));
                if queued {
                    self.conservative = Some(Conservative {
                        baseline_min: current,
                        rounds: 0,
                    });
                }
            }
            Some(css) if current < css.baseline_min => self.conservative = None,
            Some(_) => {}
        }
    }

    fn start_round(&mut self, next: u64) {
        self.window_end = Some(next);
        self.last_round_min = self.current_round_min.take();
        self.samples = 0;
    }
}

impl Default for HyStart {
    fn default() -> Self {
        Self::new()
    }
}

impl Startup for HyStart {
    fn name(&self) -> &'static str {
        "hystart"
    }

    fn phase(&self) -> Phase {
        match self.conservative {
            None => Phase::Startup,
            Some(_) => Phase::ConservativeSlowStart,
        }
    }

    fn on_ack(&mut self, ack: &StartupAck<'_>) -> Growth {
        if self.window_end.is_none() {
            self.start_round(ack.next);
        }
        if let Some(sample) = ack.rtt_sample {
            self.current_round_min = Some(
                self.current_round_min
                    .map_or(sample, |smallest| smallest.min(sample)),
            );
            self.samples = self.samples.saturating_add(1);
        }
        self.decide();
        let bytes = match self.conservative {
            None => ack.bytes,
            Some(_) => ack.bytes / CSS_GROWTH_DIVISOR,
        };
        if self.window_end.is_some_and(|end| ack.largest_acked >= end) {
            self.start_round(ack.next);
            if let Some(css) = &mut self.conservative {
                css.rounds += 1;
            }
        }
        Growth {
            limit: None,
            bytes,
            done: self
                .conservative
                .is_some_and(|css| css.rounds >= CSS_ROUNDS),
        }
    }
}

/// `RttThresh`, §4.2.
fn threshold(last_round_min: Duration) -> Duration {
    (last_round_min / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH)
}

// RFC 9406 §4.3.
const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
const MIN_RTT_DIVISOR: u32 = 8;
const N_RTT_SAMPLE: u32 = 8;
const CSS_GROWTH_DIVISOR: u64 = 4;
const CSS_ROUNDS: u32 = 5;

#[cfg(test)]
mod tests;
