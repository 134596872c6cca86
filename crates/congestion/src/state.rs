//! The state of a controller, for logs and plots.

use core::{fmt, time::Duration};

use lastbyte_units::Time;

use crate::{bandwidth::Bandwidth, saved_path::SavedPath};

/// A controller's current state.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// The name of the startup's growth rule, whatever preset it comes from, or of a monolithic algorithm (`bbr`, `c4`).
    pub startup: &'static str,
    /// The avoidance's name; `None` for a monolithic algorithm.
    pub avoidance: Option<&'static str>,
    /// The phase.
    pub phase: Phase,
    /// The congestion window, in bytes.
    pub window: u64,
    /// The slow start threshold, in bytes; `None` while it is infinite.
    pub slow_start_threshold: Option<u64>,
    /// The bandwidth estimate, if the controller has one.
    pub bandwidth: Option<Bandwidth>,
    /// Counters and extremes.
    pub statistics: Statistics,
}

/// The phase of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// The first search for the path's capacity.
    Startup,
    /// Conservative Slow Start of HyStart++ (RFC 9406 §4.2): still the first search, with slower growth.
    ConservativeSlowStart,
    /// A recovery period (RFC 9002 §7.3.2).
    Recovery,
    /// Slow start once more, below the slow start threshold.
    SlowStart,
    /// Congestion avoidance.
    Avoidance,
    /// BBR Drain: emptying the queue that Startup built.
    Drain,
    /// BBR `ProbeBW_DOWN`: yielding.
    ProbeBandwidthDown,
    /// BBR `ProbeBW_CRUISE`: sending at the estimated rate.
    ProbeBandwidthCruise,
    /// BBR `ProbeBW_REFILL`: filling the pipe ahead of a probe.
    ProbeBandwidthRefill,
    /// BBR `ProbeBW_UP`: probing for more.
    ProbeBandwidthUp,
    /// BBR `ProbeRTT`: draining the path to measure its minimum delay.
    ProbeRtt,
    /// C4: sending at half the rate that an earlier connection used.
    Resuming,
    /// C4: sending at the nominal rate.
    Cruising,
    /// C4: sending slightly more, to learn whether there is more.
    Probing,
    /// C4: sending more, after a successful probe.
    Pushing,
}

impl Phase {
    /// Whether it is the first search for the path's capacity.
    pub const fn is_startup(self) -> bool {
        matches!(self, Self::Startup | Self::ConservativeSlowStart)
    }

    /// The name in logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Startup => "startup",
            Self::ConservativeSlowStart => "conservative-slow-start",
            Self::Recovery => "recovery",
            Self::SlowStart => "slow-start",
            Self::Avoidance => "avoidance",
            Self::Drain => "drain",
            Self::ProbeBandwidthDown => "probe-bw-down",
            Self::ProbeBandwidthCruise => "probe-bw-cruise",
            Self::ProbeBandwidthRefill => "probe-bw-refill",
            Self::ProbeBandwidthUp => "probe-bw-up",
            Self::ProbeRtt => "probe-rtt",
            Self::Resuming => "resuming",
            Self::Cruising => "cruising",
            Self::Probing => "probing",
            Self::Pushing => "pushing",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Counters of a controller since its creation. Sizes are in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statistics {
    /// The window at the start.
    pub initial_window: u64,
    /// The window just before startup ended, by loss or by choice; `None` while it lasts.
    pub window_exiting_startup: Option<u64>,
    /// When startup ended.
    pub startup_exited_at: Option<Time>,
    /// The latest round-trip time when startup ended.
    pub rtt_exiting_startup: Option<Duration>,
    /// Packets declared lost of those sent before startup ended.
    pub packets_lost_in_startup: u64,
    /// The parameters that an earlier connection saved, if this controller uses them (RFC 9959).
    pub saved_path: Option<SavedPath>,
    /// The window that a first flight or Careful Resume jumped to; `None` without a jump.
    pub jump_window: Option<u64>,
    /// Bytes in flight when the first packet of the jump was acknowledged: the window from then on.
    pub window_exiting_jump: Option<u64>,
    /// The smallest window after a reduction; `None` if there was none.
    pub window_min: Option<u64>,
    /// The largest window.
    pub window_max: u64,
    /// Congestion events: reductions of the window.
    pub loss_episodes: u64,
    /// Of these, events with ECN-CE marks and no loss.
    pub ecn_episodes: u64,
    /// Congestion events undone, because every loss in them was spurious.
    pub episodes_undone: u64,
    /// Of these, events that had ended startup.
    pub episodes_undone_in_startup: u64,
    /// Times that persistent congestion was established.
    pub persistent_congestions: u64,
}

impl Statistics {
    /// Statistics of a controller that starts with this window.
    #[must_use]
    pub const fn new(initial_window: u64) -> Self {
        Self {
            initial_window,
            window_exiting_startup: None,
            startup_exited_at: None,
            rtt_exiting_startup: None,
            packets_lost_in_startup: 0,
            saved_path: None,
            jump_window: None,
            window_exiting_jump: None,
            window_min: None,
            window_max: initial_window,
            loss_episodes: 0,
            ecn_episodes: 0,
            episodes_undone: 0,
            episodes_undone_in_startup: 0,
            persistent_congestions: 0,
        }
    }

    /// Startup ends, with this window and this latest round-trip time, if that was measured.
    pub(crate) const fn exit_startup(&mut self, now: Time, window: u64, rtt: Option<Duration>) {
        self.window_exiting_startup = Some(window);
        self.startup_exited_at = Some(now);
        self.rtt_exiting_startup = rtt;
    }

    /// Startup did not end after all.
    pub(crate) const fn resume_startup(&mut self) {
        self.window_exiting_startup = None;
        self.startup_exited_at = None;
        self.rtt_exiting_startup = None;
    }

    /// A packet that was sent at this time was declared lost.
    pub(crate) fn on_packet_lost(&mut self, sent_at: Time) {
        let is_of_startup = self.startup_exited_at.is_none_or(|exit| sent_at < exit);
        self.packets_lost_in_startup += u64::from(is_of_startup);
    }
}
