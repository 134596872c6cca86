//! Which datagram is in which link, and when it comes out.
//!
//! Owns: clients by their addresses, a path for each of them or one for all, and what was counted. Never: reads a clock, or
//! touches a socket; whoever drives it hands in datagrams and times, asks for the [`deadline`](Paths::deadline), and takes
//! out what arrived.

use core::{cmp::Reverse, fmt, time::Duration};
use std::{
    collections::{BTreeMap, BinaryHeap},
    net::SocketAddr,
};

use lastbyte_link::{Config, ConfigError, Count, DropReason, Ecn, Link, Packet, Statistics, Time};

use crate::lateness::Lateness;

#[cfg(test)]
mod tests;

/// Whether clients share a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// Each address of a client has a path of its own, whose time begins with its first datagram.
    #[default]
    Apart,
    /// All share one, whose time begins with the first datagram of all.
    Shared,
}

/// What the paths are like.
#[derive(Clone, Debug)]
pub struct Plan {
    /// From the server to clients.
    pub down: Config,
    /// From clients to the server.
    pub up: Config,
    /// What a packet has beside what is handed in, in bytes; the links carry it too.
    pub overhead: u32,
    /// Whether clients share one.
    pub sharing: Sharing,
    /// Where all chance comes from. Paths of their own have each a seed that follows from it and their number.
    pub seed: u64,
    /// After how long without a datagram a client is forgotten. Default: 60 s.
    pub idle: Duration,
    /// How many clients there may be at a time; datagrams of others are dropped and counted. Default: 4096.
    pub clients_max: usize,
    /// How many bytes may be in one direction of a path at a time; what comes above that is dropped and counted. Default:
    /// 256 MiB. Queues have limits of their own: this one is for those that are told to have none.
    pub inside_max: u64,
}

impl Plan {
    /// Paths of their own over these links, all else at its default.
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

/// Where a datagram goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// To the server.
    Up,
    /// To a client.
    Down,
}

impl Way {
    /// The other one.
    #[must_use]
    pub const fn back(self) -> Self {
        match self {
            Self::Up => Self::Down,
            Self::Down => Self::Up,
        }
    }
}

/// A datagram that arrived.
#[derive(Debug, PartialEq, Eq)]
pub struct Arrival<A = SocketAddr> {
    /// Whose it is.
    pub client: u64,
    /// The client's address.
    pub address: A,
    /// Where it goes.
    pub way: Way,
    /// When it arrived, by the model: at or before the time it was asked for.
    pub at: Time,
    /// Its marks.
    pub ecn: Ecn,
    /// The datagram.
    pub bytes: Box<[u8]>,
}

/// Why a client's datagram was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyClients;

impl fmt::Display for TooManyClients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("there are as many clients as there may be")
    }
}

impl std::error::Error for TooManyClients {}

/// What became of the datagrams of one direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WayReport {
    /// Handed to links.
    pub sent: Count,
    /// Made by links, as copies.
    pub duplicated: Count,
    /// Arrived at the far end.
    pub delivered: Count,
    /// Marked CE.
    pub marked: Count,
    /// Dropped by links, by reason: the order of [`DropReason::ALL`].
    pub dropped: [Count; DropReason::ALL.len()],
    /// Dropped since there were more than [`Plan::inside_max`] bytes inside.
    pub overflowed: u64,
    /// Arrived when their client was forgotten.
    pub stray: u64,
}

/// What became of all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// From clients to the server.
    pub up: WayReport,
    /// From the server to clients.
    pub down: WayReport,
    /// How many addresses of clients there were.
    pub clients: u64,
    /// Datagrams of clients beyond [`Plan::clients_max`], or for which there was no socket.
    pub refused: u64,
    /// Datagrams that arrived, and that a socket or the device did not take.
    pub unsent: u64,
    /// Packets of a device that were not between a client and a server.
    pub foreign: u64,
    /// Packets of a device that were dropped before any path, since they were not fetched in time.
    pub missed: u64,
    /// How much later than the model says datagrams were sent on.
    pub late: Lateness,
}

#[derive(Clone, Debug)]
struct Parcel {
    client: u64,
    bytes: Box<[u8]>,
}

#[derive(Debug)]
struct Path {
    up: Link<Parcel>,
    down: Link<Parcel>,
    /// Its own time begins here.
    epoch: Time,
    /// What is in the heap for it.
    due: Option<Time>,
}

#[derive(Debug)]
struct Client<A> {
    address: A,
    path: u64,
    /// When it or the server last said something.
    heard: Time,
}

/// All paths. `A` is what tells clients apart.
#[derive(Debug)]
pub struct Paths<A = SocketAddr> {
    plan: Plan,
    by_number: BTreeMap<u64, Path>,
    clients: BTreeMap<u64, Client<A>>,
    by_address: BTreeMap<A, u64>,
    due: BinaryHeap<Reverse<(Time, u64)>>,
    next: u64,
    report: Report,
}

impl<A: Copy + Ord> Paths<A> {
    /// No client yet.
    ///
    /// # Errors
    ///
    /// A link cannot be made of one of the settings.
    pub fn new(plan: Plan) -> Result<Self, ConfigError> {
        plan.down.check()?;
        plan.up.check()?;
        Ok(Self {
            plan,
            by_number: BTreeMap::new(),
            clients: BTreeMap::new(),
            by_address: BTreeMap::new(),
            due: BinaryHeap::new(),
            next: 0,
            report: Report::default(),
        })
    }

    /// The number of the client with this address, and whether it is new.
    ///
    /// # Errors
    ///
    /// There are as many as there may be, and this is not one of them.
    pub fn client(&mut self, now: Time, address: A) -> Result<(u64, bool), TooManyClients> {
        if let Some(number) = self.by_address.get(&address) {
            return Ok((*number, false));
        }
        if self.clients.len() >= self.plan.clients_max {
            self.report.refused += 1;
            return Err(TooManyClients);
        }
        let number = self.next;
        let path = match self.plan.sharing {
            Sharing::Apart => number,
            Sharing::Shared => 0,
        };
        if !self.by_number.contains_key(&path) {
            let seed = mix(self.plan.seed, 2 * path);
            let (Ok(up), Ok(down)) = (
                Link::new(&self.plan.up, seed),
                Link::new(&self.plan.down, mix(self.plan.seed, 2 * path + 1)),
            ) else {
                unreachable!("both were checked when this was made");
            };
            let fresh = Path {
                up,
                down,
                epoch: now,
                due: None,
            };
            self.by_number.insert(path, fresh);
        }
        self.next += 1;
        self.report.clients += 1;
        let client = Client {
            address,
            path,
            heard: now,
        };
        self.clients.insert(number, client);
        self.by_address.insert(address, number);
        Ok((number, true))
    }

    /// Hands in a datagram of a client, or for it. One of a client that was forgotten is dropped.
    pub fn send(&mut self, now: Time, client: u64, way: Way, ecn: Ecn, bytes: &[u8]) {
        self.send_of(now, client, client as u32, way, ecn, bytes);
    }

    /// The same for one of a client's several flows, which queues that are fair tell apart.
    pub fn send_of(&mut self, now: Time, client: u64, flow: u32, way: Way, ecn: Ecn, bytes: &[u8]) {
        let Some(found) = self.clients.get_mut(&client) else {
            self.report.way(way).stray += 1;
            return;
        };
        found.heard = now;
        let number = found.path;
        let Some(path) = self.by_number.get_mut(&number) else {
            return;
        };
        let time = path.time(now);
        let link = match way {
            Way::Up => &mut path.up,
            Way::Down => &mut path.down,
        };
        if link.inside().bytes > self.plan.inside_max {
            self.report.way(way).overflowed += 1;
            return;
        }
        let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let parcel = Parcel {
            client,
            bytes: bytes.into(),
        };
        let packet = Packet::new(len.saturating_add(self.plan.overhead), parcel)
            .with_ecn(ecn)
            .with_flow(flow);
        link.send(time, packet, &mut ());
        self.arm(number);
    }

    /// The next datagram that arrived at or before `now`. To be called until there is none.
    pub fn poll(&mut self, now: Time) -> Option<Arrival<A>> {
        while let Some(Reverse((at, number))) = self.due.peek().copied() {
            if at > now {
                return None;
            }
            let Some(path) = self.by_number.get_mut(&number) else {
                self.due.pop();
                continue;
            };
            if path.due != Some(at) {
                // Something came up since that is due earlier, and is in the heap by itself.
                self.due.pop();
                continue;
            }
            let time = path.time(now);
            let found = match path.up.poll(time, &mut ()) {
                Some(delivery) => Some((Way::Up, delivery)),
                None => path
                    .down
                    .poll(time, &mut ())
                    .map(|found| (Way::Down, found)),
            };
            let Some((way, delivery)) = found else {
                self.due.pop();
                path.due = None;
                self.arm(number);
                continue;
            };
            let at = path.epoch + delivery.at.since(Time::ZERO);
            let parcel = delivery.packet.payload;
            let Some(client) = self.clients.get(&parcel.client) else {
                self.report.way(way).stray += 1;
                continue;
            };
            self.report.late.record(now.since(at));
            return Some(Arrival {
                client: parcel.client,
                address: client.address,
                way,
                at,
                ecn: delivery.packet.ecn,
                bytes: parcel.bytes,
            });
        }
        None
    }

    /// When to call [`poll`](Self::poll) next.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        self.due.peek().map(|Reverse((at, _))| *at)
    }

    /// Forgets clients of whom nothing was heard for as long as the plan says, and gives their numbers.
    pub fn expire(&mut self, now: Time) -> Vec<u64> {
        let idle = self.plan.idle;
        let gone: Vec<u64> = self
            .clients
            .iter()
            .filter(|(_, client)| now.since(client.heard) >= idle)
            .map(|(number, _)| *number)
            .collect();
        for number in &gone {
            self.forget(*number);
        }
        gone
    }

    /// Forgets one client. If its path is its own, what is inside is gone too.
    pub fn forget(&mut self, number: u64) {
        let Some(client) = self.clients.remove(&number) else {
            return;
        };
        self.by_address.remove(&client.address);
        if self.plan.sharing == Sharing::Apart
            && let Some(path) = self.by_number.remove(&client.path)
        {
            self.report.add(&path);
        }
    }

    /// A datagram that arrived could not be sent on.
    pub const fn unsent(&mut self) {
        self.report.unsent += 1;
    }

    /// A packet was not between a client and a server.
    pub const fn foreign(&mut self) {
        self.report.foreign += 1;
    }

    /// A client's datagram could not be taken, for want of a socket.
    pub const fn refused(&mut self) {
        self.report.refused += 1;
    }

    /// What became of all datagrams so far.
    #[must_use]
    pub fn report(&self) -> Report {
        let mut report = self.report.clone();
        for path in self.by_number.values() {
            report.add(path);
        }
        report
    }

    /// Puts a path into the heap for its next deadline, unless it is there for one that is not later.
    fn arm(&mut self, number: u64) {
        let Some(path) = self.by_number.get_mut(&number) else {
            return;
        };
        let next = match (path.up.deadline(), path.down.deadline()) {
            (Some(up), Some(down)) => up.min(down),
            (Some(next), None) | (None, Some(next)) => next,
            (None, None) => return,
        };
        let next = path.epoch + next.since(Time::ZERO);
        if path.due.is_none_or(|due| next < due) {
            path.due = Some(next);
            self.due.push(Reverse((next, number)));
        }
    }
}

impl Path {
    const fn time(&self, now: Time) -> Time {
        Time::from_nanos(now.as_nanos().saturating_sub(self.epoch.as_nanos()))
    }
}

impl Report {
    const fn way(&mut self, way: Way) -> &mut WayReport {
        match way {
            Way::Up => &mut self.up,
            Way::Down => &mut self.down,
        }
    }

    fn add(&mut self, path: &Path) {
        self.up.add(path.up.statistics());
        self.down.add(path.down.statistics());
    }
}

impl WayReport {
    fn add(&mut self, link: &Statistics) {
        plus(&mut self.sent, link.sent);
        plus(&mut self.duplicated, link.duplicated);
        plus(&mut self.delivered, link.delivered);
        plus(&mut self.marked, link.marked);
        for (sum, reason) in self.dropped.iter_mut().zip(DropReason::ALL) {
            plus(sum, link.dropped(reason));
        }
    }

    /// What links dropped, for any reason.
    #[must_use]
    pub fn dropped_total(&self) -> u64 {
        self.dropped.iter().map(|count| count.packets).sum()
    }
}

const fn plus(sum: &mut Count, more: Count) {
    sum.packets += more.packets;
    sum.bytes += more.bytes;
}

/// A seed of its own for each link (`SplitMix64`).
const fn mix(seed: u64, stream: u64) -> u64 {
    let state = seed.wrapping_add(stream.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}
