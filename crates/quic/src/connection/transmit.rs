//! Sending datagrams: which packets, and in which order frames are written into them (RFC 9000 §12.2, §13, §14).
//!
//! First a [`Permit`] determines what may be sent; then each space with something to send gets a packet in the
//! datagram. A buffer is filled with contiguous datagrams of one size as long as there is more to send. Challenges,
//! their responses and MTU probes are sent in datagrams of their own.

use lastbyte_congestion::Time;
use lastbyte_wire::{
    Encode, Side, TransportError, Writer,
    frame::{PathChallenge, PathResponse, Ping},
    packet::{PacketBuilder, PacketNumber, PacketType},
};

use super::{Connection, Fatal, Transmit, paths::PathRef, sender::Permit};
use crate::{
    ack::Urgency,
    anatomy::{Limit, Pause},
    close::CloseState,
    crypto::TAG_LEN,
    receipt::Receipt,
    recovery::Outgoing,
    space::Space,
    statistics::FrameKind,
    trace::{self, Event},
};

/// RFC 9000 §14.1, §8.2.1: minimum size of datagrams with Initial packets, and of those that validate a path.
pub(super) const DATAGRAM_MIN: usize = 1200;

/// To an address that is not validated, datagrams are not made smaller than this: they would be little more than headers.
const UNVALIDATED_MIN: usize = 128;

/// Whether a packet is padded to the end of its datagram (RFC 9000 §14.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Padding {
    No,
    Full,
    FullIfAckEliciting,
}

/// A finished packet.
struct BuiltPacket {
    len: usize,
    is_ack_eliciting: bool,
}

/// The type of the packet that carries the written frames.
#[derive(Clone, Copy, Default)]
pub(super) struct PacketFlags {
    pub(super) is_ack_eliciting: bool,
    pub(super) is_in_flight: bool,
    pub(super) is_mtu_probe: bool,
    pub(super) is_off_path: bool,
}

impl Connection {
    /// Writes the next datagrams into `buffer`, as many of one size as are due and fit; it must have room for at least
    /// one of [`Config::mtu`](super::Config::mtu)'s largest size. Returns what it wrote; `None` if there is nothing to
    /// send now. Call it until it returns `None`.
    pub fn poll_transmit(&mut self, now: Time, buffer: &mut [u8]) -> Option<Transmit> {
        let transmit = match self.close.state() {
            CloseState::Open => self
                .poll_path(now, buffer)
                .or_else(|| self.poll_mtu_probe(now, buffer))
                .or_else(|| self.poll_batch(now, buffer)),
            CloseState::Closing if self.close.wants_to_send() => self.poll_close(now, buffer),
            _ => None,
        };
        if self.tracer.is_on() {
            self.trace_turn(now, transmit.is_none());
        }
        transmit
    }

    /// Reports what sending has changed and, if the turn is over, why no more is sent.
    fn trace_turn(&mut self, now: Time, is_over: bool) {
        self.tracer.metrics(now, &self.recovery);
        if !is_over || !self.tracer.is_measuring() {
            return;
        }
        let limit = if self.sources.are_blocked() {
            Limit::FlowControl
        } else if !self.sources.want_to_send(Space::Application) {
            Limit::Application
        } else if self.recovery.window_left() < u64::from(self.paths.datagram_size()) {
            Limit::Window
        } else if self.sender.release_at().is_some() {
            Limit::Pacing
        } else {
            Limit::Application
        };
        let (streams, rtt) = (self.stream_statistics(), self.recovery.rtt());
        let pause = Pause {
            limit,
            stream_bytes: streams.data_sent.saturating_sub(streams.data_resent),
            resent_bytes: streams.data_resent,
            next_number: self.recovery.sent(Space::Application).next_number(),
            rtt_latest: rtt.latest(),
            rtt_min: rtt.min(),
        };
        self.tracer.pause(now, pause);
    }

    /// Datagrams of one size.
    fn poll_batch(&mut self, now: Time, buffer: &mut [u8]) -> Option<Transmit> {
        // Probes get through even where the path carries less than before, and then show that larger packets are lost.
        let is_probing = self.sender.has_probe(Space::Application);
        let size = usize::from(if is_probing {
            self.paths.safe_size()
        } else {
            self.paths.datagram_size()
        });
        let ecn = self.recovery.ecn().codepoint();
        let mut len = 0;
        let mut segment_len = 0;
        while let Some(room) = buffer.get_mut(len..len + self.room_for(now, size)) {
            if room.is_empty() || self.recovery.ecn().codepoint() != ecn {
                break;
            }
            let written = self.write_datagram(now, room);
            self.paths
                .current_mut()
                .amplification
                .on_datagram_sent(written as u64);
            len += written;
            if segment_len == 0 {
                segment_len = written;
            }
            if written == size && !is_probing {
                self.paths.mtu_mut().on_full_datagram();
            }
            if written < size || is_probing != (self.sender.has_probe(Space::Application)) {
                break;
            }
        }
        (len > 0).then_some(Transmit {
            path: self.paths.current().network,
            ecn,
            len,
            segment_len,
        })
    }

    /// The room of the next datagram, at most `size`: less if that exceeds what may be sent to an address that is not validated
    /// (RFC 9000 §8.1), and 0 if too little is left, or nothing is to be sent with it.
    #[inline]
    fn room_for(&self, now: Time, size: usize) -> usize {
        let budget = self.paths.budget();
        if budget >= size {
            size
        } else {
            self.room_within(now, budget)
        }
    }

    /// Not part of the loop over datagrams, so that what it calls is still inlined there.
    #[cold]
    fn room_within(&self, now: Time, budget: usize) -> usize {
        match Space::ALL.map(|space| self.wants_packet(now, space, Permit::All)) {
            // A datagram with an Initial packet has a minimum size (RFC 9000 §14.1), and is padded to its end.
            [true, ..] if budget >= DATAGRAM_MIN => DATAGRAM_MIN,
            [false, true, _] | [false, _, true] if budget >= UNVALIDATED_MIN => budget,
            _ => 0,
        }
    }

    fn write_datagram(&mut self, now: Time, buffer: &mut [u8]) -> usize {
        if self.handshake.has_one_space() {
            // The handshake is over, as for most of a connection: there is one space.
            return self.write_application_datagram(now, buffer);
        }
        let size = self.paths.datagram_size();
        let permit = self.sender.permit(now, &mut self.recovery, size);
        let wants = Space::ALL.map(|space| self.wants_packet(now, space, permit));
        let Some(last) = Space::ALL.into_iter().zip(wants).rfind(|(_, wants)| *wants) else {
            if permit == Permit::All {
                self.recovery.on_app_limited(now);
            }
            return 0;
        };
        let mut written = 0;
        let mut is_initial_eliciting = false;
        for (space, _) in Space::ALL
            .into_iter()
            .zip(wants)
            .filter(|(_, wants)| *wants)
        {
            let padding = self.padding(wants, is_initial_eliciting, space == last.0);
            let room = buffer.get_mut(written..).unwrap_or_default();
            let Some(built) = self.write_packet(now, space, permit, padding, room) else {
                continue;
            };
            written += built.len;
            is_initial_eliciting |= space == Space::Initial && built.is_ack_eliciting;
            if space == Space::Handshake && self.side() == Side::Client {
                self.discard(now, Space::Initial); // RFC 9001 §4.9.1
            }
        }
        written
    }

    fn write_application_datagram(&mut self, now: Time, buffer: &mut [u8]) -> usize {
        let space = Space::Application;
        if self.recovery.is_app_limited() && !self.wants_packet(now, space, Permit::All) {
            return 0;
        }
        let size = self.paths.datagram_size();
        let permit = self.sender.permit(now, &mut self.recovery, size);
        if self.wants_packet(now, space, permit) {
            let built = self.write_packet(now, space, permit, Padding::No, buffer);
            return built.map_or(0, |built| built.len);
        }
        if permit == Permit::All {
            self.recovery.on_app_limited(now);
        }
        0
    }

    /// The last packet of a datagram is padded to the datagram's size, whatever packets precede it. A server need not
    /// pad an Initial packet that only acknowledges, and must not: PADDING counts as in flight, and would never be
    /// acknowledged.
    fn padding(&self, wants: [bool; 3], is_initial_eliciting: bool, is_last: bool) -> Padding {
        let [has_initial, has_handshake, has_application] = wants;
        match self.side() {
            _ if !has_initial || !is_last => Padding::No,
            Side::Client => Padding::Full,
            Side::Server if is_initial_eliciting => Padding::Full,
            Side::Server if has_handshake || has_application => Padding::No,
            Side::Server => Padding::FullIfAckEliciting,
        }
    }

    /// Whether a packet of the space is worth sending.
    fn wants_packet(&self, now: Time, space: Space, permit: Permit) -> bool {
        self.handshake.can_send_in(space)
            && (self.sender.has_probe(space)
                || self.received.get(space).urgency(now) == Urgency::Due
                || (permit == Permit::All && self.sources.want_to_send(space)))
    }

    /// Writes one packet into `room`, seals it, and passes it to recovery. `None` if there was nothing to write.
    fn write_packet(
        &mut self,
        now: Time,
        space: Space,
        permit: Permit,
        padding: Padding,
        room: &mut [u8],
    ) -> Option<BuiltPacket> {
        let number = self.next_number(now, space)?;
        self.sender.receipts.clear();
        // Frames may fill everything but the room of the tag.
        let frames_end = room.len().checked_sub(TAG_LEN)?;
        let mut writer = Writer::new(room.get_mut(..frames_end)?);
        let packet = self.begin_packet(space, number, None, &mut writer)?;
        let payload_start = writer.position();
        let is_ack_eliciting = self.write_frames(now, space, permit, &mut writer);
        if writer.position() == payload_start {
            return None;
        }
        let pads = padding == Padding::Full
            || (padding == Padding::FullIfAckEliciting && is_ack_eliciting);
        if pads {
            self.pad(&mut writer)?;
        }
        let end = writer.position();
        let flags = PacketFlags {
            is_ack_eliciting,
            is_in_flight: is_ack_eliciting || pads,
            ..PacketFlags::default()
        };
        let len =
            self.finish_packet(now, space, number, packet, payload_start..end, flags, room)?;
        if is_ack_eliciting {
            self.sender.take_probe(space);
        }
        Some(BuiltPacket {
            len,
            is_ack_eliciting,
        })
    }

    /// The number of the next packet of a space.
    pub(super) fn next_number(&mut self, now: Time, space: Space) -> Option<PacketNumber> {
        if self.recovery.is_over_limit() && self.close.state() == CloseState::Open {
            let reason = "too many packets await acknowledgment";
            self.fail(now, Fatal::new(TransportError::INTERNAL_ERROR, reason));
            return None;
        }
        if space == Space::Application {
            let has_skipped = self
                .sender
                .skip_if_due(now, &mut self.recovery, &mut self.random);
            self.statistics.packets.skipped += u64::from(has_skipped);
            if let Some(keys) = self.handshake.one_rtt_mut()
                && keys.update_if_due(now)
            {
                // RFC 9001 §6.6
                let generation = keys.generation();
                self.tracer.event(now, &Event::KeysUpdated(generation));
            }
        }
        PacketNumber::new(self.recovery.sent(space).next_number())
    }

    fn pad(&mut self, writer: &mut Writer<'_>) -> Option<()> {
        let rest = writer.remaining();
        writer.zeros(rest).ok()?;
        self.statistics
            .frames_sent
            .add(FrameKind::Padding, rest as u64);
        Some(())
    }

    /// Writes the header. `path_cid` is the sequence number of the peer's connection ID, if it is not the one in use.
    pub(super) fn begin_packet(
        &mut self,
        space: Space,
        number: PacketNumber,
        path_cid: Option<u64>,
        writer: &mut Writer<'_>,
    ) -> Option<PacketBuilder> {
        let acknowledged = self
            .recovery
            .sent(space)
            .largest_acked()
            .and_then(PacketNumber::new);
        let number = number.truncate(acknowledged);
        let peer_ids = &self.sources.peer_ids;
        let destination = match path_cid {
            Some(sequence) => peer_ids.reserved(sequence)?,
            None => peer_ids.current(),
        };
        let fixed_bit = !(self.config.grease && self.peer.grease_quic_bit() && self.random.bit());
        self.handshake.begin_packet(
            space,
            number,
            destination,
            fixed_bit,
            &mut self.random,
            writer,
        )
    }

    /// Lets the sources write in order of priority. Returns whether any frame is ack-eliciting.
    fn write_frames(
        &mut self,
        now: Time,
        space: Space,
        permit: Permit,
        writer: &mut Writer<'_>,
    ) -> bool {
        let room = writer.remaining();
        self.write_ack(now, space, room, writer);
        let before = writer.position();
        let is_probe = self.sender.has_probe(space);
        let receipts = &mut self.sender.receipts;
        if permit == Permit::All || is_probe {
            let crypto = self.sources.crypto.get_mut(space);
            crypto.write_frames(writer, &mut |receipt| receipts.push(receipt));
            // The second probe of a handshake repeats the first, in case that is lost; a peer that receives only this
            // one needs it to start (RFC 9000 §17.2.2).
            if is_probe && writer.position() == before && space != Space::Application {
                crypto.send_again();
                crypto.write_frames(writer, &mut |receipt| receipts.push(receipt));
            }
            if space == Space::Application {
                let round_trip = self.recovery.rtt().smoothed();
                let is_one_rtt = self.handshake.one_rtt().is_some();
                self.sources
                    .write_application_frames(now, round_trip, is_one_rtt, writer, receipts);
            }
        }
        if is_probe && writer.position() == before && Ping.encode(writer).is_ok() {
            self.sender.receipts.push(Receipt::Ping);
        }
        if is_probe && space == Space::Application && self.handshake.one_rtt().is_some() {
            self.write_immediate_ack(writer);
        }
        if writer.position() == before
            && writer.remaining() < room
            && permit == Permit::All
            && self.sender.needs_ping(space)
            && Ping.encode(writer).is_ok()
        {
            self.sender.receipts.push(Receipt::Ping);
        }
        writer.position() > before
    }

    /// Acknowledges received packets if an acknowledgment is due, or if an earlier one may have been lost and this packet is
    /// a probe: the peer, whose probes back off until an acknowledgment arrives, sends what is missing without waiting for
    /// the next of them.
    #[inline]
    pub(super) fn write_ack(
        &mut self,
        now: Time,
        space: Space,
        room: usize,
        writer: &mut Writer<'_>,
    ) {
        let received = self.received.get_mut(space);
        let is_due = received.urgency(now) != Urgency::None
            || self.sender.has_probe(space) && received.is_unconfirmed();
        if !is_due || self.handshake.packet_type(space) == PacketType::ZeroRtt {
            return;
        }
        self.write_ack_anyway(now, space, room, writer);
    }

    /// Acknowledges received packets, whether or not an acknowledgment is due.
    fn write_ack_anyway(&mut self, now: Time, space: Space, room: usize, writer: &mut Writer<'_>) {
        let received = self.received.get_mut(space);
        if let Ok(Some(largest)) = received.write_ack(now, writer, room, ACK_DELAY_EXPONENT) {
            self.sender.receipts.push(Receipt::Ack { largest });
            if let (Space::Application, Some(keys), Some(largest)) = (
                space,
                self.handshake.one_rtt_mut(),
                PacketNumber::new(largest),
            ) {
                keys.on_ack_sent(largest);
            }
        }
    }

    fn write_immediate_ack(&mut self, writer: &mut Writer<'_>) {
        let before = writer.position();
        self.sources.ack_frequency.write_immediate_ack(writer);
        if writer.position() > before {
            self.statistics.frames_sent.add(FrameKind::ImmediateAck, 1);
        }
    }

    /// Seals a packet whose frames are in `payload` of `room`, counts it, and passes it to recovery with the receipts.
    /// Returns its length.
    #[expect(
        clippy::too_many_arguments,
        reason = "a packet on its way out: each is one word about it"
    )]
    pub(super) fn finish_packet(
        &mut self,
        now: Time,
        space: Space,
        number: PacketNumber,
        packet: PacketBuilder,
        payload: core::ops::Range<usize>,
        flags: PacketFlags,
        room: &mut [u8],
    ) -> Option<usize> {
        let packet_type = self.handshake.packet_type(space);
        if self.tracer.is_listening() {
            let event = Event::PacketSent(trace::Packet {
                packet_type,
                number: number.get(),
                len: payload.end + TAG_LEN,
                payload: room.get(payload.clone()).unwrap_or_default(),
                ecn: self.recovery.ecn().codepoint(),
                is_mtu_probe: flags.is_mtu_probe,
            });
            self.tracer.event(now, &event);
        }
        let is_open = self.close.state() == CloseState::Open;
        let sealed = self
            .handshake
            .seal(space, number, packet, payload.end, room, is_open)?;
        let len = match sealed {
            Ok(len) => len,
            Err(error) => {
                // Its frames would be lost unnoticed.
                let code = error.transport_error();
                self.fail(now, Fatal::new(code, "a packet could not be sealed"));
                return None;
            }
        };
        let packets = &mut self.statistics.packets;
        match packet_type {
            PacketType::Initial => packets.initial_sent += 1,
            PacketType::ZeroRtt => packets.zero_rtt_sent += 1,
            PacketType::Handshake => packets.handshake_sent += 1,
            PacketType::OneRtt => {}
        }
        if self.statistics.paths.promoted > 0 {
            self.statistics.paths.packets_sent_promoted += 1;
        }
        for receipt in &self.sender.receipts {
            if let Some(kind) = FrameKind::of_receipt(receipt) {
                self.statistics.frames_sent.add(kind, 1);
            }
        }
        let outgoing = Outgoing {
            space,
            bytes: u16::try_from(len).unwrap_or(u16::MAX),
            is_ack_eliciting: flags.is_ack_eliciting,
            is_in_flight: flags.is_in_flight,
            is_mtu_probe: flags.is_mtu_probe,
            is_off_path: flags.is_off_path,
        };
        self.recovery
            .on_sent(now, &outgoing, self.sender.receipts.drain(..));
        self.sender.on_packet_sent(space, flags.is_ack_eliciting);
        if flags.is_ack_eliciting {
            self.idle.on_ack_eliciting_sent(now);
        }
        Some(len)
    }

    // ---- datagrams with a single packet ---------------------------------------------------------------------------

    /// Writes a probe for a larger datagram size (RFC 9000 §14.4): under congestion control, not before the first RTT sample,
    /// not before there is data for a full datagram, and not to an unvalidated address.
    fn poll_mtu_probe(&mut self, now: Time, buffer: &mut [u8]) -> Option<Transmit> {
        if !self.handshake.is_confirmed()
            || !self.recovery.rtt().has_sample()
            || !self.paths.current().amplification.is_validated()
        {
            return None;
        }
        let size = u64::from(self.paths.datagram_size());
        let mtu = self.paths.mtu_mut();
        if mtu.waits_for_data() && self.sources.have_data_for(size) {
            mtu.on_full_datagram();
        }
        let size = mtu.next_probe(now)?;
        let room = buffer.get_mut(..usize::from(size))?;
        if self.recovery.window_left() < u64::from(size)
            || self.recovery.pacer_budget(now) < u64::from(size)
        {
            return None;
        }
        let number = self.next_number(now, Space::Application)?;
        self.sender.receipts.clear();
        let mut writer = Writer::new(room.get_mut(..usize::from(size) - TAG_LEN)?);
        let packet = self.begin_packet(Space::Application, number, None, &mut writer)?;
        let start = writer.position();
        Ping.encode(&mut writer).ok()?;
        self.sender.receipts.push(Receipt::Ping);
        self.write_immediate_ack(&mut writer);
        self.pad(&mut writer)?;
        let payload = start..writer.position();
        let flags = PacketFlags {
            is_ack_eliciting: true,
            is_in_flight: true,
            is_mtu_probe: true,
            is_off_path: false,
        };
        let ecn = self.recovery.ecn().codepoint();
        let len = self.finish_packet(
            now,
            Space::Application,
            number,
            packet,
            payload,
            flags,
            room,
        )?;
        self.paths.mtu_mut().on_probe_sent();
        Some(Transmit {
            path: self.paths.current().network,
            ecn,
            len,
            segment_len: len,
        })
    }

    /// Writes a challenge, a response, or both, on the path they concern (RFC 9000 §8.2).
    fn poll_path(&mut self, now: Time, buffer: &mut [u8]) -> Option<Transmit> {
        self.handshake.one_rtt()?;
        // Most connections know one path and have no challenge pending.
        let validation = &self.paths.current().validation;
        let has_answer = validation.has_answer();
        if self.paths.others_len() == 0 && !has_answer && !validation.wants_challenge(now) {
            return None;
        }
        // §8.2.2: a response is delayed only by congestion control.
        let size = self.paths.datagram_size();
        let may_answer = has_answer
            && (self.sender.has_probe(Space::Application)
                || self.sender.permit(now, &mut self.recovery, size) == Permit::All);
        if (may_answer || self.paths.current().validation.wants_challenge(now))
            && let Some(transmit) = self.write_path(now, PathRef::Current, buffer)
        {
            return Some(transmit);
        }
        let others = (0..self.paths.others_len()).map(PathRef::Other);
        others.into_iter().find_map(|other| {
            let validation = &self.paths.get(other)?.validation;
            (validation.has_answer() || validation.wants_challenge(now))
                .then(|| self.write_path(now, other, buffer))
                .flatten()
        })
    }

    /// Writes a datagram for one path.
    fn write_path(&mut self, now: Time, to: PathRef, buffer: &mut [u8]) -> Option<Transmit> {
        let is_current = to == PathRef::Current;
        let path = self.paths.get(to)?;
        let (network, path_cid) = (path.network, path.cid);
        let wants_challenge = path.validation.wants_challenge(now);
        let round_trip = self.recovery.rtt().smoothed();
        let pads = wants_challenge || path.validation.pads_answer(now, round_trip);
        // §8.2.1: full size, unless the limit for an unvalidated address is lower.
        let budget = usize::try_from(path.amplification.budget()).unwrap_or(usize::MAX);
        let size = DATAGRAM_MIN.min(budget);
        if size < PATH_DATAGRAM_MIN {
            return None;
        }
        let room = buffer.get_mut(..size)?;
        let number = self.next_number(now, Space::Application)?;
        self.sender.receipts.clear();
        let mut writer = Writer::new(room.get_mut(..size - TAG_LEN)?);
        let packet = self.begin_packet(Space::Application, number, path_cid, &mut writer)?;
        let start = writer.position();
        let data = self.random.bytes();
        let frames_sent = &mut self.statistics.frames_sent;
        let path = self.paths.get_mut(to)?;
        while writer.remaining() > PATH_FRAME_LEN
            && let Some(data) = path.validation.take_answer()
        {
            (PathResponse { data }).encode(&mut writer).ok()?;
            frames_sent.add(FrameKind::PathResponse, 1);
        }
        if wants_challenge && writer.remaining() >= PATH_FRAME_LEN {
            (PathChallenge { data }).encode(&mut writer).ok()?;
            let is_full = size >= DATAGRAM_MIN;
            path.validation.on_challenge_sent(now, data, is_full);
            frames_sent.add(FrameKind::PathChallenge, 1);
        }
        let size = if pads {
            path.validation.on_answer_padded(now);
            size
        } else {
            writer.position() + TAG_LEN
        };
        path.amplification.on_datagram_sent(size as u64);
        self.sender.receipts.push(Receipt::Path);
        if wants_challenge && is_current {
            // As long as the path is not validated, challenges can be all that may be sent. A peer whose window is full
            // responds once it receives an acknowledgment: before the handshake is confirmed it has no probes (RFC 9002
            // §6.2.1).
            let room = writer.remaining();
            self.write_ack_anyway(now, Space::Application, room, &mut writer);
        }
        if pads {
            self.pad(&mut writer)?;
        }
        let payload = start..writer.position();
        let flags = PacketFlags {
            is_ack_eliciting: true,
            is_in_flight: is_current,
            is_mtu_probe: false,
            is_off_path: !is_current,
        };
        let ecn = if is_current {
            self.recovery.ecn().codepoint()
        } else {
            crate::ack::Ecn::NotEct
        };
        let len = self.finish_packet(
            now,
            Space::Application,
            number,
            packet,
            payload,
            flags,
            room,
        )?;
        Some(Transmit {
            path: network,
            ecn,
            len,
            segment_len: len,
        })
    }
}

/// The default, which our transport parameters announce (RFC 9000 §18.2).
const ACK_DELAY_EXPONENT: u8 = 3;
/// Type and data of a `PATH_CHALLENGE` or `PATH_RESPONSE`.
const PATH_FRAME_LEN: usize = 9;
/// Room for a datagram with a challenge or response: the longest header, the frame and the tag are 50 bytes. Three
/// times the shortest packet that opens (21 bytes, RFC 9001 §5.4.2) is more, so the packet that reveals a migration
/// always permits a challenge.
pub(super) const PATH_DATAGRAM_MIN: usize = 60;
