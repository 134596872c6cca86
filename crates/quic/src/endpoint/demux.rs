//! Which connection a datagram belongs to (RFC 9000 §5.2).
//!
//! Owns the four lookup tables.
//!
//! | by | for |
//! |---|---|
//! | a connection ID of ours | all but a client's first packets |
//! | a client's address and the connection ID that it chose | its Initial and 0-RTT packets |
//! | addresses | clients that use an empty connection ID |
//! | the peer's address and a reset token | stateless resets (§10.3.1) |
//!
//! # Decisions
//!
//! - *The ID that a client chose counts together with its address*, so that clients that choose the same ID do not
//!   collide. It identifies the connection as long as that exists: a late Initial packet must not open another.
//! - *Reset tokens are found by a keyed hash* and compared in constant time, so that the time reveals nothing. The
//!   address is part of the key: no other host can reset a connection, or replace a token.

use core::{cell::Cell, net::SocketAddr};

use lastbyte_wire::{ConnectionId, StatelessResetToken};

use lastbyte_units::SipHash;

use super::{
    handle::Handle,
    table::{Key, Table},
};
use crate::connection::{Connection, NetworkPath};

/// An address in bytes: 16 of the IP address, 2 of the port.
pub(super) type AddressBytes = [u8; 18];

/// IPv4 addresses are mapped to IPv6, so that the address family of the socket does not matter.
pub(super) fn address_bytes(address: SocketAddr) -> AddressBytes {
    let ip = match address.ip() {
        core::net::IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        core::net::IpAddr::V6(ip) => ip,
    };
    let mut bytes = [0; 18];
    for (byte, of_address) in bytes
        .iter_mut()
        .zip(ip.octets().into_iter().chain(address.port().to_be_bytes()))
    {
        *byte = of_address;
    }
    bytes
}

/// The lookup key of a client's first packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InitialRoute {
    pub(super) remote: AddressBytes,
    pub(super) destination: ConnectionId,
}

/// A path without our own IP address, which is not always known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PathKey {
    remote: AddressBytes,
    local_port: u16,
}

impl PathKey {
    fn of(path: &NetworkPath) -> Self {
        Self {
            remote: address_bytes(path.remote),
            local_port: path.local.port(),
        }
    }
}

/// A reset token with the addresses that may use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ResetKey {
    remote: AddressBytes,
    token: StatelessResetToken,
}

impl Key for ConnectionId {
    fn hash(&self, hash: &SipHash) -> u64 {
        hash.hash(self.as_slice())
    }
}

impl Key for InitialRoute {
    fn hash(&self, hash: &SipHash) -> u64 {
        hash_of_two(hash, &self.remote, self.destination.as_slice())
    }
}

impl Key for PathKey {
    fn hash(&self, hash: &SipHash) -> u64 {
        hash_of_two(hash, &self.remote, &self.local_port.to_be_bytes())
    }
}

impl Key for ResetKey {
    fn hash(&self, hash: &SipHash) -> u64 {
        hash_of_two(hash, &self.remote, self.token.as_bytes())
    }
}

fn hash_of_two(hash: &SipHash, remote: &AddressBytes, other: &[u8]) -> u64 {
    let mut bytes = [0; 18 + ConnectionId::MAX_LEN];
    let mut len = 0;
    for (byte, part) in bytes.iter_mut().zip(remote.iter().chain(other)) {
        *byte = *part;
        len += 1;
    }
    hash.hash(bytes.get(..len).unwrap_or_default())
}

/// The lookup tables of all connections.
pub(super) struct Demux {
    ids: Table<ConnectionId, Handle>,
    initials: Table<InitialRoute, Handle>,
    paths: Table<PathKey, Handle>,
    resets: Table<ResetKey, Handle>,
    /// The last ID found: datagrams of a connection often follow each other. Empty once an ID was added or removed.
    last: Cell<Option<(ConnectionId, Handle)>>,
    /// Scratch space for the next state of a connection's entries.
    scratch: Vec<ConnectionId>,
}

/// The entries of one connection.
#[derive(Debug, Default)]
pub(super) struct Routes {
    ids: Vec<ConnectionId>,
    pub(super) initial: Option<InitialRoute>,
    paths: Vec<PathKey>,
    resets: Vec<ResetKey>,
    /// The connection's IDs and path when this was written.
    known: Option<(u64, NetworkPath)>,
}

impl Demux {
    pub(super) fn new(keys: [[u64; 2]; 4]) -> Self {
        let [ids, initials, paths, resets] = keys.map(SipHash::new);
        Self {
            ids: Table::new(ids),
            initials: Table::new(initials),
            paths: Table::new(paths),
            resets: Table::new(resets),
            last: Cell::new(None),
            scratch: Vec::new(),
        }
    }

    /// By an ID of ours.
    pub(super) fn by_id(&self, id: &[u8]) -> Option<Handle> {
        if id.is_empty() {
            return None;
        }
        if let Some((last, handle)) = self.last.get()
            && last.as_slice() == id
        {
            return Some(handle);
        }
        let id = ConnectionId::new(id)?;
        let handle = self.ids.get(&id)?;
        self.last.set(Some((id, handle)));
        Some(handle)
    }

    /// By the key of a client's first packets.
    pub(super) fn by_initial(&self, route: &InitialRoute) -> Option<Handle> {
        self.initials.get(route)
    }

    /// By addresses alone.
    pub(super) fn by_path(&self, path: &NetworkPath) -> Option<Handle> {
        if self.paths.is_empty() {
            return None;
        }
        self.paths.get(&PathKey::of(path))
    }

    /// By the reset token at a datagram's end.
    pub(super) fn by_reset_token(
        &self,
        path: &NetworkPath,
        token: StatelessResetToken,
    ) -> Option<Handle> {
        if self.resets.is_empty() {
            return None;
        }
        let remote = address_bytes(path.remote);
        self.resets.get(&ResetKey { remote, token })
    }

    /// Adds the key of a client's first packets.
    pub(super) fn open(&mut self, handle: Handle, routes: &mut Routes, route: InitialRoute) {
        if self.initials.insert(route, handle) {
            routes.initial = Some(route);
        }
    }

    /// Updates a connection's entries if its IDs or path have changed. An ID that another connection has stays with
    /// that one.
    #[inline]
    pub(super) fn sync(&mut self, handle: Handle, routes: &mut Routes, connection: &Connection) {
        // Called for each datagram sent, and nearly always without a change.
        let generation = connection.ids_generation();
        let is_as_before = routes
            .known
            .as_ref()
            .is_some_and(|(known, network)| *known == generation && connection.is_at(network));
        if !is_as_before {
            self.look(handle, routes, connection);
        }
    }

    fn look(&mut self, handle: Handle, routes: &mut Routes, connection: &Connection) {
        let (generation, network) = (connection.ids_generation(), connection.network());
        routes.known = Some((generation, network));
        self.sync_ids(handle, routes, connection.local_ids());
        if connection.local_ids().any(|id| id.is_empty()) {
            self.sync_path(handle, routes, &network);
        }
        let remote = address_bytes(network.remote);
        for key in routes.resets.drain(..) {
            self.resets.remove_if(&key, |other| *other == handle);
        }
        for token in connection.reset_tokens().take(RESETS_MAX) {
            let key = ResetKey { remote, token };
            if self.resets.insert(key, handle) {
                routes.resets.push(key);
            }
        }
    }

    fn sync_ids(
        &mut self,
        handle: Handle,
        routes: &mut Routes,
        ids: impl Iterator<Item = ConnectionId>,
    ) {
        self.last.set(None);
        self.scratch.clear();
        self.scratch
            .extend(ids.filter(|id| !id.is_empty()).take(IDS_MAX));
        let (ids, now) = (&mut self.ids, &self.scratch);
        routes.ids.retain(|id| {
            let stays = now.contains(id);
            if !stays {
                ids.remove_if(id, |other| *other == handle);
            }
            stays
        });
        for id in &self.scratch {
            if !routes.ids.contains(id) && self.ids.insert(*id, handle) {
                routes.ids.push(*id);
            }
        }
    }

    /// A connection without IDs that migrates is also found by its previous path for a while.
    fn sync_path(&mut self, handle: Handle, routes: &mut Routes, network: &NetworkPath) {
        let key = PathKey::of(network);
        if routes.paths.contains(&key) || !self.paths.insert(key, handle) {
            return;
        }
        if routes.paths.len() >= PATHS_MAX {
            let oldest = routes.paths.remove(0);
            self.paths.remove_if(&oldest, |other| *other == handle);
        }
        routes.paths.push(key);
    }

    /// Removes all entries of a connection.
    pub(super) fn remove(&mut self, handle: Handle, routes: Routes) {
        self.last.set(None);
        for id in routes.ids {
            self.ids.remove_if(&id, |other| *other == handle);
        }
        for key in routes.paths {
            self.paths.remove_if(&key, |other| *other == handle);
        }
        for key in routes.resets {
            self.resets.remove_if(&key, |other| *other == handle);
        }
        if let Some(route) = routes.initial {
            self.initials.remove_if(&route, |other| *other == handle);
        }
    }

    /// The number of entries in each table: IDs, first IDs of clients, paths, reset tokens.
    pub(super) const fn sizes(&self) -> [usize; 4] {
        [
            self.ids.len(),
            self.initials.len(),
            self.paths.len(),
            self.resets.len(),
        ]
    }
}

/// More IDs than a connection issues, including that of its preferred address.
const IDS_MAX: usize = 16;
/// More reset tokens than a connection stores.
const RESETS_MAX: usize = 16;
/// More paths than a connection uses at a time.
const PATHS_MAX: usize = 4;

#[cfg(test)]
mod tests {
    use super::{super::handle::Slab, *};

    /// RFC 9000 §5.1.2. The last ID found is remembered, but not longer than it belongs to the connection.
    #[test]
    fn rfc9000_5_1_2_an_id_that_was_found_and_then_retired_is_unknown() {
        let mut slab = Slab::new();
        let [first, second] = [slab.insert(()), slab.insert(())];
        let [one, two] = [[1; 8], [2; 8]].map(|id| ConnectionId::new(&id).expect("short"));
        let mut demux = Demux::new([[1, 2]; 4]);
        let mut routes = Routes::default();
        demux.sync_ids(first, &mut routes, [one, two].into_iter());
        assert_eq!(demux.by_id(one.as_slice()), Some(first));
        assert_eq!(demux.by_id(one.as_slice()), Some(first), "again");
        demux.sync_ids(first, &mut routes, [two].into_iter());
        assert_eq!(demux.by_id(one.as_slice()), None);
        assert_eq!(demux.by_id(two.as_slice()), Some(first));
        demux.remove(first, routes);
        assert_eq!(demux.by_id(two.as_slice()), None);
        let mut routes = Routes::default();
        demux.sync_ids(second, &mut routes, [two].into_iter());
        assert_eq!(demux.by_id(two.as_slice()), Some(second));
    }
}
