//! The HTTP/3 server in virtual time, with clients that write what a test wants into their streams. Shared with the fuzz
//! target.

use std::{
    collections::BTreeMap,
    future::Future,
    net::SocketAddr,
    pin::pin,
    sync::{Arc, Mutex, mpsc::Receiver},
    task::{Context, Poll, Waker},
    time::Duration,
};

use lastbyte_http3::{
    self as http3, FieldLine, Request, Response,
    qpack::{EncodeOptions, Encoder},
};
use lastbyte_quic::{
    Time,
    ack::Ecn,
    close::CloseReason,
    connection::{Config, Connection, NetworkPath},
    crypto::plain::{PlainClient, PlainServer},
    endpoint::{Endpoint, EndpointConfig, Handle},
    stream::{KeepAll, Source, SourceError, StreamEvent},
};
use lastbyte_server::{
    Arm, Arms, FullResponse, Handler, HandlerResponse, Peer,
    access::{AccessLog, Format},
    budget,
    exchange::Exchange,
    log,
    pure::{Next, Parts, PureServer},
};
use lastbyte_wire::{Direction, StreamId, VarInt};

/// One way.
pub(crate) const DELAY: Duration = Duration::from_millis(10);
/// The wall-clock time at the start, since the Unix epoch: 14 November 2023.
pub(crate) const EPOCH: Duration = Duration::from_secs(1_700_000_000);
/// Requests that a client may have in flight.
pub(crate) const STREAMS: usize = 100;

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
    fn handle(&self, request: &Request, _: &Peer) -> HandlerResponse {
        *self.0.requests.lock().expect("no panic") += 1;
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
            remote: SocketAddr::from(([192, 0, 2, 255], 443)),
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

/// The server and its clients.
pub(crate) struct World {
    pub(crate) now: Time,
    pub(crate) server: PureServer,
    /// What the server said at the end of its last turn.
    pub(crate) next: Next,
    pub(crate) clients: Vec<Client>,
    pub(crate) scripted: Arc<Scripted>,
    /// Datagrams on their way: when they arrive, to which client, or from which to the server.
    flying: BTreeMap<(Time, u64), (usize, bool, Vec<u8>)>,
    sent: u64,
    /// The lines of the access log and of the connection log.
    lines: [Receiver<String>; 2],
    /// Lines of the access log.
    pub(crate) logged: Vec<String>,
    /// Lines of the connection log.
    pub(crate) connections: Vec<String>,
    /// The clients that it had at the start.
    opened: usize,
    buffer: Vec<u8>,
}

impl World {
    /// A server with both logs, and connected clients.
    pub(crate) fn new(clients: usize) -> Self {
        let now = Time::from_nanos(1_000_000_000);
        let scripted = Arc::<Scripted>::default();
        let (writer, lines) = log::in_memory();
        let (connections, connection_lines) = log::in_memory();
        let mut config = Config::new("cubic".parse().expect("a spec"));
        config.streams.bidirectional_streams = STREAMS as u64;
        let config = Arc::new(config);
        let arm = Arm {
            name: "cubic".into(),
            share: 1.0,
            config: Arc::clone(&config),
        };
        let parts = Parts {
            handler: Arc::new(Handed(Arc::clone(&scripted))),
            http3: http3::Config::default(),
            arms: Arms::new(vec![arm]).expect("an arm"),
            budget: budget::Limits::default(),
            log: Some(connections),
            access: Some(AccessLog::new(writer, Format::Ndjson)),
            wall: Arc::new(|now| EPOCH + now.since(Time::ZERO)),
        };
        let crypto = Arc::new(PlainServer::new(7, vec![http3::ALPN.to_vec()]));
        let endpoint = EndpointConfig::server(config, crypto);
        let server = PureServer::new(parts, endpoint, [9; 32]).expect("a server");
        let mut world = Self {
            now,
            server,
            next: Next::default(),
            clients: (0..clients as u64)
                .map(|number| Client::new(now, number))
                .collect(),
            scripted,
            flying: BTreeMap::new(),
            sent: 0,
            lines: [lines, connection_lines],
            logged: Vec::new(),
            connections: Vec::new(),
            opened: clients,
            buffer: vec![0; 65_535],
        };
        world.pass(10 * DELAY);
        world
    }

    /// Requests that the handler received.
    pub(crate) fn requests(&self) -> usize {
        *self.scripted.requests.lock().expect("no panic")
    }

    /// Runs the server and the clients, which send what they have.
    pub(crate) fn turn(&mut self) {
        let now = self.now;
        self.server.run(now);
        let mut buffer = std::mem::take(&mut self.buffer);
        while let Some(transmit) = self.server.poll_transmit(now, &mut buffer) {
            let is_of = |client: &Client| client.path.local == transmit.path.remote;
            let Some(to) = self.clients.iter().position(is_of) else {
                continue;
            };
            for datagram in buffer[..transmit.len].chunks(transmit.segment_len) {
                self.send(to, false, datagram);
            }
        }
        self.next = self.server.finish(now);
        for from in 0..self.clients.len() {
            self.clients[from].attend(now);
            while let Some(transmit) = self.clients[from].endpoint.poll_transmit(now, &mut buffer) {
                for datagram in buffer[..transmit.len].chunks(transmit.segment_len) {
                    self.send(from, true, datagram);
                }
            }
        }
        self.buffer = buffer;
        self.logged.extend(self.lines[0].try_iter());
        self.connections.extend(self.lines[1].try_iter());
    }

    fn send(&mut self, client: usize, to_server: bool, datagram: &[u8]) {
        self.sent += 1;
        let arrival = (self.now + DELAY, self.sent);
        self.flying
            .insert(arrival, (client, to_server, datagram.to_vec()));
    }

    fn deadline(&self) -> Option<Time> {
        let clients = self.clients.iter().map(|client| client.endpoint.deadline());
        let arrival = self.flying.keys().next().map(|(at, _)| *at);
        clients.chain([self.next.deadline, arrival]).flatten().min()
    }

    /// Lets time pass.
    pub(crate) fn pass(&mut self, span: Duration) {
        let until = self.now + span;
        loop {
            self.turn();
            let Some(next) = self.deadline().filter(|next| *next <= until) else {
                break;
            };
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

    fn deliver(&mut self, client: usize, to_server: bool, datagram: &mut [u8]) {
        // It may be gone without a word.
        let (now, Some(client)) = (self.now, self.clients.get_mut(client)) else {
            return;
        };
        let NetworkPath { local, remote } = client.path;
        if to_server {
            let path = NetworkPath {
                local: remote,
                remote: local,
            };
            self.server.receive(now, path, Ecn::NotEct, datagram);
        } else if let lastbyte_quic::endpoint::Route::Connection(handle) =
            client.endpoint.route(now, &client.path, datagram)
            && let Some(quic) = client.endpoint.connection(handle)
        {
            quic.handle_datagram(now, &client.path, Ecn::NotEct, datagram, &mut KeepAll);
        }
    }

    /// The bounds of what is kept for requests: never more than there are streams.
    pub(crate) fn check(&mut self) {
        let kept = self.server.kept();
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
        let kept = self.server.kept();
        assert_eq!(kept, lastbyte_server::pure::Kept::default());
        assert_eq!(
            self.logged.len(),
            self.requests(),
            "a line for each request"
        );
        assert_eq!(
            self.connections.len(),
            self.opened,
            "a line for each connection"
        );
    }
}
