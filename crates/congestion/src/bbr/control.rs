//! BBR's outputs: pacing rate, quantum and window (draft-ietf-ccwg-bbr-06 §5.6).
//!
//! - pacing rate = gain × `bw` × 0.99; it only increases until the pipe was full once,
//! - quantum = 1 ms of it, between two datagrams and 64 KiB,
//! - `max_inflight` = max(gain × `bw` × `min_rtt` + `extra_acked`, quantum, 4 datagrams), two datagrams more in UP,
//! - window: grows to `max_inflight` by the bytes acknowledged, is reduced to it at once, and is capped by the bounds
//!   of the state.

use core::time::Duration;

use super::{
    Bbr,
    constants::{
        MIN_PIPE_DATAGRAMS, PACING_MARGIN, PROBE_RTT_WINDOW_GAIN, QUANTUM_MAX,
        QUANTUM_MIN_DATAGRAMS, QUANTUM_TIME, STARTUP_PACING_GAIN,
    },
    mode::Mode,
    model::{UNBOUNDED, scale},
};
use crate::{
    bandwidth::Bandwidth,
    controller::{Ack, WINDOW_MAX},
};

/// `InitPacingRate()`: the initial window in one round-trip time, at the gain of Startup.
pub(super) fn initial_pacing_rate(initial_window: u64, rtt: Duration) -> Bandwidth {
    Bandwidth::from_delivery(initial_window, rtt).scaled(STARTUP_PACING_GAIN)
}

impl Bbr {
    /// Replaces the nominal first pacing rate by one for the path, once its RTT is known (§5.6.2).
    pub(super) fn learn_first_rtt(&mut self, ack: &Ack<'_>) {
        if !self.has_rtt && ack.rtt.has_sample() && !ack.rtt.smoothed().is_zero() {
            self.has_rtt = true;
            self.pacing_rate = initial_pacing_rate(self.initial_window, ack.rtt.smoothed())
                .max(self.least_pacing_rate());
        }
    }

    /// `SetPacingRateWithGain()`.
    pub(super) fn set_pacing_rate(&mut self, gain: f64) {
        if self.bandwidth == Bandwidth::ZERO {
            return; // nothing is known yet, or everything was lost: the current rate is the better estimate
        }
        let rate = self
            .bandwidth
            .scaled(gain * PACING_MARGIN)
            .max(self.least_pacing_rate());
        if self.full_pipe.is_reached || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// A datagram a second: a lower rate could stall forever.
    const fn least_pacing_rate(&self) -> Bandwidth {
        Bandwidth::from_bytes_per_second(self.max_datagram_size)
    }

    /// `SetSendQuantum()`.
    pub(super) fn quantum(&self) -> u64 {
        self.pacing_rate
            .bytes_in(QUANTUM_TIME)
            .min(QUANTUM_MAX)
            .max(self.datagrams(QUANTUM_MIN_DATAGRAMS))
    }

    /// `SetCwnd()`.
    pub(super) fn update_window(&mut self, newly_acked: u64) {
        let max_in_flight = self.max_in_flight();
        let grown = self.window.saturating_add(newly_acked);
        let window = if self.full_pipe.is_reached {
            grown.min(max_in_flight)
        } else if self.window < max_in_flight || self.sampler.delivered() < self.initial_window {
            grown
        } else {
            self.window
        };
        let cap = self.window_cap().max(self.min_pipe());
        self.set_window(window.max(self.min_pipe()).min(cap));
    }

    /// Sets the window and updates its statistics.
    pub(super) fn set_window(&mut self, window: u64) {
        let window = window.min(WINDOW_MAX);
        let statistics = &mut self.statistics;
        if window < self.window {
            statistics.window_min = Some(statistics.window_min.unwrap_or(UNBOUNDED).min(window));
        }
        statistics.window_max = statistics.window_max.max(window);
        self.window = window;
    }

    /// `BoundCwndForProbeRTT()` and `BoundCwndForModel()`.
    fn window_cap(&self) -> u64 {
        let cap = match self.mode {
            Mode::Startup | Mode::Drain => UNBOUNDED,
            Mode::ProbeBandwidthDown | Mode::ProbeBandwidthRefill | Mode::ProbeBandwidthUp => {
                self.bounds.in_flight_longterm
            }
            Mode::ProbeBandwidthCruise => self.in_flight_with_headroom(),
            Mode::ProbeRtt => self.in_flight_with_headroom().min(self.probe_rtt_window()),
        };
        cap.min(self.bounds.in_flight_shortterm)
    }

    /// `UpdateMaxInflight()`.
    fn max_in_flight(&self) -> u64 {
        let extra_acked = self
            .extra_acked
            .value(&self.rounds, self.full_pipe.is_reached);
        let in_flight = self
            .bdp_multiple(self.bandwidth, self.mode.window_gain())
            .saturating_add(extra_acked);
        self.with_quantization(in_flight)
    }

    /// `Inflight()`: the bytes that fill the path at this rate, times the gain.
    pub(super) fn in_flight_at(&self, bandwidth: Bandwidth, gain: f64) -> u64 {
        self.with_quantization(self.bdp_multiple(bandwidth, gain))
    }

    /// `QuantizationBudget()`, with the offload budget of QUIC, one quantum (§5.5.8.2).
    fn with_quantization(&self, in_flight: u64) -> u64 {
        let budget = in_flight.max(self.quantum()).max(self.min_pipe());
        if self.mode == Mode::ProbeBandwidthUp {
            budget.saturating_add(self.datagrams(2))
        } else {
            budget
        }
    }

    /// `TargetInflight()`.
    pub(super) fn target_in_flight(&self) -> u64 {
        self.bdp().min(self.window)
    }

    /// `BBR.bdp`.
    pub(super) fn bdp(&self) -> u64 {
        self.bdp_multiple(self.bandwidth, 1.0)
    }

    /// `BDPMultiple()`: the initial window until there is an RTT sample.
    fn bdp_multiple(&self, bandwidth: Bandwidth, gain: f64) -> u64 {
        self.min_rtt.value().map_or(self.initial_window, |rtt| {
            scale(bandwidth.bytes_in(rtt), gain)
        })
    }

    /// `ProbeRTTCwnd()`.
    pub(super) fn probe_rtt_window(&self) -> u64 {
        self.bdp_multiple(self.bandwidth, PROBE_RTT_WINDOW_GAIN)
            .max(self.min_pipe())
    }

    /// `BBR.MinPipeCwnd`, in bytes.
    pub(super) const fn min_pipe(&self) -> u64 {
        self.datagrams(MIN_PIPE_DATAGRAMS)
    }

    /// A number of datagrams, in bytes.
    pub(super) const fn datagrams(&self, count: u64) -> u64 {
        self.max_datagram_size.saturating_mul(count)
    }

    /// `C.is_cwnd_limited`: the window had no room for another datagram, in this round or the one before.
    pub(super) fn is_window_limited(&self) -> bool {
        self.window_limited_round
            .is_some_and(|round| self.rounds.count.saturating_sub(round) <= 1)
    }
}
