//! The event loop, and the checks at the end.

use core::time::Duration;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use lastbyte_congestion::Time;
use lastbyte_quic::{
    close::CloseReason,
    connection::{Config, Connection, Event, NetworkPath},
    crypto::{
        ClientCrypto, ServerCrypto,
        plain::{Limits, PlainClient, PlainServer, Resumption},
    },
    endpoint::{Endpoint, EndpointConfig, Handle, ResetSecret, RetryPolicy, Route},
    flow::WindowSize,
    stream::KeepAll,
    trace::{self, Trace},
};
use lastbyte_units::mix;
use lastbyte_wire::{Side, TransportError};

use super::{
    application::Application,
    check::BottleneckMonitor,
    path::{Arrival, CLIENT, ELSEWHERE, Path, SERVER},
    plan::{Cut, Ending, Plan},
};

/// The result of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    /// A digest of every datagram, its time and its sender.
    pub(crate) digest: u64,
    pub(crate) datagrams: u64,
    /// Stream bytes that arrived intact.
    pub(crate) verified: u64,
    pub(crate) is_complete: bool,
    /// Simulated time.
    pub(crate) took: Duration,
    /// Maximum number of packets that an end kept in one space.
    pub(crate) ring_max: usize,
    pub(crate) lost: u64,
    pub(crate) late: u64,
    pub(crate) key_updates: u64,
    pub(crate) moves: u64,
}

/// Runs the plan of a seed.
///
/// # Errors
///
/// Returns the violated condition and its time.
pub(crate) fn run(seed: u64) -> Result<Report, String> {
    let plan = Plan::draw(seed);
    let mut world = World::new(&plan)?;
    match world.run() {
        Ok(()) => Ok(world.report()),
        Err(error) => Err(format!(
            "after {:?}: {error}\n{plan:#?}",
            world.now.since(Time::ZERO)
        )),
    }
}

const IDLE: Duration = Duration::from_secs(30);
/// No run takes longer: faults are over after 12 s, and all but the slowest paths take seconds for what there is to send.
const LIMIT: Duration = Duration::from_secs(600);
const CLOSE_CODE: u64 = 42;

struct End {
    endpoint: Endpoint,
    /// The connections of an end, each with its own application. A server has several if the client's
    /// address changed before it heard from the server: its next Initial packet then starts another, and it continues with the
    /// one whose response arrives first.
    connections: Vec<Served>,
    /// Ended silently.
    is_gone: bool,
}

/// A connection and its observed state.
struct Served {
    handle: Handle,
    application: Application,
    watch: BottleneckMonitor,
    /// The close reason.
    closed: Option<CloseReason>,
    is_confirmed: bool,
    /// Whether the endpoint has returned it.
    is_over: bool,
    last: Last,
}

impl Served {
    fn new(now: Time, side: Side, handle: Handle, plan: &Plan) -> Self {
        Self {
            handle,
            application: Application::new(side, plan),
            watch: BottleneckMonitor::new(now),
            closed: None,
            is_confirmed: false,
            is_over: false,
            last: Last::default(),
        }
    }
}

/// The statistics of a connection at the last check.
#[derive(Clone, Copy, Default)]
struct Last {
    lost: u64,
    late: u64,
    moves: u64,
}

/// Counts key updates.
struct KeyUpdates(Arc<AtomicU64>);

impl Trace for KeyUpdates {
    fn on_event(&mut self, _: Time, event: &trace::Event<'_>) {
        if matches!(event, trace::Event::KeysUpdated(_)) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

struct World<'a> {
    plan: &'a Plan,
    now: Time,
    path: Path,
    /// Client, server.
    ends: [End; 2],
    config: Arc<Config>,
    has_ended_as_planned: bool,
    has_migrated: bool,
    digest: u64,
    datagrams: u64,
    key_updates: Arc<AtomicU64>,
}

impl<'a> World<'a> {
    fn new(plan: &'a Plan) -> Result<Self, String> {
        let config = Arc::new(config(plan));
        let mut client_crypto = client_crypto(plan);
        let now = Time::ZERO;
        if plan.zero_rtt.is_some() {
            client_crypto.resumption = Some(Resumption {
                parameters: visit(plan, &config)?,
                early_data: true,
            });
        }
        let mut client = Endpoint::new(client_config(), seed_of(plan, 1)).map_err(text)?;
        let server = Endpoint::new(server_config(plan, &config), seed_of(plan, 2)).map_err(text)?;
        let crypto: Arc<dyn ClientCrypto> = Arc::new(client_crypto);
        let path = NetworkPath {
            local: CLIENT,
            remote: SERVER,
        };
        let handle = client
            .connect(now, path, "localhost", &config, crypto, Vec::new())
            .map_err(text)?;
        let key_updates = Arc::new(AtomicU64::new(0));
        if let Some(connection) = client.connection(handle) {
            connection.set_trace(Box::new(KeyUpdates(Arc::clone(&key_updates))));
        }
        let end = |endpoint, connections| End {
            endpoint,
            connections,
            is_gone: false,
        };
        let connection = Served::new(now, Side::Client, handle, plan);
        Ok(Self {
            plan,
            now,
            path: Path::new(plan.path.clone(), plan.seed),
            ends: [end(client, vec![connection]), end(server, Vec::new())],
            config,
            has_ended_as_planned: false,
            has_migrated: false,
            digest: 0,
            datagrams: 0,
            key_updates,
        })
    }

    fn run(&mut self) -> Result<(), String> {
        for side in [Side::Client, Side::Server] {
            self.attend(side)?;
            self.transmit(side)?;
        }
        for _ in 0..EVENTS_MAX {
            if self.has_ended() {
                return self.judge();
            }
            let timers = self.ends.iter().filter(|end| !end.is_gone);
            let timers = timers.filter_map(|end| end.endpoint.deadline());
            let arrival = self.path.next_arrival();
            let next = timers.chain(arrival).chain(self.next_fault()).min();
            let Some(next) = next else {
                return Err("nothing will ever happen again, and an end has not ended".into());
            };
            self.now = self.now.max(next);
            if self.now > Time::ZERO + LIMIT {
                return Err("it takes too long".into());
            }
            if arrival == Some(next) {
                if let Some(arrival) = self.path.receive() {
                    self.deliver(arrival);
                }
            } else {
                for end in &mut self.ends {
                    while !end.is_gone && end.endpoint.poll_timeout(self.now).is_some() {}
                }
                self.do_faults()?;
            }
            for side in [Side::Client, Side::Server] {
                self.attend(side)?;
                self.transmit(side)?;
            }
        }
        Err(format!("more than {EVENTS_MAX} events"))
    }

    /// Whether all connections have ended, the endpoints have removed them, and nothing in flight could start another.
    fn has_ended(&self) -> bool {
        let is_over = |end: &End| {
            end.is_gone
                || (end.endpoint.connections() == 0
                    && end.connections.iter().all(|one| one.is_over))
        };
        self.path.next_arrival().is_none() && self.ends.iter().all(is_over)
    }

    /// The client's connection.
    const fn client(&self) -> &Served {
        let [client, _] = &self.ends;
        match client.connections.as_slice() {
            [connection, ..] => connection,
            [] => panic!("a client has a connection"),
        }
    }

    fn end(&mut self, side: Side) -> &mut End {
        &mut self.ends[usize::from(side == Side::Server)]
    }

    fn deliver(&mut self, mut arrival: Arrival) {
        let (now, plan) = (self.now, self.plan);
        let end = self.end(arrival.to);
        if end.is_gone {
            return;
        }
        let handle = match end.endpoint.route(now, &arrival.path, &mut arrival.bytes) {
            Route::Accepted(handle) => {
                let connection = Served::new(now, arrival.to, handle, plan);
                end.connections.push(connection);
                handle
            }
            Route::Connection(handle) => handle,
            _ => return,
        };
        if let Some(connection) = end.endpoint.connection(handle) {
            let bytes = &mut arrival.bytes;
            connection.handle_datagram(now, &arrival.path, arrival.ecn, bytes, &mut KeepAll);
        }
    }

    /// Runs the application of each connection.
    fn attend(&mut self, side: Side) -> Result<(), String> {
        for index in 0..self.end(side).connections.len() {
            self.attend_one(side, index)?;
        }
        Ok(())
    }

    /// Runs an application, and checks its connection.
    fn attend_one(&mut self, side: Side, index: usize) -> Result<(), String> {
        let now = self.now;
        let buffered_max = self.buffered_max();
        let cut = self.plan.streams.iter().filter(|one| one.cut != Cut::None);
        let cut = cut.count();
        let end = self.end(side);
        let one = &mut end.connections[index];
        if end.is_gone || one.is_over {
            return Ok(());
        }
        let Some(connection) = end.endpoint.connection(one.handle) else {
            return Ok(());
        };
        let mut may_open = connection.is_zero_rtt() || one.is_confirmed;
        while let Some(event) = connection.poll_event() {
            match event {
                Event::HandshakeComplete => may_open = true,
                Event::HandshakeConfirmed => one.is_confirmed = true,
                Event::Closed(reason) => one.closed = Some(reason),
                _ => {}
            }
        }
        one.application.attend(now, connection, may_open)?;
        if side == Side::Client && one.application.is_done() && !connection.is_closing() {
            // For reset streams, the peer's acknowledgment is pending.
            let live = connection.streams().live();
            if live > cut {
                return Err(format!("{live} streams that are over are still kept"));
            }
            connection.close(now, 0);
        }
        let check = one.watch.check(connection, buffered_max);
        check.map_err(|error| format!("{side:?}: {error}"))?;
        let counts = connection.recovery_statistics();
        one.last = Last {
            lost: counts.packets_lost,
            late: counts.packets_late,
            moves: connection.statistics().paths.promoted,
        };
        Ok(())
    }

    fn transmit(&mut self, side: Side) -> Result<(), String> {
        let now = self.now;
        let mut buffer = vec![0; self.plan.batch * 1472];
        for _ in 0..TURN_MAX {
            let end = self.end(side);
            if end.is_gone {
                return Ok(());
            }
            let before: Vec<_> = end
                .connections
                .iter()
                .map(|one| {
                    let recovery = end.endpoint.peek(one.handle)?.recovery();
                    Some((recovery.in_flight(), recovery.congestion().window))
                })
                .collect();
            let Some(transmit) = end.endpoint.poll_transmit(now, &mut buffer) else {
                self.look_at_closed(side);
                return Ok(());
            };
            for (one, before) in end.connections.iter_mut().zip(before) {
                if let Some((in_flight, window)) = before
                    && let Some(connection) = end.endpoint.peek(one.handle)
                {
                    // A jump raises the window with the packet that begins it.
                    let window = window.max(connection.recovery().congestion().window);
                    let sent = one.watch.on_transmit(now, connection, in_flight, window);
                    sent.map_err(|error| format!("{side:?}: {error}"))?;
                }
            }
            for datagram in buffer[..transmit.len].chunks(transmit.segment_len) {
                self.datagrams += 1;
                let place = now.as_nanos() ^ (side as u64) << 63;
                self.digest = mix(self.digest ^ place);
                for word in datagram.chunks(8) {
                    let mut bytes = [0; 8];
                    bytes[..word.len()].copy_from_slice(word);
                    self.digest = mix(self.digest ^ u64::from_be_bytes(bytes));
                }
                self.path
                    .send(now, side, transmit.path, transmit.ecn, datagram);
            }
        }
        Err(format!("{side:?} sends without end"))
    }

    fn look_at_closed(&mut self, side: Side) {
        let end = self.end(side);
        while let Some(closed) = end.endpoint.poll_closed() {
            let mut connections = end.connections.iter_mut();
            if let Some(one) = connections.find(|one| one.handle == closed.handle) {
                one.is_over = true;
                let timed_out = closed
                    .is_handshake_timeout
                    .then_some(CloseReason::IdleTimeout);
                one.closed = one
                    .closed
                    .or(closed.connection.close_reason())
                    .or(timed_out);
            }
        }
    }

    fn buffered_max(&self) -> usize {
        // Data that is not read takes up to twice as much memory: see the window's documentation. What is written waits in
        // the buffer of each stream.
        let streams = &self.config.streams;
        let open = self
            .plan
            .streams
            .len()
            .min(streams.bidirectional_streams as usize);
        2 * streams.connection_window.maximum as usize + open * streams.send_buffer
    }

    // ---- faults of the ends ----

    fn next_fault(&self) -> Option<Time> {
        let ending = match self.plan.ending {
            Ending::Complete => None,
            Ending::Closes(_, at) | Ending::Vanishes(_, at) | Ending::Restarts(at) => Some(at),
        };
        let ending = ending.filter(|_| !self.has_ended_as_planned && self.is_ripe());
        let migration = self.plan.migration.map(|(at, _)| at);
        let migration = migration.filter(|_| !self.has_migrated && self.client().is_confirmed);
        let next = ending.into_iter().chain(migration).min()?;
        Some((Time::ZERO + next).max(self.now))
    }

    /// Whether the planned end is due: a server restarts only after its client can detect that.
    fn is_ripe(&self) -> bool {
        match self.plan.ending {
            Ending::Closes(Side::Client, _) => true,
            _ => self.client().is_confirmed,
        }
    }

    fn do_faults(&mut self) -> Result<(), String> {
        let now = self.now;
        let is_due = |at: Duration| now >= Time::ZERO + at;
        if let Some((at, is_old_gone)) = self.plan.migration
            && !self.has_migrated
            && self.client().is_confirmed
            && is_due(at)
        {
            self.has_migrated = true;
            let to = NetworkPath {
                local: ELSEWHERE,
                remote: SERVER,
            };
            let end = self.end(Side::Client);
            let handle = end.connections.first().map(|one| one.handle);
            let handle = handle.filter(|_| !end.is_gone);
            if let Some(connection) = handle.and_then(|handle| end.endpoint.connection(handle)) {
                let moved = if is_old_gone {
                    connection.rebind(now, to)
                } else {
                    connection.migrate(now, to)
                };
                if moved.is_ok() && is_old_gone {
                    self.path.kill(CLIENT);
                }
            }
        }
        if self.has_ended_as_planned || !self.is_ripe() {
            return Ok(());
        }
        match self.plan.ending {
            Ending::Closes(side, at) if is_due(at) => {
                self.has_ended_as_planned = true;
                let end = self.end(side);
                for one in &end.connections {
                    if let Some(connection) = end.endpoint.connection(one.handle)
                        && !connection.is_closing()
                    {
                        connection.close(now, CLOSE_CODE);
                    }
                }
            }
            Ending::Vanishes(side, at) if is_due(at) => {
                self.has_ended_as_planned = true;
                self.end(side).is_gone = true;
            }
            Ending::Restarts(at) if is_due(at) => {
                self.has_ended_as_planned = true;
                let config = server_config(self.plan, &self.config);
                let endpoint = Endpoint::new(config, seed_of(self.plan, 3)).map_err(text)?;
                let end = self.end(Side::Server);
                end.endpoint = endpoint;
                end.connections.clear();
            }
            _ => {}
        }
        Ok(())
    }

    // ---- checks at the end ----

    fn judge(&self) -> Result<(), String> {
        for end in &self.ends {
            if !end.is_gone && (end.endpoint.connections() > 0 || end.endpoint.handshakes() > 0) {
                return Err("an endpoint keeps a connection that has ended".into());
            }
        }
        let is_complete = self.client().application.is_done();
        let [client, server] = &self.ends;
        let of = |name, end: &'_ End| {
            end.connections
                .iter()
                .map(move |one| (name, end.is_gone, one.closed))
                .collect::<Vec<_>>()
        };
        for (name, is_gone, closed) in of("client", client).into_iter().chain(of("server", server))
        {
            let is_clean = match closed {
                None => is_gone,
                Some(CloseReason::IdleTimeout) => {
                    name == "server"
                        || self.has_ended_as_planned
                        || self.may_be_lost()
                        || self.is_server_used_up()
                }
                // A server that has closed, used up its keys or restarted responds in this way to later packets.
                Some(CloseReason::StatelessReset) => {
                    self.has_ended_as_planned || self.plan.key_packets.is_some()
                }
                Some(
                    CloseReason::LocalApplication { code } | CloseReason::PeerApplication { code },
                ) => {
                    (code == 0 && is_complete) || (code == CLOSE_CODE && self.has_ended_as_planned)
                }
                // With limits this small, packets without a response can use up the keys (RFC 9001 §6.6).
                Some(CloseReason::Local { code, .. } | CloseReason::Peer { code })
                    if code == TransportError::AEAD_LIMIT_REACHED =>
                {
                    self.plan.key_packets.is_some()
                }
                // The client no longer has the address that the Retry token is bound to (RFC 9000 §8.1.2).
                Some(CloseReason::Peer { code }) if code == TransportError::INVALID_TOKEN => {
                    self.plan.always_retry && self.plan.path.rebinding.is_some()
                }
                // An application that closes during the handshake (RFC 9000 §10.2.3).
                Some(CloseReason::Peer { code }) => {
                    code == TransportError::APPLICATION_ERROR
                        && (is_complete || self.has_ended_as_planned)
                }
                Some(CloseReason::Local { .. } | CloseReason::NoCommonVersion) => false,
            };
            if !is_clean {
                return Err(format!("the {name}'s connection ended by {closed:?}"));
            }
        }
        let may_fail = self.has_ended_as_planned || self.plan.key_packets.is_some();
        if !is_complete && !may_fail && !self.may_be_lost() {
            return Err("not all arrived, and nothing was in the way".into());
        }
        Ok(())
    }

    /// A server that has used up its keys sends one `CONNECTION_CLOSE`, and repeats it only in response to packets (RFC 9000 §10.2.1):
    /// if it is lost, a client that only receives learns nothing.
    fn is_server_used_up(&self) -> bool {
        let [_, server] = &self.ends;
        let reasons = server.connections.iter().filter_map(|one| one.closed);
        let mut codes = reasons.filter_map(|reason| match reason {
            CloseReason::Local { code, .. } => Some(code),
            _ => None,
        });
        self.plan.key_packets.is_some()
            && codes.any(|code| code == TransportError::AEAD_LIMIT_REACHED)
    }

    /// A client that only receives sends nothing after a NAT rebinding, and a server may send at most three times the bytes
    /// received from the new address (RFC 9000 §8.1): if its challenges are lost, each end waits for the other.
    const fn may_be_lost(&self) -> bool {
        self.plan.path.rebinding.is_some()
    }

    fn report(&self) -> Report {
        let all = || self.ends.iter().flat_map(|end| &end.connections);
        let sum = |figure: fn(&Served) -> u64| all().map(figure).sum();
        Report {
            digest: self.digest,
            datagrams: self.datagrams,
            verified: sum(|one| one.application.verified),
            is_complete: self.client().application.is_done(),
            took: self.now.since(Time::ZERO),
            ring_max: all().map(|one| one.watch.ring_max).max().unwrap_or(0),
            lost: sum(|one| one.last.lost),
            late: sum(|one| one.last.late),
            key_updates: self.key_updates.load(Ordering::Relaxed),
            moves: sum(|one| one.last.moves),
        }
    }
}

fn config(plan: &Plan) -> Config {
    let mut config = Config::new(plan.congestion.parse().expect("a spec"));
    config.max_idle_timeout = IDLE;
    config.ecn = plan.ecn;
    config.ack_frequency = plan.ack_frequency;
    if let Some((stream, connection, streams)) = plan.windows {
        let window = |bytes| WindowSize {
            initial: bytes,
            maximum: bytes,
        };
        config.streams.stream_window = window(stream);
        config.streams.connection_window = window(connection);
        config.streams.bidirectional_streams = streams;
    }
    config
}

fn limits(plan: &Plan) -> Limits {
    let default = Limits::default();
    Limits {
        confidentiality: plan.key_packets.unwrap_or(default.confidentiality),
        ..default
    }
}

fn client_crypto(plan: &Plan) -> PlainClient {
    let mut crypto = PlainClient::new(plan.seed, vec![b"chaos".to_vec()]);
    crypto.limits = limits(plan);
    crypto
}

fn client_config() -> EndpointConfig {
    let mut config = EndpointConfig::client();
    config.limits.handshake_timeout = LIMIT / 2;
    config
}

fn server_config(plan: &Plan, config: &Arc<Config>) -> EndpointConfig {
    let mut crypto = PlainServer::new(plan.seed + 1, vec![b"chaos".to_vec()]);
    crypto.limits = limits(plan);
    crypto.accepts_early_data = plan.zero_rtt == Some(true);
    let crypto: Arc<dyn ServerCrypto> = Arc::new(crypto);
    let mut endpoint = EndpointConfig::server(Arc::clone(config), crypto);
    endpoint.reset_key = Some(ResetSecret([9; 32]));
    endpoint.limits.handshake_timeout = LIMIT / 2;
    if let Some(server) = &mut endpoint.server {
        server.retry = if plan.always_retry {
            RetryPolicy::Always
        } else {
            RetryPolicy::Never
        };
    }
    endpoint
}

/// Runs an earlier connection without a path. Returns the transport parameters that a client remembers of it.
fn visit(plan: &Plan, config: &Arc<Config>) -> Result<Vec<u8>, String> {
    let mut client = Endpoint::new(client_config(), seed_of(plan, 4)).map_err(text)?;
    let mut server = Endpoint::new(server_config(plan, config), seed_of(plan, 5)).map_err(text)?;
    let paths =
        [(CLIENT, SERVER), (SERVER, CLIENT)].map(|(local, remote)| NetworkPath { local, remote });
    let crypto: Arc<dyn ClientCrypto> = Arc::new(client_crypto(plan));
    let handle = client
        .connect(
            Time::ZERO,
            paths[0],
            "localhost",
            config,
            crypto,
            Vec::new(),
        )
        .map_err(text)?;
    let mut buffer = vec![0; 1472];
    for turn in 0..1000 {
        let now = Time::from_nanos(turn * 1_000_000);
        for from in [0, 1] {
            let (sender, receiver) = if from == 0 {
                (&mut client, &mut server)
            } else {
                (&mut server, &mut client)
            };
            while sender.poll_timeout(now).is_some() {}
            while let Some(transmit) = sender.poll_transmit(now, &mut buffer) {
                for datagram in buffer[..transmit.len].chunks_mut(transmit.segment_len) {
                    let path = &paths[1 - from];
                    if let Route::Accepted(handle) | Route::Connection(handle) =
                        receiver.route(now, path, datagram)
                        && let Some(connection) = receiver.connection(handle)
                    {
                        let ecn = transmit.ecn;
                        connection.handle_datagram(now, path, ecn, datagram, &mut KeepAll);
                    }
                }
            }
        }
        let session = client.peek(handle).map(Connection::session);
        if let Some(session) = session
            && session.tickets_received() > 0
            && let Some(parameters) = session.peer_parameters()
        {
            return Ok(parameters.to_vec());
        }
    }
    Err("the visit before failed".into())
}

fn seed_of(plan: &Plan, stream: u64) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (index, part) in bytes.chunks_exact_mut(8).enumerate() {
        part.copy_from_slice(&mix(plan.seed ^ stream << 56 ^ index as u64).to_be_bytes());
    }
    bytes
}

fn text(error: impl core::fmt::Display) -> String {
    error.to_string()
}

const EVENTS_MAX: u64 = 3_000_000;
const TURN_MAX: u64 = 100_000;
