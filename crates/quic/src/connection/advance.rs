//! Handshake progress (RFC 9001 §4) and its consequences: new keys, the peer's transport parameters, acceptance or
//! rejection of 0-RTT, discarded keys.

use core::time::Duration;

use lastbyte_congestion::Time;
use lastbyte_wire::{Side, packet::PacketType};

use super::{Connection, Event, Fatal, frame_sources::Discard};
use crate::{space::Space, trace};

impl Connection {
    /// Processes the session's output and the resulting state changes; closes the connection if the session failed.
    pub(super) fn drive_handshake(&mut self, now: Time) {
        if let Err(fatal) = self.advance_handshake(now) {
            self.fail(now, fatal);
        }
    }

    pub(super) fn advance_handshake(&mut self, now: Time) -> Result<(), Fatal> {
        self.handshake.write_crypto(&mut self.sources.crypto);
        let forged = self.statistics.packets.decryption_failed;
        while let Some(packet_type) = self.handshake.install_next_keys(forged) {
            if packet_type == PacketType::ZeroRtt && self.side() == Side::Client {
                self.recall_parameters()?;
            }
            self.tracer
                .event(now, &trace::Event::KeysInstalled(packet_type));
        }
        self.take_early_data_answer(now);
        self.take_peer_parameters(now)?;
        if self.handshake.complete() {
            self.on_stage(now, Event::HandshakeComplete);
            if self.side() == Side::Server {
                let until = now + self.probe_timeout().saturating_mul(3);
                self.handshake.keep_zero_rtt_until(until);
                self.sources.send_handshake_done();
                self.confirm(now);
            }
        }
        Ok(())
    }

    /// A client that sends 0-RTT applies the transport parameters that it remembers of the server (RFC 9000 §7.4.1).
    fn recall_parameters(&mut self) -> Result<(), Fatal> {
        if let Some(remembered) = self.handshake.recall_parameters()? {
            self.sources.streams.on_peer_parameters(remembered);
        }
        Ok(())
    }

    /// A client learns whether the server accepted its 0-RTT packets (RFC 9001 §4.6.2).
    fn take_early_data_answer(&mut self, now: Time) {
        let Some(is_accepted) = self.handshake.take_early_data_answer() else {
            return;
        };
        self.events.push(Event::ZeroRtt { is_accepted });
        if !is_accepted {
            self.recovery.give_up(now, Space::Application, &mut Discard);
            self.sources.streams.on_zero_rtt_rejected();
        }
    }

    /// Applies the peer's transport parameters once they are available (RFC 9000 §7.4).
    fn take_peer_parameters(&mut self, now: Time) -> Result<(), Fatal> {
        if self.peer.get().is_some() {
            return Ok(());
        }
        let versions = &self.config.versions;
        let Some((encoded, expected)) = self.handshake.peer_parameters(versions) else {
            return Ok(());
        };
        let peer = self.peer.accept(encoded, &expected)?;
        let sources = &mut self.sources;
        sources.streams.on_peer_parameters(peer);
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
        if self.tracer.is_listening() {
            let local = self.handshake.parameters(&self.config);
            let both = [(true, local.as_ref()), (false, Some(peer))];
            for (is_local, parameters) in both {
                if let Some(parameters) = parameters {
                    let event = trace::Event::Parameters {
                        is_local,
                        parameters,
                    };
                    self.tracer.event(now, &event);
                }
            }
        }
        self.recovery_follows_mtu(now);
        Ok(())
    }

    /// The handshake has reached its next stage.
    fn on_stage(&mut self, now: Time, event: Event) {
        self.events.push(event);
        let stage = self.handshake.stage();
        self.tracer.event(now, &trace::Event::Stage(stage));
    }

    /// The handshake is confirmed (RFC 9001 §4.1.2).
    pub(super) fn confirm(&mut self, now: Time) {
        let Some(span) = self.handshake.confirm(now) else {
            return;
        };
        self.on_stage(now, Event::HandshakeConfirmed);
        self.statistics.handshake_confirmed_after = Some(span);
        self.discard(now, Space::Handshake);
        let limit = self.peer.active_connection_id_limit();
        self.sources.local_ids.start(limit);
        let max_udp_payload_size = self.peer.max_udp_payload_size();
        self.paths.mtu_mut().start(max_udp_payload_size);
        self.follow_preferred_address(now);
    }

    /// Discards the keys and all other state of a packet number space (RFC 9001 §4.9).
    pub(super) fn discard(&mut self, now: Time, space: Space) {
        if let Some(packet_type) = self.handshake.discard(space) {
            self.recovery.discard_space(now, space);
            self.sender.discard(space);
            self.received.discard(space);
            self.sources.discard(space);
            self.tracer
                .event(now, &trace::Event::KeysDiscarded(packet_type));
        }
    }
}
