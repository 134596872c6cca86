//! What `lastbyte get` can be told.
//!
//! | module | owns |
//! |---|---|
//! | `config` | arguments from a file |
//! | `ordered` | options whose order on the command line counts, of several kinds |
//! | `values` | texts to values, with errors that say what was wanted |

mod config;
mod ordered;
mod values;

use core::{net::SocketAddr, num::NonZeroUsize, time::Duration};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use lastbyte_client::{ConnectTo, Override};

pub(crate) use self::config::expanded;
pub(crate) use self::ordered::{Data, Datum, Output, Outputs, Urls};
pub(crate) use self::values::Resume;
use self::values::{detour, dns_server, pin, pinned, redirects, resolve, resume, size, span};

const EXAMPLES: &str = "\
Examples:
  # A page to the terminal; with its head; the head only; after redirects.
  lastbyte get https://example.com/
  lastbyte get -i https://example.com/
  lastbyte get -I https://example.com/
  lastbyte get -L http://example.com/
  # Two files over one connection, the second under its name in the URL.
  lastbyte get https://example.com/a -o first.bin \\
    https://example.com/b.bin -O
  # Resume a download that broke off.
  lastbyte get -C - https://example.com/b.bin -O
  # Timing of ten connections, resumed with 0-RTT where the server accepts it.
  lastbyte get https://example.com/ -o /dev/null --timing --repeat 10 --0rtt
  # 0-RTT from one run to the next.
  lastbyte get --session-store sessions --0rtt -v https://example.com/ \\
    -o /dev/null
  # Retry after transient failures, a stalled transfer among them.
  lastbyte get --retry 5 --speed-limit 1k --speed-time 10 \\
    -O https://example.com/b.bin
  # Version of HTTP and total time, for scripts.
  lastbyte get --http 2 -so /dev/null \\
    -w '%{http_version} %{time_total}\\n' https://example.com/
  # A local server with a certificate of its own; log everything.
  lastbyte get -k -v --qlog qlogs/ https://localhost:4433/32k -o 32k
  lastbyte get --cacert ca.pem --resolve example.com:443:127.0.0.1 \\
    https://example.com/
  # Log in, and keep the session for the next run.
  lastbyte get -c cookies -b cookies -d name=value https://example.com/form
  # Uploads.
  lastbyte get -d name=value https://example.com/form
  lastbyte get -F name=value -F 'picture=@photo.png' https://example.com/form
  lastbyte get -T backup.tar https://example.com/backups/
  tar c . | lastbyte get -T - https://example.com/backup.tar

Exit codes are curl's: 2 bad usage, 3 malformed address, 5 proxy not resolved, 6 host not resolved, 7 no connection, 18 part of the body is missing, 22 status of 400 or more with --fail, 23 cannot write, 26 cannot read, 28 timeout, 33 cannot resume, 35 handshake failed, 47 too many redirects, 52 empty reply, 56 no response, 58 client certificate, 60 certificate not trusted, 61 bad compression, 77 CA file not readable, 90 wrong pinned key, 130 interrupted. With several URLs, that of the first that failed.

SSLKEYLOGFILE in the environment works like --keylog; http_proxy, https_proxy, all_proxy and no_proxy like --proxy and --noproxy. The reference is docs/get.md.";

/// Fetches over HTTP/3, 2 and 1.1, as curl would.
///
/// All addresses of an origin share one connection, and are fetched at the same time. Bodies go to the terminal unless -o
/// or -O says otherwise; then one comes after the other.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) urls: Urls,

    #[command(flatten)]
    pub(crate) outputs: Outputs,
    #[command(flatten)]
    pub(crate) shown: Shown,
    #[command(flatten)]
    pub(crate) request: Request,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// What is shown, and where.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct Shown {
    /// With -O: the name is what the server says (`content-disposition`); nothing is overwritten
    #[arg(short = 'J', long)]
    pub(crate) remote_header_name: bool,
    /// Put the files of -o and -O into this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) output_dir: Option<PathBuf>,
    /// Make the folders that -o and --output-dir name
    #[arg(long)]
    pub(crate) create_dirs: bool,
    /// Ask for the head only (HEAD), and print it
    #[arg(short = 'I', long)]
    pub(crate) head: bool,
    /// Put the heads of responses before their bodies
    #[arg(short, long)]
    pub(crate) include: bool,
    /// Write the heads of responses into this file, `-` for the terminal
    #[arg(short = 'D', long, value_name = "FILE")]
    pub(crate) dump_header: Option<PathBuf>,
    /// Give the file the time that the server says it is from
    #[arg(short = 'R', long)]
    pub(crate) remote_time: bool,
    /// Write to the terminal what comes when it comes, and not ten times a second
    #[arg(short = 'N', long)]
    pub(crate) no_buffer: bool,
    /// Say what happens: connections (`*`), requests (`>`), responses (`<`)
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// No progress bar, no errors
    #[arg(short, long)]
    pub(crate) silent: bool,
    /// With --silent: errors all the same
    #[arg(short = 'S', long)]
    pub(crate) show_error: bool,
    /// A progress bar from the beginning, and not only when it takes long
    #[arg(short = '#', long)]
    pub(crate) progress_bar: bool,
    /// A status of 400 or more is a failure, and its body is not kept
    #[arg(short, long, conflicts_with = "fail_with_body")]
    pub(crate) fail: bool,
    /// A status of 400 or more is a failure, and its body is kept
    #[arg(long)]
    pub(crate) fail_with_body: bool,
    /// Print this after each fetch, with `%{name}` for what came of it; @FILE for what is in a file
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) write_out: Option<String>,
    /// Print when what happened: lookup, connection, first byte, last byte
    #[arg(long)]
    pub(crate) timing: bool,
    /// With --timing: as JSON
    #[arg(long, requires = "timing")]
    pub(crate) json: bool,
    /// Write the events of each QUIC connection into this folder, as qlog
    #[arg(long, value_name = "DIR")]
    pub(crate) qlog: Option<PathBuf>,
    /// Append the secrets of each connection to this file, for Wireshark
    #[arg(long, value_name = "FILE")]
    pub(crate) keylog: Option<PathBuf>,
}

/// What is asked for.
#[derive(Debug, Args)]
#[command(next_help_heading = "Request")]
pub(crate) struct Request {
    /// A field of the request: "name: value", or "name:" to leave one out; @FILE for a line each; may be repeated
    #[arg(short = 'H', long, value_name = "FIELD")]
    pub(crate) header: Vec<String>,
    /// The method
    #[arg(short = 'X', long = "request", value_name = "METHOD")]
    pub(crate) method: Option<String>,
    #[command(flatten)]
    pub(crate) data: Data,
    /// Put what -d says into the address (GET)
    #[arg(short = 'G', long, conflicts_with = "upload_file")]
    pub(crate) get: bool,
    /// Send a file (PUT), `-` for standard input; an address that ends in `/` gets its name; one for each address
    #[arg(short = 'T', long, value_name = "FILE", conflicts_with_all = ["data", "data-binary", "data-raw", "data-urlencode", "form", "form-string", "head"])]
    pub(crate) upload_file: Vec<String>,
    /// Who is asking
    #[arg(short = 'A', long, value_name = "NAME")]
    pub(crate) user_agent: Option<String>,
    /// Where the address stood
    #[arg(short = 'e', long, value_name = "URL")]
    pub(crate) referer: Option<String>,
    /// Who we are: Basic authentication, for the address's own host
    #[arg(short, long, value_name = "NAME:PASSWORD")]
    pub(crate) user: Option<String>,
    /// Name and password are in `.netrc`, by host
    #[arg(short, long)]
    pub(crate) netrc: bool,
    /// They are in this file
    #[arg(long, value_name = "FILE")]
    pub(crate) netrc_file: Option<PathBuf>,
    /// They are there only if the address does not say them
    #[arg(long)]
    pub(crate) netrc_optional: bool,
    /// A token in place of name and password
    #[arg(long, value_name = "TOKEN", conflicts_with = "user")]
    pub(crate) oauth2_bearer: Option<String>,
    /// Cookies to be sent, NAME=VALUE, to the address's own host; or a file of them, to whom each is for
    #[arg(short = 'b', long, value_name = "DATA")]
    pub(crate) cookie: Vec<String>,
    /// Keep the cookies of servers, and write them into this file in the end, `-` for the terminal
    #[arg(short = 'c', long, value_name = "FILE")]
    pub(crate) cookie_jar: Option<PathBuf>,
    /// Leave out the cookies of the file that were for one session
    #[arg(short, long)]
    pub(crate) junk_session_cookies: bool,
    /// Only these bytes: 0-499, 500-, -500
    #[arg(
        short,
        long,
        value_name = "RANGE",
        allow_hyphen_values = true,
        conflicts_with = "continue_at"
    )]
    pub(crate) range: Option<String>,
    /// From this byte on, behind what the file has; `-` for where it ends
    #[arg(short = 'C', long, value_name = "OFFSET", value_parser = resume, allow_hyphen_values = true, conflicts_with_all = ["upload_file", "remote_header_name"])]
    pub(crate) continue_at: Option<Resume>,
    /// Ask for compressed content, and decompress it
    #[arg(long)]
    pub(crate) compressed: bool,
    /// Read arguments from this file, `-` for standard input: `name = "value"`, a line each
    #[arg(short = 'K', long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Take no more than so many bytes: 1000, 64k, 10M, 2G
    #[arg(long, value_name = "BYTES", value_parser = size)]
    pub(crate) max_filesize: Option<u64>,
    /// Go where redirects lead
    #[arg(short = 'L', long)]
    pub(crate) location: bool,
    /// The same, and tell all hosts there the credentials
    #[arg(long)]
    pub(crate) location_trusted: bool,
    /// How many redirects are followed; -1 for all
    #[arg(long, value_name = "N", default_value = "50", value_parser = redirects, allow_hyphen_values = true)]
    pub(crate) max_redirs: i64,
    /// A POST stays one after 301
    #[arg(long)]
    pub(crate) post301: bool,
    /// A POST stays one after 302
    #[arg(long)]
    pub(crate) post302: bool,
    /// A POST stays one after 303
    #[arg(long)]
    pub(crate) post303: bool,
}

/// Which versions of HTTP are spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Http {
    /// HTTP/3 first, the others a little later
    Auto,
    /// HTTP/1.1
    #[value(name = "1.1", alias = "1")]
    One,
    /// HTTP/2, or 1.1 where the server does not speak it
    #[value(name = "2")]
    Two,
    /// HTTP/3
    #[value(name = "3")]
    Three,
}

/// How servers are reached.
#[derive(Debug, Args)]
#[command(next_help_heading = "Connection")]
pub(crate) struct Connection {
    /// The version of HTTP
    #[arg(long, value_name = "VERSION", default_value = "auto", conflicts_with_all = ["http1_1", "http2", "http2_prior_knowledge", "http3", "http3_only"])]
    pub(crate) http: Http,
    /// As --http 1.1
    #[arg(long = "http1.1", conflicts_with_all = ["http2", "http2_prior_knowledge", "http3", "http3_only"])]
    pub(crate) http1_1: bool,
    /// As --http 2
    #[arg(long, conflicts_with_all = ["http2_prior_knowledge", "http3", "http3_only"])]
    pub(crate) http2: bool,
    /// HTTP/2 without asking the server, also without TLS
    #[arg(long, conflicts_with_all = ["http3", "http3_only"])]
    pub(crate) http2_prior_knowledge: bool,
    /// As --http auto
    #[arg(long, conflicts_with = "http3_only")]
    pub(crate) http3: bool,
    /// As --http 3
    #[arg(long)]
    pub(crate) http3_only: bool,
    /// Where else origins are served is read from this file, and written there, as curl does
    #[arg(long, value_name = "FILE")]
    pub(crate) alt_svc: Option<PathBuf>,
    /// TLS 1.2 or 1.3: that is so anyway
    #[arg(long = "tlsv1.2")]
    pub(crate) tlsv1_2: bool,
    /// TLS 1.3 only
    #[arg(long = "tlsv1.3", conflicts_with = "tlsv1_2")]
    pub(crate) tlsv1_3: bool,
    /// No later version of TLS than this; without 1.3 there is no HTTP/3
    #[arg(long, value_name = "VERSION", value_parser = ["1.2", "1.3", "default"], default_value = "default", hide_default_value = true)]
    pub(crate) tls_max: String,
    /// Trust anybody's certificate: what is fetched may come from anyone on the way
    #[arg(short = 'k', long)]
    pub(crate) insecure: bool,
    /// Trust these certificate authorities (PEM), and not the system's
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub(crate) cacert: Option<PathBuf>,
    /// Our certificate (PEM), for servers that ask
    #[arg(short = 'E', long, value_name = "FILE")]
    pub(crate) cert: Option<PathBuf>,
    /// Its private key (PEM), if it is in another file
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) key: Option<PathBuf>,
    /// The server's key is to be this: SHA-256 in Base64; may be repeated
    #[arg(long, value_name = "BASE64", value_parser = pin)]
    pub(crate) pin_sha256: Vec<String>,
    /// The same as curl writes it: sha256//BASE64;sha256//BASE64
    #[arg(long, value_name = "PINS", value_parser = pinned)]
    pub(crate) pinnedpubkey: Option<Pins>,
    /// Where a host is, whatever the resolver says: HOST:PORT:ADDRESS[,ADDRESS…]; may be repeated
    #[arg(long, value_name = "HOST:PORT:ADDRESS", value_parser = resolve)]
    pub(crate) resolve: Vec<Override>,
    /// Connect to HOST2:PORT2 in place of HOST1:PORT1, by the name of the first; what is left out is for all, or stays
    #[arg(long, value_name = "HOST1:PORT1:HOST2:PORT2", value_parser = detour)]
    pub(crate) connect_to: Vec<ConnectTo>,
    /// Go through this proxy, over TCP alone: HOST, HOST:PORT or NAME:PASSWORD@HOST:PORT; nothing for none
    #[arg(short = 'x', long, value_name = "URL")]
    pub(crate) proxy: Option<String>,
    /// Who we are to the proxy
    #[arg(short = 'U', long, value_name = "NAME:PASSWORD")]
    pub(crate) proxy_user: Option<String>,
    /// Whom to ask without the proxy: domains, addresses and networks, with commas; `*` for all
    #[arg(long, value_name = "LIST")]
    pub(crate) noproxy: Option<String>,
    /// Go through the proxy by a tunnel (CONNECT) also to `http://`
    #[arg(short = 'p', long)]
    pub(crate) proxytunnel: bool,
    /// Ask these DNS servers for names, and not the system: ADDRESS or ADDRESS:PORT, with commas
    #[arg(long, value_name = "ADDRESSES", value_parser = dns_server, value_delimiter = ',')]
    pub(crate) dns_servers: Vec<SocketAddr>,
    /// Only IPv4
    #[arg(short = '4', long, conflicts_with = "ipv6")]
    pub(crate) ipv4: bool,
    /// Only IPv6
    #[arg(short = '6', long)]
    pub(crate) ipv6: bool,
    /// How long each fetch may take: seconds, or with a unit (1500ms)
    #[arg(short = 'm', long, value_name = "SPAN", value_parser = span)]
    pub(crate) max_time: Option<Duration>,
    /// How long it may take to connect: seconds, or with a unit
    #[arg(long, value_name = "SPAN", default_value = "10s", value_parser = span)]
    pub(crate) connect_timeout: Duration,
    /// Begin again, so many times, what fails and may pass: late, not found, 408, 429, 500, 502, 503, 504
    #[arg(long, value_name = "N", default_value = "0", value_parser = crate::commands::values::count::<u32>(0..=u64::from(u32::MAX)))]
    pub(crate) retry: u32,
    /// How long to wait before that; 0 for a second, and twice as long each time
    #[arg(long, value_name = "SPAN", default_value = "0", value_parser = span)]
    pub(crate) retry_delay: Duration,
    /// For how long; 0 for ever
    #[arg(long, value_name = "SPAN", default_value = "0", value_parser = span)]
    pub(crate) retry_max_time: Duration,
    /// Also where nobody listens
    #[arg(long)]
    pub(crate) retry_connrefused: bool,
    /// After all failures
    #[arg(long)]
    pub(crate) retry_all_errors: bool,
    /// End what is slower than so many bytes a second, for as long as it may be
    #[arg(short = 'Y', long, value_name = "BYTES", value_parser = size)]
    pub(crate) speed_limit: Option<u64>,
    /// For how long it may be that slow; 30 s, if only how slow is said
    #[arg(short = 'y', long, value_name = "SPAN", value_parser = span)]
    pub(crate) speed_time: Option<Duration>,
    /// At the same time: that is so anyway
    #[arg(short = 'Z', long)]
    pub(crate) parallel: bool,
    /// How many fetches are under way at a time
    #[arg(long, value_name = "N", default_value = "100", value_parser = crate::commands::values::positive(1_000_000))]
    pub(crate) parallel_max: NonZeroUsize,
    /// Fetch all so many times, each time over new connections, and sum up
    #[arg(long, value_name = "N", default_value = "1", value_parser = crate::commands::values::positive(1_000_000_000))]
    pub(crate) repeat: NonZeroUsize,
    /// Send requests at once where a session is resumed; somebody on the way could send them again
    #[arg(long = "0rtt")]
    pub(crate) zero_rtt: bool,
    /// Keep sessions in this file, from one run to the next; it is as secret as a password
    #[arg(long, value_name = "FILE")]
    pub(crate) session_store: Option<PathBuf>,
    /// Congestion control of what is sent over QUIC: a spec, as in `lastbyte sim --arm`
    #[arg(long, value_name = "SPEC", default_value = "cubic")]
    pub(crate) congestion: String,
    /// How it starts: rapid-start, jumpstart, slow-start, …
    #[arg(long, value_name = "SPEC")]
    pub(crate) startup: Option<String>,
}

/// Keys that are pinned, by their SHA-256 in Base64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pins(pub(crate) Vec<String>);

#[cfg(test)]
mod tests;
