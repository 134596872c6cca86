//! The memory of a server with many idle connections, over QUIC and over TCP, and the time of a scrape of its metrics then.
//!
//! ```sh
//! cargo run --release -p lastbyte-server --example idle -- 100000
//! ```
//!
//! A server runs in a process of its own, with one thread for HTTP/3 and one for HTTP/1.1 and 2. Connections are opened to
//! it, complete their handshakes, exchange the settings of HTTP, and then all are idle. The resident memory of the server is
//! read before, and two seconds later with all of them. Connections of HTTP/3 then send a request each that the server holds, and it is read
//! again. All connections of HTTP/3 share one socket of the client. Those over TCP need a descriptor each at both ends, so
//! there are as many as the limit permits (`ulimit -n`).

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "an example talks to its user, starts a process, and reads what the system says of it"
)]

use std::{
    error::Error,
    fmt::Write as _,
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    num::NonZeroUsize,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use lastbyte_driver::{Application, Clock, Datagram, Next, Status, Worker};
use lastbyte_http3 as http3;
use lastbyte_quic::{
    Time,
    connection::{Config, Connection, NetworkPath},
    crypto::tls::TlsClient,
    endpoint::{Closed, Endpoint, EndpointConfig, Handle},
};
use lastbyte_server::{Arm, Arms, Identity, Server, Settings, Site};
use lastbyte_udp::{Options, Socket};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, crypto::aws_lc_rs, pki_types::CertificateDer,
};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Longer than all of it takes.
const IDLE: Duration = Duration::from_secs(3600);
/// Handshakes and requests at a time.
const AT_A_TIME: usize = 50;
/// Between two times.
const PAUSE: Duration = Duration::from_millis(5);
/// Until memory is read: an idle connection frees some after a second.
const REST: Duration = Duration::from_secs(2);
/// The server rests this many times as long as a scrape took, before the next one.
const SCRAPE_REST: u32 = 10;
/// A resource that the server answers after the longest delay that it allows.
const HELD: &str = "/delay/60s/1";

fn main() -> Outcome<()> {
    match std::env::args().nth(1).as_deref() {
        Some("server") => serve(),
        count => measure(count.unwrap_or("10000").parse()?),
    }
}

fn config() -> Outcome<Arc<Config>> {
    let mut config = Config::new("cubic".parse()?);
    config.max_idle_timeout = IDLE;
    Ok(Arc::new(config))
}

/// Serves until its standard input ends. Says where, and with which certificate.
fn serve() -> Outcome<()> {
    let days = Clock::since_epoch().as_secs() / 86_400;
    let identity = Identity::self_signed(&["localhost".into()], days.cast_signed())?;
    let certificate = identity.chain[0].clone();
    let arm = Arm {
        name: "cubic".into(),
        share: 1.0,
        config: config()?,
    };
    let arms = Arms::new(vec![arm]).ok_or("an arm")?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let mut settings = Settings::new(address, identity, arms, Arc::new(Site::generated()));
    settings.workers = NonZeroUsize::new(1);
    settings.metrics = Some(address);
    // All come from one address, which may have as many as are left for others.
    settings.quic.connections = usize::MAX;
    settings.tcp.connections = usize::MAX;
    settings.tcp.connections_per_prefix = usize::MAX;
    settings.tcp.head = IDLE;
    settings.tcp.idle = IDLE;
    let server = Server::start(settings)?;
    let mut hex = String::new();
    for byte in certificate.iter() {
        write!(hex, "{byte:02x}")?;
    }
    let metrics = server.metrics_address().ok_or("no metrics")?;
    println!("{} {metrics} {hex}", server.address());
    std::io::stdin().read_to_end(&mut Vec::new())?;
    let _ = server.shut_down(Duration::ZERO);
    Ok(())
}

/// The server's resident memory, in bytes.
fn resident(server: &Child) -> Outcome<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", server.id()))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
    Ok(kib
        .ok_or("this system does not tell")?
        .trim()
        .parse::<u64>()?
        * 1024)
}

fn measure(count: usize) -> Outcome<()> {
    quic(count)?;
    tcp(count.min(descriptors()?))
}

/// How many connections over TCP the limit of descriptors leaves room for.
fn descriptors() -> Outcome<usize> {
    let limits = fs::read_to_string("/proc/self/limits")?;
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"));
    let soft = line.and_then(|line| line.split_whitespace().next());
    let soft = soft.ok_or("this system does not tell")?;
    Ok(soft
        .parse()
        .map_or(usize::MAX, |soft: usize| soft.saturating_sub(100)))
}

/// A server in a process of its own, without connections yet.
struct Started {
    process: Child,
    address: SocketAddr,
    metrics: SocketAddr,
    roots: Arc<RootCertStore>,
    /// Its resident memory at the start.
    before: u64,
}

impl Started {
    fn new() -> Outcome<Self> {
        let mut process = Command::new(std::env::current_exe()?)
            .arg("server")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        let stdout = process.stdout.take().ok_or("its output")?;
        BufReader::new(stdout).read_line(&mut line)?;
        let mut words = line.split_whitespace();
        let mut word = || words.next().ok_or("no server");
        let address = word()?.parse()?;
        let metrics = word()?.parse()?;
        let hex = word()?;
        let bytes: Result<Vec<u8>, _> = (0..hex.len() / 2)
            .map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16))
            .collect();
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from(bytes?))?;
        let before = resident(&process)?;
        Ok(Self {
            process,
            address,
            metrics,
            roots: Arc::new(roots),
            before,
        })
    }

    /// Prints the server's memory with this many connections.
    fn print(&self, name: &str, count: usize) -> Outcome<()> {
        // The workers answer once they have done what came before.
        scrape(self.metrics)?;
        let with = resident(&self.process)?;
        let each = with.saturating_sub(self.before) / count.max(1) as u64;
        println!(
            "{count} connections, {name}: {} KiB before, {} KiB with them, {each} bytes a connection",
            self.before / 1024,
            with / 1024
        );
        Ok(())
    }

    /// Prints the time of a scrape, the median of five, and ends the server.
    fn end(mut self) -> Outcome<()> {
        let mut scrapes = Vec::new();
        for _ in 0..5 {
            scrapes.push(scrape(self.metrics)?);
        }
        scrapes.sort();
        println!("  a scrape of the metrics: {:?}", scrapes[2]);
        // The server ends with its standard input.
        drop(self.process.stdin.take());
        self.process.wait()?;
        Ok(())
    }
}

/// How long a scrape of all metrics takes, if none was shortly before.
fn scrape(metrics: SocketAddr) -> Outcome<Duration> {
    let begun = Instant::now();
    let mut stream = TcpStream::connect(metrics)?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    if !text.contains("lastbyte_connections{") {
        return Err("no metrics".into());
    }
    let elapsed = begun.elapsed();
    std::thread::sleep(elapsed * SCRAPE_REST);
    Ok(elapsed)
}

fn client_config(roots: &Arc<RootCertStore>, protocol: &[u8]) -> Outcome<ClientConfig> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(Arc::clone(roots))
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    config.resumption = rustls::client::Resumption::disabled();
    Ok(config)
}

/// Connections of HTTP/3 that are opened and then idle, or hold a request.
struct Idle {
    path: NetworkPath,
    crypto: Arc<TlsClient>,
    config: Arc<Config>,
    /// By the index of their handle: what there is until the server's settings came, or all of it if requests follow.
    http3: Vec<Option<http3::Connection>>,
    handles: Vec<Handle>,
    wanted: usize,
    begun: usize,
    open: usize,
    lost: usize,
    /// How many requests were sent, and how many are wanted.
    asked: usize,
    wanted_requests: usize,
    /// When all have been idle for a while.
    rested_at: Option<Time>,
}

impl Application for Idle {
    type Command = ();
    type Data = ();

    fn on_accepted(&mut self, _: Time, _: Handle, _: &mut Connection) {}

    fn on_datagram(
        &mut self,
        now: Time,
        _: Handle,
        connection: &mut Connection,
        (): &mut (),
        datagram: Datagram<'_>,
    ) {
        let Datagram { path, ecn, bytes } = datagram;
        connection.handle_datagram(now, &path, ecn, bytes, &mut lastbyte_quic::stream::KeepAll);
    }

    fn on_ready(&mut self, now: Time, handle: Handle, connection: &mut Connection, (): &mut ()) {
        while connection.poll_event().is_some() {}
        let http3 = self.http3.get_mut(handle.index() as usize);
        let Some(http3) = http3.and_then(Option::as_mut) else {
            return;
        };
        while let Some(event) = http3.poll(connection, now) {
            self.open += usize::from(matches!(event, http3::Event::Settings));
        }
    }

    fn on_closed(&mut self, _: Time, _: Closed) {
        self.lost += 1;
    }

    fn on_command(&mut self, _: Time, _: &mut Endpoint, (): ()) {}

    fn on_turn(&mut self, now: Time, endpoint: &mut Endpoint) -> Next {
        while self.begun < self.wanted && self.begun - self.open - self.lost < AT_A_TIME {
            self.begun += 1;
            let crypto = self.crypto.clone();
            let connected = endpoint.connect(
                now,
                self.path,
                "localhost",
                &self.config,
                crypto,
                Vec::new(),
            );
            let Ok(handle) = connected else {
                self.lost += 1;
                continue;
            };
            let index = handle.index() as usize;
            if self.http3.len() <= index {
                self.http3.resize_with(index + 1, || None);
            }
            self.http3[index] = Some(http3::Connection::client(&http3::Config::default()));
            self.handles.push(handle);
        }
        for _ in 0..AT_A_TIME {
            let Some(handle) = self
                .handles
                .get(self.asked)
                .filter(|_| self.asked < self.wanted_requests)
            else {
                break;
            };
            self.asked += 1;
            let http3 = self.http3.get_mut(handle.index() as usize);
            if let Some(http3) = http3.and_then(Option::as_mut)
                && let Some(connection) = endpoint.connection(*handle)
            {
                let request = http3::Request::new("GET", "https", "localhost", HELD);
                if http3
                    .request(connection, &request, http3::Body::Empty)
                    .is_err()
                {
                    self.lost += 1;
                }
            }
        }
        let is_asking = self.asked < self.wanted_requests.min(self.handles.len());
        if self.open + self.lost < self.wanted || is_asking {
            return Next {
                deadline: is_asking.then_some(now + PAUSE),
                status: Status::Running,
            };
        }
        let rested_at = *self.rested_at.get_or_insert(now + REST);
        let is_done = now >= rested_at;
        if is_done {
            self.rested_at = None;
        }
        Next {
            deadline: Some(rested_at),
            status: Status::stopped_if(is_done),
        }
    }
}

fn quic(count: usize) -> Outcome<()> {
    let server = Started::new()?;
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let socket = Socket::bind(any, &Options::default())?;
    let idle = Idle {
        path: NetworkPath {
            local: socket.local_address(),
            remote: server.address,
        },
        crypto: Arc::new(TlsClient::new(client_config(&server.roots, http3::ALPN)?)?),
        config: config()?,
        http3: Vec::new(),
        handles: Vec::new(),
        wanted: count,
        begun: 0,
        open: 0,
        lost: 0,
        asked: 0,
        wanted_requests: 0,
        rested_at: None,
    };
    let mut endpoint = EndpointConfig::client();
    endpoint.limits.connections = usize::MAX;
    let endpoint = Endpoint::new(endpoint, [7; 32])?;
    let mut worker = Worker::new(socket, endpoint, idle, Clock::new())?;
    worker.run()?;
    let lost = worker.application().lost;
    if lost > 0 {
        eprintln!("{lost} connections were lost");
    }
    server.print("HTTP/3, idle", count)?;
    worker.application().wanted_requests = count;
    worker.run()?;
    server.print("HTTP/3, a request held", count)?;
    server.end()
}

/// Connections of HTTP/2 over TCP.
fn tcp(count: usize) -> Outcome<()> {
    let server = Started::new()?;
    let config = Arc::new(client_config(&server.roots, b"h2")?);
    let mut all = Vec::new();
    for number in 0..count {
        let mut socket = TcpStream::connect(server.address)
            .map_err(|error| format!("connection {number}: {error} (see `ulimit -n`)"))?;
        let name = "localhost".try_into()?;
        let mut session = ClientConnection::new(Arc::clone(&config), name)?;
        while session.is_handshaking() {
            session.complete_io(&mut socket)?;
        }
        // The preface of HTTP/2, and settings that change nothing (RFC 9113 §3.4).
        session
            .writer()
            .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")?;
        session.complete_io(&mut socket)?;
        all.push(socket);
    }
    server.print("HTTP/2, idle", count)?;
    server.end()
}
