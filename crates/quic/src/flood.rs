//! Limits on the work that a peer can cause without effect (RFC 9000 §21.9).
//!
//! PING, `PATH_CHALLENGE`, `NEW_CONNECTION_ID`, `RETIRE_CONNECTION_ID`, `RESET_STREAM`, `STOP_SENDING`, limits,
//! repeated data and empty frames cost the sender almost nothing, and us some work each. Each such frame takes one from
//! the peer's budget: a thousand at once, and a hundred per second. A frame with new data, and each packet of ours that
//! is newly acknowledged, adds two. So useless work is at most twice the useful work, plus that budget.
//!
//! # Decisions
//!
//! - *Additions by useful frames accumulate*, up to [`FloodGuard::SAVED_MAX`]. A sender that declares its whole window
//!   lost, after a change of path or a stall of the receiver, repeats all of it at once: with 10 MB in flight, 7000
//!   frames.

use core::time::Duration;

use lastbyte_congestion::Time;

#[cfg(test)]
mod tests;

/// The budget of one connection.
#[derive(Clone, Debug)]
pub struct FloodGuard {
    /// Frames left, in nanoseconds of refill time each.
    budget: u64,
    refilled_at: Time,
}

/// The budget for useless frames is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FloodBudgetExceeded;

impl FloodGuard {
    /// Frames without effect that are permitted at once.
    pub const BURST: u64 = 1000;
    /// Frames without effect that are permitted per second.
    pub const PER_SECOND: u64 = 100;
    /// Useless frames permitted for each useful one.
    pub const PER_USEFUL: u64 = 2;
    /// Maximum accumulated budget: as many frames as 145 MB in flight.
    pub const SAVED_MAX: u64 = 100_000;

    const COST: u64 = 1_000_000_000 / Self::PER_SECOND;

    /// A full budget.
    #[must_use]
    pub const fn new(now: Time) -> Self {
        Self {
            budget: Self::BURST * Self::COST,
            refilled_at: now,
        }
    }

    /// This many useful frames or acknowledgments were received: frames with new data, packets of ours newly
    /// acknowledged.
    pub fn on_useful(&mut self, count: u64) {
        let earned = count.saturating_mul(Self::PER_USEFUL * Self::COST);
        let saved_max = Self::SAVED_MAX * Self::COST;
        self.budget = self.budget.saturating_add(earned).min(saved_max);
    }

    /// A frame without effect was received.
    ///
    /// # Errors
    ///
    /// Returns [`FloodBudgetExceeded`] if the budget is spent.
    pub fn on_useless_frame(&mut self, now: Time) -> Result<(), FloodBudgetExceeded> {
        let since: Duration = now.since(self.refilled_at);
        self.refilled_at = now;
        // Time refills the burst, and adds nothing to the budget accumulated from useful frames.
        let earned = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
        let refilled = self.budget.saturating_add(earned);
        self.budget = self.budget.max(refilled.min(Self::BURST * Self::COST));
        self.budget = self
            .budget
            .checked_sub(Self::COST)
            .ok_or(FloodBudgetExceeded)?;
        Ok(())
    }
}
