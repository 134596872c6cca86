//! Detection of a bottleneck with classic ECN (RFC 3168) in place of L4S, for Prague.
//!
//! RFC 9331 §4.3 requires a scalable congestion control to look for such a bottleneck, and to be able to adapt, depending on its
//! configuration: an AQM that marks ECT(1) no more often than a classic flow needs would otherwise let Prague take most of the
//! bottleneck from classic flows in the same queue.
//!
//! The rule is version 2 of the design in "TCP Prague Fall-back on Detection of a Classic ECN AQM" (Briscoe and Ahmed, 2019,
//! arXiv:1911.00710), with the constants of Linux (`prague_classic_ecn_detection` in `tcp_prague.c` of the L4S team). A classic AQM
//! lets the queue grow and drain by milliseconds, and an L4S AQM does not:
//!
//! ```text
//! score    += lg(mdev / 750 us) / 2 + max(0, lg((srtt − min_rtt) / 2 ms)) / 2      once a round trip from the first mark on
//! score     = 0 to 17; up to 8 the bottleneck is L4S, from 9 on classic
//! alpha_min = 0.625 × (score − 8), between 0 and 0.625
//! ```
//!
//! `srtt` and its mean deviation `mdev` are moving averages with gains of 1 / (2 × W^1.5) and half of that for each ACK frame, W the
//! window in datagrams, so that they span many round trips.
//!
//! Deviations: W is the present window, where Linux takes the slow-start threshold; logarithms are not rounded to whole numbers
//! with a carry.
//!
//! Limits, after the paper: at low rates and long round trips an L4S bottleneck looks classic. Jitter of more than about 0.75 ms on a
//! path (Wi-Fi, cellular) does, too. Then Prague leaves capacity unused, but no flow is harmed.

use core::time::Duration;

use crate::rtt::Rtt;

#[cfg(test)]
mod tests;

/// Estimates whether the bottleneck is classic.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ClassicDetector {
    /// Moving averages, in seconds: of the round-trip time, and of its deviation. `None` before the first sample.
    averages: Option<(f64, f64)>,
    score: f64,
}

impl ClassicDetector {
    /// An ACK frame was received.
    pub(super) fn on_ack(&mut self, rtt: &Rtt, window_datagrams: f64) {
        if !rtt.has_sample() {
            return;
        }
        let sample = rtt.adjusted().as_secs_f64();
        let Some((smoothed, deviation)) = &mut self.averages else {
            self.averages = Some((sample, 0.0));
            return;
        };
        let window = window_datagrams.max(1.0);
        let gain = (0.5 / (window * libm::sqrt(window))).max(GAIN_MIN);
        let error = sample - *smoothed;
        *smoothed += gain * error;
        *deviation += gain / 2.0 * (error.abs() - *deviation);
    }

    /// A round trip ended.
    pub(super) fn on_round(&mut self, rtt_min: Duration) {
        let Some((smoothed, deviation)) = self.averages else {
            return;
        };
        let depth = smoothed - rtt_min.as_secs_f64();
        let of_deviation = libm::log2(deviation.max(DEVIATION_MIN) / DEVIATION);
        let of_depth = libm::log2(depth.max(DEPTH) / DEPTH);
        self.score = (self.score + WEIGHT * (of_deviation + of_depth)).clamp(0.0, SCORE_MAX);
    }

    /// What alpha is at least: 0 over an L4S bottleneck, and 0.625 over a classic one.
    pub(super) fn alpha_min(&self) -> f64 {
        ALPHA_CLASSIC * (self.score - L4S).clamp(0.0, 1.0)
    }
}

/// The deviation of the round-trip time that says nothing, in seconds.
const DEVIATION: f64 = 750e-6;
/// Below this a deviation is not measured, but rounding.
const DEVIATION_MIN: f64 = 1e-6;
/// A queue of this depth or less says nothing, in seconds.
const DEPTH: f64 = 2e-3;
const WEIGHT: f64 = 0.5;
/// Up to this score the bottleneck counts as L4S.
const L4S: f64 = 8.0;
const SCORE_MAX: f64 = 2.0 * L4S + 1.0;
/// The reduction is then by 0.31, near CUBIC's.
const ALPHA_CLASSIC: f64 = 0.625;
const GAIN_MIN: f64 = 1.0 / (1 << 18) as f64;
