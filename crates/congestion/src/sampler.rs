//! Delivery-rate sampling: how fast the path delivered, seen from the sender (draft-ietf-ccwg-bbr §4.1).

use crate::time::Time;

/// What the sampler notes of a packet when it is sent.
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
    /// Bytes in flight, this packet included (`P.tx_in_flight`).
    pub in_flight: u64,
    /// Whether the sender had run out of data when the flight was sent (`P.is_app_limited`).
    pub app_limited: bool,
}
