//! Received frames: the effect of each (RFC 9000 §19).

use core::time::Duration;

use lastbyte_congestion::Time;
use lastbyte_wire::{
    Side, TransportError,
    frame::{Ack, AckFrequency, CloseCause, ConnectionClose, Crypto, Frame, FrameError, FrameType},
};

use super::{
    Connection, Event, Fatal, handshake::Opened, packet_fates::PacketFates, receive::Datagram,
    start::MIN_ACK_DELAY,
};
use crate::{
    ack_frequency::PathState,
    close::CloseReason,
    crypto_stream::{CryptoBufferExceeded, POST_HANDSHAKE_MAX},
    recovery::IncomingAck,
    space::Space,
    stream::{StreamError, StreamSink},
};

impl From<FrameError> for Fatal {
    fn from(error: FrameError) -> Self {
        let frame_type = error.frame_type.unwrap_or(FrameType::PADDING);
        Self::new(error.transport_error(), error.kind.reason()).in_frame(frame_type)
    }
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
    /// Dispatches a frame. Returns its useful effect: one if it brought new data or answered a request of ours; for an
    /// ACK frame, the number of newly acknowledged packets; otherwise zero.
    pub(super) fn handle_frame(
        &mut self,
        now: Time,
        space: Space,
        opened: &Opened<'_>,
        arrived: &Datagram,
        frame: &Frame<'_>,
        sink: &mut dyn StreamSink,
    ) -> Result<u64, Fatal> {
        let streams = &mut self.sources.streams;
        match frame {
            Frame::Ack(ack) => return self.handle_ack(now, space, ack, opened.generation),
            Frame::Crypto(crypto) => return self.handle_crypto(space, crypto).map(u64::from),
            Frame::Stream(stream) => return Ok(streams.on_stream(stream, now, sink)?.into()),
            Frame::ResetStream(reset) => streams.on_reset_stream(reset, now)?,
            Frame::StopSending(stop) => streams.on_stop_sending(stop)?,
            Frame::MaxData(limit) => streams.on_max_data(limit),
            Frame::MaxStreamData(limit) => streams.on_max_stream_data(limit)?,
            Frame::MaxStreams(limit) => streams.on_max_streams(limit),
            Frame::DataBlocked(blocked) => streams.on_data_blocked(blocked),
            Frame::StreamDataBlocked(blocked) => streams.on_stream_data_blocked(blocked)?,
            Frame::StreamsBlocked(blocked) => streams.on_streams_blocked(blocked),
            Frame::NewConnectionId(new) => {
                self.sources
                    .peer_ids
                    .on_new(new)
                    .map_err(|error| Fatal::new(error.transport_error(), error.reason()))?;
                self.forget_paths_without_id();
            }
            Frame::RetireConnectionId(retire) => {
                self.handle_retire(retire.sequence.get(), opened)?;
            }
            Frame::HandshakeDone(_) => {
                let is_new = !self.handshake.is_confirmed();
                self.confirm(now);
                return Ok(is_new.into());
            }
            Frame::ConnectionClose(close) => self.handle_close(now, close),
            Frame::NewToken(token) => {
                if self.side() == Side::Client {
                    self.events.push(Event::NewToken(token.token().to_vec()));
                }
            }
            Frame::PathChallenge(challenge) => {
                if let Some(path) = self.locate(&arrived.network)
                    && let Some(path) = self.paths.get_mut(path)
                {
                    path.validation.on_challenge(challenge.data);
                }
            }
            Frame::PathResponse(response) => {
                return Ok(self.on_path_response(now, response.data).into());
            }
            Frame::AckFrequency(_) | Frame::ImmediateAck(_) if !self.config.ack_frequency => {
                return Err(Fatal::new(
                    TransportError::FRAME_ENCODING_ERROR,
                    "a frame of an extension that was not agreed on",
                ));
            }
            Frame::AckFrequency(wish) => self.handle_ack_frequency(wish)?,
            Frame::ImmediateAck(_) => {
                self.received.get_mut(space).policy_mut().on_immediate_ack();
            }
            Frame::Padding(_) | Frame::Ping(_) => {}
        }
        Ok(0)
    }

    fn handle_retire(&mut self, sequence: u64, opened: &Opened<'_>) -> Result<(), Fatal> {
        let ids = &mut self.sources.local_ids;
        ids.on_retire(sequence, opened.destination)
            .map(drop)
            .map_err(|_| {
                Fatal::new(
                    TransportError::PROTOCOL_VIOLATION,
                    "RETIRE_CONNECTION_ID of an ID in use or never sent",
                )
            })
    }

    fn handle_close(&mut self, now: Time, close: &ConnectionClose<'_>) {
        let reason = match close.cause {
            CloseCause::Transport { error, .. } => CloseReason::Peer { code: error },
            CloseCause::Application { error_code } => CloseReason::PeerApplication {
                code: error_code.get(),
            },
        };
        self.close.on_phrase(close.reason);
        let probe_timeout = self.probe_timeout();
        self.end(now, reason, probe_timeout);
    }

    fn handle_ack_frequency(&mut self, wish: &AckFrequency) -> Result<(), Fatal> {
        let least = MIN_ACK_DELAY.min(self.config.max_ack_delay);
        if Duration::from_micros(wish.max_ack_delay_us.get()) < least {
            return Err(Fatal::new(
                TransportError::PROTOCOL_VIOLATION,
                "ACK_FREQUENCY asks for less than min_ack_delay",
            ));
        }
        let received = self.received.get_mut(Space::Application);
        received.policy_mut().on_ack_frequency(wish);
        Ok(())
    }

    fn handle_ack(
        &mut self,
        now: Time,
        space: Space,
        frame: &Ack<'_>,
        generation: u64,
    ) -> Result<u64, Fatal> {
        let max_ack_delay = self.peer.max_ack_delay();
        self.handshake.on_ack(space);
        let ack = IncomingAck {
            now,
            space,
            frame,
            ack_delay: self.peer.ack_delay(space, frame.delay()),
            max_ack_delay: self.handshake.is_confirmed().then_some(max_ack_delay),
            resets_pto_count: self.handshake.is_validated_by_peer(),
        };
        let outcome = self
            .recovery
            .on_ack(
                &ack,
                &mut self.sources,
                &mut PacketFates {
                    mtu: self.paths.mtu_mut(),
                    tracer: &mut self.tracer,
                },
            )
            .map_err(|_| {
                Fatal::new(
                    TransportError::PROTOCOL_VIOLATION,
                    "an acknowledgment of a packet that was never sent",
                )
            })?;
        if self.statistics.paths.promoted > 0 {
            self.statistics.paths.packets_acked_promoted += outcome.newly_acked;
        }
        if self.recovery.rtt().has_sample() {
            self.sources.streams.set_rtt(self.recovery.rtt().smoothed());
        }
        let probe_timeout = self.probe_timeout();
        if space == Space::Application
            && let Some(keys) = self.handshake.one_rtt_mut()
        {
            keys.on_ack(frame.largest(), generation, now, probe_timeout)
                .map_err(|_| {
                    Fatal::new(
                        TransportError::KEY_UPDATE_ERROR,
                        "an acknowledgment of new keys under old ones",
                    )
                })?;
        }
        self.consider_ack_frequency(now, probe_timeout);
        self.follow_preferred_address(now);
        Ok(outcome.newly_acked)
    }

    fn consider_ack_frequency(&mut self, now: Time, probe_timeout: Duration) {
        if !self.sources.ack_frequency.is_due(now, probe_timeout) {
            return;
        }
        let state = self.recovery.congestion();
        let thresholds = self.recovery.thresholds();
        let path = PathState {
            window_packets: state.window / u64::from(self.paths.datagram_size()),
            loss_episodes: state.statistics.loss_episodes,
            packet_threshold: thresholds
                .uses_packet_threshold()
                .then_some(crate::recovery::PACKET_THRESHOLD),
            probe_timeout,
        };
        self.sources.ack_frequency.update(now, &path);
    }

    fn handle_crypto(&mut self, space: Space, frame: &Crypto<'_>) -> Result<bool, Fatal> {
        let end = frame.offset.get() + frame.data.len() as u64;
        if space == Space::Application && end > POST_HANDSHAKE_MAX {
            return Ok(false);
        }
        let handshake = &mut self.handshake;
        self.sources.crypto.get_mut(space).on_received(
            frame.offset.get(),
            frame.data,
            &mut |data| handshake.read_crypto(space, data),
        )
    }
}
