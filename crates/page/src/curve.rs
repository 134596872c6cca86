//! The share of the visible bytes that are shown, over time.

use core::time::Duration;

use lastbyte_units::Time;

/// How many bytes of visible resources have been shown, over time, and its integral.
///
/// Nothing is shown before the first render. The integral is exact; the points are thinned: at first to one each millisecond,
/// then, each time there are [`Self::POINTS_MAX`], to half as many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Curve {
    points: Vec<(Time, u64)>,
    resolution: Duration,
    bytes: u64,
    /// Bytes times nanoseconds since the first render.
    area: u128,
    /// Until when `area` is known. `None` before the first render.
    last: Option<Time>,
}

impl Curve {
    /// The largest number of points.
    pub const POINTS_MAX: usize = 4096;

    pub(crate) const fn new() -> Self {
        Self {
            points: Vec::new(),
            resolution: Duration::from_millis(1),
            bytes: 0,
            area: 0,
            last: None,
        }
    }

    /// The page is rendered from `at` on.
    pub(crate) fn show(&mut self, at: Time) {
        self.last = Some(at);
        self.push(at);
    }

    /// `bytes` more bytes have arrived.
    pub(crate) fn add(&mut self, bytes: u64, at: Time) {
        self.extend(at);
        self.bytes += bytes;
        if bytes > 0 && self.last.is_some() {
            self.push(at);
        }
    }

    /// Extends the integral to `at`.
    pub(crate) fn extend(&mut self, at: Time) {
        if let Some(last) = self.last {
            self.area += u128::from(self.bytes) * u128::from(at.nanos_since(last));
            self.last = Some(at);
        }
    }

    /// Times and the bytes shown from then on, both ascending. The first point is the first render, the last one has all bytes.
    #[must_use]
    pub fn points(&self) -> &[(Time, u64)] {
        &self.points
    }

    /// The bytes of visible resources that have arrived.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The time from `started` to `ended` less the integral of the share shown: the mean time at which a visible byte was shown.
    pub(crate) fn index(&self, started: Time, ended: Time) -> Duration {
        let shown = self.area.checked_div(u128::from(self.bytes)).unwrap_or(0);
        ended.since(started).saturating_sub(Duration::from_nanos(
            u64::try_from(shown).unwrap_or(u64::MAX),
        ))
    }

    fn push(&mut self, at: Time) {
        if self.points.len() == Self::POINTS_MAX {
            self.resolution *= 2;
            let mut index = 0;
            self.points.retain(|_| {
                index += 1;
                index % 2 == 1
            });
        }
        match self.points.last_mut() {
            Some((time, bytes)) if at < *time + self.resolution => *bytes = self.bytes,
            _ => self.points.push((at, self.bytes)),
        }
    }
}

#[cfg(test)]
mod tests;
