//! What a peer may make us do for nothing (RFC 9000 §21.9).
//!
//! PING, `PATH_CHALLENGE`, `NEW_CONNECTION_ID`, `RETIRE_CONNECTION_ID`, `RESET_STREAM`, `STOP_SENDING`, limits and
//! empty STREAM frames cost the sender next to nothing, and us some work each. A peer has a budget of packets that carry
//! nothing else: a thousand at once, and a hundred a second, which no honest one needs.

use core::time::Duration;

use lastbyte_congestion::Time;
use lastbyte_wire::frame::Frame;

#[cfg(test)]
mod tests;

/// The budget of one connection.
#[derive(Clone, Debug)]
pub struct FloodGuard {
    /// Packets left, in nanoseconds of refill time each.
    budget: u64,
    refilled_at: Time,
}

/// More than the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flooded;

impl FloodGuard {
    /// Packets that may come at once.
    pub const BURST: u64 = 1000;
    /// Packets that may come each second.
    pub const PER_SECOND: u64 = 100;

    const COST: u64 = 1_000_000_000 / Self::PER_SECOND;

    /// A full budget.
    #[must_use]
    pub const fn new(now: Time) -> Self {
        Self {
            budget: Self::BURST * Self::COST,
            refilled_at: now,
        }
    }

    /// Whether a frame gets anything done that its sender had to pay for: data, most of all. An ACK frame does if it tells
    /// news, which is not to be seen here.
    #[must_use]
    pub const fn is_useful(frame: &Frame<'_>) -> bool {
        match frame {
            Frame::Stream(stream) => !stream.data.is_empty() || stream.header.fin,
            Frame::Crypto(crypto) => !crypto.data.is_empty(),
            Frame::Datagram(_)
            | Frame::HandshakeDone(_)
            | Frame::ConnectionClose(_)
            | Frame::PathResponse(_) => true,
            _ => false,
        }
    }

    /// A packet came that elicits an acknowledgment, and carried nothing useful.
    ///
    /// # Errors
    ///
    /// The budget is spent.
    pub fn on_useless_packet(&mut self, now: Time) -> Result<(), Flooded> {
        let since: Duration = now.since(self.refilled_at);
        let earned = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
        self.refilled_at = now;
        self.budget = self
            .budget
            .saturating_add(earned)
            .min(Self::BURST * Self::COST);
        self.budget = self.budget.checked_sub(Self::COST).ok_or(Flooded)?;
        Ok(())
    }
}
