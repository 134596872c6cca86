//! Startups: the growth rules of the first slow start, which finds the path's capacity.
//!
//! A startup receives every ACK and returns by how much the window grows, and whether startup is over. How the first
//! flight is sent ([`FirstFlight`](crate::FirstFlight)) and how the window is reduced at the first congestion
//! ([`FirstRecovery`](crate::FirstRecovery)) are independent choices, so that all combinations are possible:
//!
//! | preset | first flight | growth | first recovery |
//! |---|---|---|---|
//! | `slow-start` | initial window over half a round trip | [`SlowStart`]: 2× | cut |
//! | `hystart` | the same | [`HyStart`]: 2×, then 1.25× | cut |
//! | `search` | the same | [`Search`]: 2× until delivery falls behind | cut |
//! | `jumpstart` | twice the initial window over one round trip | [`SlowStart`]: 2× | cut |
//! | `rapid-no-jump` | initial window over half a round trip | [`RapidStart`]: 3× or 2× | proportional to loss |
//! | `rapid-start` | twice the initial window over one round trip | [`RapidStart`]: 3× or 2× | proportional to loss |
//!
//! # A custom startup
//!
//! One file and one line in a registry. This one grows by half a window a round trip, and ends when the round-trip time
//! has doubled:
//!
//! ```
//! use lastbyte_congestion::{
//!     ControllerFactory, Environment, Registry,
//!     startup::{Growth, Startup, StartupAck},
//! };
//!
//! #[derive(Debug, Default)]
//! struct Careful;
//!
//! impl Startup for Careful {
//!     fn name(&self) -> &'static str {
//!         "careful"
//!     }
//!
//!     fn on_ack(&mut self, ack: &StartupAck<'_>) -> Growth {
//!         let queued = ack.rtt_sample.is_some_and(|sample| sample >= 2 * ack.rtt.min());
//!         Growth {
//!             done: queued,
//!             ..Growth::by(ack.bytes / 2) // bytes acknowledged in a round trip are a window's worth: 1.5× a round trip
//!         }
//!     }
//!
//!     fn pacing_gain(&self) -> f64 {
//!         1.5
//!     }
//! }
//!
//! let mut registry = Registry::builtin();
//! registry.add_startup("careful", "1.5x a round trip until the RTT doubles", |_| Box::new(Careful))?;
//!
//! let spec = registry.parse("careful:congestion=cubic,initial-window=10p")?;
//! let controller = spec.build(&Environment { max_datagram_size: 1200, seed: 1 });
//! assert_eq!(controller.window(), 12_000);
//! assert_eq!(controller.state().startup, "careful");
//! # Ok::<(), lastbyte_congestion::SpecError>(())
//! ```

mod hystart;
mod rapid_start;
mod search;
mod slow_start;

use core::{fmt, time::Duration};

pub use hystart::HyStart;
pub use rapid_start::{QueueThreshold, RapidStart};
pub use search::Search;
pub use slow_start::SlowStart;

use lastbyte_units::Time;

use crate::{rtt::Rtt, state::Phase};

/// A growth rule for the first slow start. See the [module](self) for an example.
pub trait Startup: fmt::Debug + Send {
    /// The name in specs and logs.
    fn name(&self) -> &'static str;

    /// Responds to an ACK frame outside of recovery. Called for every frame, also when [`StartupAck::bytes`] is zero.
    fn on_ack(&mut self, ack: &StartupAck<'_>) -> Growth;

    /// What was in flight is reported neither as acknowledged nor as lost, as after a NAT rebinding: a rule that compares what was
    /// sent with what was delivered starts again. Default: ignored.
    fn on_rebind(&mut self) {}

    /// The phase in logs, while startup lasts: [`Phase::Startup`], or a named part of it.
    fn phase(&self) -> Phase {
        Phase::Startup
    }

    /// Pacing gain: how many windows the pacer releases in a round trip. It must not be less than the factor by which
    /// the window grows in one, or the pacer becomes the limit.
    fn pacing_gain(&self) -> f64 {
        2.0
    }
}

/// An ACK frame, as a startup sees it. The first loss and the first ECN-CE mark end startup before the rule receives their
/// frame.
#[derive(Clone, Copy, Debug)]
pub struct StartupAck<'a> {
    /// When the frame was received.
    pub now: Time,
    /// Bytes newly acknowledged. Zero while the sender does not use its window: it must not grow then (RFC 9002 §7.8).
    pub bytes: u64,
    /// Bytes acknowledged on the path so far, whether the window was in use or not.
    pub delivered: u64,
    /// Bytes sent on the path so far.
    pub sent: u64,
    /// Bytes in flight after this frame.
    pub in_flight: u64,
    /// The congestion window, in bytes.
    pub window: u64,
    /// The send index ([`Receipt::send_index`](crate::Receipt::send_index)) of the latest packet acknowledged so far.
    pub largest_acked: u64,
    /// The send index of the next packet. A round that starts now ends when it is acknowledged.
    pub next: u64,
    /// The path's round-trip time.
    pub rtt: &'a Rtt,
    /// This frame's sample of it, less the peer's acknowledgment delay, if it gave one.
    pub rtt_sample: Option<Duration>,
}

/// The response of a startup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Growth {
    /// Growth of the window, in bytes.
    pub bytes: u64,
    /// The largest window after this ACK, in bytes; less than the present window lowers it, to the minimum window at most.
    /// `None` for no limit.
    pub limit: Option<u64>,
    /// Whether startup is over: the path was found full without a loss, and avoidance continues from this window.
    pub done: bool,
}

impl Growth {
    /// Grows by `bytes` and continues.
    #[must_use]
    pub const fn by(bytes: u64) -> Self {
        Self {
            bytes,
            limit: None,
            done: false,
        }
    }

    /// End startup with a window of at most `limit` bytes.
    #[must_use]
    pub const fn end_at(limit: u64) -> Self {
        Self {
            bytes: 0,
            limit: Some(limit),
            done: true,
        }
    }
}
