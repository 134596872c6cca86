//! Data rates.

use core::{fmt, time::Duration};

use crate::time::nanos;

#[cfg(test)]
mod tests;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// A data rate in bits per second.
///
/// ```
/// use core::time::Duration;
/// use lastbyte_units::Rate;
///
/// let vdsl = Rate::from_bits_per_second(55_000_000);
/// assert_eq!(vdsl.time_for(268_125), Duration::from_millis(39));
/// assert_eq!(vdsl.bytes_in(Duration::from_millis(39)), 268_125);
/// assert_eq!(vdsl.to_string(), "55mbit");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Rate(u64);

impl Rate {
    /// No data passes.
    pub const ZERO: Self = Self(0);

    /// Creates a rate from bits per second.
    #[must_use]
    pub const fn from_bits_per_second(bits: u64) -> Self {
        Self(bits)
    }

    /// The rate in bits per second.
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }

    /// The time that `bytes` take to pass, rounded up to the nanosecond. With a rate of zero, `u64::MAX` nanoseconds.
    pub fn time_for(self, bytes: u64) -> Duration {
        let work = u128::from(bytes) * 8 * u128::from(NANOS_PER_SECOND);
        match (work, self.0) {
            (0, _) => Duration::ZERO,
            (_, 0) => Duration::from_nanos(u64::MAX),
            (_, rate) => Duration::from_nanos(saturate(work.div_ceil(u128::from(rate)))),
        }
    }

    /// The number of whole bytes that pass in `span`. Saturates.
    pub fn bytes_in(self, span: Duration) -> u64 {
        let nanobits = u128::from(self.0) * u128::from(nanos(span));
        saturate(nanobits / (8 * u128::from(NANOS_PER_SECOND)))
    }
}

impl fmt::Display for Rate {
    /// Formats the rate like `tc`, in the largest unit that needs no fraction: `55mbit`, `1500kbit`, `9bit`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [
            (1_000_000_000, "gbit"),
            (1_000_000, "mbit"),
            (1_000, "kbit"),
        ];
        let (scale, unit) = units
            .into_iter()
            .find(|(scale, _)| self.0 >= *scale && self.0.is_multiple_of(*scale))
            .unwrap_or((1, "bit"));
        write!(f, "{}{unit}", self.0 / scale)
    }
}

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn saturate(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}
