//! A client's first packet (RFC 9000 §5.2.2, §7.2, §8.1).
//!
//! Owns the decision to accept, to send a Retry, to refuse, or to ignore. Checks are made from cheap to expensive:
//! sizes, token, load, and last the packet's keys. The packet's frames are not processed here.

use std::sync::Arc;

use lastbyte_congestion::{SavedPath, Time};
use lastbyte_units::AddressPrefix;
use lastbyte_wire::{
    ConnectionId, Side, TransportError,
    packet::{DecodeConfig, Packet, PacketType, Packets, Version},
};

use super::{
    Answer, DropReason, Endpoint, EndpointConfigError, Handle, Handshake, RetryPolicy, Route,
    ServerConfig,
    address::{Proof, TokenStore, Tokens},
    demux::{InitialRoute, address_bytes},
    refusal::Refusal,
    retry::RetryPacket,
    route::is_initial_size,
};
use crate::{
    connection::{Connection, NetworkPath, RetryIds, ServerStart},
    crypto::{
        Keys,
        token::{TOKEN_MAX, TokenKeys, TokenPath},
    },
    random::Random,
};

/// The server's state besides its connections.
pub(super) struct Server {
    pub(super) config: Arc<ServerConfig>,
    pub(super) tokens: Tokens,
    pub(super) is_accepting: bool,
}

impl Server {
    pub(super) fn new(
        mut config: ServerConfig,
        random: &mut Random,
    ) -> Result<Self, EndpointConfigError> {
        let store = if let Some(store) = config.tokens.take() {
            store
        } else {
            let keys = TokenKeys::derive(&[random.bytes()]).ok_or(EndpointConfigError::Key)?;
            Arc::new(TokenStore::new(keys, random.bytes()))
        };
        Ok(Self {
            tokens: Tokens::new(store, config.token_lifetimes),
            config: Arc::new(config),
            is_accepting: true,
        })
    }
}

/// The header of an Initial packet.
#[derive(Clone, Copy)]
struct Initial {
    version: Version,
    destination: ConnectionId,
    source: ConnectionId,
    token: [u8; TOKEN_MAX],
    token_len: usize,
}

impl Initial {
    /// The token; empty if it is longer than any of ours.
    fn token(&self) -> &[u8] {
        self.token.get(..self.token_len).unwrap_or_default()
    }
}

impl<D> Endpoint<D> {
    /// A long header of a supported version, which belongs to no connection.
    pub(super) fn answer_initial(
        &mut self,
        now: Time,
        path: &NetworkPath,
        datagram: &mut [u8],
        make: impl FnOnce(Handle, &mut Connection) -> D,
    ) -> Route {
        let initial = match self.read_initial(path, datagram) {
            Ok(initial) => initial,
            Err(route) => return route,
        };
        if !is_initial_size(datagram) {
            return DropReason::TooSmall.into();
        }
        let Some(server) = &self.server else {
            return DropReason::NoServer.into();
        };
        let proof = server.tokens.check(
            initial.token(),
            path.remote,
            &initial.destination,
            self.wall_clock.read(now),
        );
        self.statistics.tokens_replayed += u64::from(proof == Proof::Replayed);
        // After a Retry the ID is ours.
        let is_long_enough = initial.destination.len() >= DESTINATION_MIN;
        if !is_long_enough && !matches!(proof, Proof::Retry(_)) {
            return DropReason::ShortDestination.into();
        }
        if proof == Proof::Invalid {
            return self.refuse(now, path, &initial, TransportError::INVALID_TOKEN);
        }
        let prefix = AddressPrefix::of(path.remote.ip());
        let is_full = !self.established.permits(&prefix, self.room());
        let room = self.limits.handshakes.saturating_sub(self.load.handshakes);
        if !server.is_accepting || is_full || room == 0 {
            return self.refuse(now, path, &initial, TransportError::CONNECTION_REFUSED);
        }
        let is_crowded = self.load.unvalidated >= self.limits.unvalidated;
        let must_show_address = match server.config.retry {
            RetryPolicy::Never => false,
            RetryPolicy::Always => true,
            RetryPolicy::UnderLoad { handshakes } => {
                is_crowded || self.load.handshakes >= handshakes
            }
        };
        if proof.is_validated() {
            let is_at_limit = self.prefixes.count(&prefix) >= self.limits.handshakes_per_prefix;
            if is_at_limit || !self.prefixes.permits(&prefix, room) {
                return self.refuse(now, path, &initial, TransportError::CONNECTION_REFUSED);
            }
        } else {
            if must_show_address {
                return self.send_retry(now, path, &initial);
            }
            if is_crowded {
                return self.refuse(now, path, &initial, TransportError::CONNECTION_REFUSED);
            }
        }
        self.accept(now, path, &initial, &proof, make)
    }

    /// Parses the header of the datagram's first packet. Leaves a copy of the packet in `scratch`. A datagram of 0-RTT
    /// packets is buffered, in case it arrived before its Initial packet.
    fn read_initial(&mut self, path: &NetworkPath, datagram: &mut [u8]) -> Result<Initial, Route> {
        let config = self.decode_config();
        let packet = match Packets::new(datagram, config).next() {
            Some(Ok(Packet::Protected(packet))) => packet,
            Some(Ok(_)) => return Err(DropReason::NotInitial.into()),
            _ => return Err(DropReason::Malformed.into()),
        };
        if packet.packet_type() == PacketType::ZeroRtt {
            let destination = packet.destination();
            return Err(self.keep_early(path, destination, datagram));
        }
        if packet.packet_type() != PacketType::Initial {
            return Err(DropReason::NotInitial.into());
        }
        let (Some(version), Some(source)) = (packet.version(), packet.source()) else {
            return Err(DropReason::Malformed.into());
        };
        let mut initial = Initial {
            version,
            destination: packet.destination(),
            source,
            token: [0; TOKEN_MAX],
            token_len: 0,
        };
        if let Some(token) = initial.token.get_mut(..packet.token().len()) {
            token.copy_from_slice(packet.token());
            initial.token_len = packet.token().len();
        }
        self.scratch.clear();
        self.scratch.extend_from_slice(packet.bytes());
        Ok(initial)
    }

    /// RFC 9000 §5.2.2: 0-RTT packets may be buffered for a while, in case they arrived before their Initial packet.
    fn keep_early(
        &mut self,
        path: &NetworkPath,
        destination: ConnectionId,
        datagram: &[u8],
    ) -> Route {
        let accepts = self
            .server
            .as_ref()
            .is_some_and(|server| server.is_accepting);
        let route = InitialRoute {
            remote: address_bytes(path.remote),
            destination,
        };
        if accepts && destination.len() >= DESTINATION_MIN && self.early.keep(route, datagram) {
            Route::Kept
        } else {
            DropReason::NotInitial.into()
        }
    }

    fn decode_config(&self) -> DecodeConfig {
        DecodeConfig {
            connection_id_len: self.ids.id_len(),
            grease_quic_bit: self
                .server
                .as_ref()
                .is_some_and(|server| server.config.connection.grease),
        }
    }

    /// Whether a datagram with a long header, which belongs to no connection here, belongs to a handshake that another
    /// endpoint has started: it starts with a Handshake packet, or with an Initial packet that is not protected with the
    /// keys of its destination ID. A client's first Initial packets are; later ones have the server's ID, and still the
    /// keys of the first (RFC 9001 §5.2).
    pub(super) fn continues_handshake(&mut self, datagram: &mut [u8]) -> bool {
        let config = self.decode_config();
        let Some(Ok(Packet::Protected(packet))) = Packets::new(datagram, config).next() else {
            return false;
        };
        let (Some(version), Some(server)) = (packet.version(), &self.server) else {
            return false;
        };
        match packet.packet_type() {
            PacketType::Handshake => true,
            PacketType::Initial if server.config.speaks(version) => {
                let keys = server
                    .config
                    .crypto
                    .initial_keys(version, &packet.destination());
                self.scratch.clear();
                self.scratch.extend_from_slice(packet.bytes());
                !self.is_authentic(&keys)
            }
            _ => false,
        }
    }

    /// Whether the packet in `scratch` is authentic.
    fn is_authentic(&mut self, keys: &Keys) -> bool {
        let config = self.decode_config();
        match Packets::new(&mut self.scratch, config).next() {
            Some(Ok(Packet::Protected(packet))) => keys.open.unprotect(packet, None).is_ok(),
            _ => false,
        }
    }

    /// Sends a Retry.
    fn send_retry(&mut self, now: Time, path: &NetworkPath, initial: &Initial) -> Route {
        let Some(server) = self.server.as_ref().filter(|_| !self.answers.is_full()) else {
            return DropReason::TooManyAnswers.into();
        };
        let ids = RetryIds {
            original_destination: initial.destination,
            retry_source: self.own_ids.generate(),
        };
        let wall_time = self.wall_clock.read(now);
        let nonce = self.random.bytes();
        let [unused_bits] = self.random.bytes();
        let token = server
            .tokens
            .seal_retry(&ids, path.remote, wall_time, nonce);
        let Some(token) = token else {
            return DropReason::TooManyAnswers.into();
        };
        let packet = RetryPacket {
            version: initial.version,
            client: initial.source,
            original_destination: initial.destination,
            source: ids.retry_source,
            token: &token,
            unused_bits,
        };
        self.answered(path, Answer::Retry, |buffer| packet.write(buffer))
    }

    /// Closes a connection that was not created.
    fn refuse(
        &mut self,
        now: Time,
        path: &NetworkPath,
        initial: &Initial,
        code: TransportError,
    ) -> Route {
        let Some(server) = self.server.as_ref().filter(|_| !self.answers.is_full()) else {
            return DropReason::TooManyAnswers.into();
        };
        if !self.buckets.refusals.take(now) {
            return DropReason::TooManyAnswers.into();
        }
        let keys = server
            .config
            .crypto
            .initial_keys(initial.version, &initial.destination);
        let refusal = Refusal {
            version: initial.version,
            client: initial.source,
            source: self.own_ids.generate(),
            code,
        };
        self.answered(path, Answer::Refused(code), |buffer| {
            refusal.write(buffer, &keys)
        })
    }

    fn accept(
        &mut self,
        now: Time,
        path: &NetworkPath,
        initial: &Initial,
        proof: &Proof,
        make: impl FnOnce(Handle, &mut Connection) -> D,
    ) -> Route {
        let Some(server) = &self.server else {
            return DropReason::NoServer.into();
        };
        let config = Arc::clone(&server.config);
        let keys = config
            .crypto
            .initial_keys(initial.version, &initial.destination);
        if !self.is_authentic(&keys) {
            return DropReason::NotAuthentic.into();
        }
        let mut saved_path = None;
        let (retry, is_validated) = match proof {
            Proof::Retry(ids) => (Some(*ids), true),
            // Not earlier: a packet that cannot be opened consumes no token.
            Proof::Earlier { path, is_validated } if self.spend(initial.token()) => {
                saved_path = path.and_then(|path| self.spend_path(&path));
                (None, *is_validated)
            }
            _ => (None, false),
        };
        let (local_id, ids) = self.new_ids();
        let start = ServerStart {
            crypto: &*config.crypto,
            version: initial.version,
            path: *path,
            local_id,
            peer_id: initial.source,
            destination: initial.destination,
            initial_keys: keys,
            retry,
            is_address_validated: is_validated,
            ids,
            seed: self.random.bytes(),
        };
        let chosen = config
            .choose
            .as_ref()
            .map(|choose| choose.choose(path.remote, self.random.number()));
        let settings = chosen.as_ref().unwrap_or(&config.connection);
        let Ok(mut connection) = Connection::server(now, settings, start) else {
            return self.refuse(now, path, initial, TransportError::CONNECTION_REFUSED);
        };
        if let Some(saved) = &saved_path {
            connection.on_saved_path(saved);
        }
        if retry.is_some() {
            self.statistics.accepted_after_retry += 1;
        } else if is_validated {
            self.statistics.accepted_with_token += 1;
        }
        let handshake = Handshake {
            deadline: now + self.limits.handshake_timeout,
            validated: is_validated.then(|| AddressPrefix::of(path.remote.ip())),
        };
        let route = InitialRoute {
            remote: address_bytes(path.remote),
            destination: initial.destination,
        };
        let reordered = self.early.take(&route);
        self.statistics.early_used += reordered.len() as u64;
        connection.set_reordered_0rtt(reordered);
        let handle = self.add(connection, Side::Server, handshake, make);
        if let Some(slot) = self.slots.get_mut(handle) {
            self.demux.open(handle, &mut slot.routes, route);
        }
        Route::Accepted(handle)
    }

    /// Consumes the path measurements of an earlier connection.
    fn spend_path(&self, path: &TokenPath) -> Option<SavedPath> {
        self.server.as_ref()?.tokens.spend_path(path)
    }

    /// Uses up a token of an earlier connection. Returns whether it was unused.
    fn spend(&self, token: &[u8]) -> bool {
        let server = self.server.as_ref();
        server.is_some_and(|server| server.tokens.spend(token))
    }
}

/// RFC 9000 §7.2.
pub(super) const DESTINATION_MIN: usize = 8;
