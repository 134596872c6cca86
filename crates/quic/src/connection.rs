//! The connection: datagrams in and out, events, and time.
//!
//! Datagrams are passed to [`Connection::handle_datagram`] and produced by [`Connection::poll_transmit`]. The caller
//! waits until [`Connection::deadline`] and then calls [`Connection::on_timeout`]. Streams are accessed by
//! [`Connection::streams`]; all other events are returned by [`Connection::poll_event`].
//!
//! State is held by objects, each with its own file and tests; the methods of the connection connect them.
//!
//! | object | has |
//! |---|---|
//! | `handshake.rs` | session, version, all keys; opens and seals packets |
//! | `peer_parameters.rs` | the peer's transport parameters and their defaults |
//! | `paths.rs` | the path in use and others, their validation, the size of datagrams |
//! | `frame_sources.rs` | writes frames and takes their receipts back |
//! | `sender.rs` | permits, probes, skipped packet numbers |
//! | `tracer.rs`, `packet_fates.rs` | trace listener; acknowledged and lost packets, for it and for MTU discovery |
//! | `start.rs`, `config.rs`, `event.rs`, `output.rs` | inputs of a connection; results for callers |
//!
//! | methods | for |
//! |---|---|
//! | `receive.rs`, `frames.rs` | datagrams in; the effect of each frame |
//! | `transmit.rs`, `closing.rs` | datagrams out; `CONNECTION_CLOSE` |
//! | `advance.rs`, `retry.rs` | handshake progress; Retry and Version Negotiation |
//! | `migration.rs` | path validation and migration |

mod advance;
mod closing;
mod config;
mod early;
mod event;
mod frame_sources;
mod frames;
mod handshake;
mod migration;
mod output;
mod packet_fates;
mod paths;
mod peer_parameters;
mod receive;
mod retry;
mod sender;
mod start;
mod tracer;
mod transmit;

use core::time::Duration;
use std::{fmt, sync::Arc};

use lastbyte_congestion::{Environment, Rtt, SavedPath, Time};
use lastbyte_wire::{
    ConnectionId, Side, StatelessResetToken, TransportError, frame::FrameType, packet::Version,
    transport_parameters::TransportParameters,
};

pub use self::{
    config::{Config, PreferredAddresses},
    event::Event,
    migration::MigrateError,
    output::Transmit,
    start::{ClientStart, RetryIds, ServerStart},
};
use self::{
    event::Events,
    frame_sources::FrameSources,
    handshake::Handshake,
    packet_fates::PacketFates,
    paths::Paths,
    peer_parameters::PeerParameters,
    sender::Sender,
    start::{ACTIVE_CONNECTION_ID_LIMIT, HandshakeState},
    tracer::Tracer,
};
pub use crate::{NetworkPath, Stage};
use crate::{
    ack::{AckPolicy, ReceivedPackets},
    anatomy::{Anatomy, Meter},
    cid::{ConnectionIdGenerator, LocalIds, PeerIds},
    close::{Close, CloseReason, CloseState},
    crypto::{Keys, Session, SessionError},
    flood::FloodGuard,
    idle::IdleTimer,
    path::Amplification,
    random::{Random, Seed},
    recovery::{EcnValidation, Expired, Recovery, RecoveryStatistics, TimerContext},
    space::{Space, SpaceStates},
    statistics::Statistics,
    stream::{self, Streams},
    trace::{self, Trace},
};

/// A connection.
pub struct Connection {
    config: Arc<Config>,
    handshake: Handshake,
    peer: PeerParameters,
    paths: Paths,
    sources: FrameSources,
    sender: Sender,
    received: SpaceStates<ReceivedPackets>,
    recovery: Recovery,
    idle: IdleTimer,
    close: Close,
    flood: FloodGuard,
    random: Random,
    events: Events,
    tracer: Tracer,
    statistics: Statistics,
}

/// The connection must be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fatal {
    code: TransportError,
    reason: &'static str,
    /// The frame that caused it; PADDING stands for none (RFC 9000 §19.19).
    frame_type: FrameType,
}

impl Fatal {
    const fn new(code: TransportError, reason: &'static str) -> Self {
        Self {
            code,
            reason,
            frame_type: FrameType::PADDING,
        }
    }

    const fn in_frame(self, frame_type: FrameType) -> Self {
        Self { frame_type, ..self }
    }
}

impl From<SessionError> for Fatal {
    fn from(error: SessionError) -> Self {
        Self::new(error.code, "the handshake failed")
    }
}

impl Connection {
    /// The common part of both constructors. `path` is the peer's address and what may be sent there; `identity` is the
    /// peer's connection ID, the generator of ours, and the seed.
    fn new(
        now: Time,
        config: &Arc<Config>,
        state: HandshakeState,
        session: Box<dyn Session>,
        initial_keys: Keys,
        path: (NetworkPath, Amplification),
        identity: (ConnectionId, Box<dyn ConnectionIdGenerator + Send>, Seed),
    ) -> Self {
        let (peer_id, ids, seed) = identity;
        let side = state.offer.side;
        let local_id = state.offer.local_id;
        let mut random = Random::new(seed);
        let controller = config.congestion.build(&Environment {
            max_datagram_size: u64::from(config.mtu.initial),
            seed: random.number(),
        });
        let ecn = if config.ecn {
            EcnValidation::for_response(controller.is_scalable())
        } else {
            EcnValidation::disabled()
        };
        let recovery = Recovery::new(controller, Rtt::default(), config.thresholds, ecn);
        let mut local_ids = LocalIds::new(local_id);
        if let Some(preferred) = &state.offer.preferred {
            local_ids.add_of_preferred_address(preferred.connection_id);
        }
        let mut paths = Paths::new(now, side, path.0, path.1, local_id, config.mtu);
        paths.set_wants_preferred_address(side == Side::Client && config.follows_preferred_address);
        let mut connection = Self {
            handshake: Handshake::new(now, state, session, initial_keys),
            received: SpaceStates::new(ReceivedPackets::new(AckPolicy::delayed(
                config.max_ack_delay,
                config.ack_decimation,
            ))),
            recovery,
            sources: FrameSources::new(
                Streams::new(side, config.streams.clone()),
                local_ids,
                ids,
                PeerIds::new(peer_id, ACTIVE_CONNECTION_ID_LIMIT),
            ),
            tracer: Tracer::default(),
            paths,
            sender: Sender::new(&mut random),
            peer: PeerParameters::default(),
            idle: IdleTimer::new(now, config.max_idle_timeout, config.keep_alive),
            close: Close::new(),
            flood: FloodGuard::new(now),
            random,
            events: Events::default(),
            statistics: Statistics::default(),
            config: Arc::clone(config),
        };
        connection.drive_handshake(now);
        connection
    }

    /// Buffers 0-RTT datagrams that arrived before the client's first datagram, which must be processed next.
    pub(crate) fn set_reordered_0rtt(&mut self, datagrams: Vec<Vec<u8>>) {
        self.handshake.set_reordered_0rtt(datagrams);
    }

    // ---- questions ------------------------------------------------------------------------------------------------

    /// The handshake stage.
    pub const fn stage(&self) -> Stage {
        self.handshake.stage()
    }

    /// Whether the peer has shown that it receives at its current address: by a token, or by a packet that only a
    /// receiver of ours can produce (RFC 9000 §8.1). Before that, a 0-RTT request may have a spoofed address.
    pub const fn is_address_validated(&self) -> bool {
        self.paths.current().amplification.is_validated()
    }

    /// Whether the connection is closed and may be dropped.
    pub fn is_over(&self) -> bool {
        self.close.state() == CloseState::Over
    }

    /// Why it closed, once it has.
    pub const fn close_reason(&self) -> Option<CloseReason> {
        self.close.reason()
    }

    /// The streams.
    pub const fn streams(&mut self) -> &mut Streams {
        &mut self.sources.streams
    }

    /// Statistics of stream data sent.
    pub const fn stream_statistics(&self) -> stream::Statistics {
        self.sources.streams.statistics()
    }

    /// Bytes of CRYPTO data sent, each counted once.
    pub fn crypto_sent(&self) -> u64 {
        self.sources.crypto_sent()
    }

    /// Loss recovery and congestion control, for logs.
    pub const fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// Counters of packets, frames and paths.
    pub const fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Counters of packets and bytes sent, acknowledged and lost.
    pub const fn recovery_statistics(&self) -> &RecoveryStatistics {
        self.recovery.statistics()
    }

    /// The peer's transport parameters, once they are known and confirmed.
    pub fn peer_parameters(&self) -> Option<&TransportParameters> {
        self.peer.get()
    }

    /// Its configuration.
    pub const fn config(&self) -> &Arc<Config> {
        &self.config
    }

    /// The version in use.
    pub const fn version(&self) -> Version {
        self.handshake.version()
    }

    /// Which end this is.
    pub const fn side(&self) -> Side {
        self.handshake.side()
    }

    /// Whether a client may send 0-RTT now. Early data can be replayed (RFC 9001 §9.2), and may be rejected.
    pub fn is_zero_rtt(&self) -> bool {
        self.handshake.is_zero_rtt()
    }

    /// Sets whether the application expects data from the peer, such as a response. As long as it does, the connection
    /// sends a PING after a second without a packet, or after two probe timeouts once the peer has sent something, and
    /// then less often (RFC 9000 §10.1.2, [`idle`](crate::idle)).
    pub const fn set_awaiting(&mut self, is_awaiting: bool) {
        self.idle.set_awaiting(is_awaiting);
    }

    /// Starts the breakdown of a transfer's time: its request has arrived. See [`anatomy`](crate::anatomy).
    pub fn measure_transfer(&mut self, now: Time) {
        let started_at = self.handshake.started_at();
        self.tracer.set_meter(Meter::new(now, started_at));
    }

    /// The breakdown of the measured transfer's time, until its last acknowledgment; `None` if none was measured.
    pub fn anatomy(&self) -> Option<Anatomy> {
        self.tracer.anatomy()
    }

    /// Sets the listener for trace events.
    pub fn set_trace(&mut self, mut trace: Box<dyn Trace>) {
        if let Some(original_destination) = self.handshake.original_destination() {
            let event = trace::Event::Started {
                original_destination,
            };
            trace.on_event(self.handshake.started_at(), &event);
        }
        self.tracer.set_listener(trace);
    }

    /// Whether there is a listener for trace events.
    pub const fn is_traced(&self) -> bool {
        self.tracer.is_listening()
    }

    /// Passes a frame of the application protocol to the listener for trace events.
    pub fn trace_frame(&mut self, now: Time, frame: trace::ApplicationFrame<'_>) {
        self.tracer
            .event(now, &trace::Event::ApplicationFrame(frame));
    }

    /// The session of the handshake: ALPN, server name, certificate.
    pub fn session(&self) -> &dyn Session {
        self.handshake.session()
    }

    /// The connection IDs that identify this connection.
    pub fn local_ids(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        self.sources.local_ids.iter()
    }

    /// The stateless reset tokens of this connection (RFC 9000 §10.3.1).
    pub fn reset_tokens(&self) -> impl Iterator<Item = StatelessResetToken> + '_ {
        self.sources.peer_ids.reset_tokens()
    }

    /// A number that changes whenever [`Connection::local_ids`] or [`Connection::reset_tokens`] do.
    pub const fn ids_generation(&self) -> u64 {
        self.sources.local_ids.changes() + self.sources.peer_ids.changes()
    }

    /// The peer's addresses.
    pub const fn network(&self) -> NetworkPath {
        self.paths.current().network
    }

    /// Whether the peer has received and processed our packets.
    pub(crate) fn is_at(&self, network: &NetworkPath) -> bool {
        self.paths.current().network == *network
    }

    /// The next event, in order of occurrence. Stream events come from [`Streams::poll_event`].
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.poll()
    }

    /// An earlier connection saved these parameters for this path (RFC 9959). Before the first packet.
    pub(crate) fn on_saved_path(&mut self, saved: &SavedPath) {
        self.recovery.on_saved_path(saved);
    }

    /// What congestion control has measured of the path, when there is something new worth saving.
    pub(crate) fn take_path_to_save(&mut self, now: Time) -> Option<SavedPath> {
        self.recovery.take_path_to_save(now)
    }

    /// Path measurements last sent to the client in a token (RFC 9959), and the time since the start; `None` if
    /// nothing was.
    pub fn path_saved(&self) -> Option<(Duration, SavedPath)> {
        let (at, saved) = self.recovery.path_saved()?;
        Some((at.since(self.handshake.started_at()), saved))
    }

    /// Time from the start of the connection until nothing was in flight for the first time after more than the initial window
    /// had been sent.
    pub fn time_to_idle(&self) -> Option<Duration> {
        let idle_at = self.recovery.measurements().idle_at()?;
        Some(idle_at.since(self.handshake.started_at()))
    }

    /// A server issues a token for the client's next connection (RFC 9000 §8.1.3). If several are pending, only the
    /// last is sent.
    pub fn send_new_token(&mut self, token: Vec<u8>) {
        if self.side() == Side::Server && !token.is_empty() {
            self.sources.new_token.offer(token);
        }
    }

    /// A datagram that matched no connection ended with one of [`Connection::reset_tokens`]: the peer has lost the
    /// connection's state (RFC 9000 §10.3.1).
    pub fn on_stateless_reset(&mut self, now: Time) {
        let probe_timeout = self.probe_timeout();
        self.end(now, CloseReason::StatelessReset, probe_timeout);
    }

    // ---- time -----------------------------------------------------------------------------------------------------

    /// When [`Connection::on_timeout`] is due; `None` for never.
    pub fn deadline(&self) -> Option<Time> {
        if self.close.state() != CloseState::Open {
            return self.close.deadline();
        }
        let context = self.timer_context();
        let mut next = self.recovery.deadline(&context);
        let mut consider = |at: Option<Time>| next = Time::earlier(next, at);
        for space in Space::ALL {
            let at = self.received.get(space).deadline();
            if at.is_some()
                && self.handshake.can_send_in(space)
                && !context.is_amplification_limited
            {
                consider(at);
            }
        }
        let probe_timeout = self.probe_timeout();
        consider(self.idle.deadline(probe_timeout));
        if self.handshake.is_confirmed() {
            consider(self.idle.keep_alive_at(probe_timeout));
            consider(self.release_at());
        }
        consider(self.sender.release_at());
        consider(self.handshake.deadline());
        consider(self.paths.deadline());
        consider(self.sources.local_ids.deadline());
        next
    }

    /// Handles expired timers. Call [`Connection::poll_transmit`] afterwards.
    pub fn on_timeout(&mut self, now: Time) {
        self.close.on_timeout(now);
        if self.is_closing() {
            return;
        }
        let is_due = |at: Option<Time>| at.is_some_and(|at| at <= now);
        let probe_timeout = self.probe_timeout();
        if is_due(self.idle.deadline(probe_timeout)) {
            self.end(now, CloseReason::IdleTimeout, Duration::ZERO);
            return;
        }
        self.sender.on_timeout(now);
        self.handshake.on_timeout(now);
        if self.handshake.is_confirmed() && is_due(self.idle.keep_alive_at(probe_timeout)) {
            self.idle.on_keep_alive();
            self.sender.request_probes(Space::Application, 1);
        }
        if self.handshake.is_confirmed() && is_due(self.release_at()) {
            self.release_memory();
        }
        self.sources.local_ids.on_timeout(now);
        self.expire_paths(now);
        let context = self.timer_context();
        if let Expired::Probe(space) = self.recovery.on_timeout(
            now,
            &context,
            &mut self.sources,
            &mut PacketFates {
                mtu: self.paths.mtu_mut(),
                tracer: &mut self.tracer,
            },
        ) {
            self.tracer.event(now, &trace::Event::ProbeTimeout(space));
            self.probe(space);
        }
        self.recovery_follows_mtu(now);
        self.tracer.metrics(now, &self.recovery);
    }

    /// When memory is to be freed: never while packets are in flight.
    fn release_at(&self) -> Option<Time> {
        let is_in_flight = self.recovery.sent(Space::Application).has_ack_eliciting();
        self.idle.release_at().filter(|_| !is_in_flight)
    }

    /// Frees buffers that are empty, and what is allocated again on demand.
    fn release_memory(&mut self) {
        self.idle.on_released();
        self.handshake.release_memory();
        self.sources.release_memory();
        self.sender.release_memory();
        self.recovery.release_memory();
        self.received.get_mut(Space::Application).release_memory();
        self.events.push(Event::Idle);
    }

    /// Notifies recovery if the datagram size has changed.
    #[inline]
    fn recovery_follows_mtu(&mut self, now: Time) {
        if let Some(size) = self.paths.take_new_size() {
            self.recovery.on_mtu(u64::from(size));
            self.tracer.event(now, &trace::Event::DatagramSize(size));
        }
    }

    /// Probes a space, together with those that have data that the peer is waiting for (RFC 9002 §6.2.4): data lost in
    /// one space can be what the peer needs to acknowledge another, whose packets fill the window.
    fn probe(&mut self, expired: Space) {
        let mut repeat = (expired == Space::Application).then_some(expired);
        for space in Space::ALL {
            if space != expired && !self.handshake.can_send_in(space) {
                continue;
            }
            let crypto = self.sources.crypto.get_mut(space);
            crypto.send_again();
            if space == expired || crypto.wants_to_send() {
                self.sender.request_probes(space, PROBES);
            }
        }
        // Until the handshake is confirmed, 1-RTT packets have no probe timeout.
        if expired == Space::Handshake
            && self.handshake.one_rtt().is_some()
            && self.recovery.sent(Space::Application).has_ack_eliciting()
        {
            self.sender.request_probes(Space::Application, PROBES);
            repeat = Some(Space::Application);
            // The second datagram has only a 1-RTT packet if the first probes had no effect: a server that has lost its
            // state responds to no other with a stateless reset.
            if self.side() == Side::Client && self.recovery.consecutive_probe_timeouts() > 1 {
                self.sender.request_probes(expired, 1);
            }
        }
        // New data is preferred; without any, the last packets may have been lost, which only a probe can reveal.
        if let Some(space) = repeat
            && !self.sources.want_to_send(space)
        {
            self.recovery
                .repeat_oldest(space, usize::from(PROBES), &mut self.sources);
        }
    }

    fn timer_context(&self) -> TimerContext {
        TimerContext {
            max_ack_delay: self.peer.max_ack_delay(),
            is_handshake_confirmed: self.handshake.is_confirmed(),
            has_handshake_keys: self.handshake.has_keys(Space::Handshake),
            is_amplification_limited: self.paths.is_amplification_limited(),
            must_keep_alive: !self.handshake.is_confirmed()
                && (!self.handshake.is_validated_by_peer() || self.has_handshake_data_to_send()),
        }
    }

    /// Whether handshake data is waiting while the window may be full of packets that the peer cannot acknowledge
    /// before it has that data.
    fn has_handshake_data_to_send(&self) -> bool {
        [Space::Initial, Space::Handshake].into_iter().any(|space| {
            self.handshake.can_send_in(space) && self.sources.crypto.get(space).wants_to_send()
        })
    }

    fn probe_timeout(&self) -> Duration {
        self.recovery.rtt().probe_timeout(self.peer.max_ack_delay())
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("side", &self.side())
            .field("stage", &self.stage())
            .field("close", &self.close)
            .field("in_flight", &self.recovery.in_flight())
            .field("window_left", &self.recovery.window_left())
            .field("statistics", self.recovery.statistics())
            .finish_non_exhaustive()
    }
}

/// Packets sent when the probe timeout expires (RFC 9002 §6.2.4).
const PROBES: u8 = 2;

#[cfg(test)]
mod tests;
