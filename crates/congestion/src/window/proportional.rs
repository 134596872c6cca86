//! The first recovery of Rapid Start (draft-kazuho-ccwg-rapid-start-02 §3.3): the window is reduced in proportion to
//! the bytes lost and delivered in the round, so that it is beta × the bytes delivered at the end of recovery, whatever
//! was lost.
//!
//! ```text
//! on entry        window = pre × silence
//! per byte acked  window −= ack
//! per byte lost   window −= loss
//! floor           pre × beta / 3, and the minimum window
//!
//! silence = loss = beta + K × (1 − beta)      ack = K × (1 − beta)      K = 2/3 (draft), 11/18 (quicly)
//! ```
//!
//! With pre = A + L, the bytes in flight at entry, of which A are acknowledged and L lost, the window at exit is (A +
//! L) × silence − A × ack − L × loss = A × beta, for any K: K only sets when sending starts again. The window is
//! computed in this closed form, from the totals of the round, so rounding errors do not accumulate.
//!
//! Decisions where the draft is not specific:
//! - The packet whose loss starts the recovery counts as lost, and what the same ACK frame acknowledges counts as
//!   acknowledged in the round: both were in flight at entry, as the derivation assumes.
//! - `pre` is the bytes in flight at entry, or the window if that is less. The draft says "cwnd", which is the same for
//!   a sender that fills it; where pacing keeps the flight a little below the window, only the flight gives a window of
//!   beta × delivered. quicly uses the window.
//! - A sender with less than half its window in flight at entry was not probing the path, so the fractions of its
//!   flight say nothing about it: [`WindowController`](super::WindowController) makes an ordinary cut in that case.
//! - quicly does not reduce below half of the initial window, or of what a jump delivered. The draft's optional floor
//!   of beta × initial window is not used.

use core::fmt;

use super::share;
use crate::config::Variant;

/// The round of a proportional recovery.
#[derive(Clone, Debug)]
pub(super) struct Proportional {
    rule: &'static dyn Rule,
    factors: Factors,
    entry: Entry,
    pre: u64,
    floor: u64,
    acked: u64,
    lost: u64,
}

/// The state when the recovery starts. Sizes are in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// The congestion window.
    pub(super) window: u64,
    /// Bytes in flight when the first loss or mark was detected.
    pub(super) in_flight: u64,
    /// The initial window.
    pub(super) initial: u64,
    /// The minimum window.
    pub(super) minimum: u64,
    /// Bytes that the jump delivered, if the loss was part of it.
    pub(super) jump_delivered: Option<u64>,
    /// The decrease factor.
    pub(super) beta: f64,
}

/// The differences between the versions of Rapid Start.
trait Rule: fmt::Debug + Send + Sync {
    /// K: when sending starts again.
    fn k(&self) -> f64;

    /// The bytes that the factors apply to.
    fn pre(&self, entry: &Entry) -> u64;

    /// A minimum of the window besides the common one.
    fn floor(&self, entry: &Entry) -> u64;

    /// Whether the slow start threshold follows the window as packets are acknowledged, or only as they are lost.
    fn threshold_follows_acks(&self) -> bool;

    /// The capacity that congestion avoidance starts from, if it is estimated on entry and not measured by the
    /// recovery.
    fn capacity_on_entry(&self, entry: &Entry) -> Option<u64>;
}

/// draft-kazuho-ccwg-rapid-start-02.
#[derive(Debug)]
struct Draft02;

impl Rule for Draft02 {
    fn k(&self) -> f64 {
        2.0 / 3.0
    }

    fn pre(&self, entry: &Entry) -> u64 {
        entry.window.min(entry.in_flight)
    }

    fn floor(&self, _: &Entry) -> u64 {
        0
    }

    fn threshold_follows_acks(&self) -> bool {
        true
    }

    fn capacity_on_entry(&self, _: &Entry) -> Option<u64> {
        None
    }
}

/// quicly as shipped in April 2026. Its threshold follows only losses, so it leaves recovery in slow start.
#[derive(Debug)]
struct Quicly;

impl Rule for Quicly {
    fn k(&self) -> f64 {
        11.0 / 18.0
    }

    fn pre(&self, entry: &Entry) -> u64 {
        entry.window
    }

    fn floor(&self, entry: &Entry) -> u64 {
        entry.initial.max(entry.jump_delivered.unwrap_or(0)) / 2
    }

    fn threshold_follows_acks(&self) -> bool {
        false
    }

    fn capacity_on_entry(&self, entry: &Entry) -> Option<u64> {
        let capacity = entry.jump_delivered.unwrap_or(entry.window / 3);
        Some(capacity.max(entry.initial))
    }
}

/// By how much the window is reduced.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Factors {
    silence: f64,
    ack: f64,
    loss: f64,
}

impl Factors {
    fn new(beta: f64, k: f64) -> Self {
        let ack = k * (1.0 - beta);
        Self {
            silence: beta + ack,
            ack,
            loss: beta + ack,
        }
    }
}

impl Proportional {
    /// Enters recovery.
    pub(super) fn new(variant: Variant, entry: &Entry) -> Self {
        let rule: &'static dyn Rule = match variant {
            Variant::Draft02 | Variant::Editor => &Draft02,
            Variant::Quicly => &Quicly,
        };
        let pre = rule.pre(entry);
        let floor = rule.floor(entry).max(entry.minimum);
        Self {
            rule,
            factors: Factors::new(entry.beta, rule.k()),
            entry: *entry,
            pre,
            floor: floor.max((pre as f64 * entry.beta / 3.0) as u64),
            acked: 0,
            lost: 0,
        }
    }

    /// Whether the slow start threshold follows the window as packets are acknowledged, or only as they are lost.
    pub(super) fn threshold_follows_acks(&self) -> bool {
        self.rule.threshold_follows_acks()
    }

    /// The capacity that congestion avoidance starts from, if that is known on entry.
    pub(super) fn capacity_on_entry(&self) -> Option<u64> {
        self.rule.capacity_on_entry(&self.entry)
    }

    /// The capacity that congestion avoidance starts from, measured by a recovery that ends with this window.
    pub(super) fn capacity_on_exit(&self, window: u64) -> Option<u64> {
        let is_measured = self.capacity_on_entry().is_none();
        is_measured.then(|| share(window, 1.0 / self.entry.beta))
    }

    /// Bytes that were in flight at entry were acknowledged.
    pub(super) fn on_acked(&mut self, bytes: u64) {
        self.acked = self.acked.saturating_add(bytes);
    }

    /// Bytes that were in flight at entry were lost.
    pub(super) fn on_lost(&mut self, bytes: u64) {
        self.lost = self.lost.saturating_add(bytes);
    }

    /// The window, in bytes.
    pub(super) fn window(&self) -> u64 {
        let window = self.pre as f64 * self.factors.silence
            - self.acked as f64 * self.factors.ack
            - self.lost as f64 * self.factors.loss;
        // Rounded, so that a window that is a whole number of bytes is exact. A negative one saturates to zero.
        (libm::round(window) as u64).max(self.floor)
    }
}

#[cfg(test)]
mod tests;
