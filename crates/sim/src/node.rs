//! The two ends of a flow: an endpoint each, with a client or a server.
//!
//! Configures the endpoints and dispatches their events. [`crate::client`] and [`crate::server`] make requests and measure,
//! [`crate::protocol`] encodes them. Nothing here knows about links.

use core::{net::SocketAddr, time::Duration};
use std::sync::Arc;

use lastbyte_congestion::{SavedPath, Spec, Time};
use lastbyte_quic::{
    ack::EcnCodepoint,
    close::CloseReason,
    connection::{Config, Connection, Event, NetworkPath, Transmit},
    crypto::{ClientCrypto, ServerCrypto},
    endpoint::{
        ConnectError, Endpoint, EndpointConfig, EndpointConfigError, Handle, RetryPolicy, Route,
    },
    flow::WindowSize,
    path::MtuConfig,
    random::Seed,
    recovery::LossThresholds,
};
use lastbyte_record::connection_log::Snapshot;
use lastbyte_wire::Side;

use crate::{
    SERVER_NAME,
    client::Client,
    listener::Listener,
    moves::{self, Move, MoveKind},
    outcome::{Drop, FlowOutcome, SenderOutcome},
    protocol::{ClientSide, Incoming},
    scenario::Transport,
    server::{Messages, Server},
};

/// One end of a flow, whose clients have the application `C`.
pub(crate) struct Node<C = Client> {
    endpoint: Endpoint,
    path: NetworkPath,
    handle: Option<Handle>,
    role: Role<C>,
    /// Why the connection ended.
    closed: Option<CloseReason>,
    /// The connection, once it has closed.
    ended: Option<Box<Connection>>,
    has_ended: bool,
    /// Of a client: when its address changes.
    moves: Vec<Move>,
    /// How many of these are past.
    moved: usize,
}

enum Role<C> {
    Client(Box<C>, Dial),
    Server(Server),
}

/// What a client connects with.
struct Dial {
    config: Arc<Config>,
    crypto: Arc<dyn ClientCrypto>,
    /// What the server gave it on a visit before, or nothing.
    token: Vec<u8>,
}

/// What both ends' connections are set to.
pub(crate) fn config(transport: &Transport, congestion: Spec) -> Arc<Config> {
    let mut config = Config::new(congestion);
    if !transport.adapts_to_reordering {
        config.thresholds = LossThresholds::fixed();
    }
    config.mtu = MtuConfig {
        initial: transport.datagram_size,
        maximum: transport.datagram_size,
    };
    config.ecn = transport.ecn;
    config.ack_frequency = transport.ack_frequency;
    config.max_ack_delay = transport.max_ack_delay;
    // Pauses between requests are part of a scenario, however long.
    config.max_idle_timeout = Duration::ZERO;
    [
        config.streams.stream_window,
        config.streams.connection_window,
    ] = receive_windows(transport);
    Arc::new(config)
}

/// What a client lets a server send ahead: on a stream, and on the connection.
pub(crate) fn receive_windows(transport: &Transport) -> [WindowSize; 2] {
    let stream = transport.stream_window;
    [stream, stream.saturating_mul(5) / 2].map(|bytes| WindowSize {
        initial: bytes,
        maximum: bytes.max(16 << 20),
    })
}

/// What the client's connections are set to, where that differs from the server's `config`.
pub(crate) fn client_config(transport: &Transport, config: &Arc<Config>) -> Arc<Config> {
    match transport.ack_decimation {
        None => Arc::clone(config),
        decimation => Arc::new(Config {
            ack_decimation: decimation,
            ..Config::clone(config)
        }),
    }
}

impl<C: ClientSide> Node<C> {
    /// The client of a flow. `token` is the server's, of a visit before, or empty.
    pub(crate) fn client(
        config: Arc<Config>,
        client: C,
        crypto: Arc<dyn ClientCrypto>,
        token: Vec<u8>,
        path: NetworkPath,
        seed: Seed,
    ) -> Result<Self, EndpointConfigError> {
        let dial = Dial {
            config,
            crypto,
            token,
        };
        let role = Role::Client(Box::new(client), dial);
        Self::new(EndpointConfig::client(), role, path, seed)
    }

    /// The server of a flow.
    pub(crate) fn server(
        config: Arc<Config>,
        server: Server,
        crypto: Arc<dyn ServerCrypto>,
        path: NetworkPath,
        seed: Seed,
    ) -> Result<Self, EndpointConfigError> {
        let mut endpoint = EndpointConfig::server(config, crypto);
        if let Some(server) = &mut endpoint.server {
            server.retry = RetryPolicy::Never;
        }
        Self::new(endpoint, Role::Server(server), path, seed)
    }

    fn new(
        mut config: EndpointConfig,
        role: Role<C>,
        path: NetworkPath,
        seed: Seed,
    ) -> Result<Self, EndpointConfigError> {
        // On the longest of paths a handshake takes longer than an endpoint would put up with.
        config.limits.handshake_timeout = Duration::from_secs(3600);
        Ok(Self {
            endpoint: Endpoint::new(config, seed)?,
            path,
            handle: None,
            role,
            closed: None,
            ended: None,
            has_ended: false,
            moves: Vec::new(),
            moved: 0,
        })
    }

    /// Sets when the address of a client changes.
    pub(crate) fn set_moves(&mut self, moves: &[Move]) {
        self.moves = moves.to_vec();
    }

    /// Of a client: how many times its address has changed.
    pub(crate) const fn moved(&self) -> usize {
        self.moved
    }

    /// Of a server: where the datagram that comes next was sent from.
    pub(crate) const fn set_remote(&mut self, remote: SocketAddr) {
        self.path.remote = remote;
    }

    /// Of a server: a token for its client (RFC 9000 §8.1.3), as it gives one on each visit; with what it measured of the path
    /// then, if it saved that.
    pub(crate) fn token(&mut self, saved: Option<SavedPath>) -> Option<Vec<u8>> {
        let remote = self.path.remote;
        match saved {
            Some(saved) => self.endpoint.token_with_path(Time::ZERO, remote, saved),
            None => self.endpoint.new_token(Time::ZERO, remote, &[]),
        }
    }

    /// When [`Node::on_time`] wants to be called.
    pub(crate) fn deadline(&self) -> Option<Time> {
        let application = match &self.role {
            Role::Client(client, _) => client.deadline(),
            Role::Server(server) => server.deadline(),
        };
        let moves = self.moves.get(self.moved).map(|next| Time::ZERO + next.at);
        Time::earlier(moves, Time::earlier(application, self.endpoint.deadline()))
    }

    /// It is time for something.
    pub(crate) fn on_time(
        &mut self,
        now: Time,
        flow: usize,
        listener: &mut impl Listener,
    ) -> Result<(), ConnectError> {
        while self.endpoint.poll_timeout(now).is_some() {}
        self.take_moves(now, flow);
        if let Role::Client(client, dial) = &mut self.role
            && client.takes_wake(now)
        {
            if let Some(handle) = self.handle {
                if let Some(connection) = self.endpoint.connection(handle) {
                    client.ask(now, connection);
                }
            } else {
                let handle = self.endpoint.connect(
                    now,
                    self.path,
                    SERVER_NAME,
                    &dial.config,
                    Arc::clone(&dial.crypto),
                    std::mem::take(&mut dial.token),
                )?;
                self.handle = Some(handle);
                if let Some(connection) = self.endpoint.connection(handle) {
                    if let Some(trace) = listener.trace(flow, Side::Client) {
                        connection.set_trace(trace);
                    }
                    client.on_begun(now, connection);
                }
            }
        }
        self.attend(now);
        Ok(())
    }

    /// Changes the address of a client if it is time.
    fn take_moves(&mut self, now: Time, flow: usize) {
        while let Some(next) = self.moves.get(self.moved)
            && Time::ZERO + next.at <= now
        {
            self.moved += 1;
            let past = self.moves.get(..self.moved).unwrap_or_default();
            self.path.local = moves::local(addresses(flow, Side::Client).local, past);
            if next.kind == MoveKind::Network
                && let Some(handle) = self.handle
                && let Some(connection) = self.endpoint.connection(handle)
            {
                // Before the handshake is confirmed it cannot move (RFC 9000 §9), and its server does not follow.
                let _ = connection.rebind(now, self.path);
            }
        }
    }

    /// A datagram came.
    pub(crate) fn on_datagram(
        &mut self,
        now: Time,
        ecn: EcnCodepoint,
        datagram: &mut [u8],
        flow: usize,
        listener: &mut impl Listener,
    ) {
        let route = match self.handle {
            // Each end has one connection: what arrives until it has closed needs no look at tables.
            Some(handle) if !self.has_ended => Route::Connection(handle),
            _ => self.endpoint.route(now, &self.path, datagram),
        };
        let handle = match route {
            Route::Accepted(handle) => {
                self.handle = Some(handle);
                if let (Some(trace), Some(connection)) = (
                    listener.trace(flow, Side::Server),
                    self.endpoint.connection(handle),
                ) {
                    connection.set_trace(trace);
                }
                handle
            }
            Route::Connection(handle) => handle,
            _ => return,
        };
        let Some(connection) = self.endpoint.connection(handle) else {
            return;
        };
        let incoming = Incoming {
            now,
            path: &self.path,
            ecn,
            bytes: datagram,
        };
        match &mut self.role {
            Role::Client(client, _) => client.receive(connection, incoming),
            Role::Server(server) => server.receive(connection, incoming),
        }
        self.attend(now);
    }

    /// The application's turn.
    fn attend(&mut self, now: Time) {
        let Some(handle) = self.handle else {
            return;
        };
        if self.has_ended {
            return;
        }
        let Some(connection) = self.endpoint.connection(handle) else {
            return;
        };
        while let Some(event) = connection.poll_event() {
            if let Event::Closed(reason) = event {
                self.closed = Some(reason);
                self.has_ended = true;
            }
            if let Role::Client(client, _) = &mut self.role {
                client.on_event(now, connection, &event);
            }
        }
        match &mut self.role {
            Role::Client(client, _) => client.attend(now, connection),
            Role::Server(server) => server.attend(now, connection),
        }
    }

    /// The next datagram to be sent.
    pub(crate) fn poll_transmit(&mut self, now: Time, buffer: &mut [u8]) -> Option<Transmit> {
        let transmit = self.endpoint.poll_transmit(now, buffer);
        if transmit.is_none() {
            while let Some(closed) = self.endpoint.poll_closed() {
                self.closed = self.closed.or(closed.connection.close_reason());
                self.ended = Some(closed.connection);
                self.has_ended = true;
            }
        }
        transmit
    }

    pub(crate) const fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Of a client: its application.
    pub(crate) fn client_side(&mut self) -> Option<&mut C> {
        match &mut self.role {
            Role::Client(client, _) => Some(client),
            Role::Server(_) => None,
        }
    }
}

impl Node {
    /// Its messages: a server's responses, a client's requests.
    pub(crate) fn messages(&self) -> Messages {
        match &self.role {
            Role::Server(server) => server.answers(),
            Role::Client(client, _) => client.requests(),
        }
    }

    /// How it fares, if it is the end that sends the data, in this many messages.
    pub(crate) fn sender_outcome(&self, expected: u64) -> Option<SenderOutcome> {
        let connection = self.endpoint.peek(self.handle?).or(self.ended.as_deref())?;
        let recovery = connection.recovery();
        let messages = self.messages();
        Some(SenderOutcome {
            recovery: *connection.recovery_statistics(),
            streams: connection.stream_statistics(),
            congestion: recovery.congestion(),
            rtt_min: recovery.rtt().min(),
            rtt_smoothed: recovery.rtt().smoothed(),
            asked_at: messages.begun_at,
            acked_at: messages.acked_at.filter(|_| messages.acked >= expected),
            snapshot: Box::new(Snapshot::of(connection)),
        })
    }

    /// Of a client: whether all that it wanted has arrived.
    pub(crate) fn is_satisfied(&self) -> bool {
        matches!(&self.role, Role::Client(client, _) if client.is_satisfied())
    }

    /// Of a client: what it measured.
    pub(crate) fn flow_outcome(
        &self,
        server: Option<SenderOutcome>,
        drops: Vec<Drop>,
    ) -> Option<FlowOutcome> {
        let Role::Client(client, _) = &self.role else {
            return None;
        };
        Some(FlowOutcome {
            server,
            drops,
            failure: self.closed,
            ..client.outcome()
        })
    }
}

/// The addresses of a flow, as one of its ends sees them.
pub(crate) fn addresses(flow: usize, side: Side) -> NetworkPath {
    let [_, b, c, d] = (flow as u32).to_be_bytes();
    let server = SocketAddr::from(([192, 0, 2, 1], 443));
    let client = SocketAddr::from(([10, b, c, d], 50_000));
    match side {
        Side::Client => NetworkPath {
            local: client,
            remote: server,
        },
        Side::Server => NetworkPath {
            local: server,
            remote: client,
        },
    }
}
