//! What a server may answer a client's first packet with instead of going on: a Retry (RFC 9000 §8.1.2, §17.2.5), or
//! Version Negotiation (RFC 9000 §6, RFC 9368 §2.1).
//!
//! Either is taken once, and only before anything else of the server was processed.

use lastbyte_congestion::Time;
use lastbyte_wire::packet::{Retry, VersionNegotiation};

use super::{Connection, start::ClientOpening, version::Choice};
use crate::{close::CloseReason, crypto::retry, space::Space, trace::DropReason};

impl Connection {
    /// The client's state, as long as the server may still send it away.
    fn unheard_client(&mut self) -> Option<&mut ClientOpening> {
        let client = self.opening.as_mut()?.client.as_mut()?;
        (!client.has_heard).then_some(client)
    }

    pub(super) fn on_retry(&mut self, now: Time, packet: &Retry<'_>) {
        if !self.accepts_retry(packet) {
            self.drop_unexpected(now, packet.without_tag.len());
            return;
        }
        let version = self.version;
        let Some(client) = self.unheard_client() else {
            return;
        };
        client.token = packet.token.to_vec();
        client.retry_source = Some(packet.source);
        let keys = client.crypto.initial_keys(version, &packet.source);
        *self.keys.get_mut(Space::Initial) = Some(Box::new(keys));
        self.sources.peer_ids.replace_handshake_id(packet.source);
        // Nothing that was sent has arrived. Packet numbers go on (§17.2.5.3).
        self.recovery
            .give_up(now, Space::Initial, &mut self.sources);
        self.recovery
            .give_up(now, Space::Application, &mut self.sources);
    }

    fn accepts_retry(&mut self, packet: &Retry<'_>) -> bool {
        let (version, local_id) = (self.version, self.local_id);
        let Some(original) = self
            .opening
            .as_ref()
            .map(|opening| opening.original_destination)
        else {
            return false;
        };
        self.unheard_client()
            .is_some_and(|client| client.retry_source.is_none())
            && packet.version == version
            && packet.destination == local_id
            && packet.source != original
            && retry::is_authentic(packet, &original)
    }

    pub(super) fn on_version_negotiation(&mut self, now: Time, packet: &VersionNegotiation<'_>) {
        let ours = self.version.number();
        let local_id = self.local_id;
        let original = self
            .opening
            .as_ref()
            .map(|opening| opening.original_destination);
        let is_expected = self
            .unheard_client()
            .is_some_and(|client| !client.was_negotiated && client.retry_source.is_none())
            && packet.destination() == local_id.as_slice()
            && original.is_some_and(|id| packet.source() == id.as_slice())
            // §6.2: one that lists the version in use says nothing.
            && packet.versions().all(|version| version != ours);
        if !is_expected {
            self.drop_unexpected(now, packet.source().len());
            return;
        }
        let mut versions = self.config.versions.iter().copied();
        let best =
            versions.find(|known| packet.versions().any(|version| version == known.number()));
        let begun = best.and_then(|version| {
            let config = std::sync::Arc::clone(&self.config);
            let opening = self.opening.as_mut()?;
            opening.offer.version = version;
            opening.choice = Choice::of_client(opening.offer.available.clone());
            let parameters = opening.offer.parameters(&config).to_vec();
            let client = opening.client.as_mut()?;
            client.was_negotiated = true;
            let session = client
                .crypto
                .start(version, &client.server_name, &parameters)
                .ok()?;
            let keys = client
                .crypto
                .initial_keys(version, &opening.original_destination);
            Some((version, session, keys))
        });
        let Some((version, session, keys)) = begun else {
            let probe_timeout = self.probe_timeout();
            self.end(now, CloseReason::NoCommonVersion, probe_timeout);
            return;
        };
        self.version = version;
        self.session = session;
        *self.keys.get_mut(Space::Initial) = Some(Box::new(keys));
        self.zero_rtt = None;
        self.recovery
            .give_up(now, Space::Initial, &mut super::frame_sources::Discard);
        self.recovery
            .give_up(now, Space::Application, &mut self.sources);
        self.sources.restart_crypto();
        self.drive_handshake(now);
    }

    fn drop_unexpected(&mut self, now: Time, len: usize) {
        self.tracer
            .packet_dropped(now, None, len, DropReason::Unexpected);
    }
}
