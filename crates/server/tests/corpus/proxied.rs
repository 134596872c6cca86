//! A hostile client and a hostile upstream against the whole HTTP/3 server with the reverse proxy as its handler, in memory and in
//! virtual time. What is kept for requests and the connections to the upstream stay within their bounds, and each request has one
//! end. Shared by the replay of the corpus and the fuzz target.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use http::HeaderValue;
use lastbyte_http3::Request;
use lastbyte_origin::{Handler, HandlerResponse, Peer as PeerInfo};
use lastbyte_server::proxy::{Limits, Proxy, UpstreamCounts, upstream::Server};
use lastbyte_testkit::Input;
#[cfg(test)]
use lastbyte_units::SplitMix64;
#[cfg(test)]
use lastbyte_wire::Direction;
use tokio::{
    io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf, duplex},
    runtime::{Builder, Runtime},
    task, time,
};

#[cfg(test)]
use super::world::{frame as http3_frame, head};
use super::{
    application::Peer,
    world::{DELAY, Scripted, World},
};

const LIMITS: Limits = Limits {
    connect: Duration::from_secs(1),
    response: Duration::from_secs(2),
    stall: Duration::from_secs(2),
    idle: Duration::from_secs(4),
    kept: 4,
    requests: 8,
    server_requests: usize::MAX,
    slow_start: Duration::ZERO,
    streams: 4,
};
/// Bytes on their way in a connection to the upstream, in each direction.
const IN_FLIGHT: usize = 8 << 10;
/// Runs of random bytes.
#[cfg(test)]
const SEEDS: u64 = 300;
/// Polls of the proxy's tasks after each step.
const POLLS: usize = 64;

/// What an upstream sends over HTTP/1.1.
const RESPONSES: [&str; 16] = [
    "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
    "HTTP/1.1 200 OK\r\ncontent-length: 200\r\n\r\n",
    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n",
    "0\r\n\r\n",
    "0\r\nx-end: 1\r\n\r\n",
    "HTTP/1.1 204 No Content\r\n\r\n",
    "HTTP/1.1 304 Not Modified\r\ncontent-length: 7\r\n\r\n",
    "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n",
    "HTTP/1.1 100 Continue\r\n\r\n",
    "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n",
    "HTTP/1.1 200 OK\r\ncontent-length: 3\r\ncontent-length: 4\r\n\r\n",
    "HTTP/1.1 200 OK\r\n\r\nuntil the close",
    "HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 1\r\n\r\nx",
    "HTTP/1.1 500 Internal Server Error\r\nconnection: close\r\n\r\n",
    "what?\r\n\r\n",
    "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n1\r\nx\r\n",
];

/// The proxy, whose requests are counted.
struct Counted {
    proxy: Proxy,
    scripted: Arc<Scripted>,
}

impl Handler for Counted {
    fn handle(&self, request: &Request, peer: &PeerInfo) -> HandlerResponse {
        *self.scripted.requests.lock().expect("no panic") += 1;
        self.proxy.handle(request, peer)
    }

    fn takes_tunnel(&self, request: &Request) -> bool {
        self.proxy.takes_tunnel(request)
    }
}

/// A connection to the upstream, from its other end.
struct Opened {
    stream: DuplexStream,
    /// The answer to the last WebSocket that it was asked for.
    accept: Option<String>,
}

/// The other ends of the connections to the upstream.
#[derive(Default)]
struct Upstream {
    opened: Arc<Mutex<Vec<DuplexStream>>>,
    /// Whether the first server refuses connections.
    refuses: Arc<AtomicBool>,
    open: Vec<Opened>,
    /// The number of connections so far.
    count: usize,
}

impl Upstream {
    /// Reads everything, and forgets connections that the proxy has closed.
    fn read(&mut self) {
        let before = self.open.len();
        let opened = self
            .opened
            .lock()
            .expect("no panic")
            .drain(..)
            .map(|stream| Opened {
                stream,
                accept: None,
            })
            .collect::<Vec<_>>();
        self.open.extend(opened);
        self.count += self.open.len() - before;
        self.open.retain_mut(|Opened { stream, accept }| {
            let mut bytes = [0; 1 << 10];
            loop {
                let mut buffer = ReadBuf::new(&mut bytes);
                match Pin::new(&mut *stream).poll_read(&mut context(), &mut buffer) {
                    Poll::Pending => return true,
                    Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {
                        if let Some(answer) = websocket(buffer.filled()) {
                            *accept = Some(answer);
                        }
                    }
                    Poll::Ready(_) => return false,
                }
            }
        });
    }

    /// Sends bytes, as many as there is room for.
    fn send(&mut self, at: usize, bytes: &[u8]) {
        let _ = Pin::new(&mut self.open[at].stream).poll_write(&mut context(), bytes);
    }

    /// Does the next thing that the bytes say.
    fn step(&mut self, is_http2: bool, input: &mut Input<'_>) {
        let what = input.byte();
        if what & 8 != 0 {
            self.read();
        }
        let len = self.open.len();
        if len == 0 {
            return;
        }
        let at = usize::from(what >> 4) % len;
        let bytes = match what & 7 {
            0 => return drop(self.open.swap_remove(at)),
            1 => input.data().to_vec(),
            2 => vec![b'x'; usize::from(input.byte()) * 32],
            3 if what & 8 != 0 => {
                let refuses = self.refuses.load(Ordering::Relaxed);
                return self.refuses.store(!refuses, Ordering::Relaxed);
            }
            4 if self.open[at].accept.is_some() => {
                self.open[at].accept.take().unwrap_or_default().into()
            }
            _ if is_http2 => frame(input),
            _ => RESPONSES[usize::from(input.byte() & 15)].into(),
        };
        self.send(at, &bytes);
    }
}

/// The answer to a request for a WebSocket (RFC 6455 §4.2.2).
fn websocket(bytes: &[u8]) -> Option<String> {
    let text = str::from_utf8(bytes).ok()?;
    let (_, key) = text.split_once("sec-websocket-key: ")?;
    let key = HeaderValue::from_str(key.lines().next()?).ok()?;
    let accept = lastbyte_server::websocket_accept(&key);
    Some(format!(
        "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: {accept}\r\n\r\nhello"
    ))
}

fn context() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

/// A frame of an HTTP/2 upstream (RFC 9113 §6).
fn frame(input: &mut Input<'_>) -> Vec<u8> {
    let how = input.byte();
    let stream = u32::from(how >> 4) * 2 + 1;
    // The status 200, 204, 304, 404 of the static table (RFC 7541, appendix A).
    let status = [0x88, 0x89, 0x8b, 0x8d][usize::from(how >> 4 & 3)];
    let (kind, flags, stream, payload): (u8, u8, u32, Vec<u8>) = match how & 15 {
        0 | 1 => (4, 0, 0, vec![]),
        2 => (4, 1, 0, vec![]),
        3 => (4, 0, 0, vec![0, 3, 0, 0, 0, how >> 6]),
        4 | 5 => (1, 4, stream, vec![status]),
        6 => (1, 5, stream, vec![status]),
        7 | 8 => (0, 0, stream, vec![b'x'; usize::from(input.byte()) * 16]),
        9 => (0, 1, stream, vec![b'x'; 100]),
        10 => (3, 0, stream, vec![0, 0, 0, input.byte() & 15]),
        11 => (7, 0, 0, [stream.to_be_bytes(), [0; 4]].concat()),
        12 => (8, 0, 0, vec![0, 1, 0, 0]),
        13 => (8, 0, stream, vec![0, 0, 1, 0]),
        14 => (6, 0, 0, vec![0; 8]),
        _ => (input.byte(), input.byte(), stream, input.data().to_vec()),
    };
    encode(kind, flags, stream, &payload)
}

fn encode(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// A server with its clients, and an upstream.
struct Scene {
    world: World,
    upstream: Upstream,
    runtime: Runtime,
    counts: UpstreamCounts,
}

impl Scene {
    fn new(is_http2: bool, servers: usize) -> Self {
        let runtime = Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime");
        let upstream = Upstream::default();
        let opened = Arc::clone(&upstream.opened);
        let refuses = Arc::clone(&upstream.refuses);
        let connect = move |server: &Server| {
            let is_first = matches!(server, Server::Tcp { host, .. } if host == "a");
            if is_first && refuses.load(Ordering::Relaxed) {
                return Err(io::ErrorKind::ConnectionRefused.into());
            }
            let (near, far) = duplex(IN_FLIGHT);
            opened.lock().expect("no panic").push(far);
            Ok(near)
        };
        let scheme = if is_http2 { "h2c" } else { "http" };
        let hosts = ["a", "b"].into_iter().take(servers);
        let urls: Vec<String> = hosts.map(|host| format!("{scheme}://{host}")).collect();
        let url = urls.join(",");
        let proxy = {
            let _context = runtime.enter();
            let url = url.parse().expect("a URL");
            Proxy::over(url, LIMITS, runtime.handle().clone(), 0, connect)
        };
        Self {
            counts: proxy.counts(),
            world: World::with(2, |scripted| Arc::new(Counted { proxy, scripted })),
            upstream,
            runtime,
        }
    }

    /// Lets the tasks of the proxy run, after this time, and the server send what they have.
    fn run(&mut self, span: Duration) {
        self.runtime.block_on(async {
            if !span.is_zero() {
                time::advance(span).await;
            }
            for _ in 0..POLLS {
                task::yield_now().await;
            }
        });
        self.world.turn();
    }
}

/// Does what the bytes say.
pub(crate) fn play(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let how = input.byte();
    let is_http2 = how & 1 != 0;
    let mut scene = Scene::new(is_http2, 1 + usize::from(how >> 1 & 1));
    let mut peers = [0, 1].map(Peer::new);
    while !input.is_empty() {
        let Scene {
            world, upstream, ..
        } = &mut scene;
        let before = world.now;
        match input.byte() & 7 {
            which @ 0..=1 => peers[usize::from(which)].step(world, &mut input),
            2..=5 => upstream.step(is_http2, &mut input),
            6 => world.pass(DELAY),
            _ => world.pass(Duration::from_millis(100) * u32::from(input.byte() & 15)),
        }
        let span = world.now.since(before);
        scene.run(span);
        scene.world.check();
        scene.upstream.read();
        // A server may keep connections, beside those in use.
        let kept = LIMITS.kept * (1 + usize::from(how >> 1 & 1));
        let (open, most) = (scene.upstream.open.len(), LIMITS.requests + kept);
        assert!(open <= most, "{open}");
    }
    scene.world.end();
    for _ in 0..20 {
        scene.run(Duration::from_secs(1));
        scene.upstream.read();
    }
    let (open, most) = (
        scene.upstream.open.len(),
        if is_http2 { 0 } else { LIMITS.kept * 2 },
    );
    assert!(open <= most, "{open}");
}

/// What no corpus has yet: bytes by seed.
#[test]
fn hostile_peers_by_seed() {
    for seed in 0..SEEDS {
        let mut random = SplitMix64::stream(51, seed);
        let bytes: Vec<u8> = (0..400)
            .flat_map(|_| random.number().to_le_bytes())
            .collect();
        play(&bytes);
    }
}

/// As of server-sent events: the client has each piece before the upstream sends the next.
#[test]
fn pieces_of_a_response_are_passed_on_at_once_over_http3() {
    let mut scene = Scene::new(false, 1);
    let client = &mut scene.world.clients[0];
    let id = client
        .open(Direction::Bidirectional)
        .expect("a stream is permitted");
    client.write(id, &head("GET", "/events", &[]), true);
    scene.world.pass(2 * DELAY);
    scene.run(Duration::ZERO);
    scene.upstream.read();
    let begins = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
    for number in 0..20 {
        let head = if number == 0 { begins } else { "" };
        let event = format!("data: {number}\n\n");
        scene.upstream.send(0, format!("{head}{event}").as_bytes());
        scene.run(Duration::ZERO);
        // One way, and no more.
        scene.world.pass(DELAY);
        let received = &scene.world.clients[0].received[&id];
        let is_there = received
            .windows(event.len())
            .any(|bytes| bytes == event.as_bytes());
        assert!(is_there, "{number}");
    }
    scene.world.end();
}

#[test]
fn a_kept_connection_that_was_idle_for_too_long_is_not_used_again() {
    let mut scene = Scene::new(false, 1);
    let idle = LIMITS.idle;
    for (pause, connections) in [(Duration::ZERO, 1), (idle / 2, 1), (idle, 2), (idle / 2, 2)] {
        scene.run(pause);
        let client = &mut scene.world.clients[0];
        let id = client.open(Direction::Bidirectional);
        let id = id.expect("a stream is permitted");
        client.write(id, &head("GET", "/", &[]), true);
        scene.world.pass(2 * DELAY);
        scene.run(Duration::ZERO);
        scene.upstream.read();
        assert_eq!(scene.upstream.count, connections, "after {pause:?}");
        assert_eq!(scene.upstream.open.len(), 1);
        scene.upstream.send(0, RESPONSES[0].as_bytes());
        scene.run(Duration::ZERO);
        scene.world.pass(2 * DELAY);
    }
    scene.world.end();
}

/// An upload may take longer than the limit for a response, and no pause longer than that for a body.
#[test]
fn an_upload_that_makes_progress_is_no_stall() {
    for (pauses, status) in [([1; 8], 204), ([3; 8], 408)] {
        let mut scene = Scene::new(false, 1);
        let client = &mut scene.world.clients[0];
        let id = client.open(Direction::Bidirectional);
        let id = id.expect("a stream is permitted");
        client.write(id, &head("POST", "/", &[]), false);
        for pause in pauses {
            let client = &mut scene.world.clients[0];
            client.write(id, &http3_frame(0, &[b'x'; 1000]), false);
            scene.world.pass(2 * DELAY);
            scene.run(Duration::ZERO);
            scene.upstream.read();
            scene.run(Duration::from_secs(pause));
        }
        let client = &mut scene.world.clients[0];
        client.write(id, &http3_frame(0, b"last"), true);
        scene.world.pass(2 * DELAY);
        scene.run(Duration::ZERO);
        scene.upstream.read();
        if !scene.upstream.open.is_empty() {
            scene.upstream.send(0, RESPONSES[5].as_bytes());
        }
        scene.run(Duration::ZERO);
        scene.world.pass(10 * DELAY);
        let line = format!("\"status\":{status}");
        let logged = &scene.world.logged;
        assert!(logged.iter().any(|it| it.contains(&line)), "{logged:?}");
        scene.world.end();
    }
}

/// Sends a request to the proxy, which passes it on.
#[cfg(test)]
fn get(scene: &mut Scene) {
    let client = &mut scene.world.clients[0];
    let id = client.open(Direction::Bidirectional);
    client.write(
        id.expect("a stream is permitted"),
        &head("GET", "/", &[]),
        true,
    );
    scene.world.pass(2 * DELAY);
    scene.run(Duration::ZERO);
    scene.upstream.read();
}

/// An upstream of HTTP/2 that permits one stream a connection, and then responds to all requests.
#[test]
fn unused_http2_connections_are_kept_up_to_the_limit_and_then_closed() {
    let mut scene = Scene::new(true, 1);
    for count in 1..=LIMITS.requests {
        get(&mut scene);
        assert_eq!(scene.upstream.count, count);
        // SETTINGS_MAX_CONCURRENT_STREAMS
        let settings = encode(4, 0, 0, &[0, 3, 0, 0, 0, 1]);
        scene.upstream.send(count - 1, &settings);
        scene.run(Duration::ZERO);
    }
    for at in 0..LIMITS.requests {
        // The status 200, and the end of the stream.
        scene.upstream.send(at, &encode(1, 5, 1, &[0x88]));
    }
    scene.run(Duration::ZERO);
    scene.upstream.read();
    assert_eq!(scene.upstream.open.len(), LIMITS.kept);
    // They serve the next requests.
    get(&mut scene);
    assert_eq!(scene.upstream.count, LIMITS.requests);
    scene.world.end();
    for _ in 0..20 {
        scene.run(Duration::from_secs(1));
        scene.upstream.read();
    }
    assert_eq!(scene.upstream.open.len(), 0);
}

/// Its connection is not one of those that others use, and may have filled, at the next attempt.
#[test]
fn a_request_that_is_refused_four_times_has_a_connection_of_its_own() {
    let mut scene = Scene::new(true, 1);
    get(&mut scene);
    for attempt in 1..=4 {
        assert_eq!(scene.upstream.count, attempt);
        let newest = scene.upstream.open.len() - 1;
        scene.upstream.send(newest, &encode(4, 0, 0, &[]));
        // REFUSED_STREAM
        let reset = encode(3, 0, 1, &[0, 0, 0, 7]);
        scene.upstream.send(newest, &reset);
        scene.run(Duration::ZERO);
        scene.upstream.read();
    }
    assert_eq!(scene.upstream.count, 5);
    get(&mut scene);
    assert_eq!(scene.upstream.count, 6);
    scene.world.end();
}

/// They would take the place of those that serve requests.
#[test]
fn connections_that_end_with_their_response_are_not_kept() {
    let mut scene = Scene::new(false, 1);
    for _ in 0..=LIMITS.kept {
        get(&mut scene);
    }
    for at in 0..LIMITS.kept {
        let response = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok";
        scene.upstream.send(at, response.as_bytes());
    }
    scene.run(Duration::ZERO);
    scene.upstream.send(LIMITS.kept, RESPONSES[0].as_bytes());
    scene.run(Duration::ZERO);
    scene.world.pass(2 * DELAY);
    assert_eq!(logged(&scene, 200), LIMITS.kept + 1, "whole responses");
    get(&mut scene);
    assert_eq!(scene.upstream.count, LIMITS.kept + 1);
    scene.world.end();
}

/// The number of lines with this status.
#[cfg(test)]
fn logged(scene: &Scene, status: u16) -> usize {
    let line = format!("\"status\":{status}");
    let logged = scene.world.logged.iter();
    logged.filter(|it| it.contains(&line)).count()
}

/// After a response to a request whose body does not end, its connection is waited for, and does not become free.
#[test]
fn connections_whose_request_does_not_end_are_not_kept() {
    let mut scene = Scene::new(false, 1);
    for _ in 0..LIMITS.kept {
        let client = &mut scene.world.clients[0];
        let id = client.open(Direction::Bidirectional);
        let id = id.expect("a stream is permitted");
        client.write(id, &head("POST", "/", &[]), false);
        client.write(id, &http3_frame(0, &[b'x'; 10_000]), false);
        scene.world.pass(2 * DELAY);
        scene.run(Duration::ZERO);
        scene.upstream.read();
    }
    assert_eq!(scene.upstream.open.len(), LIMITS.kept);
    get(&mut scene);
    for at in 0..LIMITS.kept {
        scene.upstream.send(at, RESPONSES[0].as_bytes());
    }
    scene.run(Duration::ZERO);
    scene.world.pass(20 * DELAY);
    assert_eq!(logged(&scene, 200), LIMITS.kept, "{:?}", scene.world.logged);
    scene.upstream.read();
    let newest = scene.upstream.open.len() - 1;
    scene.upstream.send(newest, RESPONSES[0].as_bytes());
    scene.run(Duration::ZERO);
    scene.world.pass(2 * DELAY);
    assert_eq!(scene.upstream.count, LIMITS.kept + 1);
    get(&mut scene);
    assert_eq!(scene.upstream.count, LIMITS.kept + 1);
    scene.world.end();
}

/// An upstream of HTTP/2, and its answer to a request: a header, which ends the stream or not.
#[cfg(test)]
fn answer_over_http2(scene: &mut Scene, stream: u32, ends: bool) {
    let flags = 4 | u8::from(ends);
    // To a PING of hyper, which h2 ignores if there was none.
    let pong = [0x3b, 0x7c, 0xdb, 0x7a, 0x0b, 0x87, 0x16, 0xb4];
    scene.upstream.send(0, &encode(6, 1, 0, &pong));
    scene.upstream.send(0, &encode(1, flags, stream, &[0x88]));
    scene.run(Duration::ZERO);
    scene.world.pass(2 * DELAY);
}

#[test]
fn a_closed_http2_connection_is_not_tried() {
    let mut scene = Scene::new(true, 1);
    get(&mut scene);
    scene.upstream.send(0, &encode(4, 0, 0, &[]));
    answer_over_http2(&mut scene, 1, true);
    scene.upstream.open.clear();
    scene.run(Duration::ZERO);
    get(&mut scene);
    assert_eq!(scene.upstream.count, 2);
    assert_eq!(scene.counts.read().retries, 0);
    scene.world.end();
}

/// Of two connections with a stream each, the first one serves a request from time to time.
#[test]
fn an_http2_connection_that_is_used_stays_and_an_unused_one_is_closed() {
    let mut scene = Scene::new(true, 1);
    let settings = encode(4, 0, 0, &[0, 3, 0, 0, 0, 1]);
    for count in 1..=2 {
        get(&mut scene);
        assert_eq!(scene.upstream.count, count);
        scene.upstream.send(count - 1, &settings);
        scene.run(Duration::ZERO);
    }
    scene.upstream.send(1, &encode(1, 5, 1, &[0x88]));
    answer_over_http2(&mut scene, 1, true);
    for request in 1..=6 {
        scene.run(LIMITS.idle * 3 / 4);
        get(&mut scene);
        assert_eq!(scene.upstream.count, 2, "request {request}");
        answer_over_http2(&mut scene, 2 * request + 1, true);
    }
    scene.upstream.read();
    assert_eq!(scene.upstream.open.len(), 1);
    scene.world.end();
}

/// A response without an end, such as server-sent events, for longer than a connection may be unused.
#[test]
fn an_http2_connection_with_a_long_response_takes_further_requests() {
    let mut scene = Scene::new(true, 1);
    get(&mut scene);
    scene.upstream.send(0, &encode(4, 0, 0, &[]));
    answer_over_http2(&mut scene, 1, false);
    for _ in 0..4 * LIMITS.idle.as_secs() {
        scene.upstream.send(0, &encode(0, 0, 1, b"x"));
        scene.run(Duration::from_secs(1));
        scene.world.pass(2 * DELAY);
        scene.upstream.read();
    }
    get(&mut scene);
    assert_eq!(scene.upstream.count, 1);
    scene.world.end();
}
