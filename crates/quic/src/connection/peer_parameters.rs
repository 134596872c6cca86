//! The peer's transport parameters (RFC 9000 §7.4, §18.2) and the defaults before they are known.
//!
//! Owns decoding, the checks against the handshake (§7.3, RFC 9368 §4), and the defaults.

use core::time::Duration;

use lastbyte_wire::{
    Side, TransportError, VarInt,
    packet::Version,
    transport_parameters::{
        HandshakeConnectionIds, PreferredAddress, TransportParameters, VersionInformation,
    },
};

use super::Fatal;
use crate::space::Space;

/// The peer's transport parameters, once they are confirmed.
#[derive(Debug, Default)]
pub(super) struct PeerParameters {
    known: Option<Box<TransportParameters>>,
}

/// Values that the parameters are checked against.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected<'a> {
    /// This side.
    pub(super) side: Side,
    /// The connection IDs of the handshake; `None` before the peer's first packet.
    pub(super) ids: Option<HandshakeConnectionIds>,
    /// The remembered parameters with which 0-RTT packets were sent.
    pub(super) remembered: Option<&'a TransportParameters>,
    /// The version of the client's first packets.
    pub(super) first_version: Version,
    /// The version in use.
    pub(super) version: Version,
    /// The configured versions, by preference.
    pub(super) versions: &'a [Version],
    /// Whether a client chose its version after a Version Negotiation packet.
    pub(super) was_negotiated: bool,
}

impl PeerParameters {
    /// The parameters, once they are known.
    pub(super) fn get(&self) -> Option<&TransportParameters> {
        self.known.as_deref()
    }

    /// The peer's parameters arrived.
    pub(super) fn accept(
        &mut self,
        encoded: &[u8],
        expected: &Expected<'_>,
    ) -> Result<&TransportParameters, Fatal> {
        let refused = |reason| Fatal::new(TransportError::TRANSPORT_PARAMETER_ERROR, reason);
        let peer = decode(encoded, expected.side.peer())?;
        let ids = expected
            .ids
            .ok_or_else(|| refused("transport parameters before an Initial packet"))?;
        peer.authenticate(&ids)
            .map_err(|error| refused(error.kind.reason()))?;
        if let Some(remembered) = expected.remembered
            && remembered.check_not_reduced(&peer).is_err()
        {
            return Err(Fatal::new(
                TransportError::PROTOCOL_VIOLATION,
                "transport parameters below what 0-RTT was accepted with",
            ));
        }
        check_version(expected, peer.version_information.as_ref())?;
        Ok(self.known.insert(Box::new(peer)))
    }

    /// The longest time the peer delays an acknowledgment; zero before it is known.
    pub(super) fn max_ack_delay(&self) -> Duration {
        let known = self.get();
        known.map_or(Duration::ZERO, |peer| {
            Duration::from_millis(peer.max_ack_delay_ms.get())
        })
    }

    /// How long the peer delayed an ACK frame with this encoded delay; zero before the handshake is complete (RFC 9000
    /// §13.2.5).
    pub(super) fn ack_delay(&self, space: Space, encoded: VarInt) -> Duration {
        if space != Space::Application {
            return Duration::ZERO;
        }
        let exponent = self.get().map_or(3, |peer| peer.ack_delay_exponent);
        Duration::from_micros(encoded.get().saturating_mul(1 << exponent.min(20)))
    }

    /// The longest UDP payload that the peer accepts.
    pub(super) fn max_udp_payload_size(&self) -> u64 {
        self.get()
            .map_or(TransportParameters::MAX_UDP_PAYLOAD_SIZE_MIN, |peer| {
                peer.max_udp_payload_size.get()
            })
    }

    /// The peer's limit on our connection IDs.
    pub(super) fn active_connection_id_limit(&self) -> u64 {
        self.get()
            .map_or(2, |peer| peer.active_connection_id_limit.get())
    }

    /// Whether the peer disabled migration (`disable_active_migration`).
    pub(super) fn disable_active_migration(&self) -> bool {
        self.get().is_some_and(|peer| peer.disable_active_migration)
    }

    /// The server's preferred address.
    pub(super) fn preferred_address(&self) -> Option<&PreferredAddress> {
        self.get()?.preferred_address.as_deref()
    }

    /// Whether the peer accepts packets whose fixed bit is 0 (RFC 9287).
    pub(super) fn grease_quic_bit(&self) -> bool {
        self.get().is_some_and(|peer| peer.grease_quic_bit)
    }
}

/// Decodes transport parameters sent by a peer in this role.
pub(super) fn decode(encoded: &[u8], peer: Side) -> Result<TransportParameters, Fatal> {
    TransportParameters::decode(encoded, peer)
        .map_err(|error| Fatal::new(error.transport_error(), error.kind.reason()))
}

/// Whether both sides agree on the version of the first flight and the one in use, so that no third party chose them
/// (RFC 9368 §4).
fn check_version(expected: &Expected<'_>, peer: Option<&VersionInformation>) -> Result<(), Fatal> {
    let refused = |reason| Fatal::new(TransportError::VERSION_NEGOTIATION_ERROR, reason);
    let (first, version) = (expected.first_version, expected.version);
    let Some(peer) = peer else {
        return if expected.was_negotiated {
            Err(refused(
                "no version information after a version negotiation",
            ))
        } else {
            Ok(())
        };
    };
    // For a client, the version of its first packets.
    let (meant, is_listed) = match expected.side {
        Side::Client => (version, true),
        Side::Server => (first, peer.available.contains(&version.number())),
    };
    if peer.chosen != meant.number() {
        return Err(refused("the peer means another version"));
    }
    if !is_listed && first != version {
        return Err(refused("the client cannot go on in this version"));
    }
    if expected.side == Side::Client && expected.was_negotiated {
        let mut versions = expected.versions.iter();
        let best = versions.find(|known| peer.available.contains(&known.number()));
        if best != Some(&first) {
            return Err(refused("the server would have spoken a better version"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
