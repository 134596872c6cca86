//! Data rates.

use core::{fmt, time::Duration};

use crate::time::nanos;

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

    /// Creates a rate from bytes per second. Saturates.
    #[must_use]
    pub const fn from_bytes_per_second(bytes: u64) -> Self {
        Self(bytes.saturating_mul(8))
    }

    /// The rate in bits per second.
    #[must_use]
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }

    /// The time that `bytes` take to pass, rounded up to the nanosecond. With a rate of zero, `u64::MAX` nanoseconds.
    #[must_use]
    pub fn time_for(self, bytes: u64) -> Duration {
        let work = u128::from(bytes) * 8 * u128::from(NANOS_PER_SECOND);
        match (work, self.0) {
            (0, _) => Duration::ZERO,
            (_, 0) => Duration::from_nanos(u64::MAX),
            (_, rate) => Duration::from_nanos(saturate(work.div_ceil(u128::from(rate)))),
        }
    }

    /// The number of whole bytes that pass in `span`. Saturates.
    #[must_use]
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nothing_overflows_or_divides_by_zero() {
        assert_eq!(Rate::ZERO.time_for(0), Duration::ZERO);
        assert_eq!(Rate::ZERO.time_for(1), Duration::from_nanos(u64::MAX));
        assert_eq!(
            Rate::from_bits_per_second(1).time_for(u64::MAX),
            Duration::from_nanos(u64::MAX)
        );
        assert_eq!(
            Rate::from_bytes_per_second(u64::MAX).bytes_in(Duration::MAX),
            u64::MAX
        );
    }

    #[test]
    fn rates_are_displayed_like_tc() {
        let shown = |bits| Rate::from_bits_per_second(bits).to_string();
        let rates = [0, 999, 64_000, 1_500_000, 1_000_000_000];
        assert_eq!(
            rates.map(shown),
            ["0bit", "999bit", "64kbit", "1500kbit", "1gbit"]
        );
    }

    proptest! {
        #[test]
        fn time_for_is_exact_for_any_number_of_bytes(bytes in 1u64..1 << 40, rate in 1u64..1 << 40) {
            let rate = Rate(rate);
            let time = rate.time_for(bytes);
            prop_assert!(rate.bytes_in(time) >= bytes);
            prop_assert!(rate.bytes_in(time.saturating_sub(Duration::from_nanos(1))) < bytes);
        }
    }
}
