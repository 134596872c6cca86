//! The consequences of Retry and Version Negotiation outside the handshake object.

use lastbyte_congestion::Time;
use lastbyte_wire::packet::{Retry, VersionNegotiation};

use super::{Connection, frame_sources::Discard, handshake::Negotiated};
use crate::{close::CloseReason, space::Space, trace::DropReason};

impl Connection {
    pub(super) fn on_retry(&mut self, now: Time, packet: &Retry<'_>) {
        if !self.handshake.on_retry(packet) {
            self.drop_unexpected(now, packet.without_tag.len());
            return;
        }
        self.sources.peer_ids.replace_handshake_id(packet.source);
        // Nothing that was sent has arrived. Packet numbers continue (RFC 9000 §17.2.5.3).
        for space in [Space::Initial, Space::Application] {
            self.recovery.give_up(now, space, &mut self.sources);
        }
    }

    pub(super) fn on_version_negotiation(&mut self, now: Time, packet: &VersionNegotiation<'_>) {
        match self.handshake.on_version_negotiation(packet, &self.config) {
            Negotiated::Unexpected => self.drop_unexpected(now, packet.source().len()),
            Negotiated::NoCommonVersion => {
                let probe_timeout = self.probe_timeout();
                self.end(now, CloseReason::NoCommonVersion, probe_timeout);
            }
            Negotiated::Restarted => {
                self.recovery.give_up(now, Space::Initial, &mut Discard);
                self.recovery
                    .give_up(now, Space::Application, &mut self.sources);
                self.sources.restart_crypto();
                self.drive_handshake(now);
            }
        }
    }

    fn drop_unexpected(&mut self, now: Time, len: usize) {
        self.tracer
            .packet_dropped(now, None, len, DropReason::Unexpected);
    }
}
