//! The round-trip time estimator of RFC 9002 §5.

use core::time::Duration;

use lastbyte_units::{Time, nanos};

#[cfg(test)]
mod tests;

/// The timer granularity of RFC 9002 §6.1.2 (`kGranularity`): 1 ms.
pub const GRANULARITY: Duration = Duration::from_millis(1);

/// The round-trip time to assume before the first sample, RFC 9002 §6.2.2 (`kInitialRtt`): 333 ms.
pub const INITIAL_RTT: Duration = Duration::from_millis(333);

/// The round-trip time of one path.
///
/// Pass every sample that RFC 9002 §5.1 permits to [`Rtt::update`]: an acknowledgment that newly acknowledges its
/// largest packet, and at least one ack-eliciting packet.
///
/// ```
/// use core::time::Duration;
/// use lastbyte_congestion::{Rtt, Time};
///
/// let mut rtt = Rtt::default();
/// assert!(!rtt.has_sample());
/// rtt.update(Time::ZERO, Duration::from_millis(40), Duration::ZERO, None);
/// assert_eq!(rtt.smoothed(), Duration::from_millis(40));
/// assert_eq!(rtt.variance(), Duration::from_millis(20));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rtt {
    // In nanoseconds: a `Duration` is two numbers, and this is computed with on each ACK.
    latest: u64,
    adjusted: u64,
    smoothed: u64,
    variance: u64,
    min: u64,
    max: u64,
    first_sample_at: Option<Time>,
}

impl Rtt {
    /// An estimator that assumes `initial` until the first sample.
    #[must_use]
    pub const fn new(initial: Duration) -> Self {
        let initial = nanos(initial);
        Self {
            latest: initial,
            adjusted: initial,
            smoothed: initial,
            variance: initial / 2,
            min: initial,
            max: initial,
            first_sample_at: None,
        }
    }

    /// Takes a sample (RFC 9002 §5.1 to §5.3).
    ///
    /// `latest` is the time from sending the largest newly acknowledged packet to `now`. `ack_delay` is the delay that
    /// the peer reports: pass zero for Initial packets. `max_ack_delay` is the peer's transport parameter once the
    /// handshake is confirmed, and `None` before, when the reported delay must not be capped by it.
    pub fn update(
        &mut self,
        now: Time,
        latest: Duration,
        ack_delay: Duration,
        max_ack_delay: Option<Duration>,
    ) {
        let latest = nanos(latest);
        self.latest = latest;
        if self.first_sample_at.is_none() {
            self.first_sample_at = Some(now);
            self.adjusted = latest;
            self.min = latest;
            self.max = latest;
            self.smoothed = latest;
            self.variance = latest / 2;
            return;
        }
        // §5.2: min_rtt is never reduced by the delay, so that a peer that overstates it cannot lower the minimum.
        self.min = self.min.min(latest);
        self.max = self.max.max(latest);
        // §5.3
        let ack_delay = nanos(max_ack_delay.map_or(ack_delay, |limit| ack_delay.min(limit)));
        self.adjusted = match latest.checked_sub(ack_delay) {
            Some(adjusted) if adjusted >= self.min => adjusted,
            _ => latest,
        };
        let deviation = self.smoothed.abs_diff(self.adjusted);
        self.variance = weigh(self.variance, 3, deviation, 4);
        self.smoothed = weigh(self.smoothed, 7, self.adjusted, 8);
    }

    /// Replaces the minimum by the latest sample, as RFC 9002 §5.2 requires after persistent congestion.
    pub fn reset_min(&mut self) {
        self.min = self.latest;
    }

    /// The latest sample, unadjusted.
    pub const fn latest(&self) -> Duration {
        Duration::from_nanos(self.latest)
    }

    /// The latest sample less the peer's acknowledgment delay, if that is plausible (RFC 9002 §5.3). Startups use it to
    /// detect a growing queue.
    pub const fn adjusted(&self) -> Duration {
        Duration::from_nanos(self.adjusted)
    }

    /// The smoothed round-trip time, `smoothed_rtt`.
    pub const fn smoothed(&self) -> Duration {
        Duration::from_nanos(self.smoothed)
    }

    /// The RTT variation, `rttvar`.
    pub const fn variance(&self) -> Duration {
        Duration::from_nanos(self.variance)
    }

    /// The smallest sample, `min_rtt`.
    pub const fn min(&self) -> Duration {
        Duration::from_nanos(self.min)
    }

    /// The largest sample. Not part of RFC 9002; for logs.
    pub const fn max(&self) -> Duration {
        Duration::from_nanos(self.max)
    }

    /// The latest sample, unadjusted; `None` before the first.
    pub(crate) fn latest_sample(&self) -> Option<Duration> {
        self.has_sample().then(|| self.latest())
    }

    /// The smallest sample; zero while there is none.
    pub(crate) const fn min_or_zero(&self) -> Duration {
        if self.has_sample() {
            self.min()
        } else {
            Duration::ZERO
        }
    }

    /// Whether any sample has been taken. Without one, all values are assumptions: do not pace by them.
    pub const fn has_sample(&self) -> bool {
        self.first_sample_at.is_some()
    }

    /// When the first sample was taken. Persistent congestion counts only packets sent after it (RFC 9002 §7.6.2).
    pub const fn first_sample_at(&self) -> Option<Time> {
        self.first_sample_at
    }

    /// The probe timeout without back-off: smoothed + max(4 × variance, granularity) + `max_ack_delay`
    /// (RFC 9002 §6.2.1). Pass zero for the Initial and Handshake spaces.
    pub fn probe_timeout(&self, max_ack_delay: Duration) -> Duration {
        let deviation = self.variance.saturating_mul(4).max(nanos(GRANULARITY));
        let without_delay = Duration::from_nanos(self.smoothed.saturating_add(deviation));
        without_delay.saturating_add(max_ack_delay)
    }

    /// The persistent congestion duration (RFC 9002 §7.6.1).
    pub fn persistent_congestion_duration(&self, max_ack_delay: Duration) -> Duration {
        const PERSISTENT_CONGESTION_THRESHOLD: u32 = 3;
        self.probe_timeout(max_ack_delay)
            .saturating_mul(PERSISTENT_CONGESTION_THRESHOLD)
    }
}

impl Default for Rtt {
    fn default() -> Self {
        Self::new(INITIAL_RTT)
    }
}

/// `(share × old + new) / whole`.
const fn weigh(old: u64, share: u64, new: u64, whole: u64) -> u64 {
    old.saturating_mul(share).saturating_add(new) / whole
}
