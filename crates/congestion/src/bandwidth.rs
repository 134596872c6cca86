//! Rates, in bytes per second.

use core::{fmt, time::Duration};

use lastbyte_units::nanos;

#[cfg(test)]
mod tests;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// A rate of data. Stored in whole bytes per second, displayed in bits per second as is usual for networks.
///
/// ```
/// use core::time::Duration;
/// use lastbyte_congestion::Bandwidth;
///
/// let vdsl = Bandwidth::from_bits_per_second(55_000_000);
/// assert_eq!(vdsl.bytes_in(Duration::from_millis(39)), 268_125); // the path of 55 Mb/s and 39 ms holds 268 kB
/// assert_eq!(vdsl.time_for(268_125), Duration::from_millis(39));
/// assert_eq!(vdsl.to_string(), "55mbit");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bandwidth(u64);

impl Bandwidth {
    /// A rate of zero.
    pub const ZERO: Self = Self(0);
    /// No limit.
    pub const MAX: Self = Self(u64::MAX);

    /// Creates a rate from bytes per second.
    #[must_use]
    pub const fn from_bytes_per_second(bytes: u64) -> Self {
        Self(bytes)
    }

    /// Creates a rate from bits per second, rounded down to whole bytes.
    #[must_use]
    pub const fn from_bits_per_second(bits: u64) -> Self {
        Self(bits / 8)
    }

    /// The rate at which `bytes` pass in `interval`. [`Bandwidth::MAX`] for an interval of zero.
    #[must_use]
    pub fn from_delivery(bytes: u64, interval: Duration) -> Self {
        match nanos(interval) {
            0 => Self::MAX,
            span => Self(scale(bytes, NANOS_PER_SECOND, span)),
        }
    }

    /// Bytes per second.
    pub const fn bytes_per_second(self) -> u64 {
        self.0
    }

    /// Bits per second, saturating.
    pub const fn bits_per_second(self) -> u64 {
        self.0.saturating_mul(8)
    }

    /// Whether this rate is [`Bandwidth::MAX`], that is: no limit.
    pub const fn is_unlimited(self) -> bool {
        self.0 == u64::MAX
    }

    /// The whole bytes transmitted in `span`.
    pub fn bytes_in(self, span: Duration) -> u64 {
        if self.is_unlimited() && !span.is_zero() {
            return u64::MAX;
        }
        scale(self.0, nanos(span), NANOS_PER_SECOND)
    }

    /// Transmission time of `bytes`, rounded up to the nanosecond; the maximum if the rate is zero.
    pub fn time_for(self, bytes: u64) -> Duration {
        match self.0 {
            u64::MAX => Duration::ZERO,
            0 if bytes == 0 => Duration::ZERO,
            0 => Duration::from_nanos(u64::MAX),
            rate => Duration::from_nanos(saturate(
                (u128::from(bytes) * u128::from(NANOS_PER_SECOND)).div_ceil(u128::from(rate)),
            )),
        }
    }

    /// This rate times `gain`, saturating; a negative gain or NaN counts as zero.
    #[must_use]
    pub fn scaled(self, gain: f64) -> Self {
        if self.is_unlimited() {
            return self;
        }
        Self((self.0 as f64 * gain) as u64)
    }
}

/// `value × factor / divisor`, saturating. Most products fit 64 bits, where division is several times faster.
fn scale(value: u64, factor: u64, divisor: u64) -> u64 {
    match value.checked_mul(factor) {
        Some(product) => product / divisor,
        None => saturate(u128::from(value) * u128::from(factor) / u128::from(divisor)),
    }
}

fn saturate(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

impl fmt::Display for Bandwidth {
    /// As `tc` writes rates: `55mbit`, `1.5gbit`, `800bit`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_unlimited() {
            return f.write_str("unlimited");
        }
        let bits = self.bits_per_second();
        let (unit, scale) = match bits {
            1_000_000_000.. => ("gbit", 1e9),
            1_000_000.. => ("mbit", 1e6),
            1_000.. => ("kbit", 1e3),
            _ => ("bit", 1.0),
        };
        let rounded = libm::round(bits as f64 / scale * 1000.0) / 1000.0;
        write!(f, "{rounded}{unit}")
    }
}

impl fmt::Debug for Bandwidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
