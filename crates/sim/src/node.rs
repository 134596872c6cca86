//! The two ends of a flow: an endpoint each, with a client or a server.
//!
//! Configures the endpoints and dispatches their events. [`crate::client`] and [`crate::server`] make requests and measure,
//! [`crate::protocol`] encodes them. Nothing here knows about links.

use core::{net::SocketAddr, time::Duration};
use std::sync::Arc;

use lastbyte_congestion::{SavedPath, Spec, Time};
use lastbyte_quic::{
    ack::Ecn,
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
use lastbyte_scenario::{Move, MoveKind, Transport};
use lastbyte_wire::Side;

use crate::{
    SERVER_NAME,
    client::Client,
    listener::Listener,
    moves,
    outcome::{Drop, FlowOutcome, SenderOutcome},
    protocol::{ClientApplication, Incoming},
    server::{Messages, Server},
};

/// One end of a flow. Clients run the application `C`.
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
    /// Address changes of a client.
    moves: Vec<Move>,
    /// The number of address changes that have happened.
    moved: usize,
}

enum Role<C> {
    Client(Box<C>, ClientSetup),
    Server(Server),
}

/// Arguments of a client's connect call.
struct ClientSetup {
    config: Arc<Config>,
    crypto: Arc<dyn ClientCrypto>,
    /// The server's token from an earlier connection, or empty.
    token: Vec<u8>,
}

/// The connection configuration of both ends.
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

/// Receive windows of a client: of a stream, and of the connection.
pub(crate) fn receive_windows(transport: &Transport) -> [WindowSize; 2] {
    let stream = transport.stream_window;
    [stream, stream.saturating_mul(5) / 2].map(|bytes| WindowSize {
        initial: bytes,
        maximum: if transport.has_fixed_windows {
            bytes
        } else {
            bytes.max(16 << 20)
        },
    })
}

/// The client's configuration, derived from the server's `config`.
pub(crate) fn client_config(transport: &Transport, config: &Arc<Config>) -> Arc<Config> {
    match transport.ack_decimation {
        None => Arc::clone(config),
        decimation => Arc::new(Config {
            ack_decimation: decimation,
            ..Config::clone(config)
        }),
    }
}

impl<C: ClientApplication> Node<C> {
    /// Creates the client of a flow. `token` is the server's token from an earlier connection, or empty.
    pub(crate) fn client(
        config: Arc<Config>,
        client: C,
        crypto: Arc<dyn ClientCrypto>,
        token: Vec<u8>,
        path: NetworkPath,
        seed: Seed,
    ) -> Result<Self, EndpointConfigError> {
        let setup = ClientSetup {
            config,
            crypto,
            token,
        };
        let role = Role::Client(Box::new(client), setup);
        Self::new(EndpointConfig::client(), role, path, seed)
    }

    /// Creates the server of a flow.
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
        // On the longest paths a handshake takes longer than the default timeout.
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

    /// Sets the address changes of a client.
    pub(crate) fn set_moves(&mut self, moves: &[Move]) {
        self.moves = moves.to_vec();
    }

    /// How many times a client's address has changed.
    pub(crate) const fn moved(&self) -> usize {
        self.moved
    }

    /// Sets the source address of the next datagram at a server.
    pub(crate) const fn set_remote(&mut self, remote: SocketAddr) {
        self.path.remote = remote;
    }

    /// Creates a server's token for its client (RFC 9000 §8.1.3), with the path measurements that it saved, if any.
    pub(crate) fn token(&mut self, saved: Option<SavedPath>) -> Option<Vec<u8>> {
        let remote = self.path.remote;
        match saved {
            Some(saved) => self.endpoint.token_with_path(Time::ZERO, remote, saved),
            None => self.endpoint.new_token(Time::ZERO, remote, &[]),
        }
    }

    /// When [`Node::on_time`] must be called next.
    pub(crate) fn deadline(&self) -> Option<Time> {
        let application = match &self.role {
            Role::Client(client, _) => client.deadline(),
            Role::Server(server) => server.deadline(),
        };
        let moves = self.moves.get(self.moved).map(|next| Time::ZERO + next.at);
        Time::earlier(moves, Time::earlier(application, self.endpoint.deadline()))
    }

    /// Handles expired timers.
    pub(crate) fn on_time(
        &mut self,
        now: Time,
        flow: usize,
        listener: &mut impl Listener,
    ) -> Result<(), ConnectError> {
        while self.endpoint.poll_timeout(now).is_some() {}
        self.take_moves(now, flow);
        if let Role::Client(client, setup) = &mut self.role
            && client.take_wakeup(now)
        {
            if let Some(handle) = self.handle {
                if let Some(connection) = self.endpoint.connection(handle) {
                    client.send_requests(now, connection);
                }
            } else {
                let handle = self.endpoint.connect(
                    now,
                    self.path,
                    SERVER_NAME,
                    &setup.config,
                    Arc::clone(&setup.crypto),
                    std::mem::take(&mut setup.token),
                )?;
                self.handle = Some(handle);
                if let Some(connection) = self.endpoint.connection(handle) {
                    if let Some(trace) = listener.trace(flow, Side::Client) {
                        connection.set_trace(trace);
                    }
                    client.on_connection_started(now, connection);
                }
            }
        }
        self.run_application(now);
        Ok(())
    }

    /// Applies the address changes that are due.
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
                // A client cannot migrate before the handshake is confirmed (RFC 9000 §9).
                let _ = connection.rebind(now, self.path);
            }
        }
    }

    /// Processes a received datagram.
    pub(crate) fn on_datagram(
        &mut self,
        now: Time,
        ecn: Ecn,
        datagram: &mut [u8],
        flow: usize,
        listener: &mut impl Listener,
    ) {
        let route = match self.handle {
            // Each end has one connection: no routing is needed until it closes.
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
        self.run_application(now);
    }

    /// Passes events to the application, and lets it run.
    fn run_application(&mut self, now: Time) {
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
            Role::Client(client, _) => client.process_events(now, connection),
            Role::Server(server) => server.process_events(now, connection),
        }
    }

    /// Returns the next datagram to send.
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

    /// The application of a client.
    pub(crate) fn client_side(&mut self) -> Option<&mut C> {
        match &mut self.role {
            Role::Client(client, _) => Some(client),
            Role::Server(_) => None,
        }
    }
}

impl Node {
    /// Counts of its messages: a server's responses, a client's requests.
    pub(crate) fn messages(&self) -> Messages {
        match &self.role {
            Role::Server(server) => server.responses(),
            Role::Client(client, _) => client.requests(),
        }
    }

    /// The outcome of a sender of `expected` messages.
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
            requested_at: messages.started_at,
            acked_at: messages.acked_at.filter(|_| messages.acked >= expected),
            snapshot: Box::new(Snapshot::of(connection)),
        })
    }

    /// Whether this is a client with all responses complete.
    pub(crate) fn is_complete(&self) -> bool {
        matches!(&self.role, Role::Client(client, _) if client.is_complete())
    }

    /// The outcome of a client's flow.
    pub(crate) fn flow_outcome(
        &self,
        server: Option<SenderOutcome>,
        drops: Vec<Drop>,
        path_rtt: Duration,
    ) -> Option<FlowOutcome> {
        let Role::Client(client, _) = &self.role else {
            return None;
        };
        Some(FlowOutcome {
            server,
            drops,
            path_rtt,
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
