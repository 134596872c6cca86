//! HTTP/3: an application of the driver's that keeps all connections of a thread busy.
//!
//! There is no task per request: a request in progress is an entry in a list of its connection. In the steady state,
//! nothing is allocated here for a request; the transport allocates for its stream.
//!
//! | module | owns |
//! |---|---|
//! | `crypto` | the TLS configuration of each handshake |
//! | `migration` | moves of connections to another port |
//! | `refusal` | requests that the server refuses, which are sent again once |

use core::time::Duration;
use std::{
    collections::VecDeque,
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
};

use lastbyte_client::{Failure, ReachabilityProbe, Tls};
#[cfg(target_os = "linux")]
use lastbyte_driver::Engine;
use lastbyte_driver::{Application, Clock, Datagram, Next, NextSocket, Status, Worker};
#[cfg(target_os = "linux")]
use lastbyte_emulate::PathModel;
use lastbyte_http3::{self as http3, Body, BodySink, Code, RequestError};
use lastbyte_quic::{
    Time,
    connection::{Config, Connection, Event, NetworkPath},
    endpoint::{Closed, Endpoint, EndpointConfig, Handle},
    stream::KeepAll,
};
use lastbyte_udp::{Options, Socket};
use lastbyte_wire::{StreamId, packet::Version};

use self::crypto::Crypto;
#[cfg(target_os = "linux")]
use crate::network::{self, ModelPaths};
use crate::{
    connection_log::ConnectionLog,
    dispatcher::Due,
    mix::Handshake,
    recorder::{Cause, InFlight},
    settings::Network,
    target::Target,
    thread_state::{TICK, ThreadResult, ThreadState},
};

mod crypto;
mod migration;
mod refusal;
#[cfg(test)]
pub(crate) mod tests;

/// Connections that are closed in one turn, so that the packets fit the driver's limit.
const CLOSES_PER_TURN: usize = 32;
/// Why a connection is given up after a GOAWAY frame.
const CLOSING: &str = "the server closes connections";
/// After this time without progress of a request, the thread checks whether the port is closed.
const PROBE_INTERVAL: Duration = Duration::from_millis(200);

/// Runs the connections of a thread until the end of the run.
pub(crate) fn run(
    mut state: ThreadState,
    target: &Target,
    tls: &Tls,
    clock: Clock,
) -> io::Result<ThreadResult> {
    let local: SocketAddr = if target.address.is_ipv6() {
        (Ipv6Addr::UNSPECIFIED, 0).into()
    } else {
        (Ipv4Addr::UNSPECIFIED, 0).into()
    };
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|error| io::Error::other(error.to_string()))?;
    let mut config = EndpointConfig::client();
    config.limits.handshake_timeout = state.settings.client.connect_timeout;
    config.limits.connections = config.limits.connections.max(state.share.connections);
    config.limits.handshakes = config.limits.handshakes.max(state.share.connections);
    let endpoint = Endpoint::with_data(config, seed).map_err(io::Error::other)?;
    state.is_started |= state.share.own_connections() == 0;
    if let Some(network) = state.settings.network.clone() {
        return run_over(&network, state, target, tls, clock, endpoint, local);
    }
    let socket = Socket::bind(local, &Options::default())?;
    let load = Http3Load::new(state, target, tls, vec![socket.local_address()])?;
    let next_socket = load.next_socket.clone();
    let worker = Worker::new(socket, endpoint, load, clock)?;
    let mut worker = worker.with_next_socket(next_socket);
    worker.run()?;
    let statistics = *worker.statistics();
    let state = &mut worker.application().state;
    state.recorder.counts.datagrams_sent += statistics.datagrams_sent;
    state.recorder.counts.datagrams_received += statistics.datagrams_received;
    Ok(state.finish(clock.now()))
}

/// The same, over model paths.
#[cfg(target_os = "linux")]
fn run_over(
    network: &Network,
    state: ThreadState,
    target: &Target,
    tls: &Tls,
    clock: Clock,
    endpoint: Endpoint<usize>,
    local: SocketAddr,
) -> io::Result<ThreadResult> {
    let share = &state.share;
    let own = (0..share.own_connections()).map(|index| index * share.threads + share.thread);
    let models: Vec<PathModel> = own.map(|index| network.path_of(index)).collect();
    let mut paths = ModelPaths::new(clock.now(), local, target.address, &models)?;
    let load = Http3Load::new(state, target, tls, paths.locals())?;
    let mut engine = Engine::new(endpoint, load);
    network::run(&mut paths, &mut engine, &clock)?;
    let load = engine.application();
    let counts = &mut load.state.recorder.counts;
    counts.datagrams_sent += paths.datagrams.0;
    counts.datagrams_received += paths.datagrams.1;
    let mut result = load.state.finish(clock.now());
    result.paths = Some(paths.report());
    Ok(result)
}

#[cfg(not(target_os = "linux"))]
fn run_over(
    _: &Network,
    _: ThreadState,
    _: &Target,
    _: &Tls,
    _: Clock,
    _: Endpoint<usize>,
    _: SocketAddr,
) -> io::Result<ThreadResult> {
    Err(io::ErrorKind::Unsupported.into())
}

/// An encoded request, which can be sent any number of times.
struct Prepared {
    head: http3::Request,
    body: Option<Arc<[u8]>>,
}

impl Prepared {
    fn body(&self) -> Body {
        match &self.body {
            Some(body) => Body::Source(Box::new(Arc::clone(body))),
            None => Body::Empty,
        }
    }
}

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It will be established at this time.
    Waiting(Time),
    /// It is established when there is a request for it.
    Idle,
    /// Its handshake is in progress. Requests may be sent in early data.
    Connecting {
        /// Whether requests may be sent in early data.
        is_early: bool,
    },
    /// It carries requests.
    Open,
    /// The server accepts no more requests on it, for this reason.
    Draining(&'static str),
    /// It is not established again.
    Over,
}

/// A connection and its requests in progress.
struct Client {
    phase: Phase,
    handle: Option<Handle>,
    http3: http3::Connection,
    /// By stream, in ascending order; at most as many as the settings permit. An entry is removed, and its request counted, when
    /// the response is complete (`Finished`), when the server resets it or the request is refused (`Reset`), when it takes too
    /// long (`on_tick`), and when the connection fails, moves into its closing state or is over. A server that stops an upload
    /// and then says nothing is one that takes too long.
    in_flight: VecDeque<(StreamId, InFlight)>,
    /// Failures to connect in a row.
    failures: u32,
    /// Whether it has been established before.
    was_open: bool,
    /// When the first attempt to establish it started.
    first_started: Option<Time>,
    /// When the last one did.
    started: Time,
    has_first_byte: bool,
    /// Whether a request was sent since then.
    has_carried: bool,
    /// Whether the handshake is confirmed: the server's tickets have arrived as well, since they are sent together.
    is_confirmed: bool,
    /// Whether it is moving to another port.
    is_moving: bool,
    /// Whether the next request waits for that, since it needs another connection and a ticket.
    awaits_tickets: bool,
    /// The server's last address token, which is used once (RFC 9000 §8.1.3).
    token: Vec<u8>,
    /// Whether there was a response since it was established last.
    has_answered: bool,
    /// Whether the server permits no further stream now.
    is_blocked: bool,
    /// A request that is due, and could not be sent yet.
    pending: Option<Due>,
    /// Requests that the server has refused, for the next connection; at most as many as were in progress.
    refused: VecDeque<Due>,
    /// Whether it is in the list of connections with free streams.
    is_listed: bool,
    /// Bytes of encoded header sections that have been counted.
    sections_counted: u64,
    /// Complete responses that count.
    done: u64,
    /// When the last response ended.
    last: Option<Time>,
}

impl Client {
    /// Whether a request can be sent now, or a connection established for it.
    fn is_free(&self, streams: usize) -> bool {
        let accepts = match self.phase {
            Phase::Idle | Phase::Open => true,
            Phase::Connecting { is_early } => is_early,
            Phase::Waiting(_) | Phase::Draining(_) | Phase::Over => false,
        };
        accepts && !self.is_blocked && !self.awaits_tickets && self.in_flight.len() < streams
    }
}

/// Passes the number of body bytes to the counters.
struct Bodies<'a> {
    in_flight: &'a VecDeque<(StreamId, InFlight)>,
    data_bytes: &'a mut u64,
}

impl BodySink for Bodies<'_> {
    fn body(&mut self, stream: StreamId, bytes: &[u8]) -> usize {
        if let Some(index) = find(self.in_flight, stream)
            && let Some((_, request)) = self.in_flight.get(index)
            && request.is_measured
        {
            *self.data_bytes += bytes.len() as u64;
        }
        bytes.len()
    }
}

/// The place of a stream's request.
fn find(in_flight: &VecDeque<(StreamId, InFlight)>, stream: StreamId) -> Option<usize> {
    in_flight.binary_search_by_key(&stream, |(id, _)| *id).ok()
}

/// The application of one thread.
struct Http3Load<'a> {
    state: ThreadState,
    tls: &'a Tls,
    remote: SocketAddr,
    /// The local addresses, which connections take in turn: one, or one per connection.
    locals: Vec<SocketAddr>,
    server_name: &'a str,
    requests: Vec<Prepared>,
    transport: Arc<Config>,
    crypto: Crypto,
    /// The server's HTTP/3 settings, for requests in early data (RFC 9114 §7.2.4.2).
    peer_settings: Option<http3::Settings>,
    clients: Vec<Client>,
    /// Connections with free streams: those with a pending request, then the one that waits longest first.
    free: VecDeque<usize>,
    /// Connections to close.
    to_close: Vec<Handle>,
    next_tick: Time,
    probe: Option<(Time, ReachabilityProbe)>,
    /// Whether the server's port can be probed: not in virtual time.
    can_probe: bool,
    /// When the connections move to another port.
    migrate_at: Option<Time>,
    /// How often they have moved.
    moves: usize,
    /// The socket that they move to, for the worker.
    next_socket: NextSocket,
    /// Whether no connection is left, nor will be established again.
    has_given_up: bool,
    is_ending: bool,
    log: Option<ConnectionLog>,
}

impl<'a> Http3Load<'a> {
    fn new(
        state: ThreadState,
        target: &'a Target,
        tls: &'a Tls,
        locals: Vec<SocketAddr>,
    ) -> io::Result<Self> {
        let settings = Arc::clone(&state.settings);
        let count = state.share.own_connections();
        let log = settings.connection_log.as_ref().map(|sink| {
            let (thread, threads) = (state.share.thread, state.share.threads);
            ConnectionLog::new(Arc::clone(sink), settings.method(), thread, threads)
        });
        let streams = settings.streams;
        let requests = settings.requests.iter().map(|request| {
            let origin = request.url.origin();
            let (scheme, authority) = (origin.scheme.name(), origin.authority());
            let mut head =
                http3::Request::new(settings.method(), scheme, &authority, request.url.path());
            for line in &settings.fields {
                head.fields_mut().push(line.name, line.value);
            }
            if let Some(body) = &settings.body {
                head.fields_mut()
                    .push("content-length", body.len().to_string());
            }
            Prepared {
                head,
                body: settings.body.clone(),
            }
        });
        let clients = (0..count).map(|index| Client {
            phase: match settings.mix {
                None => Phase::Waiting(state.connects_at(index)),
                Some(_) => Phase::Idle,
            },
            handle: None,
            http3: http3::Connection::client(&settings.client.http3),
            in_flight: VecDeque::with_capacity(streams),
            failures: 0,
            was_open: false,
            first_started: None,
            started: Time::ZERO,
            has_first_byte: false,
            has_carried: false,
            is_confirmed: false,
            is_moving: false,
            awaits_tickets: false,
            token: Vec::new(),
            has_answered: false,
            is_blocked: false,
            pending: None,
            refused: VecDeque::new(),
            is_listed: false,
            sections_counted: 0,
            done: 0,
            last: None,
        });
        let crypto = Crypto::new(&state, tls).map_err(io::Error::other)?;
        let mut transport = settings.client.transport.clone();
        if settings.is_resuming() {
            // A session belongs to the version that it was issued in (RFC 9369 §5).
            transport.versions = vec![Version::V1];
        }
        let mut load = Self {
            tls,
            remote: target.address,
            locals,
            server_name: &target.server_name,
            requests: requests.collect(),
            transport: Arc::new(transport),
            crypto,
            peer_settings: None,
            clients: clients.collect(),
            free: VecDeque::with_capacity(count),
            to_close: Vec::with_capacity(count),
            next_tick: Time::ZERO,
            probe: None,
            can_probe: true,
            migrate_at: None,
            moves: 0,
            next_socket: NextSocket::default(),
            has_given_up: false,
            is_ending: false,
            log,
            state,
        };
        for index in 0..count {
            load.list_if_free(index);
        }
        Ok(load)
    }

    /// Whether the connection is that of the client, which has not given it up.
    fn is_current(&self, index: usize, handle: Handle) -> bool {
        let client = self.clients.get(index);
        client.is_some_and(|client| client.handle == Some(handle))
    }

    // ---- connections -------------------------------------------------------------------------------------------------

    fn connect(&mut self, now: Time, index: usize, endpoint: &mut Endpoint<usize>) {
        let path = NetworkPath {
            local: self.locals[index % self.locals.len()],
            remote: self.remote,
        };
        let client = &mut self.clients[index];
        let own = client.pending.and_then(|due| due.handshake);
        let handshake = own.filter(|_| client.was_open).unwrap_or_default();
        let token = match handshake {
            Handshake::Full => Vec::new(),
            Handshake::Resumed | Handshake::ZeroRtt => core::mem::take(&mut client.token),
        };
        let connected = endpoint.connect(
            now,
            path,
            self.server_name,
            &self.transport,
            self.crypto.of(handshake),
            token,
        );
        client.first_started.get_or_insert(now);
        client.started = now;
        client.has_first_byte = false;
        client.has_carried = false;
        // Without sessions, there is nothing to wait for.
        client.is_confirmed = !self.state.settings.is_resuming();
        client.awaits_tickets = false;
        client.is_moving = false;
        match connected {
            Ok(handle) => {
                if let Some(log) = &mut self.log {
                    log.on_started(now, handle);
                }
                let quic = endpoint.connection(handle);
                let may_be_early = quic.is_some_and(|quic| quic.is_zero_rtt());
                let remembered = self.peer_settings.filter(|_| may_be_early);
                let http3 = http3::Connection::client(&self.state.settings.client.http3);
                client.http3 = match remembered {
                    Some(remembered) => http3.with_remembered(remembered),
                    None => http3,
                };
                client.phase = Phase::Connecting {
                    is_early: remembered.is_some(),
                };
                client.handle = Some(handle);
                client.sections_counted = 0;
                client.is_blocked = false;
                if let Some((_, data)) = endpoint.entry(handle) {
                    *data = index;
                }
                self.list_if_free(index);
            }
            Err(error) => {
                let why = format!("cannot connect to {}: {error}", self.remote);
                self.on_connection_failed(now, index, Cause::Error, &why);
            }
        }
    }

    /// Closes a connection that has done its part: the next request gets another.
    fn retire(&mut self, index: usize) {
        let client = &mut self.clients[index];
        client.phase = Phase::Idle;
        client.is_blocked = false;
        client.is_moving = false;
        self.to_close.extend(client.handle.take());
    }

    /// Ends a connection and the requests on it.
    fn on_connection_failed(&mut self, now: Time, index: usize, cause: Cause, why: &str) {
        let client = &mut self.clients[index];
        let recorder = &mut self.state.recorder;
        let was_established = matches!(client.phase, Phase::Open | Phase::Draining(_));
        if let Some(handle) = client.handle.take() {
            self.to_close.push(handle);
        }
        let lost = client.in_flight.len();
        if core::mem::take(&mut client.is_moving) {
            recorder.counts.migrations_failed += 1;
            recorder.counts.migration_losses += lost as u64;
        }
        for (_, request) in client.in_flight.drain(..) {
            recorder.on_failed(&request, cause, why);
        }
        if was_established {
            recorder.counts.disconnected += 1;
        } else {
            recorder.counts.connect_failed += 1;
        }
        client.failures = if client.has_answered {
            0
        } else {
            client.failures + 1
        };
        client.has_answered = false;
        // The next request needs another connection anyway, and no ticket comes any more.
        client.has_carried = false;
        client.awaits_tickets = false;
        let pause = self.state.pause(client.failures, client.was_open);
        let has_more = client.is_waited_for() || !self.state.dispatcher.is_idle(index);
        client.phase = match pause {
            Some(pause) if has_more => Phase::Waiting(now + pause),
            _ => Phase::Over,
        };
        if client.phase == Phase::Over {
            let unsent = client.pending.take().into_iter();
            let unsent = unsent.chain(client.refused.drain(..));
            let unsent = unsent.filter(|due| due.is_measured).count() as u64;
            let abandoned = self.state.dispatcher.abandon(index) + unsent;
            self.state.recorder.on_abandoned(abandoned, cause, why);
            if abandoned == 0 && lost == 0 && !was_established {
                self.state.recorder.on_error(1, why);
            }
        } else if lost == 0 && self.clients[index].failures > 0 {
            self.state.recorder.on_error(1, why);
        }
    }

    fn on_transport_closed(&mut self, now: Time, index: usize, quic: &Connection) {
        if let (Some(log), Some(handle)) = (&mut self.log, self.clients[index].handle) {
            log.write(handle, quic);
        }
        let (close, phrase) = (quic.close_reason(), quic.close_phrase());
        let (cause, why) = match self.clients[index].phase {
            Phase::Connecting { .. } => {
                let failure = self.tls.quic_failure(close, phrase);
                let cause = match failure {
                    Failure::ConnectTimeout(_) => Cause::Timeout,
                    _ => Cause::Error,
                };
                (cause, failure.to_string())
            }
            _ => (Cause::Error, Tls::close_reason(close, phrase)),
        };
        self.clients[index].handle = None;
        self.on_connection_failed(now, index, cause, &why);
    }

    /// Whether a connection can send a request now.
    fn list_if_free(&mut self, index: usize) {
        let client = &mut self.clients[index];
        if client.is_free(self.state.settings.streams) && !client.is_listed {
            client.is_listed = true;
            // A request that is due must not wait until another one is.
            if client.is_waited_for() {
                self.free.push_front(index);
            } else {
                self.free.push_back(index);
            }
        }
    }

    // ---- requests ----------------------------------------------------------------------------------------------------

    /// Sends the requests that are due, on the connections with free streams in turn.
    fn send_due(&mut self, now: Time, endpoint: &mut Endpoint<usize>) {
        while let Some(index) = self.free.pop_front() {
            self.clients[index].is_listed = false;
            let client = &mut self.clients[index];
            if !client.is_free(self.state.settings.streams) {
                continue;
            }
            let next = client.refused.pop_front().or_else(|| client.pending.take());
            let Some(due) = next.or_else(|| self.state.dispatcher.take(now, index)) else {
                if self.state.dispatcher.next_arrival().is_some() {
                    // An open loop: the first in the list has the next turn.
                    client.is_listed = true;
                    self.free.push_front(index);
                    return;
                }
                continue;
            };
            let is_for_another = due.handshake.is_some() && client.has_carried;
            if is_for_another && !client.is_confirmed {
                client.put_back(due);
                client.awaits_tickets = true;
                continue;
            }
            if client.phase == Phase::Idle || is_for_another {
                client.put_back(due);
                self.retire(index);
                self.connect(now, index, endpoint);
                continue;
            }
            let Some(quic) = client.handle.and_then(|handle| endpoint.connection(handle)) else {
                client.put_back(due);
                continue;
            };
            let request = InFlight::new(&due, now);
            let Some(prepared) = self.requests.get(due.request) else {
                continue;
            };
            client.has_carried = true;
            match client.http3.request(quic, &prepared.head, prepared.body()) {
                Ok(stream) => {
                    self.state.recorder.on_started(&request);
                    client.in_flight.push_back((stream, request));
                }
                Err(RequestError::Blocked) => {
                    client.is_blocked = true;
                    client.put_back(due);
                }
                Err(RequestError::GoingAway) => {
                    client.phase = Phase::Draining(CLOSING);
                    client.put_back(due);
                }
                Err(error) => {
                    let why = format!("cannot send the request: {error}");
                    self.state.recorder.on_failed(&request, Cause::Error, &why);
                }
            }
            self.list_if_free(index);
        }
    }

    /// Takes a request out of the list of its connection.
    fn take(&mut self, index: usize, stream: StreamId) -> Option<InFlight> {
        let in_flight = &mut self.clients[index].in_flight;
        let place = find(in_flight, stream)?;
        in_flight.remove(place).map(|(_, request)| request)
    }

    fn on_http3_event(
        &mut self,
        now: Time,
        index: usize,
        quic: &mut Connection,
        event: http3::Event,
    ) {
        match event {
            http3::Event::Response { stream, response } => {
                self.on_head(now, index, stream, response);
            }
            http3::Event::Informational { response, .. } => {
                self.clients[index].http3.recycle(response.into_fields());
            }
            http3::Event::Trailers { fields, .. } => self.clients[index].http3.recycle(fields),
            http3::Event::Data { stream } => {
                let client = &mut self.clients[index];
                let mut bodies = Bodies {
                    in_flight: &client.in_flight,
                    data_bytes: &mut self.state.recorder.counts.data_bytes,
                };
                let mut take = |bytes: &[u8]| bodies.body(stream, bytes);
                // Errors are reported as separate events.
                let _ = client.http3.read(quic, now, stream, &mut take);
            }
            http3::Event::Finished { stream } => {
                if let Some(request) = self.take(index, stream) {
                    self.state.recorder.on_done(&request, now);
                    let client = &mut self.clients[index];
                    if let (Some(log), Some(handle)) = (&mut self.log, client.handle) {
                        log.on_finished(now, handle, stream);
                    }
                    client.done += u64::from(request.is_measured);
                    client.has_answered = true;
                    client.last = Some(now);
                }
            }
            http3::Event::Reset { stream, error, .. } => self.on_reset(index, stream, error),
            http3::Event::Settings => {
                let settings = self.clients[index].http3.peer_settings();
                self.peer_settings = settings.copied().or(self.peer_settings);
            }
            http3::Event::RequestsAvailable => self.clients[index].is_blocked = false,
            http3::Event::GoAway { .. } => {
                self.clients[index].phase = Phase::Draining(CLOSING);
            }
            http3::Event::Failed(error) => {
                let why = format!("the server violated HTTP/3: {error}");
                self.on_connection_failed(now, index, Cause::Error, &why);
            }
            _ => {}
        }
    }

    fn on_head(&mut self, now: Time, index: usize, stream: StreamId, response: http3::Response) {
        let client = &mut self.clients[index];
        if let (Some(log), Some(handle)) = (&mut self.log, client.handle) {
            log.on_head(now, handle, stream, &response);
        }
        if !client.has_first_byte {
            client.has_first_byte = true;
            let first_byte = now.nanos_since(client.started);
            self.state.recorder.first_byte.record(first_byte);
        }
        let sections = client.http3.statistics().sections_received;
        let bytes = sections - client.sections_counted;
        client.sections_counted = sections;
        let request = find(&client.in_flight, stream)
            .and_then(|place| client.in_flight.get_mut(place))
            .map(|(_, request)| request);
        if let Some(request) = request {
            request.status = response.status();
            if request.is_measured {
                let lines = response.fields().iter();
                let text: usize = lines.map(|line| line.name.len() + line.value.len()).sum();
                let counts = &mut self.state.recorder.counts;
                // `:status` and three digits.
                counts.header_text_bytes += 10 + text as u64;
                counts.header_bytes += bytes;
            }
        }
        client.http3.recycle(response.into_fields());
    }

    // ---- time --------------------------------------------------------------------------------------------------------

    fn on_tick(&mut self, now: Time, endpoint: &mut Endpoint<usize>) {
        self.state.on_tick(now);
        self.migrate(now, endpoint);
        let timeout = self.state.settings.timeout;
        let mut is_silent = false;
        for index in 0..self.clients.len() {
            let client = &mut self.clients[index];
            let quic = client.handle.and_then(|handle| endpoint.connection(handle));
            match (client.phase, quic) {
                (Phase::Waiting(at), _) if at <= now => {
                    if client.is_waited_for() {
                        self.connect(now, index, endpoint);
                    } else if self.state.is_over(now) {
                        client.phase = Phase::Over;
                    } else if self.state.settings.mix.is_some() {
                        client.phase = Phase::Idle;
                        self.list_if_free(index);
                    } else {
                        self.connect(now, index, endpoint);
                    }
                    continue;
                }
                (Phase::Connecting { .. } | Phase::Open | Phase::Draining(_), Some(quic)) => {
                    let is_connecting = matches!(client.phase, Phase::Connecting { .. });
                    let limit = self.state.settings.client.connect_timeout;
                    if client.awaits_tickets && client.started + limit <= now {
                        // The next connection has a full handshake then.
                        client.is_confirmed = true;
                        client.awaits_tickets = false;
                    }
                    is_silent |= is_connecting && client.started + PROBE_INTERVAL <= now;
                    while let Some((stream, request)) = client.in_flight.front().copied() {
                        is_silent |= request.sent + PROBE_INTERVAL <= now;
                        if request.sent + timeout > now {
                            break;
                        }
                        client.in_flight.pop_front();
                        let code = Code::REQUEST_CANCELLED;
                        client.http3.cancel(quic, now, stream, code);
                        let why = format!("no complete response within {} ms", timeout.as_millis());
                        self.state
                            .recorder
                            .on_failed(&request, Cause::Timeout, &why);
                    }
                }
                _ => continue,
            }
            if let Phase::Draining(why) = self.clients[index].phase
                && self.clients[index].in_flight.is_empty()
            {
                self.on_connection_failed(now, index, Cause::Error, why);
            } else {
                self.list_if_free(index);
            }
        }
        self.probe(now, is_silent);
        let is_over = |client: &Client| client.phase == Phase::Over;
        self.has_given_up = self.clients.iter().all(is_over);
        let is_settled =
            |client: &Client| !matches!(client.phase, Phase::Waiting(_) | Phase::Connecting { .. });
        if !self.state.is_started && self.clients.iter().all(is_settled) {
            self.state.on_settled(now);
        }
    }

    /// Checks whether the port is closed if a connection is silent: the driver's socket does not receive the ICMP error.
    fn probe(&mut self, now: Time, is_silent: bool) {
        if let Some((at, probe)) = &self.probe {
            if let Some(error) = probe.answer() {
                self.probe = None;
                let why = format!("cannot connect to {}: {error}", self.remote);
                for index in 0..self.clients.len() {
                    let phase = self.clients[index].phase;
                    if !matches!(phase, Phase::Waiting(_) | Phase::Idle | Phase::Over) {
                        self.on_connection_failed(now, index, Cause::Error, &why);
                    }
                }
            } else if *at + PROBE_INTERVAL <= now {
                self.probe = None;
            }
        }
        if is_silent && self.can_probe && self.probe.is_none() {
            // Without a route, the connections fail for the same reason.
            let probe = ReachabilityProbe::send(self.remote).ok();
            self.probe = probe.map(|probe| (now, probe));
        }
    }

    /// Ends the run: cancels requests in progress, and closes all connections.
    fn end(&mut self, now: Time) {
        self.is_ending = true;
        let measured_from = self.state.dispatcher.measured_from();
        for client in &mut self.clients {
            for (_, request) in client.in_flight.drain(..) {
                self.state.recorder.on_unfinished(&request);
            }
            for due in client.refused.drain(..).chain(client.pending.take()) {
                self.state.recorder.on_not_sent(&due);
            }
            if let Some(started) = client.first_started.filter(|_| client.was_open) {
                let from = started.max(measured_from);
                let until = client.last.unwrap_or(now).max(from);
                self.state
                    .recorder
                    .on_connection_end(client.done, until.since(from));
            }
            client.phase = Phase::Over;
            self.to_close.extend(client.handle.take());
        }
    }

    fn close_some(&mut self, now: Time, endpoint: &mut Endpoint<usize>) {
        for _ in 0..CLOSES_PER_TURN {
            let Some(handle) = self.to_close.pop() else {
                return;
            };
            if let Some(quic) = endpoint.connection(handle) {
                if let Some(log) = &mut self.log {
                    log.write(handle, quic);
                }
                quic.close(now, Code::NO_ERROR.get());
            }
        }
    }
}

impl Application for Http3Load<'_> {
    type Command = ();
    /// The index of its client.
    type Data = usize;

    fn on_accepted(&mut self, _: Time, _: Handle, _: &mut Connection) -> usize {
        usize::MAX
    }

    fn on_datagram(
        &mut self,
        now: Time,
        handle: Handle,
        connection: &mut Connection,
        data: &mut usize,
        datagram: Datagram<'_>,
    ) {
        let Datagram { path, ecn, bytes } = datagram;
        if self.state.is_measuring(now) {
            self.state.recorder.counts.total_bytes += bytes.len() as u64;
        }
        if !self.is_current(*data, handle) {
            connection.handle_datagram(now, &path, ecn, bytes, &mut KeepAll);
            return;
        }
        let client = &mut self.clients[*data];
        let mut bodies = Bodies {
            in_flight: &client.in_flight,
            data_bytes: &mut self.state.recorder.counts.data_bytes,
        };
        let mut sink = client.http3.sink(&mut bodies);
        connection.handle_datagram(now, &path, ecn, bytes, &mut sink);
    }

    fn on_ready(
        &mut self,
        now: Time,
        handle: Handle,
        connection: &mut Connection,
        data: &mut usize,
    ) {
        let index = *data;
        if !self.is_current(index, handle) {
            while connection.poll_event().is_some() {}
            return;
        }
        while let Some(event) = connection.poll_event() {
            match event {
                Event::HandshakeComplete => {
                    if let Some(log) = &mut self.log {
                        log.on_handshake(now, handle);
                    }
                    let client = &mut self.clients[index];
                    client.phase = Phase::Open;
                    client.was_open = true;
                    let is_resumed = connection.session().is_resumed() == Some(true);
                    let recorder = &mut self.state.recorder;
                    recorder.on_connected(client.started, now, Some(is_resumed));
                }
                Event::HandshakeConfirmed => {
                    let client = &mut self.clients[index];
                    client.is_confirmed = true;
                    client.awaits_tickets = false;
                }
                Event::Idle => self.clients[index].http3.release_memory(),
                Event::ZeroRtt { is_accepted: true } => {
                    self.state.recorder.counts.early_data_accepted += 1;
                }
                Event::ZeroRtt { is_accepted: false } => {
                    // The transport sends the requests again.
                    self.clients[index].http3.on_zero_rtt_rejected();
                    self.state.recorder.counts.early_data_rejected += 1;
                }
                Event::Moved(_) if core::mem::take(&mut self.clients[index].is_moving) => {
                    self.state.recorder.counts.migrations += 1;
                }
                Event::PathFailed(_) if core::mem::take(&mut self.clients[index].is_moving) => {
                    let why = "the server did not answer from the new port";
                    self.state.recorder.counts.migrations_failed += 1;
                    self.state.recorder.on_error(1, why);
                }
                Event::NewToken(token) if self.state.settings.is_resuming() => {
                    self.clients[index].token = token;
                }
                Event::Closed(_) => {
                    self.on_transport_closed(now, index, connection);
                    return;
                }
                _ => {}
            }
        }
        while let Some(event) = self.clients[index].http3.poll(connection, now) {
            self.on_http3_event(now, index, connection, event);
        }
        let client = &self.clients[index];
        let is_spent = client.phase == Phase::Open && client.has_carried && client.is_confirmed;
        let mix = self.state.settings.mix;
        if is_spent && client.in_flight.is_empty() && mix.is_some_and(|mix| !mix.is_reusing()) {
            self.retire(index);
        }
        self.list_if_free(index);
    }

    fn on_closed(&mut self, now: Time, closed: Closed<usize>) {
        if self.is_current(closed.data, closed.handle) {
            self.on_transport_closed(now, closed.data, &closed.connection);
        }
    }

    fn on_command(&mut self, _: Time, _: &mut Endpoint<usize>, (): ()) {}

    fn on_turn(&mut self, now: Time, endpoint: &mut Endpoint<usize>) -> Next {
        if self.is_ending {
            self.close_some(now, endpoint);
            return Next {
                deadline: Some(now),
                status: Status::stopped_if(self.to_close.is_empty()),
            };
        }
        if self.next_tick <= now {
            self.next_tick = now + TICK;
            self.on_tick(now, endpoint);
        }
        if self.state.is_started {
            self.send_due(now, endpoint);
        }
        self.close_some(now, endpoint);
        let is_over = self.state.is_over(now);
        let is_quiet = |client: &Client| client.in_flight.is_empty() && !client.is_waited_for();
        let is_finished = self.has_given_up || (is_over && self.clients.iter().all(is_quiet));
        if self.state.is_cut_off(now) || is_finished {
            self.end(now);
            return Next {
                deadline: Some(now),
                status: Status::Running,
            };
        }
        let arrival = self.state.dispatcher.next_arrival();
        let arrival = arrival.filter(|_| self.state.is_started && !self.free.is_empty());
        let end = self
            .state
            .dispatcher
            .end()
            .filter(|_| self.state.is_started);
        let rest = (!self.to_close.is_empty()).then_some(now);
        let deadline = [Some(self.next_tick), arrival, end, rest];
        Next {
            deadline: deadline.into_iter().flatten().min(),
            status: Status::Running,
        }
    }

    fn on_send_error(&mut self, _: Time, path: &NetworkPath, error: &io::Error) {
        let why = format!("cannot send to {}: {error}", path.remote);
        self.state.recorder.on_error(1, &why);
    }
}
