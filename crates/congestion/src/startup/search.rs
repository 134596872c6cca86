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
//! | then the window falls from the bytes in flight by two of three bytes acknowledged, to the bytes delivered in the first round-trip time, and startup ends | drain phase; SEARCH 4.0 of the draft's authors |
//!
//! # Decisions
//!
//! - Of the draft's revisions 09 and 10, the abstract was available. Constants, checks and section numbers are those of neqo's
//!   implementation of 09 (`neqo-transport/src/cc/search.rs`); the drain phase is that of the authors' implementations for Linux and
//!   FreeBSD (SEARCH 4.0, repository `maryam-ataei/TCP_SS_SEARCH_ALG`, `tcp_cubic_search4_0.c` and `cc_newreno_search.c`). Where these
//!   have other constants than neqo's, the latter are used: Linux's threshold is 0.35, and 40 bins of history replace 15 in both.
//! - The drain phase of the authors adds one segment for each three that are acknowledged to those in flight. In bytes, the window is what
//!   was in flight less two thirds of what was acknowledged since: the same for a sender that uses its window. With
//!   `search-exit=keep` startup ends at the present window, as in neqo, whose authors found that the drained window is too small for CUBIC.
//! - The first round-trip time is counted in whole bins for the drain's target, rounded up: 3 bins, 1.05 of it. The target is at
//!   least the window at the first sample, which is the initial window (`TCP_INIT_CWND` in the authors').
//! - The bytes sent between two bin ends are interpolated with the bin before the boundary, as in neqo, which names the
//!   draft's use of the bin after it a mistake, and in the authors' implementations.
//! - The authors' newest code discards the history when the application limits the sender. Then as little is delivered as was sent a
//!   round trip before, so that nothing is detected; the history is kept here.
//! - The history is discarded when a flight is forgotten, as after a NAT rebinding: what was sent of it is never delivered.
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
/// Bins that the first round trip takes, rounded up.
const ROUND_TRIP: u64 = 100_u64.div_ceil(BIN_PERCENT as u64);
/// Bins kept: the current one, a window, a round trip.
const BINS: usize = (W + EXTRA + 1) as usize;

/// SEARCH, draft-chung-ccwg-search-09.
#[derive(Clone, Debug)]
pub struct Search {
    threshold: f64,
    drains: bool,
    /// The window at the first sample, the least that it is drained to.
    initial: Option<u64>,
    history: Option<History>,
    drain: Option<Drain>,
}

/// The path was found full. Sizes are in bytes.
#[derive(Clone, Copy, Debug)]
struct Drain {
    /// The window at which startup ends.
    target: u64,
    /// In flight when the path was found full, and delivered until then.
    in_flight: u64,
    delivered: u64,
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
            drains: settings.choice("search-exit") != Some("keep"),
            initial: None,
            history: None,
            drain: None,
        }
    }

    /// Ends the bins that have passed. Returns what to drain if they show that the path is full.
    fn full(&mut self, ack: &StartupAck<'_>) -> Option<Drain> {
        ack.rtt_sample?;
        let rtt = ack.rtt.latest();
        let now = Bin {
            sent: ack.sent,
            delivered: ack.delivered,
        };
        let initial = *self.initial.get_or_insert(ack.window);
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
        (history.norm_diff(rtt)? >= self.threshold).then(|| Drain {
            target: history.delivered_in(ROUND_TRIP).max(initial),
            in_flight: ack.in_flight,
            delivered: ack.delivered,
        })
    }
}

impl Drain {
    fn growth(&self, ack: &StartupAck<'_>) -> Growth {
        let acked = ack.delivered.saturating_sub(self.delivered);
        let window = self.in_flight.saturating_sub(acked - acked / 3);
        Growth {
            bytes: 0,
            limit: Some(window.max(self.target)),
            done: window <= self.target,
        }
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
        (sent > 0.0).then(|| (sent - self.delivered_in(W) as f64) / sent)
    }

    /// Bytes delivered in as many bins, up to the latest.
    fn delivered_in(&self, bins: u64) -> u64 {
        let start = self.at(self.index.saturating_sub(bins)).delivered;
        self.at(self.index).delivered.saturating_sub(start)
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

    /// Of a flight that is forgotten, delivery stays behind for a window.
    fn on_rebind(&mut self) {
        self.history = None;
    }

    fn on_ack(&mut self, ack: &StartupAck<'_>) -> Growth {
        let found = match self.drain {
            None => self.full(ack),
            found => found,
        };
        match found {
            None => Growth::by(ack.bytes),
            Some(_) if !self.drains => Growth::end_at(u64::MAX),
            Some(drain) => {
                self.drain = found;
                drain.growth(ack)
            }
        }
    }
}

#[cfg(test)]
mod tests;
