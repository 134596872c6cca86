//! Time, for state machines that have none of their own.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this is where the clock is read"
)]

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use lastbyte_congestion::Time;
use lastbyte_quic::WallTime;

/// A clock whose time begins a second before it was made, so that what is subtracted in the first moments stays above zero.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    base: Instant,
}

const HEAD_START: Duration = Duration::from_secs(1);

impl Clock {
    /// Begins now.
    #[must_use]
    pub fn new() -> Self {
        Self {
            base: Instant::now(),
        }
    }

    /// What time it is. It never runs back.
    #[must_use]
    pub fn now(&self) -> Time {
        let passed = self.base.elapsed() + HEAD_START;
        Time::from_nanos(u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX))
    }

    /// The time of day, for what servers share and what outlives a process. It can be set, backwards too.
    #[must_use]
    pub fn wall_time() -> WallTime {
        WallTime::from_unix(Self::since_epoch())
    }

    /// The same as a span since the Unix epoch, for dates and logs.
    #[must_use]
    pub fn since_epoch() -> Duration {
        // Before 1970 it is 1970.
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
