//! Rates in bits per second, and drift-free transmission times.
//!
//! Work is measured in nanobits, of which a bit has 10⁹: a link of *r* bit/s transmits exactly *r* nanobits per
//! nanosecond, so all arithmetic is on integers. The end of a packet is rounded up to a nanosecond; the unused capacity
//! in that nanosecond is credited to a packet that follows immediately. A train of packets therefore takes its total
//! number of bits divided by the rate, however many packets it has.

use core::{fmt, time::Duration};

use crate::time::nanos;

pub(crate) const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// A data rate in bits per second.
///
/// ```
/// use core::time::Duration;
/// use lastbyte_link::Rate;
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

/// The work of transmitting `bytes`, in nanobits.
pub(crate) const fn work_of(bytes: u32) -> u128 {
    bytes as u128 * 8 * NANOS_PER_SECOND as u128
}

/// The number of nanoseconds that `work` takes at `rate`, rounded up, and the unused work in the last nanosecond. Most
/// work fits in 64 bits, where division is several times faster.
///
/// Returns `None` if the rate is zero.
pub(crate) fn nanos_for(work: u128, rate: Rate) -> Option<(u64, u64)> {
    if work == 0 {
        return Some((0, 0));
    }
    if rate.0 == 0 {
        return None;
    }
    if let Ok(work) = u64::try_from(work) {
        let nanos = work.div_ceil(rate.0);
        // The unused work is less than the rate. The product may overflow 64 bits, but the subtraction wraps back.
        return Some((nanos, nanos.wrapping_mul(rate.0).wrapping_sub(work)));
    }
    let nanos = work.div_ceil(u128::from(rate.0));
    let rest = nanos * u128::from(rate.0) - work;
    Some((saturate(nanos), saturate(rest)))
}

pub(crate) fn saturate(value: u128) -> u64 {
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
        assert_eq!(nanos_for(1, Rate::ZERO), None);
        assert_eq!(nanos_for(0, Rate::ZERO), Some((0, 0)));
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
        fn any_work_equals_its_time_less_the_unused_work(bytes: u32, rate in 1u64..) {
            let work = work_of(bytes);
            let (nanos, rest) = nanos_for(work, Rate(rate)).expect("a rate");
            prop_assert!(rest < rate);
            prop_assert_eq!(u128::from(nanos) * u128::from(rate), work + u128::from(rest));
        }

        #[test]
        fn any_bytes_need_exactly_time_for(bytes in 1u64..1 << 40, rate in 1u64..1 << 40) {
            let rate = Rate(rate);
            let time = rate.time_for(bytes);
            prop_assert!(rate.bytes_in(time) >= bytes);
            prop_assert!(rate.bytes_in(time.saturating_sub(Duration::from_nanos(1))) < bytes);
        }
    }
}
