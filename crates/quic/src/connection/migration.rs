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
//! saved for a return (§9.4).

use core::net::SocketAddr;
use std::fmt;

use lastbyte_congestion::{Controller, Environment, Time};
use lastbyte_wire::Side;

use super::{
    Connection, Event, NetworkPath,
    paths::{Forgotten, PathRef, Response, UnknownPath},
};
use crate::{
    path::ChallengeData,
    recovery::PathControl,
    space::Space,
    trace::{self, PathEvent},
};

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
    /// reports the outcome.
    ///
    /// # Errors
    ///
    /// Returns the reason, as [`MigrateError`], if the connection cannot move.
    pub fn migrate(&mut self, now: Time, network: NetworkPath) -> Result<(), MigrateError> {
        self.check_migration(true)?;
        self.try_path(now, network)
    }

    /// This side's address changed, as when a network went away: goes on by another path at once (RFC 9000 §9.2).
    ///
    /// # Errors
    ///
    /// Returns the reason, as [`MigrateError`], if the connection cannot move.
    pub fn rebind(&mut self, now: Time, network: NetworkPath) -> Result<(), MigrateError> {
        self.check_migration(true)?;
        let path_cid = if self.sources.local_ids.peer_can_change() {
            let reserved = self.sources.peer_ids.reserve();
            Some(reserved.ok_or(MigrateError::NoConnectionId)?)
        } else {
            // The server could not answer to another ID of its own, having none of ours: as behind a NAT, then.
            self.sources.local_ids.send_again();
            None
        };
        let index = self.paths.rebind(network, path_cid);
        self.on_path_created(now, network);
        self.promote(now, index);
        Ok(())
    }

    fn check_migration(&self, is_active: bool) -> Result<(), MigrateError> {
        if self.side() == Side::Server {
            return Err(MigrateError::Server);
        }
        if !self.handshake.is_confirmed() || self.is_closing() {
            return Err(MigrateError::NotConfirmed);
        }
        if is_active && self.peer.disable_active_migration() {
            return Err(MigrateError::Disabled);
        }
        if self.paths.are_full() {
            return Err(MigrateError::NoConnectionId);
        }
        Ok(())
    }

    fn try_path(&mut self, now: Time, network: NetworkPath) -> Result<(), MigrateError> {
        if !self.sources.local_ids.peer_can_change() {
            return Err(MigrateError::NoConnectionId);
        }
        let path_cid = self.sources.peer_ids.reserve();
        let path_cid = path_cid.ok_or(MigrateError::NoConnectionId)?;
        let (rtt, max_ack_delay) = (self.recovery.rtt(), self.peer.max_ack_delay());
        self.paths
            .try_path(now, network, path_cid, rtt, max_ack_delay);
        self.on_path_created(now, network);
        Ok(())
    }

    /// A client goes to the address that the server prefers, of the family in use (RFC 9000 §9.6).
    pub(super) fn follow_preferred_address(&mut self, now: Time) {
        if !self.paths.wants_preferred_address() || self.check_migration(false).is_err() {
            return;
        }
        let Some(preferred) = self.peer.preferred_address() else {
            return;
        };
        let here = self.network();
        let remote = match here.remote {
            SocketAddr::V4(_) => preferred.ipv4.map(SocketAddr::V4),
            SocketAddr::V6(_) => preferred.ipv6.map(SocketAddr::V6),
        };
        let Some(remote) = remote.filter(|remote| *remote != here.remote) else {
            self.paths.set_wants_preferred_address(false);
            return;
        };
        let network = NetworkPath {
            local: here.local,
            remote,
        };
        // Before the server has an ID of ours to answer there it cannot be tried: then again with the next acknowledgment.
        let is_too_early = self.try_path(now, network) == Err(MigrateError::NoConnectionId);
        self.paths.set_wants_preferred_address(is_too_early);
    }

    // ---- datagrams in ---------------------------------------------------------------------------------------------

    /// Which path that is; `None` if nothing may come from there.
    pub(super) fn locate(&self, network: &NetworkPath) -> Option<PathRef> {
        let is_confirmed = self.handshake.is_confirmed();
        self.paths.locate(network, is_confirmed)
    }

    /// A packet from a new address was opened.
    pub(super) fn register_path(
        &mut self,
        now: Time,
        network: NetworkPath,
        bytes: u64,
        destination: &[u8],
    ) -> Result<(), UnknownPath> {
        let peer_ids = &mut self.sources.peer_ids;
        self.paths
            .register(now, network, bytes, destination, peer_ids)?;
        self.on_path_created(now, network);
        Ok(())
    }

    fn on_path_created(&mut self, now: Time, network: NetworkPath) {
        self.statistics.paths.created += 1;
        self.trace_path(now, network, PathEvent::Created);
    }

    /// The newest packet came by another path, and does more than probe: the peer has moved (RFC 9000 §9.3).
    pub(super) fn on_peer_moved(&mut self, now: Time, index: usize) {
        self.statistics.paths.migration_elicited += 1;
        self.promote(now, index);
    }

    /// `PATH_RESPONSE`. Returns whether it answered a challenge.
    pub(super) fn on_path_response(&mut self, now: Time, data: ChallengeData) -> bool {
        let (rtt, max_ack_delay) = (self.recovery.rtt(), self.peer.max_ack_delay());
        match self.paths.on_response(now, data, rtt, max_ack_delay) {
            Response::Unknown => false,
            Response::Address => true,
            Response::Path(path) => {
                self.on_path_validated(now, path);
                true
            }
        }
    }

    /// A path carries datagrams of full size to the peer and back.
    fn on_path_validated(&mut self, now: Time, path: PathRef) {
        let Some(network) = self.paths.get(path).map(|path| path.network) else {
            return;
        };
        self.statistics.paths.validated += 1;
        self.trace_path(now, network, PathEvent::Validated);
        let peer_ids = &mut self.sources.peer_ids;
        if let PathRef::Other(index) = path {
            if self.paths.is_to_move(index, peer_ids) {
                self.promote(now, index);
            }
        } else {
            // Those left are not needed any more, unless the peer is being asked whether it is still there.
            self.paths.forget_idle(peer_ids);
        }
    }

    // ---- moving ---------------------------------------------------------------------------------------------------

    /// Another path becomes the one in use.
    fn promote(&mut self, now: Time, index: usize) {
        let max_udp_payload_size = self.peer.max_udp_payload_size();
        let peer_ids = &mut self.sources.peer_ids;
        let Some(promotion) = self.paths.promote(index, max_udp_payload_size, peer_ids) else {
            return;
        };
        if let Some(change) = promotion.change {
            let control = change
                .saved
                .unwrap_or_else(|| PathControl::new(self.new_controller()));
            let left = self.recovery.change_path(control, &mut self.sources);
            self.paths.save(index, left, change.mtu_left);
        }
        let (rtt, max_ack_delay) = (self.recovery.rtt(), self.peer.max_ack_delay());
        let peer_ids = &mut self.sources.peer_ids;
        self.paths
            .challenge_after_move(now, index, rtt, max_ack_delay, peer_ids);
        if self.side() == Side::Client {
            // Something that makes the server follow.
            self.sender.request_probes(Space::Application, 1);
        }
        self.recovery_follows_mtu(now);
        self.sources.ack_frequency.on_new_path();
        self.sender.on_new_path();
        self.statistics.paths.promoted += 1;
        let network = promotion.network;
        self.events.push(Event::Moved(network));
        self.trace_path(now, network, PathEvent::Promoted);
    }

    /// Congestion control of a path of which nothing is known.
    fn new_controller(&mut self) -> Box<dyn Controller> {
        self.config.congestion.build(&Environment {
            max_datagram_size: u64::from(self.config.mtu.initial),
            seed: self.random.number(),
        })
    }

    /// Validations that are out of time (RFC 9000 §8.2.4).
    pub(super) fn expire_paths(&mut self, now: Time) {
        while let Some(forgotten) = self.paths.expire_other(now, &mut self.sources.peer_ids) {
            self.on_path_failed(now, forgotten.network);
            self.tell_path_failed(forgotten);
        }
        let failed = self.network();
        let (rtt, max_ack_delay) = (self.recovery.rtt(), self.peer.max_ack_delay());
        if let Some(index) = self.paths.expire_current(now, rtt, max_ack_delay) {
            self.on_path_failed(now, failed);
            self.promote(now, index);
            let peer_ids = &mut self.sources.peer_ids;
            self.paths.forget_network(&failed, peer_ids);
        }
    }

    fn on_path_failed(&mut self, now: Time, network: NetworkPath) {
        self.statistics.paths.validation_failed += 1;
        self.trace_path(now, network, PathEvent::Failed);
    }

    /// Paths whose connection ID the peer has retired are given up.
    pub(super) fn forget_paths_without_id(&mut self) {
        while let Some(forgotten) = self.paths.forget_without_id(&mut self.sources.peer_ids) {
            self.statistics.paths.closed_without_id += 1;
            self.tell_path_failed(forgotten);
        }
    }

    /// Reports to the application that a path cannot be used that the connection was to move to.
    fn tell_path_failed(&mut self, forgotten: Forgotten) {
        if forgotten.was_wanted {
            self.events.push(Event::PathFailed(forgotten.network));
        }
    }

    fn trace_path(&mut self, now: Time, network: NetworkPath, event: PathEvent) {
        self.tracer.event(now, &trace::Event::Path(network, event));
    }
}
