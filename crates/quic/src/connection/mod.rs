//! The connection: a switchboard between rooms.
//!
//! Its fields are rooms, its methods forward. Datagrams come in at [`Connection::handle_datagram`] (`receive.rs`) and are
//! asked for with [`Connection::poll_transmit`] (`transmit.rs`); between them, the caller waits until
//! [`Connection::deadline`] and then says [`Connection::on_timeout`]. What the handshake needs is in `handshake.rs`, the
//! streams behind [`Connection::streams`].
//!
//! | file | holds |
//! |---|---|
//! | `start.rs`, `config.rs` | what a connection begins with |
//! | `handshake.rs` | the session's part, and the end of old keys |
//! | `receive.rs`, `transmit.rs` | datagrams in, datagrams out |
//! | `rooms.rs` | those that write frames |
//! | `network.rs`, `event.rs` | what callers are told |

mod config;
mod event;
mod handshake;
mod network;
mod receive;
mod rooms;
mod start;
mod transmit;

use core::time::Duration;
use std::{fmt, sync::Arc};

use lastbyte_congestion::{Environment, Rtt, Time};
use lastbyte_wire::{
    ConnectionId, Side, StatelessResetToken, TransportError,
    packet::Version,
    transport_parameters::TransportParameters,
};

pub use self::{
    config::{Config, PreferredAddresses},
    event::Event,
    network::{NetworkPath, Transmit},
    start::{ClientStart, RetryIds, ServerStart},
};
use self::{
    event::Events,
    rooms::Rooms,
    start::{ACTIVE_CONNECTION_ID_LIMIT, Opening},
};
use crate::{
    ack::{AckPolicy, ReceivedPackets},
    cid::{ConnectionIdGenerator, LocalIds, PeerIds},
    close::{Close, CloseReason, CloseState},
    crypto::{Keys, OneRttKeys, Session, SessionError},
    idle::IdleTimer,
    path::{Amplification, PathValidation},
    random::{Random, Seed},
    receipt::Receipt,
    recovery::{EcnValidation, Expired, Recovery, RecoveryStatistics, TimerContext},
    space::{PerSpace, Space},
    stream::Streams,
};

/// A connection.
pub struct Connection {
    side: Side,
    version: Version,
    config: Arc<Config>,
    /// The length of the connection IDs that we issue.
    local_id_len: usize,
    /// The ID of the handshake, which long headers name as the source.
    local_id: ConnectionId,
    opening: Option<Box<Opening>>,
    session: Box<dyn Session>,
    keys: PerSpace<Option<Keys>>,
    one_rtt: Option<Box<OneRttKeys>>,
    ids: Box<dyn ConnectionIdGenerator + Send>,
    received: PerSpace<ReceivedPackets>,
    recovery: Recovery,
    rooms: Rooms,
    network: NetworkPath,
    amplification: Amplification,
    /// Of the one path there is; it answers the peer's challenges.
    validation: PathValidation,
    idle: IdleTimer,
    close: Close,
    stage: Stage,
    peer_parameters: Option<TransportParameters>,
    /// Whether the peer has shown that it got our Handshake packets, so that its address is validated.
    has_handshake_ack: bool,
    probes: PerSpace<u8>,
    release_at: Option<Time>,
    /// The receipts of the packet being built.
    receipts: Vec<Receipt>,
    random: Random,
    events: Events,
}

/// How far the handshake is (RFC 9001 §4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// It goes on.
    Handshaking,
    /// This side is done (§4.1.1).
    Complete,
    /// Both sides are known to be (§4.1.2).
    Confirmed,
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
        let recovery = Recovery::new(
            controller,
            Rtt::default(),
            config.thresholds,
            EcnValidation::disabled(),
        );
        let mut connection = Self {
            side,
            version: opening.offer.version,
            local_id_len: local_id.len(),
            local_id,
            opening: Some(Box::new(opening)),
            session,
            keys: PerSpace::new(Some(initial_keys), None, None),
            one_rtt: None,
            ids,
            received: PerSpace::new(
                ReceivedPackets::new(AckPolicy::immediate()),
                ReceivedPackets::new(AckPolicy::immediate()),
                ReceivedPackets::new(AckPolicy::delayed(config.max_ack_delay)),
            ),
            recovery,
            rooms: Rooms::new(
                Streams::new(side, config.streams.clone()),
                LocalIds::new(local_id),
                PeerIds::new(peer_id, ACTIVE_CONNECTION_ID_LIMIT),
            ),
            network: path.0,
            amplification: path.1,
            validation: PathValidation::new(),
            idle: IdleTimer::new(now, config.max_idle_timeout, config.keep_alive),
            close: Close::new(),
            stage: Stage::Handshaking,
            peer_parameters: None,
            has_handshake_ack: false,
            probes: PerSpace::default(),
            release_at: None,
            receipts: Vec::new(),
            random,
            events: Events::default(),
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
        &mut self.rooms.streams
    }

    /// Loss recovery and congestion control, for logs.
    #[must_use]
    pub const fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// Counters of packets and bytes.
    #[must_use]
    pub const fn statistics(&self) -> &RecoveryStatistics {
        self.recovery.statistics()
    }

    /// The handshake's session: ALPN, server name, certificate.
    #[must_use]
    pub fn session(&self) -> &dyn Session {
        &*self.session
    }

    /// The connection IDs that lead here.
    pub fn local_ids(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        self.rooms.local_ids.iter()
    }

    /// The tokens that end a stateless reset of this connection (RFC 9000 §10.3.1).
    pub fn reset_tokens(&self) -> impl Iterator<Item = StatelessResetToken> + '_ {
        self.rooms.peer_ids.reset_tokens()
    }

    /// A number that changes whenever [`Connection::local_ids`] or [`Connection::reset_tokens`] do.
    #[must_use]
    pub const fn ids_generation(&self) -> u64 {
        self.rooms.local_ids.changes() + self.rooms.peer_ids.changes()
    }

    /// Where the peer is.
    #[must_use]
    pub const fn network(&self) -> NetworkPath {
        self.network
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
            self.rooms.new_token.offer(token);
        }
    }

    /// A datagram that led nowhere else ended with one of [`Connection::reset_tokens`]: the peer has lost the connection
    /// (RFC 9000 §10.3.1).
    pub fn on_stateless_reset(&mut self, now: Time) {
        let probe_timeout = self.probe_timeout();
        self.close
            .begin(now, CloseReason::StatelessReset, probe_timeout);
    }

    /// Closes the connection with a code of the application's.
    pub fn close(&mut self, now: Time, code: u64) {
        let probe_timeout = self.probe_timeout();
        self.close
            .begin(now, CloseReason::LocalApplication { code }, probe_timeout);
    }

    // ---- time -----------------------------------------------------------------------------------------------------

    /// When [`Connection::on_timeout`] wants to be called; `None` for not at all.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        if self.close.state() != CloseState::Open {
            return self.close.deadline();
        }
        let acks = Space::ALL.map(|space| {
            let deadline = self.received.get(space).deadline();
            deadline.filter(|_| self.can_send_in(space) && !self.is_amplification_limited())
        });
        [
            self.recovery.deadline(&self.timer_context()),
            self.idle.deadline(self.probe_timeout()),
            self.idle
                .keep_alive_at()
                .filter(|_| self.stage == Stage::Confirmed),
            self.release_at,
            self.one_rtt.as_ref().and_then(|keys| keys.next_timeout()),
        ]
        .into_iter()
        .chain(acks)
        .flatten()
        .min()
    }

    /// Time has passed. To be followed by [`Connection::poll_transmit`].
    pub fn on_timeout(&mut self, now: Time) {
        self.close.on_timeout(now);
        if self.close.state() != CloseState::Open {
            return;
        }
        if self
            .idle
            .deadline(self.probe_timeout())
            .is_some_and(|at| at <= now)
        {
            self.close
                .begin(now, CloseReason::IdleTimeout, Duration::ZERO);
            return;
        }
        if self.release_at.is_some_and(|at| at <= now) {
            self.release_at = None;
        }
        if let Some(keys) = &mut self.one_rtt {
            keys.on_timeout(now);
        }
        if self.stage == Stage::Confirmed && self.idle.keep_alive_at().is_some_and(|at| at <= now) {
            *self.probes.get_mut(Space::Application) = 1;
        }
        let context = self.timer_context();
        if let Expired::Probe(space) = self.recovery.on_timeout(now, &context, &mut self.rooms) {
            self.probe(space);
        }
    }

    /// Probes a space, and with it those that have something to say that the peer waits for (RFC 9002 §6.2.4): what one
    /// space lost can be what the peer needs to acknowledge another, and the window be full of that.
    fn probe(&mut self, expired: Space) {
        for space in Space::ALL {
            self.rooms.crypto.get_mut(space).send_again();
            if space == expired
                || (self.can_send_in(space) && self.rooms.crypto.get(space).wants_to_send())
            {
                *self.probes.get_mut(space) = PROBES;
            }
        }
    }

    fn timer_context(&self) -> TimerContext {
        TimerContext {
            max_ack_delay: self.peer_max_ack_delay(),
            is_handshake_confirmed: self.stage == Stage::Confirmed,
            has_handshake_keys: self.keys.get(Space::Handshake).is_some(),
            is_amplification_limited: self.is_amplification_limited(),
            must_keep_alive: self.side == Side::Client
                && !self.has_handshake_ack
                && self.stage != Stage::Confirmed,
        }
    }

    /// Whether the server has to hear more from the client before it may send another datagram (RFC 9000 §8.1).
    fn is_amplification_limited(&self) -> bool {
        self.amplification.budget() < u64::from(self.config.mtu.initial)
    }

    /// Whether there are keys to send with, that the peer can be expected to have.
    const fn can_send_in(&self, space: Space) -> bool {
        match space {
            Space::Initial | Space::Handshake => self.keys.get(space).is_some(),
            Space::Application => self.one_rtt.is_some(),
        }
    }

    fn peer_max_ack_delay(&self) -> Duration {
        self.peer_parameters
            .as_ref()
            .map_or(Duration::ZERO, |peer| {
                Duration::from_millis(peer.max_ack_delay_ms.get())
            })
    }

    fn probe_timeout(&self) -> Duration {
        self.recovery.rtt().probe_timeout(self.peer_max_ack_delay())
    }

    fn fail(&mut self, now: Time, fatal: Fatal) {
        let probe_timeout = self.probe_timeout();
        let reason = CloseReason::Local {
            code: fatal.code,
            reason: fatal.reason,
        };
        self.close.begin(now, reason, probe_timeout);
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("side", &self.side)
            .field("stage", &self.stage)
            .field("close", &self.close)
            .field("recovery", &self.recovery)
            .finish_non_exhaustive()
    }
}

/// Packets sent when the probe timeout expires (RFC 9002 §6.2.4).
const PROBES: u8 = 2;

#[cfg(test)]
mod tests;
