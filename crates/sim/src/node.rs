//! The two ends of a flow: a client, and the server of `lastbyte serve`, each on an [`Engine`].
//!
//! The shell of the engines in virtual time: configures the endpoints, and passes datagrams and times. [`crate::client`] makes
//! requests and measures, [`crate::server`] has the content of responses. Nothing here knows about links.

use core::{net::SocketAddr, time::Duration};
use std::sync::{Arc, PoisonError};

use lastbyte_congestion::{SavedPath, Time};
use lastbyte_engine::{Application, Datagram, Engine, Next, Status};
use lastbyte_origin::{Handler, Http3Server};
use lastbyte_quic::{
    ack::Ecn,
    close::CloseReason,
    connection::{Config, Connection, Event, NetworkPath, Transmit},
    crypto::{ClientCrypto, ServerCrypto},
    endpoint::{Closed, ConnectError, Endpoint, EndpointConfig, EndpointConfigError, Handle},
    flow::WindowSize,
    random::Seed,
    trace::Trace,
};
use lastbyte_record::connection_log::Snapshot;
use lastbyte_scenario::{Move, MoveKind, Transport};
use lastbyte_wire::Side;

use crate::{
    SERVER_NAME,
    application::ClientApplication,
    client::Client,
    listener::Listener,
    measures::Messages,
    moves,
    outcome::{Drop, FlowOutcome, SenderOutcome},
    server::{PATIENCE, ServerSettings, TraceSlot, config},
};

/// One end of a flow. Clients run the application `C`.
pub(crate) enum Node<C: ClientApplication = Client> {
    Client(Box<ClientNode<C>>),
    Server(Box<ServerNode>),
}

/// The client of a flow.
pub(crate) struct ClientNode<C: ClientApplication> {
    engine: Engine<ClientEnd<C>>,
    deadline: Option<Time>,
    has_asked_for_trace: bool,
}

/// The application of a client: one connection.
struct ClientEnd<C> {
    client: C,
    /// Arguments of the connect call.
    config: Arc<Config>,
    crypto: Arc<dyn ClientCrypto>,
    /// The server's token from an earlier connection, or empty.
    token: Vec<u8>,
    path: NetworkPath,
    flow: usize,
    trace: Option<Box<dyn Trace>>,
    handle: Option<Handle>,
    /// Why the connection cannot be started.
    error: Option<ConnectError>,
    /// Why the connection ended.
    closed: Option<CloseReason>,
    /// The connection, once its endpoint has removed it.
    ended: Option<Box<Connection>>,
    /// When it must run at the latest, after its last turn.
    due: Option<Time>,
    /// Address changes.
    moves: Vec<Move>,
    /// The number of address changes that have happened.
    moved: usize,
}

/// The server of a flow.
pub(crate) struct ServerNode {
    engine: Engine<Http3Server>,
    deadline: Option<Time>,
    path: NetworkPath,
    /// The newest connection: a client that moves during the handshake opens another.
    handle: Option<Handle>,
    /// The number of connections.
    connections: usize,
    responses: Messages,
    /// The outcome when the connection ended.
    ended: Option<SenderOutcome>,
    /// The trace of the connection, until it is accepted.
    trace: TraceSlot,
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

/// The client's configuration, with the congestion control and the datagram sizes of the `server`.
pub(crate) fn client_config(transport: &Transport, server: &Config) -> Arc<Config> {
    let mut config = config(transport, Arc::clone(&server.congestion));
    config.mtu = server.mtu;
    config.ack_decimation = transport.ack_decimation;
    [
        config.streams.stream_window,
        config.streams.connection_window,
    ] = receive_windows(transport);
    Arc::new(config)
}

impl<C: ClientApplication> Application for ClientEnd<C> {
    type Command = ();
    type Data = ();

    fn on_accepted(&mut self, _: Time, _: Handle, _: &mut Connection) {}

    fn on_datagram(
        &mut self,
        now: Time,
        _: Handle,
        connection: &mut Connection,
        (): &mut (),
        datagram: Datagram<'_>,
    ) {
        self.client.receive(now, connection, datagram);
    }

    fn on_ready(&mut self, now: Time, _: Handle, connection: &mut Connection, (): &mut ()) {
        while let Some(event) = connection.poll_event() {
            if let Event::Closed(reason) = event {
                self.closed = Some(reason);
            }
            self.client.on_event(now, connection, &event);
        }
        self.client.process_events(now, connection);
    }

    fn on_closed(&mut self, _: Time, closed: Closed) {
        self.closed = self.closed.or(closed.connection.close_reason());
        self.ended = Some(closed.connection);
    }

    fn on_command(&mut self, _: Time, _: &mut Endpoint, (): ()) {}

    fn on_turn(&mut self, now: Time, endpoint: &mut Endpoint) -> Next {
        self.take_moves(now, endpoint);
        let is_due = self.due.is_some_and(|at| at <= now);
        if self.client.take_wakeup(now)
            && let Err(error) = self.wake(now, endpoint)
        {
            self.error = Some(error);
        }
        if is_due
            && let Some(handle) = self.handle
            && let Some(connection) = endpoint.connection(handle)
        {
            self.client.process_events(now, connection);
        }
        self.due = self.next_deadline();
        Next {
            deadline: self.due,
            status: Status::Running,
        }
    }
}

impl<C: ClientApplication> ClientEnd<C> {
    /// Connects, or sends requests.
    fn wake(&mut self, now: Time, endpoint: &mut Endpoint) -> Result<(), ConnectError> {
        if let Some(handle) = self.handle {
            if let Some(connection) = endpoint.connection(handle) {
                self.client.send_requests(now, connection);
            }
            return Ok(());
        }
        let handle = endpoint.connect(
            now,
            self.path,
            SERVER_NAME,
            &self.config,
            Arc::clone(&self.crypto),
            std::mem::take(&mut self.token),
        )?;
        self.handle = Some(handle);
        if let Some(connection) = endpoint.connection(handle) {
            if let Some(trace) = self.trace.take() {
                connection.set_trace(trace);
            }
            self.client.on_connection_started(now, connection);
        }
        Ok(())
    }

    /// Applies the address changes that are due.
    fn take_moves(&mut self, now: Time, endpoint: &mut Endpoint) {
        while let Some(next) = self.moves.get(self.moved)
            && Time::ZERO + next.at <= now
        {
            self.moved += 1;
            let past = self.moves.get(..self.moved).unwrap_or_default();
            self.path.local = moves::local(addresses(self.flow, Side::Client).local, past);
            if next.kind == MoveKind::Network
                && let Some(handle) = self.handle
                && let Some(connection) = endpoint.connection(handle)
            {
                // A client cannot migrate before the handshake is confirmed (RFC 9000 §9).
                let _ = connection.rebind(now, self.path);
            }
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        let moves = self.moves.get(self.moved).map(|next| Time::ZERO + next.at);
        Time::earlier(moves, self.client.deadline())
    }
}

/// The ends of a flow, both configured by `transport`.
pub(crate) struct Setup<'a> {
    pub(crate) flow: usize,
    pub(crate) transport: &'a Transport,
    pub(crate) server: &'a ServerSettings,
    pub(crate) config: Arc<Config>,
    pub(crate) client_crypto: Arc<dyn ClientCrypto>,
    pub(crate) server_crypto: Arc<dyn ServerCrypto>,
    /// Seeds of the client and the server.
    pub(crate) seeds: [Seed; 2],
}

impl<C: ClientApplication> Node<C> {
    /// Creates the client of a flow. `token` is the server's token from an earlier connection, or empty.
    pub(crate) fn client(
        setup: &Setup<'_>,
        client: C,
        token: Vec<u8>,
        moves: &[Move],
    ) -> Result<Self, EndpointConfigError> {
        // On the longest paths a handshake takes longer than the default limit.
        let mut endpoint = EndpointConfig::client();
        endpoint.limits.handshake_timeout = PATIENCE;
        let endpoint = Endpoint::new(endpoint, setup.seeds[0])?;
        let end = ClientEnd {
            client,
            config: client_config(setup.transport, &setup.config),
            crypto: Arc::clone(&setup.client_crypto),
            token,
            path: addresses(setup.flow, Side::Client),
            flow: setup.flow,
            trace: None,
            handle: None,
            error: None,
            closed: None,
            ended: None,
            due: None,
            moves: moves.to_vec(),
            moved: 0,
        };
        Ok(Self::Client(Box::new(ClientNode {
            deadline: end.next_deadline(),
            engine: Engine::new(endpoint, end),
            has_asked_for_trace: false,
        })))
    }

    /// Creates the server of a flow, which responds to requests by `handler`.
    pub(crate) fn server(
        setup: &Setup<'_>,
        handler: Arc<dyn Handler>,
    ) -> Result<Self, EndpointConfigError> {
        let config = Arc::clone(&setup.config);
        let trace = TraceSlot::default();
        let mut endpoint =
            EndpointConfig::server(Arc::clone(&config), Arc::clone(&setup.server_crypto));
        endpoint.limits.handshake_timeout = setup.server.handshake_timeout;
        if let Some(server) = &mut endpoint.server {
            server.retry = setup.server.retry;
        }
        let seed = setup.seeds[1];
        let shared = setup.server.shared(handler, config, Arc::clone(&trace));
        Ok(Self::Server(Box::new(ServerNode {
            engine: lastbyte_origin::engine(shared, endpoint, seed)?,
            deadline: None,
            path: addresses(setup.flow, Side::Server),
            handle: None,
            connections: 0,
            responses: Messages::default(),
            ended: None,
            trace,
        })))
    }

    /// How many times a client's address has changed.
    pub(crate) fn moved(&mut self) -> usize {
        match self {
            Self::Client(node) => node.engine.application().moved,
            Self::Server(_) => 0,
        }
    }

    /// Sets the source address of the next datagram at a server.
    pub(crate) fn set_remote(&mut self, remote: SocketAddr) {
        if let Self::Server(node) = self {
            node.path.remote = remote;
        }
    }

    /// Creates a server's token for its client (RFC 9000 §8.1.3), with the path measurements that it saved, if any.
    pub(crate) fn token(&mut self, saved: Option<SavedPath>) -> Option<Vec<u8>> {
        let Self::Server(node) = self else {
            return None;
        };
        let remote = node.path.remote;
        let endpoint = node.engine.endpoint();
        endpoint.new_token(Time::ZERO, remote, saved)
    }

    /// When the next turn is due, if nothing arrives before.
    pub(crate) fn deadline(&self) -> Option<Time> {
        match self {
            Self::Client(node) => node.deadline,
            Self::Server(node) => node.deadline,
        }
    }

    /// Processes a received datagram.
    pub(crate) fn receive(
        &mut self,
        now: Time,
        ecn: Ecn,
        datagram: &mut [u8],
        flow: usize,
        listener: &mut impl Listener,
    ) {
        match self {
            Self::Client(node) => {
                let path = node.engine.application().path;
                node.engine.receive(now, path, ecn, datagram);
            }
            Self::Server(node) => {
                if node.handle.is_none() {
                    let mut trace = node.trace.lock().unwrap_or_else(PoisonError::into_inner);
                    if trace.is_none() {
                        *trace = listener.trace(flow, Side::Server);
                    }
                }
                node.engine.receive(now, node.path, ecn, datagram);
                let endpoint = node.engine.endpoint();
                if endpoint.connections() != node.connections {
                    node.connections = endpoint.connections();
                    node.handle = endpoint.handles().last().or(node.handle);
                }
            }
        }
    }

    /// Handles expired timers, and lets the application run.
    pub(crate) fn run(
        &mut self,
        now: Time,
        flow: usize,
        listener: &mut impl Listener,
    ) -> Result<(), ConnectError> {
        match self {
            Self::Client(node) => {
                if !std::mem::replace(&mut node.has_asked_for_trace, true) {
                    node.engine.application().trace = listener.trace(flow, Side::Client);
                }
                node.engine.run(now);
                match node.engine.application().error.take() {
                    Some(error) => Err(error),
                    None => Ok(()),
                }
            }
            Self::Server(node) => {
                node.run(now);
                Ok(())
            }
        }
    }

    /// Returns the next datagram to send.
    pub(crate) fn poll_transmit(&mut self, now: Time, buffer: &mut [u8]) -> Option<Transmit> {
        match self {
            Self::Client(node) => node.engine.poll_transmit(now, buffer),
            Self::Server(node) => node.engine.poll_transmit(now, buffer),
        }
    }

    /// Ends a turn in which all was sent.
    pub(crate) fn finish(&mut self, now: Time) {
        match self {
            Self::Client(node) => node.deadline = node.engine.finish(now, false).deadline,
            Self::Server(node) => node.finish(now),
        }
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        match self {
            Self::Client(node) => node.engine.application().closed.is_some(),
            Self::Server(node) => node.ended.is_some(),
        }
    }

    /// The application of a client.
    pub(crate) fn client_side(&mut self) -> Option<&mut C> {
        match self {
            Self::Client(node) => Some(&mut node.engine.application().client),
            Self::Server(_) => None,
        }
    }
}

impl ServerNode {
    /// A turn, and further ones while it wakes itself. Counts its responses.
    fn run(&mut self, now: Time) {
        self.engine.run(now);
        while self.engine.application().is_woken() {
            self.engine.run(now);
        }
        let statistics = self.engine.application().statistics();
        let (started, acked) = (statistics.responses.iter().sum(), statistics.sent);
        if started > self.responses.started {
            self.responses.started = started;
            if self.responses.started_at.is_none()
                && let Some(handle) = self.handle
            {
                self.responses.started_at = Some(now);
                if let Some(connection) = self.engine.endpoint().connection(handle) {
                    connection.measure_transfer(now);
                }
            }
        }
        if acked > self.responses.acked {
            self.responses.acked = acked;
            self.responses.acked_at = Some(now);
        }
    }

    fn finish(&mut self, now: Time) {
        if self.ended.is_none() {
            self.ended = self
                .peek()
                .filter(|one| one.close_reason().is_some())
                .map(outcome);
        }
        self.deadline = self.engine.finish(now, false).deadline;
    }

    fn peek(&mut self) -> Option<&Connection> {
        let handle = self.handle?;
        self.engine.endpoint().peek(handle)
    }
}

impl Node {
    /// Counts of its messages: a server's responses, a client's requests.
    pub(crate) fn messages(&mut self) -> Messages {
        match self {
            Self::Client(node) => node.engine.application().client.requests(),
            Self::Server(node) => node.responses,
        }
    }

    /// The outcome of a sender of `expected` messages.
    pub(crate) fn sender_outcome(&mut self, expected: u64) -> Option<SenderOutcome> {
        let messages = self.messages();
        let sent = match self {
            Self::Client(node) => {
                let (endpoint, end) = node.engine.parts();
                let connection = endpoint.peek(end.handle?).or(end.ended.as_deref())?;
                outcome(connection)
            }
            Self::Server(node) => match &node.ended {
                Some(ended) => ended.clone(),
                None => outcome(node.peek()?),
            },
        };
        Some(SenderOutcome {
            requested_at: messages.started_at,
            acked_at: messages.acked_at.filter(|_| messages.acked >= expected),
            ..sent
        })
    }

    /// Whether this is a client with all responses complete.
    pub(crate) fn is_complete(&mut self) -> bool {
        self.client_side()
            .is_some_and(|client| client.is_complete())
    }

    /// The outcome of a client's flow.
    pub(crate) fn flow_outcome(
        &mut self,
        server: Option<SenderOutcome>,
        drops: Vec<Drop>,
        path_rtt: Duration,
    ) -> Option<FlowOutcome> {
        let Self::Client(node) = self else {
            return None;
        };
        let end = node.engine.application();
        Some(FlowOutcome {
            server,
            drops,
            path_rtt,
            failure: end.closed,
            ..end.client.outcome()
        })
    }
}

/// The outcome of a connection, without the times of its messages.
fn outcome(connection: &Connection) -> SenderOutcome {
    let recovery = connection.recovery();
    SenderOutcome {
        recovery: *connection.recovery_statistics(),
        streams: connection.stream_statistics(),
        congestion: recovery.congestion(),
        rtt_min: recovery.rtt().min(),
        rtt_smoothed: recovery.rtt().smoothed(),
        requested_at: None,
        acked_at: None,
        snapshot: Box::new(Snapshot::of(connection)),
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
