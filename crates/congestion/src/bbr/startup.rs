//! Startup: doubling the rate each round until the pipe is full (draft-ietf-ccwg-bbr-06 §5.3.1).
//!
//! It ends when the delivery rate no longer grows ([`FullPipe`](super::full_pipe::FullPipe)), or when over a whole
//! round of recovery more than 2 % were lost, in at least six discontiguous ranges. The draft has no pseudocode for the
//! second: it is evaluated on the ACK that ends a round which started with the first loss.

use lastbyte_units::Time;

use super::{Bbr, constants::STARTUP_LOST_RANGES, loss::is_too_high, mode::Mode, recovery::Undo};
use crate::sampler::RateSample;

impl Bbr {
    /// `CheckStartupDone()`.
    pub(super) fn check_startup_done(&mut self, now: Time, sample: &RateSample) {
        if self.mode != Mode::Startup {
            return;
        }
        if !self.full_pipe.is_reached && self.is_startup_loss_high(sample) {
            self.recovery.on_probe_ended(Undo::Startup);
            self.full_pipe.is_reached = true;
            self.bounds.in_flight_longterm = self.bdp().max(self.losses.in_flight_latest);
        }
        if self.full_pipe.is_reached {
            self.statistics
                .exit_startup(now, self.window, Some(sample.rtt));
            self.enter_drain();
        }
    }

    /// `EnterStartup()`, for all but the first time.
    pub(super) fn return_to_startup(&mut self) {
        self.mode = Mode::Startup;
        self.statistics.resume_startup();
    }

    /// `CheckStartupHighLoss()`.
    fn is_startup_loss_high(&self, sample: &RateSample) -> bool {
        self.losses.round_ended
            && self.losses.ranges >= STARTUP_LOST_RANGES
            && is_too_high(sample.lost, sample.in_flight)
    }
}
