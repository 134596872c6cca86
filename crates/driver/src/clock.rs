//! The clock: the only place that reads the time for the sans-IO state machines.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this is where the clock is read"
)]

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use lastbyte_congestion::Time;
use lastbyte_quic::WallTime;

/// A monotonic clock. It starts at one second, so that subtracting a short span from an early time does not reach zero.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    base: Instant,
}

const HEAD_START: Duration = Duration::from_secs(1);

impl Clock {
    /// Creates a clock that reads one second now.
    #[must_use]
    pub fn new() -> Self {
        Self {
            base: Instant::now(),
        }
    }

    /// The current time. It never decreases.
    pub fn now(&self) -> Time {
        let passed = self.base.elapsed() + HEAD_START;
        Time::from_nanos(u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX))
    }

    /// The wall-clock time, for values that servers share or that outlive the process. It can be set, also backwards.
    pub fn wall_time() -> WallTime {
        WallTime::from_unix(Self::since_epoch())
    }

    /// The wall-clock time as a span since the Unix epoch, for dates and logs.
    pub fn since_epoch() -> Duration {
        // A clock set before 1970 reads as 1970.
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}
