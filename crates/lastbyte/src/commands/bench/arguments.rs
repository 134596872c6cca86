//! Arguments of `lastbyte bench`.

use core::{num::NonZeroUsize, time::Duration};
use std::{net::IpAddr, path::PathBuf};

use clap::{Args, ValueEnum, builder::ArgPredicate};
use lastbyte_client::{ConnectTo, Url};
use lastbyte_load::Mix;
use lastbyte_units as units;

use super::thresholds::{Thresholds, rate};
use crate::commands::{
    credentials::Authorities,
    figure::FigureArguments,
    get::connect_to,
    values::{THREADS_MAX, count, positive, positive_span},
};

const EXAMPLES: &str = "\
Examples, beside a server (`lastbyte serve --self-signed`):
  # 10000 requests over 10 connections of HTTP/3, 10 at a time on each.
  lastbyte bench -k -n 10000 -c 10 -m 10 https://localhost:4433/1kB
  # The same over HTTP/2 and HTTP/1.1.
  lastbyte bench -k --http 2 -n 10000 -c 10 -m 10 https://localhost:4433/1kB
  lastbyte bench -k --http 1.1 -n 10000 -c 10 https://localhost:4433/1kB
  # 10 seconds after a warm-up of 2 seconds.
  lastbyte bench -k -D 10s --warm-up-time 2s -c 10 https://localhost:4433/1kB
  # 500 requests per second with random intervals; latencies corrected.
  lastbyte bench -k -D 10s -c 20 -m 10 --rate 500 --arrivals poisson \\
    https://localhost:4433/1kB
  # 100 connections, each over an LTE path of its own.
  lastbyte bench -k -n 100 -c 100 --network lte https://localhost:4433/100kB
  # Handshakes: a connection for each request, with resumed sessions.
  lastbyte bench -k -n 1000 -c 10 --mix resumed=1 https://localhost:4433/1kB
  # 1 of 61 requests on a new connection, 10 in 0-RTT, 50 reuse one.
  lastbyte bench -k -n 1000 -c 10 --mix new=1,0rtt=10,reused=50 \\
    https://localhost:4433/1kB
  # Connections that change their port every two seconds.
  lastbyte bench -k -D 10s -c 100 --migrate 2s https://localhost:4433/1kB
  # Results for programs.
  lastbyte bench -k -n 1000 --json https://localhost:4433/1kB
  # Exit code 3 if a request fails or the 99th percentile is above 50 ms.
  lastbyte bench -k -n 2000 -c 10 --max-errors 0 --max-p99 50ms \\
    https://localhost:4433/1kB
  # Two servers in turn, and the ratio of their rates and latencies.
  lastbyte bench -k -D 2s -c 4 --against https://localhost:4434/1kB \\
    https://localhost:4433/1kB
  # The change between such results of two commands, over runs of each.
  lastbyte bench --compare a1.json,a2.json,a3.json b1.json,b2.json,b3.json

The loop is closed without --rate: each stream sends a request when the last \
one has ended, so a slow server receives fewer. With --rate, requests are due \
at times that do not depend on the server, and latencies count from then.

Exit code: 0 after a run with at least one successful response, 1 without, \
2 bad usage, 3 a threshold failed, 130 interrupted (results up to then are \
printed). Reference: docs/bench.md.";

/// Load a server over HTTP/3, 2 or 1.1 and measure its latencies.
///
/// Options and counters are those of h2load where it has them.
#[derive(Debug, Args)]
#[command(
    after_help = EXAMPLES,
    after_long_help = EXAMPLES,
    // As in h2load, --data is what requests send.
    mut_arg("figure", |arg| arg.conflicts_with("compare")),
    mut_arg("figure_data", |arg| arg.long("figure-data").alias(None))
)]
pub(crate) struct Arguments {
    /// URLs of one origin, requested in this order by each connection
    #[arg(value_name = "URL", required_unless_present_any = ["input_file", "compare"])]
    pub(crate) urls: Vec<Url>,

    #[command(flatten)]
    pub(crate) load: Load,
    #[command(flatten)]
    pub(crate) request: Request,
    #[command(flatten)]
    pub(crate) connection: Connection,
    #[command(flatten)]
    pub(crate) thresholds: Thresholds,

    /// Run in turn with this URL of another server, in rounds, and print ratios
    ///
    /// -D is the length of a turn, of which each server has one in each round. A ratio is that of URL to this one.
    #[arg(long, value_name = "URL", help_heading = "Comparison", requires = "duration", conflicts_with_all = ["requests", "compare", "connection_log", "input_file"])]
    pub(crate) against: Option<Url>,
    /// Number of rounds of --against
    #[arg(long, value_name = "N", help_heading = "Comparison", default_value = "10", value_parser = count::<usize>(2..=1000), requires = "against")]
    pub(crate) rounds: usize,

    /// Print the results as JSON
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// Write a connection log line per connection (docs/connection-log.md); `.gz` and `.zst` compress it
    ///
    /// HTTP/3 only. An existing file is overwritten.
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "Output",
        conflicts_with = "compare"
    )]
    pub(crate) connection_log: Option<PathBuf>,
    /// Write a page with latency and rate over time, and latency by percentile (.html)
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "Output",
        conflicts_with = "compare",
        default_value_if("figure", ArgPredicate::IsPresent, "figures")
    )]
    pub(crate) plot: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) figure: FigureArguments,
    /// Print the change between results of two commands (--json files), without a run
    ///
    /// Several files of a side are separated by commas: runs of one command. With two or more a side, intervals are over runs.
    #[arg(long, value_names = ["BEFORE[,FILE]", "AFTER[,FILE]"], num_args = 2, help_heading = "Output", conflicts_with_all = ["urls", "input_file", "json"])]
    pub(crate) compare: Vec<PathBuf>,
}

/// HTTP version to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Http {
    /// HTTP/1.1, one request at a time per connection
    #[value(name = "1.1", alias = "1")]
    One,
    /// HTTP/2
    #[value(name = "2")]
    Two,
    /// HTTP/3
    #[value(name = "3")]
    Three,
}

/// When requests of an open loop start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ArrivalProcess {
    /// Equal intervals
    Constant,
    /// Exponentially distributed intervals
    Poisson,
}

/// How much load.
#[derive(Debug, Args)]
#[command(next_help_heading = "Load")]
pub(crate) struct Load {
    /// Number of requests
    #[arg(short = 'n', long, value_name = "N", default_value = "1", value_parser = positive(1_000_000_000_000), conflicts_with = "duration")]
    pub(crate) requests: NonZeroUsize,
    /// Measured time, instead of a number of requests
    #[arg(short = 'D', long, value_name = "SPAN", value_parser = positive_span)]
    pub(crate) duration: Option<Duration>,
    /// Time before the measured time, whose requests are not counted
    #[arg(long, value_name = "SPAN", value_parser = units::span, requires = "duration", conflicts_with = "requests")]
    pub(crate) warm_up_time: Option<Duration>,
    /// Number of connections
    #[arg(short = 'c', long, visible_alias = "clients", value_name = "N", default_value = "1", value_parser = positive(100_000))]
    pub(crate) connections: NonZeroUsize,
    /// Connections opened per second [default: all at once]
    #[arg(long, value_name = "CONNECTIONS", value_parser = rate, conflicts_with = "mix")]
    pub(crate) connect_rate: Option<f64>,
    /// Maximum number of requests in progress per connection [default: 1]
    ///
    /// With --rate over HTTP/2 and 3, the default is as many as responses that take 1 s need, from 1 to 100.
    #[arg(short = 'm', long, visible_alias = "max-concurrent-streams", value_name = "N", value_parser = positive(10_000))]
    pub(crate) streams: Option<NonZeroUsize>,
    /// Number of generator threads
    #[arg(short = 't', long, visible_alias = "threads", value_name = "N", default_value = "1", value_parser = count::<usize>(1..=THREADS_MAX))]
    pub(crate) jobs: usize,
    /// Requests per second (open loop), whatever the server does
    #[arg(short = 'r', long, value_name = "REQUESTS", value_parser = rate)]
    pub(crate) rate: Option<f64>,
    /// Intervals between the requests of --rate
    #[arg(
        long,
        value_name = "PROCESS",
        default_value = "constant",
        requires = "rate"
    )]
    pub(crate) arrivals: ArrivalProcess,
    /// Random seed of the intervals, paths and --mix
    #[arg(long, value_name = "SEED", default_value = "1", value_parser = units::seed)]
    pub(crate) seed: u64,
}

/// What is requested.
#[derive(Debug, Args)]
#[command(next_help_heading = "Request")]
pub(crate) struct Request {
    /// Read URLs from FILE (`-`: stdin), one per line, each with an optional weight
    #[arg(short = 'i', long, value_name = "FILE")]
    pub(crate) input_file: Option<PathBuf>,
    /// Header field of all requests, `name: value`; repeatable
    #[arg(short = 'H', long, value_name = "FIELD")]
    pub(crate) header: Vec<String>,
    /// Send POST requests with the content of FILE
    #[arg(short = 'd', long, value_name = "FILE")]
    pub(crate) data: Option<PathBuf>,
    /// Time limit of a request
    #[arg(long, value_name = "SPAN", default_value = "30s", value_parser = units::span)]
    pub(crate) timeout: Duration,
}

/// Options for connections.
#[derive(Debug, Args)]
#[command(next_help_heading = "Connection")]
pub(crate) struct Connection {
    /// HTTP version to use
    #[arg(long, value_name = "VERSION", default_value = "3")]
    pub(crate) http: Http,
    /// Time limit for establishing a connection
    #[arg(long, value_name = "SPAN", default_value = "10s", value_parser = units::span)]
    pub(crate) connect_timeout: Duration,
    /// Weights of how requests get a connection, such as new=1,0rtt=10,reused=50
    ///
    /// new=1 is a connection for each request, resumed=1 the same with resumed sessions.
    /// Each request draws one of: `new` (full handshake), `resumed` (resumed TLS session), `0rtt` (resumed session, request in early data), `reused` (connection of the client's last request).
    #[arg(long, value_name = "WEIGHTS")]
    pub(crate) mix: Option<Mix>,
    /// Move each connection to another local port at this interval (HTTP/3)
    #[arg(long, value_name = "INTERVAL", value_parser = migration)]
    pub(crate) migrate: Option<Duration>,
    /// Local addresses that --migrate moves to in turn, comma-separated
    #[arg(
        long,
        value_name = "ADDRESSES",
        value_delimiter = ',',
        requires = "migrate"
    )]
    pub(crate) migrate_to: Vec<IpAddr>,
    /// Connect to HOST2:PORT2 in place of HOST1:PORT1; repeatable
    ///
    /// An empty HOST1 or PORT1 matches all; an empty HOST2 or PORT2 keeps the original. TLS still verifies HOST1.
    #[arg(long, value_name = "HOST1:PORT1:HOST2:PORT2", value_parser = connect_to)]
    pub(crate) connect_to: Vec<ConnectTo>,
    /// Model path of each connection: a named network or a TOML file (docs/network.md); repeatable
    ///
    /// Several networks are taken in turn. HTTP/3 only.
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) network: Vec<String>,
    /// Draw the path of each connection from a population: a file (docs/population.md), or `default`
    #[arg(long, value_name = "FILE", conflicts_with = "network")]
    pub(crate) population: Option<String>,
    #[command(flatten)]
    pub(crate) credentials: Authorities,
}

/// The shortest interval of --migrate. A path is validated within it, unless its round-trip time is longer.
const MIGRATE_MIN: Duration = Duration::from_millis(100);

fn migration(text: &str) -> Result<Duration, String> {
    let interval = units::span(text).map_err(|error| error.to_string())?;
    let inside = Some(interval).filter(|interval| *interval >= MIGRATE_MIN);
    inside.ok_or_else(|| format!("expected at least {} ms", MIGRATE_MIN.as_millis()))
}
