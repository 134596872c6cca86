//! Wall-clock time: what servers that share keys agree on, and what outlives a process.
//!
//! A type of its own, so that neither a span ([`Duration`]) nor monotonic time
//! ([`Time`](lastbyte_congestion::Time)) can be passed in its place.

use core::{ops::Add, time::Duration};

/// A point of wall-clock time. The clock behind it can be set, backwards too.
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

    /// How long after the Unix epoch it is.
    #[must_use]
    pub const fn since_unix_epoch(self) -> Duration {
        self.since_unix_epoch
    }

    /// How long after `earlier` it is; zero if it is before that.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        self.since_unix_epoch
            .saturating_sub(earlier.since_unix_epoch)
    }
}

impl Add<Duration> for WallTime {
    type Output = Self;

    /// Stays at the latest time there is instead of overflowing.
    fn add(self, span: Duration) -> Self {
        Self::from_unix(self.since_unix_epoch.saturating_add(span))
    }
}
