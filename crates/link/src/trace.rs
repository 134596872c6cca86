//! A link recorded as a list of delivery opportunities, in the format of mahimahi's `mm-link` (Netravali et al.:
//! "Mahimahi: Accurate Record-and-Replay for HTTP", USENIX ATC 2015).
//!
//! One whole number a line, in milliseconds, not decreasing; each is an opportunity to deliver 1500 bytes. The trace
//! begins anew at its last timestamp. What one opportunity can do, as mahimahi accounts for it:
//!
//! - it delivers as many packets as fit, the last of them perhaps in part; that one goes on with the next opportunity;
//! - what it could deliver and nobody asked for is lost;
//! - a packet that arrives at the instant of an opportunity has missed it.
//!
//! Mahimahi delivers 1504 bytes at once, since it counts the four that its tunnel device puts before each packet; here
//! nothing is put before them.

use alloc::{sync::Arc, vec::Vec};
use core::{fmt, str::FromStr, time::Duration};

use crate::{
    Rate, Time,
    rate::{NANOS_PER_SECOND, saturate},
    time::nanos,
};

/// What one opportunity can deliver, in bytes.
pub const OPPORTUNITY_BYTES: u32 = 1500;

const NANOS_PER_MILLI: u64 = 1_000_000;

/// A list of delivery opportunities, repeated for ever.
///
/// ```
/// use lastbyte_link::Trace;
///
/// let trace: Trace = "0\n2\n2\n3\n".parse()?;
/// assert_eq!(trace.nominal().to_string(), "16mbit"); // 4 × 1500 bytes in 3 ms
///
/// let error = "0\n2\n1\n".parse::<Trace>().unwrap_err();
/// assert_eq!(error.to_string(), "line 3: timestamps must not decrease, and 1 comes after 2");
/// # Ok::<(), lastbyte_link::TraceError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trace {
    /// In nanoseconds.
    opportunities: Arc<[u64]>,
    /// Where in the trace time zero is.
    start: u64,
}

impl Trace {
    /// A trace of these timestamps, in milliseconds.
    ///
    /// # Errors
    ///
    /// As for a text with a timestamp a line.
    pub fn from_millis(timestamps: &[u64]) -> Result<Self, TraceError> {
        let mut builder = Builder::default();
        for timestamp in timestamps {
            builder.push(*timestamp)?;
        }
        builder.build()
    }

    /// The same trace, read from `start` on: what it does then, it does at the epoch of [`Time`].
    #[must_use]
    pub fn starting_at(mut self, start: Duration) -> Self {
        self.start = nanos(start) % self.period_nanos();
        self
    }

    /// After how long it begins anew.
    #[must_use]
    pub fn period(&self) -> Duration {
        Duration::from_nanos(self.period_nanos())
    }

    /// How many opportunities are in one period.
    #[must_use]
    pub fn opportunities(&self) -> usize {
        self.opportunities.len()
    }

    /// Its mean rate, by which limits in milliseconds are turned into bytes.
    #[must_use]
    pub fn nominal(&self) -> Rate {
        let bits = self.opportunities.len() as u128 * u128::from(OPPORTUNITY_BYTES) * 8;
        let rate = bits * u128::from(NANOS_PER_SECOND) / u128::from(self.period_nanos());
        Rate::from_bits_per_second(saturate(rate))
    }

    fn period_nanos(&self) -> u64 {
        self.opportunities[self.opportunities.len() - 1]
    }
}

impl FromStr for Trace {
    type Err = TraceError;

    /// Reads mahimahi's format. A last line may end without a line feed; lines may end in CR LF.
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
            start: 0,
        })
    }
}

/// What is wrong with the text of a [`Trace`]. Lines count from one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TraceError {
    /// There are no timestamps.
    Empty,
    /// A line has nothing in it.
    EmptyLine {
        /// Which.
        line: usize,
    },
    /// A line is no whole number of milliseconds, or one that the clock cannot hold (584 years).
    NotATimestamp {
        /// Which.
        line: usize,
    },
    /// A timestamp is smaller than the one before it.
    Decreases {
        /// Which line.
        line: usize,
        /// The timestamp before.
        before: u64,
        /// Its own.
        timestamp: u64,
    },
    /// All timestamps are zero: it would begin anew for ever.
    NoDuration,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the trace has no timestamps"),
            Self::EmptyLine { line } => {
                write!(f, "line {line}: expected a timestamp, found nothing")
            }
            Self::NotATimestamp { line } => write!(
                f,
                "line {line}: expected a whole number of milliseconds and nothing else"
            ),
            Self::Decreases {
                line,
                before,
                timestamp,
            } => write!(
                f,
                "line {line}: timestamps must not decrease, and {timestamp} comes after {before}"
            ),
            Self::NoDuration => f.write_str(
                "the last timestamp must be more than zero, since the trace begins anew then",
            ),
        }
    }
}

impl core::error::Error for TraceError {}

/// A place in a trace. Moves forward only.
#[derive(Clone, Debug)]
pub(crate) struct Cursor {
    trace: Trace,
    /// When the current repetition began, on a clock that is ahead of the link's by the trace's start.
    base: u64,
    index: usize,
}

impl Cursor {
    pub(crate) fn new(trace: Trace) -> Self {
        let index = trace
            .opportunities
            .partition_point(|opportunity| *opportunity < trace.start);
        Self {
            trace,
            base: 0,
            index,
        }
    }

    /// The next opportunity.
    pub(crate) fn peek(&self) -> Time {
        let on_trace = self
            .base
            .saturating_add(self.trace.opportunities[self.index]);
        match on_trace {
            u64::MAX => Time::MAX,
            on_trace => Time::from_nanos(on_trace - self.trace.start),
        }
    }

    /// It is used.
    pub(crate) fn advance(&mut self) {
        self.index += 1;
        if self.index == self.trace.opportunities.len() {
            self.index = 0;
            self.base = self.base.saturating_add(self.trace.period_nanos());
        }
    }

    /// All opportunities up to `now` passed unused.
    pub(crate) fn skip_past(&mut self, now: Time) {
        let now = now.as_nanos().saturating_add(self.trace.start);
        let period = self.trace.period_nanos();
        if now - self.base >= period {
            // The last opportunity of a period and a first at zero of the next are at one instant, and both have passed.
            self.base += (now - self.base) / period * period;
            self.index = 0;
        }
        let passed = now - self.base;
        let rest = &self.trace.opportunities[self.index..];
        // Nearly always the next one or the one after.
        self.index += match rest.iter().take(4).position(|at| *at > passed) {
            Some(near) => near,
            None => rest.partition_point(|at| *at <= passed),
        };
    }
}

#[cfg(test)]
mod tests;
