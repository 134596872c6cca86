//! The connection: a switchboard between rooms.
//!
//! Its fields are rooms, its methods forward. Datagrams come in at [`Connection::handle_datagram`] (`receive.rs`) and are
//! asked for with [`Connection::poll_transmit`] (`transmit.rs`); between them, the caller waits until
//! [`Connection::deadline`] and then says [`Connection::on_timeout`]. What the handshake needs is in `handshake.rs`, the
//! streams behind [`Connection::streams`].
//!
//! What it cannot do yet: 0-RTT, Retry, version negotiation, migration, path MTU discovery, ECN marking, datagrams,
//! tokens, stateless reset. The rooms for some of these stand, and are not joined yet.

mod handshake;
mod receive;
mod rooms;
mod transmit;

use core::time::Duration;
use std::fmt;

use lastbyte_congestion::{Environment, Rtt, Spec, Time};
use lastbyte_wire::{
    ConnectionId, Side, StatelessResetToken, TransportError, VarInt,
    packet::Version,
    transport_parameters::{HandshakeConnectionIds, TransportParameters},
};

use self::rooms::Rooms;
use crate::{
    ack::{AckPolicy, ReceivedPackets},
    cid::{ConnectionIdGenerator, LocalIds, PeerIds},
    close::{Close, CloseReason, CloseState},
    crypto::{ClientCrypto, Keys, OneRttKeys, ServerCrypto, Session, SessionError, StartError},
    idle::IdleTimer,
    path::{Amplification, PathValidation},
    receipt::Receipt,
    recovery::{
        EcnValidation, Expired, LossThresholds, Recovery, RecoveryStatistics, TimerContext,
    },
    space::{PerSpace, Space},
    stream::{self, Streams},
};

/// What can be set for a connection.
#[derive(Clone, Debug)]
pub struct Config {
    /// Limits of its streams.
    pub streams: stream::Config,
    /// Its congestion control.
    pub congestion: Spec,
    /// How it judges losses.
    pub thresholds: LossThresholds,
    /// After how long without a packet it is over; zero for never. Default: 30 s.
    pub max_idle_timeout: Duration,
    /// How long nothing may happen before a PING keeps it alive. Default: never.
    pub keep_alive: Option<Duration>,
    /// How long an acknowledgment is held back at most: `max_ack_delay`. Default: 25 ms; below 2^14 ms.
    pub max_ack_delay: Duration,
    /// The UDP payload of its datagrams, in bytes, 1200 at least. Default: 1200.
    pub datagram_size: u16,
}

impl Config {
    /// The defaults, with this congestion control.
    #[must_use]
    pub fn new(congestion: Spec) -> Self {
        Self {
            streams: stream::Config::default(),
            congestion,
            thresholds: LossThresholds::fixed(),
            max_idle_timeout: Duration::from_secs(30),
            keep_alive: None,
            max_ack_delay: Duration::from_millis(25),
            datagram_size: 1200,
        }
    }
}

/// The connection IDs that a connection begins with.
#[derive(Clone, Copy, Debug)]
pub struct InitialIds {
    /// What the peer is to send to.
    pub local: ConnectionId,
    /// What we send to: a client's guess, or what a client's first packet names as its source.
    pub peer: ConnectionId,
    /// The destination of the client's first packet. For a client the same as `peer`.
    pub original_destination: ConnectionId,
}

/// A connection.
pub struct Connection {
    side: Side,
    version: Version,
    config: Config,
    /// The length of the connection IDs that we issue.
    local_id_len: usize,
    /// The ID of the handshake, which long headers name as the source.
    local_id: ConnectionId,
    original_destination: ConnectionId,
    /// The peer's ID as its first packet named it, which its transport parameters have to confirm.
    peer_handshake_id: Option<ConnectionId>,
    session: Box<dyn Session>,
    keys: PerSpace<Option<Keys>>,
    one_rtt: Option<Box<OneRttKeys>>,
    ids: Box<dyn ConnectionIdGenerator + Send>,
    received: PerSpace<ReceivedPackets>,
    recovery: Recovery,
    rooms: Rooms,
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
    /// A client's connection to the server of this name.
    ///
    /// # Errors
    ///
    /// The handshake cannot begin.
    #[expect(
        clippy::too_many_arguments,
        reason = "an endpoint will hold most of them"
    )]
    pub fn client(
        now: Time,
        config: Config,
        crypto: &dyn ClientCrypto,
        server_name: &str,
        version: Version,
        initial: InitialIds,
        ids: Box<dyn ConnectionIdGenerator + Send>,
        seed: u64,
    ) -> Result<Self, StartError> {
        let parameters = parameters(&config, &initial, None);
        let session = crypto.start(version, server_name, &parameters.to_vec())?;
        let keys = crypto.initial_keys(version, &initial.original_destination);
        let path = Amplification::unlimited();
        Ok(Self::new(
            now,
            Side::Client,
            config,
            version,
            initial,
            session,
            keys,
            path,
            ids,
            seed,
        ))
    }

    /// A server's connection, for a client's first datagram, which is then to be handed in.
    ///
    /// # Errors
    ///
    /// The handshake cannot begin.
    pub fn server(
        now: Time,
        config: Config,
        crypto: &dyn ServerCrypto,
        version: Version,
        initial: InitialIds,
        ids: Box<dyn ConnectionIdGenerator + Send>,
        seed: u64,
    ) -> Result<Self, StartError> {
        let token = ids.reset_token(&initial.local);
        let parameters = parameters(&config, &initial, Some(token));
        let session = crypto.start(version, &parameters.to_vec())?;
        let keys = crypto.initial_keys(version, &initial.original_destination);
        let path = Amplification::limited();
        Ok(Self::new(
            now,
            Side::Server,
            config,
            version,
            initial,
            session,
            keys,
            path,
            ids,
            seed,
        ))
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the two constructors come together here"
    )]
    fn new(
        now: Time,
        side: Side,
        config: Config,
        version: Version,
        initial: InitialIds,
        session: Box<dyn Session>,
        initial_keys: Keys,
        amplification: Amplification,
        ids: Box<dyn ConnectionIdGenerator + Send>,
        seed: u64,
    ) -> Self {
        let controller = config.congestion.build(&Environment {
            max_datagram_size: u64::from(config.datagram_size),
            seed,
        });
        let recovery = Recovery::new(
            controller,
            Rtt::default(),
            config.thresholds,
            EcnValidation::disabled(),
        );
        let mut connection = Self {
            side,
            version,
            local_id_len: initial.local.len(),
            local_id: initial.local,
            original_destination: initial.original_destination,
            peer_handshake_id: (side == Side::Server).then_some(initial.peer),
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
                LocalIds::new(initial.local),
                PeerIds::new(initial.peer, ACTIVE_CONNECTION_ID_LIMIT),
            ),
            amplification,
            validation: PathValidation::new(),
            idle: IdleTimer::new(now, config.max_idle_timeout, config.keep_alive),
            close: Close::new(),
            stage: Stage::Handshaking,
            peer_parameters: None,
            has_handshake_ack: false,
            probes: PerSpace::default(),
            release_at: None,
            receipts: Vec::new(),
            config,
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
        self.amplification.budget() < u64::from(self.config.datagram_size)
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

/// What we tell the peer (RFC 9000 §18.2).
fn parameters(
    config: &Config,
    initial: &InitialIds,
    reset_token: Option<StatelessResetToken>,
) -> TransportParameters {
    let millis =
        |span: Duration| VarInt::saturating(u64::try_from(span.as_millis()).unwrap_or(u64::MAX));
    let mut parameters = TransportParameters {
        initial_source_connection_id: Some(initial.local),
        max_idle_timeout_ms: millis(config.max_idle_timeout),
        max_ack_delay_ms: millis(config.max_ack_delay),
        active_connection_id_limit: VarInt::from_u32(ACTIVE_CONNECTION_ID_LIMIT as u32),
        stateless_reset_token: reset_token,
        original_destination_connection_id: reset_token.map(|_| initial.original_destination),
        ..TransportParameters::default()
    };
    config.streams.announce(&mut parameters);
    parameters
}

/// How many of the peer's connection IDs are kept.
const ACTIVE_CONNECTION_ID_LIMIT: usize = 4;
/// Packets sent when the probe timeout expires (RFC 9002 §6.2.4).
const PROBES: u8 = 2;

impl Connection {
    /// What the peer's transport parameters have to confirm (RFC 9000 §7.3).
    fn handshake_ids(&self) -> Option<HandshakeConnectionIds> {
        Some(HandshakeConnectionIds {
            initial_source: self.peer_handshake_id?,
            original_destination: (self.side == Side::Client).then_some(self.original_destination),
            retry_source: None,
        })
    }
}

#[cfg(test)]
mod tests;
