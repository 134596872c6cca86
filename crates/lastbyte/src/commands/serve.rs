//! `lastbyte serve`: HTTP/3 for a directory, and for objects by their size.

#![expect(
    clippy::disallowed_methods,
    reason = "the environment is read where arguments are"
)]

use std::{
    fmt::Write as _,
    io::Write,
    net::SocketAddr,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::Duration,
};

use clap::{Args, ValueEnum};
use lastbyte_congestion::{Spec, Time};
use lastbyte_quic::{connection::Config, endpoint::RetryPolicy, path::MtuConfig, trace::Trace};
use lastbyte_record::qlog::{Dialect, Header, Qlog};
use lastbyte_server::{
    Arm, Arms, Identity, Server, Settings, Site,
    log::{LogSettings, LogThread},
};
use lastbyte_sim::{experiment::Experiment, units};
use lastbyte_udp::{Steering, socket::loopback};
use lastbyte_wire::{Side, packet::Version};

use crate::{failure::Failure, files};

const EXAMPLES: &str = "\
Examples:
  # A directory, with a certificate made for the occasion; prints how to trust it.
  lastbyte serve --self-signed public/
  # Objects by their size (/32k, /1m, /1g), two workers, every connection in an arm of the experiment, a line each.
  lastbyte serve --self-signed --workers 2 --experiment four-arms --log conns.ndjson
  # As in production.
  lastbyte serve --listen '[::]:443' --cert chain.pem --key key.pem --congestion rapid-start /srv/www
  # Everything that a connection did, for qvis and Wireshark.
  lastbyte serve --self-signed --qlog qlogs/ --keylog keys.txt

The log has a line for each connection, with the keys that H2O writes: `lastbyte query` and `lastbyte report` read it.
Ctrl-C or SIGTERM: no more requests are taken (GOAWAY), those at hand are answered for --drain at most.";

/// Serves a directory, and objects by their size, over HTTP/3.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The directory; without one, there are only objects by size
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
    /// Where to listen: an address and a UDP port, 0 for any that is free. An address of all of IPv6 takes IPv4 too
    #[arg(long, value_name = "ADDR:PORT", default_value = "[::]:4433")]
    listen: SocketAddr,
    /// Certificate chain, in PEM
    #[arg(
        long,
        value_name = "FILE",
        requires = "key",
        conflicts_with = "self_signed"
    )]
    cert: Option<PathBuf>,
    /// Its key, in PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// Make a certificate for localhost, good for two weeks
    #[arg(long)]
    self_signed: bool,
    /// Names and addresses in the certificate that is made
    #[arg(long, value_name = "NAME", value_delimiter = ',', requires = "self_signed", default_values = ["localhost", "127.0.0.1", "::1"])]
    name: Vec<String>,
    /// Threads that serve. Default: one a core
    #[arg(long, value_name = "N")]
    workers: Option<NonZeroUsize>,
    /// Congestion control spec: rapid-start, cubic, bbr, rapid-start:congestion=newreno; `lastbyte sim --help` has them all
    #[arg(
        long,
        value_name = "SPEC",
        default_value = "rapid-start",
        conflicts_with = "experiment"
    )]
    congestion: String,
    /// How to start, in place of the spec's own way: slow-start, hystart, jumpstart, rapid-start, ...
    #[arg(long, value_name = "NAME", conflicts_with = "experiment")]
    startup: Option<String>,
    /// Draw each connection into an arm of this experiment: a file, or `four-arms`
    #[arg(long, value_name = "EXP")]
    experiment: Option<String>,
    /// Append a line for each connection to this file
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Put the log away as FILE.1 and begin a new one from this size on: 1GB
    #[arg(long, value_name = "BYTES", value_parser = units::bytes, requires = "log")]
    log_rotate: Option<u64>,
    /// How many logs that were put away are kept
    #[arg(long, value_name = "N", default_value_t = 10, requires = "log_rotate")]
    log_keep: u32,
    /// Write a qlog file for each connection into this folder
    #[arg(long, value_name = "DIR")]
    qlog: Option<PathBuf>,
    /// Append TLS secrets to this file, for Wireshark; as SSLKEYLOGFILE does
    #[arg(long, value_name = "FILE")]
    keylog: Option<PathBuf>,
    /// When clients have to prove their address before anything is kept for them
    #[arg(long, value_enum, default_value_t = Retry::Load)]
    retry: Retry,
    /// Refuse 0-RTT
    #[arg(long)]
    no_0rtt: bool,
    /// Versions of QUIC, the one that is liked best first
    #[arg(long, value_name = "V,...", value_delimiter = ',', default_values = ["1", "2"], value_parser = version)]
    quic_version: Vec<Version>,
    /// The largest UDP payload that is tried, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1472, value_parser = clap::value_parser!(u16).range(1200..=65_000))]
    mtu: u16,
    /// The UDP payload to begin with, in bytes, which initial windows count in too. What is more than 1200 fails on paths that
    /// carry less
    #[arg(long, value_name = "BYTES", default_value_t = 1200, value_parser = clap::value_parser!(u16).range(1200..=65_000))]
    initial_mtu: u16,
    /// The byte of connection IDs by which a load balancer finds this server
    #[arg(long, value_name = "0..255", default_value_t = 0)]
    server_id: u8,
    /// How long requests at hand may last after Ctrl-C
    #[arg(long, value_name = "SPAN", default_value = "5s", value_parser = units::span)]
    drain: Duration,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Retry {
    /// All of them
    Always,
    /// From 500 handshakes at a time on
    Load,
    /// Never
    Never,
}

fn version(text: &str) -> Result<Version, String> {
    match text {
        "1" | "v1" => Ok(Version::V1),
        "2" | "v2" => Ok(Version::V2),
        _ => Err("versions are 1 and 2".into()),
    }
}

/// Serves until it is told to end.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    // Before anything else, so that nobody who is told to wait for us is left behind.
    let (word, words) = mpsc::channel();
    let is_ending = AtomicBool::new(false);
    ctrlc::set_handler(move || {
        if is_ending.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
        let _ = word.send(());
    })
    .map_err(|error| Failure::Run(format!("cannot listen for Ctrl-C: {error}")))?;

    let identity = identity(arguments)?;
    let hash = identity.public_key_hash();
    let (arms, experiment) = arms(arguments)?;
    let site = match &arguments.directory {
        None => Site::generated(),
        Some(path) => Site::directory(path).map_err(|error| {
            Failure::Usage(format!("cannot serve `{}`: {error}", path.display()))
        })?,
    };
    let log = match &arguments.log {
        None => None,
        Some(path) => {
            let settings = LogSettings {
                rotate_at: arguments.log_rotate,
                keep: arguments.log_keep,
            };
            let log = lastbyte_server::log::start(path, settings);
            Some(log.map_err(|error| files::cannot_write(path, &error))?)
        }
    };
    let (writer, log_thread) = log.unzip();

    let mut settings = Settings::new(arguments.listen, identity, arms, Arc::new(site));
    settings.workers = arguments.workers;
    settings.experiment = experiment;
    settings.log = writer;
    settings.retry = match arguments.retry {
        Retry::Always => RetryPolicy::Always,
        Retry::Load => RetryPolicy::UnderLoad { handshakes: 500 },
        Retry::Never => RetryPolicy::Never,
    };
    settings.takes_zero_rtt = !arguments.no_0rtt;
    settings.server_id = arguments.server_id;
    settings.key_log = key_log(arguments)?;
    settings.trace = arguments.qlog.as_deref().map(qlogs).transpose()?;
    let server = Server::start(settings).map_err(Failure::run)?;
    say(&greeting(arguments, &server, hash.as_deref()))?;

    let _ = words.recv();
    say("ending\n")?;
    let report = server.shut_down(arguments.drain);
    let mut farewell = format!(
        "{} connections, {} requests ({} as 0-RTT)\n",
        report.statistics.accepted, report.statistics.requests, report.statistics.early_requests
    );
    let mut code = ExitCode::SUCCESS;
    for (number, worker) in report.workers.iter().enumerate() {
        match worker {
            Ok(counted) => {
                let _ = writeln!(
                    farewell,
                    "worker {number}: {} datagrams in {} calls received, {} in {} sent, {} handed over, {} of them lost",
                    counted.datagrams_received,
                    counted.receives,
                    counted.datagrams_sent,
                    counted.sends,
                    counted.handed_over,
                    counted.handovers_lost
                );
            }
            Err(error) => {
                let _ = writeln!(farewell, "error: worker {number}: {error}");
                code = ExitCode::FAILURE;
            }
        }
    }
    say(&farewell)?;
    if let (Some(thread), Some(path)) = (log_thread, &arguments.log) {
        finish_log(thread, path)?;
    }
    Ok(code)
}

/// Talk goes to stderr.
fn say(text: &str) -> Result<(), Failure> {
    let mut stderr = std::io::stderr().lock();
    stderr
        .write_all(text.as_bytes())
        .map_err(|error| Failure::stdout(&error))
}

fn finish_log(thread: LogThread, path: &Path) -> Result<(), Failure> {
    let (statistics, error) = thread.finish();
    let lost = statistics.dropped + statistics.failed;
    match error {
        Some(error) => Err(Failure::Run(format!(
            "{lost} of {} lines could not be written to `{}`: {error}",
            statistics.written + lost,
            path.display()
        ))),
        None if lost > 0 => Err(Failure::Run(format!(
            "{lost} of {} lines were lost: they came faster than `{}` could be written",
            statistics.written + lost,
            path.display()
        ))),
        None => Ok(()),
    }
}

fn identity(arguments: &Arguments) -> Result<Identity, Failure> {
    match (&arguments.cert, &arguments.key) {
        (Some(certificates), Some(key)) => {
            Identity::read(certificates, key).map_err(Failure::usage)
        }
        _ if arguments.self_signed => {
            let days = lastbyte_driver::Clock::since_epoch().as_secs() / 86_400;
            Identity::self_signed(&arguments.name, days.cast_signed()).map_err(Failure::usage)
        }
        _ => Err(Failure::Usage(
            "a server needs a certificate: --cert FILE --key FILE, or --self-signed to make one"
                .into(),
        )),
    }
}

/// The arms, and the experiment's name.
fn arms(arguments: &Arguments) -> Result<(Arms, Option<String>), Failure> {
    let config = |spec: Spec| {
        let mut config = Config::new(spec);
        config.versions.clone_from(&arguments.quic_version);
        config.mtu = MtuConfig {
            initial: arguments.initial_mtu,
            maximum: arguments.mtu.max(arguments.initial_mtu),
        };
        Arc::new(config)
    };
    let (arms, name) = match &arguments.experiment {
        None => {
            let mut text = arguments.congestion.clone();
            if let Some(startup) = &arguments.startup {
                text = format!("{startup}:congestion={text}");
            }
            let spec: Spec = text.parse().map_err(Failure::usage)?;
            let arm = Arm {
                name: text,
                share: 1.0,
                config: config(spec),
            };
            (vec![arm], None)
        }
        Some(name) => {
            let experiment = experiment(name)?;
            let arms = experiment.arms.into_iter().map(|arm| Arm {
                name: arm.name,
                share: arm.share,
                config: config(arm.spec),
            });
            (arms.collect(), Some(experiment.name))
        }
    };
    let arms = Arms::new(arms)
        .ok_or_else(|| Failure::Usage("an experiment's shares are numbers above 0".into()))?;
    Ok((arms, name))
}

fn experiment(name: &str) -> Result<Experiment, Failure> {
    if name == "four-arms" {
        return Ok(Experiment::four_arms());
    }
    let path = Path::new(name);
    let text = files::read_text(path).map_err(Failure::Usage)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    Experiment::parse_with(&text, &mut |name| files::read_text(&folder.join(name)))
        .map_err(|error| Failure::Usage(format!("`{name}`: {error}")))
}

type KeyLog = Arc<dyn Fn(&str) + Send + Sync>;

/// Where secrets go: the file of `--keylog`, or of SSLKEYLOGFILE.
fn key_log(arguments: &Arguments) -> Result<Option<KeyLog>, Failure> {
    let named = arguments.keylog.clone();
    let Some(path) = named.or_else(|| std::env::var_os("SSLKEYLOGFILE").map(PathBuf::from)) else {
        return Ok(None);
    };
    let file = files::append(&path)?;
    let file = Mutex::new(file);
    Ok(Some(Arc::new(move |line: &str| {
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        // A debugger's file that is full is no reason to fail a handshake.
        let _ = writeln!(file, "{line}");
    })))
}

type TraceMaker = Arc<dyn Fn(u64, Time) -> Option<Box<dyn Trace>> + Send + Sync>;

fn qlogs(folder: &Path) -> Result<TraceMaker, Failure> {
    files::create_folder(folder)?;
    let folder = folder.to_owned();
    Ok(Arc::new(move |number, now| {
        let file = files::create(&folder.join(format!("{number}_server.sqlog"))).ok()?;
        let header = Header {
            dialect: Dialect::V03,
            title: format!("connection {number}"),
            vantage_point: Side::Server,
            group_id: number.to_string(),
        };
        let (qlog, _health) = Qlog::new(&header, now, file);
        Some(Box::new(qlog) as Box<dyn Trace>)
    }))
}

/// What is said when it listens: last of all, so that who waits for it can begin.
fn greeting(arguments: &Arguments, server: &Server, hash: Option<&str>) -> String {
    let address = server.address();
    let capabilities = server.capabilities();
    let mut text = String::new();
    let mut missing = Vec::new();
    if capabilities.send_segments == 1 {
        missing.push("segmentation offload (GSO): one system call for each datagram sent");
    }
    if capabilities.receive_segments == 1 {
        missing.push("receive offload (GRO)");
    }
    if server.workers() > 1 && server.steering() == Steering::ByAddress {
        missing.push(
            "steering by connection ID: clients whose address changes are handed from worker to worker",
        );
    }
    for what in missing {
        let _ = writeln!(text, "this system lacks {what}");
    }
    if let Some(hash) = hash.filter(|_| arguments.self_signed) {
        let reached = loopback(address);
        let port = reached.port();
        let _ = write!(
            text,
            "trust this certificate:\n  lastbyte get -k https://localhost:{port}/1m -o /dev/null\n  chromium \
             --origin-to-force-quic-on=localhost:{port} --ignore-certificate-errors-spki-list={hash} \
             '--host-resolver-rules=MAP localhost {}' https://localhost:{port}/\n",
            host(reached)
        );
    }
    let count = server.workers();
    let plural = if count == 1 { "" } else { "s" };
    let _ = writeln!(
        text,
        "listening on {address} (HTTP/3, {count} worker{plural})"
    );
    text
}

fn host(address: SocketAddr) -> String {
    match address {
        SocketAddr::V4(address) => address.ip().to_string(),
        SocketAddr::V6(address) => format!("[{}]", address.ip()),
    }
}
