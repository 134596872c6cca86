//! Loss detection (RFC 9002 §6.1) as a pure function, with thresholds that adapt to reordering.
//!
//! A packet sent before the largest acknowledged one is lost if its number is lower by [`PACKET_THRESHOLD`], or if it
//! was sent longer ago than the time threshold, 9/8 of a round trip.
//!
//! With [`LossThresholds::adaptive`], spurious losses raise the thresholds, as in quicly: the first one disables
//! detection by packet number, and each further round trip with one doubles the additional fraction of the time
//! threshold, from 1/8 to 1.

use core::time::Duration;

use lastbyte_congestion::{GRANULARITY, Rtt, Time};

/// `kPacketThreshold`, RFC 9002 §6.1.1.
pub const PACKET_THRESHOLD: u64 = 3;

/// The thresholds of loss detection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossThresholds {
    is_adaptive: bool,
    uses_packet_threshold: bool,
    /// The time threshold beyond one round trip, in 1/1024 of it.
    time_share: u32,
    /// Spurious losses of packets below this number have been processed.
    learnt_up_to: u64,
}

impl LossThresholds {
    /// `kTimeThreshold`, RFC 9002 §6.1.2: 9/8.
    const TIME_SHARE: u32 = 1024 / 8;
    /// Two round trips in total.
    const TIME_SHARE_MAX: u32 = 1024;

    /// Those of RFC 9002, constant.
    #[must_use]
    pub const fn fixed() -> Self {
        Self {
            is_adaptive: false,
            uses_packet_threshold: true,
            time_share: Self::TIME_SHARE,
            learnt_up_to: 0,
        }
    }

    /// Those of RFC 9002, raised when the path reorders.
    #[must_use]
    pub const fn adaptive() -> Self {
        Self {
            is_adaptive: true,
            ..Self::fixed()
        }
    }

    /// Whether packets are declared lost by packet number: for the log.
    pub const fn uses_packet_threshold(&self) -> bool {
        self.uses_packet_threshold
    }

    /// The time threshold beyond one round trip, in 1/1024 of it: for the log.
    pub const fn time_share(&self) -> u32 {
        self.time_share
    }

    /// A packet declared lost was acknowledged. `next` is the number of the next packet to be sent: packets sent before
    /// it cause no further step, so there is at most one a round trip.
    pub fn on_spurious_loss(&mut self, number: u64, next: u64) {
        if !self.is_adaptive || number < self.learnt_up_to {
            return;
        }
        self.learnt_up_to = next;
        if self.uses_packet_threshold {
            self.uses_packet_threshold = false;
        } else {
            self.time_share = (self.time_share * 2).min(Self::TIME_SHARE_MAX);
        }
    }

    /// The time threshold (RFC 9002 §6.1.2).
    pub fn delay(&self, rtt: &Rtt) -> Duration {
        let round_trip = rtt.smoothed().max(rtt.latest());
        round_trip
            .saturating_mul(1024 + self.time_share)
            .checked_div(1024)
            .unwrap_or(round_trip)
            .max(GRANULARITY)
    }
}

/// The decision on one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossDecision {
    /// Lost by packet threshold.
    LostByPackets,
    /// Lost by time threshold.
    LostByTime,
    /// Not lost yet; it is lost at this time.
    Until(Time),
}

/// Decides on packet `number`, sent at `sent_at`, if `largest_acked`, which is larger, is the largest acknowledged
/// number.
pub fn detect_loss(
    number: u64,
    sent_at: Time,
    largest_acked: u64,
    now: Time,
    delay: Duration,
    thresholds: &LossThresholds,
) -> LossDecision {
    if thresholds.uses_packet_threshold && largest_acked.saturating_sub(number) >= PACKET_THRESHOLD
    {
        return LossDecision::LostByPackets;
    }
    let lost_at = sent_at + delay;
    if lost_at <= now {
        LossDecision::LostByTime
    } else {
        LossDecision::Until(lost_at)
    }
}

#[cfg(test)]
mod tests;
