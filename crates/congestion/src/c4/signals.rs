//! What C4 counts as congestion (draft-huitema-ccwg-c4-spec §5).
//!
//! All thresholds decrease with the *sensitivity*, which increases with the nominal rate from 0 to 1: of several flows, the one with
//! the highest rate yields first.

use core::time::Duration;

use lastbyte_units::Time;

use crate::{bandwidth::Bandwidth, controller::Ack};

/// The largest reduction by one signal (§5.5.1).
pub(super) const BETA_MAX: f64 = 0.25;
/// The largest delay threshold (§5.2).
const DELAY_THRESHOLD_MAX: Duration = Duration::from_millis(25);
/// The weight of a new value in the smoothed rates of losses and marks (§5.3, §5.4).
const WEIGHT: f64 = 1.0 / 16.0;
/// The share of marks is updated four times in a round trip, which is how often ACK frames arrive in the draft's implementation, and
/// not before this many packets are acknowledged: with a frame for two packets, each mark would be half of the frame.
const UPDATES_PER_RTT: u32 = 4;
const UPDATE_PACKETS: u64 = 16;
/// A share of marks that is not smoothed (§5.4).
const MANY_MARKS: f64 = 0.5;

/// Losses and marks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Signals {
    smoothed_loss_rate: f64,
    ecn_alpha: f64,
    /// Whether any packet was marked.
    has_marks: bool,
    /// Packets acknowledged, and the increase of the count of marks, since this time.
    acked: u64,
    marked: u64,
    since: Time,
}

impl Signals {
    pub(super) fn on_acked(&mut self) {
        self.smoothed_loss_rate -= self.smoothed_loss_rate * WEIGHT;
        self.acked = self.acked.saturating_add(1);
    }

    pub(super) fn on_lost(&mut self) {
        self.smoothed_loss_rate += (1.0 - self.smoothed_loss_rate) * WEIGHT;
    }

    pub(super) const fn on_marked(&mut self, count: u64) {
        self.has_marks = true;
        self.marked = self.marked.saturating_add(count);
    }

    /// §5.3.
    pub(super) fn has_loss(&self, nominal_rate: Option<Bandwidth>) -> bool {
        let sensitivity = sensitivity(nominal_rate.unwrap_or_default());
        self.smoothed_loss_rate > 0.02 + 0.5 * (1.0 - sensitivity)
    }

    /// Ends an ACK frame. `beta` if there are too many marks (§5.4).
    pub(super) fn end_ack(
        &mut self,
        ack: &Ack<'_>,
        nominal_rate: Option<Bandwidth>,
    ) -> Option<f64> {
        let (acked, marked) = (self.acked, self.marked);
        let is_due = ack.now.since(self.since) >= ack.rtt.smoothed() / UPDATES_PER_RTT;
        if acked < UPDATE_PACKETS || !is_due {
            return None;
        }
        (self.acked, self.marked, self.since) = (0, 0, ack.now);
        if !self.has_marks {
            return None;
        }
        let share = (marked as f64 / acked as f64).min(1.0);
        if share >= MANY_MARKS {
            self.ecn_alpha = share;
        } else {
            self.ecn_alpha += (share - self.ecn_alpha) * WEIGHT;
        }
        let sensitivity = sensitivity(nominal_rate.unwrap_or_default());
        let threshold = (2.0 - sensitivity) * 3.0 / 32.0;
        let excess = self.ecn_alpha - threshold;
        (excess > 0.0).then(|| (excess / threshold).min(BETA_MAX))
    }

    pub(super) const fn end_recovery(&mut self) {
        self.ecn_alpha = 0.0;
    }

    pub(super) const fn has_marks(&self) -> bool {
        self.has_marks
    }
}

/// §5.2: by how much a round-trip time may exceed the nominal maximum.
pub(super) fn delay_threshold(nominal_rate: Bandwidth, nominal_max_rtt: Duration) -> Duration {
    let fraction = 1.0 / 16.0 + (1.0 - sensitivity(nominal_rate)) * 3.0 / 16.0;
    nominal_max_rtt.mul_f64(fraction).min(DELAY_THRESHOLD_MAX)
}

/// §5.1: from 0 at 50 kB/s over 0.92 at 1 MB/s to 1 at 10 MB/s, linear between them.
pub(super) fn sensitivity(rate: Bandwidth) -> f64 {
    let rate = rate.bytes_per_second() as f64;
    let between = |low: f64, high: f64| (rate - low) / (high - low);
    match rate {
        ..5e4 => 0.0,
        ..1e6 => 0.92 * between(5e4, 1e6),
        ..1e7 => 0.92 + 0.08 * between(1e6, 1e7),
        _ => 1.0,
    }
}
