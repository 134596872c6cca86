//! An upstream of several servers: which of them are asked, which are out, and what a client sees of that. In memory and in
//! virtual time.

use std::{
    fs,
    future::poll_fn,
    io::{self, Read as _, Write as _},
    os::unix::net::UnixListener,
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use lastbyte_http3::{Request, Response};
use lastbyte_server::{
    Handler, HandlerResponse, Peer, Version,
    budget::{self, Budget},
    exchange::{Channels, Piece, ResponsePart, exchange},
    proxy::{Checks, Limits, Proxy, Server, Upstream, UpstreamStatistics},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex},
    runtime::{Builder, Handle, Runtime},
    sync::Barrier,
    time::{self, Instant},
};

use crate::{proxy::front_of, serving::Folder};

/// The path of checks.
pub(crate) const CHECK: &str = "/healthz";

/// What a server does.
#[derive(Clone, Default)]
pub(crate) enum Conduct {
    #[default]
    Answers,
    /// As `Answers`, once as many requests are there as wait for each other.
    Together(Arc<Barrier>),
    /// Answers 502 itself.
    Fails,
    /// Accepts no connection, and closes the others instead of answering.
    Refuses,
    /// Accepts connections and answers nothing.
    IsSilent,
    /// Closes connections instead of answering.
    Closes,
    /// As `Closes`, and answers checks.
    LooksWell,
    /// As `Answers`, and answers checks with 503.
    LooksIll,
    /// As `Answers`, and answers checks with a body without end.
    Floods,
}

/// A server, and what it has seen.
#[derive(Default)]
pub(crate) struct Behind {
    conduct: Conduct,
    /// Connections that it was asked for, and those that are open.
    pub(crate) connects: usize,
    pub(crate) open: usize,
    pub(crate) requests: usize,
    pub(crate) checks: usize,
}

type Servers = Arc<Mutex<Vec<Behind>>>;

/// Answers requests on a connection, until its end.
async fn serve(servers: Servers, index: usize, mut stream: DuplexStream) {
    let mut head = Vec::new();
    while let Ok(byte) = stream.read_u8().await {
        head.push(byte);
        if !head.ends_with(b"\r\n\r\n") {
            continue;
        }
        let is_check = head.starts_with(format!("GET {CHECK} ").as_bytes());
        head.clear();
        let conduct = {
            let server = &mut servers.lock().expect("no panic")[index];
            *if is_check {
                &mut server.checks
            } else {
                &mut server.requests
            } += 1;
            server.conduct.clone()
        };
        let answer: &[u8] = match conduct {
            Conduct::Together(barrier) => {
                barrier.wait().await;
                b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
            }
            Conduct::Floods if is_check => {
                let begun = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
                let mut flood = begun.is_ok();
                while flood {
                    flood = stream.write_all(&[b'x'; 1 << 10]).await.is_ok();
                }
                break;
            }
            Conduct::LooksIll if is_check => {
                b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n"
            }
            Conduct::LooksWell if !is_check => break,
            Conduct::Answers | Conduct::LooksWell | Conduct::LooksIll | Conduct::Floods => {
                b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
            }
            Conduct::Fails => b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n",
            Conduct::IsSilent => continue,
            Conduct::Closes | Conduct::Refuses => break,
        };
        if stream.write_all(answer).await.is_err() {
            break;
        }
    }
    servers.lock().expect("no panic")[index].open -= 1;
}

pub(crate) struct Scene {
    runtime: Runtime,
    proxy: Proxy,
    servers: Servers,
}

/// Lets this much virtual time pass: the clock is paused, and moves when no task can run.
fn pass(runtime: &Runtime, span: Duration) {
    runtime.block_on(async { time::sleep(span).await });
}

impl Scene {
    fn new(count: u16) -> Self {
        Self::checked(count, None)
    }

    pub(crate) fn checked(count: u16, checks: Option<Checks>) -> Self {
        Self::limited(count, checks, Limits::default())
    }

    fn limited(count: u16, checks: Option<Checks>, limits: Limits) -> Self {
        let runtime = Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime");
        let servers = Servers::default();
        let (opened, handle) = (Arc::clone(&servers), runtime.handle().clone());
        let connect = move |server: &Server| connect(&opened, &handle, server);
        let urls: Vec<_> = (0..count)
            .map(|it| format!("http://upstream:{it}"))
            .collect();
        let mut upstream: Upstream = urls.join(",").parse().expect("servers");
        upstream.checks = checks;
        servers
            .lock()
            .expect("no panic")
            .resize_with(usize::from(count), Behind::default);
        let proxy = {
            let _context = runtime.enter();
            let handle = runtime.handle().clone();
            Proxy::over(upstream, limits, handle, 1, connect)
        };
        Self {
            runtime,
            proxy,
            servers,
        }
    }

    pub(crate) fn conduct(&self, index: usize, conduct: Conduct) {
        self.servers.lock().expect("no panic")[index].conduct = conduct;
    }

    pub(crate) fn seen<T>(&self, of: impl Fn(&Behind) -> T) -> Vec<T> {
        self.servers
            .lock()
            .expect("no panic")
            .iter()
            .map(of)
            .collect()
    }

    /// Sends a request without a body. Returns its channel.
    fn send(&self, method: &str) -> Channels {
        let peer = Peer {
            remote: "192.0.2.1:5000".parse().expect("an address"),
            version: Version::Http3,
            is_early: false,
        };
        let request = Request::new(method, "https", "localhost", "/");
        let HandlerResponse::Task(task) = self.proxy.handle(&request, &peer) else {
            panic!("it is forwarded");
        };
        let budget = Budget::new(budget::Limits::default()).connection();
        let (exchange, channels) = exchange(&budget);
        channels.incoming.push(Piece::End);
        task(exchange);
        channels
    }

    /// The whole response.
    fn receive(&self, channels: &Channels) -> Response {
        self.runtime.block_on(async {
            let mut head = None;
            loop {
                match poll_fn(|context| channels.outgoing.poll_next(context)).await {
                    Some(ResponsePart::Whole(answer)) => return answer.response,
                    Some(ResponsePart::Head(response)) => head = Some(response),
                    Some(ResponsePart::End(_)) => return head.expect("a header"),
                    Some(_) => {}
                    None => panic!("the response is truncated"),
                }
            }
        })
    }

    fn ask(&self, method: &str) -> Response {
        self.receive(&self.send(method))
    }

    /// The statuses of requests that follow each other, with a pause after each.
    pub(crate) fn statuses(&self, method: &str, count: usize, pause: Duration) -> Vec<u16> {
        let one = |_| {
            let status = self.ask(method).status();
            self.pass(pause);
            status
        };
        (0..count).map(one).collect()
    }

    /// Lets this much virtual time pass.
    pub(crate) fn pass(&self, span: Duration) {
        pass(&self.runtime, span);
    }

    pub(crate) fn statistics(&self) -> UpstreamStatistics {
        self.proxy.counts().read()
    }

    /// Ends the proxy, and lets this much time pass. Returns the number of checks before and after.
    pub(crate) fn end_proxy(self, span: Duration) -> [usize; 2] {
        let Self {
            runtime,
            proxy,
            servers,
        } = self;
        drop(proxy);
        let count = || -> usize {
            let servers = servers.lock().expect("no panic");
            servers.iter().map(|it| it.checks).sum()
        };
        let before = count();
        pass(&runtime, span);
        [before, count()]
    }

    fn now(&self) -> Instant {
        self.runtime.block_on(async { Instant::now() })
    }
}

fn connect(servers: &Servers, runtime: &Handle, server: &Server) -> io::Result<DuplexStream> {
    let Server::Tcp { port, .. } = server else {
        panic!("a port");
    };
    let index = usize::from(*port);
    let behind = &mut servers.lock().expect("no panic")[index];
    behind.connects += 1;
    if matches!(behind.conduct, Conduct::Refuses) {
        return Err(io::ErrorKind::ConnectionRefused.into());
    }
    behind.open += 1;
    let (near, far) = duplex(16 << 10);
    runtime.spawn(serve(Arc::clone(servers), index, far));
    Ok(near)
}

const PAUSE: Duration = Duration::from_millis(100);

pub(crate) fn count(statuses: &[u16], status: u16) -> usize {
    statuses.iter().filter(|it| **it == status).count()
}

#[test]
fn a_server_that_refuses_connections_costs_no_request_and_comes_back() {
    let scene = Scene::new(2);
    assert_eq!(scene.statuses("POST", 10, PAUSE), [200; 10]);
    assert_eq!(scene.seen(|it| it.requests), [5, 5]);
    // It dies, and its kept connection with it.
    scene.conduct(1, Conduct::Refuses);
    let connects = scene.seen(|it| it.connects)[1];
    assert_eq!(scene.statuses("GET", 2, Duration::ZERO), [200; 2]);
    let statuses = scene.statuses("POST", 300, PAUSE);
    assert_eq!(count(&statuses, 200), 300);
    let connects = scene.seen(|it| it.connects)[1] - connects;
    // In 30 s, after at most 1, 2, 4, 8 and 16 s.
    assert!((5..=7).contains(&connects), "{connects} connects in 30 s");
    scene.conduct(1, Conduct::Answers);
    scene.pass(Duration::from_secs(32));
    let before = scene.seen(|it| it.requests);
    assert_eq!(scene.statuses("POST", 20, PAUSE), [200; 20]);
    let after = scene.seen(|it| it.requests);
    // The trial, and then each in turn.
    assert_eq!([after[0] - before[0], after[1] - before[1]], [9, 11]);
}

#[test]
fn a_silent_server_costs_three_requests_and_then_one_each_time_it_is_tried() {
    let scene = Scene::new(2);
    scene.conduct(0, Conduct::IsSilent);
    // Each takes the limit for a response: 60 s, longer than a server is out.
    let statuses = scene.statuses("GET", 6, Duration::ZERO);
    assert_eq!(statuses, [504, 200, 504, 200, 504, 200]);
    let statuses = scene.statuses("GET", 200, Duration::from_millis(10));
    assert!(count(&statuses, 504) <= 2, "{statuses:?}");
    assert_eq!(count(&statuses, 200) + count(&statuses, 504), 200);
}

#[test]
fn rfc9110_9_2_2_idempotent_requests_are_sent_to_another_server_if_one_closes() {
    let scene = Scene::new(2);
    scene.conduct(0, Conduct::Closes);
    assert_eq!(scene.statuses("GET", 20, Duration::ZERO), [200; 20]);
    assert_eq!(scene.seen(|it| it.requests)[0], 3, "then it is out");
    let scene = Scene::new(2);
    scene.conduct(0, Conduct::Closes);
    let statuses = scene.statuses("POST", 20, Duration::ZERO);
    assert_eq!(count(&statuses, 502), 3);
    assert_eq!(count(&statuses, 200), 17);
    // May have been processed twice already: not a third time.
    let scene = Scene::new(3);
    for server in 0..3 {
        scene.conduct(server, Conduct::Closes);
    }
    assert_eq!(scene.ask("GET").status(), 502);
    assert_eq!(scene.seen(|it| it.requests).iter().sum::<usize>(), 2);
}

#[test]
fn a_server_that_answers_502_is_not_out() {
    let scene = Scene::new(2);
    scene.conduct(0, Conduct::Fails);
    let statuses = scene.statuses("GET", 20, Duration::ZERO);
    assert_eq!((count(&statuses, 502), count(&statuses, 200)), (10, 10));
    assert_eq!(scene.seen(|it| it.requests), [10, 10]);
}

#[test]
fn rfc9209_2_3_requests_to_dead_servers_fail_at_once_until_one_is_back() {
    let scene = Scene::new(3);
    for server in 0..3 {
        scene.conduct(server, Conduct::Refuses);
    }
    let began = scene.now();
    for _ in 0..50 {
        let response = scene.ask("GET");
        assert_eq!(response.status(), 502);
        let reason = response.fields().get("proxy-status").expect("a reason");
        let reason = String::from_utf8_lossy(reason);
        assert!(
            reason.starts_with("lastbyte; error=connection_refused"),
            "{reason}"
        );
    }
    assert_eq!(scene.now(), began);
    assert_eq!(
        scene.seen(|it| it.connects),
        [50; 3],
        "once for each request"
    );
    scene.conduct(1, Conduct::Answers);
    assert_eq!(scene.statuses("POST", 10, Duration::ZERO), [200; 10]);
}

#[test]
fn a_client_that_leaves_during_a_trial_leaves_it_to_the_next_request() {
    let scene = Scene::new(2);
    scene.conduct(0, Conduct::Refuses);
    assert_eq!(scene.statuses("GET", 1, Duration::from_secs(1)), [200]);
    scene.conduct(0, Conduct::IsSilent);
    let trial = scene.send("GET");
    scene.pass(PAUSE);
    assert_eq!(scene.seen(|it| it.requests)[0], 1);
    assert_eq!(scene.statuses("GET", 3, Duration::ZERO), [200; 3]);
    assert_eq!(scene.seen(|it| it.requests)[0], 1, "one trial at a time");
    drop(trial);
    scene.pass(PAUSE);
    scene.conduct(0, Conduct::Answers);
    assert_eq!(scene.ask("GET").status(), 200);
    assert_eq!(scene.seen(|it| it.requests)[0], 2);
}

/// At the limit of one, the other is chosen; at that of all, requests wait, and while another is out they fail at once.
#[test]
fn rfc9209_2_3_requests_above_the_limit_of_each_server_get_503() {
    let limits = Limits {
        server_requests: 2,
        ..Limits::default()
    };
    for (is_out, held, waits) in [(false, 4, 5), (true, 2, 0)] {
        let scene = Scene::limited(2, None, limits);
        if is_out {
            scene.conduct(0, Conduct::Refuses);
            assert_eq!(scene.statuses("POST", 2, Duration::ZERO), [200; 2]);
        }
        scene.conduct(1, Conduct::IsSilent);
        if !is_out {
            scene.conduct(0, Conduct::IsSilent);
        }
        let before = scene.seen(|it| it.requests);
        let waiting: Vec<_> = (0..held).map(|_| scene.send("GET")).collect();
        scene.pass(Duration::from_millis(1));
        let seen = scene.seen(|it| it.requests);
        let expected = if is_out { 0 } else { 2 };
        assert_eq!([seen[0] - before[0], seen[1] - before[1]], [expected, 2]);
        let began = scene.now();
        let response = scene.ask("GET");
        assert_eq!((scene.now() - began).as_secs(), waits);
        assert_eq!(response.status(), 503);
        let field = |name: &str| response.fields().get(name);
        let reason = &b"lastbyte; error=connection_limit_reached"[..];
        assert_eq!(field("proxy-status"), Some(reason));
        assert_eq!(field("retry-after"), Some(&b"1"[..]));
        // When they end, there is room again.
        drop(waiting);
        scene.pass(Duration::from_millis(1));
        scene.conduct(0, Conduct::Answers);
        scene.conduct(1, Conduct::Answers);
        assert_eq!(scene.ask("GET").status(), 200);
    }
}

#[test]
fn as_many_connections_are_kept_as_are_needed_at_the_same_time() {
    const TOGETHER: usize = 100;
    let scene = Scene::new(1);
    let barrier = Arc::new(Barrier::new(TOGETHER));
    scene.conduct(0, Conduct::Together(barrier));
    for _ in 0..10 {
        let sent: Vec<_> = (0..TOGETHER).map(|_| scene.send("GET")).collect();
        for channels in &sent {
            assert_eq!(scene.receive(channels).status(), 200);
        }
        scene.pass(Duration::from_secs(1));
    }
    assert_eq!(scene.seen(|it| it.connects), [TOGETHER]);
    // Those that are not needed close without another request: down to the 64 that are always kept, then all.
    scene.pass(Duration::from_secs(10));
    assert_eq!(scene.seen(|it| it.open), [Limits::default().kept]);
    scene.pass(Duration::from_secs(30));
    assert_eq!(scene.seen(|it| it.open), [0]);
}

#[test]
fn idle_connections_are_at_most_half_as_many_as_requests() {
    let scene = Scene::new(1);
    let requests = Limits::default().requests;
    scene.conduct(0, Conduct::Together(Arc::new(Barrier::new(requests))));
    let sent: Vec<_> = (0..requests).map(|_| scene.send("GET")).collect();
    for channels in &sent {
        assert_eq!(scene.receive(channels).status(), 200);
    }
    scene.pass(PAUSE);
    assert_eq!(
        scene.seen(|it| (it.connects, it.open)),
        [(requests, requests / 2)]
    );
}

#[test]
fn an_upstream_can_be_a_unix_socket() {
    let folder = Folder::new();
    let path = folder.0.join("app.sock");
    let listener = UnixListener::bind(&path).expect("a socket");
    let serve = move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).expect("a header");
            head.extend(byte);
        }
        let head = String::from_utf8(head).expect("text");
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{head}",
            head.len()
        );
        stream.write_all(answer.as_bytes()).expect("it is taken");
    };
    thread::Builder::new().spawn(serve).expect("a thread");
    let serving = front_of(&format!("unix:{}", path.display()), Limits::default());
    let answer = serving.get("/x", "");
    let head = String::from_utf8(answer.body).expect("text");
    assert_eq!(answer.status, 200);
    assert!(
        head.starts_with("GET /x HTTP/1.1\r\nhost: localhost\r\n"),
        "{head}"
    );
    // Nothing listens any more.
    fs::remove_file(&path).expect("it is there");
    let answer = serving.get("/x", "");
    assert_eq!(answer.status, 502);
    let reason = answer.field("proxy-status").expect("a reason");
    assert!(reason.contains("error=connection_refused"), "{reason}");
    serving.end();
}
