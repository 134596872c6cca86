//! Datagrams in: packets, frames, and who is told of each (RFC 9000 §5.2, §12, §13).

use core::time::Duration;

use lastbyte_congestion::Time;
use lastbyte_wire::{
    ConnectionId, Side, TransportError,
    frame::{Ack, CloseCause, Crypto, Frame, Frames},
    packet::{Packet, PacketNumber, PacketType, Packets, Protected, Rules},
};

use super::{Connection, Fatal, NetworkPath, Stage, handshake::ByRef};
use crate::{
    ack::{EcnCodepoint, Received},
    close::{CloseReason, CloseState},
    crypto_stream::CryptoBufferExceeded,
    recovery::IncomingAck,
    space::Space,
    stream::{StreamError, StreamSink},
};

/// A packet whose keys were found to be right.
struct Opened<'a> {
    packet_type: PacketType,
    number: PacketNumber,
    destination: ConnectionId,
    source: Option<ConnectionId>,
    payload: &'a [u8],
    /// The generation of its 1-RTT keys.
    generation: u64,
}

impl From<StreamError> for Fatal {
    fn from(error: StreamError) -> Self {
        Self::new(error.code, error.reason)
    }
}

impl From<CryptoBufferExceeded> for Fatal {
    fn from(_: CryptoBufferExceeded) -> Self {
        Self::new(
            TransportError::CRYPTO_BUFFER_EXCEEDED,
            "handshake data too far ahead of what was received",
        )
    }
}

impl Connection {
    /// A datagram came for this connection. Its packets are opened in place. In-order stream data goes to `sink` while
    /// it is at hand. To be followed by [`Connection::poll_transmit`].
    pub fn handle_datagram(
        &mut self,
        now: Time,
        path: &NetworkPath,
        ecn: EcnCodepoint,
        datagram: &mut [u8],
        sink: &mut dyn StreamSink,
    ) {
        if !self.network.is_same(path) {
            return; // Migration is not joined yet.
        }
        self.amplification
            .on_datagram_received(datagram.len() as u64);
        if self.close.state() != CloseState::Open {
            self.close.on_received();
        }
        let rules = Rules {
            connection_id_len: self.local_id_len,
            grease_quic_bit: false,
        };
        for packet in Packets::new(datagram, rules) {
            let Ok(Packet::Protected(packet)) = packet else {
                continue;
            };
            if let Err(fatal) = self.handle_packet(now, packet, ecn, sink) {
                self.fail(now, fatal);
            }
        }
        if let Some(keys) = &mut self.one_rtt {
            keys.prepare();
        }
    }

    fn handle_packet(
        &mut self,
        now: Time,
        packet: Protected<'_>,
        ecn: EcnCodepoint,
        sink: &mut dyn StreamSink,
    ) -> Result<(), Fatal> {
        let Some(opened) = self.open(now, packet)? else {
            return Ok(());
        };
        let space = Space::of(opened.packet_type);
        if self.received.get(space).is_duplicate(opened.number) {
            return Ok(());
        }
        self.on_first_packets(now, &opened);
        let sender = match self.side {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        };
        let invalid = |error: lastbyte_wire::frame::FrameError| {
            Fatal::new(error.transport_error(), error.fault.reason())
        };
        let frames = Frames::new(opened.payload, opened.packet_type, sender).map_err(invalid)?;
        let mut is_ack_eliciting = false;
        for frame in frames {
            let frame = frame.map_err(invalid)?;
            is_ack_eliciting |= frame.is_ack_eliciting();
            if self.close.state() == CloseState::Open || matches!(frame, Frame::ConnectionClose(_))
            {
                self.handle_frame(now, space, &opened, &frame, sink)?;
            }
        }
        self.received.get_mut(space).on_received(&Received {
            now,
            number: opened.number,
            is_ack_eliciting,
            ecn,
        });
        self.idle.on_received(now);
        for space in Space::ALL {
            if let Some(largest) = self.rooms.acks_known.get_mut(space).take() {
                self.received.get_mut(space).on_ack_acknowledged(largest);
            }
        }
        self.drive_handshake(now);
        Ok(())
    }

    /// Opens a packet; `None` if it is to be dropped: no keys for it, or not authentic.
    fn open<'a>(&mut self, now: Time, packet: Protected<'a>) -> Result<Option<Opened<'a>>, Fatal> {
        let packet_type = packet.packet_type();
        let space = Space::of(packet_type);
        let largest = self.received.get(space).largest();
        let probe_timeout = self.probe_timeout();
        let (opened, generation) = match packet_type {
            PacketType::ZeroRtt => return Ok(None),
            PacketType::OneRtt => {
                // A server must not process them before the handshake is complete (RFC 9001 §5.7).
                let Some(keys) = self
                    .one_rtt
                    .as_mut()
                    .filter(|_| self.stage != Stage::Handshaking)
                else {
                    return Ok(None);
                };
                match keys.unprotect(packet, largest, now, probe_timeout) {
                    Ok(opened) => (opened.packet, opened.generation),
                    Err(error) => return dropped_or_fatal(error),
                }
            }
            PacketType::Initial | PacketType::Handshake => {
                let Some(keys) = self.keys.get(space) else {
                    return Ok(None);
                };
                match keys.open.unprotect(packet, largest) {
                    Ok(opened) => (opened, 0),
                    Err(error) => return dropped_or_fatal(error),
                }
            }
        };
        opened.packet.check_reserved_bits().map_err(|error| {
            let code = error
                .transport_error()
                .unwrap_or(TransportError::PROTOCOL_VIOLATION);
            Fatal::new(code, "reserved bits of a header are not zero")
        })?;
        let number = opened.number;
        let (destination, source) = (opened.packet.destination(), opened.packet.source());
        Ok(Some(Opened {
            packet_type,
            number,
            destination,
            source,
            payload: opened.into_payload(),
            generation,
        }))
    }

    /// What the first packets of a kind change.
    fn on_first_packets(&mut self, now: Time, opened: &Opened<'_>) {
        match (self.side, opened.packet_type) {
            // RFC 9000 §7.2: the server's choice of connection ID.
            (Side::Client, PacketType::Initial) => {
                if let (Some(source), Some(opening)) = (opened.source, &mut self.opening)
                    && opening.peer_id.is_none()
                {
                    opening.peer_id = Some(source);
                    self.rooms.peer_ids.replace_handshake_id(source);
                }
            }
            // RFC 9000 §8.1, RFC 9001 §4.9.1: the client has shown that it got our packets.
            (Side::Server, PacketType::Handshake) => {
                self.amplification.validate();
                self.discard(now, Space::Initial);
            }
            _ => {}
        }
    }

    /// Tells the frame's room.
    fn handle_frame(
        &mut self,
        now: Time,
        space: Space,
        opened: &Opened<'_>,
        frame: &Frame<'_>,
        sink: &mut dyn StreamSink,
    ) -> Result<(), Fatal> {
        let streams = &mut self.rooms.streams;
        match frame {
            Frame::Ack(ack) => self.handle_ack(now, space, ack, opened.generation)?,
            Frame::Crypto(crypto) => self.handle_crypto(space, crypto)?,
            Frame::Stream(stream) => streams.on_stream(stream, now, sink)?,
            Frame::ResetStream(reset) => streams.on_reset_stream(reset, now)?,
            Frame::StopSending(stop) => streams.on_stop_sending(stop)?,
            Frame::MaxData(limit) => streams.on_max_data(limit),
            Frame::MaxStreamData(limit) => streams.on_max_stream_data(limit)?,
            Frame::MaxStreams(limit) => streams.on_max_streams(limit),
            Frame::DataBlocked(blocked) => streams.on_data_blocked(blocked),
            Frame::StreamDataBlocked(blocked) => streams.on_stream_data_blocked(blocked)?,
            Frame::StreamsBlocked(blocked) => streams.on_streams_blocked(blocked),
            Frame::NewConnectionId(new) => {
                self.rooms
                    .peer_ids
                    .on_new(new)
                    .map_err(|error| Fatal::new(error.transport_error(), error.reason()))?;
            }
            Frame::RetireConnectionId(retire) => {
                let mut generator = ByRef(&mut *self.ids);
                self.rooms
                    .local_ids
                    .on_retire(
                        retire.sequence.get(),
                        &opened.destination,
                        &mut generator,
                        &mut |_| {},
                    )
                    .map_err(|_| {
                        Fatal::new(
                            TransportError::PROTOCOL_VIOLATION,
                            "RETIRE_CONNECTION_ID of an ID in use or never issued",
                        )
                    })?;
            }
            Frame::HandshakeDone(_) => self.confirm(now),
            Frame::ConnectionClose(close) => {
                let reason = match close.cause {
                    CloseCause::Transport { error, .. } => CloseReason::Peer { code: error },
                    CloseCause::Application { error_code } => CloseReason::PeerApplication {
                        code: error_code.get(),
                    },
                };
                let probe_timeout = self.probe_timeout();
                self.close.begin(now, reason, probe_timeout);
            }
            // No path is validated by us yet, no token kept, and no extension agreed on.
            Frame::Padding(_) | Frame::Ping(_) | Frame::NewToken(_) | Frame::PathResponse(_) => {}
            Frame::PathChallenge(challenge) => self.validation.on_challenge(challenge.data),
            Frame::ImmediateAck(_) | Frame::Datagram(_) | Frame::AckFrequency(_) => {
                return Err(Fatal::new(
                    TransportError::FRAME_ENCODING_ERROR,
                    "a frame of an extension that was not agreed on",
                ));
            }
        }
        Ok(())
    }

    fn handle_ack(
        &mut self,
        now: Time,
        space: Space,
        frame: &Ack<'_>,
        generation: u64,
    ) -> Result<(), Fatal> {
        let exponent = self
            .peer_parameters
            .as_ref()
            .map_or(3, |peer| peer.ack_delay_exponent);
        let micros = frame.delay().get().saturating_mul(1 << exponent.min(20));
        let ack_delay = match space {
            Space::Application => Duration::from_micros(micros),
            Space::Initial | Space::Handshake => Duration::ZERO,
        };
        let max_ack_delay = self.peer_max_ack_delay();
        self.has_handshake_ack |= space != Space::Initial;
        let ack = IncomingAck {
            now,
            space,
            frame,
            ack_delay,
            max_ack_delay: (self.stage == Stage::Confirmed).then_some(max_ack_delay),
            resets_backoff: self.side == Side::Server || self.has_handshake_ack,
        };
        self.recovery.on_ack(&ack, &mut self.rooms).map_err(|_| {
            Fatal::new(
                TransportError::PROTOCOL_VIOLATION,
                "an acknowledgment of a packet that was never sent",
            )
        })?;
        if self.recovery.rtt().has_sample() {
            self.rooms.streams.set_rtt(self.recovery.rtt().smoothed());
        }
        let probe_timeout = self.probe_timeout();
        if space == Space::Application
            && let Some(keys) = &mut self.one_rtt
        {
            keys.on_ack(frame.largest(), generation, now, probe_timeout)
                .map_err(|_| {
                    Fatal::new(
                        TransportError::KEY_UPDATE_ERROR,
                        "an acknowledgment of new keys under old ones",
                    )
                })?;
        }
        Ok(())
    }

    fn handle_crypto(&mut self, space: Space, frame: &Crypto<'_>) -> Result<(), Fatal> {
        let session = &mut self.session;
        self.rooms
            .crypto
            .get_mut(space)
            .on_received(frame.offset.get(), frame.data, &mut |data| {
                session.read_crypto(space, data).map_err(Fatal::from)
            })
    }
}

/// A packet that does not open is dropped, unless it proves that the connection is to be closed.
fn dropped_or_fatal<T>(error: crate::crypto::OpenError) -> Result<Option<T>, Fatal> {
    match error.transport_error() {
        None => Ok(None),
        Some(code) => Err(Fatal::new(
            code,
            "packets that could not be opened with these keys",
        )),
    }
}
