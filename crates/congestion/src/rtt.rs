//! The round-trip time estimator of RFC 9002 §5.

use core::time::Duration;

use lastbyte_units::{Time, nanos};

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
    #[must_use]
    pub const fn latest(&self) -> Duration {
        Duration::from_nanos(self.latest)
    }

    /// The latest sample less the peer's acknowledgment delay, if that is plausible (RFC 9002 §5.3). Startups use it to
    /// detect a growing queue.
    #[must_use]
    pub const fn adjusted(&self) -> Duration {
        Duration::from_nanos(self.adjusted)
    }

    /// The smoothed round-trip time, `smoothed_rtt`.
    #[must_use]
    pub const fn smoothed(&self) -> Duration {
        Duration::from_nanos(self.smoothed)
    }

    /// The RTT variation, `rttvar`.
    #[must_use]
    pub const fn variance(&self) -> Duration {
        Duration::from_nanos(self.variance)
    }

    /// The smallest sample, `min_rtt`.
    #[must_use]
    pub const fn min(&self) -> Duration {
        Duration::from_nanos(self.min)
    }

    /// The largest sample. Not part of RFC 9002; for logs.
    #[must_use]
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
    #[must_use]
    pub const fn has_sample(&self) -> bool {
        self.first_sample_at.is_some()
    }

    /// When the first sample was taken. Persistent congestion counts only packets sent after it (RFC 9002 §7.6.2).
    #[must_use]
    pub const fn first_sample_at(&self) -> Option<Time> {
        self.first_sample_at
    }

    /// The probe timeout without back-off: smoothed + max(4 × variance, granularity) + `max_ack_delay`
    /// (RFC 9002 §6.2.1). Pass zero for the Initial and Handshake spaces.
    #[must_use]
    pub fn probe_timeout(&self, max_ack_delay: Duration) -> Duration {
        let deviation = self.variance.saturating_mul(4).max(nanos(GRANULARITY));
        let without_delay = Duration::from_nanos(self.smoothed.saturating_add(deviation));
        without_delay.saturating_add(max_ack_delay)
    }

    /// The persistent congestion duration (RFC 9002 §7.6.1).
    #[must_use]
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

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn sampled(samples: &[(u64, u64)], max_ack_delay: Option<Duration>) -> Rtt {
        let mut rtt = Rtt::default();
        for (index, (latest, delay)) in samples.iter().enumerate() {
            rtt.update(
                Time::from_nanos(index as u64),
                ms(*latest),
                ms(*delay),
                max_ack_delay,
            );
        }
        rtt
    }

    #[test]
    fn rfc9002_6_2_2_first_probe_timeout_is_999_ms() {
        // 333 + max(4 × 166.5, 1) = 999
        assert_eq!(Rtt::default().probe_timeout(Duration::ZERO), ms(999));
    }

    #[test]
    fn rfc9002_5_3_first_sample_ignores_the_ack_delay() {
        let rtt = sampled(&[(100, 30)], None);
        assert_eq!((rtt.smoothed(), rtt.variance()), (ms(100), ms(50)));
        assert_eq!(rtt.first_sample_at(), Some(Time::ZERO));
    }

    #[test]
    fn rfc9002_5_3_smoothing_matches_a_worked_example() {
        // second sample: 180 ms with 20 ms of delay: adjusted 160; variance 3/4×50 + 1/4×|100−160| = 52.5;
        // smoothed 7/8×100 + 1/8×160 = 107.5
        let rtt = sampled(&[(100, 0), (180, 20)], None);
        assert_eq!(rtt.adjusted(), ms(160));
        assert_eq!(rtt.variance(), Duration::from_micros(52_500));
        assert_eq!(rtt.smoothed(), Duration::from_micros(107_500));
        assert_eq!(rtt.latest(), ms(180));
    }

    #[test]
    fn rfc9002_5_3_ack_delay_never_takes_a_sample_below_the_minimum() {
        let rtt = sampled(&[(100, 0), (110, 20)], None);
        assert_eq!(rtt.adjusted(), ms(110));
        let rtt = sampled(&[(100, 0), (110, 500)], None);
        assert_eq!(rtt.adjusted(), ms(110));
    }

    #[test]
    fn rfc9002_5_3_ack_delay_is_capped_once_the_handshake_is_confirmed() {
        assert_eq!(
            sampled(&[(100, 0), (180, 60)], Some(ms(25))).adjusted(),
            ms(155)
        );
        assert_eq!(sampled(&[(100, 0), (180, 60)], None).adjusted(), ms(120));
    }

    #[test]
    fn rfc9002_5_2_minimum_is_of_raw_samples_and_can_be_reset() {
        let mut rtt = sampled(&[(100, 0), (90, 25), (130, 0)], None);
        assert_eq!((rtt.min(), rtt.max()), (ms(90), ms(130)));
        rtt.reset_min();
        assert_eq!((rtt.min(), rtt.max()), (ms(130), ms(130)));
    }

    #[test]
    fn rfc9002_7_6_1_persistent_congestion_duration() {
        // (100 + 4×50 + 25) × 3
        let rtt = sampled(&[(100, 0)], None);
        assert_eq!(rtt.persistent_congestion_duration(ms(25)), ms(975));
    }

    #[test]
    fn extreme_samples_do_not_overflow() {
        let mut rtt = Rtt::new(Duration::MAX);
        rtt.update(Time::MAX, Duration::MAX, Duration::MAX, None);
        rtt.update(Time::MAX, Duration::MAX, Duration::MAX, Some(Duration::MAX));
        rtt.update(Time::ZERO, Duration::ZERO, Duration::MAX, None);
        assert_eq!(
            rtt.persistent_congestion_duration(Duration::MAX),
            Duration::MAX
        );
    }
}
