//! HTTP/1.1 and 2 over several threads: which one serves a connection, and what they share.

use std::{
    collections::BTreeMap,
    net::{SocketAddr, TcpListener, TcpStream},
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
};

use lastbyte_http3::Request;
use lastbyte_server::{
    FullResponse, Handler, HandlerResponse, Inherited, Peer, Settings, Site, Versions, tcp::Limits,
};

use tokio::{net::TcpSocket, runtime};

use crate::{
    operations::plain,
    serving::{Client, Response, Serving, settings},
};

/// Responds with the name of its thread.
struct ThreadName;

impl Handler for ThreadName {
    fn handle(&self, _: &Request, _: &Peer) -> HandlerResponse {
        let thread = thread::current();
        FullResponse::text(200, thread.name().unwrap_or_default()).into()
    }
}

fn with_threads(handler: impl Handler + 'static, threads: usize) -> Settings {
    let mut settings = settings(handler);
    settings.workers = NonZeroUsize::new(threads);
    settings.versions = Versions {
        http3: false,
        ..Versions::ALL
    };
    settings
}

/// The thread that serves the next request of a connection.
fn thread_of(client: &mut Client) -> String {
    client.send(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    client.head();
    String::from_utf8(client.take("tcp-0".len())).expect("text")
}

#[test]
fn connections_of_one_passed_listener_are_distributed_over_all_threads() {
    let mut settings = with_threads(ThreadName, 3);
    let mut inherited = Inherited::default();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    inherited.add_tcp("", listener).expect("it listens");
    settings.inherited = inherited;
    let serving = Serving::start(settings);
    let mut clients = Vec::new();
    for _ in 0..6 {
        let mut client = serving.connect();
        let thread = thread_of(&mut client);
        clients.push((client, thread));
    }
    let threads: Vec<&str> = clients.iter().map(|(_, thread)| thread.as_str()).collect();
    assert_eq!(
        threads,
        ["tcp-0", "tcp-1", "tcp-2", "tcp-0", "tcp-1", "tcp-2"]
    );
    drop(clients);
    serving.end();
}

#[test]
fn a_connection_stays_on_its_thread_and_the_kernel_chooses_which() {
    let serving = Serving::start(with_threads(ThreadName, 2));
    let mut connections = BTreeMap::<String, usize>::new();
    for _ in 0..64 {
        let mut client = serving.connect();
        let thread = thread_of(&mut client);
        for _ in 0..3 {
            assert_eq!(thread_of(&mut client), thread);
        }
        *connections.entry(thread).or_default() += 1;
    }
    assert_eq!(connections.len(), 2, "{connections:?}");
    let report = serving.server.shut_down(crate::serving::PATIENCE);
    assert_eq!(
        (report.tcp.accepted, report.tcp.requests_http1),
        (64, 64 * 4),
        "the counters are sums over the threads"
    );
}

/// Their clients consider them open. Closing the listener would reset them.
#[test]
fn connections_that_wait_to_be_accepted_at_shutdown_are_served() {
    const COUNT: usize = 64;
    for threads in [1, 2] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let waiting: Vec<_> = (0..COUNT)
            .map(|_| TcpStream::connect(address).expect("room in the queue"))
            .collect();
        let mut settings = with_threads(Site::generated(), threads);
        settings.metrics = Some("127.0.0.1:0".parse().expect("an address"));
        settings
            .inherited
            .add_tcp("", listener)
            .expect("it listens");
        let Serving { server, roots } = Serving::start(settings);
        let config = crate::serving::client(rustls::ALL_VERSIONS, roots);
        let metrics = server.metrics_address().expect("it listens");
        let ended = thread::spawn(move || server.shut_down(crate::serving::PATIENCE));
        // Requests that arrive before the shutdown leave their connections open.
        let is_draining = || {
            let text = String::from_utf8(plain(metrics, "/metrics").body).expect("text");
            text.contains("\nlastbyte_draining 1\n")
        };
        while !is_draining() {
            thread::yield_now();
        }
        // All at once: each waits for its request for a limited time only.
        let clients: Vec<_> = waiting
            .into_iter()
            .map(|socket| {
                let config = Arc::clone(&config);
                thread::spawn(move || {
                    let mut client = Client::over(socket, config);
                    client.send(b"GET /1 HTTP/1.1\r\nhost: x\r\n\r\n");
                    Response::parse(&client.rest())
                })
            })
            .collect();
        for client in clients {
            let response = client.join().expect("a response");
            assert_eq!(response.status, 200);
            assert_eq!(response.field("connection"), Some("close"));
        }
        let report = ended.join().expect("a report");
        assert_eq!(report.tcp.accepted, COUNT as u64);
        TcpStream::connect(address).expect_err("nothing listens any more");
    }
}

/// The status of a request from another address of this machine.
fn get_from(serving: &Serving, host: u8) -> u16 {
    let runtime = runtime::Builder::new_current_thread().enable_io().build();
    let connected = runtime.expect("a runtime").block_on(async {
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::from(([127, 0, 0, host], 0)))?;
        socket.connect(serving.address()).await?.into_std()
    });
    let socket = connected.expect("a listener");
    socket.set_nonblocking(false).expect("a socket");
    let mut client = Client::over(socket, serving.client(rustls::ALL_VERSIONS));
    client.send(b"GET /1 HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    Response::parse(&client.rest()).status
}

#[test]
fn the_connection_limit_is_shared_by_all_threads() {
    let mut settings = with_threads(Site::generated(), 2);
    settings.metrics = Some("127.0.0.1:0".parse().expect("an address"));
    settings.tcp = Limits {
        connections: 1,
        ..Limits::default()
    };
    let serving = Arc::new(Serving::start(settings));
    let mut first = serving.connect();
    first.send(b"GET /1 HTTP/1.1\r\nhost: x\r\n\r\n");
    first.head();
    first.take(1);
    let clients: Vec<_> = (2..18)
        .map(|host| {
            let serving = Arc::clone(&serving);
            let get = move || get_from(&serving, host);
            thread::Builder::new().spawn(get).expect("a thread")
        })
        .collect();
    let metrics = serving.server.metrics_address().expect("it listens");
    let open = || {
        let text = String::from_utf8(plain(metrics, "/metrics").body).expect("text");
        let mut lines = text.lines();
        let line =
            lines.find_map(|line| line.strip_prefix("lastbyte_connections{transport=\"tcp\"} "));
        line.expect("a metric").parse::<u64>().expect("a number")
    };
    assert_eq!(open(), 1);
    drop(first);
    // The others wait for it and for each other, whichever listener the kernel gave them to.
    for client in clients {
        assert!(open() <= 1);
        assert_eq!(client.join().expect("a status"), 200);
    }
    Arc::into_inner(serving).expect("the only one").end();
}

#[test]
fn an_endless_response_does_not_block_other_connections_of_its_thread() {
    let serving = Serving::start(with_threads(Site::generated(), 1));
    let (moved, is_over) = (
        Arc::new(AtomicU64::new(0)),
        Arc::new(AtomicBool::new(false)),
    );
    let mut bulk = serving.connect();
    bulk.send(b"GET /1000GB HTTP/1.1\r\nhost: x\r\n\r\n");
    let reader = {
        let (moved, is_over) = (Arc::clone(&moved), Arc::clone(&is_over));
        let read = move || {
            while !is_over.load(Ordering::Relaxed) {
                let len = bulk.take(64 << 10).len();
                moved.fetch_add(len as u64, Ordering::Relaxed);
            }
        };
        thread::Builder::new().spawn(read).expect("a thread")
    };
    let mut other = serving.connect();
    for _ in 0..10 {
        let before = moved.load(Ordering::Relaxed);
        other.send(b"GET /1000 HTTP/1.1\r\nhost: x\r\n\r\n");
        other.head();
        other.take(1000);
        // The endless one continues as well.
        while moved.load(Ordering::Relaxed) == before {
            thread::yield_now();
        }
    }
    is_over.store(true, Ordering::Relaxed);
    reader.join().expect("it read");
    drop(serving.server.shut_down(std::time::Duration::ZERO));
}
