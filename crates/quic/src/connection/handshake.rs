//! The handshake's part of a connection (RFC 9001 §4): what the session has to say, new keys, transport parameters, and
//! the end of old keys.

use core::time::Duration;

use lastbyte_congestion::Time;
use lastbyte_wire::{Side, TransportError, transport_parameters::TransportParameters};

use super::{Connection, Fatal, Stage};
use crate::{
    ack::{AckPolicy, ReceivedPackets},
    cid::ConnectionIdGenerator,
    crypto::NewKeys,
    space::Space,
};

impl Connection {
    /// Takes what the session has to say and what follows from it; closes the connection if it failed.
    pub(super) fn drive_handshake(&mut self, now: Time) {
        if let Err(fatal) = self.advance_handshake(now) {
            self.fail(now, fatal);
        }
    }

    fn advance_handshake(&mut self, now: Time) -> Result<(), Fatal> {
        for space in Space::ALL {
            self.session
                .write_crypto(space, self.rooms.crypto.get_mut(space).outgoing());
        }
        while let Some(keys) = self.session.next_keys() {
            match keys {
                NewKeys::Handshake(keys) => *self.keys.get_mut(Space::Handshake) = Some(keys),
                NewKeys::OneRtt(keys) => self.one_rtt = Some(keys),
                NewKeys::ZeroRtt(_) => {} // not used yet
            }
        }
        self.take_peer_parameters()?;
        if self.stage == Stage::Handshaking && !self.session.is_handshaking() {
            self.stage = Stage::Complete;
            if self.side == Side::Server {
                self.rooms.wants_handshake_done = true;
                self.confirm(now);
            }
        }
        Ok(())
    }

    /// The peer's transport parameters, once they are there (RFC 9000 §7.4).
    fn take_peer_parameters(&mut self) -> Result<(), Fatal> {
        let Some(encoded) = self
            .session
            .peer_parameters()
            .filter(|_| self.peer_parameters.is_none())
        else {
            return Ok(());
        };
        let peer_side = match self.side {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        };
        let refused = |reason| Fatal::new(TransportError::TRANSPORT_PARAMETER_ERROR, reason);
        let peer = TransportParameters::decode(encoded, peer_side)
            .map_err(|error| Fatal::new(error.transport_error(), error.fault.reason()))?;
        let expected = self
            .opening
            .as_ref()
            .and_then(|opening| opening.expected_ids())
            .ok_or_else(|| refused("transport parameters before an Initial packet"))?;
        peer.authenticate(&expected)
            .map_err(|error| refused(error.fault.reason()))?;
        self.rooms.streams.on_peer_parameters(&peer);
        self.idle
            .on_peer_timeout(Duration::from_millis(peer.max_idle_timeout_ms.get()));
        if let Some(token) = peer.stateless_reset_token {
            self.rooms.peer_ids.set_reset_token(token);
        }
        self.peer_parameters = Some(peer);
        Ok(())
    }

    /// The handshake is confirmed (RFC 9001 §4.1.2).
    pub(super) fn confirm(&mut self, now: Time) {
        if self.stage == Stage::Confirmed {
            return;
        }
        self.stage = Stage::Confirmed;
        self.discard(now, Space::Handshake);
        if let Some(keys) = &mut self.one_rtt {
            keys.on_handshake_confirmed();
        }
        let limit = self
            .peer_parameters
            .as_ref()
            .map_or(2, |peer| peer.active_connection_id_limit.get());
        self.rooms
            .local_ids
            .start(limit, &mut ByRef(&mut *self.ids), &mut |_| {});
    }

    /// The keys of a space are done with (RFC 9001 §4.9).
    pub(super) fn discard(&mut self, now: Time, space: Space) {
        if self.keys.get_mut(space).take().is_some() {
            self.recovery.discard_space(now, space);
            *self.probes.get_mut(space) = 0;
            *self.received.get_mut(space) = ReceivedPackets::new(AckPolicy::immediate());
        }
    }
}

/// A generator behind a reference.
pub(super) struct ByRef<'a>(pub(super) &'a mut (dyn ConnectionIdGenerator + Send));

impl ConnectionIdGenerator for ByRef<'_> {
    fn generate(&mut self) -> lastbyte_wire::ConnectionId {
        self.0.generate()
    }

    fn reset_token(&self, id: &lastbyte_wire::ConnectionId) -> lastbyte_wire::StatelessResetToken {
        self.0.reset_token(id)
    }
}
