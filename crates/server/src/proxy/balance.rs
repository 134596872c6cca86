//! Which server of an upstream receives a request, and which are out.
//!
//! Pure: time and random numbers are arguments. [`Balance`] is the state behind a lock, [`Turn`] a request that counts
//! as outstanding until it is dropped.
//!
//! # Choice
//!
//! One candidate is the next server in turn, the other is random: the one with fewer outstanding requests receives the
//! request, and the one in turn if both have as many. So an idle upstream is used in turn, and a slow server gets fewer
//! requests without a comparison of all. A server with [`Limits::server_requests`] outstanding is no candidate.
//!
//! A server that came back takes requests only in its turn, each with a probability that grows from 0 to 1 during
//! [`Limits::slow_start`]: that part of its share. The random candidate gets the others.
//!
//! # Health
//!
//! A server is *out* after a failed connect, or after [`FAILURES_MAX`] consecutive requests that failed without a
//! response. It is out for 1 s, and for twice as long each time it fails again, up to [`OUT_MAX`], of which a random
//! part of up to a half is left out, so that several proxies do not try at the same moment. After that, one request
//! tries it: a response with any status brings it back, and a failure puts it out again. A trial without an outcome, such
//! as a slow upload, keeps other requests away for the next of these spans. Then another request tries the server, and the
//! span doubles. While all servers are out, they receive requests as if none was, so that no request waits when they come
//! back.
//!
//! Clients cannot put a server out as long as it answers others: requests that fail have to follow each other.
//!
//! With [checks](super::checks), a server is also out after a number of consecutive checks that failed, and a server that is
//! out, for whatever reason, gets no request before a check passed. Then one request tries it, as above.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use lastbyte_units::SplitMix64;
use tokio::time::Instant;

/// Consecutive failures that put a server out.
pub(super) const FAILURES_MAX: u32 = 3;
/// How long a server is out the first time.
const OUT_MIN: Duration = Duration::from_secs(1);
/// How long a server is out at most.
pub(super) const OUT_MAX: Duration = Duration::from_secs(32);

/// The servers that a request was sent to, a bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tried(u32);

impl Tried {
    pub(super) const fn has(self, server: usize) -> bool {
        self.0 >> server & 1 != 0
    }

    pub(super) const fn add(&mut self, server: usize) {
        self.0 |= 1 << server;
    }
}

/// Whether a server receives requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Health {
    Up,
    /// No request before this time.
    Out(Duration),
    /// A request tries it, and no other before this time.
    Trial(Duration),
    /// No request before a check passed.
    Failing,
}

#[derive(Clone, Copy, Debug)]
struct Server {
    outstanding: usize,
    /// Consecutive failures.
    failures: u32,
    /// How often it was put out, or a trial had no outcome in time, since its last response.
    outs: u32,
    /// Consecutive checks that failed.
    failed_checks: u32,
    health: Health,
    /// When it was last brought back.
    came_back: Option<Duration>,
}

/// The limits of each server, as those of the [proxy](super::Limits) name them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) server_requests: usize,
    pub(super) slow_start: Duration,
}

/// The state of all servers.
#[derive(Debug)]
struct State {
    servers: Vec<Server>,
    /// Whether servers are checked, so that no request tries one that is out before a check passed.
    is_checked: bool,
    limits: Limits,
    /// The server whose turn it is.
    next: usize,
    random: SplitMix64,
}

impl Server {
    /// The longest time until it is tried again.
    fn span(&self) -> Duration {
        OUT_MAX.min(OUT_MIN * (1 << self.outs.min(16)))
    }
}

impl State {
    fn new(count: usize, seed: u64, is_checked: bool, limits: Limits) -> Self {
        let server = Server {
            outstanding: 0,
            failures: 0,
            outs: 0,
            failed_checks: 0,
            health: Health::Up,
            came_back: None,
        };
        Self {
            servers: vec![server; count.max(1)],
            is_checked,
            limits,
            next: 0,
            random: SplitMix64::new(seed),
        }
    }

    /// A random index below `len`, which is small.
    fn below(&mut self, len: usize) -> usize {
        (self.random.number() % len.max(1) as u64) as usize
    }

    /// The part of its requests that a server takes that came back a short time ago; `None` for all of them.
    fn part(&self, index: usize, now: Duration) -> Option<f64> {
        let since = now.saturating_sub(self.servers[index].came_back?);
        let slow_start = self.limits.slow_start;
        (since < slow_start).then(|| since.as_secs_f64() / slow_start.as_secs_f64())
    }

    /// The server for a request, which counts as outstanding, and whether the request is its trial. `None` if none is left
    /// that is up or due for a trial, or, with `may_be_out`, none at all; or if all of these are at their limit.
    fn choose(&mut self, now: Duration, tried: Tried, may_be_out: bool) -> Option<(usize, bool)> {
        let requests_max = self.limits.server_requests;
        let is_due = |server: &Server| match server.health {
            Health::Up | Health::Failing => false,
            Health::Out(until) | Health::Trial(until) => {
                until <= now && server.outstanding < requests_max
            }
        };
        let count = self.servers.len();
        let untried = (0..count).filter(|index| !tried.has(*index));
        if let Some(index) = untried.clone().find(|index| is_due(&self.servers[*index])) {
            let server = &mut self.servers[index];
            if matches!(server.health, Health::Trial(_)) {
                server.outs = server.outs.saturating_add(1);
            }
            server.health = Health::Trial(now + server.span());
            server.outstanding += 1;
            return Some((index, true));
        }
        let up = untried
            .clone()
            .filter(|index| self.servers[*index].health == Health::Up);
        let mut candidates: Vec<usize> = up.collect();
        if candidates.is_empty() && may_be_out {
            candidates = untried.collect();
        }
        candidates.retain(|index| self.servers[*index].outstanding < requests_max);
        let is_next = |index: &&usize| **index >= self.next;
        let first = *candidates.iter().find(is_next).or(candidates.first())?;
        let mut chosen = first;
        if candidates.len() > 1 {
            candidates.retain(|index| *index != first);
            let mut other = candidates[self.below(candidates.len())];
            let has_fewer = self.servers[other].outstanding < self.servers[first].outstanding;
            let part = self.part(first, now);
            let takes = part.is_none_or(|part| {
                let drawn = (self.random.number() >> 32) as u32;
                f64::from(drawn) < part * f64::from(u32::MAX)
            });
            if !takes {
                // One that did not just come back, if there is any.
                candidates.retain(|index| self.part(*index, now).is_none());
                if !candidates.is_empty() {
                    other = candidates[self.below(candidates.len())];
                }
            }
            if !takes || (has_fewer && self.part(other, now).is_none()) {
                chosen = other;
            }
        }
        self.next = (first + 1) % count;
        self.servers[chosen].outstanding += 1;
        Some((chosen, false))
    }

    /// A request ended, in whatever way; `is_trial` if it was to try the server.
    fn end(&mut self, index: usize, is_trial: bool, now: Duration) {
        let server = &mut self.servers[index];
        server.outstanding = server.outstanding.saturating_sub(1);
        if is_trial && matches!(server.health, Health::Trial(_)) {
            // The client left before it was known: the next request is the trial.
            server.health = Health::Out(now);
        }
    }

    /// The server has responded.
    fn succeed(&mut self, index: usize, now: Duration) {
        let server = &mut self.servers[index];
        (server.failures, server.outs) = (0, 0);
        // While all servers are failing, they get requests: their responses do not bring one back before the others.
        if matches!(server.health, Health::Out(_) | Health::Trial(_)) {
            (server.health, server.came_back) = (Health::Up, Some(now));
        }
    }

    /// A check ended; `failures_max` consecutive ones that failed put the server out.
    fn check(&mut self, index: usize, has_passed: bool, failures_max: u32, now: Duration) {
        let server = &mut self.servers[index];
        if !has_passed {
            server.failed_checks = server.failed_checks.saturating_add(1);
            if server.failed_checks >= failures_max {
                server.health = Health::Failing;
            }
            return;
        }
        server.failed_checks = 0;
        if server.health == Health::Failing {
            // The next request tries it.
            server.health = Health::Out(now);
        }
    }

    /// A request failed without a response; `is_connect` if there was no connection.
    fn fail(&mut self, index: usize, is_connect: bool, now: Duration) {
        let server = &mut self.servers[index];
        server.failures = server.failures.saturating_add(1);
        let is_out = match server.health {
            Health::Up => is_connect || server.failures >= FAILURES_MAX,
            Health::Trial(_) => true,
            // It was sent before, or while all servers were out.
            Health::Out(_) | Health::Failing => false,
        };
        if is_out {
            let longest = server.span();
            server.outs = server.outs.saturating_add(1);
            server.failures = 0;
            if self.is_checked {
                server.health = Health::Failing;
                return;
            }
            let part = self.random.number() as u32;
            let span = longest.saturating_sub(longest / 2 * (part >> 16) / (1 << 16));
            self.servers[index].health = Health::Out(now + span);
        }
    }
}

/// The servers of an upstream.
#[derive(Debug)]
pub(super) struct Balance {
    began: Instant,
    /// `None` for one server that is not checked: it gets all requests.
    state: Option<Mutex<State>>,
}

impl Balance {
    /// To be called in the context of the runtime whose time counts.
    pub(super) fn new(count: usize, seed: u64, is_checked: bool, limits: Limits) -> Arc<Self> {
        let has_state = count > 1 || is_checked;
        Arc::new(Self {
            began: Instant::now(),
            state: has_state.then(|| Mutex::new(State::new(count, seed, is_checked, limits))),
        })
    }

    /// A check of this server ended; `failures_max` consecutive ones that failed put it out.
    pub(super) fn check(&self, server: usize, has_passed: bool, failures_max: u32) {
        if let Some(mut state) = self.state() {
            state.check(server, has_passed, failures_max, self.began.elapsed());
        }
    }

    /// Whether each server receives requests; empty for one server that is not checked.
    pub(super) fn up(&self) -> Vec<bool> {
        let state = self.state();
        let servers = state.iter().flat_map(|state| &state.servers);
        servers.map(|it| it.health == Health::Up).collect()
    }

    fn state(&self) -> Option<MutexGuard<'_, State>> {
        let state = self.state.as_ref()?;
        Some(state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A server for a request, that was not tried. `may_be_out`: also if all of them are out.
    pub(super) fn choose(self: &Arc<Self>, tried: Tried, may_be_out: bool) -> Option<Turn> {
        let (server, is_trial) = match self.state() {
            Some(mut state) => state.choose(self.began.elapsed(), tried, may_be_out)?,
            None if tried.has(0) => return None,
            None => (0, false),
        };
        Some(Turn {
            balance: Arc::clone(self),
            server,
            is_trial,
        })
    }

    /// A request to this server failed without a response; `is_connect` if there was no connection.
    pub(super) fn fail(&self, server: usize, is_connect: bool) {
        if let Some(mut state) = self.state() {
            state.fail(server, is_connect, self.began.elapsed());
        }
    }
}

/// A request that a server was chosen for, until it is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    balance: Arc<Balance>,
    server: usize,
    is_trial: bool,
}

impl Turn {
    /// The index of the server.
    pub(super) const fn server(&self) -> usize {
        self.server
    }

    /// The server has responded.
    pub(super) fn succeed(&self) {
        if let Some(mut state) = self.balance.state() {
            state.succeed(self.server, self.balance.began.elapsed());
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(mut state) = self.balance.state() {
            state.end(self.server, self.is_trial, self.balance.began.elapsed());
        }
    }
}

#[cfg(test)]
mod tests;
