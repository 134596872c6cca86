//! The paths of a connection: the one in use and a few others (RFC 9000 §8.2, §9).
//!
//! Owns the known paths, the challenges on each, the connection ID that each uses, the datagram size, and the
//! state saved of a previous path. It neither decides whether the connection may migrate nor writes packets;
//! `migration.rs` and `transmit.rs` do.

use core::time::Duration;

use lastbyte_congestion::{Rtt, Time};
use lastbyte_wire::{ConnectionId, Side};

use super::transmit::{DATAGRAM_MIN, PATH_DATAGRAM_MIN};
use crate::{
    NetworkPath,
    cid::PeerIds,
    path::{
        Amplification, ChallengeData, FailedPaths, MtuConfig, MtuDiscovery, PathAnswer,
        PathValidation, ValidationState,
    },
    recovery::PathControl,
};

/// A path, in use or not.
#[derive(Debug)]
pub(super) struct Path {
    pub(super) network: NetworkPath,
    pub(super) amplification: Amplification,
    pub(super) validation: PathValidation,
    /// The sequence number of the peer's connection ID on this path; `None`: the same as on the path in use.
    pub(super) cid: Option<u64>,
    /// Saved when the connection left the path, for a return (§9.4).
    saved: Option<Box<(PathControl, MtuDiscovery)>>,
    /// Which of our connection IDs the peer used here when the connection left the path.
    peer_used: Option<ConnectionId>,
    /// Whether the connection migrates here once the path is validated.
    is_wanted: bool,
}

impl Path {
    const fn new(network: NetworkPath, amplification: Amplification) -> Self {
        Self {
            network,
            amplification,
            validation: PathValidation::new(),
            cid: None,
            saved: None,
            peer_used: None,
            is_wanted: false,
        }
    }

    /// Whether a datagram for a challenge may be sent there (RFC 9000 §8.1).
    fn can_be_challenged(&self) -> bool {
        self.amplification.budget() >= PATH_DATAGRAM_MIN as u64
    }

    /// Whether nothing is pending on the path: no response and no migration.
    fn is_idle(&self) -> bool {
        self.validation.state() != ValidationState::Validating && !self.is_wanted
    }
}

/// The position of a path in [`Paths`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathRef {
    /// The path in use.
    Current,
    /// Another known path, by its index.
    Other(usize),
    /// A path that is not known yet.
    New,
}

/// Why a packet's path is not registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnknownPath {
    /// There are or were too many paths.
    TooMany,
    /// The peer used a new connection ID there but has issued none to reply to.
    NoConnectionId,
}

/// The effect of a `PATH_RESPONSE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Response {
    /// It matches no challenge.
    Unknown,
    /// The peer is at that address; a full-size datagram must follow.
    Address,
    /// The path is validated.
    Path(PathRef),
}

/// A path that was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RemovedPath {
    pub(super) network: NetworkPath,
    /// Whether the connection was to migrate there.
    pub(super) was_wanted: bool,
}

/// The paths of a connection.
#[derive(Debug)]
pub(super) struct Paths {
    side: Side,
    current: Path,
    others: Vec<Path>,
    failed: FailedPaths,
    /// Whether a client has yet to try the server's preferred address.
    wants_preferred_address: bool,
    /// Which of our connection IDs the peer uses on the path in use.
    peer_uses: ConnectionId,
    mtu_config: MtuConfig,
    /// MTU discovery of the path in use.
    mtu: MtuDiscovery,
    /// The datagram size last returned by [`Paths::take_new_size`].
    size_taken: u16,
}

impl Paths {
    /// A single path, on which the peer sends to `local_id`.
    pub(super) fn new(
        now: Time,
        side: Side,
        network: NetworkPath,
        amplification: Amplification,
        local_id: ConnectionId,
        mtu_config: MtuConfig,
    ) -> Self {
        let mtu = MtuDiscovery::new(mtu_config);
        Self {
            side,
            current: Path::new(network, amplification),
            others: Vec::new(),
            failed: FailedPaths::new(now),
            wants_preferred_address: false,
            peer_uses: local_id,
            mtu_config,
            size_taken: mtu.current(),
            mtu,
        }
    }

    // ---- queries --------------------------------------------------------------------------------------------------

    /// The path in use.
    pub(super) const fn current(&self) -> &Path {
        &self.current
    }

    /// The path in use, mutable.
    pub(super) const fn current_mut(&mut self) -> &mut Path {
        &mut self.current
    }

    /// Number of other paths.
    pub(super) fn others_len(&self) -> usize {
        self.others.len()
    }

    /// Whether no other path is accepted.
    pub(super) fn are_full(&self) -> bool {
        self.others.len() >= OTHERS_MAX
    }

    /// A known path.
    pub(super) fn get(&self, path: PathRef) -> Option<&Path> {
        match path {
            PathRef::Current => Some(&self.current),
            PathRef::Other(index) => self.others.get(index),
            PathRef::New => None,
        }
    }

    /// A known path, mutable.
    pub(super) fn get_mut(&mut self, path: PathRef) -> Option<&mut Path> {
        match path {
            PathRef::Current => Some(&mut self.current),
            PathRef::Other(index) => self.others.get_mut(index),
            PathRef::New => None,
        }
    }

    /// Looks up the path of a datagram; `None` if datagrams from there are not accepted.
    pub(super) fn locate(&self, network: &NetworkPath, is_confirmed: bool) -> Option<PathRef> {
        if self.current.network.is_same(network) {
            return Some(PathRef::Current);
        }
        let known = self
            .others
            .iter()
            .position(|path| path.network.is_same(network));
        match (known, self.side) {
            (Some(index), _) => Some(PathRef::Other(index)),
            // §9: a client drops datagrams from other addresses; which of its own addresses received them does not
            // matter.
            (None, Side::Client) => {
                (self.current.network.remote == network.remote).then_some(PathRef::Current)
            }
            // §9: not before the handshake is confirmed.
            (None, Side::Server) => is_confirmed.then_some(PathRef::New),
        }
    }

    /// When [`Paths::expire_other`], [`Paths::expire_current`] or a challenge is due.
    pub(super) fn deadline(&self) -> Option<Time> {
        let deadline = |path: &Path| path.validation.deadline(path.can_be_challenged());
        let others = self.others.iter().map(deadline);
        others.fold(deadline(&self.current), Time::earlier)
    }

    // ---- the size of datagrams ------------------------------------------------------------------------------------

    /// The datagram size on the path in use, in bytes of UDP payload.
    pub(super) const fn datagram_size(&self) -> u16 {
        self.mtu.current()
    }

    /// MTU discovery on the path in use.
    pub(super) const fn mtu_mut(&mut self) -> &mut MtuDiscovery {
        &mut self.mtu
    }

    /// The datagram size that every path carries.
    pub(super) const fn safe_size(&self) -> u16 {
        self.mtu.safe()
    }

    /// The datagram size, if it changed since the last call.
    #[inline]
    pub(super) fn take_new_size(&mut self) -> Option<u16> {
        let size = self.datagram_size();
        (size != std::mem::replace(&mut self.size_taken, size)).then_some(size)
    }

    /// Whether a server must receive more from the client before it may send a datagram of any kind (RFC 9000 §8.1).
    pub(super) fn is_amplification_limited(&self) -> bool {
        self.budget() < DATAGRAM_MIN
    }

    /// Bytes that a server may send before it receives more from the client (RFC 9000 §8.1).
    pub(super) fn budget(&self) -> usize {
        usize::try_from(self.current.amplification.budget()).unwrap_or(usize::MAX)
    }

    // ---- receiving -------------------------------------------------------------------------------------------------

    /// Counts bytes received on a path, whatever they contain (RFC 9000 §8.1). Bytes of a path that is not known yet
    /// are credited by [`Paths::register`].
    pub(super) fn credit(&mut self, path: PathRef, bytes: u64) {
        if let Some(path) = self.get_mut(path) {
            path.amplification.on_datagram_received(bytes);
        }
    }

    /// Notes the connection ID to which the newest packet on the path in use was sent.
    pub(super) fn on_newest_packet(&mut self, destination: &[u8]) {
        if self.peer_uses.as_slice() != destination
            && let Some(id) = ConnectionId::new(destination)
        {
            self.peer_uses = id;
        }
    }

    /// Registers the path of an opened packet from a new address.
    pub(super) fn register(
        &mut self,
        now: Time,
        network: NetworkPath,
        bytes: u64,
        destination: &[u8],
        peer_ids: &mut PeerIds,
    ) -> Result<(), UnknownPath> {
        if self.failed.are_too_many(now) {
            return Err(UnknownPath::TooMany);
        }
        if self.are_full() {
            let idle = self.others.iter().position(Path::is_idle);
            let spare = idle.or_else(|| self.oldest_left());
            self.remove(spare.ok_or(UnknownPath::TooMany)?, peer_ids);
        }
        let path_cid = if destination == self.peer_uses.as_slice() || destination.is_empty() {
            None // The same ID from another address: a NAT rebinding (§9.5).
        } else {
            Some(peer_ids.reserve().ok_or(UnknownPath::NoConnectionId)?)
        };
        let mut path = Path::new(network, Amplification::limited());
        path.amplification.on_datagram_received(bytes);
        path.cid = path_cid;
        self.others.push(path);
        Ok(())
    }

    /// The validated path that was left first, if another one remains to return to (RFC 9000 §9.3.2): behind a NAT that
    /// rebinds often, all of them await responses that do not come.
    fn oldest_left(&self) -> Option<usize> {
        let others = self.others.iter().enumerate();
        let left = others.filter(|(_, path)| path.amplification.is_validated() && !path.is_wanted);
        let oldest = left
            .clone()
            .min_by_key(|(_, path)| path.validation.expires_at())?;
        (left.count() > 1).then_some(oldest.0)
    }

    /// Handles a `PATH_RESPONSE`, which may arrive on any path (RFC 9000 §8.2.3).
    pub(super) fn on_response(
        &mut self,
        now: Time,
        data: ChallengeData,
        rtt: &Rtt,
        max_ack_delay: Duration,
    ) -> Response {
        let paths = [&mut self.current].into_iter().chain(&mut self.others);
        for (index, path) in paths.enumerate() {
            match path.validation.on_response(&data) {
                PathAnswer::Unknown => {}
                // The peer is reachable, so a full-size datagram may be sent now, and must get through (§8.2.1).
                PathAnswer::Address => {
                    path.amplification.validate();
                    path.validation.start(now, rtt, max_ack_delay);
                    return Response::Address;
                }
                PathAnswer::Path => {
                    path.amplification.validate();
                    let other = index.checked_sub(1);
                    return Response::Path(other.map_or(PathRef::Current, PathRef::Other));
                }
            }
        }
        Response::Unknown
    }

    // ---- migration -------------------------------------------------------------------------------------------------

    /// A client validates a path with the peer's connection ID of this sequence number, and migrates once it responds.
    pub(super) fn try_path(
        &mut self,
        now: Time,
        network: NetworkPath,
        path_cid: u64,
        rtt: &Rtt,
        max_ack_delay: Duration,
    ) {
        let mut path = Path::new(network, Amplification::unlimited());
        path.cid = Some(path_cid);
        path.is_wanted = true;
        path.validation.start(now, rtt, max_ack_delay);
        self.others.push(path);
    }

    /// A client's own address changed: adds the new path, to be promoted at once. Returns its index.
    pub(super) fn rebind(&mut self, network: NetworkPath, path_cid: Option<u64>) -> usize {
        let mut path = Path::new(network, Amplification::unlimited());
        path.cid = path_cid;
        self.others.push(path);
        self.others.len() - 1
    }

    /// Whether a client has yet to try the server's preferred address.
    pub(super) const fn wants_preferred_address(&self) -> bool {
        self.wants_preferred_address
    }

    /// Sets whether a client has yet to try the server's preferred address.
    pub(super) const fn set_wants_preferred_address(&mut self, wants: bool) {
        self.wants_preferred_address = wants;
    }

    /// Puts another path into use. If more than its port differs, the caller replaces congestion control, and passes
    /// that of the previous path to [`Paths::save`] (§9.4).
    ///
    /// A server also replaces it if the client changed its connection ID with the port: a NAT that rebinds does not,
    /// a client that migrates does (§9.5). Behind a load balancer that forwards from its own address, the port is all
    /// that a server sees of another network.
    pub(super) fn promote(
        &mut self,
        index: usize,
        max_udp_payload_size: u64,
        peer_ids: &mut PeerIds,
    ) -> Option<Promotion> {
        let left = self.others.get_mut(index)?;
        left.is_wanted = false;
        let is_deliberate = self.side == Side::Server && left.cid.is_some();
        let id_left = left.cid.map(|sequence| peer_ids.exchange(sequence));
        std::mem::swap(&mut self.current, left);
        self.current.cid = None;
        left.cid = id_left;
        // §9.5: after a return to this path, the peer's ID for the other path differs from the one it uses here.
        left.peer_used = Some(self.peer_uses);
        self.peer_uses = self.current.peer_used.take().unwrap_or(self.peer_uses);
        let network = self.current.network;
        let is_rebinding = !is_deliberate
            && network.is_same_but_for_port(&left.network)
            && network.local.ip() == left.network.local.ip();
        let (saved, mtu) = match self.current.saved.take() {
            Some(saved) => {
                let (control, mtu) = *saved;
                (Some(control), mtu)
            }
            None if is_rebinding => {
                return Some(Promotion {
                    network,
                    change: None,
                });
            }
            None => {
                let mut mtu = MtuDiscovery::new(self.mtu_config);
                mtu.start(max_udp_payload_size);
                (None, mtu)
            }
        };
        let mtu_left = std::mem::replace(&mut self.mtu, mtu);
        Some(Promotion {
            network,
            change: Some(ControlChange { saved, mtu_left }),
        })
    }

    /// Saves the state of the path that [`Paths::promote`] replaced, for a return.
    pub(super) fn save(&mut self, index: usize, control: PathControl, mtu: MtuDiscovery) {
        if let Some(path) = self.others.get_mut(index) {
            path.saved = Some(Box::new((control, mtu)));
        }
    }

    /// Validates both paths after a migration by either side (§9.3.3). A client forgets its previous path.
    pub(super) fn challenge_after_move(
        &mut self,
        now: Time,
        index: usize,
        rtt: &Rtt,
        max_ack_delay: Duration,
        peer_ids: &mut PeerIds,
    ) {
        if self.current.validation.state() == ValidationState::Idle {
            self.current.validation.start(now, rtt, max_ack_delay);
        }
        if self.side == Side::Client {
            self.remove(index, peer_ids);
            return;
        }
        if let Some(left) = self.others.get_mut(index)
            && left.amplification.is_validated()
            && left.validation.state() != ValidationState::Validating
        {
            left.validation.start(now, rtt, max_ack_delay);
        }
    }

    /// Whether another path is validated and the connection is to migrate there. A validated path without a pending
    /// migration is removed if the path in use is validated too.
    pub(super) fn is_to_move(&mut self, index: usize, peer_ids: &mut PeerIds) -> bool {
        let is_wanted = self.others.get(index).is_some_and(|path| path.is_wanted);
        if !is_wanted && self.current.amplification.is_validated() {
            self.remove(index, peer_ids);
        }
        is_wanted
    }

    // ---- removal of paths -----------------------------------------------------------------------------------------

    /// Removes another path whose validation timed out (RFC 9000 §8.2.4); call until it returns `None`.
    pub(super) fn expire_other(
        &mut self,
        now: Time,
        peer_ids: &mut PeerIds,
    ) -> Option<RemovedPath> {
        let mut others = self.others.iter_mut();
        let index = others.position(|path| path.validation.on_timeout(now))?;
        self.failed.on_failed(now);
        self.remove(index, peer_ids)
    }

    /// Whether the validation of the path in use timed out. Then a server returns to the last validated address of its
    /// peer (§9.3.2): returns the index of that path. Without one, the path is challenged again, within three times the
    /// bytes received from there (§8.2.4); the idle timeout ends a connection whose peer stays silent.
    pub(super) fn expire_current(
        &mut self,
        now: Time,
        rtt: &Rtt,
        max_ack_delay: Duration,
    ) -> Option<usize> {
        if !self.current.validation.on_timeout(now) {
            return None;
        }
        let mut others = self.others.iter();
        let validated = others
            .position(|path| path.amplification.is_validated())
            .filter(|_| self.side == Side::Server);
        if validated.is_some() {
            self.failed.on_failed(now);
        } else {
            self.current.validation.start(now, rtt, max_ack_delay);
        }
        validated
    }

    /// Removes the other paths on which nothing is pending.
    pub(super) fn remove_idle(&mut self, peer_ids: &mut PeerIds) {
        while let Some(index) = self.others.iter().position(Path::is_idle) {
            self.remove(index, peer_ids);
        }
    }

    /// Removes the other paths with these addresses.
    pub(super) fn remove_network(&mut self, network: &NetworkPath, peer_ids: &mut PeerIds) {
        let has_it = |path: &Path| path.network == *network;
        while let Some(index) = self.others.iter().position(has_it) {
            self.remove(index, peer_ids);
        }
    }

    /// Removes a path whose connection ID the peer has retired; call until it returns `None`. Nothing can be sent there
    /// (RFC 9000 §5.1.2), and its pending challenge would stay due forever.
    pub(super) fn remove_without_id(&mut self, peer_ids: &mut PeerIds) -> Option<RemovedPath> {
        let index = self.others.iter().position(|path| {
            path.cid
                .is_some_and(|sequence| peer_ids.reserved(sequence).is_none())
        })?;
        self.remove(index, peer_ids)
    }

    fn remove(&mut self, index: usize, peer_ids: &mut PeerIds) -> Option<RemovedPath> {
        if index >= self.others.len() {
            return None;
        }
        let path = self.others.swap_remove(index);
        if let Some(sequence) = path.cid {
            // If more retirements are outstanding than permitted, this ID stays unused.
            let _ = peer_ids.release(sequence);
        }
        Some(RemovedPath {
            network: path.network,
            was_wanted: path.is_wanted,
        })
    }
}

/// What changed with the path in use.
#[derive(Debug)]
pub(super) struct Promotion {
    /// The path in use now.
    pub(super) network: NetworkPath,
    /// `None` if congestion control and RTT estimate stay: at most the port differs, and a server's client did not
    /// change its connection ID.
    pub(super) change: Option<ControlChange>,
}

/// A change of congestion control.
#[derive(Debug)]
pub(super) struct ControlChange {
    /// The state saved when the path was last in use; `None` if nothing is known of it.
    pub(super) saved: Option<PathControl>,
    /// MTU discovery of the previous path.
    pub(super) mtu_left: MtuDiscovery,
}

/// Maximum number of paths besides the one in use.
const OTHERS_MAX: usize = 3;

#[cfg(test)]
mod tests;
