//! The HTTP/3 server in virtual time, with clients that write what a test wants into their streams. Shared with the fuzz
//! target.

use std::{
    collections::{BTreeMap, VecDeque},
    future::Future,
    net::SocketAddr,
    pin::pin,
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
    time::Duration,
};

use lastbyte_engine::{Application, Engine, Next, Status};
use lastbyte_http3::{
    self as http3, Body, FieldLine, Request, Response,
    qpack::{EncodeOptions, Encoder},
};
use lastbyte_origin::{
    Arm, Arms, FullResponse, Handler, HandlerResponse, Http3Server, Kept, Peer, Shared,
    access::{AccessLog, Format},
    application::Command,
    arms::ArmsInUse,
    engine,
    exchange::Exchange,
    kept,
    log::{self, LogQueue},
};
use lastbyte_quic::{
    Time,
    ack::Ecn,
    close::CloseReason,
    connection::{Config, Connection, NetworkPath},
    crypto::plain::{PlainClient, PlainServer, Resumption},
    endpoint::{Closed, Endpoint, EndpointConfig, Handle},
    stream::{KeepAll, Source, SourceError, StreamEvent},
};
use lastbyte_units::SplitMix64;
use lastbyte_wire::{Direction, StreamId, VarInt};

/// The address of the server.
const SERVER: ([u8; 4], u16) = ([192, 0, 2, 255], 443);
/// One way.
pub(crate) const DELAY: Duration = Duration::from_millis(10);
/// Sends of the server in a turn, as over a socket.
const SENDS: usize = 64;
/// The most turns at one time.
const TURNS_MAX: u32 = 1000;
/// The wall-clock time at the start, since the Unix epoch: 14 November 2023.
pub(crate) const EPOCH: Duration = Duration::from_secs(1_700_000_000);
/// Requests that a client may have in flight.
pub(crate) const STREAMS: usize = 100;
/// Datagrams that the socket of the server buffers; further ones are lost.
const SOCKET_BUFFER: usize = 4096;
/// Datagrams that the server receives in a turn.
const RECEIVES: usize = 64;
/// The most first flights that are recorded for replays.
const FLIGHTS_MAX: usize = 16;
/// A resource for a method that is not safe.
pub(crate) const UNSAFE: &str = "/post";

/// Responds by the path of a request.
#[derive(Default)]
pub(crate) struct Scripted {
    /// Exchanges of `/task` that nothing has answered.
    pub(crate) exchanges: Mutex<Vec<Exchange>>,
    /// Requests that it received.
    pub(crate) requests: Mutex<usize>,
}

struct Failing;

impl Source for Failing {
    fn len(&self) -> u64 {
        100_000
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), SourceError> {
        buffer.fill(b'x');
        if offset < 50_000 {
            return Ok(());
        }
        Err(SourceError {
            code: VarInt::from_u32(0x102),
        })
    }
}

pub(crate) struct Handed(pub(crate) Arc<Scripted>);

impl Handler for Handed {
    fn handle(&self, request: &Request, peer: &Peer) -> HandlerResponse {
        *self.0.requests.lock().expect("no panic") += 1;
        let is_safe = ["GET", "HEAD", "OPTIONS"].contains(&request.method());
        assert!(
            is_safe || !peer.is_early,
            "an unsafe request in 0-RTT: {request:?}"
        );
        let late = Duration::from_millis(50);
        match request.path().unwrap_or_default() {
            "/large" => {
                FullResponse::source(200, "text/plain", Box::new(vec![b'x'; 100_000])).into()
            }
            "/late" => HandlerResponse::After(late, Box::new(|| FullResponse::text(200, "late"))),
            "/hint" => {
                let hint = Response::new(103).with("link", "</a>; rel=preload");
                HandlerResponse::Hinted(hint, late, Box::new(|| FullResponse::text(200, "late")))
            }
            "/invalid" => FullResponse::text(200, "text").with("x", "a\nb").into(),
            "/short" => FullResponse::text(200, "text")
                .with("content-length", "5")
                .into(),
            "/failing" => FullResponse::source(200, "text/plain", Box::new(Failing)).into(),
            "/task" => {
                let scripted = Arc::clone(&self.0);
                HandlerResponse::Task(Box::new(move |exchange| {
                    scripted.exchanges.lock().expect("no panic").push(exchange);
                }))
            }
            _ => FullResponse::text(200, "now").into(),
        }
    }

    fn takes_tunnel(&self, request: &Request) -> bool {
        request.path() == Some("/task")
    }
}

/// Polls a future once: it is complete, or what it waits for has not happened.
pub(crate) fn poll_once<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

/// A client that a test speaks for.
pub(crate) struct Client {
    endpoint: Endpoint,
    handle: Handle,
    path: NetworkPath,
    /// Why its connection closed.
    pub(crate) closed: Option<CloseReason>,
    /// What its streams received.
    pub(crate) received: BTreeMap<StreamId, Vec<u8>>,
    pub(crate) events: Vec<StreamEvent>,
    /// Whether it reads what it receives.
    pub(crate) reads: bool,
}

impl Client {
    fn new(now: Time, number: u64) -> Self {
        let seed = [number as u8 + 1; 32];
        let mut endpoint = Endpoint::new(EndpointConfig::client(), seed).expect("an endpoint");
        let path = NetworkPath {
            local: SocketAddr::from(([192, 0, 2, number as u8], 50_000)),
            remote: SERVER.into(),
        };
        let crypto = Arc::new(PlainClient::new(number, vec![http3::ALPN.to_vec()]));
        let config = Arc::new(Config::new("cubic".parse().expect("a spec")));
        let handle = endpoint
            .connect(now, path, "localhost", &config, crypto, Vec::new())
            .expect("a connection");
        Self {
            endpoint,
            handle,
            path,
            closed: None,
            received: BTreeMap::new(),
            events: Vec::new(),
            reads: true,
        }
    }

    /// Its connection, until it is closed.
    pub(crate) fn quic(&mut self) -> Option<&mut Connection> {
        self.endpoint.connection(self.handle)
    }

    fn attend(&mut self, now: Time) {
        while self.endpoint.poll_touched().is_some() {}
        let Self {
            endpoint,
            handle,
            received,
            events,
            reads,
            closed,
            ..
        } = self;
        if let Some(quic) = endpoint.connection(*handle) {
            *closed = closed.or(quic.close_reason());
            while quic.poll_event().is_some() {}
            while let Some(event) = quic.streams().poll_event() {
                if let StreamEvent::Readable(id) = event
                    && *reads
                {
                    let bytes = received.entry(id).or_default();
                    let _ = quic.streams().read(id, now, &mut |piece| {
                        bytes.extend_from_slice(piece);
                        piece.len()
                    });
                }
                events.push(event);
            }
        }
        while let Some(gone) = endpoint.poll_closed() {
            *closed = closed.or(gone.connection.close_reason());
        }
    }

    /// Opens a stream, unless the server permits none now.
    pub(crate) fn open(&mut self, direction: Direction) -> Option<StreamId> {
        self.quic()?.streams().open(direction)
    }

    /// Writes to a stream, and ends it if `ends`. What cannot be written is left out.
    pub(crate) fn write(&mut self, id: StreamId, bytes: &[u8], ends: bool) {
        if let Some(quic) = self.quic() {
            let _ = quic.streams().write(id, bytes);
            if ends {
                let _ = quic.streams().finish(id);
            }
        }
    }

    /// Asks the server to stop sending on a stream.
    pub(crate) fn stop(&mut self, now: Time, id: StreamId) {
        if let Some(quic) = self.quic() {
            let code = VarInt::from(http3::Code::REQUEST_CANCELLED);
            let _ = quic.streams().stop_sending(id, code, now);
        }
    }
}

/// How a request of a good client ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// With a complete response of this status and length.
    Complete(u16, usize),
    /// With an error that the client received.
    Failed,
}

/// A request of a good client.
#[derive(Debug)]
pub(crate) struct Fetch {
    pub(crate) path: &'static str,
    status: u16,
    received: usize,
    pub(crate) end: Option<End>,
    requested: Time,
    /// From the request to its end.
    pub(crate) took: Duration,
}

impl Fetch {
    fn end(&mut self, now: Time, end: End) {
        assert_eq!(self.end, None, "{}: a second end, {end:?}", self.path);
        self.end = Some(end);
        self.took = now.since(self.requested);
    }
}

/// An application that fetches objects, a few at a time, and then closes its connection.
pub(crate) struct Fetches {
    http3: http3::Connection,
    path: NetworkPath,
    number: u64,
    handle: Option<Handle>,
    wanted: Vec<&'static str>,
    pub(crate) requests: BTreeMap<StreamId, Fetch>,
    pub(crate) closed: Option<CloseReason>,
    pub(crate) is_over: bool,
    /// The server's transport parameters of an earlier connection, with which it sends requests in 0-RTT.
    pub(crate) resumed: Option<Vec<u8>>,
    /// Those of this connection.
    parameters: Option<Vec<u8>>,
}

/// Requests of a good client at a time.
const AT_A_TIME: usize = 4;

impl Fetches {
    /// Objects that it could not request, since its connection ended before.
    pub(crate) fn left(&self) -> usize {
        self.wanted.len()
    }

    fn send(&mut self, now: Time, quic: &mut Connection) {
        let open = |fetches: &BTreeMap<StreamId, Fetch>| {
            let fetches = fetches.values();
            fetches.filter(|fetch| fetch.end.is_none()).count()
        };
        while let Some(path) = self.wanted.last()
            && open(&self.requests) < AT_A_TIME
        {
            let method = if *path == UNSAFE { "POST" } else { "GET" };
            let request = Request::new(method, "https", "localhost", path);
            let Ok(stream) = self.http3.request(quic, &request, Body::Empty) else {
                break;
            };
            let fetch = Fetch {
                path,
                status: 0,
                received: 0,
                end: None,
                requested: now,
                took: Duration::ZERO,
            };
            self.requests.insert(stream, fetch);
            self.wanted.pop();
        }
        if self.wanted.is_empty() && open(&self.requests) == 0 {
            self.http3.close(quic, now, http3::Code::NO_ERROR);
        }
    }
}

impl Application for Fetches {
    type Command = ();
    type Data = ();

    fn on_accepted(&mut self, _: Time, _: Handle, _: &mut Connection) {}

    fn on_ready(&mut self, now: Time, _: Handle, quic: &mut Connection, (): &mut ()) {
        while let Some(event) = quic.poll_event() {
            if let lastbyte_quic::connection::Event::ZeroRtt { is_accepted: false } = event {
                self.http3.on_zero_rtt_rejected();
            }
        }
        let parameters = quic.session().peer_parameters();
        self.parameters = parameters.map(<[u8]>::to_vec);
        while let Some(event) = self.http3.poll(quic, now) {
            use http3::Event;
            match event {
                Event::Response { stream, response } => {
                    let fetch = self.requests.get_mut(&stream).expect("a request");
                    fetch.status = response.status();
                }
                Event::Data { stream } => {
                    let fetch = self.requests.get_mut(&stream).expect("a request");
                    let read = &mut |piece: &[u8]| {
                        fetch.received += piece.len();
                        piece.len()
                    };
                    let _ = self.http3.read(quic, now, stream, read);
                }
                Event::Finished { stream } => {
                    let fetch = self.requests.get_mut(&stream).expect("a request");
                    fetch.end(now, End::Complete(fetch.status, fetch.received));
                }
                Event::Reset { stream, .. } => {
                    let fetch = self.requests.get_mut(&stream).expect("a request");
                    fetch.end(now, End::Failed);
                }
                _ => {}
            }
        }
        self.send(now, quic);
    }

    fn on_closed(&mut self, now: Time, closed: Closed) {
        self.closed = closed.connection.close_reason();
        self.is_over = true;
        let open = self.requests.values_mut();
        for fetch in open.filter(|fetch| fetch.end.is_none()) {
            fetch.end(now, End::Failed);
        }
    }

    fn on_command(&mut self, _: Time, _: &mut Endpoint, (): ()) {}

    fn on_turn(&mut self, now: Time, endpoint: &mut Endpoint) -> Next {
        if self.handle.is_none() {
            let mut crypto = PlainClient::new(self.number, vec![http3::ALPN.to_vec()]);
            crypto.resumption = self.resumed.clone().map(|parameters| Resumption {
                parameters,
                early_data: true,
            });
            let crypto = Arc::new(crypto);
            let config = Arc::new(Config::new("cubic".parse().expect("a spec")));
            let handle = endpoint.connect(now, self.path, "localhost", &config, crypto, Vec::new());
            let handle = handle.expect("a connection");
            self.handle = Some(handle);
            if let Some(quic) = endpoint.connection(handle)
                && quic.is_zero_rtt()
            {
                self.send(now, quic);
            }
        }
        Next {
            deadline: None,
            status: Status::stopped_if(self.is_over),
        }
    }
}

/// A client that reads the responses to its requests.
pub(crate) struct Good {
    pub(crate) engine: Engine<Fetches>,
    pub(crate) next: Next,
}

impl Good {
    fn new(number: u64, wanted: Vec<&'static str>, resumed: Option<Vec<u8>>) -> Self {
        let seed = [number as u8 + 101; 32];
        let endpoint = Endpoint::new(EndpointConfig::client(), seed).expect("an endpoint");
        let config = http3::Config::default();
        let mut http3 = http3::Connection::client(&config);
        if resumed.is_some() {
            http3 = http3.with_remembered(http3::Settings {
                max_field_section_size: config.field_section_size_max.into(),
                qpack_max_table_capacity: config.qpack_table_capacity.into(),
                qpack_blocked_streams: config.qpack_blocked_streams.into(),
                enable_connect_protocol: config.extended_connect,
            });
        }
        let fetches = Fetches {
            http3,
            path: NetworkPath {
                local: SocketAddr::from(([198, 51, 100, number as u8], 50_000)),
                remote: SERVER.into(),
            },
            number: 1000 + number,
            handle: None,
            wanted,
            requests: BTreeMap::new(),
            closed: None,
            is_over: false,
            resumed,
            parameters: None,
        };
        Self {
            engine: Engine::new(endpoint, fetches),
            next: Next::default(),
        }
    }
}

/// What happens to datagrams on their way, in thousandths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Faults {
    pub(crate) loss: u64,
    pub(crate) duplication: u64,
    /// Up to three more delays.
    pub(crate) reordering: u64,
}

/// The client that sent a datagram, or receives it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Party {
    Client(usize),
    Good(usize),
}

/// A HEADERS frame of a request.
pub(crate) fn head(method: &str, path: &str, fields: &[(&str, &str)]) -> Vec<u8> {
    let pseudo = [
        (":method", method),
        (":scheme", "https"),
        (":authority", "localhost"),
        (":path", path),
    ];
    let lines = pseudo.iter().chain(fields).map(|(name, value)| FieldLine {
        name,
        value: value.as_bytes(),
        is_sensitive: false,
    });
    let options = EncodeOptions {
        instructions_max: 0,
        may_block: false,
    };
    let mut section = Vec::new();
    Encoder::new(0, 0).encode(0, lines, options, &mut section);
    frame(1, &section)
}

/// A frame whose type is one byte, and whose length is two.
pub(crate) fn frame(frame_type: u8, payload: &[u8]) -> Vec<u8> {
    let len = payload.len() as u16 | 0x4000;
    [&[frame_type][..], &len.to_be_bytes(), payload].concat()
}

/// The arm after this number of reloads.
fn arm(number: usize, config: &Arc<Config>) -> Arm {
    Arm {
        name: format!("arm-{number}"),
        share: 1.0,
        config: Arc::clone(config),
    }
}

/// The server and its clients.
pub(crate) struct World {
    pub(crate) now: Time,
    pub(crate) server: Engine<Http3Server>,
    /// The server's result of its last turn.
    pub(crate) next: Next,
    /// Whether it has received something since its last turn, or a command.
    is_called: bool,
    /// Datagrams in the buffer of its socket, with the clients' addresses.
    inbox: VecDeque<(SocketAddr, Vec<u8>)>,
    /// The time that the server's CPU takes for a datagram, and for a turn.
    pub(crate) cost: Duration,
    /// When the server's CPU is free again.
    busy_until: Time,
    /// Until then, the server's socket takes no datagrams.
    pub(crate) blocked_until: Time,
    /// The arms of the server.
    arms: Arc<ArmsInUse>,
    config: Arc<Config>,
    /// For each reload, the connections that were accepted before.
    reloads: Vec<u64>,
    /// First flights of clients with requests in 0-RTT.
    flights: Vec<Vec<u8>>,
    pub(crate) clients: Vec<Client>,
    pub(crate) goods: Vec<Good>,
    faults: Faults,
    random: SplitMix64,
    pub(crate) scripted: Arc<Scripted>,
    /// Datagrams on their way: when they arrive, to which client, or from which to the server.
    flying: BTreeMap<(Time, u64), (Party, bool, Vec<u8>)>,
    sent: u64,
    /// The lines of the access log and of the connection log.
    lines: [LogQueue; 2],
    /// Lines of the access log.
    pub(crate) logged: Vec<String>,
    /// Lines of the connection log.
    pub(crate) connections: Vec<String>,
    buffer: Vec<u8>,
}

impl World {
    /// A server with both logs, and connected clients.
    pub(crate) fn new(clients: usize) -> Self {
        Self::with(clients, |scripted| Arc::new(Handed(scripted)))
    }

    /// With another handler, which counts its requests.
    pub(crate) fn with(
        clients: usize,
        handler: impl FnOnce(Arc<Scripted>) -> Arc<dyn Handler>,
    ) -> Self {
        let now = Time::from_nanos(1_000_000_000);
        let scripted = Arc::<Scripted>::default();
        let (writer, lines) = log::queue();
        let (connections, connection_lines) = log::queue();
        let mut config = Config::new("cubic".parse().expect("a spec"));
        config.streams.bidirectional_streams = STREAMS as u64;
        let config = Arc::new(config);
        let arm = arm(0, &config);
        let shared = Shared {
            log: Some(connections),
            access: Some(AccessLog::new(writer, Format::Ndjson)),
            http3: http3::Config {
                extended_connect: true,
                ..http3::Config::default()
            },
            ..Shared::new(
                handler(Arc::clone(&scripted)),
                Arms::new(vec![arm]).expect("an arm"),
                Arc::new(|now: Time| EPOCH + now.since(Time::ZERO)),
            )
        };
        let arms = Arc::clone(&shared.arms);
        let crypto = Arc::new(PlainServer::new(7, vec![http3::ALPN.to_vec()]));
        let endpoint = EndpointConfig::server(Arc::clone(&config), crypto);
        let server = engine(shared, endpoint, [9; 32]).expect("a server");
        let mut world = Self {
            now,
            server,
            next: Next::default(),
            is_called: true,
            inbox: VecDeque::new(),
            cost: Duration::ZERO,
            busy_until: now,
            blocked_until: now,
            arms,
            config,
            reloads: Vec::new(),
            flights: Vec::new(),
            clients: (0..clients as u64)
                .map(|number| Client::new(now, number))
                .collect(),
            goods: Vec::new(),
            faults: Faults::default(),
            random: SplitMix64::new(0),
            scripted,
            flying: BTreeMap::new(),
            sent: 0,
            lines: [lines, connection_lines],
            logged: Vec::new(),
            connections: Vec::new(),
            buffer: vec![0; 65_535],
        };
        world.pass(10 * DELAY);
        world
    }

    /// What the server keeps for requests.
    pub(crate) fn kept(&mut self) -> Kept {
        kept(&mut self.server)
    }

    /// Requests that the handler received.
    pub(crate) fn requests(&self) -> usize {
        *self.scripted.requests.lock().expect("no panic")
    }

    /// Has the server end the requests in flight within this time, and end then.
    pub(crate) fn shut_down(&mut self, limit: Duration) {
        self.server.command(self.now, Command::ShutDown(limit));
        self.is_called = true;
    }

    /// Replaces the arms of new connections.
    pub(crate) fn reload(&mut self) {
        let accepted = self.server.application().statistics().accepted;
        self.reloads.push(accepted);
        let next = Config::clone(&self.config);
        let next = arm(self.reloads.len(), &Arc::new(next));
        self.arms.set(Arms::new(vec![next]).expect("an arm"));
    }

    /// Sends a recorded first flight again, from another address.
    pub(crate) fn replay(&mut self, which: usize) {
        let count = self.flights.len().max(1);
        if let Some(flight) = self.flights.get(which % count).cloned() {
            let remote = SocketAddr::from(([203, 0, 113, which as u8], 50_000));
            self.receive(remote, &flight);
        }
    }

    /// Whether the server has ended, and its process with it.
    pub(crate) fn has_ended(&self) -> bool {
        self.next.status != Status::Running
    }

    /// The server has a turn if there is a reason for one, as over a socket, and sends what it has.
    fn turn_of_server(&mut self, buffer: &mut [u8]) {
        let now = self.now;
        let is_due = self.next.deadline.is_some_and(|deadline| deadline <= now);
        self.is_called |= self.server.application().is_woken();
        if self.has_ended() || !(is_due || self.is_called) || self.busy_until > now {
            return;
        }
        let mut count = 1;
        for _ in 0..RECEIVES {
            let Some((remote, mut datagram)) = self.inbox.pop_front() else {
                break;
            };
            let path = NetworkPath {
                local: SERVER.into(),
                remote,
            };
            self.server.receive(now, path, Ecn::NotEct, &mut datagram);
            count += 1;
        }
        self.is_called = !self.inbox.is_empty();
        self.server.run(now);
        let is_blocked = self.blocked_until > now;
        for _ in 0..if is_blocked { 0 } else { SENDS } {
            let Some(transmit) = self.server.poll_transmit(now, buffer) else {
                break;
            };
            count += 1;
            let remote = transmit.path.remote;
            let client = self
                .clients
                .iter()
                .position(|client| client.path.local == remote);
            let good = self
                .goods
                .iter_mut()
                .position(|good| good.engine.application().path.local == remote);
            let Some(to) = client.map(Party::Client).or(good.map(Party::Good)) else {
                continue;
            };
            for datagram in buffer[..transmit.len].chunks(transmit.segment_len) {
                self.send(to, false, datagram);
            }
        }
        self.busy_until = now + self.cost * count;
        self.is_called |= is_blocked;
        self.next = self.server.finish(now, is_blocked);
    }

    /// When the server can have its next turn, if there is a reason for one.
    fn next_turn(&self) -> Option<Time> {
        let called = self
            .is_called
            .then_some(self.blocked_until.max(self.busy_until));
        // A CPU that is busy looks at its timers later.
        let due = self.next.deadline.map(|due| due.max(self.busy_until));
        Time::earlier(called, due).filter(|_| !self.has_ended())
    }

    /// Puts a datagram into the buffer of the server's socket.
    fn receive(&mut self, remote: SocketAddr, datagram: &[u8]) {
        if self.inbox.len() < SOCKET_BUFFER && !self.has_ended() {
            self.inbox.push_back((remote, datagram.to_vec()));
            self.is_called = true;
        }
    }

    /// Runs the server and the clients, which send what they have.
    pub(crate) fn turn(&mut self) {
        let now = self.now;
        let mut buffer = std::mem::take(&mut self.buffer);
        self.turn_of_server(&mut buffer);
        for from in 0..self.clients.len() {
            self.clients[from].attend(now);
            while let Some(transmit) = self.clients[from].endpoint.poll_transmit(now, &mut buffer) {
                for datagram in buffer[..transmit.len].chunks(transmit.segment_len) {
                    self.send(Party::Client(from), true, datagram);
                }
            }
        }
        for from in 0..self.goods.len() {
            self.goods[from].engine.run(now);
            while let Some(transmit) = self.goods[from].engine.poll_transmit(now, &mut buffer) {
                let fetches = self.goods[from].engine.application();
                let is_first = fetches.resumed.is_some() && fetches.parameters.is_none();
                for datagram in buffer[..transmit.len].chunks(transmit.segment_len) {
                    if is_first && self.flights.len() < FLIGHTS_MAX {
                        self.flights.push(datagram.to_vec());
                    }
                    self.send(Party::Good(from), true, datagram);
                }
            }
            self.goods[from].next = self.goods[from].engine.finish(now, false);
        }
        self.buffer = buffer;
        self.logged.extend(self.lines[0].try_iter());
        self.connections.extend(self.lines[1].try_iter());
    }

    /// Adds a good client, which connects in the next turn. If `resumes` and another one had a connection before, its first
    /// requests are in 0-RTT.
    pub(crate) fn add_good(&mut self, wanted: Vec<&'static str>, resumes: bool) {
        let number = self.goods.len() as u64;
        let mut goods = self.goods.iter_mut().filter(|_| resumes);
        let earlier = goods.find_map(|good| good.engine.application().parameters.clone());
        self.goods.push(Good::new(number, wanted, earlier));
    }

    /// From now on, datagrams have these faults.
    pub(crate) const fn set_faults(&mut self, seed: u64, faults: Faults) {
        self.random = SplitMix64::new(seed);
        self.faults = faults;
    }

    fn send(&mut self, party: Party, to_server: bool, datagram: &[u8]) {
        let mut happens = |thousandths| self.random.number() % 1000 < thousandths;
        if happens(self.faults.loss) {
            return;
        }
        let copies = 1 + u64::from(happens(self.faults.duplication));
        let more = if happens(self.faults.reordering) {
            1 + self.random.number() as u32 % 3
        } else {
            0
        };
        for copy in 0..copies {
            self.sent += 1;
            let delay = DELAY * (1 + more) + Duration::from_millis(copy);
            let arrival = (self.now + delay, self.sent);
            self.flying
                .insert(arrival, (party, to_server, datagram.to_vec()));
        }
    }

    fn deadline(&self) -> Option<Time> {
        let clients = self.clients.iter().map(|client| client.endpoint.deadline());
        let goods = self.goods.iter();
        let goods = goods.filter(|good| good.next.status == Status::Running);
        let goods = goods.map(|good| good.next.deadline);
        let arrival = self.flying.keys().next().map(|(at, _)| *at);
        let own = self.next_turn();
        clients.chain(goods).chain([own, arrival]).flatten().min()
    }

    /// Lets time pass.
    pub(crate) fn pass(&mut self, span: Duration) {
        let until = self.now + span;
        let mut turns = 0;
        loop {
            self.turn();
            let Some(next) = self.deadline().filter(|next| *next <= until) else {
                break;
            };
            turns = if next > self.now { 0 } else { turns + 1 };
            assert!(turns < TURNS_MAX, "turns without end at {:?}", self.now);
            self.now = self.now.max(next);
            while let Some(first) = self.flying.first_entry()
                && first.key().0 <= self.now
            {
                let (client, to_server, mut datagram) = first.remove();
                self.deliver(client, to_server, &mut datagram);
            }
            let now = self.now;
            for client in &mut self.clients {
                while client.endpoint.poll_timeout(now).is_some() {}
            }
        }
        self.now = until;
        self.turn();
    }

    fn deliver(&mut self, party: Party, to_server: bool, datagram: &mut [u8]) {
        let now = self.now;
        let path = match party {
            Party::Client(client) => self.clients.get(client).map(|client| client.path),
            Party::Good(good) => {
                let good = self.goods.get_mut(good);
                good.map(|good| good.engine.application().path)
            }
        };
        // It may be gone without a word.
        let Some(path) = path else {
            return;
        };
        let NetworkPath { local, remote } = path;
        if to_server {
            debug_assert_eq!(remote, SERVER.into());
            self.receive(local, datagram);
        } else if let Party::Good(good) = party {
            let engine = &mut self.goods[good].engine;
            engine.receive(now, path, Ecn::NotEct, datagram);
        } else if let Party::Client(client) = party
            && let client = &mut self.clients[client]
            && let lastbyte_quic::endpoint::Route::Connection(handle) =
                client.endpoint.route(now, &client.path, datagram)
            && let Some(quic) = client.endpoint.connection(handle)
        {
            quic.handle_datagram(now, &client.path, Ecn::NotEct, datagram, &mut KeepAll);
        }
    }

    /// The bounds of what is kept for requests: never more than there are streams.
    pub(crate) fn check(&mut self) {
        let kept = self.kept();
        let most = STREAMS * kept.connections;
        assert!(kept.records <= kept.streams, "{kept:?}");
        assert!(kept.running + kept.delayed <= kept.streams, "{kept:?}");
        assert!(kept.records <= most && kept.held <= most, "{kept:?}");
    }

    /// Closes all connections, and checks that each request had one end.
    pub(crate) fn end(&mut self) {
        let now = self.now;
        for client in &mut self.clients {
            if let Some(quic) = client.quic() {
                quic.close(now, 0x100);
            }
        }
        self.pass(Duration::from_secs(60));
        let kept = self.kept();
        if self.has_ended() {
            // Its connections end with its process.
            assert_eq!((kept.records, kept.held), (0, 0), "{kept:?}");
        } else {
            assert_eq!(kept, Kept::default());
        }
        let count = |lines: &[String], what: &str| {
            let lines = lines.iter().filter(|line| line.contains(what));
            lines.count() as u64
        };
        // The server itself responds to these.
        let refused =
            count(&self.logged, "\"status\":425,") + count(&self.logged, "\"status\":501,");
        assert_eq!(
            self.logged.len() as u64,
            self.requests() as u64 + refused,
            "a line for each request"
        );
        let statistics = *self.server.application().statistics();
        let early = count(&self.logged, "\"early\":true");
        assert_eq!(statistics.early_requests, early, "requests in 0-RTT");
        let sent = count(&self.logged, "\"complete\":true");
        assert_eq!(statistics.sent, sent, "responses sent whole");
        assert!(sent + statistics.cut_off <= statistics.requests, "ends");
        for class in 1..=5 {
            // A response that cannot be started has a line with its status, and is not counted.
            let status = format!("\"status\":{class}");
            let lines = self.logged.iter().filter(|line| line.contains(&status));
            let lines: Vec<String> = lines.cloned().collect();
            let whole = count(&lines, "\"complete\":true");
            let counted = statistics.responses[class];
            let is_right = (whole..=lines.len() as u64).contains(&counted);
            assert!(is_right, "{counted} responses with {class}xx");
        }
        let mut before = 0;
        let reloads = self.reloads.iter().copied().chain([statistics.accepted]);
        for (number, accepted) in reloads.enumerate() {
            let lines = count(&self.connections, &format!("\"arm\":\"arm-{number}\""));
            assert_eq!(lines, accepted - before, "connections of arm {number}");
            before = accepted;
        }
        assert_eq!(
            self.connections.len() as u64,
            statistics.accepted,
            "a line for each connection"
        );
        assert_eq!(statistics.requests, self.requests() as u64 + refused);
    }
}
