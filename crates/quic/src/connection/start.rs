//! The start of a connection: its inputs, and the transport parameters it sends (RFC 9000 §7, §18.2).

use core::time::Duration;
use std::{fmt, sync::Arc};

use lastbyte_congestion::Time;
use lastbyte_wire::{
    ConnectionId, Side, StatelessResetToken, VarInt,
    packet::Version,
    transport_parameters::{
        HandshakeConnectionIds, PreferredAddress, TransportParameters, VersionInformation,
    },
};

use super::{
    Config, Connection, NetworkPath,
    early::EarlyPackets,
    handshake::{Choice, better, listed},
};
use crate::{
    cid::ConnectionIdGenerator,
    crypto::{ClientCrypto, Keys, ServerCrypto, StartError, VersionOffer},
    path::Amplification,
    random::Seed,
};

/// The inputs of a client's connection.
pub struct ClientStart<'a> {
    /// The source of its keys and session. Kept until the handshake is confirmed.
    pub crypto: Arc<dyn ClientCrypto>,
    /// The server's name: a domain name or an IP address.
    pub server_name: &'a str,
    /// Its address.
    pub path: NetworkPath,
    /// The connection ID for the server to send to.
    pub local_id: ConnectionId,
    /// The initial destination connection ID: at least 8 random bytes (RFC 9000 §7.2).
    pub destination: ConnectionId,
    /// The token of an earlier connection to this server; empty for none (RFC 9000 §8.1.3).
    pub token: Vec<u8>,
    /// Generates further connection IDs.
    pub ids: Box<dyn ConnectionIdGenerator + Send>,
    /// The seed of its random numbers.
    pub seed: Seed,
}

/// The inputs of a server's connection: the fields of the client's first Initial packet, and the server's conclusions
/// from it.
pub struct ServerStart<'a> {
    /// The source of its session.
    pub crypto: &'a dyn ServerCrypto,
    /// The version of the packet.
    pub version: Version,
    /// The addresses of the packet.
    pub path: NetworkPath,
    /// The connection ID that the client sends to: after a Retry that of the Retry packet, otherwise a new one.
    pub local_id: ConnectionId,
    /// The source connection ID of the packet.
    pub peer_id: ConnectionId,
    /// The destination connection ID of the packet, from which the Initial keys are derived.
    pub destination: ConnectionId,
    /// The Initial keys, in the version of the packet ([`ServerCrypto::initial_keys`]).
    pub initial_keys: Keys,
    /// After a Retry, the content of its token: the destination connection ID of the client's very first packet, and
    /// the source connection ID of the Retry packet (RFC 9000 §7.3).
    pub retry: Option<RetryIds>,
    /// Whether a token has validated the client's address (RFC 9000 §8.1.2).
    pub is_address_validated: bool,
    /// Generates further connection IDs.
    pub ids: Box<dyn ConnectionIdGenerator + Send>,
    /// The seed of its random numbers.
    pub seed: Seed,
}

/// The connection IDs of a Retry (RFC 9000 §7.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryIds {
    /// The destination connection ID of the client's first Initial packet.
    pub original_destination: ConnectionId,
    /// The source connection ID of the Retry packet.
    pub retry_source: ConnectionId,
}

impl fmt::Debug for ClientStart<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientStart")
            .field("server_name", &self.server_name)
            .field("path", &self.path)
            .field("local_id", &self.local_id)
            .field("destination", &self.destination)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ServerStart<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerStart")
            .field("version", &self.version)
            .field("path", &self.path)
            .field("local_id", &self.local_id)
            .field("peer_id", &self.peer_id)
            .field("retry", &self.retry)
            .finish_non_exhaustive()
    }
}

impl Connection {
    /// Creates a client's connection.
    ///
    /// # Errors
    ///
    /// Returns [`StartError`] if the cryptography cannot start a handshake with this configuration or server name.
    pub fn client(
        now: Time,
        config: &Arc<Config>,
        start: ClientStart<'_>,
    ) -> Result<Self, StartError> {
        let version = config.versions.first().copied().unwrap_or(Version::V1);
        let listed = listed(config, version, start.crypto.can_follow());
        let offer = Offer {
            side: Side::Client,
            version,
            available: listed.clone(),
            local_id: start.local_id,
            reset_token: None,
            original_destination: None,
            retry_source: None,
            preferred: None,
        };
        let parameters = offer.parameters(config).to_vec();
        let session = start
            .crypto
            .start(version, start.server_name, &parameters)?;
        let keys = start.crypto.initial_keys(version, &start.destination);
        let state = HandshakeState {
            choice: Choice::of_client(listed),
            client: Some(ClientState {
                crypto: start.crypto,
                server_name: start.server_name.to_owned(),
                token: start.token,
                has_heard: false,
                retry_source: None,
                was_negotiated: false,
            }),
            original_destination: start.destination,
            peer_id: None,
            remembered: None,
            early: EarlyPackets::default(),
            reordered_0rtt: Vec::new(),
            offer,
        };
        Ok(Self::new(
            now,
            config,
            state,
            session,
            keys,
            (start.path, Amplification::unlimited()),
            (start.destination, start.ids, start.seed),
        ))
    }

    /// Creates a server's connection for a client's first datagram, which must then be passed to it.
    ///
    /// # Errors
    ///
    /// Returns [`StartError`] if the cryptography cannot start a handshake with this configuration or server name.
    pub fn server(
        now: Time,
        config: &Arc<Config>,
        start: ServerStart<'_>,
    ) -> Result<Self, StartError> {
        let mut ids = start.ids;
        let preferred = preferred_address(config, &mut *ids);
        let original_destination = start
            .retry
            .map_or(start.destination, |retry| retry.original_destination);
        let offer = Offer {
            side: Side::Server,
            version: start.version,
            available: config.versions.clone(),
            local_id: start.local_id,
            reset_token: Some(ids.reset_token(&start.local_id)),
            original_destination: Some(original_destination),
            retry_source: start.retry.map(|retry| retry.retry_source),
            preferred,
        };
        let parameters = offer.parameters(config).to_vec();
        let better: Vec<Version> = better(config, start.version).collect();
        let offers = better.iter().map(|version| VersionOffer {
            version: *version,
            parameters: offer.parameters_in(config, *version).to_vec(),
        });
        let session = start
            .crypto
            .start_with(start.version, &parameters, offers.collect())?;
        let keys_in = |version| start.crypto.initial_keys(version, &start.destination);
        let choice = better
            .into_iter()
            .map(|version| (version, keys_in(version)));
        let amplification = if start.is_address_validated {
            Amplification::unlimited()
        } else {
            Amplification::limited()
        };
        let state = HandshakeState {
            choice: Choice::of_server(choice.collect()),
            client: None,
            original_destination,
            peer_id: Some(start.peer_id),
            remembered: None,
            early: EarlyPackets::default(),
            reordered_0rtt: Vec::new(),
            offer,
        };
        Ok(Self::new(
            now,
            config,
            state,
            session,
            start.initial_keys,
            (start.path, amplification),
            (start.peer_id, ids, start.seed),
        ))
    }
}

/// State needed only until the handshake is confirmed.
pub(super) struct HandshakeState {
    pub(super) offer: Offer,
    /// The state of version negotiation.
    pub(super) choice: Choice,
    /// The destination connection ID of the client's first packet.
    pub(super) original_destination: ConnectionId,
    /// The source connection ID of the peer's first packet, which its transport parameters must confirm.
    pub(super) peer_id: Option<ConnectionId>,
    pub(super) client: Option<ClientState>,
    /// The server's transport parameters that a client with 0-RTT remembers.
    pub(super) remembered: Option<TransportParameters>,
    /// Packets waiting for keys.
    pub(super) early: EarlyPackets,
    /// 0-RTT datagrams that arrived before the client's first datagram, until that is processed.
    pub(super) reordered_0rtt: Vec<Vec<u8>>,
}

impl HandshakeState {
    /// Values that the peer's transport parameters must confirm (RFC 9000 §7.3); `None` before its first packet.
    pub(super) fn expected_ids(&self) -> Option<HandshakeConnectionIds> {
        Some(HandshakeConnectionIds {
            initial_source: self.peer_id?,
            original_destination: self.client.as_ref().map(|_| self.original_destination),
            retry_source: self.client.as_ref().and_then(|client| client.retry_source),
        })
    }
}

/// State that only clients need.
pub(super) struct ClientState {
    pub(super) crypto: Arc<dyn ClientCrypto>,
    pub(super) server_name: String,
    /// The token in all Initial packets: of an earlier connection, or of a Retry.
    pub(super) token: Vec<u8>,
    /// Whether a packet of the server was processed: Retry and Version Negotiation are no longer accepted.
    pub(super) has_heard: bool,
    /// The source connection ID of the Retry packet.
    pub(super) retry_source: Option<ConnectionId>,
    /// Whether the version was changed after a Version Negotiation packet (RFC 9368 §4).
    pub(super) was_negotiated: bool,
}

/// The inputs of our transport parameters besides the configuration.
pub(super) struct Offer {
    pub(super) side: Side,
    /// The version of the client's first packets.
    pub(super) version: Version,
    /// The versions that a server supports, or that a client can continue in from this one (RFC 9368 §3).
    pub(super) available: Vec<Version>,
    pub(super) local_id: ConnectionId,
    pub(super) reset_token: Option<StatelessResetToken>,
    pub(super) original_destination: Option<ConnectionId>,
    pub(super) retry_source: Option<ConnectionId>,
    pub(super) preferred: Option<Box<PreferredAddress>>,
}

impl Offer {
    /// Our transport parameters (RFC 9000 §18.2).
    pub(super) fn parameters(&self, config: &Config) -> TransportParameters {
        self.parameters_in(config, self.version)
    }

    /// Our transport parameters in this version.
    fn parameters_in(&self, config: &Config, version: Version) -> TransportParameters {
        let millis = |span: Duration| {
            VarInt::saturating(u64::try_from(span.as_millis()).unwrap_or(u64::MAX))
        };
        let mut parameters = TransportParameters {
            initial_source_connection_id: Some(self.local_id),
            original_destination_connection_id: self.original_destination,
            retry_source_connection_id: self.retry_source,
            stateless_reset_token: self.reset_token,
            max_idle_timeout_ms: millis(config.max_idle_timeout),
            max_ack_delay_ms: millis(config.max_ack_delay),
            active_connection_id_limit: VarInt::from_u32(ACTIVE_CONNECTION_ID_LIMIT as u32),
            disable_active_migration: !config.allows_migration,
            preferred_address: self.preferred.clone(),
            grease_quic_bit: config.grease,
            version_information: Some(VersionInformation {
                chosen: version.number(),
                available: self.available.iter().map(|known| known.number()).collect(),
            }),
            min_ack_delay_us: config
                .ack_frequency
                .then(|| MIN_ACK_DELAY.min(config.max_ack_delay))
                .and_then(|delay| VarInt::new(u64::try_from(delay.as_micros()).ok()?)),
            ..TransportParameters::default()
        };
        config.streams.announce(&mut parameters);
        parameters
    }
}

fn preferred_address(
    config: &Config,
    ids: &mut (dyn ConnectionIdGenerator + Send),
) -> Option<Box<PreferredAddress>> {
    let preferred = config.preferred_address;
    if preferred.ipv4.is_none() && preferred.ipv6.is_none() {
        return None;
    }
    let connection_id = ids.generate();
    Some(Box::new(PreferredAddress {
        ipv4: preferred.ipv4,
        ipv6: preferred.ipv6,
        connection_id,
        reset_token: ids.reset_token(&connection_id),
    }))
}

/// Number of the peer's connection IDs stored.
pub(super) const ACTIVE_CONNECTION_ID_LIMIT: usize = 4;
/// The shortest acknowledgment delay that a peer can request: the granularity of our timers.
pub(super) const MIN_ACK_DELAY: Duration = Duration::from_millis(1);
