//! Links recorded as a list of delivery opportunities, in the format of mahimahi's `mm-link` (Netravali et al.:
//! "Mahimahi: Accurate Record-and-Replay for HTTP", USENIX ATC 2015).
//!
//! A trace has one integer per line: a timestamp in milliseconds, which must not decrease. Each is an opportunity to
//! deliver 1500 bytes. The trace repeats after its last timestamp. As in mahimahi:
//!
//! - an opportunity delivers as many packets as fit; a packet that fits only in part continues with the next
//!   opportunity;
//! - unused bytes of an opportunity are lost;
//! - a packet that arrives at the time of an opportunity misses it.
//!
//! Mahimahi delivers 1504 bytes per opportunity, because it counts the four bytes that its tunnel device adds to each
//! packet. They do not exist here.

use alloc::{sync::Arc, vec::Vec};
use core::{str::FromStr, time::Duration};

use crate::{
    Rate, Time,
    rate::{NANOS_PER_SECOND, saturate},
};

/// The size of a delivery opportunity in bytes.
pub const OPPORTUNITY_BYTES: u32 = 1500;

const NANOS_PER_MILLI: u64 = 1_000_000;

/// A list of delivery opportunities that repeats forever.
///
/// ```
/// use lastbyte_link::Trace;
///
/// let trace: Trace = "0\n2\n2\n3\n".parse()?;
/// assert_eq!(trace.nominal().to_string(), "16mbit"); // 4 × 1500 bytes in 3 ms
///
/// let error = "0\n2\n1\n".parse::<Trace>().unwrap_err();
/// assert_eq!(error.to_string(), "line 3: timestamps must not decrease (1 follows 2)");
/// # Ok::<(), lastbyte_link::TraceError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trace {
    /// In nanoseconds.
    opportunities: Arc<[u64]>,
}

impl Trace {
    /// Creates a trace from timestamps in milliseconds.
    ///
    /// # Errors
    ///
    /// Returns the same errors as parsing a text with one timestamp per line; see [`TraceError`].
    pub fn from_millis(timestamps: &[u64]) -> Result<Self, TraceError> {
        let mut builder = Builder::default();
        for timestamp in timestamps {
            builder.push(*timestamp)?;
        }
        builder.build()
    }

    /// The period after which the trace repeats.
    pub fn period(&self) -> Duration {
        Duration::from_nanos(self.period_nanos())
    }

    /// The nominal rate, which converts limits in milliseconds to bytes: the mean rate.
    pub fn nominal(&self) -> Rate {
        let bits = self.opportunities.len() as u128 * u128::from(OPPORTUNITY_BYTES) * 8;
        let rate = bits * u128::from(NANOS_PER_SECOND) / u128::from(self.period_nanos());
        Rate::from_bits_per_second(saturate(rate))
    }

    /// The bytes of the opportunities from `from` to `to`, inclusive.
    pub(crate) fn bytes_between(&self, from: Time, to: Time) -> f64 {
        let before = from.as_nanos().checked_sub(1);
        let until = self.count_until(to.as_nanos());
        let count = until - before.map_or(0, |before| self.count_until(before));
        count as f64 * f64::from(OPPORTUNITY_BYTES)
    }

    /// The number of opportunities up to this position of the endless trace.
    fn count_until(&self, position: u64) -> u128 {
        let period = self.period_nanos();
        let (periods, rest) = (position / period, position % period);
        let count = self.opportunities.partition_point(|at| *at <= rest);
        u128::from(periods) * self.opportunities.len() as u128 + count as u128
    }

    fn period_nanos(&self) -> u64 {
        self.opportunities[self.opportunities.len() - 1]
    }
}

impl FromStr for Trace {
    type Err = TraceError;

    /// Parses mahimahi's format. The last line may lack a line feed, and lines may end in CR LF.
    fn from_str(text: &str) -> Result<Self, TraceError> {
        let mut builder = Builder::default();
        for line in text.lines() {
            let number = builder.opportunities.len() + 1;
            if line.is_empty() {
                return Err(TraceError::EmptyLine { line: number });
            }
            let timestamp = line
                .parse()
                .map_err(|_| TraceError::NotATimestamp { line: number })?;
            builder.push(timestamp)?;
        }
        builder.build()
    }
}

#[derive(Default)]
struct Builder {
    opportunities: Vec<u64>,
    last: u64,
}

impl Builder {
    fn push(&mut self, timestamp: u64) -> Result<(), TraceError> {
        let line = self.opportunities.len() + 1;
        if timestamp < self.last {
            return Err(TraceError::Decreases {
                line,
                before: self.last,
                timestamp,
            });
        }
        let nanos = timestamp
            .checked_mul(NANOS_PER_MILLI)
            .ok_or(TraceError::NotATimestamp { line })?;
        self.last = timestamp;
        self.opportunities.push(nanos);
        Ok(())
    }

    fn build(self) -> Result<Trace, TraceError> {
        if self.opportunities.is_empty() {
            return Err(TraceError::Empty);
        }
        if self.last == 0 {
            return Err(TraceError::NoDuration);
        }
        Ok(Trace {
            opportunities: self.opportunities.into(),
        })
    }
}

/// The text of a [`Trace`] is invalid. Lines count from 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TraceError {
    /// There are no timestamps.
    #[error("the trace has no timestamps")]
    Empty,
    /// A line is empty.
    #[error("line {line}: empty line (expected a timestamp)")]
    EmptyLine {
        /// The line number.
        line: usize,
    },
    /// A line is not an integer, or exceeds the range of the clock (584 years).
    #[error("line {line}: invalid timestamp (expected an integer number of milliseconds)")]
    NotATimestamp {
        /// The line number.
        line: usize,
    },
    /// A timestamp is smaller than its predecessor.
    #[error("line {line}: timestamps must not decrease ({timestamp} follows {before})")]
    Decreases {
        /// The line number.
        line: usize,
        /// The preceding timestamp.
        before: u64,
        /// The timestamp.
        timestamp: u64,
    },
    /// All timestamps are zero, so the trace has no period.
    #[error("invalid last timestamp: 0 (expected more than 0, the period of the trace)")]
    NoDuration,
}

/// A position in a trace. Only moves forward.
#[derive(Clone, Debug)]
pub(crate) struct Cursor {
    trace: Trace,
    /// When the current period started, in nanoseconds.
    base: u64,
    index: usize,
}

impl Cursor {
    pub(crate) fn new(trace: Trace) -> Self {
        Self {
            trace,
            base: 0,
            index: 0,
        }
    }

    /// The next opportunity.
    pub(crate) fn peek(&self) -> Time {
        let next = self.trace.opportunities[self.index];
        Time::from_nanos(self.base.saturating_add(next))
    }

    /// Consumes the next opportunity.
    pub(crate) fn advance(&mut self) {
        self.index += 1;
        if self.index == self.trace.opportunities.len() {
            self.index = 0;
            self.base = self.base.saturating_add(self.trace.period_nanos());
        }
    }

    /// Skips all opportunities up to `now`, which passed unused.
    pub(crate) fn skip_past(&mut self, now: Time) {
        let now = now.as_nanos();
        let period = self.trace.period_nanos();
        if now - self.base >= period {
            // The last opportunity of a period coincides with an opportunity at 0 of the next one; both have passed.
            self.base += (now - self.base) / period * period;
            self.index = 0;
        }
        let passed = now - self.base;
        let rest = &self.trace.opportunities[self.index..];
        // It is nearly always one of the next few.
        self.index += match rest.iter().take(4).position(|at| *at > passed) {
            Some(near) => near,
            None => rest.partition_point(|at| *at <= passed),
        };
    }
}

#[cfg(test)]
mod tests;
