//! Limits over time on what a peer can request (RFC 9114 §10.5).
//!
//! A token bucket that fills with time and is drained by what the peer does.

use core::time::Duration;

use lastbyte_quic::Time;

/// A burst, and a rate per second after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// The number permitted at once.
    pub burst: u32,
    /// The number permitted per second after that.
    pub per_second: u32,
}

impl Rate {
    /// `burst` at once, `per_second` from then on.
    #[must_use]
    pub const fn new(burst: u32, per_second: u32) -> Self {
        Self { burst, per_second }
    }
}

/// The tokens left of a [`Rate`], in billionths, so that fractions of a second count.
#[derive(Clone, Copy, Debug)]
pub struct Allowance {
    rate: Rate,
    left: u64,
    at: Option<Time>,
}

const BILLION: u64 = 1_000_000_000;

impl Allowance {
    /// All tokens of the burst are left.
    #[must_use]
    pub const fn new(rate: Rate) -> Self {
        Self {
            rate,
            left: rate.burst as u64 * BILLION,
            at: None,
        }
    }

    const fn most(&self) -> u64 {
        self.rate.burst as u64 * BILLION
    }

    /// Takes this many tokens. Returns whether enough were left.
    pub fn take(&mut self, amount: u64, now: Time) -> bool {
        let passed = self
            .at
            .map_or(Duration::ZERO, |at| now.max(at).since(at))
            .as_nanos();
        self.at = Some(self.at.map_or(now, |at| at.max(now)));
        let gained = u64::try_from(passed)
            .unwrap_or(u64::MAX)
            .saturating_mul(u64::from(self.rate.per_second));
        self.left = self.left.saturating_add(gained).min(self.most());
        let wanted = amount.saturating_mul(BILLION);
        match self.left.checked_sub(wanted) {
            Some(left) => {
                self.left = left;
                true
            }
            None => false,
        }
    }

    /// Returns this many tokens.
    pub fn give(&mut self, amount: u64) {
        let gained = amount.saturating_mul(BILLION);
        self.left = self.left.saturating_add(gained).min(self.most());
    }
}

#[cfg(test)]
mod tests;
