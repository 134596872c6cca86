//! The settings of a window-based controller.

use core::fmt;

use crate::spec::Settings;

/// The settings of a [`WindowController`](crate::WindowController). Usually parsed from a
/// [spec](crate::Registry::parse), which also checks the ranges.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The initial window. Default: [`WindowSize::INITIAL_RFC9002`].
    pub initial_window: WindowSize,
    /// The minimum window. Default: 2 datagrams (RFC 9002 §7.2).
    pub minimum_window: WindowSize,
    /// Pacing of the first flight. Default: the initial window over half a round trip.
    pub first_flight: FirstFlight,
    /// Reduction of the window at the first congestion. Default: [`FirstRecovery::Cut`].
    pub first_recovery: FirstRecovery,
    /// The decrease factor of the first recovery; `None` for that of the avoidance.
    pub startup_beta: Option<f64>,
    /// The decrease factor of the first recovery where an ECN-CE mark without a loss starts it; `None` for
    /// [`Config::startup_beta`] or else that of the avoidance.
    pub startup_beta_ecn: Option<f64>,
    /// The decrease factor of the avoidance; `None` for its own.
    pub beta: Option<f64>,
    /// The decrease factor of the avoidance when ECN-CE marks are the only sign; `None` for the same as for loss.
    /// RFC 8511 (ABE) suggests 0.8 for NewReno and 0.85 for CUBIC.
    pub beta_ecn: Option<f64>,
    /// The pacing gain in avoidance and recovery; `None` for that of the avoidance.
    pub pacing_gain: Option<f64>,
    /// The pacing gain in startup, after the first flight; `None` for that of the startup.
    pub startup_pacing_gain: Option<f64>,
    /// The burst after a pause, at least what is released at a time; `None` for ten datagrams, or for scalable avoidances what is
    /// released at a time.
    pub burst: Option<WindowSize>,
    /// The largest jump of Careful Resume (RFC 9959); `None` to ignore saved parameters. Default: `None`.
    pub resume: Option<WindowSize>,
    /// Growth of the window while the sender does not use it. Default: [`AppLimited::NoGrowth`].
    pub app_limited: AppLimited,
    /// The effect of a pause on the window. Default: [`IdlePolicy::Keep`].
    pub idle: IdlePolicy,
    /// The keys of a spec that belong to single rules, such as `queue-threshold`. Default: none set.
    pub settings: Settings,
}

impl Default for Config {
    /// RFC 9002 to the letter: slow start from ten datagrams.
    fn default() -> Self {
        Self {
            initial_window: WindowSize::INITIAL_RFC9002,
            minimum_window: WindowSize::Datagrams(2),
            first_flight: FirstFlight::HALF_ROUND_TRIP,
            first_recovery: FirstRecovery::Cut,
            startup_beta: None,
            startup_beta_ecn: None,
            beta: None,
            beta_ecn: None,
            pacing_gain: None,
            startup_pacing_gain: None,
            burst: None,
            resume: None,
            app_limited: AppLimited::NoGrowth,
            idle: IdlePolicy::Keep,
            settings: Settings::default(),
        }
    }
}

/// A window size as configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowSize {
    /// A number of datagrams of the path's size.
    Datagrams(u64),
    /// A number of bytes, whatever the datagram size.
    Bytes(u64),
    /// A number of datagrams, but not more bytes than `limit` unless that is less than two datagrams.
    Limited {
        /// Maximum number of datagrams.
        datagrams: u64,
        /// Maximum number of bytes.
        limit: u64,
    },
}

impl WindowSize {
    /// The initial window of RFC 9002 §7.2: ten datagrams, limited to the larger of 14720 bytes and two datagrams.
    pub const INITIAL_RFC9002: Self = Self::Limited {
        datagrams: 10,
        limit: 14_720,
    };

    /// The window in bytes on a path with datagrams of this size.
    pub fn bytes(self, max_datagram_size: u64) -> u64 {
        match self {
            Self::Datagrams(datagrams) => datagrams.saturating_mul(max_datagram_size),
            Self::Bytes(bytes) => bytes,
            Self::Limited { datagrams, limit } => datagrams
                .saturating_mul(max_datagram_size)
                .min(limit.max(max_datagram_size.saturating_mul(2))),
        }
    }
}

impl fmt::Display for WindowSize {
    /// Writes the size as a spec does: `30p`, `44160B`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Datagrams(datagrams) => write!(f, "{datagrams}p"),
            Self::Bytes(bytes) => write!(f, "{bytes}B"),
            Self::Limited { datagrams, limit } => write!(f, "{datagrams}p, at most {limit}B"),
        }
    }
}

/// How the first flight is sent, while only the round-trip time of the path is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FirstFlight {
    /// The initial window, spread over this many round trips.
    InitialWindow {
        /// 0.5 is classic paced slow start.
        round_trips: f64,
    },
    /// Once the sender has more to send than a burst, a window of this size, spread over one round trip. With up to
    /// twice the initial window that is no faster than classic paced slow start, only longer
    /// (draft-kazuho-ccwg-rapid-start-02 §3.1). `None` for exactly twice the initial window.
    Jump {
        /// The window to jump to.
        window: Option<WindowSize>,
    },
}

impl FirstFlight {
    /// The initial window over half a round trip: the rate at which slow start continues.
    pub const HALF_ROUND_TRIP: Self = Self::InitialWindow { round_trips: 0.5 };
}

/// How the window is reduced at the first congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstRecovery {
    /// At once by the decrease factor, as at any later congestion.
    Cut,
    /// In proportion to the bytes lost and delivered in the round (draft-kazuho-ccwg-rapid-start-02 §3.3).
    Proportional(Variant),
}

/// Which version of Rapid Start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// draft-kazuho-ccwg-rapid-start-02.
    Draft02,
    /// The editors' copy of 26 September 2026: the recovery of revision 02, with other defaults of pacing and of beta for marks.
    Editor,
    /// quicly as shipped in April 2026.
    Quicly,
}

/// Growth of the window while the application or the peer's flow control leaves part of it unused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppLimited {
    /// None (RFC 9002 §7.8).
    NoGrowth,
    /// As if the window were used.
    Ignored,
    /// Up to the window that one round trip would reach from the largest number of bytes in flight since the latest reduction
    /// (draft-ietf-ccwg-ratelimited-increase).
    RateLimitedIncrease,
}

/// The effect of a pause in sending on the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdlePolicy {
    /// None: the pacer keeps the restart from being a burst.
    Keep,
    /// RFC 9002 §7.8 with the method it refers to, RFC 7661: an unused window is kept, and halved for each five
    /// minutes, down to the initial window.
    Rfc9002,
    /// RFC 5681 §4.1: after a pause of a retransmission timeout, at most the initial window ("slow start after idle").
    Rfc5681,
    /// RFC 2861: halved for each retransmission timeout of the pause, down to the initial window.
    Rfc2861,
}
