//! Clients, their links, and the datagrams inside them.
//!
//! This module owns the clients by address, one path per client or one for all, and the counters. It reads no clock and
//! touches no socket: the caller passes in datagrams and times, queries the [`deadline`](Paths::deadline), and
//! retrieves delivered datagrams.
//!
//! | what is kept | at most | until |
//! |---|---|---|
//! | a client, by number and address | [`Plan::clients_max`], and those added | [`expire`](Paths::expire), [`forget`](Paths::forget), or [`add`](Paths::add) of its address |
//! | a path | one for each client, and a shared one | its client is removed; the shared one stays |
//! | a deadline | one for each path | the path is removed, or has no packets |
//! | a datagram | [`Plan::inside_max`] bytes for each direction of a path | the link delivers or drops it, or the path is removed |
//! | a buffer of a datagram that was delivered | 1024 of at most 2 KiB | a datagram is sent |

use core::time::Duration;
use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use lastbyte_link::{Config, ConfigError, Count, DropReason, Link, Packet, Statistics, Time};
pub use lastbyte_units::Direction;
use lastbyte_units::{Ecn, SplitMix64};

use crate::lateness::Lateness;

#[cfg(test)]
mod tests;

/// Whether clients share a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// Each client address has its own path, whose time starts with its first datagram.
    #[default]
    Apart,
    /// All clients share one path, whose time starts with the first datagram.
    Shared,
}

/// The configuration of the paths.
#[derive(Clone, Debug)]
pub struct Plan {
    /// From the server to clients.
    pub down: Config,
    /// From clients to the server.
    pub up: Config,
    /// The header overhead per packet in bytes, which the links add to the size of the datagram.
    pub overhead: u32,
    /// Whether clients share a path.
    pub sharing: Sharing,
    /// The random seed. With [`Sharing::Apart`], the seed of each path is derived from it and the path's number.
    pub seed: u64,
    /// The idle time after which a client is removed. Default: 60 s.
    pub idle: Duration,
    /// The maximum number of concurrent clients. Datagrams of further clients are dropped and counted. Default: 4096.
    pub clients_max: usize,
    /// The maximum number of bytes inside one direction of a path. Datagrams beyond it are dropped and counted.
    /// Default: 256 MiB. It bounds memory use with queues that have no limit of their own.
    pub inside_max: u64,
}

impl Plan {
    /// Creates a plan with one path per client over these links, and defaults otherwise.
    #[must_use]
    pub fn new(down: Config, up: Config) -> Self {
        Self {
            down,
            up,
            overhead: 0,
            sharing: Sharing::Apart,
            seed: 1,
            idle: Duration::from_secs(60),
            clients_max: 4096,
            inside_max: 256 << 20,
        }
    }
}

/// The links of one path.
#[derive(Clone, Debug, Default)]
pub struct PathModel {
    /// From the server to the client.
    pub down: Config,
    /// From the client to the server.
    pub up: Config,
    /// The header overhead per packet in bytes, which the links add to the size of the datagram.
    pub overhead: u32,
    /// The path's own time when it is created: rates in steps and service gaps are at this point. Default: 0.
    pub start: Duration,
    /// The random seed of the links.
    pub seed: u64,
}

/// A datagram that passed its link.
#[derive(Debug, PartialEq, Eq)]
pub struct Arrival<A = SocketAddr> {
    /// The number of the client.
    pub client: u64,
    /// The client's address.
    pub address: A,
    /// The direction of the datagram.
    pub direction: Direction,
    /// When the datagram left the link. At or before the time passed to [`Paths::poll`].
    pub at: Time,
    /// The ECN field.
    pub ecn: Ecn,
    /// The datagram. [`Paths::recycle`] takes the buffer back.
    pub bytes: Vec<u8>,
}

/// A datagram of a new client was dropped, because [`Plan::clients_max`] has been reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many clients")]
pub struct TooManyClients;

/// The counters of one direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirectionReport {
    /// Sent into links.
    pub sent: Count,
    /// Copies created by links.
    pub duplicated: Count,
    /// Delivered by links.
    pub delivered: Count,
    /// Marked CE by links.
    pub marked: Count,
    /// Dropped by links, by reason in the order of [`DropReason::ALL`].
    pub dropped: [Count; DropReason::ALL.len()],
    /// Dropped because more than [`Plan::inside_max`] bytes were inside.
    pub overflowed: u64,
    /// Dropped because their client had been removed.
    pub stray: u64,
}

/// The counters of all paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The direction from clients to the server.
    pub up: DirectionReport,
    /// The direction from the server to clients.
    pub down: DirectionReport,
    /// The total number of client addresses.
    pub clients: u64,
    /// Datagrams dropped because of [`Plan::clients_max`], or because no upstream socket could be created.
    pub refused: u64,
    /// Datagrams that were due but could not be written to the socket or device.
    pub unsent: u64,
    /// Packets from the device that were not between a client and a server.
    pub foreign: u64,
    /// Packets that the kernel dropped because they were not read from the device in time.
    pub missed: u64,
    /// The delay between the delivery time of the link and the time at which the datagram was polled.
    pub late: Lateness,
}

#[derive(Clone, Debug)]
struct Payload {
    client: u64,
    bytes: Vec<u8>,
}

#[derive(Debug)]
struct Path {
    up: Link<Payload>,
    down: Link<Payload>,
    /// When the path was created.
    epoch: Time,
    /// The path's own time at that moment.
    start: Duration,
    overhead: u32,
    /// The path's entry in [`Paths::due`].
    due: Option<Time>,
}

/// How many buffers are kept for later datagrams: those of some trains.
const SPARE_MAX: usize = 1024;
/// Longer buffers are not kept.
const SPARE_LEN_MAX: usize = 2048;

/// The number of the path that clients share. Others have the number of their client.
const SHARED: u64 = u64::MAX;

#[derive(Debug)]
struct Client<A> {
    address: A,
    path: u64,
    /// When the client or the server last sent a datagram.
    last_active: Time,
}

/// All paths. `A` identifies clients.
#[derive(Debug)]
pub struct Paths<A = SocketAddr> {
    plan: Plan,
    by_number: BTreeMap<u64, Path>,
    clients: BTreeMap<u64, Client<A>>,
    by_address: BTreeMap<A, u64>,
    /// The deadlines of paths with packets inside.
    due: BTreeSet<(Time, u64)>,
    next: u64,
    /// Buffers for datagrams.
    spare: Vec<Vec<u8>>,
    report: Report,
    /// [`Report::refused`], which other threads read.
    refused: Arc<AtomicU64>,
}

impl<A: Copy + Ord> Paths<A> {
    /// Creates paths without clients.
    ///
    /// # Errors
    ///
    /// Returns the [`ConfigError`] of the first link setting that is out of range.
    pub fn new(plan: Plan) -> Result<Self, ConfigError> {
        plan.down.check()?;
        plan.up.check()?;
        Ok(Self {
            plan,
            by_number: BTreeMap::new(),
            clients: BTreeMap::new(),
            by_address: BTreeMap::new(),
            due: BTreeSet::new(),
            next: 0,
            spare: Vec::new(),
            report: Report::default(),
            refused: Arc::default(),
        })
    }

    /// Returns the number of the client with this address, and whether it is new.
    ///
    /// # Errors
    ///
    /// Returns [`TooManyClients`] if the client is new and [`Plan::clients_max`] has been reached.
    pub fn client(&mut self, now: Time, address: A) -> Result<(u64, bool), TooManyClients> {
        if let Some(number) = self.by_address.get(&address) {
            return Ok((*number, false));
        }
        if self.clients.len() >= self.plan.clients_max {
            self.refused();
            return Err(TooManyClients);
        }
        let number = self.next;
        let path = match self.plan.sharing {
            Sharing::Apart => number,
            Sharing::Shared => SHARED,
        };
        if !self.by_number.contains_key(&path) {
            let seeds = SplitMix64::new(self.plan.seed);
            let first = if path == SHARED { 0 } else { 2 * path };
            let seeds = (seeds.at(first), seeds.at(first + 1));
            let Plan { down, up, .. } = &self.plan;
            let Ok(fresh) = Path::new(now, up, down, seeds, self.plan.overhead, Duration::ZERO)
            else {
                unreachable!("`Paths::new` checked both configurations");
            };
            self.by_number.insert(path, fresh);
        }
        Ok((self.insert(now, address, path), true))
    }

    /// Adds a client with a path of its own, in place of [`Plan::down`] and [`Plan::up`]. Returns its number. A client that
    /// already has this address is replaced.
    ///
    /// # Errors
    ///
    /// Returns the [`ConfigError`] of the first link setting that is out of range.
    pub fn add(&mut self, now: Time, address: A, model: &PathModel) -> Result<u64, ConfigError> {
        let seeds = SplitMix64::new(model.seed);
        let seeds = (seeds.at(0), seeds.at(1));
        let path = Path::new(
            now,
            &model.up,
            &model.down,
            seeds,
            model.overhead,
            model.start,
        )?;
        if let Some(old) = self.by_address.get(&address).copied() {
            self.forget(old);
        }
        let number = self.next;
        self.by_number.insert(number, path);
        Ok(self.insert(now, address, number))
    }

    /// Adds a client to a path. Returns its number.
    fn insert(&mut self, now: Time, address: A, path: u64) -> u64 {
        let number = self.next;
        self.next += 1;
        self.report.clients += 1;
        let client = Client {
            address,
            path,
            last_active: now,
        };
        self.clients.insert(number, client);
        self.by_address.insert(address, number);
        number
    }

    /// Sends a datagram from or to a client into its path. Datagrams of a client that was removed are dropped.
    pub fn send(&mut self, now: Time, client: u64, direction: Direction, ecn: Ecn, bytes: &[u8]) {
        self.send_of(now, client, client as u32, direction, ecn, bytes);
    }

    /// Like [`send`](Self::send), with a flow number for fair queueing among several flows of a client.
    pub fn send_of(
        &mut self,
        now: Time,
        client: u64,
        flow: u32,
        direction: Direction,
        ecn: Ecn,
        bytes: &[u8],
    ) {
        let Some(found) = self.clients.get_mut(&client) else {
            self.report.direction(direction).stray += 1;
            return;
        };
        found.last_active = now;
        let number = found.path;
        let Some(path) = self.by_number.get_mut(&number) else {
            return;
        };
        let time = path.time(now);
        let link = match direction {
            Direction::Up => &mut path.up,
            Direction::Down => &mut path.down,
        };
        if link.inside().bytes > self.plan.inside_max {
            self.report.direction(direction).overflowed += 1;
            return;
        }
        let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(bytes);
        let payload = Payload {
            client,
            bytes: buffer,
        };
        let packet = Packet::new(len.saturating_add(path.overhead), payload)
            .with_ecn(ecn)
            .with_flow(flow);
        link.send(time, packet, &mut ());
        self.arm(number);
    }

    /// Returns the next datagram that is due at or before `now`. Call it until it returns `None`.
    pub fn poll(&mut self, now: Time) -> Option<Arrival<A>> {
        while let Some((at, number)) = self.due.first().copied() {
            if at > now {
                return None;
            }
            let Some(path) = self.by_number.get_mut(&number) else {
                self.due.pop_first();
                continue;
            };
            let time = path.time(now);
            let found = match path.up.poll(time, &mut ()) {
                Some(delivery) => Some((Direction::Up, delivery)),
                None => path
                    .down
                    .poll(time, &mut ())
                    .map(|found| (Direction::Down, found)),
            };
            let Some((direction, delivery)) = found else {
                self.due.pop_first();
                path.due = None;
                self.arm(number);
                continue;
            };
            let at = path.outside(delivery.at);
            let payload = delivery.packet.payload;
            let Some(client) = self.clients.get(&payload.client) else {
                self.report.direction(direction).stray += 1;
                continue;
            };
            self.report.late.record(now.since(at));
            return Some(Arrival {
                client: payload.client,
                address: client.address,
                direction,
                at,
                ecn: delivery.packet.ecn,
                bytes: payload.bytes,
            });
        }
        None
    }

    /// Takes back the buffer of a datagram that was delivered, for later datagrams.
    pub fn recycle(&mut self, buffer: Vec<u8>) {
        if self.spare.len() < SPARE_MAX && buffer.capacity() <= SPARE_LEN_MAX {
            self.spare.push(buffer);
        }
    }

    /// When to call [`poll`](Self::poll) next.
    pub fn deadline(&self) -> Option<Time> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Removes clients that have been idle for [`Plan::idle`], and returns their numbers.
    pub fn expire(&mut self, now: Time) -> Vec<u64> {
        let idle = self.plan.idle;
        let gone: Vec<u64> = self
            .clients
            .iter()
            .filter(|(_, client)| now.since(client.last_active) >= idle)
            .map(|(number, _)| *number)
            .collect();
        for number in &gone {
            self.forget(*number);
        }
        gone
    }

    /// Removes a client and, unless it is shared, its path with all datagrams inside.
    pub fn forget(&mut self, number: u64) {
        let Some(client) = self.clients.remove(&number) else {
            return;
        };
        self.by_address.remove(&client.address);
        if client.path != SHARED
            && let Some(path) = self.by_number.remove(&client.path)
        {
            self.report.add(&path);
            if let Some(due) = path.due {
                self.due.remove(&(due, client.path));
            }
        }
    }

    /// Counts a datagram that was due but could not be sent.
    pub const fn unsent(&mut self) {
        self.report.unsent += 1;
    }

    /// Counts a packet that was not between a client and a server.
    pub const fn foreign(&mut self) {
        self.report.foreign += 1;
    }

    /// Counts a datagram dropped because no upstream socket could be created.
    pub fn refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// [`Report::refused`] so far, for other threads.
    pub(crate) fn refusals(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.refused)
    }

    /// The counters so far.
    pub fn report(&self) -> Report {
        let mut report = self.report.clone();
        report.refused = self.refused.load(Ordering::Relaxed);
        for path in self.by_number.values() {
            report.add(path);
        }
        report
    }

    /// Sets the deadline of a path, unless it has one that is not later.
    fn arm(&mut self, number: u64) {
        let Some(path) = self.by_number.get_mut(&number) else {
            return;
        };
        let next = match (path.up.deadline(), path.down.deadline()) {
            (Some(up), Some(down)) => up.min(down),
            (Some(next), None) | (None, Some(next)) => next,
            (None, None) => return,
        };
        let next = path.outside(next);
        if path.due.is_none_or(|due| next < due) {
            if let Some(due) = path.due.replace(next) {
                self.due.remove(&(due, number));
            }
            self.due.insert((next, number));
        }
    }
}

impl Path {
    fn new(
        now: Time,
        up: &Config,
        down: &Config,
        seeds: (u64, u64),
        overhead: u32,
        start: Duration,
    ) -> Result<Self, ConfigError> {
        Ok(Self {
            up: Link::new(up, seeds.0)?,
            down: Link::new(down, seeds.1)?,
            epoch: now,
            start,
            overhead,
            due: None,
        })
    }

    /// The path's own time.
    fn time(&self, now: Time) -> Time {
        Time::ZERO + self.start + now.since(self.epoch)
    }

    /// The time outside at this time of the path's own.
    fn outside(&self, time: Time) -> Time {
        self.epoch + time.since(Time::ZERO + self.start)
    }
}

impl Report {
    /// Adds the counters of other paths.
    pub fn merge(&mut self, other: &Self) {
        self.up.merge(&other.up);
        self.down.merge(&other.down);
        self.late.merge(&other.late);
        for (sum, more) in [
            (&mut self.clients, other.clients),
            (&mut self.refused, other.refused),
            (&mut self.unsent, other.unsent),
            (&mut self.foreign, other.foreign),
            (&mut self.missed, other.missed),
        ] {
            *sum += more;
        }
    }

    const fn direction(&mut self, direction: Direction) -> &mut DirectionReport {
        match direction {
            Direction::Up => &mut self.up,
            Direction::Down => &mut self.down,
        }
    }

    fn add(&mut self, path: &Path) {
        self.up.add(&path.up.statistics());
        self.down.add(&path.down.statistics());
    }
}

impl DirectionReport {
    fn add(&mut self, link: &Statistics) {
        plus(&mut self.sent, link.sent);
        plus(&mut self.duplicated, link.duplicated);
        plus(&mut self.delivered, link.delivered);
        plus(&mut self.marked, link.marked);
        for (sum, reason) in self.dropped.iter_mut().zip(DropReason::ALL) {
            plus(sum, link.dropped(reason));
        }
    }

    fn merge(&mut self, other: &Self) {
        plus(&mut self.sent, other.sent);
        plus(&mut self.duplicated, other.duplicated);
        plus(&mut self.delivered, other.delivered);
        plus(&mut self.marked, other.marked);
        for (sum, more) in self.dropped.iter_mut().zip(other.dropped) {
            plus(sum, more);
        }
        self.overflowed += other.overflowed;
        self.stray += other.stray;
    }

    /// The number of packets dropped by links for any reason.
    pub fn dropped_total(&self) -> u64 {
        self.dropped.iter().map(|count| count.packets).sum()
    }
}

const fn plus(sum: &mut Count, more: Count) {
    sum.packets += more.packets;
    sum.bytes += more.bytes;
}
