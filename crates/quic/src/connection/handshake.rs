//! The handshake's part of a connection (RFC 9001 §4): what the session has to say, new keys, transport parameters, 0-RTT,
//! and the end of old keys.

use core::time::Duration;

use lastbyte_congestion::Time;
use lastbyte_wire::{Side, packet::PacketType};

use super::{
    Connection, Event, Fatal, Stage,
    frame_sources::Discard,
    peer_parameters::{self, Expected},
    start::Opening,
};
use crate::{
    ack::{AckPolicy, ReceivedPackets},
    crypto::{EarlyData, NewKeys},
    space::Space,
    trace,
};

impl Connection {
    /// Takes what the session has to say and what follows from it; closes the connection if it failed.
    pub(super) fn drive_handshake(&mut self, now: Time) {
        if let Err(fatal) = self.advance_handshake(now) {
            self.fail(now, fatal);
        }
    }

    fn advance_handshake(&mut self, now: Time) -> Result<(), Fatal> {
        self.take_version();
        let mut is_done = self.stage == Stage::Confirmed;
        for space in Space::ALL {
            let out = self.sources.crypto.get_mut(space).outgoing();
            is_done &= self.session.write_crypto(space, out) == 0;
        }
        while let Some(keys) = self.session.next_keys() {
            is_done = false;
            self.install(now, keys)?;
        }
        self.session_is_done = is_done;
        self.take_zero_rtt_answer(now);
        self.take_peer_parameters(now)?;
        if self.stage == Stage::Handshaking && !self.session.is_handshaking() {
            self.reach(now, Stage::Complete);
            self.has_new_keys = true;
            if self.side == Side::Server {
                // Late 0-RTT packets are worth something for a while (RFC 9001 §4.9.3).
                self.zero_rtt_until = Some(now + self.probe_timeout().saturating_mul(3));
                self.sources.send_handshake_done();
                self.confirm(now);
            } else {
                self.zero_rtt = None; // RFC 9001 §4.9.3
            }
        }
        Ok(())
    }

    fn install(&mut self, now: Time, keys: NewKeys) -> Result<(), Fatal> {
        let packet_type = match keys {
            NewKeys::Handshake(keys) => {
                *self.keys.get_mut(Space::Handshake) = Some(Box::new(keys));
                PacketType::Handshake
            }
            NewKeys::OneRtt(mut keys) => {
                // RFC 9001 §6.6: those of the handshake count too.
                let _ = keys.count_forged(self.statistics.packets.decryption_failed);
                self.one_rtt = Some(keys);
                PacketType::OneRtt
            }
            NewKeys::ZeroRtt(keys) => {
                self.zero_rtt = Some(Box::new(keys));
                if self.side == Side::Client {
                    self.recall_parameters()?;
                }
                PacketType::ZeroRtt
            }
        };
        self.has_new_keys = true;
        self.tracer
            .event(now, &trace::Event::KeysInstalled(packet_type));
        Ok(())
    }

    /// A client that sends 0-RTT goes by what it remembers of the server (RFC 9000 §7.4.1).
    fn recall_parameters(&mut self) -> Result<(), Fatal> {
        let Some(encoded) = self.session.remembered_parameters() else {
            return Ok(());
        };
        let remembered = peer_parameters::decode(encoded, Side::Server)?.remembered();
        self.sources.streams.on_peer_parameters(&remembered);
        self.sources
            .datagrams
            .on_peer_parameter(remembered.max_datagram_frame_size.get());
        if let Some(opening) = &mut self.opening {
            opening.remembered = Some(remembered);
        }
        Ok(())
    }

    /// A client learns whether its 0-RTT packets count (RFC 9001 §4.6.2).
    fn take_zero_rtt_answer(&mut self, now: Time) {
        if self.side != Side::Client || self.zero_rtt.is_none() {
            return;
        }
        match self.session.early_data() {
            EarlyData::Accepted => {
                self.events.push(Event::ZeroRtt { is_accepted: true });
                self.zero_rtt = None;
            }
            EarlyData::Rejected | EarlyData::Unavailable => {
                self.events.push(Event::ZeroRtt { is_accepted: false });
                self.zero_rtt = None;
                self.recovery.give_up(now, Space::Application, &mut Discard);
                self.sources.streams.on_zero_rtt_rejected();
                if let Some(opening) = &mut self.opening {
                    opening.remembered = None;
                }
            }
            EarlyData::Offered => {}
        }
    }

    /// The peer's transport parameters, once they are there (RFC 9000 §7.4).
    fn take_peer_parameters(&mut self, now: Time) -> Result<(), Fatal> {
        if self.peer.get().is_some() {
            return Ok(());
        }
        let Some(encoded) = self.session.peer_parameters() else {
            return Ok(());
        };
        let opening = self.opening.as_deref();
        let client = opening.and_then(|opening| opening.client.as_ref());
        let expected = Expected {
            side: self.side,
            ids: opening.and_then(Opening::expected_ids),
            remembered: opening.and_then(|opening| opening.remembered.as_ref()),
            first_version: self.first_version(),
            version: self.version,
            versions: &self.config.versions,
            was_negotiated: client.is_some_and(|client| client.was_negotiated),
        };
        let peer = self.peer.accept(encoded, &expected)?;
        let sources = &mut self.sources;
        sources.streams.on_peer_parameters(peer);
        sources
            .datagrams
            .on_peer_parameter(peer.max_datagram_frame_size.get());
        self.idle
            .on_peer_timeout(Duration::from_millis(peer.max_idle_timeout_ms.get()));
        if let Some(token) = peer.stateless_reset_token {
            sources.peer_ids.set_reset_token(token);
        }
        if let Some(preferred) = &peer.preferred_address {
            sources
                .peer_ids
                .add_of_preferred_address(preferred.connection_id, preferred.reset_token);
        }
        sources.ack_frequency.on_peer_parameters(
            self.config.ack_frequency && peer.min_ack_delay_us.is_some(),
            Duration::from_millis(peer.max_ack_delay_ms.get()),
        );
        let mtu = self.paths.mtu_mut();
        mtu.limit(peer.max_udp_payload_size.get());
        self.recovery_follows_mtu(now);
        Ok(())
    }

    fn reach(&mut self, now: Time, stage: Stage) {
        self.stage = stage;
        let event = match stage {
            Stage::Handshaking => return,
            Stage::Complete => Event::HandshakeComplete,
            Stage::Confirmed => Event::HandshakeConfirmed,
        };
        self.events.push(event);
        self.tracer.event(now, &trace::Event::Stage(stage));
    }

    /// The handshake is confirmed (RFC 9001 §4.1.2).
    pub(super) fn confirm(&mut self, now: Time) {
        if self.stage == Stage::Confirmed {
            return;
        }
        self.reach(now, Stage::Confirmed);
        // RFC 9002 §A.8: that says as much as an acknowledgment of a Handshake packet, which may have been lost.
        self.has_handshake_ack = true;
        // What is needed until then is given back.
        self.has_new_keys = true;
        self.statistics.handshake_confirmed_after = Some(now.since(self.started_at));
        self.discard(now, Space::Handshake);
        if let Some(keys) = &mut self.one_rtt {
            keys.on_handshake_confirmed();
        }
        let limit = self.peer.active_connection_id_limit();
        self.sources.local_ids.start(limit);
        let max_udp_payload_size = self.peer.max_udp_payload_size();
        self.paths.mtu_mut().start(max_udp_payload_size);
        self.follow_preferred_address(now);
    }

    /// The keys of a space are done with (RFC 9001 §4.9).
    pub(super) fn discard(&mut self, now: Time, space: Space) {
        if self.keys.get_mut(space).take().is_some() {
            self.recovery.discard_space(now, space);
            self.sender.discard(space);
            *self.received.get_mut(space) = ReceivedPackets::new(AckPolicy::immediate());
            self.sources.discard(space);
            let packet_type = match space {
                Space::Initial => PacketType::Initial,
                _ => PacketType::Handshake,
            };
            self.tracer
                .event(now, &trace::Event::KeysDiscarded(packet_type));
        }
    }
}
