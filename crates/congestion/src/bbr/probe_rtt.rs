//! `ProbeRTT`: briefly halving the bytes in flight, to measure the path without the flow's own queue
//! (draft-ietf-ccwg-bbr-06 §5.3.4), and the restart from idle (§5.4), which does the same at no cost.
//!
//! Entered from any state when the smallest RTT of the latest five seconds was not refreshed, unless the flow was just
//! idle. It lasts for 200 ms and one round after the bytes in flight are low enough.

use lastbyte_units::Time;

use super::{Bbr, constants::PROBE_RTT_DURATION, mode::Mode};
use crate::sampler::RateSample;

/// The remaining conditions of `ProbeRTT`, once the bytes in flight are low enough.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hold {
    /// `BBR.probe_rtt_done_stamp`.
    until: Time,
    /// `BBR.probe_rtt_round_done`.
    is_round_done: bool,
}

impl Bbr {
    /// `CheckProbeRTT()`, after the RTT sample of this ACK was taken.
    pub(super) fn check_probe_rtt(&mut self, now: Time, in_flight: u64, sample: &RateSample) {
        if self.mode != Mode::ProbeRtt && self.min_rtt.is_probe_due && !self.is_idle_restart {
            self.save_window();
            self.mode = Mode::ProbeRtt;
            self.probe_rtt_hold = None;
            self.cycle.stop_probe_samples();
            self.rounds.begin(self.sampler.delivered());
        }
        if self.mode == Mode::ProbeRtt {
            self.handle_probe_rtt(now, in_flight);
        }
        if sample.delivered > 0 {
            self.is_idle_restart = false;
        }
    }

    /// `HandleProbeRTT()`.
    fn handle_probe_rtt(&mut self, now: Time, in_flight: u64) {
        // The low rates of this state must not enter the model.
        self.sampler.on_app_limited(in_flight);
        if let Some(hold) = &mut self.probe_rtt_hold {
            hold.is_round_done |= self.rounds.started;
            if hold.is_round_done {
                self.check_probe_rtt_done(now);
            }
        } else if in_flight <= self.probe_rtt_window() {
            self.probe_rtt_hold = Some(Hold {
                until: now + PROBE_RTT_DURATION,
                is_round_done: false,
            });
            self.rounds.begin(self.sampler.delivered());
        }
    }

    /// `CheckProbeRTTDone()` and `ExitProbeRTT()`.
    fn check_probe_rtt_done(&mut self, now: Time) {
        if self.probe_rtt_hold.is_none_or(|hold| now <= hold.until) {
            return;
        }
        self.probe_rtt_hold = None;
        self.min_rtt.on_probed(now);
        self.restore_window();
        self.bounds.reset_shortterm();
        if self.full_pipe.is_reached {
            // DOWN resets the clock of bandwidth probing; it has no queue left to drain.
            self.start_down(now);
            self.mode = Mode::ProbeBandwidthCruise;
        } else {
            self.return_to_startup();
        }
    }

    /// `HandleRestartFromIdle()`.
    pub(super) fn restart_from_idle(&mut self, now: Time) {
        self.is_idle_restart = true;
        self.extra_acked.restart(now);
        if self.mode.is_probe_bandwidth() {
            self.set_pacing_rate(1.0);
        } else if self.mode == Mode::ProbeRtt {
            self.check_probe_rtt_done(now);
        }
    }
}
