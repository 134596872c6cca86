//! Opening packets: which may be opened, with which keys, and which are buffered until keys are available (RFC 9001
//! §4.1.4, §5.7).

use core::time::Duration;
use std::collections::VecDeque;

use lastbyte_congestion::Time;
use lastbyte_wire::{
    ConnectionId, Side, TransportError,
    packet::{PacketNumber, PacketType, Protected},
};

use super::Handshake;
use crate::{
    Stage,
    ack::Ecn,
    connection::{Fatal, early::EarlyPacket},
    crypto::OpenError,
    space::Space,
};

/// An authenticated packet.
#[derive(Debug)]
pub(in crate::connection) struct Opened<'a> {
    pub(in crate::connection) packet_type: PacketType,
    pub(in crate::connection) number: PacketNumber,
    pub(in crate::connection) destination: &'a [u8],
    pub(in crate::connection) source: Option<&'a [u8]>,
    pub(in crate::connection) payload: &'a [u8],
    pub(in crate::connection) len: usize,
    /// The key generation of a 1-RTT packet.
    pub(in crate::connection) generation: u64,
    /// Whether this is the first packet of a key update by the peer.
    pub(in crate::connection) is_key_update: bool,
    /// Whether reserved header bits are set (RFC 9000 §17.2), which closes the connection.
    pub(in crate::connection) has_reserved_bits: bool,
}

/// Why a packet is not processed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::connection) enum Unopened {
    /// Its long header is invalid.
    Invalid,
    /// It is buffered until keys are available; the number is how many packets are buffered now.
    Kept(usize),
    /// There are no keys yet, and the buffer is full.
    NoRoom,
    /// Its keys are discarded or will never exist.
    NoKeys,
    /// It failed authentication. With an error, the connection must be closed (RFC 9001 §6.6).
    NotAuthentic(Option<TransportError>),
}

impl Handshake {
    /// Opens a packet. `largest` is the largest number received in its space.
    #[inline]
    pub(in crate::connection) fn open<'a>(
        &mut self,
        now: Time,
        packet: Protected<'a>,
        ecn: Ecn,
        largest: Option<PacketNumber>,
        probe_timeout: impl FnOnce() -> Duration,
    ) -> Result<Opened<'a>, Unopened> {
        let packet_type = packet.packet_type();
        let len = packet.bytes().len();
        let version = packet.version().unwrap_or(self.version);
        if !self.may_process(&packet) {
            return Err(Unopened::Invalid);
        }
        let is_handshaking = self.stage == Stage::Handshaking;
        let (mut generation, mut is_key_update) = (0, false);
        let opened = match packet_type {
            // A server must not process 1-RTT packets before the handshake is complete (RFC 9001 §5.7).
            PacketType::OneRtt => match self.one_rtt_mut().filter(|_| !is_handshaking) {
                None => return Err(self.keep(&packet, ecn)),
                Some(keys) => keys
                    .unprotect(packet, largest, now, probe_timeout)
                    .map(|opened| {
                        (generation, is_key_update) = (opened.generation, opened.updated);
                        opened.packet
                    }),
            },
            PacketType::ZeroRtt => match self.zero_rtt.as_ref() {
                // Useful only as long as the handshake has not accepted or rejected 0-RTT.
                None if !self.has_keys(Space::Handshake) => return Err(self.keep(&packet, ecn)),
                None => return Err(Unopened::NoKeys),
                Some(keys) => keys.unprotect(packet, largest),
            },
            PacketType::Initial => match self.initial_keys(version) {
                None => return Err(Unopened::NoKeys),
                Some(keys) => keys.open.unprotect(packet, largest),
            },
            PacketType::Handshake => match self.keys.get(Space::Handshake) {
                None if is_handshaking => return Err(self.keep(&packet, ecn)),
                None => return Err(Unopened::NoKeys),
                Some(keys) => keys.open.unprotect(packet, largest),
            },
        };
        let opened = match opened {
            Ok(opened) => opened,
            Err(error) => return Err(self.on_forged(packet_type, error)),
        };
        let has_reserved_bits = opened.packet.check_reserved_bits().is_err();
        if packet_type == PacketType::Initial && !has_reserved_bits {
            self.on_initial_opened(version);
        }
        Ok(Opened {
            packet_type,
            number: opened.number,
            destination: opened.packet.destination(),
            source: opened.packet.source(),
            payload: opened.into_payload(),
            len,
            generation,
            is_key_update,
            has_reserved_bits,
        })
    }

    /// Whether a long header is valid: an acceptable version, the peer's connection ID once it is known (RFC 9000
    /// §7.2), no token from a server (§17.2.2), no 0-RTT from a server.
    #[inline]
    fn may_process(&self, packet: &Protected<'_>) -> bool {
        if packet.packet_type() == PacketType::OneRtt {
            return true;
        }
        let known = self.state.as_ref().and_then(|state| state.peer_id);
        let is_of_peer = known.is_none_or(|known| packet.source() == Some(known));
        let is_by_server = self.side == Side::Client;
        self.may_be_of(packet)
            && is_of_peer
            && !(is_by_server
                && (!packet.token().is_empty() || packet.packet_type() == PacketType::ZeroRtt))
    }

    /// Forged packets of all types count towards the limit of the 1-RTT keys, once there are any.
    fn on_forged(&mut self, packet_type: PacketType, error: OpenError) -> Unopened {
        let error = match (&mut self.one_rtt, packet_type) {
            (_, PacketType::OneRtt) | (None, _) => error,
            (Some(keys), _) => keys.count_forged(1),
        };
        Unopened::NotAuthentic(error.transport_error())
    }

    // ---- buffered packets -----------------------------------------------------------------------------------------

    fn keep(&mut self, packet: &Protected<'_>, ecn: Ecn) -> Unopened {
        let state = self.state.as_mut();
        state
            .and_then(|state| state.early.keep(packet.bytes(), ecn))
            .map_or(Unopened::NoRoom, Unopened::Kept)
    }

    /// Takes the packets that waited for keys, once new keys are available.
    #[inline]
    pub(in crate::connection) fn take_early(&mut self) -> Option<VecDeque<EarlyPacket>> {
        if !std::mem::take(&mut self.has_new_keys) {
            return None;
        }
        Some(self.state.as_mut()?.early.take())
    }

    /// Releases state only needed until confirmation, if the handshake is confirmed.
    pub(in crate::connection) fn free_if_confirmed(&mut self) {
        if self.is_confirmed() {
            self.state = None;
        }
    }

    /// Buffers 0-RTT datagrams that arrived before the client's first datagram, which must be processed next.
    pub(in crate::connection) fn set_reordered_0rtt(&mut self, datagrams: Vec<Vec<u8>>) {
        if let Some(state) = &mut self.state {
            state.reordered_0rtt = datagrams;
        }
    }

    /// The datagrams that arrived before the connection's first wait for keys from now on. Their ECN marks are unknown;
    /// those of the first datagram are assumed, since client and path are the same. Returns their size in bytes.
    pub(in crate::connection) fn replay_reordered_0rtt(&mut self, ecn: Ecn) -> u64 {
        let Some(state) = &mut self.state else {
            return 0;
        };
        let mut bytes = 0;
        for datagram in std::mem::take(&mut state.reordered_0rtt) {
            bytes += datagram.len() as u64;
            state.early.keep(&datagram, ecn);
        }
        bytes
    }

    /// A client opened an Initial packet of the server. Returns whether it is the first, whose source connection ID is
    /// the server's choice (RFC 9000 §7.2).
    pub(in crate::connection) fn on_first_initial(&mut self, source: ConnectionId) -> bool {
        let state = self.state.as_mut();
        let Some(state) = state.filter(|state| state.peer_id.is_none()) else {
            return false;
        };
        state.peer_id = Some(source);
        if let Some(client) = &mut state.client {
            client.has_heard = true;
        }
        true
    }
}

impl From<Unopened> for Option<Fatal> {
    fn from(unopened: Unopened) -> Self {
        let Unopened::NotAuthentic(Some(code)) = unopened else {
            return None;
        };
        let reason = "packets that could not be opened with these keys";
        Some(Fatal::new(code, reason))
    }
}
