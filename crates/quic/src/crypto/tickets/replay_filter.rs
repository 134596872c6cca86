//! The replay filter: the `ClientHello`s already accepted with 0-RTT (RFC 8446 §8.2).
//!
//! Owns a record of fixed size of at least the last [`DEPTH`]. It reads no clock and does not know tickets.
//!
//! A replayed first flight contains the same `ClientHello`. The TLS library accepts 0-RTT only if the ticket age that
//! the client claims is within 60 s of the age that the server measures, in whole seconds. So a `ClientHello` is
//! acceptable for less than [`DEPTH`], and need not be recorded longer.
//!
//! # Decisions
//!
//! - *Keyed by the `ClientHello`, not by the ticket*: clients that offer one ticket many times, as Go's do, are not
//!   replays, and some of them fail when their 0-RTT is refused.
//! - *When full it refuses* rather than evict: a refusal costs a round trip, a replay has the effect of the request.
//! - *After a start it refuses* for [`DEPTH`], since it does not know what was accepted before (RFC 8446 §8.2); and
//!   likewise after the server received ticket keys that it did not have before, since an earlier process may have had
//!   them.
//! - *While the clock is behind* the latest time it has seen by more than [`CLOCK_BACK_MAX`] it refuses too: it may
//!   have deleted what is acceptable again by that clock. A clock that was years ahead thus disables 0-RTT until the
//!   next start.
//! - *Three generations of 66 s*: the newest is written, all are read, and the oldest is cleared as a whole. An entry
//!   is kept for 132 s to 198 s, which is at least [`DEPTH`] and [`CLOCK_BACK_MAX`].
//! - *Fingerprints have 64 bits*. A collision looks like a replay, which is an error on the safe side, with a
//!   probability of the number of entries over 2^64.
//! - *Two choices of a bucket of eight*, of which the emptier is used: buckets overflow only when nine in ten slots are
//!   in use.

use std::{
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::WallTime;

#[cfg(test)]
mod tests;

/// Minimum lifetime of an entry: twice the 60 s by which a client's claim may be wrong, and rounding.
pub const DEPTH: Duration = Duration::from_secs(122);
/// Maximum lag of a clock behind the latest time seen. Several threads report times out of order.
pub const CLOCK_BACK_MAX: Duration = Duration::from_secs(10);

const GENERATION_S: u64 = 66;
const GENERATIONS: usize = 3;
const BUCKET: usize = 8;

/// A free slot.
const FREE: u64 = 0;

/// Records `ClientHello`s.
pub struct ReplayFilter {
    state: Mutex<State>,
}

struct State {
    /// Until when a `ClientHello` may arrive that was accepted before, unknown to this replay filter.
    blind_until: WallTime,
    /// The latest time seen.
    latest: WallTime,
    /// Indexed by the number of [`GENERATION_S`] since the epoch, modulo the number of generations. All have the same
    /// size.
    generations: [Vec<[u64; BUCKET]>; GENERATIONS],
}

/// The result for a `ClientHello`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strike {
    /// It is new, and has been recorded.
    New,
    /// It was recorded before.
    Seen,
    /// There is no room to record it.
    Full,
    /// It may have been accepted before this replay filter could record it: the filter is new, or the clock was set
    /// back.
    Blind,
}

impl ReplayFilter {
    /// A replay filter with room for about nine tenths of `count` entries in each 66 s, at 24 bytes for each of
    /// `count`. `started` is the start of the process, if its ticket keys are older: until [`DEPTH`] later everything
    /// is refused. `None`: no earlier `ClientHello` can have a ticket that opens.
    #[must_use]
    pub fn new(count: usize, started: Option<WallTime>) -> Self {
        let buckets = count.div_ceil(BUCKET).max(1);
        Self {
            state: Mutex::new(State {
                blind_until: started.map_or(WallTime::UNIX_EPOCH, |started| started + DEPTH),
                latest: WallTime::UNIX_EPOCH,
                generations: std::array::from_fn(|_| vec![[FREE; BUCKET]; buckets]),
            }),
        }
    }

    /// Checks by its SHA-256 whether a `ClientHello` is new, and records it if so.
    pub fn strike(&self, client_hello: &[u8; 32], now: WallTime) -> Strike {
        self.lock().strike(client_hello, now)
    }

    /// Tickets sealed with keys from elsewhere are accepted from now on: until [`DEPTH`] later everything is refused,
    /// as after a start.
    pub(super) fn on_foreign_keys(&self, now: WallTime) {
        let mut state = self.lock();
        state.blind_until = state.blind_until.max(now + DEPTH);
    }

    /// A thread that panicked left no inconsistent state: slots are written one at a time.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn strike(&mut self, client_hello: &[u8; 32], now: WallTime) -> Strike {
        self.advance(now);
        let is_behind = now + CLOCK_BACK_MAX < self.latest;
        if now < self.blind_until || is_behind {
            return Strike::Blind;
        }
        let [fingerprint, first, second] = fingerprint_and_buckets(client_hello);
        let fingerprint = fingerprint.max(FREE + 1);
        let newest = (generation(self.latest) % GENERATIONS as u64) as usize;
        let buckets = self.generations[0].len() as u64;
        let [first, second] = [first, second].map(|word| (word % buckets) as usize);
        let seen = self.generations.iter().any(|generation| {
            [first, second]
                .iter()
                .any(|index| generation[*index].contains(&fingerprint))
        });
        if seen {
            return Strike::Seen;
        }
        let table = &mut self.generations[newest];
        let taken = |bucket: &[u64; BUCKET]| bucket.iter().filter(|word| **word != FREE).count();
        let emptier = if taken(&table[second]) < taken(&table[first]) {
            second
        } else {
            first
        };
        match table[emptier].iter_mut().find(|word| **word == FREE) {
            Some(place) => {
                *place = fingerprint;
                Strike::New
            }
            None => Strike::Full,
        }
    }

    /// Clears the generations that become current up to `now`.
    fn advance(&mut self, now: WallTime) {
        let latest = self.latest.max(now);
        let passed = generation(latest) - generation(self.latest);
        self.latest = latest;
        for back in 0..passed.min(GENERATIONS as u64) {
            let index = (generation(latest) - back) % GENERATIONS as u64;
            self.generations[index as usize].fill([FREE; BUCKET]);
        }
    }
}

/// The generation of a time.
const fn generation(time: WallTime) -> u64 {
    time.since_unix_epoch().as_secs() / GENERATION_S
}

/// A fingerprint, and two bucket indices.
fn fingerprint_and_buckets(hash: &[u8; 32]) -> [u64; 3] {
    let word = |index: usize| {
        hash.iter()
            .skip(8 * index)
            .take(8)
            .fold(0, |word, byte| word << 8 | u64::from(*byte))
    };
    [word(0), word(1), word(2)]
}

impl fmt::Debug for ReplayFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        f.debug_struct("ReplayFilter")
            .field("blind_until", &state.blind_until)
            .field("latest", &state.latest)
            .field("places", &(state.generations[0].len() * BUCKET))
            .finish_non_exhaustive()
    }
}
