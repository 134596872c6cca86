//! The states of BBR and the table of gains and caps (draft-ietf-ccwg-bbr-06 §5.6.1).
//!
//! | state | pacing gain | window gain | rate cap | volume cap |
//! |---|---|---|---|---|
//! | Startup | 2.77 | 2 | | |
//! | Drain | 0.5 | 2 | short-term | short-term |
//! | `ProbeBW_DOWN` | 0.90 | 2 | short-term | long-term, short-term |
//! | `ProbeBW_CRUISE` | 1 | 2 | short-term | 0.85 × long-term, short-term |
//! | `ProbeBW_REFILL` | 1 | 2 | | long-term |
//! | `ProbeBW_UP` | 1.25 | 2.25 | | long-term |
//! | `ProbeRTT` | 1 | 0.5 | short-term | 0.85 × long-term, short-term |
//!
//! The gains are functions of the state, so that none can be forgotten in a transition. Where the short-term bounds are
//! not a cap, they are infinite.

use super::constants::{
    DEFAULT_WINDOW_GAIN, DOWN_PACING_GAIN, DRAIN_PACING_GAIN, PROBE_RTT_WINDOW_GAIN,
    STARTUP_PACING_GAIN, UP_PACING_GAIN, UP_WINDOW_GAIN,
};
use crate::state::Phase;

/// `BBR.state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Startup,
    Drain,
    ProbeBandwidthDown,
    ProbeBandwidthCruise,
    ProbeBandwidthRefill,
    ProbeBandwidthUp,
    ProbeRtt,
}

impl Mode {
    /// `BBR.pacing_gain`.
    pub(super) const fn pacing_gain(self) -> f64 {
        match self {
            Self::Startup => STARTUP_PACING_GAIN,
            Self::Drain => DRAIN_PACING_GAIN,
            Self::ProbeBandwidthDown => DOWN_PACING_GAIN,
            Self::ProbeBandwidthUp => UP_PACING_GAIN,
            Self::ProbeBandwidthCruise | Self::ProbeBandwidthRefill | Self::ProbeRtt => 1.0,
        }
    }

    /// `BBR.cwnd_gain`.
    pub(super) const fn window_gain(self) -> f64 {
        match self {
            Self::ProbeBandwidthUp => UP_WINDOW_GAIN,
            Self::ProbeRtt => PROBE_RTT_WINDOW_GAIN,
            _ => DEFAULT_WINDOW_GAIN,
        }
    }

    /// `IsInAProbeBWState()`.
    pub(super) const fn is_probe_bandwidth(self) -> bool {
        matches!(
            self,
            Self::ProbeBandwidthDown
                | Self::ProbeBandwidthCruise
                | Self::ProbeBandwidthRefill
                | Self::ProbeBandwidthUp
        )
    }

    /// `IsProbingBW()`: probing for bandwidth, when the probe responds to loss and not the short-term model.
    pub(super) const fn is_probing(self) -> bool {
        matches!(
            self,
            Self::Startup | Self::ProbeBandwidthRefill | Self::ProbeBandwidthUp
        )
    }

    /// The name in logs.
    pub(super) const fn phase(self) -> Phase {
        match self {
            Self::Startup => Phase::Startup,
            Self::Drain => Phase::Drain,
            Self::ProbeBandwidthDown => Phase::ProbeBandwidthDown,
            Self::ProbeBandwidthCruise => Phase::ProbeBandwidthCruise,
            Self::ProbeBandwidthRefill => Phase::ProbeBandwidthRefill,
            Self::ProbeBandwidthUp => Phase::ProbeBandwidthUp,
            Self::ProbeRtt => Phase::ProbeRtt,
        }
    }
}
