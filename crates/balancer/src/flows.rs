//! The client addresses in use.
//!
//! This module owns which addresses have a flow, their number, age and proof, and the rate of new ones. It takes the time
//! as an argument, and does not know what a flow holds: for the forwarder that is a socket.
//!
//! # Bounds
//!
//! At most [`FlowLimits::flows`] flows, [`FlowLimits::new_per_second`] new ones per second and a quarter more of clients that
//! moved, each for at most [`FlowLimits::idle`] after its server's last datagram. What clients send keeps no flow: a server
//! answers what belongs to a connection, and nothing else more than a few times a second. Memory for all flows is allocated
//! at the start; entries for each prefix with flows are added.
//!
//! # States
//!
//! | a flow is | from | until |
//! |---|---|---|
//! | unanswered | a packet that is no client's first one and comes from a new address | its server sends something |
//! | unproven | a client's first packet, or the server's answer | the client has proven its address |
//! | proven | the proof | its end |
//!
//! Whatever its state, a flow ends by [`Flows::expire`], or displaced in [`Flows::open`].
//!
//! # Who makes room
//!
//! Unanswered flows take a quarter of the table at most, and displace each other. In a full table a new flow displaces the first
//! that there is of:
//!
//! 1. an unproven flow, if these have more than a quarter of the table;
//! 2. a flow of the prefix that has the most proven flows, if it has more than [`KEPT`]; for a new flow that is proven, if it has
//!    at least two more than the prefix of the new flow;
//! 3. an unproven flow, or else an unanswered one;
//! 4. the oldest proven flow, if its server has been silent for [`DISPLACED_AFTER`] or longer.
//!
//! Otherwise it is refused. Of the flows in a state, those of the prefix that has most of them come first if it has more than
//! [`KEPT`], and of these the oldest, by the server's last datagram. So a prefix loses flows only while it has as many as any
//! other, and a quarter of the table is left to clients that arrive and have not proven their address yet. Prefixes are
//! [`AddressPrefix`]es.
//!
//! New flows per second are shared likewise. Of those that may arrive at once, half is left to clients with a token whose
//! prefix has fewer than [`KEPT`] proven flows, or at most half as many as the prefix that has most. Clients that moved have a
//! quarter besides, of which packets with unknown connection IDs leave half.
//!
//! # Decisions
//!
//! - *Flows are displaced, not refused as connections of a server are* (`FairShare` of `units`): a flow that is displaced ends no
//!   connection, and so one address may have all of the table while no other needs it. Prefixes with more than [`KEPT`] each lock
//!   out no other, however many there are, and those with two or more no client with a token.
//! - *Flows that are not proven count for a prefix as well*, but apart: an attacker that forges the address of another can displace
//!   flows of that prefix in the same state, and no proven ones.
//! - *Only a server's datagrams are activity*: a balancer cannot tell a client's packets from random bytes. Clients that
//!   are in use are answered: packets that elicit no acknowledgment keep no flow.
//!
//! Addresses are hashed with a key, so clients cannot choose ones that share a bucket.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use lastbyte_units::{AddressPrefix, SipHash, Time};
use lastbyte_wire::{
    ConnectionId,
    packet::{Invariant, VersionNumber},
};

use self::{
    holders::{HolderIndex, Holders},
    list::{Link, Linked, Links, List, Which},
    rate::{Rate, SECOND},
};

mod holders;
mod list;
mod rate;
#[cfg(test)]
mod tests;

/// Limits of a [`Flows`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowLimits {
    /// Maximum number of flows, 1 to 2^31. Default: 16,384.
    pub flows: usize,
    /// Maximum number of new flows per second, at least 1, and a quarter more of clients that moved. Twice as many may arrive
    /// at once. Default: 5000.
    pub new_per_second: u32,
    /// Time without datagrams from its server after which a proven flow ends. Default: 120 s (RFC 4787 §4.3).
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

/// A proven flow of a prefix with [`KEPT`] or fewer is displaced only if its server has been silent for this long.
pub const DISPLACED_AFTER: Duration = Duration::from_secs(10);
/// Proven flows that a prefix keeps, as long as their servers send something.
pub const KEPT: usize = 4;

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

/// The packet that opens a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// A client's first packet, with a token that validates its address. The flow is proven.
    Validated,
    /// A client's first packet.
    Initial,
    /// Another one, with a connection ID that a server issued: the client moved.
    Moved,
    /// Any other.
    Other,
}

/// Why a flow was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// [`FlowLimits::new_per_second`].
    Rate,
    /// All flows are proven and active, and no prefix has many.
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
    /// Entries by activity, for each state.
    lists: [List; 3],
    /// The same by prefix.
    holders: [Holders; 3],
    open: usize,
    rate: Rate,
    /// The rate of flows of clients that moved, besides.
    rate_moved: Rate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Unanswered,
    Unproven,
    Proven,
}

struct Entry<T> {
    key: FlowKey,
    value: Option<T>,
    /// When it was opened or proven, or when its server sent something last.
    last_active: Time,
    state: State,
    from_client: u64,
    from_server: u64,
    /// The source connection ID of the server's last packet with a long header.
    offered: ConnectionId,
    /// The hash of the connection ID of the client's last unroutable packet, and the server ID it was forwarded to.
    unroutable: Option<(u64, u64)>,
    bucket_next: Link,
    of_state: Links,
    of_holder: Links,
    /// In its state.
    holder: HolderIndex,
}

impl<T> Entry<T> {
    const fn new(key: FlowKey, now: Time, state: State) -> Self {
        Self {
            key,
            value: None,
            last_active: now,
            state,
            from_client: 0,
            from_server: 0,
            offered: ConnectionId::EMPTY,
            unroutable: None,
            bucket_next: None,
            of_state: Links::NONE,
            of_holder: Links::NONE,
            holder: 0,
        }
    }
}

impl<T> fmt::Debug for Flows<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flows")
            .field("limits", &self.limits)
            .field("open", &self.open)
            .finish_non_exhaustive()
    }
}

impl<T> Linked for Entry<T> {
    fn links(&mut self, which: Which) -> &mut Links {
        match which {
            Which::OfState => &mut self.of_state,
            Which::OfHolder => &mut self.of_holder,
        }
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
        let no_key = FlowKey {
            client: NO_ADDRESS,
            local: None,
        };
        let entries = (0..flows).map(|index| Entry {
            bucket_next: (index + 1 < flows).then_some(index as u32 + 1),
            ..Entry::new(no_key, Time::ZERO, State::Unproven)
        });
        let interval = SECOND / u64::from(limits.new_per_second.max(1));
        Self {
            limits,
            key,
            entries: entries.collect(),
            buckets: vec![None; flows.next_power_of_two()],
            free: Some(0),
            lists: [List::default(); 3],
            holders: Default::default(),
            open: 0,
            rate: Rate::new(interval),
            rate_moved: Rate::new(interval * 4),
        }
    }

    /// The number of flows.
    pub const fn len(&self) -> usize {
        self.open
    }

    /// Whether there are no flows.
    pub const fn is_empty(&self) -> bool {
        self.open == 0
    }

    /// The flow of these addresses.
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
    pub fn get(&self, index: FlowIndex) -> Option<(&FlowKey, &T)> {
        let entry = self.entries.get(index)?;
        entry.value.as_ref().map(|value| (&entry.key, value))
    }

    /// Whether the client has proven that it receives at its address.
    pub fn is_proven(&self, index: FlowIndex) -> bool {
        let entry = self.entries.get(index);
        entry.is_some_and(|entry| entry.state == State::Proven)
    }

    /// Whether a server has sent this connection ID to the client, which is not proven yet.
    pub fn is_offered(&self, index: FlowIndex, id: &[u8]) -> bool {
        let entry = self.entries.get(index);
        entry.is_some_and(|entry| !id.is_empty() && entry.offered.as_slice() == id)
    }

    /// Records that the client has proven that it receives at its address.
    pub fn set_proven(&mut self, now: Time, index: FlowIndex) {
        if !self.is_proven(index) {
            self.touch(now, index, State::Proven);
        }
    }

    /// Whether clients should prove their address first: [`Self::is_half_used`], flows that are not proven take a quarter of
    /// the table, or the table is full.
    pub fn is_under_load(&self, now: Time) -> bool {
        self.is_half_used(now)
            || self.list(State::Unproven).len >= self.quarter()
            || self.free.is_none()
    }

    /// Whether less than half of the new flows that may arrive at once is left.
    pub fn is_half_used(&self, now: Time) -> bool {
        !self.rate.has(now, SECOND)
    }

    /// The server ID to which the previous unroutable packet of this flow was forwarded, if it had the same connection
    /// ID.
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
    /// nothing. In that case one flow fewer may be open than before.
    pub fn open(
        &mut self,
        now: Time,
        key: FlowKey,
        opening: Opening,
        make: impl FnOnce(FlowIndex) -> Option<T>,
    ) -> Result<(FlowIndex, Option<T>), Refused> {
        let takes_place = self.free.is_none() || self.displaces_unanswered(opening);
        let displaced = if takes_place {
            Some(self.displaceable(now, &key, opening).ok_or(Refused::Full)?)
        } else {
            None
        };
        if !self.take_rate(now, &key, opening) {
            return Err(Refused::Rate);
        }
        let displaced = displaced.and_then(|at| self.close(at));
        let at = self.free.ok_or(Refused::Full)?;
        let value = make(at as usize).ok_or(Refused::Empty)?;
        let bucket = self.bucket(&key);
        let first = self.buckets.get(bucket).copied().flatten();
        let entry = self.entries.get_mut(at as usize).ok_or(Refused::Full)?;
        self.free = entry.bucket_next;
        let state = match opening {
            Opening::Validated => State::Proven,
            Opening::Initial => State::Unproven,
            Opening::Moved | Opening::Other => State::Unanswered,
        };
        *entry = Entry {
            value: Some(value),
            bucket_next: first,
            ..Entry::new(key, now, state)
        };
        if let Some(place) = self.buckets.get_mut(bucket) {
            *place = Some(at);
        }
        self.open += 1;
        self.link(at);
        Ok((at as usize, displaced))
    }

    /// Counts a new flow for the rates; `false` if it exceeds them.
    fn take_rate(&mut self, now: Time, key: &FlowKey, opening: Opening) -> bool {
        let (rate, rate_moved) = (&mut self.rate, &mut self.rate_moved);
        match opening {
            Opening::Validated => {
                let proven = &self.holders[State::Proven as usize];
                let count = proven.count(AddressPrefix::of(key.client.ip()));
                let most = proven.largest().map_or(0, |(_, count)| count);
                let is_small = count < KEPT || count <= most / 2;
                let kept = if is_small { 0 } else { SECOND };
                rate.take(now, kept)
            }
            Opening::Initial => rate.take(now, 0),
            // Of what others leave, the last quarter: so they do not compete with first packets.
            Opening::Moved => rate_moved.take(now, 0) || rate.take(now, SECOND * 3 / 2),
            Opening::Other => rate_moved.take(now, SECOND),
        }
    }

    /// Records datagrams from the client: their bytes, and the destination connection ID of one. For a short header,
    /// `destination` may have further bytes. This is no activity, but may prove the client's address.
    pub fn on_client(&mut self, now: Time, index: FlowIndex, bytes: usize, destination: &[u8]) {
        let Some(entry) = self.entries.get_mut(index) else {
            return;
        };
        entry.from_client = entry.from_client.saturating_add(bytes as u64);
        if !entry.offered.is_empty() && destination.starts_with(entry.offered.as_slice()) {
            self.set_proven(now, index);
        }
    }

    /// Records a datagram from the server, or several of which `datagram` is the first.
    pub fn on_server(&mut self, now: Time, index: FlowIndex, bytes: usize, datagram: &[u8]) {
        let Some(entry) = self.entries.get_mut(index) else {
            return;
        };
        entry.from_server = entry.from_server.saturating_add(bytes as u64);
        let is_proven = entry.state == State::Proven;
        if !is_proven
            && let Ok(Invariant::Long(long)) = Invariant::decode(datagram)
            // The source of a Version Negotiation packet is the client's choice (RFC 9000 §17.2.1).
            && long.version != VersionNumber::NEGOTIATION
            && let Some(id) = ConnectionId::new(long.source)
        {
            entry.offered = id;
        }
        let exceeds = entry.from_server > entry.from_client.saturating_mul(AMPLIFICATION);
        let state = if is_proven || exceeds {
            State::Proven
        } else {
            State::Unproven
        };
        self.touch(now, index, state);
    }

    /// Ends flows that have been inactive for too long, and passes their values to `ended`.
    pub fn expire(&mut self, now: Time, mut ended: impl FnMut(T)) {
        for state in [State::Unanswered, State::Unproven, State::Proven] {
            let idle = if state == State::Proven {
                self.limits.idle
            } else {
                self.limits.unproven_idle
            };
            while let Some(at) = self.list(state).oldest
                && self.inactive(at, now) >= idle
                && let Some(value) = self.close(at)
            {
                ended(value);
            }
        }
    }

    /// The flows that clients may have without proof of their address.
    const fn quarter(&self) -> usize {
        self.entries.len().div_ceil(4)
    }

    fn displaces_unanswered(&self, opening: Opening) -> bool {
        matches!(opening, Opening::Moved | Opening::Other)
            && self.list(State::Unanswered).len >= self.quarter()
    }

    /// The flow that makes room for a new one.
    fn displaceable(&self, now: Time, key: &FlowKey, opening: Opening) -> Link {
        if self.displaces_unanswered(opening) {
            return self.first(State::Unanswered);
        }
        let is_one_more = usize::from(opening == Opening::Initial);
        if self.list(State::Unproven).len + is_one_more > self.quarter() {
            return self.first(State::Unproven);
        }
        let is_inactive = |at: &u32| self.inactive(*at, now) >= DISPLACED_AFTER;
        self.first_of(State::Proven, self.kept_beside(key, opening))
            .or_else(|| self.first(State::Unproven))
            .or_else(|| self.first(State::Unanswered))
            .or_else(|| self.list(State::Proven).oldest.filter(is_inactive))
    }

    /// The oldest flow in a state of the prefix that has most of them, if it has more than [`KEPT`].
    fn first_of_many(&self, state: State) -> Link {
        self.first_of(state, KEPT)
    }

    /// The same with another number than [`KEPT`].
    fn first_of(&self, state: State, kept: usize) -> Link {
        let (at, count) = self.holders[state as usize].largest()?;
        (count > kept).then_some(at)
    }

    /// Proven flows that a prefix keeps beside a new one: a client that has proven its address takes its share from any prefix
    /// with more than it has itself.
    fn kept_beside(&self, key: &FlowKey, opening: Opening) -> usize {
        if opening != Opening::Validated {
            return KEPT;
        }
        let own = self.holders[State::Proven as usize].count(AddressPrefix::of(key.client.ip()));
        KEPT.min(own + 1)
    }

    /// The flow in a state that makes room before all others.
    fn first(&self, state: State) -> Link {
        let of_many = self.first_of_many(state);
        of_many.or(self.list(state).oldest)
    }

    fn inactive(&self, at: u32, now: Time) -> Duration {
        let entry = self.entries.get(at as usize);
        entry.map_or(Duration::ZERO, |entry| now.since(entry.last_active))
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

    const fn list(&self, state: State) -> List {
        self.lists[state as usize]
    }

    /// Makes a flow the most active, in this state.
    fn touch(&mut self, now: Time, index: FlowIndex, state: State) {
        let at = index as u32;
        let Some(entry) = self.entries.get_mut(index) else {
            return;
        };
        entry.last_active = now;
        if entry.state == state {
            let holder = entry.holder;
            let list = &mut self.lists[state as usize];
            list.remove(&mut self.entries, Which::OfState, at);
            list.append(&mut self.entries, Which::OfState, at);
            let holders = &mut self.holders[state as usize];
            holders.refresh(holder, &mut self.entries, at);
            return;
        }
        self.unlink(at);
        if let Some(entry) = self.entries.get_mut(index) {
            entry.state = state;
        }
        self.link(at);
    }

    /// Adds an entry to the lists of its state and prefix.
    fn link(&mut self, at: u32) {
        let Some(entry) = self.entries.get(at as usize) else {
            return;
        };
        let (state, client) = (entry.state, entry.key.client);
        let list = &mut self.lists[state as usize];
        list.append(&mut self.entries, Which::OfState, at);
        let prefix = AddressPrefix::of(client.ip());
        let holders = &mut self.holders[state as usize];
        let holder = holders.add(prefix, &mut self.entries, at);
        if let Some(entry) = self.entries.get_mut(at as usize) {
            entry.holder = holder;
        }
    }

    fn unlink(&mut self, at: u32) {
        let Some(entry) = self.entries.get(at as usize) else {
            return;
        };
        let (state, holder) = (entry.state, entry.holder);
        let list = &mut self.lists[state as usize];
        list.remove(&mut self.entries, Which::OfState, at);
        let holders = &mut self.holders[state as usize];
        holders.remove(holder, &mut self.entries, at);
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
