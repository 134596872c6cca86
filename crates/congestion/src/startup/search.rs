//! SEARCH (draft-chung-ccwg-search-09): slow start that ends when the bytes delivered fall behind the bytes sent one round
//! trip earlier.
//!
//! Time is divided into bins; a window is [`W`] bins, 3.5 times the first round-trip time. At the end of each bin, the bytes
//! delivered in the latest window are compared with the bytes sent in the window that ended one round trip before:
//!
//! ```text
//! norm_diff = (prev_sent − curr_delv) / prev_sent          startup is over when norm_diff ≥ THRESH
//! ```
//!
//! On a path that is not full the two are equal. On a full path, delivery falls behind by the growth of the window.
//!
//! | rule | draft-chung-ccwg-search-09, §3.2 |
//! |---|---|
//! | bin of 0.35 × the first round-trip time | `BIN_DURATION` = `WINDOW_SIZE` / `W`, `WINDOW_SIZE` = 3.5 × `INITIAL_RTT`, `W` = 10 |
//! | [`EXTRA`] bins of history, for the time one round trip before | `EXTRA_BINS` = 15 |
//! | threshold of 0.26 (key `search-threshold`) | `THRESH` |
//! | no check before a window and a round trip have passed, or if the round trip exceeds the history | `prev_idx > W`, `curr_idx − prev_idx < EXTRA_BINS` |
//! | history is discarded after a pause of more than [`W`] bins | "Handling missed bins", optional |
//!
//! # Decisions
//!
//! - Only the abstract of the draft's revision 09 was available. The rules are those of neqo's implementation of it
//!   (`neqo-transport/src/cc/search.rs`), and were compared with picoquic's of an earlier revision, which compares
//!   delivery with delivery.
//! - The bytes sent between two bin ends are interpolated with the bin before the boundary, as in neqo, which names the
//!   draft's use of the bin after it a mistake.
//! - Startup ends at the present window (`search-exit=keep`), as in neqo. The draft drains the queue that has built up; with
//!   `search-exit=drain` the window falls at once to the bytes delivered in one minimum round-trip time, an estimate of the
//!   bandwidth-delay product. The draft's gradual schedule is not implemented: its text was not available.
//! - Bins hold 64-bit byte counts; the draft's scaling to 16 bits only saves memory.

use core::time::Duration;

use lastbyte_units::Time;

use super::{Growth, Startup, StartupAck};
use crate::spec::Settings;

/// Bins of a window.
const W: u64 = 10;
/// Bins that a round trip may have for the history to be long enough.
const EXTRA: u64 = 15;
/// The duration of a bin in hundredths of the first round-trip time: 3.5 / 10.
const BIN_PERCENT: u32 = 35;
/// The default of `search-threshold`.
const THRESHOLD: f64 = 0.26;
/// Bins kept: the current one, a window, a round trip.
const BINS: usize = (W + EXTRA + 1) as usize;

/// SEARCH, draft-chung-ccwg-search-09.
#[derive(Clone, Debug)]
pub struct Search {
    threshold: f64,
    exit: Exit,
    history: Option<History>,
}

/// The window when startup ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exit {
    Keep,
    Drain,
}

/// Bytes sent and delivered until the end of each bin.
#[derive(Clone, Debug)]
struct History {
    bin: Duration,
    /// When the current bin ends.
    end: Time,
    /// The number of the current bin.
    index: u64,
    bins: [Bin; BINS],
}

#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    sent: u64,
    delivered: u64,
}

impl Search {
    /// SEARCH with the keys `search-threshold` and `search-exit` of these settings.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        Self {
            threshold: settings.number("search-threshold").unwrap_or(THRESHOLD),
            exit: match settings.choice("search-exit") {
                Some("drain") => Exit::Drain,
                _ => Exit::Keep,
            },
            history: None,
        }
    }

    /// Ends the bins that have passed. Returns the history if it shows that the path is full.
    fn full(&mut self, ack: &StartupAck<'_>) -> Option<&History> {
        ack.rtt_sample?;
        let rtt = ack.rtt.latest();
        let now = Bin {
            sent: ack.sent,
            delivered: ack.delivered,
        };
        let Some(history) = &mut self.history else {
            self.history = History::start(ack.now, rtt, now);
            return None;
        };
        if ack.now <= history.end {
            return None;
        }
        if !history.advance(ack.now, now) {
            self.history = None;
            return None;
        }
        let is_full = history.norm_diff(rtt)? >= self.threshold;
        self.history.as_ref().filter(|_| is_full)
    }
}

impl History {
    /// `None` if the round-trip time is too short to be divided.
    fn start(now: Time, rtt: Duration, bin: Bin) -> Option<Self> {
        let duration = rtt.saturating_mul(BIN_PERCENT) / 100;
        (!duration.is_zero()).then(|| Self {
            bin: duration,
            end: now + duration,
            index: 0,
            bins: [bin; BINS],
        })
    }

    /// Ends the bins that have passed. Returns false if they are more than a window.
    fn advance(&mut self, now: Time, bin: Bin) -> bool {
        let late = now.since(self.end).as_nanos() / self.bin.as_nanos().max(1);
        let passed = late.saturating_add(1);
        if passed > u128::from(W) {
            return false;
        }
        let passed = passed as u32;
        let last = self.at(self.index);
        for skipped in 1..u64::from(passed) {
            self.put(self.index + skipped, last);
        }
        self.index += u64::from(passed);
        self.put(self.index, bin);
        self.end = self.end + self.bin.saturating_mul(passed);
        true
    }

    /// `norm_diff`; `None` without a history of that length.
    fn norm_diff(&self, rtt: Duration) -> Option<f64> {
        let (rtt, bin) = (rtt.as_nanos(), self.bin.as_nanos().max(1));
        let back = u64::try_from(rtt / bin).ok()?;
        let previous = self.index.checked_sub(back).filter(|index| *index > W)?;
        if back >= EXTRA {
            return None;
        }
        let sent = |end: u64| {
            let sent = self.at(end).sent.saturating_sub(self.at(end - W).sent);
            sent as f64
        };
        let fraction = (rtt % bin) as f64 / bin as f64;
        let sent = sent(previous) * (1.0 - fraction) + sent(previous - 1) * fraction;
        (sent > 0.0).then(|| (sent - self.delivered() as f64) / sent)
    }

    /// Bytes delivered in the latest window.
    fn delivered(&self) -> u64 {
        let start = self.at(self.index.saturating_sub(W)).delivered;
        self.at(self.index).delivered.saturating_sub(start)
    }

    /// Bytes delivered in a time of this length, at the mean rate of the latest window.
    fn delivered_in(&self, time: Duration) -> u64 {
        let window = self.bin.as_secs_f64() * W as f64;
        (self.delivered() as f64 * time.as_secs_f64() / window) as u64
    }

    fn at(&self, index: u64) -> Bin {
        let place = (index % BINS as u64) as usize;
        self.bins.get(place).copied().unwrap_or_default()
    }

    fn put(&mut self, index: u64, bin: Bin) {
        if let Some(place) = self.bins.get_mut((index % BINS as u64) as usize) {
            *place = bin;
        }
    }
}

impl Startup for Search {
    fn name(&self) -> &'static str {
        "search"
    }

    fn on_ack(&mut self, ack: &StartupAck<'_>) -> Growth {
        let exit = self.exit;
        match self.full(ack) {
            None => Growth::by(ack.bytes),
            Some(_) if exit == Exit::Keep => Growth::end_at(u64::MAX),
            Some(history) => Growth::end_at(history.delivered_in(ack.rtt.min())),
        }
    }
}

#[cfg(test)]
mod tests;
