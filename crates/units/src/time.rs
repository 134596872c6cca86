//! Points in time on the caller's clock.
//!
//! No crate of the core reads a clock. The caller passes `now` in nanoseconds since an epoch of its choice. Durations are [`core::time::Duration`].

use core::{fmt, num::NonZeroU64, ops::Add, time::Duration};

#[cfg(test)]
mod tests;

/// A point in time: nanoseconds since the caller's epoch. Arithmetic saturates. An `Option<Time>` takes no more memory than a
/// `Time`.
///
/// ```
/// use core::time::Duration;
/// use lastbyte_units::Time;
///
/// let start = Time::from_nanos(5_000_000);
/// let later = start + Duration::from_millis(39);
/// assert_eq!(later.since(start), Duration::from_millis(39));
/// assert_eq!(start.since(later), Duration::ZERO);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(
    /// One more than the nanoseconds; [`Time::MAX`] is `u64::MAX` of both.
    NonZeroU64,
);

impl Time {
    /// The epoch.
    pub const ZERO: Self = Self(NonZeroU64::MIN);
    /// The latest time, 584 years after the epoch. Stands for "never".
    pub const MAX: Self = Self(NonZeroU64::MAX);

    /// Creates a time `nanos` nanoseconds after the epoch.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self::ZERO.plus(nanos)
    }

    /// Nanoseconds since the epoch.
    pub const fn as_nanos(self) -> u64 {
        let one_more = self.0.get();
        one_more - (one_more != u64::MAX) as u64
    }

    /// The duration from `earlier` to `self`, or zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.nanos_since(earlier))
    }

    /// `nanos` nanoseconds later. Saturates.
    #[must_use]
    pub const fn plus(self, nanos: u64) -> Self {
        Self(self.0.saturating_add(nanos))
    }

    /// The earlier of two deadlines; `None` stands for never.
    #[inline]
    pub fn earlier(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (one, other) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    /// Nanoseconds from `earlier` to `self`, or zero if `earlier` is later.
    pub const fn nanos_since(self, earlier: Self) -> u64 {
        self.0.get().saturating_sub(earlier.0.get())
    }
}

impl Default for Time {
    fn default() -> Self {
        Self::ZERO
    }
}

impl Add<Duration> for Time {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        self.plus(nanos(span))
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", Duration::from_nanos(self.as_nanos()))
    }
}

/// A duration in nanoseconds. Saturates, because a [`Duration`] can exceed 64 bits.
pub const fn nanos(span: Duration) -> u64 {
    span.as_secs()
        .saturating_mul(1_000_000_000)
        .saturating_add(span.subsec_nanos() as u64)
}
