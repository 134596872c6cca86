//! The retransmission timeout (RFC 6298), as Linux computes it (`tcp_rtt_estimator`, `tcp_set_rto`), and kernel timers.

use core::time::Duration;

use lastbyte_units::Time;

/// The estimator, in microseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct RtoEstimator {
    /// Eight times the smoothed round-trip time; 0 before the first sample.
    srtt8: i64,
    /// Four times the mean deviation.
    mdev4: i64,
    mdev4_max: i64,
    rttvar4: i64,
    /// The sequence number that ends the round of `mdev4_max`.
    round_end: u64,
}

impl RtoEstimator {
    /// Adds a sample, when all bytes below `una` are acknowledged and `next` is the next to send.
    pub(super) fn update(&mut self, sample: Duration, una: u64, next: u64) {
        let sample = i64::try_from(sample.as_micros())
            .unwrap_or(i64::MAX >> 8)
            .max(1);
        if self.srtt8 == 0 {
            self.srtt8 = sample << 3;
            self.mdev4 = sample << 1;
            self.rttvar4 = self.mdev4.max(RTO_MIN_US);
            self.mdev4_max = self.rttvar4;
            self.round_end = next;
            return;
        }
        let error = sample - (self.srtt8 >> 3);
        self.srtt8 += error;
        let mut growth = error.abs() - (self.mdev4 >> 2);
        if error < 0 && growth > 0 {
            growth >>= 3; // a falling round-trip time must not raise the timeout (Eifel)
        }
        self.mdev4 += growth;
        if self.mdev4 > self.mdev4_max {
            self.mdev4_max = self.mdev4;
            self.rttvar4 = self.rttvar4.max(self.mdev4_max);
        }
        if una > self.round_end {
            if self.mdev4_max < self.rttvar4 {
                self.rttvar4 -= (self.rttvar4 - self.mdev4_max) >> 2;
            }
            self.round_end = next;
            self.mdev4_max = RTO_MIN_US;
        }
    }

    /// The smoothed round-trip time; `None` before the first sample.
    pub(super) fn smoothed(&self) -> Option<Duration> {
        (self.srtt8 > 0).then(|| micros(self.srtt8 >> 3))
    }

    /// The timeout without back-off.
    pub(super) fn timeout(&self) -> Duration {
        match self.smoothed() {
            Some(smoothed) => (smoothed + micros(self.rttvar4)).min(RTO_MAX),
            None => RTO_INITIAL,
        }
    }
}

/// The expiry of a kernel timer set at `now` for `span`: on a tick (`CONFIG_HZ=250`), one tick late, and on coarser ticks from
/// 63 on (`calc_wheel_index`).
pub(super) fn timer(now: Time, span: Duration) -> Time {
    let tick = TICK.as_nanos() as u64;
    let ticks = (span.as_nanos() as u64).div_ceil(tick);
    let mut shift = 0;
    while ticks >= 63 << shift && shift < 24 {
        shift += 3;
    }
    let expires = now.as_nanos() / tick + ticks;
    Time::from_nanos((((expires >> shift) + 1) << shift).saturating_mul(tick))
}

fn micros(micros: i64) -> Duration {
    Duration::from_micros(micros.unsigned_abs())
}

/// `TCP_RTO_MIN`
pub(super) const RTO_MIN: Duration = Duration::from_millis(200);
const RTO_MIN_US: i64 = 200_000;
/// `TCP_RTO_MAX`
pub(super) const RTO_MAX: Duration = Duration::from_secs(120);
/// `TCP_TIMEOUT_INIT` (RFC 6298 §2.1)
pub(super) const RTO_INITIAL: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(4);

#[cfg(test)]
mod tests;
