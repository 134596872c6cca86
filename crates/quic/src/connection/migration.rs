//! Path validation and migration (RFC 9000 §8.2, §9).
//!
//! One path is in use: all packets but path challenges and their responses are sent there. A few others are remembered
//! for a while:
//!
//! - *Server*: the peer's packets arrive from another address. The path is known from the first such packet that opens;
//!   from the first non-probing packet the connection uses it (§9.3), limited to three times the bytes received until
//!   the peer has answered a challenge. The previous path is challenged as well, and is used again if the new one does
//!   not respond.
//! - *Client*: the application migrates ([`Connection::migrate`]), which takes effect when the new path has responded;
//!   or its address has changed ([`Connection::rebind`]); or the server prefers another address (§9.6).
//!
//! Each path uses a connection ID of its own, unless the peer did not change its connection ID, as behind a NAT (§9.5).
//! A path with another IP address starts with a new congestion controller and RTT estimator; those of the previous path
//! are saved for a return (§9.4). If only the port differs, they stay, and packets sent before contribute to neither.

use core::net::SocketAddr;
use lastbyte_congestion::{Controller, Environment, Time};
use lastbyte_wire::Side;

use super::{
    Connection, Event, NetworkPath,
    paths::{PathRef, RemovedPath, Response, UnknownPath},
};
use crate::{
    path::ChallengeData,
    recovery::PathControl,
    space::Space,
    trace::{self, PathEvent},
};

/// Why a connection cannot migrate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MigrateError {
    /// Only clients migrate (RFC 9000 §9).
    #[error("only clients move to other addresses")]
    Server,
    /// The handshake is not confirmed, or the connection is closing (§9).
    #[error("the handshake is not confirmed yet, or the connection ends")]
    NotConfirmed,
    /// The peer disabled migration (`disable_active_migration`, §18.2).
    #[error("the server does not allow it")]
    Disabled,
    /// The peer has not issued a connection ID for another path, is not known to have one of ours (§9.5), or too many
    /// paths are being validated.
    #[error("there are no connection IDs for another path yet")]
    NoConnectionId,
}

impl Connection {
    /// Migrates to another path once it has answered a challenge (RFC 9000 §9.1): [`Event::Moved`] or
    /// [`Event::PathFailed`] reports the outcome.
    ///
    /// # Errors
    ///
    /// Returns the reason, as [`MigrateError`], if the connection cannot migrate.
    pub fn migrate(&mut self, now: Time, network: NetworkPath) -> Result<(), MigrateError> {
        self.check_migration(true)?;
        self.try_path(now, network)
    }

    /// Continues on another path at once, because the local address changed, for example when a network was lost (RFC
    /// 9000 §9.2).
    ///
    /// # Errors
    ///
    /// Returns the reason, as [`MigrateError`], if the connection cannot migrate.
    pub fn rebind(&mut self, now: Time, network: NetworkPath) -> Result<(), MigrateError> {
        self.check_migration(true)?;
        let path_cid = if self.sources.local_ids.peer_can_change() {
            let reserved = self.sources.peer_ids.reserve();
            Some(reserved.ok_or(MigrateError::NoConnectionId)?)
        } else {
            // The server has no other connection ID of ours to send to, so the IDs stay as behind a NAT.
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

    /// A client migrates to the server's preferred address of the address family in use (RFC 9000 §9.6).
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
        // This requires that the server has a connection ID of ours to send to; tried again with the next
        // acknowledgment.
        let is_too_early = self.try_path(now, network) == Err(MigrateError::NoConnectionId);
        self.paths.set_wants_preferred_address(is_too_early);
    }

    // ---- receiving -------------------------------------------------------------------------------------------------

    /// Looks up the path of a datagram; `None` if datagrams from there are not accepted.
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

    /// The newest packet arrived on another path and is not a probing packet: the peer has migrated (RFC 9000 §9.3).
    pub(super) fn on_peer_moved(&mut self, now: Time, index: usize) {
        self.statistics.paths.migration_elicited += 1;
        self.promote(now, index);
    }

    /// Handles `PATH_RESPONSE`. Returns whether it answered a challenge.
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

    /// The path carries full-size datagrams in both directions.
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
            // The other paths are no longer needed, unless the previous path is still being validated.
            self.paths.remove_idle(peer_ids);
        }
    }

    // ---- migration -------------------------------------------------------------------------------------------------

    /// Puts another path into use.
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
        } else if self.recovery.rebind(now, &mut self.sources) {
            self.paths.mtu_mut().on_rebinding();
        }
        let (rtt, max_ack_delay) = (self.recovery.rtt(), self.peer.max_ack_delay());
        let peer_ids = &mut self.sources.peer_ids;
        self.paths
            .challenge_after_move(now, index, rtt, max_ack_delay, peer_ids);
        if self.side() == Side::Client {
            // A non-probing packet makes the server follow.
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

    /// Congestion control of a path about which nothing is known.
    fn new_controller(&mut self) -> Box<dyn Controller> {
        self.config.congestion.build(&Environment {
            max_datagram_size: u64::from(self.config.mtu.initial),
            seed: self.random.number(),
        })
    }

    /// Gives up validations that timed out (RFC 9000 §8.2.4).
    pub(super) fn expire_paths(&mut self, now: Time) {
        while let Some(removed) = self.paths.expire_other(now, &mut self.sources.peer_ids) {
            self.on_path_failed(now, removed.network);
            self.report_path_failure(removed);
        }
        let failed = self.network();
        let (rtt, max_ack_delay) = (self.recovery.rtt(), self.peer.max_ack_delay());
        if let Some(index) = self.paths.expire_current(now, rtt, max_ack_delay) {
            self.on_path_failed(now, failed);
            self.promote(now, index);
            let peer_ids = &mut self.sources.peer_ids;
            self.paths.remove_network(&failed, peer_ids);
        }
    }

    fn on_path_failed(&mut self, now: Time, network: NetworkPath) {
        self.statistics.paths.validation_failed += 1;
        self.trace_path(now, network, PathEvent::Failed);
    }

    /// Gives up paths whose connection ID the peer has retired.
    pub(super) fn forget_paths_without_id(&mut self) {
        while let Some(removed) = self.paths.remove_without_id(&mut self.sources.peer_ids) {
            self.statistics.paths.closed_without_id += 1;
            self.report_path_failure(removed);
        }
    }

    /// Reports to the application that a migration failed.
    fn report_path_failure(&mut self, removed: RemovedPath) {
        if removed.was_wanted {
            self.events.push(Event::PathFailed(removed.network));
        }
    }

    fn trace_path(&mut self, now: Time, network: NetworkPath, event: PathEvent) {
        self.tracer.event(now, &trace::Event::Path(network, event));
    }
}
