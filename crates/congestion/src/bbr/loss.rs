//! How BBR responds to loss (draft-ietf-ccwg-bbr-06 §5.5.10).
//!
//! During a bandwidth probe, the first packet whose loss raises the loss rate above 2 % ends it and sets the long-term
//! bound to the point where the rate crossed 2 %. Otherwise, at the end of a round with losses:
//!
//! - `bw_shortterm` = max(`bw_latest`, 0.7 × `bw_shortterm`),
//! - `inflight_shortterm` = max(`inflight_latest`, 0.7 × `inflight_shortterm`),
//!
//! where the latest values are the largest rate and volume delivered in that round. Startup has its own rule, in
//! [`startup`](super::startup).

use lastbyte_units::Time;

use super::{
    Bbr,
    constants::{BETA, LOSS_THRESHOLD_INVERSE},
    mode::Mode,
    model::{UNBOUNDED, scale},
    recovery::Undo,
};
use crate::{bandwidth::Bandwidth, controller::Packet, sampler::RateSample};

#[cfg(test)]
mod tests;

/// The round in which losses are counted, and the bytes delivered in it.
#[derive(Clone, Debug, Default)]
pub(super) struct LossRound {
    /// Whether the current ACK ended the round (`BBR.loss_round_start`).
    pub(super) round_ended: bool,
    /// `BBR.is_loss_in_round`.
    pub(super) is_loss: bool,
    /// Discontiguous ranges of packets lost in this round.
    pub(super) ranges: u64,
    /// `BBR.bw_latest`.
    pub(super) bandwidth_latest: Bandwidth,
    /// `BBR.inflight_latest`.
    pub(super) in_flight_latest: u64,
    /// `BBR.loss_round_delivered`.
    end_delivered: u64,
    /// The send index of the packet that extends the latest range.
    next_of_range: Option<u64>,
}

impl LossRound {
    /// `NoteLoss()`, except for saving the state, which [`recovery`](super::recovery) does.
    pub(super) const fn note(&mut self, delivered: u64) {
        if !self.is_loss {
            self.is_loss = true;
            self.end_delivered = delivered;
        }
    }

    fn note_packet(&mut self, send_index: u64) {
        if self.next_of_range != Some(send_index) {
            self.ranges = self.ranges.saturating_add(1);
        }
        self.next_of_range = Some(send_index.saturating_add(1));
    }

    /// Clears the losses of this round, after one of them proved spurious.
    pub(super) const fn clear_losses(&mut self) {
        self.is_loss = false;
        self.ranges = 0;
        self.next_of_range = None;
    }

    /// `UpdateLatestDeliverySignals()`.
    pub(super) fn on_sample(&mut self, sample: &RateSample, delivered: u64) {
        self.bandwidth_latest = self.bandwidth_latest.max(sample.rate.unwrap_or_default());
        self.in_flight_latest = self.in_flight_latest.max(sample.delivered);
        self.round_ended = sample.prior_delivered >= self.end_delivered;
        if self.round_ended {
            self.end_delivered = delivered;
        }
    }

    /// `AdvanceLatestDeliverySignals()`: a new round starts with this sample.
    pub(super) fn advance(&mut self, sample: &RateSample) {
        if self.round_ended {
            self.clear();
            self.bandwidth_latest = sample.rate.unwrap_or_default();
            self.in_flight_latest = sample.delivered;
        }
    }

    /// `ResetCongestionSignals()`.
    pub(super) const fn clear(&mut self) {
        self.clear_losses();
        self.bandwidth_latest = Bandwidth::ZERO;
        self.in_flight_latest = 0;
    }
}

/// `IsInflightTooHigh()`: whether more than 2 % of the bytes in flight were lost.
pub(super) fn is_too_high(lost: u64, in_flight: u64) -> bool {
    u128::from(lost) * u128::from(LOSS_THRESHOLD_INVERSE) > u128::from(in_flight)
}

/// `InflightAtLoss()`: the bytes in flight at which losses exceeded 2 %, somewhere in this packet, which may represent
/// a whole burst.
///
/// With `before` in flight and `lost_before` of it lost, the prefix p of the packet that may still be lost follows from
/// (`lost_before` + p) / (`before` + p) = 2 %.
fn in_flight_at_loss(bytes: u64, in_flight: u64, lost: u64) -> u64 {
    const THRESHOLD: f64 = 1.0 / LOSS_THRESHOLD_INVERSE as f64;
    let before = in_flight.saturating_sub(bytes);
    let lost_before = lost.saturating_sub(bytes);
    let prefix = (THRESHOLD * before as f64 - lost_before as f64) / (1.0 - THRESHOLD);
    // Negative if the rate was exceeded earlier: then nothing of this packet fits.
    before.saturating_add((prefix.max(0.0) as u64).min(bytes))
}

impl Bbr {
    /// `HandleLostPacket()`.
    pub(super) fn handle_lost_packet(&mut self, now: Time, packet: &Packet) {
        self.losses.note(self.sampler.delivered());
        self.losses.note_packet(packet.receipt.send_index());
        if !self.cycle.is_probe_sample {
            return;
        }
        let sent = packet.receipt.delivery();
        let lost = self.sampler.lost_since(packet);
        if is_too_high(lost, sent.in_flight) {
            let in_flight = in_flight_at_loss(packet.bytes, sent.in_flight, lost);
            self.handle_in_flight_too_high(now, in_flight, sent.app_limited);
        }
    }

    /// `HandleInflightTooHigh()`, once per probe.
    fn handle_in_flight_too_high(&mut self, now: Time, in_flight: u64, app_limited: bool) {
        self.cycle.is_previous_too_high = true;
        self.cycle.is_probe_sample = false;
        if !app_limited {
            self.bounds.in_flight_longterm = in_flight.max(scale(self.target_in_flight(), BETA));
        }
        if self.mode == Mode::ProbeBandwidthUp {
            self.recovery.on_probe_ended(Undo::ProbeBandwidthUp);
            self.start_down(now);
        }
    }

    /// `AdaptLowerBoundsFromCongestion()`, at the end of a loss round.
    pub(super) fn adapt_lower_bounds(&mut self) {
        if self.mode.is_probing() || !self.losses.is_loss {
            return;
        }
        let bounds = &mut self.bounds;
        if bounds.bandwidth_shortterm.is_unlimited() {
            bounds.bandwidth_shortterm = self.max_bandwidth.value();
        }
        if bounds.in_flight_shortterm == UNBOUNDED {
            bounds.in_flight_shortterm = self.window;
        }
        bounds.bandwidth_shortterm = bounds
            .bandwidth_shortterm
            .scaled(BETA)
            .max(self.losses.bandwidth_latest);
        bounds.in_flight_shortterm =
            scale(bounds.in_flight_shortterm, BETA).max(self.losses.in_flight_latest);
    }
}
