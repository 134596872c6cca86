//! A client's handling of Retry (RFC 9000 §8.1.2, §17.2.5) and Version Negotiation (RFC 9000 §6, RFC 9368 §2.1).
//!
//! Each is accepted at most once, and only before any other packet of the server was processed.

use lastbyte_wire::packet::{Retry, VersionNegotiation};

use super::{Choice, Handshake};
use crate::{
    connection::{Config, start::ClientState},
    crypto::retry,
    space::Space,
};

/// The effect of a Version Negotiation packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::connection) enum Negotiated {
    /// It is ignored.
    Unexpected,
    /// The handshake restarts in another version.
    Restarted,
    /// The server supports no version of this client.
    NoCommonVersion,
}

impl Handshake {
    /// The client's state, as long as Retry and Version Negotiation are acceptable.
    fn client_before_response(&mut self) -> Option<&mut ClientState> {
        let client = self.state.as_mut()?.client.as_mut()?;
        (!client.has_heard).then_some(client)
    }

    /// Processes a Retry packet. Returns whether it was accepted.
    pub(in crate::connection) fn on_retry(&mut self, packet: &Retry<'_>) -> bool {
        let version = self.version;
        if !self.accepts_retry(packet) {
            return false;
        }
        let Some(client) = self.client_before_response() else {
            return false;
        };
        client.token = packet.token.to_vec();
        client.retry_source = Some(packet.source);
        let keys = client.crypto.initial_keys(version, &packet.source);
        *self.keys.get_mut(Space::Initial) = Some(Box::new(keys));
        true
    }

    fn accepts_retry(&mut self, packet: &Retry<'_>) -> bool {
        let (version, local_id) = (self.version, self.local_id);
        let state = self.state.as_ref();
        let Some(original) = state.map(|state| state.original_destination) else {
            return false;
        };
        self.client_before_response()
            .is_some_and(|client| client.retry_source.is_none())
            && packet.version == version
            && packet.destination == local_id
            && packet.source != original
            && retry::is_authentic(packet, &original)
    }

    /// Processes a Version Negotiation packet.
    pub(in crate::connection) fn on_version_negotiation(
        &mut self,
        packet: &VersionNegotiation<'_>,
        config: &Config,
    ) -> Negotiated {
        let ours = self.version.number();
        let local_id = self.local_id;
        let state = self.state.as_ref();
        let original = state.map(|state| state.original_destination);
        let is_expected = self
            .client_before_response()
            .is_some_and(|client| !client.was_negotiated && client.retry_source.is_none())
            && packet.destination() == local_id.as_slice()
            && original.is_some_and(|id| packet.source() == id.as_slice())
            // §6.2: a packet that lists the version in use must be ignored.
            && packet.versions().all(|version| version != ours);
        if !is_expected {
            return Negotiated::Unexpected;
        }
        match self.restart(packet, config) {
            Some(()) => Negotiated::Restarted,
            None => Negotiated::NoCommonVersion,
        }
    }

    /// Restarts in the most preferred version that the packet lists.
    fn restart(&mut self, packet: &VersionNegotiation<'_>, config: &Config) -> Option<()> {
        let mut versions = config.versions.iter().copied();
        let version =
            versions.find(|known| packet.versions().any(|version| version == known.number()))?;
        let state = self.state.as_mut()?;
        state.offer.version = version;
        state.choice = Choice::of_client(state.offer.available.clone());
        let parameters = state.offer.parameters(config).to_vec();
        let client = state.client.as_mut()?;
        client.was_negotiated = true;
        let crypto = &client.crypto;
        self.session = crypto
            .start(version, &client.server_name, &parameters)
            .ok()?;
        let keys = crypto.initial_keys(version, &state.original_destination);
        *self.keys.get_mut(Space::Initial) = Some(Box::new(keys));
        self.version = version;
        self.zero_rtt = None;
        Some(())
    }
}
