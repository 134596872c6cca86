//! The replay filter: which `ClientHello`s came with 0-RTT already (RFC 8446 §8.2).
//!
//! Owns: a memory of fixed size of the last [`DEPTH`] at least. Never: forgets one before; reads a clock; knows tickets.
//!
//! A replayed first flight contains the same `ClientHello`. The TLS library takes 0-RTT only if the
//! client's claim of the ticket's age is within 60 s of the server's measure, in whole seconds. So a `ClientHello` is good
//! for less than [`DEPTH`], and nothing has to be remembered for longer.
//!
//! # Decisions
//!
//! - *Keyed by the `ClientHello`, not by the ticket*: clients that offer one ticket many times, as Go's do, are no
//!   replays, and some of them fail when their 0-RTT is refused.
//! - *When full it refuses*, and never forgets: a refusal costs a round trip, a replay what the request does.
//! - *After a start it refuses* for [`DEPTH`], since it cannot know what came before (RFC 8446 §8.2); and likewise after
//!   the server was given ticket keys that it did not hold before, since a process before it may have held them.
//! - *While the clock is behind* the latest time it has seen by more than [`CLOCK_BACK_MAX`] it refuses too: it may have
//!   forgotten what is fresh again by that clock. A clock that was years ahead thus ends 0-RTT until the next start.
//! - *Three generations of 66 s*: the youngest is written, all are read, and the oldest is emptied as a whole. A strike
//!   lives for 132 s to 198 s, that is [`DEPTH`] and [`CLOCK_BACK_MAX`] at least.
//! - *A hash is 64 bits here*. Two of one fingerprint look like a replay, which is an error on the safe side, once in
//!   2^64 over the number of strikes held.
//! - *Two choices of a bucket of eight*, the emptier is taken: buckets overflow only when nine in ten places are taken.

use std::{
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::WallTime;

#[cfg(test)]
mod tests;

/// How long a strike is remembered at least: twice the 60 s by which a client's claim may be off, and rounding.
pub const DEPTH: Duration = Duration::from_secs(122);
/// By how much a clock may be behind the latest time seen. Servers of several threads tell times out of order.
pub const CLOCK_BACK_MAX: Duration = Duration::from_secs(10);

const GENERATION_S: u64 = 66;
const GENERATIONS: usize = 3;
const BUCKET: usize = 8;

/// A place that is free.
const FREE: u64 = 0;

/// Remembers `ClientHello`s.
pub struct ReplayFilter {
    state: Mutex<State>,
}

struct State {
    /// Until when something may come that came before, unseen by this replay filter.
    blind_until: WallTime,
    /// The latest time it was told.
    latest: WallTime,
    /// By the number of [`GENERATION_S`] since the epoch, modulo how many there are. All of the same size.
    generations: [Vec<[u64; BUCKET]>; GENERATIONS],
}

/// What a replay filter says of a `ClientHello`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strike {
    /// It is the first of its kind, and is remembered now.
    New,
    /// It was here before.
    Seen,
    /// There is no room to remember it.
    Full,
    /// It may have come before, and this replay filter would not know: it was started a moment ago, or the clock was set back.
    Blind,
}

impl ReplayFilter {
    /// A replay filter with room for about nine tenths of `count` strikes in each 66 s, at 24 bytes for each of `count`.
    /// `started` is when the process began, if its ticket keys are older than it: until [`DEPTH`] later nothing is taken.
    /// `None`: no `ClientHello` from before can have a ticket that opens.
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

    /// Asks whether a `ClientHello` is new, by its SHA-256, and remembers it if so.
    pub fn strike(&self, client_hello: &[u8; 32], now: WallTime) -> Strike {
        self.lock().strike(client_hello, now)
    }

    /// Tickets under keys from elsewhere open from now on: until [`DEPTH`] later nothing is taken, as after a start.
    pub(super) fn on_foreign_keys(&self, now: WallTime) {
        let mut state = self.lock();
        state.blind_until = state.blind_until.max(now + DEPTH);
    }

    /// A thread that panicked left no state half done: what is written is one place at a time.
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
        let [fingerprint, first, second] = words(client_hello);
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

    /// Empties the generations that come into use up to `now`.
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

/// The generation that a time belongs to.
const fn generation(time: WallTime) -> u64 {
    time.since_unix_epoch().as_secs() / GENERATION_S
}

/// A fingerprint, and two numbers of buckets.
fn words(hash: &[u8; 32]) -> [u64; 3] {
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
