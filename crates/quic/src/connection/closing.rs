//! Sending `CONNECTION_CLOSE` (RFC 9000 §10.2).

use core::time::Duration;

use lastbyte_congestion::Time;
use lastbyte_wire::{
    Encode, Side, TransportError, VarInt, Writer,
    frame::{CloseCause, ConnectionClose, FrameType},
    packet::PacketType,
};

use super::{
    Connection, Event, Fatal, Stage, Transmit,
    transmit::{DATAGRAM_MIN, PacketFlags},
};
use crate::{
    close::{Close, CloseReason, CloseState},
    crypto::TAG_LEN,
    space::Space,
    statistics::FrameKind,
    trace,
};

/// Space left beside an ACK frame for `CONNECTION_CLOSE`: the frame and a useful part of its reason phrase.
const CLOSE_ROOM: usize = 200;

impl Connection {
    /// Closes the connection with an application error code.
    pub fn close(&mut self, now: Time, code: u64) {
        let probe_timeout = self.probe_timeout();
        let reason = CloseReason::LocalApplication { code };
        self.end(now, reason, probe_timeout);
    }

    /// Whether the connection is closing or closed.
    pub fn is_closing(&self) -> bool {
        self.close.state() != CloseState::Open
    }

    /// The state of the close.
    pub(crate) const fn close_state(&self) -> &Close {
        &self.close
    }

    /// The reason phrase of the peer's `CONNECTION_CLOSE`, intended for humans; empty if there was none.
    pub fn close_phrase(&self) -> &str {
        self.close.phrase()
    }

    pub(super) fn fail(&mut self, now: Time, fatal: Fatal) {
        let probe_timeout = self.probe_timeout();
        let reason = CloseReason::Local {
            code: fatal.code,
            reason: fatal.reason,
            frame_type: fatal.frame_type,
        };
        self.end(now, reason, probe_timeout);
    }

    pub(super) fn end(&mut self, now: Time, reason: CloseReason, probe_timeout: Duration) {
        let was_open = !self.is_closing();
        self.close.begin(now, reason, probe_timeout);
        if was_open {
            self.events.push(Event::Closed(reason));
            self.tracer.event(now, &trace::Event::Closed(reason));
        }
    }

    /// Sends `CONNECTION_CLOSE` in every space for which the peer may have keys (§10.2.3).
    pub(super) fn poll_close(&mut self, now: Time, buffer: &mut [u8]) -> Option<Transmit> {
        let budget =
            usize::try_from(self.paths.current().amplification.budget()).unwrap_or(usize::MAX);
        let room = buffer.get_mut(..DATAGRAM_MIN.min(budget))?;
        self.close.on_sent();
        let spaces = Space::ALL.map(|space| {
            let has_keys = match self.handshake.packet_type(space) {
                PacketType::Initial | PacketType::Handshake => self.handshake.has_keys(space),
                // In 0-RTT packets only the application variant is permitted, and it is never needed there.
                PacketType::ZeroRtt => false,
                PacketType::OneRtt => self.stage() != Stage::Handshaking,
            };
            has_keys.then_some(space)
        });
        let last = spaces.into_iter().flatten().last()?;
        // §14.1: applies to every datagram of a client that contains an Initial packet.
        let pads = self.side() == Side::Client && spaces.contains(&Some(Space::Initial));
        let mut len = 0;
        for space in spaces.into_iter().flatten() {
            let room = room.get_mut(len..).unwrap_or_default();
            let pads = pads && space == last;
            len += self.write_close(now, space, pads, room).unwrap_or(0);
        }
        self.paths
            .current_mut()
            .amplification
            .on_datagram_sent(len as u64);
        (len > 0).then_some(Transmit {
            path: self.paths.current().network,
            ecn: crate::ack::Ecn::NotEct,
            len,
            segment_len: len,
        })
    }

    fn write_close(
        &mut self,
        now: Time,
        space: Space,
        pads: bool,
        room: &mut [u8],
    ) -> Option<usize> {
        let number = self.next_number(now, space)?;
        self.sender.receipts.clear();
        let frames_end = room.len().checked_sub(TAG_LEN)?;
        let mut writer = Writer::new(room.get_mut(..frames_end)?);
        let packet = self.begin_packet(space, number, None, &mut writer)?;
        let start = writer.position();
        // Everything received so far was processed, so the last acknowledgment covers all of it.
        let room_for_ack = writer.remaining().saturating_sub(CLOSE_ROOM);
        self.write_ack(now, space, room_for_ack, &mut writer);
        let (cause, reason) = match self.close.reason()? {
            // Before the handshake completes, an application error code would reveal too much (§10.2.3).
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
            CloseReason::Local {
                code,
                reason,
                frame_type,
            } => (
                CloseCause::Transport {
                    error: code,
                    frame_type,
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
        let kind = match cause {
            CloseCause::Transport { .. } => FrameKind::TransportClose,
            CloseCause::Application { .. } => FrameKind::ApplicationClose,
        };
        self.statistics.frames_sent.add(kind, 1);
        if pads {
            writer.zeros(writer.remaining()).ok()?;
        }
        let payload = start..writer.position();
        self.finish_packet(
            now,
            space,
            number,
            packet,
            payload,
            PacketFlags::default(),
            room,
        )
    }
}
