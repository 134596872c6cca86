//! The two ends of a flow: an endpoint each, with an application that asks, or one that answers.
//!
//! Owns: what applications do and what they measure. Never: knows of links.

use core::{net::SocketAddr, time::Duration};
use std::{collections::BTreeMap, sync::Arc};

use lastbyte_congestion::{Spec, Time};
use lastbyte_quic::{
    ack::EcnCodepoint,
    close::CloseReason,
    connection::{Config, Connection, Event, NetworkPath, Transmit},
    crypto::{
        ClientCrypto,
        plain::{PlainClient, PlainServer, Sizes},
    },
    endpoint::{
        ConnectError, Endpoint, EndpointConfig, EndpointConfigError, Handle, RetryPolicy, Route,
    },
    flow::WindowSize,
    path::MtuConfig,
    random::Seed,
    recovery::LossThresholds,
    stream::{Source, SourceError, StreamEvent, StreamSink},
};
use lastbyte_record::connection_log::Snapshot;
use lastbyte_wire::{Direction, Side, StreamId};

use crate::{
    listener::Listener,
    outcome::{FlowOutcome, Progress, ResponseOutcome, SenderOutcome},
    scenario::{Request, Transport},
};

const ALPN: &[u8] = b"lastbyte-sim";
/// A request: its first eight bytes say how many are wanted, and all of it is as long as a browser's `HEADERS` may be.
const REQUEST_LEN: usize = 100;

/// One end of a flow.
pub(crate) struct Node {
    endpoint: Endpoint,
    path: NetworkPath,
    handle: Option<Handle>,
    role: Role,
    /// Why the connection ended.
    closed: Option<CloseReason>,
    has_ended: bool,
}

enum Role {
    Client(Client),
    Server(Server),
}

/// Asks.
struct Client {
    config: Arc<Config>,
    crypto: Arc<dyn ClientCrypto>,
    requests: Vec<Request>,
    /// When it wants to do something: connect, or ask.
    wakes_at: Option<Time>,
    started_at: Time,
    handshake: Option<Duration>,
    sink: ClientSink,
}

/// Measures what arrives.
struct ClientSink {
    now: Time,
    started_at: Time,
    responses: Vec<ResponseOutcome>,
    arrived: u64,
    progress: Vec<Progress>,
    next_progress: usize,
    /// A response has just come to its end.
    is_done: bool,
}

/// Answers.
#[derive(Default)]
struct Server {
    sink: ServerSink,
    responses_begun: u64,
    responses_acked: u64,
    asked_at: Option<Time>,
    acked_at: Option<Time>,
}

#[derive(Default)]
struct ServerSink {
    partial: BTreeMap<StreamId, Vec<u8>>,
    asked: Vec<(StreamId, u64)>,
}

/// A response: zeros, which cost next to nothing.
struct Zeros(u64);

impl Source for Zeros {
    fn len(&self) -> u64 {
        self.0
    }

    fn read_at(&self, _: u64, buffer: &mut [u8]) -> Result<(), SourceError> {
        buffer.fill(0);
        Ok(())
    }
}

impl StreamSink for ClientSink {
    fn data(&mut self, _: StreamId, offset: u64, data: &[u8], fin: bool) -> usize {
        let now = self.now;
        let is_first = self.responses.len() == 1;
        if let Some(response) = self.responses.last_mut() {
            let after = now.since(response.asked_at);
            if !data.is_empty() {
                response.first_byte.get_or_insert(after);
            }
            self.arrived = offset + data.len() as u64;
            if fin {
                response.last_byte = Some(after);
                self.is_done = true;
            }
        }
        while is_first
            && let Some(mark) = self.progress.get_mut(self.next_progress)
            && self.arrived >= mark.bytes
        {
            mark.after = Some(now.since(self.started_at));
            self.next_progress += 1;
        }
        data.len()
    }
}

impl StreamSink for ServerSink {
    fn data(&mut self, id: StreamId, _: u64, data: &[u8], fin: bool) -> usize {
        let request = self.partial.entry(id).or_default();
        let missing = 8usize.saturating_sub(request.len());
        request.extend_from_slice(data.get(..missing.min(data.len())).unwrap_or_default());
        if fin && let Some(request) = self.partial.remove(&id) {
            let size = request.first_chunk().copied().map(u64::from_le_bytes);
            self.asked.push((id, size.unwrap_or(0)));
        }
        data.len()
    }
}

/// What both ends' connections are set to.
pub(crate) fn config(transport: &Transport, congestion: Spec) -> Arc<Config> {
    let mut config = Config::new(congestion);
    config.thresholds = if transport.adapts_to_reordering {
        LossThresholds::adaptive()
    } else {
        LossThresholds::fixed()
    };
    config.mtu = MtuConfig {
        initial: transport.datagram_size,
        maximum: transport.datagram_size,
    };
    config.ecn = transport.ecn;
    config.ack_frequency = transport.ack_frequency;
    config.max_ack_delay = transport.max_ack_delay;
    // Pauses between requests are part of a scenario, however long.
    config.max_idle_timeout = Duration::ZERO;
    let window = |bytes: u64| WindowSize {
        initial: bytes,
        maximum: bytes.max(16 << 20),
    };
    config.streams.stream_window = window(transport.stream_window);
    config.streams.connection_window = window(transport.stream_window.saturating_mul(5) / 2);
    Arc::new(config)
}

impl Node {
    /// The client of a flow.
    pub(crate) fn client(
        config: Arc<Config>,
        start: Time,
        requests: Vec<Request>,
        progress: &[u64],
        path: NetworkPath,
        seed: Seed,
    ) -> Result<Self, EndpointConfigError> {
        let crypto = PlainClient::new(number(&seed), vec![ALPN.to_vec()]);
        let progress = progress.iter().map(|bytes| Progress {
            bytes: *bytes,
            after: None,
        });
        let client = Client {
            config,
            crypto: Arc::new(crypto),
            requests,
            wakes_at: Some(start),
            started_at: start,
            handshake: None,
            sink: ClientSink {
                now: start,
                started_at: start,
                responses: Vec::new(),
                arrived: 0,
                progress: progress.collect(),
                next_progress: 0,
                is_done: false,
            },
        };
        Self::new(EndpointConfig::client(), Role::Client(client), path, seed)
    }

    /// The server of a flow.
    pub(crate) fn server(
        config: Arc<Config>,
        transport: &Transport,
        path: NetworkPath,
        seed: Seed,
    ) -> Result<Self, EndpointConfigError> {
        let mut crypto = PlainServer::new(number(&seed), vec![ALPN.to_vec()]);
        crypto.sizes = Sizes {
            certificate: transport.certificate_chain,
            ..Sizes::default()
        };
        let mut endpoint = EndpointConfig::server(config, Arc::new(crypto));
        if let Some(server) = &mut endpoint.server {
            server.retry = RetryPolicy::Never;
        }
        Self::new(endpoint, Role::Server(Server::default()), path, seed)
    }

    fn new(
        mut config: EndpointConfig,
        role: Role,
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
            has_ended: false,
        })
    }

    /// When [`Node::on_time`] wants to be called.
    pub(crate) fn deadline(&self) -> Option<Time> {
        let wakes_at = match &self.role {
            Role::Client(client) => client.wakes_at,
            Role::Server(_) => None,
        };
        [wakes_at, self.endpoint.deadline()]
            .into_iter()
            .flatten()
            .min()
    }

    /// It is time for something.
    pub(crate) fn on_time(
        &mut self,
        now: Time,
        flow: usize,
        listener: &mut impl Listener,
    ) -> Result<(), ConnectError> {
        while self.endpoint.poll_timeout(now).is_some() {}
        if let Role::Client(client) = &mut self.role
            && client.wakes_at.is_some_and(|at| at <= now)
        {
            client.wakes_at = None;
            if let Some(handle) = self.handle {
                if let Some(connection) = self.endpoint.connection(handle) {
                    client.ask(now, connection);
                }
            } else {
                let (config, crypto) = (&client.config, Arc::clone(&client.crypto));
                let handle = self.endpoint.connect(
                    now,
                    self.path,
                    "server.example",
                    config,
                    crypto,
                    Vec::new(),
                )?;
                self.handle = Some(handle);
                if let (Some(trace), Some(connection)) = (
                    listener.trace(flow, Side::Client),
                    self.endpoint.connection(handle),
                ) {
                    connection.set_trace(trace);
                }
            }
        }
        self.attend(now);
        Ok(())
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
        let handle = match self.endpoint.route(now, &self.path, datagram) {
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
        let sink: &mut dyn StreamSink = match &mut self.role {
            Role::Client(client) => {
                client.sink.now = now;
                &mut client.sink
            }
            Role::Server(server) => &mut server.sink,
        };
        connection.handle_datagram(now, &self.path, ecn, datagram, sink);
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
            match (event, &mut self.role) {
                (Event::HandshakeComplete, Role::Client(client)) => {
                    client.handshake = Some(now.since(client.started_at));
                    client.await_turn(now, connection);
                }
                (Event::Closed(reason), _) => {
                    self.closed = Some(reason);
                    self.has_ended = true;
                }
                _ => {}
            }
        }
        match &mut self.role {
            Role::Client(client) => client.attend(now, connection),
            Role::Server(server) => server.attend(now, connection),
        }
    }

    /// The next datagram to be sent.
    pub(crate) fn poll_transmit(&mut self, now: Time, buffer: &mut [u8]) -> Option<Transmit> {
        let transmit = self.endpoint.poll_transmit(now, buffer);
        if transmit.is_none() {
            while let Some(closed) = self.endpoint.poll_closed() {
                self.closed = self.closed.or(closed.connection.close_reason());
                self.has_ended = true;
            }
        }
        transmit
    }

    pub(crate) const fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Of a server: whether it has begun to answer.
    pub(crate) const fn has_begun(&self) -> bool {
        matches!(&self.role, Role::Server(server) if server.responses_begun > 0)
    }

    /// Of a server: how many of its answers have been acknowledged to the end.
    pub(crate) const fn responses_acked(&self) -> u64 {
        match &self.role {
            Role::Server(server) => server.responses_acked,
            Role::Client(_) => 0,
        }
    }

    /// Of a client: whether all that it wanted has arrived.
    pub(crate) fn is_satisfied(&self) -> bool {
        match &self.role {
            Role::Client(client) => {
                let responses = &client.sink.responses;
                responses.len() == client.requests.len()
                    && responses.iter().all(|one| one.last_byte.is_some())
            }
            Role::Server(_) => false,
        }
    }

    /// Of a server: how it fares.
    pub(crate) fn sender_outcome(&self) -> Option<SenderOutcome> {
        let connection = self.endpoint.peek(self.handle?)?;
        let Role::Server(server) = &self.role else {
            return None;
        };
        let recovery = connection.recovery();
        Some(SenderOutcome {
            recovery: *connection.recovery_statistics(),
            streams: connection.stream_statistics(),
            congestion: recovery.congestion(),
            rtt_min: recovery.rtt().min(),
            rtt_smoothed: recovery.rtt().smoothed(),
            asked_at: server.asked_at,
            acked_at: server.acked_at,
            snapshot: Box::new(Snapshot::of(connection)),
        })
    }

    /// Of a client: what it measured.
    pub(crate) fn flow_outcome(&self, server: Option<SenderOutcome>) -> Option<FlowOutcome> {
        let Role::Client(client) = &self.role else {
            return None;
        };
        Some(FlowOutcome {
            started_at: client.started_at,
            handshake: client.handshake,
            responses: client.sink.responses.clone(),
            progress: client.sink.progress.clone(),
            server,
            failure: self.closed,
        })
    }
}

impl Client {
    /// Sends the next request.
    fn ask(&mut self, now: Time, connection: &mut Connection) {
        let index = self.sink.responses.len();
        let Some(request) = self.requests.get(index) else {
            return;
        };
        let streams = connection.streams();
        // The server permits a hundred streams at a time, and there is one.
        let Some(id) = streams.open(Direction::Bidirectional) else {
            return;
        };
        let mut bytes = [0; REQUEST_LEN];
        if let Some(head) = bytes.first_chunk_mut() {
            *head = request.size.to_le_bytes();
        }
        if streams.write(id, &bytes).is_err() || streams.finish(id).is_err() {
            return;
        }
        self.sink.arrived = 0;
        self.sink.responses.push(ResponseOutcome {
            size: request.size,
            asked_at: if index == 0 { self.started_at } else { now },
            first_byte: None,
            last_byte: None,
        });
    }

    fn attend(&mut self, now: Time, connection: &mut Connection) {
        while connection.streams().poll_event().is_some() {}
        if std::mem::take(&mut self.sink.is_done) {
            self.await_turn(now, connection);
        }
    }

    /// Sends the next request after its pause: at once, if there is none.
    fn await_turn(&mut self, now: Time, connection: &mut Connection) {
        match self.requests.get(self.sink.responses.len()) {
            Some(next) if next.pause.is_zero() => self.ask(now, connection),
            Some(next) => self.wakes_at = Some(now + next.pause),
            None => {}
        }
    }
}

impl Server {
    fn attend(&mut self, now: Time, connection: &mut Connection) {
        let streams = connection.streams();
        while let Some(event) = streams.poll_event() {
            if matches!(event, StreamEvent::Finished(_)) {
                self.responses_acked += 1;
                self.acked_at.get_or_insert(now);
            }
        }
        for (id, size) in self.sink.asked.drain(..) {
            if streams.send_source(id, Box::new(Zeros(size))).is_ok() && streams.finish(id).is_ok()
            {
                self.responses_begun += 1;
                self.asked_at.get_or_insert(now);
            }
        }
    }
}

fn number(seed: &Seed) -> u64 {
    seed.first_chunk().copied().map_or(0, u64::from_le_bytes)
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
