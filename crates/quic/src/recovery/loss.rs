//! Which packets are lost (RFC 9002 §6.1), as a pure function; and thresholds that learn from reordering.
//!
//! A packet sent before the largest acknowledged one is lost if it is [`PACKET_THRESHOLD`] numbers behind it, or was sent
//! a time threshold, 9/8 of a round trip, ago.
//!
//! With [`LossThresholds::adaptive`], a loss that turns out spurious relaxes them, as quicly does: the first one ends
//! detection by packet number, and each further round with one doubles the share of a round trip that is waited beyond one,
//! from 1/8 to 1.

use core::time::Duration;

use lastbyte_congestion::{GRANULARITY, Rtt, Time};

/// `kPacketThreshold`, RFC 9002 §6.1.1.
pub const PACKET_THRESHOLD: u64 = 3;

/// How much reordering is tolerated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossThresholds {
    is_adaptive: bool,
    uses_packet_threshold: bool,
    /// What is waited beyond one round trip, in 1/1024 of it.
    time_share: u32,
    /// Spurious losses of packets below this number have been learnt from.
    learnt_up_to: u64,
}

impl LossThresholds {
    /// `kTimeThreshold`, RFC 9002 §6.1.2: 9/8.
    const TIME_SHARE: u32 = 1024 / 8;
    /// Two round trips in all.
    const TIME_SHARE_MAX: u32 = 1024;

    /// Those of RFC 9002, for ever.
    #[must_use]
    pub const fn fixed() -> Self {
        Self {
            is_adaptive: false,
            uses_packet_threshold: true,
            time_share: Self::TIME_SHARE,
            learnt_up_to: 0,
        }
    }

    /// Those of RFC 9002, relaxed when the path reorders.
    #[must_use]
    pub const fn adaptive() -> Self {
        Self {
            is_adaptive: true,
            ..Self::fixed()
        }
    }

    /// Whether packets are lost by their number: for the log.
    #[must_use]
    pub const fn uses_packet_threshold(&self) -> bool {
        self.uses_packet_threshold
    }

    /// What is waited beyond one round trip, in 1/1024 of it: for the log.
    #[must_use]
    pub const fn time_share(&self) -> u32 {
        self.time_share
    }

    /// A packet declared lost was acknowledged after all. `next` is the number of the next packet to be sent: what was
    /// sent before it teaches nothing more, so there is one step a round at most.
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

    /// How long after its sending a packet is lost (RFC 9002 §6.1.2).
    #[must_use]
    pub fn delay(&self, rtt: &Rtt) -> Duration {
        let round_trip = rtt.smoothed().max(rtt.latest());
        round_trip
            .saturating_mul(1024 + self.time_share)
            .checked_div(1024)
            .unwrap_or(round_trip)
            .max(GRANULARITY)
    }
}

/// Whether one packet is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossDecision {
    /// Lost, being too far behind in number.
    LostByPackets,
    /// Lost, being too long on its way.
    LostByTime,
    /// It may still come; it is lost at this time.
    Until(Time),
}

/// Decides on the packet of number `number`, sent at `sent_at`, when `largest_acked` is the largest number acknowledged, which
/// is larger.
#[must_use]
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
