//! Wall-clock time: shared by servers that share keys, and stored across restarts.
//!
//! A type of its own, so that neither a duration ([`Duration`]) nor monotonic time
//! ([`Time`](lastbyte_congestion::Time)) can be passed in its place.

use core::{ops::Add, time::Duration};

/// A point in wall-clock time. The clock can be set, also backwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WallTime {
    since_unix_epoch: Duration,
}

impl WallTime {
    /// The start of 1970, UTC.
    pub const UNIX_EPOCH: Self = Self::from_unix(Duration::ZERO);

    /// The point this long after the Unix epoch.
    #[must_use]
    pub const fn from_unix(since_unix_epoch: Duration) -> Self {
        Self { since_unix_epoch }
    }

    /// The time since the Unix epoch.
    pub const fn since_unix_epoch(self) -> Duration {
        self.since_unix_epoch
    }

    /// The time since `earlier`; zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        self.since_unix_epoch
            .saturating_sub(earlier.since_unix_epoch)
    }
}

impl Add<Duration> for WallTime {
    type Output = Self;

    /// Saturates instead of overflowing.
    fn add(self, span: Duration) -> Self {
        Self::from_unix(self.since_unix_epoch.saturating_add(span))
    }
}
