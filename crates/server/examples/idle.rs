//! What idle connections cost a server in memory, over QUIC and over TCP, and what it costs to ask for its metrics then.
//!
//! ```sh
//! cargo run --release -p lastbyte-server --example idle -- 10000
//! ```
//!
//! A server runs in a process of its own, with one thread for HTTP/3 and one for HTTP/1.1 and 2. Connections are opened to
//! it, finish their handshakes, and then all are idle. The resident memory of
//! the server is read before and with all of them.

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

use lastbyte_driver::{Application, Clock, Turn, Worker};
use lastbyte_http3 as http3;
use lastbyte_quic::{
    Time,
    connection::{Config, Connection, Event, NetworkPath},
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
/// Handshakes at a time.
const AT_A_TIME: usize = 50;

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
    settings.tcp.connections = usize::MAX;
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
    println!("{count} connections, all idle");
    alone("QUIC, with HTTP/3", count, over_quic)?;
    alone("TCP, with TLS 1.3 and HTTP/2", count, over_tcp)
}

/// Opens connections to a server that has had no others.
fn alone<C>(
    name: &str,
    count: usize,
    open: impl Fn(SocketAddr, &Arc<RootCertStore>, usize) -> Outcome<C>,
) -> Outcome<()> {
    let mut server = Command::new(std::env::current_exe()?)
        .arg("server")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut said = String::new();
    let stdout = server.stdout.take().ok_or("its output")?;
    BufReader::new(stdout).read_line(&mut said)?;
    let mut words = said.split_whitespace();
    let mut word = || words.next().ok_or("no server");
    let address: SocketAddr = word()?.parse()?;
    let metrics: SocketAddr = word()?.parse()?;
    let hex = word()?;
    let bytes: Result<Vec<u8>, _> = (0..hex.len() / 2)
        .map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16))
        .collect();
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(bytes?))?;

    let before = resident(&server)?;
    let connections = open(address, &Arc::new(roots), count)?;
    let with = resident(&server)?;
    let each = with.saturating_sub(before) / count as u64;
    println!(
        "{name}: {} KiB before, {} KiB with them, {each} bytes a connection",
        before / 1024,
        with / 1024
    );
    let mut scrapes = Vec::new();
    for _ in 0..5 {
        scrapes.push(scrape(metrics)?);
    }
    scrapes.sort();
    println!("  a scrape of its metrics: {:?}", scrapes[2]);
    drop(connections);
    server.kill()?;
    server.wait()?;
    Ok(())
}

/// How long it takes to be told all metrics.
fn scrape(metrics: SocketAddr) -> Outcome<Duration> {
    let begun = Instant::now();
    let mut stream = TcpStream::connect(metrics)?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    if !text.contains("lastbyte_connections{") {
        return Err("no metrics".into());
    }
    Ok(begun.elapsed())
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

/// Connections that are opened, and do nothing then.
struct Idle {
    path: NetworkPath,
    crypto: Arc<TlsClient>,
    config: Arc<Config>,
    wanted: usize,
    begun: usize,
    open: usize,
    lost: usize,
}

impl Application for Idle {
    type Command = ();

    fn on_accepted(&mut self, _: Time, _: Handle, _: &mut Connection) {}

    fn on_ready(&mut self, _: Time, _: Handle, connection: &mut Connection) {
        while let Some(event) = connection.poll_event() {
            if event == Event::HandshakeConfirmed {
                self.open += 1;
            }
        }
        while connection.streams().poll_event().is_some() {}
    }

    fn on_closed(&mut self, _: Time, _: Closed) {
        self.lost += 1;
    }

    fn on_command(&mut self, _: Time, _: &mut Endpoint, (): ()) {}

    fn on_turn(&mut self, now: Time, endpoint: &mut Endpoint) -> Turn {
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
            self.lost += usize::from(connected.is_err());
        }
        Turn {
            deadline: None,
            is_done: self.open + self.lost >= self.wanted,
        }
    }
}

fn over_quic(
    server: SocketAddr,
    roots: &Arc<RootCertStore>,
    count: usize,
) -> Outcome<Worker<Idle>> {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let socket = Socket::bind(any, &Options::default())?;
    let idle = Idle {
        path: NetworkPath {
            local: socket.local_address(),
            remote: server,
        },
        crypto: Arc::new(TlsClient::new(client_config(roots, http3::ALPN)?)?),
        config: config()?,
        wanted: count,
        begun: 0,
        open: 0,
        lost: 0,
    };
    let endpoint = Endpoint::new(EndpointConfig::client(), [7; 32])?;
    let mut worker = Worker::new(socket, endpoint, idle, Clock::new())?;
    worker.run()?;
    let lost = worker.application().lost;
    if lost > 0 {
        eprintln!("{lost} connections were lost");
    }
    Ok(worker)
}

/// Sockets with sessions that have finished their handshakes.
fn over_tcp(
    server: SocketAddr,
    roots: &Arc<RootCertStore>,
    count: usize,
) -> Outcome<Vec<(TcpStream, ClientConnection)>> {
    let config = Arc::new(client_config(roots, b"h2")?);
    let mut all = Vec::new();
    for number in 0..count {
        let mut socket = TcpStream::connect(server)
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
        all.push((socket, session));
    }
    Ok(all)
}
