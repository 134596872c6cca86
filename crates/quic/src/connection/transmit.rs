//! Datagrams out: which packets, and in which order rooms write into them (RFC 9000 §12.2, §13, §14).
//!
//! What may be sent is decided first, as a [`Permit`]; then each space that wants to send gets a packet in the datagram.

use lastbyte_congestion::Time;
use lastbyte_wire::{
    Encode, Side, TransportError, VarInt, Writer,
    frame::{CloseCause, ConnectionClose, FrameType, HandshakeDone, PathResponse, Ping},
    packet::{LongHeader, LongKind, OpenPacket, PacketNumber, ShortHeader},
};

use super::{Connection, Fatal, Stage, Transmit, handshake::ByRef};
use crate::{
    ack::Urgency,
    close::{CloseReason, CloseState},
    crypto::TAG_LEN,
    receipt::Receipt,
    recovery::Outgoing,
    space::Space,
};

/// RFC 9000 §14.1: datagrams with Initial packets are at least so long.
const INITIAL_DATAGRAM_MIN: usize = 1200;

/// What may be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Permit {
    /// Anything.
    All,
    /// What is not congestion controlled: acknowledgments; and probes.
    AcksAndProbes,
}

/// Whether a packet is padded to the end of its datagram (RFC 9000 §14.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Padding {
    No,
    Full,
    FullIfAckEliciting,
}

/// A packet that was built.
struct Built {
    len: usize,
    is_ack_eliciting: bool,
}

impl Connection {
    /// Writes the next datagrams into `buffer`, as many of one size as there are to send now and as fit: it has room for
    /// 1500 bytes at least. Returns what is in it; `None` if there is nothing to send now. To be called until it says so.
    pub fn poll_transmit(&mut self, now: Time, buffer: &mut [u8]) -> Option<Transmit> {
        let allowed = usize::try_from(self.amplification.budget()).unwrap_or(usize::MAX);
        let size = usize::from(self.config.mtu.initial).max(INITIAL_DATAGRAM_MIN);
        if allowed < size {
            return None;
        }
        let buffer = buffer.get_mut(..size)?;
        let len = match self.close.state() {
            CloseState::Open => self.write_datagram(now, buffer),
            CloseState::Closing if self.close.wants_to_send() => {
                self.close.on_sent();
                self.write_close(now, buffer)
            }
            _ => 0,
        };
        self.amplification.on_datagram_sent(len as u64);
        (len > 0).then(|| Transmit {
            path: self.network,
            ecn: crate::ack::EcnCodepoint::NotEct,
            len,
            segment_len: len,
        })
    }

    /// Congestion control, and pacing.
    fn permit(&mut self, now: Time) -> Permit {
        let size = u64::from(self.config.mtu.initial);
        if self.recovery.window_left() < size {
            return Permit::AcksAndProbes;
        }
        if self.recovery.pacer_budget(now) < size {
            self.release_at = self.recovery.next_release(now);
            return Permit::AcksAndProbes;
        }
        Permit::All
    }

    fn write_datagram(&mut self, now: Time, buffer: &mut [u8]) -> usize {
        let permit = self.permit(now);
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
            if built.is_ack_eliciting {
                self.idle.on_ack_eliciting_sent(now);
            }
            if space == Space::Handshake && self.side == Side::Client {
                self.discard(now, Space::Initial); // RFC 9001 §4.9.1
            }
        }
        written
    }

    /// The last packet of a datagram pads, so that the datagram has its size, whatever the packets before were. A server
    /// need not for an Initial packet that only acknowledges, and must not want to: PADDING counts in flight, and nobody
    /// would acknowledge it.
    fn padding(&self, wants: [bool; 3], is_initial_eliciting: bool, is_last: bool) -> Padding {
        let [has_initial, has_handshake, has_application] = wants;
        match self.side {
            _ if !has_initial || !is_last => Padding::No,
            Side::Client => Padding::Full,
            Side::Server if is_initial_eliciting => Padding::Full,
            Side::Server if has_handshake || has_application => Padding::No,
            Side::Server => Padding::FullIfAckEliciting,
        }
    }

    /// Whether a packet of the space is worth sending.
    fn wants_packet(&self, now: Time, space: Space, permit: Permit) -> bool {
        let is_ack_due = self.received.get(space).urgency(now) == Urgency::Due;
        let probes = *self.probes.get(space) > 0;
        self.can_send_in(space)
            && (is_ack_due
                || probes
                || (permit == Permit::All
                    && (self.rooms.want_to_send(space)
                        || (space == Space::Application && self.validation.has_answer()))))
    }

    /// Writes one packet into `room`, seals it, and hands it to recovery. `None` if there was nothing to put into it.
    fn write_packet(
        &mut self,
        now: Time,
        space: Space,
        permit: Permit,
        padding: Padding,
        room: &mut [u8],
    ) -> Option<Built> {
        let number = PacketNumber::new(self.recovery.sent(space).next_number())?;
        self.receipts.clear();
        // Frames may fill all but the room of the tag.
        let frames_end = room.len().checked_sub(TAG_LEN)?;
        let mut writer = Writer::new(room.get_mut(..frames_end)?);
        if space == Space::Application
            && let Some(keys) = &mut self.one_rtt
        {
            keys.update_if_due(now); // RFC 9001 §6.6
        }
        let packet = self.begin_packet(space, number, &mut writer)?;
        let payload_start = writer.position();
        let is_ack_eliciting = self.write_frames(now, space, permit, &mut writer);
        if writer.position() == payload_start {
            return None;
        }
        let pads = padding == Padding::Full
            || (padding == Padding::FullIfAckEliciting && is_ack_eliciting);
        if pads {
            let rest = writer.remaining();
            writer.zeros(rest).ok()?;
        }
        let end = writer.position();
        self.seal(now, space, number, packet, end, room).map(|len| {
            let outgoing = Outgoing {
                space,
                bytes: u16::try_from(len).unwrap_or(u16::MAX),
                is_ack_eliciting,
                is_in_flight: is_ack_eliciting || pads,
                is_mtu_probe: false,
            };
            self.recovery
                .on_sent(now, &outgoing, self.receipts.drain(..));
            if is_ack_eliciting {
                let probes = self.probes.get_mut(space);
                *probes = probes.saturating_sub(1);
            }
            Built {
                len,
                is_ack_eliciting,
            }
        })
    }

    fn begin_packet(
        &mut self,
        space: Space,
        number: PacketNumber,
        writer: &mut Writer<'_>,
    ) -> Option<OpenPacket> {
        let acknowledged = self
            .recovery
            .sent(space)
            .largest_acked()
            .and_then(PacketNumber::new);
        let number = number.truncate(acknowledged);
        let destination = self.rooms.peer_ids.current();
        let kind = match space {
            Space::Initial => LongKind::Initial { token: &[] },
            Space::Handshake => LongKind::Handshake,
            Space::Application => {
                let header = ShortHeader {
                    destination,
                    number,
                    spin_bit: false,
                    key_phase: self.one_rtt.as_ref()?.key_phase(),
                    fixed_bit: true,
                };
                return header.begin(writer).ok();
            }
        };
        let header = LongHeader {
            kind,
            version: self.version,
            destination,
            source: self.local_id,
            number,
            fixed_bit: true,
        };
        header.begin(writer).ok()
    }

    /// The rooms, in the order in which they may write. Returns whether any of it elicits an acknowledgment.
    fn write_frames(
        &mut self,
        now: Time,
        space: Space,
        permit: Permit,
        writer: &mut Writer<'_>,
    ) -> bool {
        let receipts = &mut self.receipts;
        let received = self.received.get_mut(space);
        if received.urgency(now) != Urgency::None {
            let room = writer.remaining();
            if let Ok(Some(largest)) = received.write_ack(now, writer, room, ACK_DELAY_EXPONENT) {
                receipts.push(Receipt::Ack { largest });
                if let (Space::Application, Some(keys), Some(largest)) =
                    (space, &mut self.one_rtt, PacketNumber::new(largest))
                {
                    keys.on_ack_sent(largest);
                }
            }
        }
        let before = writer.position();
        let is_probe = *self.probes.get(space) > 0;
        if permit == Permit::All || is_probe {
            self.rooms
                .crypto
                .get_mut(space)
                .write_frames(writer, &mut |receipt| receipts.push(receipt));
            if space == Space::Application {
                self.write_application_frames(writer);
            }
        }
        if is_probe && writer.position() == before && Ping.encode(writer).is_ok() {
            self.receipts.push(Receipt::Ping);
        }
        writer.position() > before
    }

    fn write_application_frames(&mut self, writer: &mut Writer<'_>) {
        let receipts = &mut self.receipts;
        let rooms = &mut self.rooms;
        if rooms.wants_handshake_done && HandshakeDone.encode(writer).is_ok() {
            rooms.wants_handshake_done = false;
            receipts.push(Receipt::HandshakeDone);
        }
        while self.validation.has_answer() && writer.remaining() > PATH_RESPONSE_LEN {
            if let Some(data) = self.validation.take_answer()
                && (PathResponse { data }).encode(writer).is_ok()
            {
                receipts.push(Receipt::Path);
            }
        }
        let mut push = |receipt| receipts.push(receipt);
        rooms
            .local_ids
            .write_frames(writer, &ByRef(&mut *self.ids), &mut push);
        rooms.peer_ids.write_frames(writer, &mut push);
        rooms.streams.write_frames(writer, &mut push);
    }

    /// Puts the tag behind what was written up to `end`, seals the packet and masks its header. Returns its length. A
    /// packet that cannot be sealed ends the connection, as the frames in it would be lost without a word.
    fn seal(
        &mut self,
        now: Time,
        space: Space,
        number: PacketNumber,
        packet: OpenPacket,
        end: usize,
        room: &mut [u8],
    ) -> Option<usize> {
        let mut writer = Writer::new(room);
        writer.reserve(end).ok()?;
        let finished = packet.finish(&mut writer, TAG_LEN).ok()?;
        let written = writer.written_mut();
        let sealed = match space {
            Space::Initial | Space::Handshake => self
                .keys
                .get(space)
                .as_ref()?
                .seal
                .protect(number, &finished, written),
            Space::Application => self.one_rtt.as_mut()?.protect(number, &finished, written),
        };
        match sealed {
            Ok(()) => Some(finished.end),
            Err(error) => {
                self.fail(
                    now,
                    Fatal::new(error.transport_error(), "a packet could not be sealed"),
                );
                None
            }
        }
    }

    /// Says `CONNECTION_CLOSE` in every space that the peer may have keys for (RFC 9000 §10.2.3).
    fn write_close(&mut self, now: Time, buffer: &mut [u8]) -> usize {
        let mut written = 0;
        for space in Space::ALL {
            let has_keys = match space {
                Space::Initial | Space::Handshake => self.keys.get(space).is_some(),
                Space::Application => self.one_rtt.is_some() && self.stage != Stage::Handshaking,
            };
            if has_keys {
                let room = buffer.get_mut(written..).unwrap_or_default();
                written += self.write_close_packet(now, space, room).unwrap_or(0);
            }
        }
        written
    }

    fn write_close_packet(&mut self, now: Time, space: Space, room: &mut [u8]) -> Option<usize> {
        let number = PacketNumber::new(self.recovery.sent(space).next_number())?;
        let frames_end = room.len().checked_sub(TAG_LEN)?;
        let mut writer = Writer::new(room.get_mut(..frames_end)?);
        let packet = self.begin_packet(space, number, &mut writer)?;
        let (cause, reason) = match self.close.reason()? {
            // Before the handshake is done, an application's code would tell too much (RFC 9000 §10.2.3).
            CloseReason::LocalApplication { .. } if space != Space::Application => (
                CloseCause::Transport {
                    error: TransportError::APPLICATION_ERROR,
                    frame_type: FrameType::PADDING,
                },
                "",
            ),
            CloseReason::LocalApplication { code } => (
                CloseCause::Application {
                    error_code: VarInt::saturating(code),
                },
                "",
            ),
            CloseReason::Local { code, reason } => (
                CloseCause::Transport {
                    error: code,
                    frame_type: FrameType::PADDING,
                },
                reason,
            ),
            _ => return None,
        };
        let close = ConnectionClose {
            cause,
            reason: reason.as_bytes(),
        };
        close.fit(writer.remaining())?.encode(&mut writer).ok()?;
        let end = writer.position();
        let len = self.seal(now, space, number, packet, end, room)?;
        let outgoing = Outgoing {
            space,
            bytes: u16::try_from(len).unwrap_or(u16::MAX),
            is_ack_eliciting: false,
            is_in_flight: false,
            is_mtu_probe: false,
        };
        self.recovery.on_sent(now, &outgoing, []);
        Some(len)
    }
}

/// The default, which is what our transport parameters say (RFC 9000 §18.2).
const ACK_DELAY_EXPONENT: u8 = 3;
/// Type and data.
const PATH_RESPONSE_LEN: usize = 9;
