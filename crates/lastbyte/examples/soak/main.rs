//! A server under churn for an hour: does its memory, do its descriptors, do its gauges stay flat?
//!
//! ```sh
//! cargo run --release -p lastbyte --example soak -- --minutes 60
//! ```
//!
//! The server runs in a process of its own. Clients in this one fetch objects over HTTP/3 by way of a relay that loses 2 % of
//! all packets, with resumption and 0-RTT, and over HTTP/2 and 1.1; some abort a response, some vanish. A hostile client wastes
//! requests whose responses cannot be delivered, others do worse over HTTP/2 and 1.1, and the access log is on. Every two seconds the server gets a new certificate
//! and new ticket keys. At the end all clients leave.
//!
//! Exits with 1 unless, after the first quarter as a warm-up, both processes' resident memory has stayed within 5 % or 4 MiB,
//! no request failed that was not aborted, each sample saw progress, and in the end the server has no connection and
//! no more descriptors than at the start.

#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a soak takes time, starts processes and threads, and reads what the system reports of them"
)]

mod hostile;
mod hostile_tcp;
#[path = "../../tests/common/trust.rs"]
mod trust;

use std::{
    error::Error,
    fs,
    io::{self, BufRead, BufReader, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    num::NonZeroUsize,
    path::Path,
    process::{Child, ChildStdin, Command, ExitCode, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

use lastbyte_client::{Fetch, Listener, Memory, Settings, Trust, Versions, run};
use lastbyte_driver::Clock;
use lastbyte_emulate::{Plan, Relay, Settings as RelaySettings};
use lastbyte_link::{Config as Way, Loss};
use lastbyte_quic::connection::Config;
use lastbyte_server::{
    Arm, Arms, Identity, Server, Settings as ServerSettings, Site,
    access::{AccessLog, Format},
    log,
};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const CLIENTS: u64 = 6;
const HOSTILE: usize = 4;
const RELOAD: Duration = Duration::from_secs(2);
/// After how long either end gives up a peer that is silent.
const IDLE: Duration = Duration::from_secs(3);
const SAMPLES: u32 = 40;
/// What memory may grow by after the warm-up: the larger of these.
const GROWTH_SHARE: f64 = 0.05;
const GROWTH_BYTES: u64 = 4 << 20;

fn main() -> Outcome<ExitCode> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let minutes = match words[..] {
        ["server"] => return serve().map(|()| ExitCode::SUCCESS),
        [] => 60.0,
        ["--minutes", minutes] => minutes.parse()?,
        _ => return Err("usage: soak [--minutes N]".into()),
    };
    soak(Duration::from_secs_f64(60.0 * minutes))
}

fn config() -> Outcome<Config> {
    let mut config = Config::new("cubic".parse()?);
    config.max_idle_timeout = IDLE;
    Ok(config)
}

// ---- the server ------------------------------------------------------------------------------------------------------

fn identity() -> Outcome<Identity> {
    let days = Clock::since_epoch().as_secs() / 86_400;
    Ok(Identity::self_signed(
        &["localhost".into()],
        days.cast_signed(),
    )?)
}

/// Serves until its standard input ends, and reloads with each line of it.
fn serve() -> Outcome<()> {
    let arm = Arm {
        name: "cubic".into(),
        share: 1.0,
        config: Arc::new(config()?),
    };
    let arms = Arms::new(vec![arm]).ok_or("an arm")?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let site = Arc::new(Site::generated());
    let mut settings = ServerSettings::new(address, identity()?, arms, site);
    settings.workers = NonZeroUsize::new(1);
    settings.metrics = Some(address);
    settings.ticket_keys = Some(ticket_keys()?);
    let (writer, _thread) = log::start(Path::new("/dev/null"), &log::LogSettings::default())?;
    settings.access = Some(AccessLog::new(writer, Format::Ndjson));
    let server = Server::start(settings)?;
    let metrics = server.metrics_address().ok_or("no metrics")?;
    println!("{} {metrics}", server.address());
    for line in io::stdin().lines() {
        line?;
        server.set_identities(&[identity()?])?;
        server.set_ticket_keys(&ticket_keys()?)?;
    }
    let _ = server.shut_down(Duration::from_secs(5));
    Ok(())
}

/// The text of a file with one random key.
fn ticket_keys() -> Outcome<Vec<u8>> {
    let mut secret = [0; 32];
    getrandom::fill(&mut secret)?;
    let digits: Vec<String> = secret.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(digits.concat().into_bytes())
}

/// The other process.
struct Serving {
    child: Child,
    input: ChildStdin,
    address: SocketAddr,
    metrics: SocketAddr,
}

impl Serving {
    fn start() -> Outcome<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("server")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        let output = child.stdout.take().ok_or("no output")?;
        BufReader::new(output).read_line(&mut line)?;
        let (address, metrics) = line.trim().split_once(' ').ok_or("the server is gone")?;
        Ok(Self {
            input: child.stdin.take().ok_or("no input")?,
            address: address.parse()?,
            metrics: metrics.parse()?,
            child,
        })
    }

    /// The sum of all values of a metric.
    fn metric(&self, name: &str) -> Outcome<u64> {
        let mut stream = TcpStream::connect(self.metrics)?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        let values = text
            .lines()
            .filter_map(|line| line.strip_prefix(name)?.rsplit_once(' '))
            .filter(|(labels, _)| labels.is_empty() || labels.starts_with('{'));
        let values: Result<Vec<u64>, _> = values.map(|(_, value)| value.parse()).collect();
        Ok(values?.iter().sum())
    }
}

// ---- clients ---------------------------------------------------------------------------------------------------------

/// What all clients did.
#[derive(Default)]
struct Tally {
    fetched: AtomicU64,
    bytes: AtomicU64,
    aborted: AtomicU64,
    vanished: AtomicU64,
    failed: AtomicU64,
    /// Requests of the hostile client, and its connections that the server closed.
    wasted: AtomicU64,
    closed: AtomicU64,
    /// Connections of hostile clients over TCP, and how many of them the server closed.
    held: AtomicU64,
    ended: AtomicU64,
    is_over: AtomicBool,
}

/// Takes a body, or gives up in it.
struct Body<'a> {
    /// After this many bytes, with an error.
    abort_at: Option<u64>,
    /// At the first byte, with the path to the server.
    vanish: Option<Relay>,
    received: u64,
    /// What all clients received.
    all: &'a AtomicU64,
}

impl Listener for Body<'_> {
    fn on_body(&mut self, _: usize, bytes: &[u8]) -> io::Result<()> {
        self.received += bytes.len() as u64;
        self.all.fetch_add(bytes.len() as u64, Relaxed);
        if let Some(relay) = self.vanish.take() {
            relay.stop()?;
        }
        if self.abort_at.is_some_and(|at| self.received >= at) {
            return Err(io::Error::other("enough"));
        }
        Ok(())
    }
}

fn relay(to: SocketAddr) -> Outcome<Relay> {
    let way = Way {
        delay: Duration::from_millis(5),
        loss: vec![Loss::Bernoulli(0.02)],
        ..Way::default()
    };
    let mut plan = Plan::new(way.clone(), way);
    plan.idle = 2 * IDLE;
    Ok(Relay::start(RelaySettings {
        listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        to,
        plan,
        rebind: None,
    })?)
}

/// One client: visit after visit until all is over.
fn client(number: u64, server: SocketAddr, lossy: SocketAddr, tally: &Tally) -> Outcome<()> {
    let memory = Memory::default();
    let mut random = number + 1;
    let mut next = |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 11) % below
    };
    while !tally.is_over.load(Relaxed) {
        let mut settings = Settings::new(config()?);
        settings.trust = Trust::DangerouslyAcceptAny;
        settings.early_data = true;
        let mut body = Body {
            abort_at: None,
            vanish: None,
            received: 0,
            all: &tally.bytes,
        };
        let mut address = lossy;
        let what = next(16);
        settings.versions = match what {
            0..=1 => Versions::Http2,
            2..=3 => Versions::Http11,
            _ => Versions::Http3,
        };
        match what {
            0..=3 => address = server,
            4..=5 => body.abort_at = Some(next(100_000)),
            6 => {
                let own = relay(server)?;
                address = own.address();
                body.vanish = Some(own);
                settings.retries = 0;
            }
            _ => {}
        }
        let is_whole = !(4..=6).contains(&what);
        let sizes: Vec<u64> = (0..=next(3)).map(|_| 1 + next(300_000)).collect();
        let urls = sizes.iter().map(|size| format!("https://{address}/{size}"));
        let fetches: Result<Vec<Fetch>, _> = urls.map(|url| url.parse().map(Fetch::get)).collect();
        let report = run(&settings, &memory, Clock::new(), fetches?, &mut body)?;
        let came = |(outcome, size): (&lastbyte_client::Outcome, &u64)| {
            outcome.failure.is_none() && outcome.received == *size
        };
        let complete = report
            .outcomes
            .iter()
            .zip(&sizes)
            .filter(|pair| came(*pair));
        let complete = complete.count();
        let counter = match what {
            4..=5 => &tally.aborted,
            6 => &tally.vanished,
            _ => &tally.fetched,
        };
        counter.fetch_add(sizes.len() as u64, Relaxed);
        if is_whole && complete < sizes.len() {
            let failed = report
                .outcomes
                .iter()
                .filter_map(|one| one.failure.as_ref());
            println!(
                "failed: {:?}",
                failed.map(ToString::to_string).collect::<Vec<_>>()
            );
            tally.failed.fetch_add(1, Relaxed);
        }
    }
    Ok(())
}

/// One hostile client, until all is over.
fn waste(number: usize, server: SocketAddr, tally: &Tally) -> Outcome<()> {
    match number {
        0 => hostile::waste(server, tally),
        _ => hostile_tcp::waste(server, number, tally),
    }
}

// ---- samples ---------------------------------------------------------------------------------------------------------

/// The resident memory of a process in bytes.
fn resident(process: u32) -> Outcome<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
    Ok(kib.ok_or("no VmRSS")?.trim().parse::<u64>()? * 1024)
}

fn descriptors(process: u32) -> Outcome<u64> {
    Ok(fs::read_dir(format!("/proc/{process}/fd"))?.count() as u64)
}

struct Sample {
    fetched: u64,
    bytes: u64,
    connections: u64,
    handshakes: u64,
    server_bytes: u64,
    server_descriptors: u64,
    client_bytes: u64,
}

fn sample(serving: &Serving, tally: &Tally) -> Outcome<Sample> {
    let server = serving.child.id();
    Ok(Sample {
        fetched: tally.fetched.load(Relaxed),
        bytes: tally.bytes.load(Relaxed),
        connections: serving.metric("lastbyte_connections")?,
        handshakes: serving.metric("lastbyte_quic_handshakes_in_progress")?,
        server_bytes: resident(server)?,
        server_descriptors: descriptors(server)?,
        client_bytes: resident(std::process::id())?,
    })
}

fn median(samples: &[Sample], of: impl Fn(&Sample) -> u64) -> u64 {
    let mut values: Vec<u64> = samples.iter().map(of).collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}

/// Complains if the last quarter's median is above that of the second quarter.
fn is_flat(what: &str, samples: &[Sample], of: impl Fn(&Sample) -> u64) -> bool {
    let quarter = samples.len() / 4;
    let before = median(&samples[quarter..2 * quarter], &of);
    let after = median(&samples[samples.len() - quarter..], &of);
    let allowed = GROWTH_BYTES.max((before as f64 * GROWTH_SHARE) as u64);
    let is_flat = after <= before + allowed;
    println!(
        "{what}: {} KiB in the second quarter, {} KiB in the last: {}",
        before / 1024,
        after / 1024,
        if is_flat { "flat" } else { "GROWS" }
    );
    is_flat
}

fn soak(span: Duration) -> Outcome<ExitCode> {
    let mut serving = Serving::start()?;
    let relay = relay(serving.address)?;
    let descriptors_before = descriptors(serving.child.id())?;
    let tally = Arc::new(Tally::default());
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let tally = Arc::clone(&tally);
            let (server, lossy) = (serving.address, relay.address());
            thread::spawn(move || client(number, server, lossy, &tally))
        })
        .collect();

    let wasting: Vec<_> = (0..HOSTILE)
        .map(|number| {
            let (server, tally) = (serving.address, Arc::clone(&tally));
            thread::spawn(move || waste(number, server, &tally))
        })
        .collect();

    println!("minute  fetched  connections  handshakes  server KiB  descriptors  clients KiB");
    let start = Instant::now();
    let mut reload_at = start + RELOAD;
    let mut samples = Vec::new();
    for number in 1..=SAMPLES {
        let until = start + span * number / SAMPLES;
        while Instant::now() < until {
            thread::sleep(
                until
                    .min(reload_at)
                    .saturating_duration_since(Instant::now()),
            );
            if Instant::now() >= reload_at {
                writeln!(serving.input, "reload")?;
                reload_at += RELOAD;
            }
        }
        let one = sample(&serving, &tally)?;
        println!(
            "{:6.2} {:8} {:12} {:11} {:11} {:12} {:12}",
            start.elapsed().as_secs_f64() / 60.0,
            one.fetched,
            one.connections,
            one.handshakes,
            one.server_bytes / 1024,
            one.server_descriptors,
            one.client_bytes / 1024,
        );
        samples.push(one);
    }

    tally.is_over.store(true, Relaxed);
    for client in clients.into_iter().chain(wasting) {
        client.join().map_err(|_| "a client panicked")??;
    }
    // Clients that vanished are forgotten once they have been silent for long enough; the scrapes themselves take a moment to
    // be closed.
    let patience = Instant::now() + 10 * IDLE;
    let descriptors_after = loop {
        let open = descriptors(serving.child.id())?;
        let is_quiet = open <= descriptors_before && serving.metric("lastbyte_connections")? == 0;
        if is_quiet || Instant::now() > patience {
            break open;
        }
        thread::sleep(IDLE / 10);
    };
    let left = serving.metric("lastbyte_connections")?;
    let handshakes_left = serving.metric("lastbyte_quic_handshakes_in_progress")?;
    let accepted = serving.metric("lastbyte_connections_accepted_total")?;
    drop(serving.input);
    let status = serving.child.wait()?;

    let of = |counter: &AtomicU64| counter.load(Relaxed);
    println!(
        "{accepted} connections, {} objects fetched, {} aborted, {} of clients that vanished, {} visits failed; {} requests wasted \
         on {} connections that the server closed; {} hostile connections over TCP, of which it closed {}",
        of(&tally.fetched),
        of(&tally.aborted),
        of(&tally.vanished),
        of(&tally.failed),
        of(&tally.wasted),
        of(&tally.closed),
        of(&tally.held),
        of(&tally.ended),
    );
    println!(
        "left in the end: {left} connections, {handshakes_left} handshakes; descriptors {descriptors_before} before, {descriptors_after} after"
    );
    let is_moving = samples.is_sorted_by(|one, next| one.bytes < next.bytes);
    let is_good = [
        is_flat("server's memory", &samples, |one| one.server_bytes),
        is_flat("clients' memory", &samples, |one| one.client_bytes),
        is_moving,
        left == 0 && handshakes_left == 0,
        descriptors_after <= descriptors_before,
        of(&tally.failed) == 0,
        of(&tally.closed) > 0,
        of(&tally.ended) > 0,
        status.success(),
    ]
    .iter()
    .all(|is| *is);
    println!("{}", if is_good { "passed" } else { "FAILED" });
    Ok(ExitCode::from(u8::from(!is_good)))
}
