//! Arguments of `lastbyte get`.
//!
//! | module | owns |
//! |---|---|
//! | `curl` | options of curl that are refused |
//! | `ordered` | options whose order on the command line counts, of several kinds |
//! | `values` | parsers of values, whose errors name the expected form |

mod curl;
mod ordered;
mod values;

use core::{net::SocketAddr, num::NonZeroUsize, time::Duration};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use lastbyte_client::{ConnectTo, Override};

pub(crate) use self::curl::refusal;
pub(crate) use self::ordered::{Data, Datum, Output, Outputs};
pub(in crate::commands) use self::values::connect_to;
use self::values::{dns_server, resolve, span};
use crate::commands::{credentials::Credentials, values::Aead};

const EXAMPLES: &str = "\
Examples:
  # A page to stdout; with its header; the header only; following redirects.
  lastbyte get https://example.com/
  lastbyte get -i https://example.com/
  lastbyte get -I https://example.com/
  lastbyte get -L http://example.com/
  # Two files over one connection, the second named as in the URL.
  lastbyte get https://example.com/a -o first.bin \\
    https://example.com/b.bin -O
  # Timing of ten connections, resumed with 0-RTT if the server accepts it.
  lastbyte get https://example.com/ -o /dev/null --timing --repeat 10 --0rtt
  # 0-RTT across runs.
  lastbyte get --session-store sessions --0rtt -v https://example.com/ \\
    -o /dev/null
  # HTTP version and total time, for scripts.
  lastbyte get --http 2 -so /dev/null \\
    -w '%{http_version} %{time_total}\\n' https://example.com/
  # A local server with a self-signed certificate; log everything.
  lastbyte get -k -v --qlog qlogs/ https://localhost:4433/32k -o 32k
  lastbyte get --cacert ca.pem --resolve example.com:443:127.0.0.1 \\
    https://example.com/
  # Uploads.
  lastbyte get -d name=value https://example.com/form
  lastbyte get -T backup.tar https://example.com/backups/
  tar c . | lastbyte get -T - https://example.com/backup.tar

Exit codes are curl's: 2 bad usage, 3 malformed URL, 6 host not resolved, 7 no connection, 18 part of the body is missing, 22 status of 400 or more with --fail, 23 cannot write, 26 cannot read, 28 timeout, 35 TLS handshake failed, 47 too many redirects, 52 empty reply, 56 no response, 58 client certificate, 60 certificate not trusted, 61 bad compression, 77 CA file not readable, 90 wrong pinned key, 96 QUIC handshake failed, 130 interrupted. With several URLs, that of the first that failed.

SSLKEYLOGFILE in the environment works like --keylog. For what else curl does, use curl. Reference: docs/get.md.";

/// Fetch URLs over HTTP/3, 2 and 1.1, with curl's options
///
/// URLs of the same origin share a connection and are fetched in parallel. Bodies are written to stdout in the order of the
/// URLs, unless -o or -O is given.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// URL to fetch: `https://host[:port]/path`, or `http://…`
    #[arg(value_name = "URL", required = true)]
    pub(crate) urls: Vec<String>,

    #[command(flatten)]
    pub(crate) outputs: Outputs,
    #[command(flatten)]
    pub(crate) shown: Shown,
    #[command(flatten)]
    pub(crate) request: Request,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// Options for output.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct Shown {
    /// Send HEAD and print the response header
    #[arg(short = 'I', long)]
    pub(crate) head: bool,
    /// Print response headers before bodies
    #[arg(short, long)]
    pub(crate) include: bool,
    /// Log connections (`*`), requests (`>`) and responses (`<`) to stderr
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// Suppress the progress bar and error messages
    #[arg(short, long)]
    pub(crate) silent: bool,
    /// With --silent, print error messages all the same
    #[arg(short = 'S', long)]
    pub(crate) show_error: bool,
    /// Fail on status 400 or above; discard the body
    #[arg(short, long)]
    pub(crate) fail: bool,
    /// Print FORMAT after each transfer, with `%{name}` variables
    ///
    /// @FILE reads the format from a file. docs/get.md lists the variables.
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) write_out: Option<String>,
    /// Print a timeline: name lookup, connect, first byte, last byte
    ///
    /// docs/get.md describes columns and keys.
    #[arg(long, value_enum, value_name = "FORMAT", num_args = 0..=1, require_equals = true, default_missing_value = "text")]
    pub(crate) timing: Option<Timing>,
    /// Write a new qlog file for each QUIC connection to DIR
    ///
    /// Files of earlier runs stay: a name that is in use gets a number, as in get-0-0-2.sqlog.
    #[arg(long, value_name = "DIR")]
    pub(crate) qlog: Option<PathBuf>,
    /// Append TLS secrets to FILE, for Wireshark
    #[arg(long, value_name = "FILE")]
    pub(crate) keylog: Option<PathBuf>,
}

/// Format of the timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Timing {
    /// A table
    Text,
    /// JSON
    Json,
}

/// Options for requests.
#[derive(Debug, Args)]
#[command(next_help_heading = "Request")]
pub(crate) struct Request {
    /// Add a request header: "name: value"; repeatable
    ///
    /// "name:" removes a default header, except host and content-length; @FILE reads one header per line.
    #[arg(short = 'H', long, value_name = "FIELD")]
    pub(crate) header: Vec<String>,
    /// Request method
    #[arg(short = 'X', long = "request", value_name = "METHOD")]
    pub(crate) method: Option<String>,
    #[command(flatten)]
    pub(crate) data: Data,
    /// Upload FILE with PUT (`-`: stdin); one per URL
    ///
    /// A URL that ends in `/` gets the file's name appended.
    #[arg(short = 'T', long, value_name = "FILE", conflicts_with_all = ["data", "data-binary", "head"])]
    pub(crate) upload_file: Vec<String>,
    /// Credentials for HTTP Basic authentication, sent only to the original host
    #[arg(short, long, value_name = "NAME:PASSWORD")]
    pub(crate) user: Option<String>,
    /// Request only these bytes: 0-499, 500-, -500
    #[arg(short, long, value_name = "RANGE", allow_hyphen_values = true)]
    pub(crate) range: Option<String>,
    /// Request compressed content and decompress it
    #[arg(long)]
    pub(crate) compressed: bool,
    /// Follow redirects
    #[arg(short = 'L', long)]
    pub(crate) location: bool,
}

/// HTTP version to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Http {
    /// Try HTTP/3 first, HTTP/2 and 1.1 a little later
    Auto,
    /// HTTP/1.1
    #[value(name = "1.1", alias = "1")]
    One,
    /// HTTP/2, or 1.1 if the server does not support it
    #[value(name = "2")]
    Two,
    /// HTTP/3
    #[value(name = "3")]
    Three,
}

/// Options for connections.
#[derive(Debug, Args)]
#[command(next_help_heading = "Connection")]
pub(crate) struct Connection {
    /// HTTP version to use
    #[arg(long, value_name = "VERSION", default_value = "auto", overrides_with_all = ["http1_1", "http2", "http3", "http3_only"])]
    pub(crate) http: Http,
    /// Same as --http 1.1
    #[arg(long = "http1.1", overrides_with_all = ["http", "http2", "http3", "http3_only"])]
    pub(crate) http1_1: bool,
    /// Same as --http 2
    #[arg(long, overrides_with_all = ["http", "http1_1", "http3", "http3_only"])]
    pub(crate) http2: bool,
    /// Same as --http auto
    #[arg(long, overrides_with_all = ["http", "http1_1", "http2", "http3_only"])]
    pub(crate) http3: bool,
    /// Same as --http 3
    #[arg(long, overrides_with_all = ["http", "http1_1", "http2", "http3"])]
    pub(crate) http3_only: bool,
    /// Maximum TLS version; below 1.3 disables HTTP/3
    #[arg(long, value_name = "VERSION", value_parser = ["1.2", "1.3", "default"], default_value = "default", hide_default_value = true)]
    pub(crate) tls_max: String,
    /// Library that protects packets and TLS records with AES-GCM
    ///
    /// The handshake uses aws-lc.
    #[arg(long, value_enum, default_value_t = Aead::Auto)]
    pub(crate) aead: Aead,
    #[command(flatten)]
    pub(crate) credentials: Credentials,
    /// Use these addresses for a host and port; repeatable
    ///
    /// HOST:PORT:ADDRESS[,ADDRESS…]; the host `*` stands for all hosts.
    #[arg(long, value_name = "HOST:PORT:ADDRESS", value_parser = resolve)]
    pub(crate) resolve: Vec<Override>,
    /// Connect to HOST2:PORT2 in place of HOST1:PORT1; repeatable
    ///
    /// An empty HOST1 or PORT1 matches all; an empty HOST2 or PORT2 keeps the original. TLS still verifies HOST1.
    #[arg(long, value_name = "HOST1:PORT1:HOST2:PORT2", value_parser = connect_to)]
    pub(crate) connect_to: Vec<ConnectTo>,
    /// DNS servers to use in place of the system's: ADDRESS[:PORT],…
    #[arg(long, value_name = "ADDRESSES", value_parser = dns_server, value_delimiter = ',')]
    pub(crate) dns_servers: Vec<SocketAddr>,
    /// Use IPv4 only
    #[arg(short = '4', long, overrides_with = "ipv6")]
    pub(crate) ipv4: bool,
    /// Use IPv6 only
    #[arg(short = '6', long, overrides_with = "ipv4")]
    pub(crate) ipv6: bool,
    /// Time limit of each transfer: seconds, or with a unit (1500ms); 0: no limit
    #[arg(short = 'm', long, value_name = "SPAN", value_parser = span)]
    pub(crate) max_time: Option<Duration>,
    /// Time limit for connecting: seconds, or with a unit
    #[arg(long, value_name = "SPAN", default_value = "10s", value_parser = span)]
    pub(crate) connect_timeout: Duration,
    /// Maximum number of transfers at a time
    #[arg(long, value_name = "N", default_value = "100", value_parser = crate::commands::values::positive(1_000_000))]
    pub(crate) parallel_max: NonZeroUsize,
    /// Fetch everything N times, over new connections, and print a summary
    #[arg(long, value_name = "N", default_value = "1", value_parser = crate::commands::values::positive(1_000_000_000))]
    pub(crate) repeat: NonZeroUsize,
    /// Send requests as 0-RTT data on resumed sessions
    ///
    /// 0-RTT data can be replayed by an attacker on the path.
    #[arg(long = "0rtt")]
    pub(crate) zero_rtt: bool,
    /// Keep TLS sessions in FILE from run to run
    ///
    /// The file is as secret as a password.
    #[arg(long, value_name = "FILE")]
    pub(crate) session_store: Option<PathBuf>,
    /// Congestion control for uploads over QUIC: a spec (docs/congestion.md)
    #[arg(long, value_name = "SPEC", default_value = "cubic")]
    pub(crate) congestion: String,
}

#[cfg(test)]
mod tests;
