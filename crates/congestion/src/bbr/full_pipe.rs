//! The "full pipe" estimator of Startup and `ProbeBW_UP`: whether sending faster still increases the delivery rate
//! (draft-ietf-ccwg-bbr-06 §5.3.1.2).
//!
//! Three rounds that were not application-limited, in which the delivery rate grew by less than 25 %, show that the
//! pipe is full.

use super::constants::{FULL_BANDWIDTH_GROWTH, FULL_BANDWIDTH_ROUNDS};
use crate::{bandwidth::Bandwidth, sampler::RateSample};

#[derive(Clone, Debug, Default)]
pub(super) struct FullPipe {
    /// `BBR.full_bw_reached`: the pipe was full once.
    pub(super) is_reached: bool,
    /// `BBR.full_bw_now`: the pipe is full, as far as the current probe shows.
    pub(super) is_now: bool,
    /// `BBR.full_bw`.
    baseline: Bandwidth,
    /// `BBR.full_bw_count`.
    rounds_without_growth: u32,
}

impl FullPipe {
    /// `ResetFullBW()`, with the rate from which growth is measured.
    pub(super) const fn restart(&mut self, baseline: Bandwidth) {
        self.is_now = false;
        self.baseline = baseline;
        self.rounds_without_growth = 0;
    }

    /// `CheckFullBWReached()`, for an ACK that starts a round. A sample without a rate has no effect.
    pub(super) fn on_round(&mut self, sample: &RateSample) {
        let Some(rate) = sample.rate else { return };
        if self.is_now || sample.app_limited {
            return;
        }
        if rate >= self.baseline.scaled(FULL_BANDWIDTH_GROWTH) {
            self.restart(rate);
            return;
        }
        self.rounds_without_growth += 1;
        if self.rounds_without_growth >= FULL_BANDWIDTH_ROUNDS {
            self.is_now = true;
            self.is_reached = true;
        }
    }
}
