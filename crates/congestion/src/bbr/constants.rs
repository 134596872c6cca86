//! The constants of BBR version 3, with their names in draft-ietf-ccwg-bbr-06: §2, and the table of gains in §5.6.1.
//! Values that the draft gives in seconds are [`Duration`]s, percentages are fractions.

use core::time::Duration;

/// `BBR.StartupPacingGain`: 4 ln 2, the smallest gain that can double the rate each round.
pub(super) const STARTUP_PACING_GAIN: f64 = 2.77;
/// `BBR.DrainPacingGain`: drains within one round what Startup queued.
pub(super) const DRAIN_PACING_GAIN: f64 = 0.5;
/// The pacing gain of `ProbeBW_DOWN`.
pub(super) const DOWN_PACING_GAIN: f64 = 0.9;
/// The pacing gain of `ProbeBW_UP`.
pub(super) const UP_PACING_GAIN: f64 = 1.25;
/// `BBR.DefaultCwndGain`.
pub(super) const DEFAULT_WINDOW_GAIN: f64 = 2.0;
/// The window gain of `ProbeBW_UP`, so that the window does not limit what the pacing gain probes.
pub(super) const UP_WINDOW_GAIN: f64 = 2.25;
/// `BBR.ProbeRTTCwndGain`.
pub(super) const PROBE_RTT_WINDOW_GAIN: f64 = 0.5;
/// `BBR.PacingMarginPercent` (1) as a factor of the rate.
pub(super) const PACING_MARGIN: f64 = 0.99;

/// `BBR.LossThresh`: the reciprocal of the loss rate tolerated in a round, 2 %.
pub(super) const LOSS_THRESHOLD_INVERSE: u64 = 50;
/// `BBR.Beta`: the factor of a reduction.
pub(super) const BETA: f64 = 0.7;
/// `BBR.Headroom`: the fraction of the long-term bound that is left to others.
pub(super) const HEADROOM: f64 = 0.15;
/// `BBR.MinPipeCwnd`, in datagrams: two in flight and the ACKs of two in the other direction.
pub(super) const MIN_PIPE_DATAGRAMS: u64 = 4;

/// Growth of the delivery rate that shows that the pipe is not full: 25 %.
pub(super) const FULL_BANDWIDTH_GROWTH: f64 = 1.25;
/// Rounds without such growth after which it is.
pub(super) const FULL_BANDWIDTH_ROUNDS: u32 = 3;
/// `BBRStartupFullLossCnt`: discontiguous ranges that must be lost in a round for loss to end Startup.
pub(super) const STARTUP_LOST_RANGES: u64 = 6;
/// Rounds after which Drain ends even if the queue does not seem to be drained.
pub(super) const DRAIN_ROUNDS: u64 = 3;

/// `BBR.ExtraAckedFilterLen`, in rounds.
pub(super) const EXTRA_ACKED_ROUNDS: usize = 10;
/// `BBR.MinRTTFilterLen`.
pub(super) const MIN_RTT_FILTER: Duration = Duration::from_secs(10);
/// `BBR.ProbeRTTInterval`; every flow MUST use the same, so that flows drain together (§5.3.4.2).
pub(super) const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);
/// `BBR.ProbeRTTDuration`.
pub(super) const PROBE_RTT_DURATION: Duration = Duration::from_millis(200);

/// The shortest wait between bandwidth probes; up to a second is added at random (§5.3.3.8).
pub(super) const PROBE_WAIT_BASE: Duration = Duration::from_secs(2);
/// Maximum number of rounds between bandwidth probes: with a random start of 0 or 1, a bound of 62 or 63 rounds.
pub(super) const RENO_ROUNDS_MAX: u64 = 63;
/// The largest exponent of the growth of the long-term bound.
pub(super) const UP_ROUNDS_MAX: u32 = 30;

/// The round-trip time that the first pacing rate assumes (§5.6.2).
pub(super) const NOMINAL_RTT: Duration = Duration::from_millis(1);
/// The time at the pacing rate that a quantum corresponds to (§5.6.3).
pub(super) const QUANTUM_TIME: Duration = Duration::from_millis(1);
/// The largest quantum, in bytes.
pub(super) const QUANTUM_MAX: u64 = 64 * 1024;
/// The smallest quantum, in datagrams.
pub(super) const QUANTUM_MIN_DATAGRAMS: u64 = 2;
