//! The first recovery of Rapid Start (draft-kazuho-ccwg-rapid-start-02 §3.3): the window comes down in proportion to
//! what the round lost and delivered, so that it leaves recovery at beta × the bytes delivered, whatever was lost.
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
//! With pre = A + L, the bytes in flight at entry, of which A come to be acknowledged and L lost, the window at exit is
//! (A + L) × silence − A × ack − L × loss = A × beta, for any K: K only sets when sending starts again. The window is
//! kept in this closed form, from the totals of the round, so no rounding adds up.
//!
//! Decisions where the draft leaves room:
//! - The packet whose loss starts the recovery counts as lost, and what the same ACK frame acknowledges counts as
//!   acknowledged in the round: both were in flight at entry, as the derivation has it.
//! - `pre` is the bytes in flight at entry, or the window if that is less. The draft says "cwnd", which is the same for a
//!   sender that fills it; where pacing keeps the flight a little below the window, only the flight makes the window
//!   come out at beta × delivered. quicly takes the window.
//! - A sender with less than half its window in flight at entry was not probing the path, so the shares of its flight
//!   say nothing about it: [`WindowController`](super::WindowController) makes an ordinary cut then.
//! - quicly does not go below half of the initial window, or of what a jump delivered. The draft's optional floor of
//!   beta × initial window is not used.

use crate::config::Variant;

/// The round of a proportional recovery.
#[derive(Clone, Debug)]
pub(super) struct Proportional {
    factors: Factors,
    pre: u64,
    floor: u64,
    acked: u64,
    lost: u64,
}

/// By how much the window falls.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Factors {
    silence: f64,
    ack: f64,
    loss: f64,
}

impl Factors {
    fn new(beta: f64, variant: Variant) -> Self {
        let k = match variant {
            Variant::Draft02 => 2.0 / 3.0,
            Variant::Quicly => 11.0 / 18.0,
        };
        let ack = k * (1.0 - beta);
        Self {
            silence: beta + ack,
            ack,
            loss: beta + ack,
        }
    }
}

impl Proportional {
    /// Enters recovery with `pre` bytes. The window never falls below `floor` or a third of beta × `pre`.
    pub(super) fn new(pre: u64, beta: f64, floor: u64, variant: Variant) -> Self {
        Self {
            factors: Factors::new(beta, variant),
            pre,
            floor: floor.max((pre as f64 * beta / 3.0) as u64),
            acked: 0,
            lost: 0,
        }
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
        // Rounded, so that a window that comes out at a whole byte is that byte. A negative one saturates to zero.
        (libm::round(window) as u64).max(self.floor)
    }
}

#[cfg(test)]
mod tests;
