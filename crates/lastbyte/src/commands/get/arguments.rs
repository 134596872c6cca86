//! What `lastbyte get` can be told.

use core::{net::IpAddr, num::NonZeroUsize, time::Duration};
use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Args, FromArgMatches, value_parser};
use lastbyte_client::{Origin, Override, Url};
use lastbyte_sim::units;

const EXAMPLES: &str = "\
Examples:
  # A page to the terminal; its head, too; its head only.
  lastbyte get https://example.com/
  lastbyte get -i https://example.com/
  lastbyte get -I https://example.com/
  # Two files over one connection, the second by the name it has there.
  lastbyte get https://example.com/a -o first.bin https://example.com/b.bin -O
  # Where does the time go? Ten connections, resumed with 0-RTT where the server takes it.
  lastbyte get https://example.com/ -o /dev/null --timing --repeat 10 --0rtt
  # A server on this machine with a certificate of its own; all that happens, for people and for qvis.
  lastbyte get -k -v --qlog qlogs/ https://localhost:4433/32k -o 32k
  lastbyte get --cacert ca.pem --resolve example.com:443:127.0.0.1 https://example.com/
  # Uploads.
  lastbyte get -d name=value https://example.com/form
  lastbyte get -T backup.tar https://example.com/backups/

Exit codes are curl's: 3 address malformed, 6 host not resolved, 7 no connection, 18 part of the body is missing, 22 status of
400 or more with --fail, 23 cannot write, 26 cannot read, 28 too late, 35 handshake failed, 56 no response, 60 certificate not
trusted, 77 authorities not readable; 2 bad usage, 130 interrupted. Of several fetches, that of the first that failed.

SSLKEYLOGFILE in the environment works like --keylog. The reference is docs/get.md.";

/// Fetches over HTTP/3, as curl would.
///
/// All addresses of an origin share one connection, and are fetched at the same time. Bodies go to the terminal unless -o
/// or -O says otherwise; then one comes after the other.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// What to fetch: `https://host[:port]/path`
    #[arg(required = true, value_name = "URL")]
    pub(crate) urls: Vec<String>,

    #[command(flatten)]
    pub(crate) outputs: Outputs,
    /// Ask for the head only (HEAD), and print it
    #[arg(short = 'I', long, help_heading = "Output")]
    pub(crate) head: bool,
    /// Put the head of the response before its body
    #[arg(short, long, help_heading = "Output")]
    pub(crate) include: bool,
    /// Say what happens: connections (`*`), requests (`>`), responses (`<`)
    #[arg(short, long, help_heading = "Output")]
    pub(crate) verbose: bool,
    /// No progress bar, no errors
    #[arg(short, long, help_heading = "Output")]
    pub(crate) silent: bool,
    /// With --silent: errors all the same
    #[arg(short = 'S', long, help_heading = "Output")]
    pub(crate) show_error: bool,
    /// A status of 400 or more is a failure, and its body is not kept
    #[arg(short, long, help_heading = "Output")]
    pub(crate) fail: bool,
    /// Print when what happened: lookup, connection, first byte, last byte
    #[arg(long, help_heading = "Output")]
    pub(crate) timing: bool,
    /// With --timing: as JSON
    #[arg(long, requires = "timing", help_heading = "Output")]
    pub(crate) json: bool,
    /// Write the events of each connection into this folder, as qlog
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(crate) qlog: Option<PathBuf>,
    /// Append the secrets of each connection to this file, for Wireshark
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) keylog: Option<PathBuf>,

    /// A field of the request: "name: value", or "name:" to leave one out; may be repeated
    #[arg(short = 'H', long, value_name = "FIELD", help_heading = "Request")]
    pub(crate) header: Vec<String>,
    /// The method
    #[arg(short = 'X', long, value_name = "METHOD", help_heading = "Request")]
    pub(crate) request: Option<String>,
    /// Send this (POST); @FILE for what is in a file, without its line ends; several are joined by `&`
    #[arg(short, long, value_name = "DATA", help_heading = "Request")]
    pub(crate) data: Vec<String>,
    /// Send this, or @FILE, byte by byte (POST)
    #[arg(long, value_name = "DATA", help_heading = "Request")]
    pub(crate) data_binary: Vec<String>,
    /// Send a file (PUT); an address that ends in `/` gets its name
    #[arg(short = 'T', long, value_name = "FILE", conflicts_with_all = ["data", "data_binary"], help_heading = "Request")]
    pub(crate) upload_file: Option<PathBuf>,

    /// Trust anybody's certificate: what is fetched may come from anyone on the way
    #[arg(short = 'k', long, help_heading = "Connection")]
    pub(crate) insecure: bool,
    /// Trust these certificate authorities (PEM), and not the system's
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "insecure",
        help_heading = "Connection"
    )]
    pub(crate) cacert: Option<PathBuf>,
    /// The version of HTTP: only 3 for now
    #[arg(
        long,
        value_name = "VERSION",
        default_value = "3",
        help_heading = "Connection"
    )]
    pub(crate) http: String,
    /// Where a host is, whatever the resolver says: HOST:PORT:ADDRESS[,ADDRESS…]; may be repeated
    #[arg(long, value_name = "HOST:PORT:ADDRESS", value_parser = resolve, help_heading = "Connection")]
    pub(crate) resolve: Vec<Override>,
    /// Only IPv4
    #[arg(
        short = '4',
        long,
        conflicts_with = "ipv6",
        help_heading = "Connection"
    )]
    pub(crate) ipv4: bool,
    /// Only IPv6
    #[arg(short = '6', long, help_heading = "Connection")]
    pub(crate) ipv6: bool,
    /// How long each fetch may take: seconds, or with a unit (1500ms)
    #[arg(short = 'm', long, value_name = "SPAN", value_parser = span, help_heading = "Connection")]
    pub(crate) max_time: Option<Duration>,
    /// How long it may take to connect: seconds, or with a unit
    #[arg(long, value_name = "SPAN", default_value = "10s", value_parser = span, help_heading = "Connection")]
    pub(crate) connect_timeout: Duration,
    /// How many fetches are under way at a time
    #[arg(
        long,
        value_name = "N",
        default_value = "100",
        help_heading = "Connection"
    )]
    pub(crate) parallel_max: NonZeroUsize,
    /// Fetch all so many times, each time over new connections, and sum up
    #[arg(long, value_name = "N", default_value_t = NonZeroUsize::MIN, help_heading = "Connection")]
    pub(crate) repeat: NonZeroUsize,
    /// Send requests at once where a session is resumed, as with --repeat; somebody on the way could send them again
    #[arg(long = "0rtt", help_heading = "Connection")]
    pub(crate) zero_rtt: bool,
    /// Congestion control of what is sent: a spec, as in `lastbyte sim --arm`
    #[arg(
        long,
        value_name = "SPEC",
        default_value = "cubic",
        help_heading = "Connection"
    )]
    pub(crate) congestion: String,
    /// How it starts: rapid-start, jumpstart, slow-start, …
    #[arg(long, value_name = "SPEC", help_heading = "Connection")]
    pub(crate) startup: Option<String>,
}

/// Where bodies go: the first to the first address, and so on.
#[derive(Debug, Default)]
pub(crate) struct Outputs(pub(crate) Vec<Output>);

/// Where a body goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// Standard output.
    Stdout,
    /// A file of this name.
    File(PathBuf),
    /// A file of the name that the address ends in.
    RemoteName,
}

impl Args for Outputs {
    fn augment_args(command: clap::Command) -> clap::Command {
        command
            .arg(
                Arg::new("output")
                    .short('o')
                    .long("output")
                    .value_name("FILE")
                    .action(ArgAction::Append)
                    .value_parser(value_parser!(PathBuf))
                    .help("Write the body into this file, `-` for the terminal; one for each address, in their order")
                    .help_heading("Output"),
            )
            .arg(
                Arg::new("remote-name")
                    .short('O')
                    .long("remote-name")
                    .action(ArgAction::Append)
                    .num_args(0)
                    .default_missing_value("true")
                    .value_parser(value_parser!(bool))
                    .help("Write the body into a file of the name that the address ends in; one for each address")
                    .help_heading("Output"),
            )
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Outputs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut found: Vec<(usize, Output)> = Vec::new();
        if let (Some(at), Some(paths)) = (
            matches.indices_of("output"),
            matches.get_many::<PathBuf>("output"),
        ) {
            found.extend(at.zip(paths.map(|path| {
                if path.as_os_str() == "-" {
                    Output::Stdout
                } else {
                    Output::File(path.clone())
                }
            })));
        }
        if let Some(at) = matches.indices_of("remote-name") {
            found.extend(at.map(|at| (at, Output::RemoteName)));
        }
        found.sort_by_key(|(at, _)| *at);
        Ok(Self(found.into_iter().map(|(_, output)| output).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Seconds where no unit is given, as curl has it.
fn span(text: &str) -> Result<Duration, String> {
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string());
    }
    units::span(text).map_err(|error| error.to_string())
}

fn resolve(text: &str) -> Result<Override, String> {
    let wrong = || {
        format!("`{text}` is not of the form HOST:PORT:ADDRESS, as in example.com:443:127.0.0.1")
    };
    // Past the colons of an IPv6 address.
    let host_end = if text.starts_with('[') {
        text.find(']').ok_or_else(wrong)?
    } else {
        0
    };
    let mut colons = text[host_end..].match_indices(':');
    let colon = host_end + colons.nth(1).ok_or_else(wrong)?.0;
    let (host_and_port, addresses) = (&text[..colon], &text[colon + 1..]);
    let url: Url = host_and_port
        .parse()
        .map_err(|error| format!("{}: {error}", wrong()))?;
    let addresses = addresses
        .split(',')
        .map(|address| address.trim_matches(['[', ']']).parse::<IpAddr>())
        .collect::<Result<Vec<IpAddr>, _>>()
        .map_err(|_| wrong())?;
    let origin: Origin = url.origin().clone();
    Ok(Override { origin, addresses })
}

#[cfg(test)]
mod tests;
