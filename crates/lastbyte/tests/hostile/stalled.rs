//! Clients over HTTP/3 that ask for much and take nothing, though they send PINGs.

use std::{
    fs,
    io::{Read, Write},
    net::{SocketAddr, TcpListener},
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use lastbyte_driver::{Application, Clock, Next, Status, Worker};
use lastbyte_http3::{self as http3, Body, Event, Request};
use lastbyte_quic::{
    Time,
    connection::{Config, Connection, NetworkPath, Stage},
    crypto::tls::TlsClient,
    endpoint::{Closed, Endpoint, EndpointConfig, Handle},
    flow::WindowSize,
};
use lastbyte_udp::{Options, Socket};

use crate::{
    serving::{Serving, folder, stderr},
    trust,
};

/// How many requests each connection makes, and how much it takes of each response.
const STREAMS: usize = 100;
const TAKES: u64 = 2000;

/// Shared with the test.
#[derive(Default)]
struct Seen {
    is_over: AtomicBool,
    responses: AtomicUsize,
    resets: AtomicUsize,
}

/// Connections that ask for `/0`, `/1` and so on, each once, and read nothing.
struct Stalling {
    path: NetworkPath,
    crypto: Arc<TlsClient>,
    connections: usize,
    asked: usize,
    http3: Vec<(Handle, http3::Connection)>,
    seen: Arc<Seen>,
}

impl Application for Stalling {
    type Command = ();
    type Data = ();

    fn on_accepted(&mut self, _: Time, _: Handle, _: &mut Connection) {}

    fn on_ready(&mut self, now: Time, handle: Handle, connection: &mut Connection, (): &mut ()) {
        while connection.poll_event().is_some() {}
        let Some(index) = self.http3.iter().position(|(of, _)| *of == handle) else {
            return;
        };
        let http3 = &mut self.http3[index].1;
        if connection.stage() != Stage::Handshaking {
            while self.asked < (index + 1) * STREAMS {
                let path = format!("/{}", self.asked);
                let request = Request::new("GET", "https", "localhost", &path);
                if http3.request(connection, &request, Body::Empty).is_err() {
                    break;
                }
                self.asked += 1;
            }
        }
        while let Some(event) = http3.poll(connection, now) {
            match event {
                Event::Response { .. } => self.seen.responses.fetch_add(1, Ordering::Relaxed),
                Event::Reset { .. } => self.seen.resets.fetch_add(1, Ordering::Relaxed),
                _ => 0,
            };
        }
        // PINGs keep the connection open, whatever becomes of its requests.
        connection.set_awaiting(true);
    }

    fn on_closed(&mut self, _: Time, _: Closed) {}

    fn on_command(&mut self, _: Time, _: &mut Endpoint, (): ()) {}

    fn on_turn(&mut self, now: Time, endpoint: &mut Endpoint) -> Next {
        // One after the other, so that each asks for its own.
        if self.asked == self.http3.len() * STREAMS && self.http3.len() < self.connections {
            let mut config = Config::new("cubic".parse().expect("a spec"));
            config.keep_alive = Some(Duration::from_millis(100));
            config.streams.stream_window = WindowSize {
                initial: TAKES,
                maximum: TAKES,
            };
            let crypto = self.crypto.clone();
            let config = Arc::new(config);
            let handle = endpoint.connect(now, self.path, "localhost", &config, crypto, Vec::new());
            let http3 = http3::Connection::client(&http3::Config::default());
            self.http3.push((handle.expect("a connection"), http3));
        }
        Next {
            deadline: Some(now + Duration::from_millis(10)),
            status: Status::stopped_if(self.seen.is_over.load(Ordering::Relaxed)),
        }
    }
}

/// Clients that stall, until they are dropped.
struct Attack {
    seen: Arc<Seen>,
    thread: Option<JoinHandle<()>>,
}

impl Attack {
    fn begin(serving: &Serving, connections: usize) -> Self {
        let remote = SocketAddr::from(([127, 0, 0, 1], serving.port));
        let local = "127.0.0.1:0".parse().expect("an address");
        let socket = Socket::bind(local, &Options::default()).expect("a socket");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("versions")
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(trust::AcceptAny))
            .with_no_client_auth();
        tls.alpn_protocols = vec![http3::ALPN.to_vec()];
        let seen = Arc::new(Seen::default());
        let stalling = Stalling {
            path: NetworkPath {
                local: socket.local_address(),
                remote,
            },
            crypto: Arc::new(TlsClient::new(tls).expect("for QUIC")),
            connections,
            asked: 0,
            http3: Vec::new(),
            seen: Arc::clone(&seen),
        };
        let thread = thread::spawn(move || {
            let endpoint = Endpoint::new(EndpointConfig::client(), [7; 32]).expect("an endpoint");
            let clock = Clock::new();
            let mut worker = Worker::new(socket, endpoint, stalling, clock).expect("a worker");
            worker.run().expect("it runs");
        });
        Self {
            seen,
            thread: Some(thread),
        }
    }

    fn responses(&self) -> usize {
        self.seen.responses.load(Ordering::Relaxed)
    }

    fn resets(&self) -> usize {
        self.seen.resets.load(Ordering::Relaxed)
    }
}

impl Drop for Attack {
    fn drop(&mut self) {
        self.seen.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It failed already if it did.
            let _ = thread.join();
        }
    }
}

/// 800 different files, in 700 descriptors.
#[test]
fn stalled_responses_leave_descriptors_for_new_connections_and_end() {
    let folder = folder("hostile-stalled-files");
    for index in 0..800 {
        fs::write(folder.join(index.to_string()), vec![7; 100_000]).expect("room");
    }
    fs::write(folder.join("small"), "hello").expect("room");
    let by = ["sh", "-c", "ulimit -n 700; exec \"$@\"", "sh"];
    let flags = ["--self-signed", "--stall-timeout", "4s", "."];
    let serving = Serving::start_as(&folder, &by, "127.0.0.1:0", &flags);
    let attack = Attack::begin(&serving, 8);
    serving.wait_for(
        "lastbyte_responses_total{transport=\"quic\",class=\"5xx\"}",
        |count| count > 0,
    );
    let open = serving.descriptors().len();
    assert!(open < 500, "{open}");
    // New connections, over all versions. A file is not to be had now, but the server says so.
    for version in ["1.1", "2", "3"] {
        let got = serving.get(&folder, "/small", &["--http", version, "-i"]);
        let text = String::from_utf8_lossy(&got.stdout).into_owned();
        let status = text.split(' ').nth(1).unwrap_or_default();
        assert!(
            ["200", "503"].contains(&status),
            "{version}: {text}{}",
            stderr(&got)
        );
    }
    assert_eq!(serving.metric("lastbyte_tcp_accepts_failed_total"), 0);
    // Their time passes, although they go on sending PINGs.
    let began = std::time::Instant::now();
    while attack.resets() < 300 {
        assert!(
            began.elapsed() < crate::serving::PATIENCE,
            "{}",
            attack.resets()
        );
        thread::yield_now();
    }
    for version in ["1.1", "2", "3"] {
        let got = serving.get(&folder, "/small", &["--http", version]);
        assert_eq!(got.stdout, b"hello", "{version}: {}", stderr(&got));
    }
    let open = serving.descriptors().len();
    assert!(open < 100, "{open}");
    drop(attack);
    assert_eq!(serving.end().0, 0);
}

/// An upstream server that answers each request with as much as is taken. Returns its port.
fn endless_upstream() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            thread::spawn(move || {
                let mut request = [0; 4096];
                let asked = stream.read(&mut request).is_ok_and(|count| count > 0);
                let head = b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n";
                let piece = vec![7; 1 << 16];
                let mut is_taken = asked && stream.write_all(head).is_ok();
                while is_taken {
                    is_taken = stream.write_all(&piece).is_ok();
                }
            });
        }
    });
    port
}

#[test]
fn stalled_responses_of_an_upstream_server_use_bounded_memory() {
    let folder = folder("hostile-stalled-proxy");
    let proxy = format!("http://127.0.0.1:{}", endless_upstream());
    let flags = ["--self-signed", "--proxy", &proxy, "--stall-timeout", "4s"];
    let serving = Serving::start(&folder, &flags);
    let attack = Attack::begin(&serving, 1);
    let began = std::time::Instant::now();
    let mut most = 0;
    // From the first response until they are given up.
    while attack.resets() < STREAMS {
        most = most.max(serving.metric("lastbyte_buffered_bytes"));
        assert!(
            began.elapsed() < crate::serving::PATIENCE,
            "{}",
            attack.resets()
        );
    }
    assert_eq!(attack.responses(), STREAMS);
    // More than what one response may have, so that it was looked at in time.
    assert!((400_000..=4 << 20).contains(&most), "{most}");
    serving.wait_for("lastbyte_buffered_bytes", |count| count == 0);
    drop(attack);
    assert_eq!(serving.end().0, 0);
}

/// An upstream server that accepts connections and reads nothing, with a small buffer of the kernel's. Returns its port, and the
/// number of connections.
fn deaf_upstream() -> (u16, Arc<AtomicUsize>) {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None);
    let socket = socket.expect("a socket");
    socket.set_recv_buffer_size(4096).expect("a small buffer");
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    socket.bind(&any.into()).expect("a port");
    socket.listen(128).expect("a port");
    let listener = TcpListener::from(socket);
    let port = listener.local_addr().expect("an address").port();
    let count = Arc::new(AtomicUsize::new(0));
    let accepted = Arc::clone(&count);
    thread::spawn(move || {
        let mut kept = Vec::new();
        for stream in listener.incoming() {
            kept.push(stream);
            accepted.fetch_add(1, Ordering::Relaxed);
        }
    });
    (port, count)
}

/// 100 uploads of 20 MB on a connection each, none of which is read, and what docs/security.md states for a connection. What the kernel
/// holds for the upstream server is not the process's.
fn stalled_uploads_use_bounded_memory(version: &str, each: u64) {
    let folder = folder(&format!("hostile-stalled-uploads-{version}"));
    let body = fs::File::create(folder.join("body")).expect("room");
    body.set_len(20_000_000).expect("room");
    let (port, accepted) = deaf_upstream();
    let proxy = format!("http://127.0.0.1:{port}");
    let flags = ["--self-signed", "--proxy", &proxy, "--proxy-timeout", "20s"];
    let serving = Serving::start(&folder, &flags);
    let before = serving.resident();
    let url = serving.url("/");
    let words = [
        "bench", "-k", "--http", version, "-c", "100", "-n", "100", "-d", "body", &url,
    ];
    let mut uploading = crate::serving::command(&folder, &words);
    let uploading = uploading.stdout(Stdio::null()).stderr(Stdio::null());
    let mut uploading = uploading.spawn().expect("the binary runs");
    let began = std::time::Instant::now();
    while accepted.load(Ordering::Relaxed) < 100 {
        assert!(began.elapsed() < crate::serving::PATIENCE, "{accepted:?}");
        thread::yield_now();
    }
    // Until nothing more arrives: what is buffered stays as it is.
    let (mut buffered, mut same) = (0, 0);
    while same < 50 {
        let now = serving.metric("lastbyte_buffered_bytes");
        same = if now == buffered && now > 0 {
            same + 1
        } else {
            0
        };
        buffered = now;
        assert!(began.elapsed() < crate::serving::PATIENCE, "{buffered}");
    }
    let used = serving.resident().saturating_sub(before);
    uploading.kill().expect("it runs");
    uploading.wait().expect("it ends");
    assert!((6 << 20..=100 << 20).contains(&buffered), "{buffered}");
    assert!((buffered..=100 * each).contains(&used), "{used}");
    // Although the upstream reads nothing, and closes nothing.
    serving.wait_for("lastbyte_buffered_bytes", |count| count == 0);
    serving.kill();
}

#[test]
fn stalled_uploads_over_http3_use_bounded_memory() {
    // 3.6 MiB.
    stalled_uploads_use_bounded_memory("3", (36 << 20) / 10);
}

#[test]
fn stalled_uploads_over_http2_use_bounded_memory() {
    // 1 MiB of bodies in transit, 1 MiB that was not read, room for a stream, and the state of a connection.
    stalled_uploads_use_bounded_memory("2", (2 << 20) + (32 << 10) + (64 << 10));
}
