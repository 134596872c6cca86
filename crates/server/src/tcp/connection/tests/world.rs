//! Good and hostile clients over HTTP/1.1 and 2, the reverse proxy, and a hostile upstream, in memory and in virtual time, all
//! from a seed.
//!
//! Each request of a good client ends, with its whole response unless the upstream or a shutdown is the reason; each request has
//! one line in the access log. When the clients and the upstream do nothing any more, all connections end, on both sides, and
//! nothing stays buffered.

use std::{cell::Cell, collections::VecDeque, io};

use lastbyte_units::SplitMix64;

use super::*;
use crate::{
    access::{AccessLog, Format},
    log,
    proxy::{self, Proxy},
};

/// Runs by seed. 10 000 were run once.
const SEEDS: u64 = 200;
/// What is done in a run.
const STEPS: u64 = 60;
const LIMITS: Limits = Limits {
    connections: 100,
    connections_per_prefix: 100,
    handshake: Duration::from_secs(2),
    head: Duration::from_secs(2),
    idle: Duration::from_secs(4),
    stall: Duration::from_secs(2),
    stall_bytes: 1000,
    head_size: 4 << 10,
    streams: 8,
    upload_window: 1 << 20,
};
const PROXY: proxy::Limits = proxy::Limits {
    connect: Duration::from_secs(1),
    response: Duration::from_secs(2),
    stall: Duration::from_secs(2),
    idle: Duration::from_secs(4),
    kept: 4,
    requests: 8,
    streams: 4,
    server_requests: 6,
    slow_start: Duration::ZERO,
};
/// The longest time until a request has ended whose upstream does nothing: its wait for a place, its response, and a stalled body.
const LONGEST: Duration = Duration::from_secs(8);
/// The longest time until all connections have ended whose peers do nothing.
const END: Duration = Duration::from_secs(30);
/// Bytes of `/large`.
const LARGE: usize = 200_000;
/// Bytes of an upload.
const UPLOAD: usize = 20_000;

/// Random choices.
struct Random(SplitMix64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        (self.0.number() % end as u64) as usize
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    fn bytes(&mut self, most: usize) -> Vec<u8> {
        (0..self.below(most))
            .map(|_| self.0.number() as u8)
            .collect()
    }
}

/// Static responses, and the proxy below `/up`. Counts requests.
struct Site {
    proxy: Proxy,
    requests: Arc<Mutex<u64>>,
}

impl Handler for Site {
    fn handle(&self, request: &Request, peer: &Peer) -> HandlerResponse {
        *self.requests.lock().expect("no panic") += 1;
        match request.path().unwrap_or_default() {
            "/large" => FullResponse::source(200, "text/plain", Box::new(vec![b'x'; LARGE])).into(),
            path if path.starts_with("/up") => self.proxy.handle(request, peer),
            _ => FullResponse::text(200, "now").into(),
        }
    }

    fn takes_tunnel(&self, request: &Request) -> bool {
        self.proxy.takes_tunnel(request)
    }
}

/// Bytes that the socket has room for, without waiting.
async fn write_now(stream: &mut (impl AsyncWrite + Unpin), bytes: &mut VecDeque<u8>) {
    while !bytes.is_empty() {
        let (first, _) = bytes.as_slices();
        let written =
            poll_fn(|context| Poll::Ready(Pin::new(&mut *stream).poll_write(context, first)));
        match written.await {
            Poll::Ready(Ok(len)) if len > 0 => drop(bytes.drain(..len)),
            Poll::Ready(_) => return bytes.clear(),
            Poll::Pending => break,
        }
    }
    let _ = poll_fn(|context| Poll::Ready(Pin::new(&mut *stream).poll_flush(context))).await;
}

/// The bytes that are there, without waiting; `None` at the end.
async fn read_now(stream: &mut (impl AsyncRead + Unpin)) -> Option<Vec<u8>> {
    let mut received = Vec::new();
    loop {
        let mut bytes = [0; 4 << 10];
        let mut buffer = ReadBuf::new(&mut bytes);
        let read =
            poll_fn(|context| Poll::Ready(Pin::new(&mut *stream).poll_read(context, &mut buffer)));
        match read.await {
            Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {
                received.extend_from_slice(buffer.filled());
            }
            Poll::Ready(_) if received.is_empty() => return None,
            _ => return Some(received),
        }
    }
}

/// A connection to the upstream, from its other end.
struct Opened {
    stream: DuplexStream,
    /// Whether it reads nothing any more.
    reads_nothing: bool,
    unsent: VecDeque<u8>,
    /// The answer to the last WebSocket that it was asked for.
    accept: Option<String>,
}

/// The other ends of the connections to the upstream.
struct Upstream {
    is_http2: bool,
    new: Arc<Mutex<Vec<DuplexStream>>>,
    open: Vec<Opened>,
}

/// What an upstream sends over HTTP/1.1: the first ones are right.
const RESPONSES: [&str; 16] = [
    "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    "HTTP/1.1 204 No Content\r\n\r\n",
    "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n",
    "HTTP/1.1 100 Continue\r\n\r\n",
    "HTTP/1.1 200 OK\r\ncontent-length: 200\r\n\r\nhalf",
    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n",
    "5\r\nhello\r\n",
    "0\r\n\r\n",
    "HTTP/1.1 200 OK\r\n\r\nuntil the close",
    "HTTP/1.1 500 Internal Server Error\r\nconnection: close\r\n\r\n",
    "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\nhello",
    "HTTP/1.1 413 Content Too Large\r\ncontent-length: 0\r\n\r\n",
    "HTTP/1.1 200 OK\r\ncontent-length: 3\r\ncontent-length: 4\r\n\r\n",
    "what?\r\n\r\n",
    "HTTP/1.1 ",
];

impl Upstream {
    async fn step(&mut self, random: &mut Random) {
        self.accept();
        if self.open.is_empty() {
            return;
        }
        let at = random.below(self.open.len());
        let Opened {
            stream,
            reads_nothing,
            unsent,
            accept,
        } = &mut self.open[at];
        if !*reads_nothing && random.below(4) > 0 {
            match read_now(stream).await {
                Some(bytes) => *accept = websocket_accepted(&bytes).or(accept.take()),
                None => return drop(self.open.swap_remove(at)),
            }
        }
        match random.below(12) {
            0 => return drop(self.open.swap_remove(at)),
            1 => *reads_nothing = true,
            2 => unsent.extend(random.bytes(100)),
            3 => unsent.extend([b'x'; 4000]),
            _ if self.is_http2 => unsent.extend(upstream_frames(random)),
            4..=8 if accept.is_some() => unsent.extend(accept.take().unwrap_or_default().bytes()),
            4..=8 => unsent.extend(RESPONSES[random.below(3)].bytes()),
            _ => unsent.extend(random.one(&RESPONSES).bytes()),
        }
        write_now(stream, unsent).await;
    }

    fn accept(&mut self) {
        let new = self.new.lock().expect("no panic").split_off(0);
        self.open.extend(new.into_iter().map(|stream| Opened {
            stream,
            reads_nothing: false,
            unsent: VecDeque::new(),
            accept: None,
        }));
    }

    /// The connections that the proxy has not closed.
    async fn left(&mut self) -> usize {
        self.accept();
        let mut left = 0;
        for Opened { stream, .. } in &mut self.open {
            while let Some(bytes) = read_now(stream).await {
                if bytes.is_empty() {
                    left += 1;
                    break;
                }
            }
        }
        left
    }
}

/// The answer to a request for a WebSocket (RFC 6455 §4.2.2).
fn websocket_accepted(bytes: &[u8]) -> Option<String> {
    let text = str::from_utf8(bytes).ok()?;
    let (_, key) = text.split_once("sec-websocket-key: ")?;
    let key = key.lines().next()?.parse().ok()?;
    let accept = crate::websocket_accept(&key);
    Some(format!(
        "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: {accept}\r\n\r\nhello"
    ))
}

/// Frames of an HTTP/2 upstream (RFC 9113 §6).
fn upstream_frames(random: &mut Random) -> Vec<u8> {
    let stream = random.below(4) as u32 * 2 + 1;
    // The status 200 or 404 of the static table (RFC 7541, appendix A).
    let status = random.one(&[0x88, 0x8d]);
    match random.below(10) {
        0 | 1 => frame(4, 0, 0, &[]),
        2 => frame(4, 1, 0, &[]),
        3 => frame(1, 5, stream, &[status]),
        4 | 5 => [
            frame(1, 4, stream, &[status]),
            frame(0, 1, stream, &[b'x'; 100]),
        ]
        .concat(),
        6 => frame(1, 4, stream, &[status]),
        7 => frame(0, 0, stream, &[b'x'; 1000]),
        8 => frame(3, 0, stream, &[0, 0, 0, random.below(14) as u8]),
        _ => frame(7, 0, 0, &[0, 0, 0, stream as u8, 0, 0, 0, 0]),
    }
}

/// A request of a good client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asks {
    Small,
    Large,
    Proxied,
    Upload,
}

impl Asks {
    const ALL: [Self; 4] = [Self::Small, Self::Large, Self::Proxied, Self::Upload];

    const fn path(self) -> &'static str {
        match self {
            Self::Small => "/small",
            Self::Large => "/large",
            Self::Proxied => "/up/a",
            Self::Upload => "/up/b",
        }
    }

    /// The bytes of its response, if they are known.
    const fn len(self) -> Option<usize> {
        match self {
            Self::Small => Some(3),
            Self::Large => Some(LARGE),
            Self::Proxied | Self::Upload => None,
        }
    }

    fn http1(self) -> Vec<u8> {
        let path = self.path();
        if self == Self::Upload {
            let head =
                format!("POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {UPLOAD}\r\n\r\n");
            return [head.as_bytes(), &vec![b'y'; UPLOAD]].concat();
        }
        format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").into()
    }

    fn http2(self, stream: u32) -> Vec<u8> {
        if self == Self::Upload {
            let half = [b'y'; UPLOAD / 2];
            return [
                post(stream, self.path()),
                frame(0, 0, stream, &half),
                frame(0, 1, stream, &half),
            ]
            .concat();
        }
        get(stream, self.path())
    }
}

/// The head of a `POST`.
fn post(stream: u32, path: &str) -> Vec<u8> {
    let mut block = vec![0x83, 0x87, 0x01, 1, b'x', 0x04, path.len() as u8];
    block.extend(path.as_bytes());
    frame(HEADERS, 0x4, stream, &block)
}

/// What has ended a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    /// A whole response of this length.
    Whole(usize),
    CutOff,
}

/// A client that keeps to HTTP, and reads what there is.
struct Good {
    client: Client,
    is_http2: bool,
    is_open: bool,
    unsent: VecDeque<u8>,
    received: VecDeque<u8>,
    asked: u32,
    waiting: Option<Asks>,
    /// Bytes of the body so far, over HTTP/2.
    len: usize,
}

impl Good {
    fn new(client: Client, is_http2: bool) -> Self {
        Self {
            client,
            is_http2,
            is_open: true,
            unsent: if is_http2 { preface() } else { Vec::new() }.into(),
            received: VecDeque::new(),
            asked: 0,
            waiting: None,
            len: 0,
        }
    }

    fn ask(&mut self, random: &mut Random) {
        if self.waiting.is_some() || !self.is_open || self.asked == 4 {
            return;
        }
        let asks = random.one(&Asks::ALL);
        let stream = self.asked * 2 + 1;
        self.unsent.extend(if self.is_http2 {
            asks.http2(stream)
        } else {
            asks.http1()
        });
        self.asked += 1;
        self.len = 0;
        self.waiting = Some(asks);
    }

    /// Sends and reads until nothing happens any more. `is_shutdown`: a request may end without a response.
    async fn pump(&mut self, is_shutdown: bool) {
        while self.is_open {
            write_now(&mut self.client.stream, &mut self.unsent).await;
            settle().await;
            match read_now(&mut self.client.stream).await {
                Some(bytes) if bytes.is_empty() => break,
                Some(bytes) => self.received.extend(bytes),
                None => self.is_open = false,
            }
            let ended = if self.is_http2 {
                self.take_frames()
            } else {
                self.take_response()
            };
            let ended = match ended {
                None if !self.is_open && self.waiting.is_some() => Some(Ended::CutOff),
                ended => ended,
            };
            if let Some(ended) = ended {
                let asked = self.waiting.take().expect("a request that has not ended");
                let is_right = match (ended, asked.len()) {
                    (Ended::Whole(len), Some(expected)) => len == expected,
                    (Ended::Whole(_), None) => true,
                    (Ended::CutOff, expected) => expected.is_none() || is_shutdown,
                };
                assert!(is_right, "{asked:?} {ended:?} of {self:?}");
            }
        }
    }

    /// The end of the response, over HTTP/1.1.
    fn take_response(&mut self) -> Option<Ended> {
        self.received.make_contiguous();
        let (bytes, _) = self.received.as_slices();
        let head = bytes.windows(4).position(|it| it == b"\r\n\r\n")? + 4;
        let text = str::from_utf8(&bytes[..head]).expect("text");
        let status = text.get(9..12).expect("a status");
        if status.starts_with('1') {
            self.received.drain(..head);
            return self.take_response();
        }
        let field = |name: &str| {
            let mut lines = text.lines();
            lines.find_map(|line| Some(line.strip_prefix(name)?.trim()))
        };
        let body = &bytes[head..];
        let is_chunked = field("transfer-encoding:").is_some();
        let len = field("content-length:").map(|len| len.parse().expect("a length"));
        let (whole, len) = match len {
            Some(len) => (body.len() >= len, len),
            None if is_chunked => {
                let is_whole = body.ends_with(b"0\r\n\r\n");
                (is_whole, body.len())
            }
            None if status == "204" => (true, 0),
            // Until the close.
            None => (!self.is_open, body.len()),
        };
        whole.then(|| {
            self.received.drain(..head + len);
            Ended::Whole(len)
        })
    }

    /// The end of the response, over HTTP/2.
    fn take_frames(&mut self) -> Option<Ended> {
        let mut ended = None;
        loop {
            self.received.make_contiguous();
            let (bytes, _) = self.received.as_slices();
            let [a, b, c, kind, flags, s @ ..] = bytes else {
                return ended;
            };
            let len = u32::from_be_bytes([0, *a, *b, *c]) as usize;
            let Some(payload) = s.get(4..4 + len) else {
                return ended;
            };
            let stream = u32::from_be_bytes([s[0], s[1], s[2], s[3]]);
            let is_ours = self.waiting.is_some() && stream + 1 == self.asked * 2;
            match (kind, flags & 1) {
                (4, 0) => self.unsent.extend(frame(4, 1, 0, &[])),
                (6, 0) => self.unsent.extend(frame(6, 1, 0, payload)),
                (0, _) if len > 0 => {
                    let more = (len as u32).to_be_bytes();
                    self.unsent.extend(frame(8, 0, 0, &more));
                    self.unsent.extend(frame(8, 0, stream, &more));
                    self.len += if is_ours { len } else { 0 };
                }
                _ => {}
            }
            if is_ours && (*kind <= 1 && flags & 1 != 0 || *kind == 3) {
                ended = Some(if *kind == 3 {
                    Ended::CutOff
                } else {
                    Ended::Whole(self.len)
                });
            }
            self.received.drain(..9 + len);
        }
    }
}

impl std::fmt::Debug for Good {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Good")
            .field("is_http2", &self.is_http2)
            .field("is_open", &self.is_open)
            .field("asked", &self.asked)
            .field("received", &self.received.len())
            .finish_non_exhaustive()
    }
}

/// A client that does anything.
struct Hostile {
    /// `None`: it has left.
    client: Option<Client>,
    is_http2: bool,
    unsent: VecDeque<u8>,
    reads_nothing: bool,
    streams: u32,
}

impl Hostile {
    fn new(client: Client, is_http2: bool) -> Self {
        Self {
            client: Some(client),
            is_http2,
            unsent: if is_http2 { preface() } else { Vec::new() }.into(),
            reads_nothing: false,
            streams: 0,
        }
    }

    async fn step(&mut self, random: &mut Random) {
        let Some(client) = &mut self.client else {
            return;
        };
        match random.below(40) {
            0 => {
                let Client { stream, .. } = self.client.take().expect("a client");
                return drop(stream);
            }
            1 => self.reads_nothing = true,
            2 => {
                let stream = &mut client.stream;
                let _ =
                    poll_fn(|context| Poll::Ready(Pin::new(&mut *stream).poll_shutdown(context)))
                        .await;
            }
            _ if self.is_http2 => {
                let frames = hostile_frames(random, &mut self.streams);
                self.unsent.extend(frames);
            }
            _ => self.unsent.extend(hostile_text(random)),
        }
        write_now(&mut client.stream, &mut self.unsent).await;
        if !self.reads_nothing
            && random.below(2) == 0
            && read_now(&mut client.stream).await.is_none()
        {
            self.client = None;
        }
    }
}

fn hostile_text(random: &mut Random) -> Vec<u8> {
    let path = random.one(&["/small", "/large", "/up/c", "/up/d"]);
    let host = "HTTP/1.1\r\nhost: x\r\n";
    let text = match random.below(24) {
        0 => return random.bytes(200),
        1 => return vec![b'z'; random.below(5000)],
        2 => format!("GET {path} HTTP/1.1\r\nho"),
        3 => format!("POST {path} {host}content-length: 100000\r\n\r\nzzzz"),
        4 => format!("POST {path} {host}transfer-encoding: chunked\r\n\r\n4\r\nzzzz\r\n"),
        5 => format!("POST {path} {host}expect: 100-continue\r\ncontent-length: 9\r\n\r\n"),
        6..12 => format!(
            "GET /up/e {host}connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
             sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\nhello"
        ),
        12 => "4\r\nzzzz\r\n".into(),
        13 => "0\r\n\r\n".into(),
        14 => format!("HEAD {path} {host}\r\n").repeat(3),
        _ => format!("GET {path} {host}\r\n").repeat(1 + random.below(4)),
    };
    text.into()
}

fn hostile_frames(random: &mut Random, streams: &mut u32) -> Vec<u8> {
    let path = random.one(&["/small", "/large", "/up/c", "/up/d"]);
    let new = |streams: &mut u32| {
        *streams += 1;
        *streams * 2 - 1
    };
    let old = (random.below(*streams as usize + 1) as u32 * 2).max(1) - 1 + 2 * (*streams & 1);
    match random.below(16) {
        0 => random.bytes(100),
        1 => frame(4, 0, 0, &[0, 4, 0, 0, 0, random.below(200) as u8]),
        2 => frame(8, 0, old, &[0, 0, 8, 0]),
        3 => frame(8, 0, 0, &[0, 1, 0, 0]),
        4 => frame(3, 0, old, &[0, 0, 0, 8]),
        5 => frame(
            0,
            random.below(2) as u8,
            old,
            &vec![b'z'; random.below(16_000)],
        ),
        6 => frame(6, 0, 0, &[0; 8]),
        7 => frame(7, 0, 0, &[0; 8]),
        8 => frame(2, 0, old, &[0, 0, 0, 0, 1]),
        9 => {
            let stream = new(streams);
            let hello = frame(0, 0, stream, b"hello");
            [websocket(stream, "/up/e"), hello].concat()
        }
        10 | 11 => post(new(streams), path),
        12 => {
            let mut all = Vec::new();
            for _ in 0..10 {
                let stream = new(streams);
                all.extend(get(stream, path));
                all.extend(frame(3, 0, stream, &[0, 0, 0, 8]));
            }
            all
        }
        _ => get(new(streams), path),
    }
}

/// All of it.
struct World {
    server: Server,
    budget: Budget,
    windows: WindowBudget,
    upstream: Upstream,
    good: Vec<Good>,
    hostile: Vec<Hostile>,
    requests: Arc<Mutex<u64>>,
    lines: log::LogQueue,
    is_shutdown: bool,
}

impl World {
    async fn new(random: &mut Random) -> Self {
        let is_http2 = random.below(3) == 0;
        let new = Arc::<Mutex<Vec<DuplexStream>>>::default();
        let opened = Arc::clone(&new);
        let room = random.one(&[200, 2000, 16 << 10]);
        let connect = move |_: &proxy::upstream::Server| -> io::Result<DuplexStream> {
            let (near, far) = duplex(room);
            opened.lock().expect("no panic").push(far);
            Ok(near)
        };
        let url = if is_http2 { "h2c://a" } else { "http://a" };
        let url = url.parse().expect("a URL");
        let runtime = runtime::Handle::current();
        let proxy = Proxy::over(url, PROXY, runtime, random.0.number(), connect);
        let requests = Arc::<Mutex<u64>>::default();
        let site = Site {
            proxy,
            requests: Arc::clone(&requests),
        };
        let (writer, lines) = log::queue();
        let access = AccessLog::new(writer, Format::Ndjson);
        let server = Server::with(LIMITS, Arc::new(site), Some(access));
        let mut world = Self {
            budget: server.shared.budget.clone(),
            windows: server.shared.window_budget.clone(),
            server,
            upstream: Upstream {
                is_http2,
                new,
                open: Vec::new(),
            },
            good: Vec::new(),
            hostile: Vec::new(),
            requests,
            lines,
            is_shutdown: false,
        };
        for _ in 0..2 {
            let is_http2 = random.below(2) == 0;
            let client = world.connect(is_http2, random).await;
            world.good.push(Good::new(client, is_http2));
            let is_http2 = random.below(2) == 0;
            let client = world.connect(is_http2, random).await;
            world.hostile.push(Hostile::new(client, is_http2));
        }
        world
    }

    async fn connect(&self, is_http2: bool, random: &mut Random) -> Client {
        // A handshake fits.
        let room = random.one(&[3000, 16 << 10, 256 << 10]);
        self.server
            .connect_within(is_http2, room, LIMITS.stall)
            .await
    }

    async fn step(&mut self, random: &mut Random) {
        match random.below(16) {
            0..4 => {
                let at = random.below(self.good.len());
                self.good[at].ask(random);
            }
            4..9 => {
                let at = random.below(self.hostile.len());
                self.hostile[at].step(random).await;
            }
            9..14 => self.upstream.step(random).await,
            _ => pass(TENTH * random.below(8) as u32).await,
        }
        if random.below(200) == 0 {
            self.is_shutdown = true;
            self.server.shut_down();
        }
        settle().await;
        self.pump().await;
    }

    async fn pump(&mut self) {
        for good in &mut self.good {
            good.pump(self.is_shutdown).await;
        }
    }

    /// Only the good clients go on; then none does.
    async fn end(mut self) {
        for _ in 0..LONGEST.as_millis() / TENTH.as_millis() {
            pass(TENTH).await;
            self.pump().await;
        }
        for good in &self.good {
            assert_eq!(good.waiting, None, "a request has not ended: {good:?}");
        }
        self.server.shut_down();
        pass(END).await;
        let good = self.good.iter().map(|it| &it.client);
        let hostile = self.hostile.iter().filter_map(|it| it.client.as_ref());
        for client in good.chain(hostile) {
            assert!(client.serving.is_finished(), "a connection has not ended");
        }
        assert_eq!(self.upstream.left().await, 0, "connections to the upstream");
        assert_eq!(self.budget.used(), 0, "bytes of bodies");
        assert_eq!(self.windows.used(), 0, "windows");
        let requests = *self.requests.lock().expect("no panic");
        let lines = std::iter::from_fn(|| self.lines.try_next()).count();
        assert_eq!(lines as u64, requests, "lines of the access log");
    }
}

/// RFC 9112 §9.5: it does not wait for the end of the request, and reads nothing more of it.
#[test]
fn the_response_of_an_upstream_that_closes_before_it_has_the_whole_upload_is_passed_on() {
    let passed_on = Cell::new(0);
    for seed in 0..40 {
        run(async {
            let mut random = Random(SplitMix64::stream(53, seed));
            let mut world = World::new(&mut random).await;
            if world.upstream.is_http2 {
                return;
            }
            let good = &mut world.good[0];
            good.unsent.extend(if good.is_http2 {
                Asks::Upload.http2(1)
            } else {
                Asks::Upload.http1()
            });
            good.asked = 1;
            good.waiting = Some(Asks::Upload);
            for _ in 0..random.below(4) {
                write_now(&mut good.client.stream, &mut good.unsent).await;
                settle().await;
            }
            world.upstream.accept();
            if let Some(mut opened) = world.upstream.open.pop() {
                read_now(&mut opened.stream).await;
                let response = "HTTP/1.1 413 Content Too Large\r\ncontent-length: 3\r\n\r\nbig";
                opened.unsent.extend(response.bytes());
                write_now(&mut opened.stream, &mut opened.unsent).await;
                drop(opened);
                settle().await;
                world.good[0].pump(false).await;
                assert_eq!(world.good[0].waiting, None, "seed {seed}");
                let counts = world.server.shared.counts.read();
                assert_eq!(counts.responses[4], 1, "seed {seed}: {counts:?}");
                passed_on.set(passed_on.get() + 1);
            }
        });
    }
    assert!(passed_on.get() >= 10, "{passed_on:?}");
}

#[test]
fn good_requests_end_rightly_and_nothing_is_kept_among_hostile_peers_over_tcp() {
    for seed in 0..SEEDS {
        let whole = || {
            run(async {
                let mut random = Random(SplitMix64::stream(52, seed));
                let mut world = World::new(&mut random).await;
                for _ in 0..STEPS {
                    world.step(&mut random).await;
                }
                world.end().await;
            });
        };
        let outcome = std::panic::catch_unwind(whole);
        assert!(outcome.is_ok(), "seed {seed}, for the reason above");
    }
}
