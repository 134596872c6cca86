//! `lastbyte lb`: balances QUIC by connection ID, and TCP by address, between servers.
//!
//! Owns options, the configuration file and its reload, signals, and messages to the operator. `lastbyte_balancer` forwards
//! datagrams; the modules here forward TCP, check servers and serve metrics, on the thread of the command.

mod health;
mod metrics;
mod tcp;

use std::{
    fmt::Write as _,
    net::SocketAddr,
    num::NonZeroUsize,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    process::ExitCode,
    rc::Rc,
    sync::Arc,
    thread,
    time::Duration,
};

use clap::{Args, ValueEnum};
use lastbyte_balancer::{self as balancer, Counter, FlowLimits, Forwarder, Settings, Table};
use lastbyte_udp::socket::loopback;
use lastbyte_units as units;
use tokio::{
    net::TcpListener,
    runtime,
    signal::unix::{SignalKind, signal},
    sync::watch,
    task::LocalSet,
    time,
};

use self::health::Health;
use super::{fleet_file::FleetFile, serve::descriptors, values};
use crate::{
    failure::Failure,
    terminal::{self, counted, notice},
};

const EXAMPLES: &str = "\
Examples:
  # Between two servers, listed in a file; see docs/fleet.md for one.
  lastbyte lb --config lb.toml
  # On port 443, with metrics, for up to 50000 clients at a time.
  lastbyte lb --config lb.toml --listen '[::]:443' --metrics 9101 \\
    --max-flows 50000
  # Check the file.
  lastbyte lb --config lb.toml --check
  # A server behind it.
  lastbyte serve --self-signed --listen 127.0.0.1:4501 \\
    --lb-config lb.toml --server-id 1

Packets of QUIC go to the server in their connection ID, others and TCP connections to one that a consistent hash of the addresses selects. The file is read again when it changes, and on SIGHUP; an invalid file is reported, and the current configuration is kept.

Reference: docs/lb.md.";

/// Balance QUIC by connection ID, and TCP by address.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Configuration file (TOML): servers, and the layout of connection IDs
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Validate the configuration file and exit
    #[arg(long)]
    check: bool,
    /// Address and port for UDP and TCP; port 0 selects a free port
    ///
    /// A port alone is a port of all addresses.
    #[arg(long, value_name = "[ADDR:]PORT", default_value = "[::]:4433", value_parser = values::any_by_default)]
    listen: SocketAddr,
    /// Address for /metrics (Prometheus) and /healthz, over plain HTTP
    ///
    /// A port alone is a port of 127.0.0.1.
    #[arg(long, value_name = "[ADDR:]PORT", value_parser = values::loopback_by_default)]
    metrics: Option<SocketAddr>,
    /// Threads for QUIC (1 to 255) [default: CPU cores]
    #[arg(long, value_name = "N", value_parser = values::positive(255))]
    workers: Option<NonZeroUsize>,
    /// When to validate client addresses with Retry packets, with the keys of [retry] in the file
    #[arg(long, value_enum, default_value_t = Retry::Load)]
    retry: Retry,
    /// Interval between health checks of a server
    #[arg(long, value_name = "SPAN", default_value = "2s", value_parser = units::span)]
    health_interval: Duration,
    /// Maximum client addresses over QUIC at a time
    ///
    /// Each takes a file descriptor and a UDP port.
    #[arg(long, value_name = "N", default_value_t = FlowLimits::default().flows, value_parser = values::count::<usize>(1..=10_000_000), help_heading = "Limits")]
    max_flows: usize,
    /// Maximum new client addresses over QUIC per second
    #[arg(long, value_name = "N", default_value_t = FlowLimits::default().new_per_second, value_parser = values::count::<u32>(1..=10_000_000), help_heading = "Limits")]
    max_new_flows: u32,
    /// Time without packets after which a client address is removed
    ///
    /// Longer than the idle timeout of the servers: a client that returns later has another port for them.
    #[arg(long, value_name = "SPAN", default_value = "120s", value_parser = values::time_limit, help_heading = "Limits")]
    idle: Duration,
    /// Maximum TCP connections; 0 disables TCP
    ///
    /// No IPv4 address or IPv6 /56 has more than there is room left; connections above that are closed.
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = values::count::<usize>(0..=10_000_000), help_heading = "Limits")]
    tcp_connections: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Retry {
    /// Always
    Always,
    /// If new client addresses use half of --max-new-flows or a quarter of --max-flows
    Load,
    /// Never
    Never,
}

/// Balances until SIGINT or SIGTERM.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let file = read(&arguments.config, arguments.listen)?;
    let has_tcp = arguments.tcp_connections > 0;
    values::check_listeners(&[
        ("--listen", has_tcp.then_some(arguments.listen)),
        ("--metrics", arguments.metrics),
    ])?;
    if arguments.retry == Retry::Always && file.fleet.retry.is_none() {
        return Err(Failure::Usage(format!(
            "--retry always: `{}` has no [retry]",
            arguments.config.display()
        )));
    }
    if arguments.check {
        notice("configuration OK");
        return Ok(ExitCode::SUCCESS);
    }
    let limits = limits(arguments);
    let mut key = [0; 16];
    getrandom::fill(&mut key).map_err(|error| Failure::Run(format!("cannot start: {error}")))?;
    let table = Table::new(&file.fleet, |_| true).map_err(Failure::usage)?;
    let workers = arguments.workers.or(thread::available_parallelism().ok());
    let settings = Settings {
        listen: arguments.listen,
        workers: workers.map_or(1, NonZeroUsize::get),
        limits: limits.flows,
        key,
        retry: match arguments.retry {
            Retry::Always => balancer::Retry::Always,
            Retry::Load => balancer::Retry::UnderLoad,
            Retry::Never => balancer::Retry::Never,
        },
    };
    let table = Arc::new(table);
    let forwarder = Forwarder::start(&settings, Arc::clone(&table)).map_err(|error| {
        Failure::Run(format!("cannot listen on `{}`: {error}", arguments.listen))
    })?;
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Run(format!("cannot start: {error}")))?;
    let (tables, current) = watch::channel(table);
    let control = Control {
        path: arguments.config.clone(),
        seen: seen(&arguments.config),
        health: Health::new(&file),
        file,
        forwarder: Rc::new(forwarder),
        tables,
    };
    LocalSet::new().block_on(&runtime, balance(arguments, control, current, limits.tcp))
}

struct Limits {
    flows: FlowLimits,
    tcp: usize,
}

/// The limits set by the options, capped by the limit of open files.
fn limits(arguments: &Arguments) -> Limits {
    let open_files = descriptors::raise().unwrap_or(u64::MAX);
    let available = usize::try_from(open_files.saturating_sub(descriptors::RESERVED));
    let available = available.unwrap_or(usize::MAX).max(4);
    // A TCP connection takes two descriptors.
    let tcp = arguments.tcp_connections.min(available / 4);
    let flows = arguments.max_flows.min(available - 2 * tcp);
    if (flows, tcp) != (arguments.max_flows, arguments.tcp_connections) {
        notice(format!(
            "limiting client addresses to {flows} and TCP connections to {tcp}: the limit of open files is {open_files} (`ulimit -n`)"
        ));
    }
    let default = FlowLimits::default();
    Limits {
        flows: FlowLimits {
            flows,
            new_per_second: arguments.max_new_flows,
            idle: arguments.idle,
            unproven_idle: default.unproven_idle.min(arguments.idle),
        },
        tcp,
    }
}

/// The state of the command's thread.
struct Control {
    path: PathBuf,
    /// The file that was read last.
    seen: Option<Seen>,
    file: FleetFile,
    health: Health,
    forwarder: Rc<Forwarder>,
    /// For TCP.
    tables: watch::Sender<Arc<Table>>,
}

async fn balance(
    arguments: &Arguments,
    mut control: Control,
    current: watch::Receiver<Arc<Table>>,
    tcp_connections: usize,
) -> Result<ExitCode, Failure> {
    let cannot = |what: &str, error: &dyn std::fmt::Display| {
        Failure::Run(format!("cannot listen {what}: {error}"))
    };
    let listen_for = |kind| signal(kind).map_err(|error| cannot("for signals", &error));
    let mut interrupt = listen_for(SignalKind::interrupt())?;
    let mut terminate = listen_for(SignalKind::terminate())?;
    let mut hangup = listen_for(SignalKind::hangup())?;
    let address = control.forwarder.address();
    let tcp_counts = Rc::new(tcp::Counts::default());
    if tcp_connections > 0 {
        let listener = tcp::listen(address)
            .map_err(|error| cannot(&format!("on `{address}` over TCP"), &error))?;
        let counts = Rc::clone(&tcp_counts);
        tokio::task::spawn_local(tcp::serve(listener, current, tcp_connections, counts));
    }
    let (up, ups) = watch::channel(control.health.states());
    if let Some(address) = arguments.metrics {
        let listener = TcpListener::bind(address)
            .await
            .map_err(|error| cannot(&format!("on `{address}`"), &error))?;
        let address = listener.local_addr().unwrap_or(address);
        notice(format!("serving metrics on {address}"));
        let sources = metrics::Sources {
            forwarder: Rc::clone(&control.forwarder),
            tcp: Rc::clone(&tcp_counts),
            up: ups,
        };
        tokio::task::spawn_local(metrics::serve(listener, sources));
    }
    let servers = counted(control.file.fleet.servers.len() as u64, "server");
    notice(format!("listening on {} ({servers})", loopback(address)));
    let mut ticks = time::interval(CHECK_INTERVAL);
    let mut probes = time::interval(arguments.health_interval.max(Duration::from_millis(10)));
    probes.set_missed_tick_behavior(time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = interrupt.recv() => break,
            _ = terminate.recv() => break,
            _ = hangup.recv() => control.reload(),
            _ = ticks.tick() => {
                if control.forwarder.has_failed() {
                    return Err(Failure::Run("a thread of the load balancer failed".into()));
                }
                if seen(&control.path) != control.seen {
                    control.reload();
                }
            }
            _ = probes.tick() => control.health.probe(),
            result = control.health.result() => {
                if let Some(change) = control.health.apply(&result) {
                    notice(&change);
                    control.publish();
                }
            }
        }
        let states = control.health.states();
        up.send_if_modified(|known| {
            let is_new = *known != states;
            *known = states;
            is_new
        });
    }
    notice(report(&control.forwarder, &tcp_counts));
    Ok(ExitCode::SUCCESS)
}

/// Reads the configuration file of a balancer with this address.
fn read(path: &Path, address: SocketAddr) -> Result<FleetFile, Failure> {
    let file = FleetFile::read(path)?;
    let mut servers = file.fleet.servers.iter();
    match servers.find(|server| values::reaches(server.address, address)) {
        None => Ok(file),
        Some(own) => Err(Failure::Usage(format!(
            "`{}`: server {}: `{}` is the address of the balancer (expected another one)",
            path.display(),
            own.id,
            own.address
        ))),
    }
}

/// The interval at which the file and the threads are checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

impl Control {
    /// Reloads the file. If it is invalid, the current fleet stays in use.
    fn reload(&mut self) {
        // Before it is read: a change meanwhile is then noticed.
        self.seen = seen(&self.path);
        match read(&self.path, self.forwarder.address()) {
            Ok(file) if file == self.file => notice("reloaded: no change"),
            Ok(file) => {
                self.health.set_servers(&file);
                self.file = file;
                self.publish();
                let (servers, ids) = (&self.file.fleet.servers, &self.file.fleet.ids);
                let draining = servers.iter().filter(|server| server.drain).count();
                notice(format!(
                    "reloaded: {} ({draining} draining), {} of connection IDs",
                    counted(servers.len() as u64, "server"),
                    counted(ids.len() as u64, "layout")
                ));
            }
            Err(Failure::Usage(why) | Failure::Run(why)) => terminal::error(format!(
                "error: {why}\nreload failed; keeping the current configuration"
            )),
            Err(Failure::BrokenPipe | Failure::Interrupted) => {}
        }
    }

    fn publish(&self) {
        // The file has been validated.
        if let Ok(table) = Table::new(&self.file.fleet, |server| self.health.is_up(server.id)) {
            let table = Arc::new(table);
            self.forwarder.publish(Arc::clone(&table));
            self.tables.send_replace(table);
        }
    }
}

/// Inode, time in seconds and nanoseconds, and size of a file.
fn seen(path: &Path) -> Option<Seen> {
    let about = path.metadata().ok()?;
    Some((about.ino(), about.mtime(), about.mtime_nsec(), about.size()))
}

/// What changes with a file.
type Seen = (u64, i64, i64, u64);

fn report(forwarder: &Forwarder, tcp: &tcp::Counts) -> String {
    let count = |counter| forwarder.count(counter);
    let mut text = format!(
        "from clients: {} datagrams; forwarded by connection ID {}, by flow {}, by hash {}\n",
        count(Counter::FromClients),
        count(Counter::ByConnectionId),
        count(Counter::ByFlow),
        count(Counter::ByHash)
    );
    let dropped: u64 = Counter::ALL
        .into_iter()
        .filter(|counter| counter.name().contains("dropped"))
        .map(count)
        .sum();
    let _ = writeln!(
        text,
        "from servers: {} datagrams; forwarded {}; dropped in both directions {dropped}",
        count(Counter::FromServers),
        count(Counter::ToClients)
    );
    let _ = writeln!(
        text,
        "client addresses: {}; Retry packets {}, their tokens accepted {}; TCP connections: {}",
        count(Counter::FlowsOpened),
        count(Counter::Retries),
        count(Counter::ValidTokens),
        tcp.accepted.get()
    );
    text
}
