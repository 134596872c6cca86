//! Delivery-rate sampling at the sender (draft-ietf-ccwg-bbr-06 §4.1).
//!
//! The sampler owns the count of bytes delivered and lost. It attaches a [`DeliverySnapshot`] to every packet sent, and
//! when an ACK frame arrives, compares the snapshot of the newest packet acknowledged with the current state:
//!
//! - send elapsed = `sent_at` − `first_sent_at`, over which the flight was sent,
//! - ACK elapsed = now − `delivered_at`, over which it was acknowledged,
//! - rate = bytes delivered since the snapshot ÷ the longer of the two.
//!
//! Using the longer one keeps compressed ACKs from suggesting a rate that was never sent. A sample over less than the
//! minimum RTT has no rate: nothing can be delivered and acknowledged in less time.
//!
//! # Decisions
//!
//! - A packet declared lost and acknowledged after all counts as delivered at that time, once: omitting it would make
//!   every reordering look like a slower path. The count of lost bytes never decreases, as in the draft.
//! - "Newest" is determined among the packets of one ACK frame, by time of sending and then by [`Receipt::send_index`].
//!
//! [`Receipt::send_index`]: crate::Receipt::send_index

use core::time::Duration;

use lastbyte_units::Time;

use crate::{
    bandwidth::Bandwidth,
    controller::{Packet, Sent},
};

/// The sampler's snapshot when a packet is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeliverySnapshot {
    /// Bytes delivered on the path so far (`P.delivered`).
    pub delivered: u64,
    /// When the latest of them was acknowledged (`P.delivered_time`).
    pub delivered_at: Time,
    /// When the first packet of the flight that this one belongs to was sent (`P.first_send_time`).
    pub first_sent_at: Time,
    /// Bytes lost so far (`P.lost`).
    pub lost: u64,
    /// Bytes in flight, including this packet (`P.tx_in_flight`).
    pub in_flight: u64,
    /// Whether the sender had run out of data when the flight was sent (`P.is_app_limited`).
    pub app_limited: bool,
}

impl DeliverySnapshot {
    /// The snapshot of a packet that was not sampled.
    pub(crate) const NONE: Self = Self {
        delivered: 0,
        delivered_at: Time::ZERO,
        first_sent_at: Time::ZERO,
        lost: 0,
        in_flight: 0,
        app_limited: false,
    };
}

/// The result of one ACK frame (`RS`). All sizes are bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSample {
    /// The delivery rate (`RS.delivery_rate`); `None` if the interval is too short to be plausible.
    pub rate: Option<Bandwidth>,
    /// Delivered between the sending of the newest packet acknowledged and now (`RS.delivered`).
    pub delivered: u64,
    /// The interval: the longer of send and ACK elapsed (`RS.interval`).
    pub interval: Duration,
    /// Delivered when the newest packet acknowledged was sent (`RS.prior_delivered`).
    pub prior_delivered: u64,
    /// In flight when the newest packet acknowledged was sent, itself included (`RS.tx_in_flight`).
    pub in_flight: u64,
    /// Declared lost since the newest packet acknowledged was sent (`RS.lost`).
    pub lost: u64,
    /// Newly acknowledged by this frame (`RS.newly_acked`).
    pub newly_acked: u64,
    /// From sending the newest packet acknowledged until now (`RS.rtt`), including the peer's delay.
    pub rtt: Duration,
    /// Whether the flight was application-limited (`RS.is_app_limited`): the path may be faster than the rate.
    pub app_limited: bool,
}

/// The delivery-rate sampler of one path.
///
/// ```
/// use core::time::Duration;
/// use lastbyte_congestion::{DeliveryRateSampler, Packet, Receipt, Rtt, Sent, Time};
///
/// let (mut sampler, rtt) = (DeliveryRateSampler::default(), Rtt::default());
/// let delivery = sampler.on_sent(&Sent { now: Time::ZERO, bytes: 1200, in_flight: 1200, rtt: &rtt });
///
/// let now = Time::ZERO + Duration::from_millis(100);
/// let receipt = Receipt::with_delivery(0, delivery);
/// sampler.on_packet_acked(now, &Packet { bytes: 1200, sent_at: Time::ZERO, receipt });
/// let sample = sampler.take_sample(Duration::from_millis(100)).unwrap();
/// assert_eq!(sample.rate.unwrap().bytes_per_second(), 12_000);
/// ```
#[derive(Clone, Debug, Default)]
pub struct DeliveryRateSampler {
    delivered: u64,
    delivered_at: Time,
    first_sent_at: Time,
    lost: u64,
    /// While set, flights are application-limited: until more than this is delivered (`C.app_limited`).
    app_limited_until: Option<u64>,
    newly_acked: u64,
    /// The newest packet that the current ACK frame acknowledged.
    newest: Option<Packet>,
}

impl DeliveryRateSampler {
    /// A packet was sent; the snapshot must be stored in its receipt (§4.1.2.2).
    pub fn on_sent(&mut self, sent: &Sent<'_>) -> DeliverySnapshot {
        if sent.in_flight <= sent.bytes {
            // Nothing was in flight: a new flight starts, and the pause before it is not part of any interval.
            self.first_sent_at = sent.now;
            self.delivered_at = sent.now;
        }
        DeliverySnapshot {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            lost: self.lost,
            in_flight: sent.in_flight,
            app_limited: self.is_app_limited(),
        }
    }

    /// The application has nothing to send, while `in_flight` bytes are outstanding (§4.1.2.4). Applies until all of
    /// them and one more are delivered.
    pub fn on_app_limited(&mut self, in_flight: u64) {
        self.app_limited_until = Some(self.delivered.saturating_add(in_flight));
    }

    /// A packet was acknowledged for the first time (§4.1.2.3).
    pub fn on_packet_acked(&mut self, now: Time, packet: &Packet) {
        self.deliver(now, packet.bytes);
        let age = |packet: &Packet| (packet.sent_at, packet.receipt.send_index());
        if self.newest.is_none_or(|newest| age(packet) > age(&newest)) {
            self.newest = Some(*packet);
            self.first_sent_at = packet.sent_at;
        }
    }

    /// A packet was declared lost.
    pub fn on_packet_lost(&mut self, packet: &Packet) {
        self.lost = self.lost.saturating_add(packet.bytes);
    }

    /// A packet declared lost was acknowledged after all.
    pub fn on_spurious_loss(&mut self, now: Time, packet: &Packet) {
        self.deliver(now, packet.bytes);
    }

    /// Ends an ACK frame: its sample, or `None` if it acknowledged no packet in flight. `min_rtt` is the path's minimum
    /// round-trip time, zero while unknown.
    pub fn take_sample(&mut self, min_rtt: Duration) -> Option<RateSample> {
        if self
            .app_limited_until
            .is_some_and(|until| self.delivered > until)
        {
            self.app_limited_until = None;
        }
        let newest = self.newest.take()?;
        let newly_acked = core::mem::take(&mut self.newly_acked);
        let snapshot = newest.receipt.delivery();
        let send_elapsed = newest.sent_at.since(snapshot.first_sent_at);
        let ack_elapsed = self.delivered_at.since(snapshot.delivered_at);
        let interval = send_elapsed.max(ack_elapsed);
        let delivered = self.delivered.saturating_sub(snapshot.delivered);
        let believable = !interval.is_zero() && interval >= min_rtt;
        Some(RateSample {
            rate: believable.then(|| Bandwidth::from_delivery(delivered, interval)),
            delivered,
            interval,
            prior_delivered: snapshot.delivered,
            in_flight: snapshot.in_flight,
            lost: self.lost_since(&newest),
            newly_acked,
            rtt: self.delivered_at.since(newest.sent_at),
            app_limited: snapshot.app_limited,
        })
    }

    /// Bytes delivered so far (`C.delivered`).
    pub const fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Bytes lost since this packet was sent, including itself if it was.
    pub const fn lost_since(&self, packet: &Packet) -> u64 {
        self.lost.saturating_sub(packet.receipt.delivery().lost)
    }

    /// Whether packets sent now are marked as application-limited.
    pub const fn is_app_limited(&self) -> bool {
        self.app_limited_until.is_some()
    }

    fn deliver(&mut self, now: Time, bytes: u64) {
        self.delivered = self.delivered.saturating_add(bytes);
        self.newly_acked = self.newly_acked.saturating_add(bytes);
        self.delivered_at = now;
    }
}

#[cfg(test)]
mod tests;
