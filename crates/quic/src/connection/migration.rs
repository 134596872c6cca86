//! Paths, and moving between them (RFC 9000 §8.2, §9).
//!
//! One path is in use: everything but challenges and their answers goes there. Others are known for a while, a few at
//! most:
//!
//! - *At a server*: the peer's packets come from another address. The path is known from the first such packet that opens;
//!   from the first that does more than probe, the connection goes by it (§9.3), three times what came until the peer has
//!   answered a challenge. The path left is challenged too, and is gone back to if the new one does not answer.
//! - *At a client*: it is asked to move ([`Connection::migrate`]), and does when the new path has answered; or it finds
//!   itself moved ([`Connection::rebind`]); or the server prefers another address (§9.6).
//!
//! Each path uses a connection ID of its own, unless the peer did not change its, as behind a NAT (§9.5). A path with
//! another IP address starts with congestion control and round-trip time of its own; what was known of the path left is
//! put away for a return (§9.4).

use core::net::SocketAddr;
use std::fmt;

use lastbyte_congestion::{Environment, Time};
use lastbyte_wire::{ConnectionId, Side};

use super::{Connection, Event, NetworkPath, Stage, transmit::PATH_DATAGRAM_MIN};
use crate::{
    path::{
        Amplification, ChallengeData, MtuDiscovery, PathAnswer, PathValidation, ValidationState,
    },
    recovery::PathControl,
    space::Space,
    trace::{self, PathEvent},
};

/// A path, in use or not.
#[derive(Debug)]
pub(super) struct Path {
    pub(super) network: NetworkPath,
    pub(super) amplification: Amplification,
    pub(super) validation: PathValidation,
    /// The sequence number of the peer's connection ID on this path; `None`: that of the path in use.
    pub(super) lent: Option<u64>,
    /// What was put away when the path was left.
    put_away: Option<(PathControl, MtuDiscovery)>,
    /// Which of our connection IDs the peer used here when the path was left.
    peer_used: Option<ConnectionId>,
    /// Whether it is to be moved to once it is validated.
    is_wanted: bool,
}

impl Path {
    pub(super) const fn new(network: NetworkPath, amplification: Amplification) -> Self {
        Self {
            network,
            amplification,
            validation: PathValidation::new(),
            lent: None,
            put_away: None,
            peer_used: None,
            is_wanted: false,
        }
    }

    /// Whether a datagram for a challenge may be sent there (RFC 9000 §8.1).
    fn can_be_challenged(&self) -> bool {
        self.amplification.budget() >= PATH_DATAGRAM_MIN as u64
    }
}

/// Where a datagram came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The path in use.
    Current,
    /// Another that is known, by its place among them.
    Other(usize),
    /// One that is not known yet.
    New,
}

/// Why a path stays unknown that a packet came by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnknownPath {
    /// There are, or were, too many.
    TooMany,
    /// The peer changed its connection ID there, and gave none to answer to.
    NoConnectionId,
}

/// Why a connection cannot move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MigrateError {
    /// Only clients do (RFC 9000 §9).
    Server,
    /// Not before the handshake is confirmed, nor when the connection ends (§9).
    NotConfirmed,
    /// The peer asked not to (`disable_active_migration`, §18.2).
    Disabled,
    /// The peer has not given a connection ID for another path, or is not known to have one of ours (§9.5), or too many
    /// paths are being tried.
    NoConnectionId,
}

impl fmt::Display for MigrateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Server => "only clients move to other addresses",
            Self::NotConfirmed => "the handshake is not confirmed yet, or the connection ends",
            Self::Disabled => "the server does not allow it",
            Self::NoConnectionId => "there are no connection IDs for another path yet",
        })
    }
}

impl std::error::Error for MigrateError {}

impl Connection {
    /// Moves to another path once it has answered a challenge (RFC 9000 §9.1): [`Event::Moved`] or [`Event::PathFailed`]
    /// tells.
    ///
    /// # Errors
    ///
    /// It cannot move.
    pub fn migrate(&mut self, now: Time, network: NetworkPath) -> Result<(), MigrateError> {
        self.check_migration(true)?;
        self.try_path(now, network)
    }

    /// This side's address changed under it, as when a network went away: goes on by another path at once (RFC 9000 §9.2).
    ///
    /// # Errors
    ///
    /// It cannot move.
    pub fn rebind(&mut self, now: Time, network: NetworkPath) -> Result<(), MigrateError> {
        self.check_migration(true)?;
        let mut path = Path::new(network, Amplification::unlimited());
        if self.sources.local_ids.peer_can_change() {
            let lent = self.sources.peer_ids.lend();
            path.lent = Some(lent.ok_or(MigrateError::NoConnectionId)?);
        } else {
            // The server could not answer to another ID of its own, having none of ours: as behind a NAT, then.
            self.sources.local_ids.send_again();
        }
        self.others.push(path);
        self.statistics.paths.created += 1;
        self.trace_path(now, network, PathEvent::Created);
        self.promote(now, self.others.len() - 1);
        Ok(())
    }

    fn check_migration(&self, is_active: bool) -> Result<(), MigrateError> {
        if self.side == Side::Server {
            return Err(MigrateError::Server);
        }
        if self.stage != Stage::Confirmed || self.is_closing() {
            return Err(MigrateError::NotConfirmed);
        }
        let is_disabled = self
            .peer_parameters
            .as_ref()
            .is_some_and(|peer| peer.disable_active_migration);
        if is_active && is_disabled {
            return Err(MigrateError::Disabled);
        }
        if self.others.len() >= PATHS_MAX {
            return Err(MigrateError::NoConnectionId);
        }
        Ok(())
    }

    fn try_path(&mut self, now: Time, network: NetworkPath) -> Result<(), MigrateError> {
        if !self.sources.local_ids.peer_can_change() {
            return Err(MigrateError::NoConnectionId);
        }
        let lent = self.sources.peer_ids.lend();
        let mut path = Path::new(network, Amplification::unlimited());
        path.lent = Some(lent.ok_or(MigrateError::NoConnectionId)?);
        path.is_wanted = true;
        let max_ack_delay = self.peer_max_ack_delay();
        path.validation
            .start(now, self.recovery.rtt(), max_ack_delay);
        self.others.push(path);
        self.statistics.paths.created += 1;
        self.trace_path(now, network, PathEvent::Created);
        Ok(())
    }

    /// A client goes to the address that the server prefers, of the family in use (RFC 9000 §9.6).
    pub(super) fn follow_preferred_address(&mut self, now: Time) {
        if !self.wants_preferred_address || self.check_migration(false).is_err() {
            return;
        }
        let Some(preferred) = self
            .peer_parameters
            .as_ref()
            .and_then(|peer| peer.preferred_address)
        else {
            return;
        };
        let here = self.path.network;
        let remote = match here.remote {
            SocketAddr::V4(_) => preferred.ipv4.map(SocketAddr::V4),
            SocketAddr::V6(_) => preferred.ipv6.map(SocketAddr::V6),
        };
        let Some(remote) = remote.filter(|remote| *remote != here.remote) else {
            self.wants_preferred_address = false;
            return;
        };
        let network = NetworkPath {
            local: here.local,
            remote,
        };
        // Before the server has an ID of ours to answer there it cannot be tried: then again with the next news.
        self.wants_preferred_address =
            self.try_path(now, network) == Err(MigrateError::NoConnectionId);
    }

    // ---- datagrams in ---------------------------------------------------------------------------------------------

    /// Which path that is; `None` if nothing may come from there.
    pub(super) fn place(&self, network: &NetworkPath) -> Option<Place> {
        if self.path.network.is_same(network) {
            return Some(Place::Current);
        }
        let known = self
            .others
            .iter()
            .position(|path| path.network.is_same(network));
        match (known, self.side) {
            (Some(index), _) => Some(Place::Other(index)),
            // §9: a client drops what comes from elsewhere; which of its own addresses it came to is the system's affair.
            (None, Side::Client) => {
                (self.path.network.remote == network.remote).then_some(Place::Current)
            }
            // §9: not before the handshake is confirmed.
            (None, Side::Server) => (self.stage == Stage::Confirmed).then_some(Place::New),
        }
    }

    /// So many bytes came by a path, whatever was in them (RFC 9000 §8.1). Not of use for a new path.
    pub(super) fn credit(&mut self, place: Place, bytes: u64) {
        let path = match place {
            Place::Current => &mut self.path,
            Place::Other(index) => match self.others.get_mut(index) {
                Some(path) => path,
                None => return,
            },
            Place::New => return,
        };
        path.amplification.on_datagram_received(bytes);
    }

    /// A packet from a new address was opened: the path is known from now on.
    pub(super) fn know_path(
        &mut self,
        now: Time,
        network: NetworkPath,
        bytes: u64,
        destination: &ConnectionId,
    ) -> Result<(), UnknownPath> {
        if self.failed_paths.are_too_many(now) {
            return Err(UnknownPath::TooMany);
        }
        if self.others.len() >= PATHS_MAX {
            // One that nothing is expected of makes room.
            let idle = self.others.iter().position(|path| {
                path.validation.state() != ValidationState::Validating && !path.is_wanted
            });
            self.forget_path(idle.ok_or(UnknownPath::TooMany)?);
        }
        let lent = if *destination == self.peer_uses || destination.is_empty() {
            None // The same ID from another address: a NAT (§9.5).
        } else {
            let lent = self.sources.peer_ids.lend();
            Some(lent.ok_or(UnknownPath::NoConnectionId)?)
        };
        let mut path = Path::new(network, Amplification::limited());
        path.amplification.on_datagram_received(bytes);
        path.lent = lent;
        self.others.push(path);
        self.statistics.paths.created += 1;
        self.trace_path(now, network, PathEvent::Created);
        Ok(())
    }

    /// The newest packet came by another path, and does more than probe: the peer has moved (RFC 9000 §9.3).
    pub(super) fn on_peer_moved(&mut self, now: Time, index: usize) {
        self.statistics.paths.migration_elicited += 1;
        self.promote(now, index);
    }

    /// `PATH_RESPONSE`: it may come by any path (RFC 9000 §8.2.3). Returns whether it answered a challenge.
    pub(super) fn on_path_response(&mut self, now: Time, data: ChallengeData) -> bool {
        let max_ack_delay = self.peer_max_ack_delay();
        let paths = [&mut self.path].into_iter().chain(&mut self.others);
        let mut validated = None;
        for (index, path) in paths.enumerate() {
            match path.validation.on_response(&data) {
                PathAnswer::Unknown => {}
                // The peer is there, so that a full datagram may go there now, and has to get through (§8.2.1).
                PathAnswer::Address => {
                    path.amplification.validate();
                    let rtt = self.recovery.rtt();
                    path.validation.start(now, rtt, max_ack_delay);
                    return true;
                }
                PathAnswer::Path => {
                    path.amplification.validate();
                    validated = Some(index);
                    break;
                }
            }
        }
        let Some(index) = validated else { return false };
        self.on_path_validated(now, index.checked_sub(1));
        true
    }

    /// A path, in use or another by its place, carries datagrams of full size to the peer and back.
    fn on_path_validated(&mut self, now: Time, other: Option<usize>) {
        let Some(index) = other else {
            self.statistics.paths.validated += 1;
            self.trace_path(now, self.path.network, PathEvent::Validated);
            // Those left are not needed any more, but where the peer is being asked whether it is still there.
            self.forget_paths(|path| {
                path.validation.state() != ValidationState::Validating && !path.is_wanted
            });
            return;
        };
        let Some(path) = self.others.get(index) else {
            return;
        };
        let (network, is_wanted) = (path.network, path.is_wanted);
        self.statistics.paths.validated += 1;
        self.trace_path(now, network, PathEvent::Validated);
        if is_wanted {
            self.promote(now, index);
        } else if self.path.amplification.is_validated() {
            self.forget_path(index);
        }
    }

    // ---- moving ---------------------------------------------------------------------------------------------------

    /// Another path becomes the one in use.
    fn promote(&mut self, now: Time, index: usize) {
        let max_ack_delay = self.peer_max_ack_delay();
        let Some(path) = self.others.get_mut(index) else {
            return;
        };
        path.is_wanted = false;
        let mut id_left = None;
        if let Some(sequence) = path.lent {
            id_left = Some(self.sources.peer_ids.exchange(sequence));
        }
        std::mem::swap(&mut self.path, path);
        let left = path;
        self.path.lent = None;
        left.lent = id_left;
        // §9.5: after a return to this path, the ID of the one left is another than the peer uses here.
        left.peer_used = Some(self.peer_uses);
        self.peer_uses = self.path.peer_used.take().unwrap_or(self.peer_uses);
        let network = self.path.network;
        let is_rebinding = network.is_same_but_for_port(&left.network)
            && network.local.ip() == left.network.local.ip();
        if let Some((control, mtu)) = self.path.put_away.take() {
            let control = self.recovery.change_path(control, &mut self.sources);
            let mtu = std::mem::replace(&mut self.mtu, mtu);
            left.put_away = Some((control, mtu));
        } else if !is_rebinding {
            // §9.4: nothing is known of the path.
            let controller = self.config.congestion.build(&Environment {
                max_datagram_size: u64::from(self.config.mtu.initial),
                seed: self.random.number(),
            });
            let mut mtu = MtuDiscovery::new(self.config.mtu);
            mtu.start(self.max_udp_payload_size);
            let control = PathControl::new(controller);
            let control = self.recovery.change_path(control, &mut self.sources);
            let mtu = std::mem::replace(&mut self.mtu, mtu);
            left.put_away = Some((control, mtu));
        }
        let rtt = self.recovery.rtt();
        // §9.3.3: whoever it is that moved, the peer is asked at both places.
        if self.side == Side::Server
            && left.amplification.is_validated()
            && left.validation.state() != ValidationState::Validating
        {
            left.validation.start(now, rtt, max_ack_delay);
        }
        if self.path.validation.state() == ValidationState::Idle {
            self.path.validation.start(now, rtt, max_ack_delay);
        }
        if self.side == Side::Client {
            self.forget_path(index);
            // Something that makes the server follow.
            *self.probes.get_mut(Space::Application) = 1;
        }
        self.recovery_follows_mtu(now);
        self.sources.ack_frequency.on_new_path();
        self.release_at = None;
        self.statistics.paths.promoted += 1;
        self.events.push(Event::Moved(network));
        self.trace_path(now, network, PathEvent::Promoted);
    }

    /// Validations whose time is up (RFC 9000 §8.2.4).
    pub(super) fn expire_paths(&mut self, now: Time) {
        let mut index = 0;
        while let Some(path) = self.others.get_mut(index) {
            if !path.validation.on_timeout(now) {
                index += 1;
                continue;
            }
            let (network, is_wanted) = (path.network, path.is_wanted);
            self.forget_path(index);
            self.on_path_failed(now, network);
            if is_wanted {
                self.events.push(Event::PathFailed(network));
            }
        }
        if !self.path.validation.on_timeout(now) {
            return;
        }
        let failed = self.path.network;
        let validated = self
            .others
            .iter()
            .position(|path| path.amplification.is_validated());
        match validated {
            // §9.3.2: back to where the peer was last known to be.
            Some(index) if self.side == Side::Server => {
                self.on_path_failed(now, failed);
                self.promote(now, index);
                self.forget_paths(|path| path.network == failed);
            }
            // There is nowhere else to go, so the peer is asked on (§8.2.4), at no more than three times what comes from
            // there. Silence ends the connection in the end.
            _ => {
                let max_ack_delay = self.peer_max_ack_delay();
                self.path
                    .validation
                    .start(now, self.recovery.rtt(), max_ack_delay);
            }
        }
    }

    fn on_path_failed(&mut self, now: Time, network: NetworkPath) {
        self.statistics.paths.validation_failed += 1;
        self.failed_paths.on_failed(now);
        self.trace_path(now, network, PathEvent::Failed);
    }

    fn forget_paths(&mut self, is_done: impl Fn(&Path) -> bool) {
        while let Some(index) = self.others.iter().position(&is_done) {
            self.forget_path(index);
        }
    }

    /// Paths whose connection ID the peer has retired are no more: nothing can be sent there (RFC 9000 §5.1.2). Kept, they
    /// would want to send a challenge at once, for ever.
    pub(super) fn forget_paths_without_id(&mut self) {
        let mut index = 0;
        while let Some(path) = self.others.get(index) {
            let peer_ids = &self.sources.peer_ids;
            if path.lent.is_none_or(|id| peer_ids.lent(id).is_some()) {
                index += 1;
                continue;
            }
            let (network, is_wanted) = (path.network, path.is_wanted);
            self.statistics.paths.closed_without_id += 1;
            self.forget_path(index);
            if is_wanted {
                self.events.push(Event::PathFailed(network));
            }
        }
    }

    fn forget_path(&mut self, index: usize) {
        let path = self.others.swap_remove(index);
        if let Some(sequence) = path.lent {
            // More to retire than are acknowledged: then the ID just stays unused.
            let _ = self.sources.peer_ids.give_back(sequence);
        }
    }

    /// When [`Connection::expire_paths`] or a challenge is due.
    pub(super) fn paths_deadline(&self) -> Option<Time> {
        self.others
            .iter()
            .chain([&self.path])
            .filter_map(|path| path.validation.deadline(path.can_be_challenged()))
            .min()
    }

    pub(super) fn trace_path(&mut self, now: Time, network: NetworkPath, event: PathEvent) {
        self.tracer.event(now, &trace::Event::Path(network, event));
    }
}

/// Paths beside the one in use, at most.
const PATHS_MAX: usize = 3;
