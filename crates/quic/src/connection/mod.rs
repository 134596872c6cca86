//! The connection: a switchboard between rooms.
//!
//! Its fields are rooms, its methods forward. Datagrams come in at [`Connection::handle_datagram`] and are asked for with
//! [`Connection::poll_transmit`]; between them, the caller waits until [`Connection::deadline`] and then says
//! [`Connection::on_timeout`]. Streams are behind [`Connection::streams`]; what else an application wants to know comes
//! from [`Connection::poll_event`].
//!
//! | file | holds |
//! |---|---|
//! | `start.rs`, `config.rs` | what a connection begins with |
//! | `handshake.rs` | the session's part, 0-RTT, transport parameters, the end of old keys |
//! | `retry.rs` | a server that answers with Retry or Version Negotiation |
//! | `version.rs` | a server that goes on in another version |
//! | `receive.rs`, `frames.rs`, `early.rs` | datagrams in; what each frame does; packets that come before their keys |
//! | `transmit.rs`, `closing.rs` | datagrams out; the last ones |
//! | `migration.rs` | paths, and moving between them |
//! | `rooms.rs` | the rooms that write frames |
//! | `network.rs`, `event.rs` | what callers are told |

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
mod version;

use core::time::Duration;
use std::{fmt, sync::Arc};

use lastbyte_congestion::{Environment, Rtt, Time};
use lastbyte_wire::{
    ConnectionId, Side, StatelessResetToken, TransportError, packet::Version,
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
    packet_fates::PacketFates,
    paths::Paths,
    peer_parameters::PeerParameters,
    sender::Sender,
    start::{ACTIVE_CONNECTION_ID_LIMIT, Opening},
    tracer::Tracer,
};
pub use crate::{NetworkPath, Stage};
use crate::{
    ack::{AckPolicy, ReceivedPackets},
    cid::{ConnectionIdGenerator, LocalIds, PeerIds},
    close::{Close, CloseReason, CloseState},
    crypto::{DirectionalKeys, Keys, OneRttKeys, Session, SessionError},
    datagram::{DatagramError, Datagrams},
    flood::FloodGuard,
    idle::IdleTimer,
    path::Amplification,
    random::{Random, Seed},
    recovery::{EcnValidation, Expired, Recovery, RecoveryStatistics, TimerContext},
    space::{PerSpace, Space},
    statistics::Statistics,
    stream::{self, Streams},
    trace::{self, Trace},
};

/// A connection.
pub struct Connection {
    side: Side,
    version: Version,
    config: Arc<Config>,
    started_at: Time,
    /// The length of the connection IDs that we issue.
    local_id_len: u8,
    /// The ID of the handshake, which long headers name as the source.
    local_id: ConnectionId,
    opening: Option<Box<Opening>>,
    session: Box<dyn Session>,
    /// Whether the handshake is confirmed and the session had nothing more to say: it has no more until it is told more.
    session_is_done: bool,
    keys: PerSpace<Option<Box<Keys>>>,
    /// A client seals with them, a server opens.
    zero_rtt: Option<Box<DirectionalKeys>>,
    /// Until when a server keeps them.
    zero_rtt_until: Option<Time>,
    one_rtt: Option<Box<OneRttKeys>>,
    /// Whether packets that waited for keys may be opened now.
    has_new_keys: bool,
    received: PerSpace<ReceivedPackets>,
    recovery: Recovery,
    sources: FrameSources,
    tracer: Tracer,
    paths: Paths,
    sender: Sender,
    peer: PeerParameters,
    idle: IdleTimer,
    close: Close,
    flood: FloodGuard,
    stage: Stage,
    /// Whether the peer has shown that it got our Handshake packets, so that its address is validated.
    has_handshake_ack: bool,
    random: Random,
    events: Events,
    statistics: Statistics,
}

/// The connection has to be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fatal {
    code: TransportError,
    reason: &'static str,
}

impl Fatal {
    const fn new(code: TransportError, reason: &'static str) -> Self {
        Self { code, reason }
    }
}

impl From<SessionError> for Fatal {
    fn from(error: SessionError) -> Self {
        Self::new(error.code, "the handshake failed")
    }
}

impl Connection {
    /// What both sides' constructors come to. `path` is where the peer is and what may be sent there, `identity` the
    /// peer's connection ID, the maker of ours, and the seed.
    fn new(
        now: Time,
        config: &Arc<Config>,
        opening: Opening,
        session: Box<dyn Session>,
        initial_keys: Keys,
        path: (NetworkPath, Amplification),
        identity: (ConnectionId, Box<dyn ConnectionIdGenerator + Send>, Seed),
    ) -> Self {
        let (peer_id, ids, seed) = identity;
        let side = opening.offer.side;
        let local_id = opening.offer.local_id;
        let mut random = Random::new(seed);
        let controller = config.congestion.build(&Environment {
            max_datagram_size: u64::from(config.mtu.initial),
            seed: random.number(),
        });
        let ecn = if config.ecn {
            EcnValidation::new()
        } else {
            EcnValidation::disabled()
        };
        let recovery = Recovery::new(controller, Rtt::default(), config.thresholds, ecn);
        let mut local_ids = LocalIds::new(local_id);
        if let Some(preferred) = &opening.offer.preferred {
            local_ids.add_of_preferred_address(preferred.connection_id);
        }
        let mut paths = Paths::new(now, side, path.0, path.1, local_id, config.mtu);
        paths.set_wants_preferred_address(side == Side::Client && config.follows_preferred_address);
        let mut connection = Self {
            side,
            version: opening.offer.version,
            started_at: now,
            local_id_len: local_id.len() as u8,
            local_id,
            opening: Some(Box::new(opening)),
            session,
            session_is_done: false,
            keys: PerSpace::new(Some(Box::new(initial_keys)), None, None),
            zero_rtt: None,
            zero_rtt_until: None,
            one_rtt: None,
            has_new_keys: false,
            received: PerSpace::new(
                ReceivedPackets::new(AckPolicy::immediate()),
                ReceivedPackets::new(AckPolicy::immediate()),
                ReceivedPackets::new(AckPolicy::delayed(config.max_ack_delay)),
            ),
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
            stage: Stage::Handshaking,
            has_handshake_ack: false,
            random,
            events: Events::default(),
            statistics: Statistics::default(),
            config: Arc::clone(config),
        };
        connection.drive_handshake(now);
        connection
    }

    // ---- questions ------------------------------------------------------------------------------------------------

    /// How far the handshake is.
    #[must_use]
    pub const fn stage(&self) -> Stage {
        self.stage
    }

    /// Whether the peer has shown that it receives at the address that is in use: by a token, or a packet that only who got
    /// ours can make (RFC 9000 §8.1). Before, a request of 0-RTT may come from any address.
    #[must_use]
    pub const fn is_address_validated(&self) -> bool {
        self.paths.current().amplification.is_validated()
    }

    /// Whether the connection is over, and may be dropped.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.close.state() == CloseState::Over
    }

    /// Why it ended, once it does.
    #[must_use]
    pub const fn close_reason(&self) -> Option<CloseReason> {
        self.close.reason()
    }

    /// The streams.
    pub const fn streams(&mut self) -> &mut Streams {
        &mut self.sources.streams
    }

    /// What streams have sent.
    #[must_use]
    pub const fn stream_statistics(&self) -> stream::Statistics {
        self.sources.streams.statistics()
    }

    /// Bytes of CRYPTO data sent, each counted once.
    #[must_use]
    pub fn crypto_sent(&self) -> u64 {
        self.sources.crypto_sent()
    }

    /// Loss recovery and congestion control, for logs.
    #[must_use]
    pub const fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// Counters of packets, frames and paths.
    #[must_use]
    pub const fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Counters of packets and bytes sent, acknowledged and lost.
    #[must_use]
    pub const fn recovery_statistics(&self) -> &RecoveryStatistics {
        self.recovery.statistics()
    }

    /// The size of datagrams on the path in use, in bytes of UDP payload.
    #[must_use]
    pub const fn datagram_size(&self) -> u16 {
        self.paths.datagram_size()
    }

    /// The peer's transport parameters, once they are known and confirmed.
    #[must_use]
    pub fn peer_parameters(&self) -> Option<&TransportParameters> {
        self.peer.get()
    }

    /// What was set for it.
    #[must_use]
    pub const fn config(&self) -> &Arc<Config> {
        &self.config
    }

    /// The version in use.
    #[must_use]
    pub const fn version(&self) -> Version {
        self.version
    }

    /// Which end this is.
    #[must_use]
    pub const fn side(&self) -> Side {
        self.side
    }

    /// Whether a client may send 0-RTT now: what it sends may reach the server twice (RFC 9001 §9.2), and be in vain.
    #[must_use]
    pub fn is_zero_rtt(&self) -> bool {
        self.side == Side::Client && self.zero_rtt.is_some() && self.one_rtt.is_none()
    }

    /// Whether something of the peer's is waited for, such as an answer: as long as it is, the connection is kept alive by a
    /// PING after a third of the idle timeout, or ten seconds, without a packet (RFC 9000 §10.1.2).
    pub const fn set_awaiting(&mut self, is_awaiting: bool) {
        self.idle.set_awaiting(is_awaiting);
    }

    /// Somebody wants to hear what happens from now on.
    pub fn set_trace(&mut self, trace: Box<dyn Trace>) {
        self.tracer.set_listener(trace);
    }

    /// The next datagram received (RFC 9221).
    pub fn receive_datagram(&mut self) -> Option<Vec<u8>> {
        self.sources.datagrams.receive()
    }

    /// Sends a datagram: once, or not at all (RFC 9221).
    ///
    /// # Errors
    ///
    /// It cannot be sent, and is dropped.
    pub fn send_datagram(&mut self, data: Vec<u8>) -> Result<(), DatagramError> {
        let room = self.frame_room();
        self.sources.datagrams.send(data, room)
    }

    /// The longest datagram that can be sent now; `None` if the peer takes none.
    #[must_use]
    pub fn datagram_len_max(&self) -> Option<usize> {
        self.sources.datagrams.len_max(self.frame_room())
    }

    /// Datagrams in and out.
    #[must_use]
    pub const fn datagrams(&self) -> &Datagrams {
        &self.sources.datagrams
    }

    /// Room for frames in a 1-RTT packet with the longest packet number.
    fn frame_room(&self) -> usize {
        let header = 1 + self.sources.peer_ids.current().len() + 4;
        usize::from(self.paths.datagram_size()).saturating_sub(header + crate::crypto::TAG_LEN)
    }

    /// The handshake's session: ALPN, server name, certificate.
    #[must_use]
    pub fn session(&self) -> &dyn Session {
        &*self.session
    }

    /// The connection IDs that lead here.
    pub fn local_ids(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        self.sources.local_ids.iter()
    }

    /// The tokens that end a stateless reset of this connection (RFC 9000 §10.3.1).
    pub fn reset_tokens(&self) -> impl Iterator<Item = StatelessResetToken> + '_ {
        self.sources.peer_ids.reset_tokens()
    }

    /// A number that changes whenever [`Connection::local_ids`] or [`Connection::reset_tokens`] do.
    #[must_use]
    pub const fn ids_generation(&self) -> u64 {
        self.sources.local_ids.changes() + self.sources.peer_ids.changes()
    }

    /// Where the peer is.
    #[must_use]
    pub const fn network(&self) -> NetworkPath {
        self.paths.current().network
    }

    /// Whether the peer is there.
    pub(crate) fn is_at(&self, network: &NetworkPath) -> bool {
        self.paths.current().network == *network
    }

    /// What the application wants to know happened, in its order. What concerns streams comes from
    /// [`Streams::poll_event`].
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.poll()
    }

    /// A server gives the client a token for its next connection (RFC 9000 §8.1.3). Of several that wait to be sent, the
    /// last counts.
    pub fn send_new_token(&mut self, token: Vec<u8>) {
        if self.side == Side::Server && !token.is_empty() {
            self.sources.new_token.offer(token);
        }
    }

    /// A datagram that led nowhere else ended with one of [`Connection::reset_tokens`]: the peer has lost the connection
    /// (RFC 9000 §10.3.1).
    pub fn on_stateless_reset(&mut self, now: Time) {
        let probe_timeout = self.probe_timeout();
        self.end(now, CloseReason::StatelessReset, probe_timeout);
    }

    // ---- time -----------------------------------------------------------------------------------------------------

    /// When [`Connection::on_timeout`] wants to be called; `None` for not at all.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        if self.close.state() != CloseState::Open {
            return self.close.deadline();
        }
        let context = self.timer_context();
        let mut next = self.recovery.deadline(&context);
        let mut consider = |at: Option<Time>| {
            if let Some(at) = at {
                next = Some(next.map_or(at, |next| next.min(at)));
            }
        };
        for space in Space::ALL {
            let at = self.received.get(space).deadline();
            if at.is_some() && self.can_send_in(space) && !context.is_amplification_limited {
                consider(at);
            }
        }
        consider(self.idle.deadline(self.probe_timeout()));
        if self.stage == Stage::Confirmed {
            consider(self.idle.keep_alive_at());
        }
        consider(self.sender.release_at());
        consider(self.one_rtt.as_ref().and_then(|keys| keys.next_timeout()));
        consider(self.paths.deadline());
        consider(self.sources.local_ids.deadline());
        consider(self.zero_rtt_until);
        next
    }

    /// Time has passed. To be followed by [`Connection::poll_transmit`].
    pub fn on_timeout(&mut self, now: Time) {
        self.close.on_timeout(now);
        if self.is_closing() {
            return;
        }
        if self
            .idle
            .deadline(self.probe_timeout())
            .is_some_and(|at| at <= now)
        {
            self.end(now, CloseReason::IdleTimeout, Duration::ZERO);
            return;
        }
        self.sender.on_timeout(now);
        if let Some(keys) = &mut self.one_rtt {
            keys.on_timeout(now);
        }
        if self.zero_rtt_until.is_some_and(|at| at <= now) {
            self.zero_rtt_until = None;
            self.zero_rtt = None;
        }
        if self.stage == Stage::Confirmed && self.idle.keep_alive_at().is_some_and(|at| at <= now) {
            self.sender.request_probes(Space::Application, 1);
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

    /// Tells recovery of another datagram size, if there is one.
    #[inline]
    fn recovery_follows_mtu(&mut self, now: Time) {
        if let Some(size) = self.paths.take_new_size() {
            self.recovery.on_mtu(u64::from(size));
            self.tracer.event(now, &trace::Event::DatagramSize(size));
        }
    }

    /// Probes a space, and with it those that have something to say that the peer waits for (RFC 9002 §6.2.4): what one
    /// space lost can be what the peer needs to acknowledge another, and the window be full of that.
    fn probe(&mut self, expired: Space) {
        // New data is best; where there is none, the last packets may have been lost, and nothing but a probe would tell.
        if expired == Space::Application && !self.sources.want_to_send(expired) {
            self.recovery
                .repeat_oldest(expired, usize::from(PROBES), &mut self.sources);
        }
        for space in Space::ALL {
            self.sources.crypto.get_mut(space).send_again();
            if space == expired
                || (self.can_send_in(space) && self.sources.crypto.get(space).wants_to_send())
            {
                self.sender.request_probes(space, PROBES);
            }
        }
    }

    fn timer_context(&self) -> TimerContext {
        TimerContext {
            max_ack_delay: self.peer.max_ack_delay(),
            is_handshake_confirmed: self.stage == Stage::Confirmed,
            has_handshake_keys: self.keys.get(Space::Handshake).is_some(),
            is_amplification_limited: self.paths.is_amplification_limited(),
            must_keep_alive: self.stage != Stage::Confirmed
                && ((self.side == Side::Client && !self.has_handshake_ack)
                    || self.has_handshake_data_to_send()),
        }
    }

    /// Whether handshake data waits to be sent: for a window that may be full of packets which the peer cannot acknowledge
    /// before it has that data.
    fn has_handshake_data_to_send(&self) -> bool {
        [Space::Initial, Space::Handshake]
            .into_iter()
            .any(|space| self.can_send_in(space) && self.sources.crypto.get(space).wants_to_send())
    }

    /// Whether there are keys to send with, that the peer can be expected to have.
    fn can_send_in(&self, space: Space) -> bool {
        match space {
            Space::Initial | Space::Handshake => self.keys.get(space).is_some(),
            Space::Application => self.one_rtt.is_some() || self.is_zero_rtt(),
        }
    }

    fn probe_timeout(&self) -> Duration {
        self.recovery.rtt().probe_timeout(self.peer.max_ack_delay())
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("side", &self.side)
            .field("stage", &self.stage)
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
