//! `ProbeBW`: the cycle DOWN, CRUISE, REFILL, UP, BBR's steady state (draft-ietf-ccwg-bbr-06 §5.3.3).
//!
//! - DOWN: yields until there is headroom and no queue.
//! - CRUISE: sends at the estimated rate until it is time to probe: 2 to 3 s after DOWN began, or after as many rounds
//!   as Reno would need to grow by the bytes in flight, at most 62 or 63.
//! - REFILL: resets the short-term bounds and fills the pipe, for one round.
//! - UP: sends faster than the path delivered, raising the long-term bound by 1, 2, 4, … datagrams a round, until the
//!   pipe is full, losses exceed 2 %, or, when the probe before this one met loss, the long-term bound is reached.
//!
//! A probe's ACKs arrive a round later than its packets are sent; [`AckPhase`] tracks that. When all have arrived, the
//! bandwidth filter advances, and a probe that was ended early as a precaution and caused no loss is followed by a full
//! one at once.

use core::time::Duration;

use lastbyte_units::Time;

use super::{
    Bbr,
    constants::{HEADROOM, MIN_PIPE_DATAGRAMS, PROBE_WAIT_BASE, RENO_ROUNDS_MAX, UP_ROUNDS_MAX},
    loss::is_too_high,
    mode::Mode,
    model::{UNBOUNDED, scale},
};
use crate::sampler::RateSample;

/// `BBR.ack_phase`: to which packets of a probe the ACKs belong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum AckPhase {
    /// To no probe (`ACKS_INIT`, and `ACKS_REFILLING` and `ACKS_PROBE_FEEDBACK`, which are never read).
    #[default]
    Other,
    /// To a probe that has ended (`ACKS_PROBE_STOPPING`).
    ProbeStopping,
}

/// The position in the probing cycle.
#[derive(Clone, Debug)]
pub(super) struct Cycle {
    /// `BBR.is_bw_probe_sample`: packets acknowledged or lost now may belong to a probe without a response so far.
    pub(super) is_probe_sample: bool,
    /// `BBR.prev_probe_too_high`: the latest probe caused excess loss.
    pub(super) is_previous_too_high: bool,
    /// `BBR.prev_probe_precautionary`: the latest probe was ended at the long-term bound.
    is_previous_precautionary: bool,
    /// `BBR.cycle_stamp`.
    started_at: Time,
    /// `BBR.bw_probe_wait`.
    wait: Duration,
    ack_phase: AckPhase,
    /// `BBR.bw_probe_up_rounds`.
    up_rounds: u32,
    /// `BBR.bw_probe_up_acked`.
    up_acked: u64,
    /// `BBR.probe_up_acked_per_inc`.
    up_acked_per_increment: u64,
}

impl Default for Cycle {
    fn default() -> Self {
        Self {
            is_probe_sample: false,
            is_previous_too_high: false,
            is_previous_precautionary: false,
            started_at: Time::ZERO,
            wait: Duration::ZERO,
            ack_phase: AckPhase::Other,
            up_rounds: 0,
            up_acked: 0,
            up_acked_per_increment: UNBOUNDED,
        }
    }
}

impl Cycle {
    /// Further ACKs are of packets sent before a probe ended.
    pub(super) const fn stop_probe_samples(&mut self) {
        self.ack_phase = AckPhase::ProbeStopping;
    }
}

impl Bbr {
    /// `UpdateProbeBWCyclePhase()`. `in_flight` is the bytes in flight after this ACK.
    pub(super) fn update_cycle(&mut self, now: Time, in_flight: u64, sample: &RateSample) {
        if !self.full_pipe.is_reached || self.adapt_longterm(sample) {
            return;
        }
        match self.mode {
            Mode::ProbeBandwidthDown | Mode::ProbeBandwidthCruise if self.is_time_to_probe(now) => {
                self.start_refill();
            }
            Mode::ProbeBandwidthDown if self.is_time_to_cruise(in_flight) => {
                self.mode = Mode::ProbeBandwidthCruise;
            }
            Mode::ProbeBandwidthRefill if self.rounds.started => {
                self.cycle.is_probe_sample = true;
                self.start_up(sample);
            }
            Mode::ProbeBandwidthUp => self.check_up_done(now, in_flight, sample),
            _ => {}
        }
    }

    /// `StartProbeBW_DOWN()`.
    pub(super) fn start_down(&mut self, now: Time) {
        self.losses.clear();
        self.cycle.up_acked_per_increment = UNBOUNDED;
        self.rounds.since_probe_up = self.random.bit();
        self.cycle.wait = PROBE_WAIT_BASE + self.random.below_one_second();
        self.cycle.started_at = now;
        self.cycle.stop_probe_samples();
        self.rounds.begin(self.sampler.delivered());
        self.mode = Mode::ProbeBandwidthDown;
    }

    /// `StartProbeBW_REFILL()`.
    pub(super) const fn start_refill(&mut self) {
        self.bounds.reset_shortterm();
        self.cycle.up_rounds = 0;
        self.cycle.up_acked = 0;
        self.cycle.is_previous_precautionary = false;
        self.cycle.ack_phase = AckPhase::Other;
        self.rounds.begin(self.sampler.delivered());
        self.mode = Mode::ProbeBandwidthRefill;
    }

    /// `StartProbeBW_UP()`.
    fn start_up(&mut self, sample: &RateSample) {
        self.rounds.begin(self.sampler.delivered());
        self.full_pipe.restart(sample.rate.unwrap_or_default());
        self.mode = Mode::ProbeBandwidthUp;
        self.raise_longterm_slope();
    }

    /// `AdaptLongTermModel()`: returns whether it has chosen the next state.
    fn adapt_longterm(&mut self, sample: &RateSample) -> bool {
        if self.cycle.ack_phase == AckPhase::ProbeStopping && self.rounds.started {
            self.cycle.is_probe_sample = false;
            self.cycle.ack_phase = AckPhase::Other;
            if self.mode.is_probe_bandwidth() {
                if !sample.app_limited {
                    self.max_bandwidth.advance();
                }
                if self.cycle.is_previous_precautionary && !self.cycle.is_previous_too_high {
                    self.start_refill();
                    return true;
                }
            }
        }
        if !is_too_high(sample.lost, sample.in_flight)
            && self.bounds.in_flight_longterm != UNBOUNDED
        {
            let longterm = &mut self.bounds.in_flight_longterm;
            *longterm = sample.in_flight.max(*longterm);
            if self.mode == Mode::ProbeBandwidthUp {
                self.probe_longterm_upward(sample);
            }
        }
        false
    }

    /// `ProbeInflightLongtermUpward()`.
    fn probe_longterm_upward(&mut self, sample: &RateSample) {
        if !self.is_limited_by_longterm() {
            return;
        }
        let cycle = &mut self.cycle;
        cycle.up_acked = cycle.up_acked.saturating_add(sample.newly_acked);
        let increments = cycle.up_acked / cycle.up_acked_per_increment;
        cycle.up_acked %= cycle.up_acked_per_increment;
        self.bounds.in_flight_longterm = self
            .bounds
            .in_flight_longterm
            .saturating_add(increments.saturating_mul(self.max_datagram_size));
        if self.rounds.started {
            self.raise_longterm_slope();
        }
    }

    /// `RaiseInflightLongtermSlope()`: twice as many datagrams a round as in the round before.
    fn raise_longterm_slope(&mut self) {
        let cycle = &mut self.cycle;
        let growth_this_round = 1 << cycle.up_rounds;
        cycle.up_rounds = (cycle.up_rounds + 1).min(UP_ROUNDS_MAX);
        // Never zero: a datagram has at least one byte.
        cycle.up_acked_per_increment =
            (self.window / growth_this_round).max(self.max_datagram_size);
    }

    /// `IsTimeToProbeBW()`.
    fn is_time_to_probe(&self, now: Time) -> bool {
        now > self.cycle.started_at + self.cycle.wait
            || self.rounds.since_probe_up >= self.reno_rounds()
    }

    /// `IsRenoCoexistenceProbeTime()`: after how many rounds a Reno flow would have grown by this flow's bytes in
    /// flight, and lost.
    fn reno_rounds(&self) -> u64 {
        let datagrams = self.target_in_flight() / self.max_datagram_size;
        datagrams.clamp(MIN_PIPE_DATAGRAMS, RENO_ROUNDS_MAX)
    }

    /// `IsTimeToCruise()`.
    fn is_time_to_cruise(&self, in_flight: u64) -> bool {
        in_flight <= self.in_flight_with_headroom()
            && in_flight <= self.in_flight_at(self.max_bandwidth.value(), 1.0)
    }

    /// `IsTimeToGoDown()`, with its consequences.
    fn check_up_done(&mut self, now: Time, in_flight: u64, sample: &RateSample) {
        // The bytes in flight before this ACK: after it, a window limited by the long-term bound is never full. It is
        // full when no further datagram fits.
        let in_flight_before = in_flight.saturating_add(sample.newly_acked);
        let is_bound_reached = in_flight_before.saturating_add(self.max_datagram_size)
            > self.bounds.in_flight_longterm;
        if self.cycle.is_previous_too_high && is_bound_reached {
            self.cycle.is_previous_precautionary = true;
        } else if self.is_limited_by_longterm() {
            // The bound limits the rate, so a constant rate has no meaning.
            self.full_pipe.restart(sample.rate.unwrap_or_default());
            return;
        } else if !self.full_pipe.is_now {
            return;
        }
        // No excess loss so far; it may still be reported by the ACKs of the last round.
        self.cycle.is_previous_too_high = false;
        self.start_down(now);
    }

    /// Whether the window was full, in this round or the one before, and the long-term bound is what limits it.
    fn is_limited_by_longterm(&self) -> bool {
        self.is_window_limited() && self.window >= self.bounds.in_flight_longterm
    }

    /// `InflightWithHeadroom()`.
    pub(super) fn in_flight_with_headroom(&self) -> u64 {
        let longterm = self.bounds.in_flight_longterm;
        if longterm == UNBOUNDED {
            return UNBOUNDED;
        }
        let headroom = scale(longterm, HEADROOM).max(self.max_datagram_size);
        longterm.saturating_sub(headroom).max(self.min_pipe())
    }
}
