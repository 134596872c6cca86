//! How early the visible bytes of a page are shown.

use core::time::Duration;

use lastbyte_units::Time;

/// How many bytes of visible resources have been shown, and the integral of this number over time.
///
/// Nothing is shown before the first render.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Curve {
    bytes: u64,
    /// Bytes times nanoseconds since the first render.
    area: u128,
    /// Until when `area` is known. `None` before the first render.
    last: Option<Time>,
}

impl Curve {
    pub(crate) const fn new() -> Self {
        Self {
            bytes: 0,
            area: 0,
            last: None,
        }
    }

    /// The page is rendered from `at` on.
    pub(crate) const fn show(&mut self, at: Time) {
        self.last = Some(at);
    }

    /// `bytes` more bytes have arrived.
    pub(crate) fn add(&mut self, bytes: u64, at: Time) {
        self.extend(at);
        self.bytes += bytes;
    }

    /// Extends the integral to `at`.
    pub(crate) fn extend(&mut self, at: Time) {
        if let Some(last) = self.last {
            self.area += u128::from(self.bytes) * u128::from(at.nanos_since(last));
            self.last = Some(at);
        }
    }

    /// The time from `started` to `ended` less the integral of the share shown: the mean time at which a visible byte was shown.
    pub(crate) fn index(&self, started: Time, ended: Time) -> Duration {
        let shown = self.area.checked_div(u128::from(self.bytes)).unwrap_or(0);
        ended.since(started).saturating_sub(Duration::from_nanos(
            u64::try_from(shown).unwrap_or(u64::MAX),
        ))
    }
}

#[cfg(test)]
mod tests;
