//! The memory that a connection of HTTP/3 takes of the server, as bounds.
//!
//! The handler runs on the worker's thread, so it can say what that thread has allocated. Buffers of the cryptographic
//! library are not counted: about 1.2 KB a connection, and none once it has been idle for a second.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use lastbyte_driver::{Application, Clock, Next, Status, Worker};
use lastbyte_http3::{self as http3, Body, Event};
use lastbyte_quic::{
    Time,
    connection::{Config, Connection, NetworkPath},
    crypto::tls::TlsClient,
    endpoint::{Closed, Endpoint, EndpointConfig, Handle},
};
use lastbyte_server::{
    Arm, Arms, FullResponse, Handler, HandlerResponse, Identity, Peer, Server, Settings,
};
use lastbyte_testkit::{CountingAllocator, live_bytes};
use lastbyte_udp::{Options, Socket};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Connections to take the mean of.
const COUNT: usize = 256;
/// Bytes of a connection that is idle after the handshake, at most.
const IDLE_MAX: usize = 11_300;
/// Bytes of one with a request that waits for its answer, at most.
const HELD_MAX: usize = 13_500;
/// Longer than it takes until all is acknowledged; a test that waits for it fails.
const PATIENCE: Duration = Duration::from_secs(20);

/// Answers with the bytes that its thread has allocated, or much later.
struct Told;

impl Handler for Told {
    fn handle(&self, request: &http3::Request, _: &Peer) -> HandlerResponse {
        if request.path() == Some("/held") {
            let hour = Duration::from_secs(3600);
            return HandlerResponse::After(hour, Box::new(|| FullResponse::bare(204)));
        }
        FullResponse::text(200, live_bytes().to_string()).into()
    }
}

/// The connections of a client. The first of them asks.
struct Clients {
    path: NetworkPath,
    config: Arc<Config>,
    crypto: Arc<TlsClient>,
    all: Vec<(Handle, http3::Connection)>,
    wanted: usize,
    /// Those that have received the server's settings.
    ready: usize,
    /// Whether the first is to ask, and whether the others are to send a request that is held.
    asks: bool,
    holds: bool,
    answer: Vec<u8>,
    is_answered: bool,
}

impl Application for Clients {
    type Command = ();
    type Data = ();

    fn on_accepted(&mut self, _: Time, _: Handle, _: &mut Connection) {}

    fn on_ready(&mut self, now: Time, handle: Handle, connection: &mut Connection, (): &mut ()) {
        while connection.poll_event().is_some() {}
        let found = self.all.iter_mut().find(|(known, _)| *known == handle);
        let Some((_, http3)) = found else {
            return;
        };
        while let Some(event) = http3.poll(connection, now) {
            match event {
                Event::Settings => self.ready += 1,
                Event::Data { stream } => {
                    let answer = &mut self.answer;
                    let read = http3.read(connection, now, stream, &mut |bytes| {
                        answer.extend_from_slice(bytes);
                        bytes.len()
                    });
                    read.expect("an answer");
                }
                Event::Finished { .. } => self.is_answered = true,
                Event::Failed(error) => panic!("{error}"),
                _ => {}
            }
        }
    }

    fn on_closed(&mut self, _: Time, closed: Closed) {
        panic!("{:?}", closed.connection.close_reason());
    }

    fn on_command(&mut self, _: Time, _: &mut Endpoint, (): ()) {}

    fn on_turn(&mut self, now: Time, endpoint: &mut Endpoint) -> Next {
        while self.all.len() < self.wanted {
            let handle = endpoint
                .connect(
                    now,
                    self.path,
                    "localhost",
                    &self.config,
                    self.crypto.clone(),
                    Vec::new(),
                )
                .expect("a connection");
            let http3 = http3::Connection::client(&http3::Config::default());
            self.all.push((handle, http3));
        }
        if self.ready == self.wanted {
            let mut send = |(handle, http3): &mut (Handle, http3::Connection), path| {
                let connection = endpoint.connection(*handle).expect("it is open");
                let request = http3::Request::new("GET", "https", "localhost", path);
                let sent = http3.request(connection, &request, Body::Empty);
                sent.expect("a request");
            };
            let (first, others) = self.all.split_first_mut().expect("a connection");
            if std::mem::take(&mut self.holds) {
                for other in others {
                    send(other, "/held");
                }
            }
            if std::mem::take(&mut self.asks) {
                send(first, "/");
            }
        }
        Next {
            deadline: None,
            status: Status::stopped_if(self.is_answered),
        }
    }
}

/// The bytes that the server's thread has allocated.
fn live(worker: &mut Worker<Clients>) -> usize {
    let clients = worker.application();
    clients.answer.clear();
    clients.is_answered = false;
    clients.asks = true;
    worker.run().expect("an answer");
    let text = String::from_utf8(std::mem::take(&mut worker.application().answer));
    text.expect("text").parse().expect("a number")
}

/// Asks until a connection takes no more than this of the server: what waits for acknowledgments is freed soon, and more once
/// the connection has been idle for a second.
fn settle(worker: &mut Worker<Clients>, before: usize, most: usize, name: &str) -> usize {
    let clock = Clock::new();
    let end = clock.now() + PATIENCE;
    loop {
        let each = live(worker).saturating_sub(before) / COUNT;
        if each <= most {
            return each;
        }
        assert!(clock.now() < end, "{name}: {each} bytes, not {most}");
    }
}

#[test]
fn connections_take_no_more_memory_than_stated() {
    let address: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    let days = Clock::since_epoch().as_secs() / 86_400;
    let identity = Identity::self_signed(&["localhost".into()], days.cast_signed());
    let identity = identity.expect("an identity");
    let config = Arc::new(Config::new("cubic".parse().expect("a spec")));
    let arm = Arm {
        name: "cubic".into(),
        share: 1.0,
        config: config.clone(),
    };
    let mut roots = rustls::RootCertStore::empty();
    roots.add(identity.chain[0].clone()).expect("a certificate");
    let arms = Arms::new(vec![arm]).expect("an arm");
    let mut settings = Settings::new(address, identity, arms, Arc::new(Told));
    settings.workers = std::num::NonZeroUsize::new(1);
    let server = Server::start(settings).expect("a server");

    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("versions")
        .with_root_certificates(Arc::new(roots))
        .with_no_client_auth();
    tls.alpn_protocols = vec![http3::ALPN.to_vec()];
    tls.resumption = rustls::client::Resumption::disabled();
    let socket = Socket::bind(address, &Options::default()).expect("a socket");
    let clients = Clients {
        path: NetworkPath {
            local: socket.local_address(),
            remote: server.address(),
        },
        config,
        crypto: Arc::new(TlsClient::new(tls).expect("a configuration")),
        all: Vec::new(),
        wanted: 1,
        ready: 0,
        asks: false,
        holds: false,
        answer: Vec::new(),
        is_answered: false,
    };
    let endpoint = Endpoint::new(EndpointConfig::client(), [7; 32]).expect("an endpoint");
    let mut worker = Worker::new(socket, endpoint, clients, Clock::new()).expect("a worker");

    // The first connection makes what all share.
    live(&mut worker);
    let before = live(&mut worker);
    worker.application().wanted += COUNT;
    let idle = settle(&mut worker, before, IDLE_MAX, "idle");
    worker.application().holds = true;
    // The next answer comes when all requests have.
    live(&mut worker);
    let held = settle(&mut worker, before, HELD_MAX, "held");
    assert!(held > idle, "a request takes memory: {held}, {idle}");
}
