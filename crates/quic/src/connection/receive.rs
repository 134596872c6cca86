//! Receiving datagrams: path, packets, keys (RFC 9000 §5.2, §12.2, §13.1). The effect of frames is in `frames.rs`.

use lastbyte_congestion::Time;
use lastbyte_wire::{
    ConnectionId, Side, TransportError,
    frame::{Frame, FrameType, Frames},
    packet::{DecodeConfig, Packet, PacketType, Packets, Protected},
};

use super::{
    Connection, Fatal, NetworkPath,
    handshake::{Opened, Unopened},
    paths::{PathRef, UnknownPath},
    transmit::DATAGRAM_MIN,
};
use crate::{
    ack::{Ecn, Received},
    close::CloseState,
    space::Space,
    stream::StreamSink,
    trace::{self, DropReason, Event},
};

/// The datagram that contained a packet.
#[derive(Clone, Copy)]
pub(super) struct Datagram {
    pub(super) network: NetworkPath,
    pub(super) ecn: Ecn,
    /// Whether it arrived on another path than the one in use, as known at that time.
    is_elsewhere: bool,
    /// Its size in bytes, until it is credited to a path.
    bytes: u64,
    /// Whether its packets were buffered until keys were available.
    is_delayed: bool,
}

/// Properties of a packet's frames.
#[derive(Clone, Copy, Default)]
struct ReceivedFlags {
    is_ack_eliciting: bool,
    /// It contains only probing frames, so the connection does not migrate (RFC 9000 §9.1).
    is_probing: bool,
    has_crypto: bool,
}

impl Connection {
    /// Processes a datagram received on this path with this ECN mark. Its packets are opened in place. In-order stream
    /// data goes to `sink` directly from the packet. Call [`Connection::poll_transmit`] afterwards.
    pub fn handle_datagram(
        &mut self,
        now: Time,
        path: &NetworkPath,
        ecn: Ecn,
        datagram: &mut [u8],
        sink: &mut dyn StreamSink,
    ) {
        let bytes = datagram.len() as u64;
        self.statistics.bytes_received += bytes;
        let Some(place) = self.locate(path) else {
            self.tracer
                .packet_dropped(now, None, datagram.len(), DropReason::UnknownPath);
            return;
        };
        self.paths.credit(place, bytes);
        self.replay_reordered_0rtt(ecn);
        if self.close.state() != CloseState::Open {
            self.close.on_received();
        }
        let mut arrived = Datagram {
            network: *path,
            ecn,
            is_elsewhere: place != PathRef::Current,
            bytes,
            is_delayed: false,
        };
        self.handle_packets(now, &mut arrived, datagram, sink);
        self.handle_early(now, sink);
        if let Some(keys) = self.handshake.one_rtt_mut() {
            keys.prepare();
        }
        self.recovery_follows_mtu(now);
        self.tracer.metrics(now, &self.recovery);
    }

    fn handle_packets(
        &mut self,
        now: Time,
        arrived: &mut Datagram,
        datagram: &mut [u8],
        sink: &mut dyn StreamSink,
    ) {
        let config = DecodeConfig {
            connection_id_len: self.handshake.local_id_len(),
            grease_quic_bit: self.config.grease,
        };
        let len = datagram.len();
        // §14.1: a server discards the Initial packets of smaller datagrams, but no packets beside them.
        let is_small = self.side() == Side::Server && len < DATAGRAM_MIN;
        for packet in Packets::new(datagram, config) {
            match packet {
                Ok(Packet::Protected(packet))
                    if is_small && packet.packet_type() == PacketType::Initial =>
                {
                    let packet_type = Some(PacketType::Initial);
                    self.tracer
                        .packet_dropped(now, packet_type, len, DropReason::Malformed);
                }
                Ok(Packet::Protected(packet)) => {
                    if let Err(fatal) = self.handle_packet(now, packet, arrived, sink) {
                        self.fail(now, fatal);
                    }
                }
                Ok(Packet::Retry(retry)) => self.on_retry(now, &retry),
                Ok(Packet::VersionNegotiation(negotiation)) => {
                    self.on_version_negotiation(now, &negotiation);
                }
                Err(_) => self
                    .tracer
                    .packet_dropped(now, None, len, DropReason::Malformed),
            }
        }
    }

    /// 0-RTT datagrams that arrived before this one, the first of the connection, wait for keys from now on.
    fn replay_reordered_0rtt(&mut self, ecn: Ecn) {
        let bytes = self.handshake.replay_reordered_0rtt(ecn);
        if bytes > 0 {
            self.statistics.bytes_received += bytes;
            self.paths.credit(PathRef::Current, bytes);
        }
    }

    /// Processes packets that waited for keys, once new keys are available.
    fn handle_early(&mut self, now: Time, sink: &mut dyn StreamSink) {
        while let Some(packets) = self.handshake.take_early() {
            for mut packet in packets {
                let mut arrived = Datagram {
                    network: self.network(),
                    ecn: packet.ecn,
                    is_elsewhere: false,
                    bytes: 0,
                    is_delayed: true,
                };
                self.handle_packets(now, &mut arrived, &mut packet.bytes, sink);
            }
            self.handshake.free_if_confirmed();
        }
    }

    fn handle_packet(
        &mut self,
        now: Time,
        packet: Protected<'_>,
        arrived: &mut Datagram,
        sink: &mut dyn StreamSink,
    ) -> Result<(), Fatal> {
        let Some(opened) = self.open(now, packet, arrived)? else {
            return Ok(());
        };
        let space = Space::of(opened.packet_type);
        if self.received.get(space).is_duplicate(opened.number) {
            self.statistics.packets.duplicates += 1;
            let packet_type = Some(opened.packet_type);
            self.tracer
                .packet_dropped(now, packet_type, opened.len, DropReason::Duplicate);
            return Ok(());
        }
        self.count_received(&opened, arrived);
        if self.tracer.is_listening() {
            let packet = trace::Packet {
                packet_type: opened.packet_type,
                number: opened.number.get(),
                len: opened.len,
                payload: opened.payload,
                ecn: arrived.ecn,
                is_mtu_probe: false,
            };
            self.tracer.event(now, &Event::PacketReceived(packet));
        }
        self.on_first_packets(now, &opened);
        if arrived.is_elsewhere {
            // Before its frames, which may concern its path.
            let _ = self.register_origin(now, arrived, opened.destination);
        }
        let flags = self.handle_frames(now, space, &opened, arrived, sink)?;
        if arrived.is_elsewhere
            && self.register_origin(now, arrived, opened.destination)
                == Err(UnknownPath::NoConnectionId)
        {
            // The packet did not bring the missing connection ID either.
            self.statistics.paths.closed_without_id += 1;
        }
        let largest = self.received.get(space).largest();
        let is_newest = largest.is_none_or(|largest| opened.number > largest);
        let rtt = self.recovery.rtt();
        let min_rtt = rtt.has_sample().then(|| rtt.min());
        self.received.get_mut(space).on_received(&Received {
            now,
            number: opened.number,
            is_ack_eliciting: flags.is_ack_eliciting,
            ecn: arrived.ecn,
            min_rtt,
        });
        self.idle.on_received(now, flags.is_ack_eliciting);
        // ACK frames refer to the space of their packet.
        if let Some(largest) = self.sources.take_ack_known(space) {
            self.received.get_mut(space).on_ack_acknowledged(largest);
        }
        if is_newest && self.side() == Side::Server && opened.packet_type == PacketType::OneRtt {
            self.follow_peer(now, &opened, arrived, flags);
        }
        if flags.has_crypto && self.side() == Side::Client {
            self.handshake.settle_version();
        }
        if flags.has_crypto {
            self.advance_handshake(now)
                .map_err(|fatal| fatal.in_frame(FrameType::CRYPTO))?;
        } else if self.handshake.may_advance() {
            self.advance_handshake(now)?;
        }
        Ok(())
    }

    /// A packet from another address was opened: registers its path if possible.
    fn register_origin(
        &mut self,
        now: Time,
        arrived: &mut Datagram,
        destination: &[u8],
    ) -> Result<(), UnknownPath> {
        if self.locate(&arrived.network) == Some(PathRef::New) {
            self.register_path(now, arrived.network, arrived.bytes, destination)?;
            arrived.bytes = 0;
        }
        Ok(())
    }

    fn handle_frames(
        &mut self,
        now: Time,
        space: Space,
        opened: &Opened<'_>,
        arrived: &Datagram,
        sink: &mut dyn StreamSink,
    ) -> Result<ReceivedFlags, Fatal> {
        let sender = self.side().peer();
        let mut flags = ReceivedFlags {
            is_probing: true,
            ..ReceivedFlags::default()
        };
        let mut has_ack = false;
        let mut frames = Frames::new(opened.payload, opened.packet_type, sender)?;
        while let Some(frame) = frames.next() {
            let frame = frame?;
            self.statistics.frames_received.count(&frame);
            flags.is_ack_eliciting |= frame.is_ack_eliciting();
            flags.is_probing &= is_probing(&frame);
            flags.has_crypto |= matches!(frame, Frame::Crypto(_));
            if self.close.state() != CloseState::Open && !matches!(frame, Frame::ConnectionClose(_))
            {
                continue;
            }
            let in_frame = |fatal: Fatal| fatal.in_frame(frames.frame_type());
            let effect = self
                .handle_frame(now, space, opened, arrived, &frame, sink)
                .map_err(in_frame)?;
            // One ACK frame per packet is expected, with or without effect.
            let is_ack = matches!(frame, Frame::Ack(_));
            let is_second_ack = is_ack && std::mem::replace(&mut has_ack, true);
            if effect > 0 {
                self.flood.on_useful(effect);
            } else if frame.is_ack_eliciting() || is_second_ack {
                self.flood.on_useless_frame(now).map_err(|_| {
                    in_frame(Fatal::new(
                        TransportError::PROTOCOL_VIOLATION,
                        "too many control frames for what they got done",
                    ))
                })?;
            }
        }
        Ok(flags)
    }

    /// The newest packet shows a server the client's address (RFC 9000 §9.3).
    fn follow_peer(
        &mut self,
        now: Time,
        opened: &Opened<'_>,
        arrived: &Datagram,
        flags: ReceivedFlags,
    ) {
        if arrived.is_elsewhere {
            if let Some(PathRef::Other(index)) = self.locate(&arrived.network)
                && !flags.is_probing
                && self.close.state() == CloseState::Open
            {
                self.on_peer_moved(now, index);
            }
            if self.locate(&arrived.network) != Some(PathRef::Current) {
                return;
            }
        }
        self.paths.on_newest_packet(opened.destination);
    }

    /// Opens a packet; `None` if it is not processed: no keys for it, or it failed authentication.
    fn open<'a>(
        &mut self,
        now: Time,
        packet: Protected<'a>,
        arrived: &Datagram,
    ) -> Result<Option<Opened<'a>>, Fatal> {
        let packet_type = packet.packet_type();
        let len = packet.bytes().len();
        let largest = self.received.get(Space::of(packet_type)).largest();
        let (rtt, peer) = (self.recovery.rtt(), &self.peer);
        let probe_timeout = || rtt.probe_timeout(peer.max_ack_delay());
        let opened = self
            .handshake
            .open(now, packet, arrived.ecn, largest, probe_timeout);
        let opened = match opened {
            Ok(opened) => opened,
            Err(unopened) => {
                self.count_unopened(now, packet_type, len, unopened);
                return Option::from(unopened).map_or(Ok(None), Err);
            }
        };
        if opened.is_key_update {
            let event = Event::KeysUpdated(opened.generation);
            self.tracer.event(now, &event);
        }
        if opened.has_reserved_bits {
            return Err(Fatal::new(
                TransportError::PROTOCOL_VIOLATION,
                "reserved bits of a header are not zero",
            ));
        }
        Ok(Some(opened))
    }

    fn count_unopened(
        &mut self,
        now: Time,
        packet_type: PacketType,
        len: usize,
        unopened: Unopened,
    ) {
        let packets = &mut self.statistics.packets;
        let reason = match unopened {
            Unopened::NoKeys => return,
            Unopened::Invalid => DropReason::Malformed,
            Unopened::Kept(waiting) => {
                packets.delayed_max = packets.delayed_max.max(waiting as u64);
                DropReason::Buffered
            }
            Unopened::NoRoom => {
                packets.delayed_dropped += 1;
                DropReason::NoKeys
            }
            Unopened::NotAuthentic(_) => {
                packets.decryption_failed += 1;
                DropReason::DecryptionFailed
            }
        };
        self.tracer
            .packet_dropped(now, Some(packet_type), len, reason);
    }

    fn count_received(&mut self, opened: &Opened<'_>, arrived: &Datagram) {
        let space = Space::of(opened.packet_type);
        let largest = self.received.get(space).largest();
        let packets = &mut self.statistics.packets;
        packets.received += 1;
        packets.delayed_used += u64::from(arrived.is_delayed);
        packets.received_out_of_order +=
            u64::from(largest.is_some_and(|largest| opened.number < largest));
        match opened.packet_type {
            PacketType::Initial => packets.initial_received += 1,
            PacketType::ZeroRtt => packets.zero_rtt_received += 1,
            PacketType::Handshake => packets.handshake_received += 1,
            PacketType::OneRtt => {}
        }
        match arrived.ecn {
            Ecn::NotEct => {}
            Ecn::Ect0 => packets.received_ect0 += 1,
            Ecn::Ect1 => packets.received_ect1 += 1,
            Ecn::Ce => packets.received_ce += 1,
        }
    }

    /// The consequences of the first packets of each type.
    fn on_first_packets(&mut self, now: Time, opened: &Opened<'_>) {
        match (self.side(), opened.packet_type) {
            (Side::Client, PacketType::Initial) => {
                if let Some(source) = opened.source.and_then(ConnectionId::new)
                    && self.handshake.on_first_initial(source)
                {
                    self.sources.peer_ids.replace_handshake_id(source);
                }
            }
            // RFC 9000 §8.1, RFC 9001 §4.9.1: the client has shown that it received our packets.
            (Side::Server, PacketType::Handshake) => {
                self.paths.current_mut().amplification.validate();
                self.discard(now, Space::Initial);
            }
            _ => {}
        }
    }
}

/// Whether it is a probing frame (RFC 9000 §9.1).
const fn is_probing(frame: &Frame<'_>) -> bool {
    matches!(
        frame,
        Frame::PathChallenge(_)
            | Frame::PathResponse(_)
            | Frame::NewConnectionId(_)
            | Frame::Padding(_)
    )
}
