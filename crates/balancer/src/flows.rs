//! The client addresses in use.
//!
//! This module owns which addresses have a flow, their number, age and proof, and the rate of new ones. It takes the time
//! as an argument, and does not know what a flow holds: for the forwarder that is a socket.
//!
//! # Bounds
//!
//! At most [`FlowLimits::flows`] flows, [`FlowLimits::new_per_second`] new ones per second, each for at most
//! [`FlowLimits::idle`] after its last datagram. All memory is allocated at the start. A new flow in a full table displaces
//! the one that has been inactive longest among those that are not proven; if all are proven, the one that has been
//! inactive longest, if that is [`DISPLACED_AFTER`] or more; otherwise it is refused.
//!
//! Addresses are hashed with a key, so clients cannot choose ones that share a bucket.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use lastbyte_units::{SipHash, Time};
use lastbyte_wire::{
    ConnectionId,
    packet::{Invariant, VersionNumber},
};

#[cfg(test)]
mod tests;

/// Limits of a [`Flows`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowLimits {
    /// Maximum number of flows, 1 to 2^31. Default: 16,384.
    pub flows: usize,
    /// Maximum number of new flows per second, at least 1. Twice as many may arrive at once. Default: 5000.
    pub new_per_second: u32,
    /// Time without datagrams after which a proven flow ends. Default: 120 s (RFC 4787 §4.3).
    pub idle: Duration,
    /// The same for flows that are not proven. Default: 30 s.
    pub unproven_idle: Duration,
}

impl Default for FlowLimits {
    fn default() -> Self {
        Self {
            flows: 16_384,
            new_per_second: 5000,
            idle: Duration::from_secs(120),
            unproven_idle: Duration::from_secs(30),
        }
    }
}

/// A proven flow is displaced only if it has been inactive for this long.
pub const DISPLACED_AFTER: Duration = Duration::from_secs(10);

/// The addresses of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowKey {
    /// The client's address.
    pub client: SocketAddr,
    /// The address of the balancer to which the client sends, if the system reports it.
    pub local: Option<IpAddr>,
}

/// The place of a flow. It is reused after the flow has ended.
pub type FlowIndex = usize;

/// Why a flow was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// [`FlowLimits::new_per_second`].
    Rate,
    /// All flows are proven and active.
    Full,
    /// The caller had nothing to put in.
    Empty,
}

/// The flows, each with a `T`.
pub struct Flows<T> {
    limits: FlowLimits,
    key: [u8; 16],
    entries: Vec<Entry<T>>,
    /// The first entry of each bucket. A power of two.
    buckets: Vec<Link>,
    free: Link,
    /// Entries by last activity, oldest first: not proven, proven.
    lists: [List; 2],
    open: usize,
    /// When the next new flow is due at the maximum rate.
    next_new: Time,
}

/// An entry's index.
type Link = Option<u32>;

#[derive(Clone, Copy, Default)]
struct List {
    oldest: Link,
    newest: Link,
    len: usize,
}

struct Entry<T> {
    key: FlowKey,
    value: Option<T>,
    last_active: Time,
    is_proven: bool,
    from_client: u64,
    from_server: u64,
    /// The source connection ID of the server's last packet with a long header.
    offered: ConnectionId,
    /// The hash of the connection ID of the client's last unroutable packet, and the server ID it was forwarded to.
    unroutable: Option<(u64, u64)>,
    bucket_next: Link,
    older: Link,
    newer: Link,
}

impl<T> fmt::Debug for Flows<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flows")
            .field("limits", &self.limits)
            .field("open", &self.open)
            .finish_non_exhaustive()
    }
}

const NO_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED), 0);
/// A server sends at most this many times the bytes it received to an address that it has not validated (RFC 9000 §8.1).
const AMPLIFICATION: u64 = 3;

impl<T> Flows<T> {
    /// Creates a table. `key` must be random.
    #[must_use]
    pub fn new(limits: FlowLimits, key: [u8; 16]) -> Self {
        let flows = limits.flows.clamp(1, 1 << 31);
        let entries = (0..flows).map(|index| Entry {
            key: FlowKey {
                client: NO_ADDRESS,
                local: None,
            },
            value: None,
            last_active: Time::ZERO,
            is_proven: false,
            from_client: 0,
            from_server: 0,
            offered: ConnectionId::EMPTY,
            unroutable: None,
            bucket_next: (index + 1 < flows).then_some(index as u32 + 1),
            older: None,
            newer: None,
        });
        Self {
            limits,
            key,
            entries: entries.collect(),
            buckets: vec![None; flows.next_power_of_two()],
            free: Some(0),
            lists: [List::default(); 2],
            open: 0,
            next_new: Time::ZERO,
        }
    }

    /// The number of flows.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.open
    }

    /// Whether there are no flows.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.open == 0
    }

    /// The flow of these addresses.
    #[must_use]
    pub fn find(&self, key: &FlowKey) -> Option<FlowIndex> {
        let mut next = *self.buckets.get(self.bucket(key))?;
        while let Some(at) = next {
            let entry = self.entries.get(at as usize)?;
            if entry.key == *key {
                return Some(at as usize);
            }
            next = entry.bucket_next;
        }
        None
    }

    /// The value of a flow, and its addresses.
    #[must_use]
    pub fn get(&self, index: FlowIndex) -> Option<(&FlowKey, &T)> {
        let entry = self.entries.get(index)?;
        entry.value.as_ref().map(|value| (&entry.key, value))
    }

    /// Whether the client has proven that it receives at its address.
    #[must_use]
    pub fn is_proven(&self, index: FlowIndex) -> bool {
        self.entries.get(index).is_some_and(|entry| entry.is_proven)
    }

    /// Whether a server has sent this connection ID to the client, which is not proven yet.
    #[must_use]
    pub fn is_offered(&self, index: FlowIndex, id: &[u8]) -> bool {
        let entry = self.entries.get(index);
        entry.is_some_and(|entry| !id.is_empty() && entry.offered.as_slice() == id)
    }

    /// Records that the client has proven that it receives at its address.
    pub fn set_proven(&mut self, now: Time, index: FlowIndex) {
        self.touch(now, index, true);
    }

    /// Whether clients should prove their address first: [`Self::is_half_used`], or flows that are not proven take a quarter of
    /// the table.
    #[must_use]
    pub fn is_under_load(&self, now: Time) -> bool {
        self.is_half_used(now) || self.list(false).len >= self.entries.len().div_ceil(4)
    }

    /// Whether less than half of the new flows that may arrive at once is left.
    #[must_use]
    pub fn is_half_used(&self, now: Time) -> bool {
        self.next_new.plus(1_000_000_000) > now
    }

    /// The server ID to which the previous unroutable packet of this flow was forwarded, if it had the same connection
    /// ID.
    #[must_use]
    pub fn unroutable(&self, index: FlowIndex, id_hash: u64) -> Option<u64> {
        let (hash, server) = self.entries.get(index)?.unroutable?;
        (hash == id_hash).then_some(server)
    }

    /// Records where an unroutable packet was forwarded to.
    pub fn set_unroutable(&mut self, index: FlowIndex, id_hash: u64, server: u64) {
        if let Some(entry) = self.entries.get_mut(index) {
            entry.unroutable = Some((id_hash, server));
        }
    }

    /// Opens a flow with the value that `make` creates. Also returns the value of a displaced flow.
    ///
    /// # Errors
    ///
    /// Returns [`Refused::Rate`] or [`Refused::Full`] if a limit was reached, and [`Refused::Empty`] if `make` returned
    /// nothing.
    pub fn open(
        &mut self,
        now: Time,
        key: FlowKey,
        make: impl FnOnce(FlowIndex) -> Option<T>,
    ) -> Result<(FlowIndex, Option<T>), Refused> {
        let interval = 1_000_000_000 / u64::from(self.limits.new_per_second.max(1));
        // At most two seconds of new flows at once.
        let due = self.next_new.max(Time::from_nanos(
            now.as_nanos().saturating_sub(2_000_000_000),
        ));
        if due > now {
            return Err(Refused::Rate);
        }
        let displaced = match self.free {
            Some(_) => None,
            None => Some(self.displaceable(now).ok_or(Refused::Full)?),
        };
        self.next_new = due.plus(interval);
        let displaced = displaced.and_then(|at| self.close(at));
        let at = self.free.ok_or(Refused::Full)?;
        let value = make(at as usize).ok_or(Refused::Empty)?;
        let bucket = self.bucket(&key);
        let first = self.buckets.get(bucket).copied().flatten();
        let entry = self.entries.get_mut(at as usize).ok_or(Refused::Full)?;
        self.free = entry.bucket_next;
        *entry = Entry {
            key,
            value: Some(value),
            last_active: now,
            is_proven: false,
            from_client: 0,
            from_server: 0,
            offered: ConnectionId::EMPTY,
            unroutable: None,
            bucket_next: first,
            older: None,
            newer: None,
        };
        if let Some(place) = self.buckets.get_mut(bucket) {
            *place = Some(at);
        }
        self.open += 1;
        self.append(at);
        Ok((at as usize, displaced))
    }

    /// Records datagrams from the client: their bytes, and the destination connection ID of one. For a short header,
    /// `destination` may have further bytes.
    pub fn on_client(&mut self, now: Time, index: FlowIndex, bytes: usize, destination: &[u8]) {
        let Some(entry) = self.entries.get_mut(index) else {
            return;
        };
        entry.from_client = entry.from_client.saturating_add(bytes as u64);
        let echoes = !entry.offered.is_empty() && destination.starts_with(entry.offered.as_slice());
        self.touch(now, index, echoes);
    }

    /// Records a datagram from the server, or several of which `datagram` is the first.
    pub fn on_server(&mut self, now: Time, index: FlowIndex, bytes: usize, datagram: &[u8]) {
        let Some(entry) = self.entries.get_mut(index) else {
            return;
        };
        entry.from_server = entry.from_server.saturating_add(bytes as u64);
        if !entry.is_proven
            && let Ok(Invariant::Long(long)) = Invariant::decode(datagram)
            // The source of a Version Negotiation packet is the client's choice (RFC 9000 §17.2.1).
            && long.version != VersionNumber::NEGOTIATION
            && let Some(id) = ConnectionId::new(long.source)
        {
            entry.offered = id;
        }
        let exceeds = entry.from_server > entry.from_client.saturating_mul(AMPLIFICATION);
        self.touch(now, index, exceeds);
    }

    /// Ends flows that have been inactive for too long, and passes their values to `ended`.
    pub fn expire(&mut self, now: Time, mut ended: impl FnMut(T)) {
        for is_proven in [false, true] {
            let idle = if is_proven {
                self.limits.idle
            } else {
                self.limits.unproven_idle
            };
            while let Some(at) = self.list(is_proven).oldest
                && self.inactive(at, now) >= idle
                && let Some(value) = self.close(at)
            {
                ended(value);
            }
        }
    }

    fn inactive(&self, at: u32, now: Time) -> Duration {
        let entry = self.entries.get(at as usize);
        entry.map_or(Duration::ZERO, |entry| now.since(entry.last_active))
    }

    fn displaceable(&self, now: Time) -> Link {
        let proven = self.list(true).oldest;
        let proven = proven.filter(|at| self.inactive(*at, now) >= DISPLACED_AFTER);
        self.list(false).oldest.or(proven)
    }

    fn bucket(&self, key: &FlowKey) -> usize {
        let mut bytes = [0; 34];
        let (of_client, rest) = bytes.split_at_mut(16);
        let (of_port, of_local) = rest.split_at_mut(2);
        let octets = |ip: IpAddr| match ip {
            IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
            IpAddr::V6(v6) => v6.octets(),
        };
        of_client.copy_from_slice(&octets(key.client.ip()));
        of_port.copy_from_slice(&key.client.port().to_be_bytes());
        if let Some(local) = key.local {
            of_local.copy_from_slice(&octets(local));
        }
        SipHash::from_bytes(&self.key).hash_2_4(&bytes) as usize & (self.buckets.len() - 1)
    }

    fn list(&self, is_proven: bool) -> List {
        self.lists[usize::from(is_proven)]
    }

    fn touch(&mut self, now: Time, index: FlowIndex, proves: bool) {
        let at = index as u32;
        self.unlink(at);
        if let Some(entry) = self.entries.get_mut(index) {
            entry.last_active = now;
            entry.is_proven |= proves;
        }
        self.append(at);
    }

    /// Makes an entry the newest of its list.
    fn append(&mut self, at: u32) {
        let Some(entry) = self.entries.get_mut(at as usize) else {
            return;
        };
        let list = &mut self.lists[usize::from(entry.is_proven)];
        entry.older = list.newest;
        entry.newer = None;
        list.len += 1;
        let older = list.newest.replace(at);
        match older.and_then(|older| self.entries.get_mut(older as usize)) {
            Some(older) => older.newer = Some(at),
            None => list.oldest = Some(at),
        }
    }

    fn unlink(&mut self, at: u32) {
        let Some(entry) = self.entries.get(at as usize) else {
            return;
        };
        let (older, newer, which) = (entry.older, entry.newer, usize::from(entry.is_proven));
        self.lists[which].len -= 1;
        match older.and_then(|older| self.entries.get_mut(older as usize)) {
            Some(older) => older.newer = newer,
            None => self.lists[which].oldest = newer,
        }
        match newer.and_then(|newer| self.entries.get_mut(newer as usize)) {
            Some(newer) => newer.older = older,
            None => self.lists[which].newest = older,
        }
    }

    /// Ends a flow, and returns its value.
    fn close(&mut self, at: u32) -> Option<T> {
        let entry = self.entries.get(at as usize)?;
        let (key, next) = (entry.key, entry.bucket_next);
        let bucket = self.bucket(&key);
        let first = self.buckets.get_mut(bucket)?;
        if *first == Some(at) {
            *first = next;
        } else {
            let mut before = *first;
            while let Some(entry) = before.and_then(|at| self.entries.get_mut(at as usize)) {
                if entry.bucket_next == Some(at) {
                    entry.bucket_next = next;
                    break;
                }
                before = entry.bucket_next;
            }
        }
        self.unlink(at);
        let free = self.free;
        let entry = self.entries.get_mut(at as usize)?;
        entry.bucket_next = free;
        entry.key.client = NO_ADDRESS;
        self.free = Some(at);
        self.open -= 1;
        entry.value.take()
    }
}
