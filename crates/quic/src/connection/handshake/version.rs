//! Compatible version negotiation, without an extra round trip (RFC 9368 §2.3, RFC 9369 §4.1).
//!
//! Owns changes of the version, and the rule for packets of each version. It does not choose the version; the
//! server's session does, from the client's list. `peer_parameters.rs` checks the choice (§4).
//!
//! A server changes when it has read the `ClientHello`, a client when it opens the server's first packet in another
//! version. Handshake and 1-RTT packets always use the new version, 0-RTT packets always the first.

use lastbyte_wire::{
    ConnectionId, Side,
    packet::{PacketType, Protected, Version},
};

use super::Handshake;
use crate::{connection::Config, crypto::Keys, space::Space};

/// The state of version negotiation.
pub(in crate::connection) enum Choice {
    /// The version is final.
    Settled,
    /// A client that has received no handshake data yet: the versions it may continue in, and the keys for Initial
    /// packets derived since one arrived.
    Open(Vec<Version>, Option<(Version, Box<Keys>)>),
    /// The server's session may choose one of these versions; with keys for Initial packets.
    Server(Vec<(Version, Keys)>),
    /// A server that has chosen another version and still opens Initial packets of the first, since the client may not
    /// know the choice yet.
    Changed(Box<Keys>),
}

impl Choice {
    /// A client that lists these versions.
    pub(in crate::connection) fn of_client(listed: Vec<Version>) -> Self {
        if listed.len() > 1 {
            Self::Open(listed, None)
        } else {
            Self::Settled
        }
    }

    /// A server that prefers these versions.
    pub(in crate::connection) fn of_server(better: Vec<(Version, Keys)>) -> Self {
        if better.is_empty() {
            Self::Settled
        } else {
            Self::Server(better)
        }
    }
}

/// The versions that a client lists as acceptable, by preference.
pub(in crate::connection) fn listed(
    config: &Config,
    first: Version,
    can_follow: bool,
) -> Vec<Version> {
    if can_follow && config.versions.contains(&first) {
        config.versions.clone()
    } else {
        vec![first]
    }
}

/// The versions that a server prefers to this one, most preferred first.
pub(in crate::connection) fn better(
    config: &Config,
    first: Version,
) -> impl Iterator<Item = Version> {
    let versions = config.versions.iter().copied();
    versions.take_while(move |version| *version != first)
}

impl Handshake {
    /// The version of the client's first packets.
    pub(in crate::connection) fn first_version(&self) -> Version {
        self.state
            .as_ref()
            .map_or(self.version, |state| state.offer.version)
    }

    /// Whether a packet's version is acceptable.
    pub(in crate::connection) fn may_be_of(&self, packet: &Protected<'_>) -> bool {
        let Some(version) = packet.version() else {
            return packet.packet_type() == PacketType::OneRtt;
        };
        let choice = self.state.as_ref().map(|state| &state.choice);
        match (packet.packet_type(), choice) {
            (PacketType::ZeroRtt, _) => version == self.first_version(),
            (PacketType::Initial, Some(Choice::Changed(_))) => {
                version == self.version || version == self.first_version()
            }
            (PacketType::Initial | PacketType::Handshake, Some(Choice::Open(listed, _))) => {
                listed.contains(&version)
            }
            _ => version == self.version,
        }
    }

    /// The keys that open an Initial packet of this version.
    pub(in crate::connection) fn initial_keys(&mut self, version: Version) -> Option<&Keys> {
        if version == self.version {
            return self.keys.get(Space::Initial).as_deref();
        }
        let state = self.state.as_mut()?;
        match &mut state.choice {
            Choice::Changed(keys) => Some(keys),
            Choice::Open(_, made) => {
                if made.as_ref().is_none_or(|(made, _)| *made != version) {
                    let client = state.client.as_ref()?;
                    let destination: ConnectionId =
                        client.retry_source.unwrap_or(state.original_destination);
                    let keys = client.crypto.initial_keys(version, &destination);
                    *made = Some((version, Box::new(keys)));
                }
                made.as_ref().map(|(_, keys)| &**keys)
            }
            Choice::Settled | Choice::Server(_) => None,
        }
    }

    /// An Initial packet of this version was opened.
    pub(in crate::connection) fn on_initial_opened(&mut self, version: Version) {
        let Some(state) = &mut self.state else {
            return;
        };
        match (&mut state.choice, self.side) {
            (Choice::Open(_, made), Side::Client) if version != self.version => {
                let Some((_, keys)) = made.take() else {
                    return;
                };
                state.choice = Choice::Settled;
                self.version = version;
                *self.keys.get_mut(Space::Initial) = Some(keys);
                self.session.follow(version);
            }
            (Choice::Changed(_), Side::Server) if version == self.version => {
                // The client knows the choice. RFC 9369 §4.1: not before.
                state.choice = Choice::Settled;
            }
            _ => {}
        }
    }

    /// Handshake data of the server arrived: the version of its packet is final.
    pub(in crate::connection) fn settle_version(&mut self) {
        if let Some(state) = &mut self.state
            && matches!(state.choice, Choice::Open(..))
        {
            state.choice = Choice::Settled;
        }
    }

    /// The server's session has read more CRYPTO data.
    pub(in crate::connection) fn take_version(&mut self) {
        let version = self.session.version();
        if version == self.version {
            return;
        }
        let Some(state) = &mut self.state else {
            return;
        };
        let Choice::Server(all) = std::mem::replace(&mut state.choice, Choice::Settled) else {
            return;
        };
        let keys = all.into_iter().find(|(known, _)| *known == version);
        let initial = self.keys.get_mut(Space::Initial);
        if let (Some((_, keys)), Some(first)) = (keys, initial.take()) {
            *initial = Some(Box::new(keys));
            state.choice = Choice::Changed(first);
            self.version = version;
        }
    }
}
