//! Which request is due when, and on which connection: the schedule of one thread.
//!
//! Time and the seed are arguments. A closed loop starts a request as soon as another has ended. An open loop starts
//! requests at times that do not depend on the server: an arrival that finds no free stream waits, and its latency counts
//! from when it was due. Arrivals are computed one by one, so a backlog takes no memory.

use core::time::Duration;

use lastbyte_quic::Time;
use lastbyte_units::SplitMix64;

use crate::mix::{Handshake, Mix};

#[cfg(test)]
mod tests;

/// When requests start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Arrivals {
    /// As soon as a stream is free.
    #[default]
    Closed,
    /// At equal intervals.
    Constant {
        /// Requests per second, by all threads together.
        rate: f64,
    },
    /// At exponentially distributed intervals.
    Poisson {
        /// Requests per second, by all threads together.
        rate: f64,
    },
}

impl Arrivals {
    /// The rate in requests per second, unless the loop is closed.
    pub const fn rate(self) -> Option<f64> {
        match self {
            Self::Closed => None,
            Self::Constant { rate } | Self::Poisson { rate } => Some(rate),
        }
    }
}

/// The length of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// This number of requests, by all threads together.
    Requests(u64),
    /// This time, after a time that is not measured.
    Time {
        /// Requests that are due during this time are sent, but not counted.
        warm_up: Duration,
        /// The measured time.
        measured: Duration,
    },
}

/// The part of a run that one thread does.
#[derive(Clone, Debug, PartialEq)]
pub struct Share {
    /// The index of the thread.
    pub thread: usize,
    /// The number of threads.
    pub threads: usize,
    /// The number of connections of all threads.
    pub connections: usize,
}

impl Share {
    /// The number of connections of this thread: those whose index modulo the number of threads is the thread's.
    pub const fn own_connections(&self) -> usize {
        (self.connections + self.threads - 1 - self.thread) / self.threads
    }

    /// The number of one of its connections among those of all threads, counted from the number of threads: the numbers below
    /// are those of the threads, so that no two draw the same random numbers.
    const fn number_of(&self, connection: usize) -> u64 {
        ((connection + 1) * self.threads + self.thread) as u64
    }

    /// The number of requests of one of its connections, of `total` that all connections have to send.
    pub const fn requests_of(&self, connection: usize, total: u64) -> u64 {
        let index = (connection * self.threads + self.thread) as u64;
        let connections = self.connections as u64;
        total / connections + (index < total % connections) as u64
    }
}

/// A request that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// Its index in the list of requests.
    pub request: usize,
    /// When it was due. In a closed loop, now.
    pub at: Time,
    /// Whether it counts: it was not due during the warm-up.
    pub is_measured: bool,
    /// The handshake of the new connection that it gets; `None` if it uses the client's connection.
    pub handshake: Option<Handshake>,
    /// When it was sent before, if the server has refused it once.
    pub first_sent: Option<Time>,
}

/// The schedule of one thread.
#[derive(Clone, Debug)]
pub struct Dispatcher {
    /// The order of requests, by index, with repetitions; each connection goes round it.
    cycle: Box<[u32]>,
    mix: Option<Mix>,
    connections: Box<[Connection]>,
    arrivals: Option<Schedule>,
    /// The measured time starts here.
    measured_from: Time,
    /// No request is due from here on; `None` if the number of requests is limited.
    end: Option<Time>,
    /// The requests that all connections together have yet to start, in an open loop of a fixed number.
    remaining: u64,
}

#[derive(Clone, Copy, Debug)]
struct Connection {
    /// The place in the cycle.
    next: usize,
    /// Draws from the mix.
    random: SplitMix64,
    /// Requests that it has yet to start, in a closed loop of a fixed number.
    remaining: u64,
}

/// The arrivals of an open loop.
#[derive(Clone, Debug)]
struct Schedule {
    start: Time,
    next: Time,
    interval_ns: f64,
    /// The time of the first arrival of a constant process after the start.
    offset_ns: f64,
    /// The number of the next arrival.
    index: u64,
    /// Draws the intervals of Poisson arrivals.
    random: Option<SplitMix64>,
    /// The sum of these intervals.
    drawn_ns: f64,
}

impl Schedule {
    fn new(start: Time, interval_ns: f64, offset_ns: f64, random: Option<SplitMix64>) -> Self {
        let mut schedule = Self {
            start,
            next: start.plus(offset_ns.round() as u64),
            interval_ns,
            offset_ns,
            index: 0,
            random,
            drawn_ns: 0.0,
        };
        if random.is_some() {
            schedule.advance();
        }
        schedule
    }

    fn advance(&mut self) {
        self.index += 1;
        let since_start = match &mut self.random {
            // Not a sum, so that no rounding error grows.
            None => self.interval_ns.mul_add(self.index as f64, self.offset_ns),
            Some(random) => {
                // From 2^-53 to 1: the logarithm is finite.
                let uniform = ((random.number() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
                self.drawn_ns -= self.interval_ns * uniform.ln();
                self.drawn_ns
            }
        };
        self.next = self.start.plus(since_start.round() as u64);
    }
}

impl Dispatcher {
    /// The schedule of a thread that starts now. `weights` has a value for each request of the list.
    #[must_use]
    pub fn new(
        now: Time,
        share: &Share,
        arrivals: Arrivals,
        amount: Amount,
        weights: &[u32],
        seed: u64,
    ) -> Self {
        let threads = share.threads as f64;
        let schedule = arrivals.rate().map(|rate| {
            let interval_ns = 1e9 * threads / rate;
            let is_poisson = matches!(arrivals, Arrivals::Poisson { .. });
            // With constant intervals, the threads take turns.
            let offset_ns = interval_ns * share.thread as f64 / threads;
            let random = is_poisson.then(|| SplitMix64::stream(seed, share.thread as u64));
            Schedule::new(now, interval_ns, offset_ns, random)
        });
        let (measured_from, end, total) = match amount {
            Amount::Requests(total) => (now, None, total),
            Amount::Time { warm_up, measured } => {
                (now + warm_up, Some(now + warm_up + measured), u64::MAX)
            }
        };
        let is_counted = end.is_none();
        let connections: Box<[Connection]> = (0..share.own_connections())
            .map(|connection| Connection {
                next: 0,
                random: SplitMix64::stream(seed, share.number_of(connection)),
                remaining: if is_counted {
                    share.requests_of(connection, total)
                } else {
                    u64::MAX
                },
            })
            .collect();
        let remaining = if is_counted {
            connections
                .iter()
                .map(|connection| connection.remaining)
                .sum()
        } else {
            u64::MAX
        };
        Self {
            cycle: cycle(weights),
            mix: None,
            connections,
            arrivals: schedule,
            measured_from,
            end,
            remaining,
        }
    }

    /// The same schedule, with requests that get their connections in these ways.
    #[must_use]
    pub fn with_mix(mut self, mix: Option<Mix>) -> Self {
        self.mix = mix;
        self
    }

    /// Takes the request that a connection with a free stream should send now, if any.
    pub fn take(&mut self, now: Time, connection: usize) -> Option<Due> {
        let at = match &self.arrivals {
            None => now,
            Some(schedule) if schedule.next <= now => schedule.next,
            Some(_) => return None,
        };
        if self.remaining == 0 || self.end.is_some_and(|end| at >= end) {
            return None;
        }
        let own = self.connections.get_mut(connection)?;
        match &mut self.arrivals {
            None if own.remaining == 0 => return None,
            None => own.remaining -= 1,
            Some(schedule) => schedule.advance(),
        }
        self.remaining -= 1;
        let request = self.cycle.get(own.next).copied().unwrap_or(0) as usize;
        own.next = (own.next + 1) % self.cycle.len().max(1);
        Some(Due {
            request,
            at,
            is_measured: at >= self.measured_from,
            handshake: self.mix.and_then(|mix| mix.draw(&mut own.random)),
            first_sent: None,
        })
    }

    /// The requests that a connection has yet to start, in a closed loop of a fixed number; they are given up.
    pub fn abandon(&mut self, connection: usize) -> u64 {
        if self.arrivals.is_some() || self.end.is_some() {
            return 0;
        }
        let own = self.connections.get_mut(connection);
        let abandoned = own.map_or(0, |own| core::mem::take(&mut own.remaining));
        self.remaining -= abandoned;
        abandoned
    }

    /// The requests that are due but were not started, until `now`: of an open loop that could not keep up, or of a fixed
    /// number that was not finished.
    pub fn take_backlog(&mut self, now: Time) -> u64 {
        let mut count = 0;
        if let Some(schedule) = &mut self.arrivals {
            let until = self.end.map_or(now, |end| now.min(end));
            while schedule.next < until && self.remaining > 0 {
                count += u64::from(schedule.next >= self.measured_from);
                self.remaining -= 1;
                schedule.advance();
            }
        }
        count
    }

    /// When the next request of an open loop is due, if there is one.
    pub fn next_arrival(&self) -> Option<Time> {
        let next = self.arrivals.as_ref()?.next;
        let is_within = self.remaining > 0 && self.end.is_none_or(|end| next < end);
        is_within.then_some(next)
    }

    /// Whether all requests have been started, or the time limit has passed.
    pub fn is_over(&self, now: Time) -> bool {
        self.remaining == 0 || self.end.is_some_and(|end| now >= end)
    }

    /// Whether a connection has nothing more to start, whatever the time.
    pub fn is_idle(&self, connection: usize) -> bool {
        let own = self.connections.get(connection);
        self.remaining == 0 || (self.arrivals.is_none() && own.is_none_or(|own| own.remaining == 0))
    }

    /// Moves the whole schedule, which has not been used yet, so that it starts now: an open loop starts when its
    /// connections are established.
    pub fn start_at(&mut self, from: Time, now: Time) {
        let delay = now.nanos_since(from);
        if let Some(schedule) = &mut self.arrivals {
            schedule.start = schedule.start.plus(delay);
            schedule.next = schedule.next.plus(delay);
        }
        self.measured_from = self.measured_from.plus(delay);
        self.end = self.end.map(|end| end.plus(delay));
    }

    /// Whether requests start at times that do not depend on the server.
    pub const fn is_open_loop(&self) -> bool {
        self.arrivals.is_some()
    }

    /// When the measured time starts.
    pub const fn measured_from(&self) -> Time {
        self.measured_from
    }

    /// When the run ends; `None` if the number of requests is limited.
    pub const fn end(&self) -> Option<Time> {
        self.end
    }
}

/// The order of requests with these weights, each spread over the cycle as evenly as possible (smooth weighted round
/// robin). With equal weights, the order of the list.
fn cycle(weights: &[u32]) -> Box<[u32]> {
    let divisor = weights.iter().copied().fold(0, gcd).max(1);
    let weights: Vec<i64> = weights.iter().map(|w| i64::from(w / divisor)).collect();
    let total: i64 = weights.iter().sum();
    let mut credits = vec![0_i64; weights.len()];
    let mut order = Vec::new();
    for _ in 0..total {
        let mut best = 0;
        for (index, weight) in weights.iter().enumerate() {
            credits[index] += weight;
            if credits[index] > credits[best] {
                best = index;
            }
        }
        credits[best] -= total;
        order.push(best as u32);
    }
    order.into_boxed_slice()
}

const fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}
