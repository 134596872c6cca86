//! BBR's model of the path: rounds, bandwidth, round-trip time, aggregation, and the bounds set by loss
//! (draft-ietf-ccwg-bbr-06 §5.5.1 to §5.5.9).
//!
//! - `max_bw`: the largest delivery rate of this and the previous `ProbeBW` cycle,
//! - `min_rtt`: the smallest RTT of ten seconds, fed from the smallest of five,
//! - `extra_acked`: the most that was acknowledged beyond `bw` × time, over ten rounds,
//! - bounds: `bw_shortterm`, `inflight_shortterm`, `inflight_longterm`, infinite before any loss.
//!
//! Each filter is a small fixed array. Infinite is the largest value of the type.

use core::time::Duration;

use lastbyte_units::Time;

use super::constants::{EXTRA_ACKED_ROUNDS, MIN_RTT_FILTER, PROBE_RTT_INTERVAL};
use crate::{bandwidth::Bandwidth, sampler::RateSample};

/// An infinite bound on the bytes in flight.
pub(super) const UNBOUNDED: u64 = u64::MAX;

/// `bytes` × `gain`, saturating.
pub(super) fn scale(bytes: u64, gain: f64) -> u64 {
    if bytes == UNBOUNDED {
        return UNBOUNDED;
    }
    (bytes as f64 * gain) as u64
}

/// Packet-timed round trips (§5.5.1).
#[derive(Clone, Debug, Default)]
pub(super) struct Rounds {
    /// `BBR.round_count`.
    pub(super) count: u64,
    /// Whether the current ACK started a round (`BBR.round_start`).
    pub(super) started: bool,
    /// `BBR.rounds_since_probe_up`.
    pub(super) since_probe_up: u64,
    next_delivered: u64,
}

impl Rounds {
    /// `UpdateRound()`; `delivered` is the total delivered so far.
    pub(super) fn on_sample(&mut self, sample: &RateSample, delivered: u64) {
        self.started = sample.prior_delivered >= self.next_delivered;
        if self.started {
            self.begin(delivered);
            self.count = self.count.saturating_add(1);
            self.since_probe_up = self.since_probe_up.saturating_add(1);
        }
    }

    /// `StartRound()`: the next round starts with the ACK of a packet sent from now on.
    pub(super) const fn begin(&mut self, delivered: u64) {
        self.next_delivered = delivered;
    }
}

/// `BBR.max_bw_filter` (§5.5.3 to §5.5.6).
#[derive(Clone, Debug, Default)]
pub(super) struct MaxBandwidth {
    previous_cycle: Bandwidth,
    this_cycle: Bandwidth,
}

impl MaxBandwidth {
    /// `BBR.max_bw`.
    pub(super) fn value(&self) -> Bandwidth {
        self.previous_cycle.max(self.this_cycle)
    }

    /// `UpdateMaxBw()`. An application-limited sample counts only if it exceeds the estimate.
    pub(super) fn on_sample(&mut self, sample: &RateSample) {
        if let Some(rate) = sample.rate
            && (!sample.app_limited || rate >= self.value())
        {
            self.this_cycle = self.this_cycle.max(rate);
        }
    }

    /// `AdvanceMaxBwFilter()`: drops the cycle before the previous one. A cycle without a sample is not counted.
    pub(super) fn advance(&mut self) {
        if self.this_cycle > Bandwidth::ZERO {
            self.previous_cycle = self.this_cycle;
            self.this_cycle = Bandwidth::ZERO;
        }
    }
}

/// A smallest RTT, and when it was seen.
#[derive(Clone, Copy, Debug)]
struct Smallest {
    rtt: Duration,
    at: Time,
}

/// `BBR.min_rtt` and what schedules `ProbeRTT` (§5.3.4.3, §5.5.7).
#[derive(Clone, Debug, Default)]
pub(super) struct MinRtt {
    /// `BBR.min_rtt`; infinite before the first sample.
    filter: Option<Smallest>,
    /// `BBR.probe_rtt_min_delay`.
    recent: Option<Smallest>,
    /// `BBR.probe_rtt_expired`: `recent` was due to be refreshed when the current ACK arrived.
    pub(super) is_probe_due: bool,
}

impl MinRtt {
    /// `BBR.min_rtt`.
    pub(super) fn value(&self) -> Option<Duration> {
        self.filter.map(|smallest| smallest.rtt)
    }

    /// `UpdateMinRTT()`.
    pub(super) fn on_sample(&mut self, now: Time, rtt: Duration) {
        let sample = Smallest { rtt, at: now };
        self.is_probe_due = self
            .recent
            .is_some_and(|recent| now > recent.at + PROBE_RTT_INTERVAL);
        let recent = match self.recent {
            Some(recent) if rtt >= recent.rtt && !self.is_probe_due => recent,
            _ => sample,
        };
        self.recent = Some(recent);
        match self.filter {
            Some(filter) if recent.rtt >= filter.rtt && now <= filter.at + MIN_RTT_FILTER => {}
            _ => self.filter = self.recent,
        }
    }

    /// A `ProbeRTT` is over: the next is due an interval from now.
    pub(super) const fn on_probed(&mut self, now: Time) {
        if let Some(recent) = &mut self.recent {
            recent.at = now;
        }
    }
}

/// `BBR.extra_acked_filter` (§5.5.9).
#[derive(Clone, Debug, Default)]
pub(super) struct ExtraAcked {
    interval_start: Time,
    delivered: u64,
    /// The maximum of each of the latest rounds, indexed by the round's number modulo the length.
    rounds: [u64; EXTRA_ACKED_ROUNDS],
}

impl ExtraAcked {
    /// `UpdateACKAggregation()`.
    pub(super) fn on_ack(
        &mut self,
        now: Time,
        newly_acked: u64,
        bandwidth: Bandwidth,
        window: u64,
        rounds: &Rounds,
    ) {
        let mut expected = bandwidth.bytes_in(now.since(self.interval_start));
        if self.delivered <= expected {
            // ACKs do not arrive faster than expected: the episode of aggregation is over.
            self.delivered = 0;
            self.interval_start = now;
            expected = 0;
        }
        self.delivered = self.delivered.saturating_add(newly_acked);
        let extra = self.delivered.saturating_sub(expected).min(window);
        if let Some(slot) = self.rounds.get_mut(slot(rounds)) {
            *slot = if rounds.started {
                extra
            } else {
                extra.max(*slot)
            };
        }
    }

    /// After an idle period: later ACKs are measured from here.
    pub(super) const fn restart(&mut self, now: Time) {
        self.interval_start = now;
    }

    /// `BBR.extra_acked`: of this round only until the pipe was full once, of the latest ten from then on.
    pub(super) fn value(&self, rounds: &Rounds, full_pipe_reached: bool) -> u64 {
        if full_pipe_reached {
            self.rounds.iter().copied().max().unwrap_or(0)
        } else {
            self.rounds.get(slot(rounds)).copied().unwrap_or(0)
        }
    }
}

const fn slot(rounds: &Rounds) -> usize {
    (rounds.count % EXTRA_ACKED_ROUNDS as u64) as usize
}

/// The bounds set by loss (§5.5.10).
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// `BBR.bw_shortterm`.
    pub(super) bandwidth_shortterm: Bandwidth,
    /// `BBR.inflight_shortterm`.
    pub(super) in_flight_shortterm: u64,
    /// `BBR.inflight_longterm`.
    pub(super) in_flight_longterm: u64,
}

impl Bounds {
    /// No bounds.
    pub(super) const NONE: Self = Self {
        bandwidth_shortterm: Bandwidth::MAX,
        in_flight_shortterm: UNBOUNDED,
        in_flight_longterm: UNBOUNDED,
    };

    /// `ResetShortTermModel()`.
    pub(super) const fn reset_shortterm(&mut self) {
        self.bandwidth_shortterm = Bandwidth::MAX;
        self.in_flight_shortterm = UNBOUNDED;
    }

    /// Raised at least to the values in `saved`.
    pub(super) fn loosen(&mut self, saved: &Self) {
        self.bandwidth_shortterm = self.bandwidth_shortterm.max(saved.bandwidth_shortterm);
        self.in_flight_shortterm = self.in_flight_shortterm.max(saved.in_flight_shortterm);
        self.in_flight_longterm = self.in_flight_longterm.max(saved.in_flight_longterm);
    }
}
