//! Which connection a datagram belongs to (RFC 9000 §5.2).
//!
//! Owns: the four things that lead to a connection. Never: knows what a connection is.
//!
//! | by | for |
//! |---|---|
//! | a connection ID of ours | all but a client's first packets |
//! | a client's address and the ID that it chose itself | its Initial and 0-RTT packets |
//! | addresses | clients that gave the peer an empty ID |
//! | the peer's address and a reset token | stateless resets (§10.3.1) |
//!
//! # Decisions
//!
//! - *The client's choice counts together with its address*, so that clients that choose badly, or like someone else, do
//!   not meet. It leads to the connection for as long as that lives: an Initial packet that comes late must not open
//!   another.
//! - *Reset tokens are found by a keyed hash* and compared in constant time, so that how long it takes tells nothing. The
//!   address is part of the key: no other host can end a connection, or replace a token.

use core::net::SocketAddr;

use lastbyte_wire::{ConnectionId, StatelessResetToken};

use super::{
    handle::Handle,
    siphash::SipHash,
    table::{Key, Table},
};
use crate::connection::{Connection, NetworkPath};

/// An address in bytes: 16 of the IP address, 2 of the port.
pub(super) type AddressBytes = [u8; 18];

/// IPv4 addresses are as IPv6 sees them, so that it does not matter what socket they came through.
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

/// What a client's first packets name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InitialRoute {
    pub(super) remote: AddressBytes,
    pub(super) destination: ConnectionId,
}

/// A path by what of it is always known: not our own IP address.
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

/// A reset token with who may use it.
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

/// All that leads to connections.
pub(super) struct Demux {
    ids: Table<ConnectionId, Handle>,
    initials: Table<InitialRoute, Handle>,
    paths: Table<PathKey, Handle>,
    resets: Table<ResetKey, Handle>,
    /// To build the next state of a connection's routes in.
    scratch: Vec<ConnectionId>,
}

/// What leads to one connection.
#[derive(Debug, Default)]
pub(super) struct Routes {
    ids: Vec<ConnectionId>,
    initial: Option<InitialRoute>,
    paths: Vec<PathKey>,
    resets: Vec<ResetKey>,
    /// What the connection's IDs and path were when this was written.
    known: Option<(u64, NetworkPath)>,
}

#[cfg(test)]
impl Routes {
    pub(super) const fn initial(&self) -> Option<InitialRoute> {
        self.initial
    }
}

impl Demux {
    pub(super) fn new(keys: [[u64; 2]; 4]) -> Self {
        let [ids, initials, paths, resets] = keys.map(SipHash::new);
        Self {
            ids: Table::new(ids),
            initials: Table::new(initials),
            paths: Table::new(paths),
            resets: Table::new(resets),
            scratch: Vec::new(),
        }
    }

    /// By an ID of ours.
    pub(super) fn by_id(&self, id: &[u8]) -> Option<Handle> {
        if id.is_empty() {
            return None;
        }
        self.ids.get(&ConnectionId::new(id)?)
    }

    /// By what a client's first packets name.
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

    /// A client's first packets lead here.
    pub(super) fn open(&mut self, handle: Handle, routes: &mut Routes, route: InitialRoute) {
        if self.initials.insert(route, handle) {
            routes.initial = Some(route);
        }
    }

    /// Looks at what the connection says leads to it, if that has changed. An ID that another connection has stays with
    /// that.
    #[inline]
    pub(super) fn sync(&mut self, handle: Handle, routes: &mut Routes, connection: &Connection) {
        // Asked for each datagram sent, and nearly always as it was.
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
        self.sync_ids(handle, routes, connection);
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

    fn sync_ids(&mut self, handle: Handle, routes: &mut Routes, connection: &Connection) {
        self.scratch.clear();
        self.scratch.extend(
            connection
                .local_ids()
                .filter(|id| !id.is_empty())
                .take(IDS_MAX),
        );
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

    /// A connection without IDs that moves is found by where it was too, for a while.
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

    /// Nothing leads there any more.
    pub(super) fn remove(&mut self, handle: Handle, routes: Routes) {
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

    /// How many of each there are: IDs, first IDs of clients, paths, reset tokens.
    pub(super) const fn sizes(&self) -> [usize; 4] {
        [
            self.ids.len(),
            self.initials.len(),
            self.paths.len(),
            self.resets.len(),
        ]
    }
}

/// More IDs than a connection issues, the one of its preferred address among them.
const IDS_MAX: usize = 16;
/// More reset tokens than a connection keeps.
const RESETS_MAX: usize = 16;
/// More paths than a connection uses at a time.
const PATHS_MAX: usize = 4;
