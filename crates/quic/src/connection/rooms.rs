//! The rooms that write frames, and get their receipts back.

use lastbyte_congestion::Time;

use crate::{
    ack_frequency::AckFrequencyOut,
    address_token::NewTokenOut,
    cid::{LocalIds, PeerIds},
    crypto_stream::CryptoStream,
    datagram::Datagrams,
    path::MtuDiscovery,
    receipt::Receipt,
    recovery::{NewlyAcked, ReceiptSink, SentPacket, Verdict},
    space::{PerSpace, Space},
    stream::Streams,
    trace::{Event, LossTrigger, Trace},
};

/// Rooms, and frames too small for one.
pub(super) struct Rooms {
    pub(super) crypto: PerSpace<CryptoStream>,
    pub(super) streams: Streams,
    pub(super) datagrams: Datagrams,
    pub(super) local_ids: LocalIds,
    pub(super) peer_ids: PeerIds,
    pub(super) new_token: NewTokenOut,
    pub(super) ack_frequency: AckFrequencyOut,
    /// Of the path in use.
    pub(super) mtu: MtuDiscovery,
    /// A server has yet to say `HANDSHAKE_DONE`.
    pub(super) wants_handshake_done: bool,
    /// The largest number of each space that the peer knows we acknowledged, since the last look.
    pub(super) acks_known: PerSpace<Option<u64>>,
    pub(super) trace: Option<Box<dyn Trace>>,
}

impl Rooms {
    pub(super) fn new(
        streams: Streams,
        local_ids: LocalIds,
        peer_ids: PeerIds,
        mtu: MtuDiscovery,
    ) -> Self {
        Self {
            crypto: PerSpace::default(),
            streams,
            datagrams: Datagrams::default(),
            local_ids,
            peer_ids,
            new_token: NewTokenOut::default(),
            ack_frequency: AckFrequencyOut::default(),
            mtu,
            wants_handshake_done: false,
            acks_known: PerSpace::default(),
            trace: None,
        }
    }

    /// Tells the listener, if there is one.
    #[inline]
    pub(super) fn trace(&mut self, now: Time, event: &Event<'_>) {
        if let Some(trace) = &mut self.trace {
            trace.on_event(now, event);
        }
    }

    /// Whether anything but acknowledgments and probes waits for a packet of the space. Only streams and datagrams go in
    /// 0-RTT packets; nothing else can wait before there are 1-RTT keys.
    pub(super) fn want_to_send(&self, space: Space) -> bool {
        // Streams first, as they are what wants most of the time.
        (space == Space::Application
            && (self.streams.wants_to_send()
                || self.datagrams.wants_to_send()
                || self.wants_handshake_done
                || self.local_ids.wants_to_send()
                || self.peer_ids.wants_to_send()
                || self.new_token.wants_to_send()
                || self.ack_frequency.wants_to_send()))
            || self.crypto.get(space).wants_to_send()
    }
}

impl ReceiptSink for Rooms {
    fn acked(&mut self, space: Space, receipt: Receipt) {
        match receipt {
            Receipt::Crypto { offset, len } => {
                self.crypto.get_mut(space).on_acked(offset, u64::from(len));
            }
            Receipt::RetireConnectionId(sequence) => self.peer_ids.on_acked(sequence),
            Receipt::NewToken => self.new_token.on_acked(),
            Receipt::NewConnectionId(sequence) => self.local_ids.on_acked(sequence),
            Receipt::Ack { largest } => {
                let known = self.acks_known.get_mut(space);
                *known = (*known).max(Some(largest));
            }
            Receipt::HandshakeDone
            | Receipt::AckFrequency(_)
            | Receipt::Path
            | Receipt::Ping
            | Receipt::Datagram => {}
            of_streams => self.streams.acked(&of_streams),
        }
    }

    fn lost(&mut self, space: Space, receipt: Receipt) {
        match receipt {
            Receipt::Crypto { offset, len } => {
                self.crypto.get_mut(space).on_lost(offset, u64::from(len));
            }
            Receipt::NewConnectionId(sequence) => self.local_ids.on_lost(sequence),
            Receipt::RetireConnectionId(sequence) => self.peer_ids.on_lost(sequence),
            Receipt::NewToken => self.new_token.on_lost(),
            Receipt::HandshakeDone => self.wants_handshake_done = true,
            Receipt::AckFrequency(sequence) => self.ack_frequency.on_lost(sequence),
            // Datagrams are not sent again, and paths are asked anew.
            Receipt::Ack { .. } | Receipt::Path | Receipt::Ping | Receipt::Datagram => {}
            of_streams => self.streams.lost(&of_streams),
        }
    }

    fn packet_acked(&mut self, now: Time, space: Space, acked: &NewlyAcked) {
        let packet = &acked.packet;
        if packet.is_mtu_probe {
            self.mtu.on_probe_acked();
        } else if !packet.is_off_path {
            self.mtu.on_packet_acked(packet.bytes);
        }
        if self.trace.is_some() {
            self.trace(
                now,
                &Event::PacketAcked {
                    space,
                    number: acked.number,
                    len: packet.bytes,
                    is_late: acked.was_lost,
                },
            );
        }
    }

    fn packet_lost(
        &mut self,
        now: Time,
        space: Space,
        number: u64,
        packet: &SentPacket,
        verdict: Verdict,
    ) {
        if packet.is_mtu_probe {
            self.mtu.on_probe_lost();
        } else if !packet.is_off_path {
            self.mtu.on_packet_lost(now, packet.sent_at, packet.bytes);
        }
        if self.trace.is_some() {
            let trigger = match verdict {
                Verdict::LostByTime => LossTrigger::TimeThreshold,
                _ => LossTrigger::ReorderingThreshold,
            };
            self.trace(
                now,
                &Event::PacketLost {
                    space,
                    number,
                    len: packet.bytes,
                    trigger,
                },
            );
        }
    }
}

/// Takes no receipt back: what 0-RTT packets carried, once they are refused (RFC 9001 §4.6.2).
pub(super) struct Void;

impl ReceiptSink for Void {
    fn acked(&mut self, _: Space, _: Receipt) {}
    fn lost(&mut self, _: Space, _: Receipt) {}
}
