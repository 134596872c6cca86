//! What a peer may make us do without effect (RFC 9000 §21.9).
//!
//! PING, `PATH_CHALLENGE`, `NEW_CONNECTION_ID`, `RETIRE_CONNECTION_ID`, `RESET_STREAM`, `STOP_SENDING`, limits, repeated data
//! and empty frames cost the sender next to nothing, and us some work each. Each such frame takes one from the peer's budget:
//! a thousand at once, and a hundred a second. What gets something done gives two back: each frame that brings data that was
//! not here, each packet of ours newly acknowledged. So a peer whose frames are about a transfer never runs out.

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

/// More than the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flooded;

impl FloodGuard {
    /// Frames that may come at once.
    pub const BURST: u64 = 1000;
    /// Frames that may come each second.
    pub const PER_SECOND: u64 = 100;
    /// Frames that may come for each that gets something done.
    pub const PER_NEWS: u64 = 2;

    const COST: u64 = 1_000_000_000 / Self::PER_SECOND;

    /// A full budget.
    #[must_use]
    pub const fn new(now: Time) -> Self {
        Self {
            budget: Self::BURST * Self::COST,
            refilled_at: now,
        }
    }

    /// So many things were new: frames with data that was not here, packets of ours newly acknowledged.
    pub fn on_useful(&mut self, count: u64) {
        let earned = count.saturating_mul(Self::PER_NEWS * Self::COST);
        self.earn(earned);
    }

    /// A frame came that brought nothing new.
    ///
    /// # Errors
    ///
    /// The budget is spent.
    pub fn on_useless_frame(&mut self, now: Time) -> Result<(), Flooded> {
        let since: Duration = now.since(self.refilled_at);
        self.refilled_at = now;
        self.earn(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX));
        self.budget = self.budget.checked_sub(Self::COST).ok_or(Flooded)?;
        Ok(())
    }

    fn earn(&mut self, earned: u64) {
        self.budget = self
            .budget
            .saturating_add(earned)
            .min(Self::BURST * Self::COST);
    }
}
