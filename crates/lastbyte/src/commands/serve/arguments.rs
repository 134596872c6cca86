//! Options of `lastbyte serve`, which have the same names on the command line and in a configuration file.

use std::{
    net::SocketAddr,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use clap::{Args, ValueEnum};
use lastbyte_http3::StallLimit;
use lastbyte_quic::endpoint::{self, RateLimit};
use lastbyte_record::packed::Packing;
use lastbyte_server::{
    Sites, Versions,
    access::Format,
    budget,
    proxy::{self, Checks, Upstream},
    routes::{Place, PlaceError},
    server_timing::Asks,
    tcp,
};
use lastbyte_units as units;
use lastbyte_wire::packet::Version;

use super::{
    descriptors,
    route::{HealthPath, ROUTES_MAX, Route, health, hint},
};
use crate::{
    commands::values::{self, Aead},
    failure::Failure,
};

/// The defaults over QUIC.
const QUIC: endpoint::Limits = endpoint::Limits::DEFAULT;

const EXAMPLES: &str = "\
Examples:
  # A directory, with a generated certificate; prints how to trust it.
  lastbyte serve --self-signed public/
  # Objects by size (/400kB, /1MiB), two workers; each connection is assigned
  # to an arm of the experiment and logged.
  lastbyte serve --self-signed --workers 2 --experiment four-arms \\
    --log conns.ndjson
  # Reverse proxy for another server.
  lastbyte serve --listen '[::]:443' --cert chain.pem --key key.pem \\
    --proxy http://127.0.0.1:8080
  # In production: redirect from HTTP, export metrics, log requests.
  lastbyte serve --listen '[::]:443' --http-listen '[::]:80' \\
    --cert chain.pem --key key.pem --metrics 127.0.0.1:9100 \\
    --access-log access.ndjson --congestion rapid-start /srv/www
  # Validate a configuration file.
  lastbyte serve --config serve.toml --check
  # Log the events of each connection, for qvis and Wireshark.
  lastbyte serve --self-signed --qlog qlogs/ --keylog keys.txt

The log has a line per connection, over QUIC with H2O's keys; `lastbyte query` and `lastbyte report` read it. On Ctrl-C or SIGTERM, the server accepts no more requests (GOAWAY) and finishes those in flight for up to --drain. On SIGHUP, it reloads the configuration file, certificate, ticket keys and arms.

Reference: docs/serve.md.";

/// Serve a directory, objects by size, or an upstream server.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Directory to serve; without it, objects by size only (/400kB)
    #[arg(value_name = "DIR")]
    pub(super) directory: Option<PathBuf>,
    /// Read options from FILE (TOML); command-line options override it
    ///
    /// A key is the name of an option without its dashes: `listen = "[::]:443"`. Limits that few servers change are keys of the file only: docs/serve.md. SIGHUP reloads the file.
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// Validate the configuration and exit
    #[arg(long)]
    pub(super) check: bool,
    /// Address and port for UDP and TCP; port 0 selects a free port
    ///
    /// A port alone is a port of all addresses. An IPv6 wildcard address accepts IPv4 as well.
    #[arg(long, value_name = "[ADDR:]PORT", default_value = "[::]:4433", value_parser = values::any_by_default)]
    pub(super) listen: SocketAddr,
    /// HTTP versions to serve: 1.1 and 2 over TCP, 3 over UDP
    #[arg(long, value_name = "V,...", value_delimiter = ',', default_value = "1.1,2,3", value_parser = ["1.1", "2", "3"])]
    http: Vec<String>,
    /// Address of a plain-HTTP listener that redirects to HTTPS
    ///
    /// A port alone is a port of all addresses.
    #[arg(long, value_name = "ADDR:PORT", value_parser = values::any_by_default)]
    pub(super) http_listen: Option<SocketAddr>,
    /// Address for /metrics (Prometheus) and /healthz, over plain HTTP
    ///
    /// A port alone is a port of 127.0.0.1.
    #[arg(long, value_name = "[ADDR:]PORT", value_parser = values::loopback_by_default)]
    pub(super) metrics: Option<SocketAddr>,
    /// Unix socket by which a later process replaces this one without a lost connection
    ///
    /// If a server listens there, its sockets are taken over, and it finishes its connections for up to its --drain. A file that
    /// is not a socket is not replaced.
    #[arg(long, value_name = "FILE")]
    pub(super) handover: Option<PathBuf>,
    /// Certificate chain (PEM); repeatable, and a client gets that of its server name
    ///
    /// The first is for clients whose server name (SNI) is in none. Files are read again when they change.
    #[arg(long, value_name = "FILE")]
    pub(super) cert: Vec<PathBuf>,
    /// Private key of the certificate (PEM); as often as --cert, in the same order
    #[arg(long, value_name = "FILE")]
    pub(super) key: Vec<PathBuf>,
    /// Obtain and renew a certificate for these names by ACME
    ///
    /// You agree to the authority's terms of service. The names must lead to this server: to port 443, or to port 80 and
    /// --http-listen.
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        value_parser = values::host_name,
        requires = "acme_state",
        help_heading = "ACME"
    )]
    pub(super) acme: Vec<String>,
    /// Directory for account, certificate and key; created with mode 0700
    #[arg(long, value_name = "DIR", requires = "acme", help_heading = "ACME")]
    pub(super) acme_state: Option<PathBuf>,
    /// Email address for messages of the authority; repeatable
    #[arg(long, value_name = "EMAIL", help_heading = "ACME", hide = true)]
    pub(super) acme_contact: Vec<String>,
    /// Directory URL of the authority
    ///
    /// For trials, that of Let's Encrypt's staging environment.
    #[arg(
        long,
        value_name = "URL",
        default_value = "https://acme-v02.api.letsencrypt.org/directory",
        value_parser = values::https_url,
        help_heading = "ACME"
    )]
    pub(super) acme_directory: String,
    /// CA certificates of the directory's server, in place of the system's (PEM)
    #[arg(long, value_name = "FILE", help_heading = "ACME", hide = true)]
    pub(super) acme_ca: Option<PathBuf>,
    /// Generate a self-signed certificate for localhost, valid for two weeks
    #[arg(long)]
    pub(super) self_signed: bool,
    /// Names and addresses in the generated certificate
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        default_value = "localhost,127.0.0.1,::1"
    )]
    pub(super) name: Vec<String>,
    /// Ticket keys shared with other servers, for resumption across them
    ///
    /// One secret of 64 hexadecimal digits per line, newest first.
    #[arg(long, value_name = "FILE")]
    pub(super) ticket_keys: Option<PathBuf>,
    /// Threads for HTTP/3, and as many for HTTP/1.1 and 2 (1 to 255) [default: CPU cores]
    #[arg(long, value_name = "N", value_parser = values::positive(255))]
    pub(super) workers: Option<NonZeroUsize>,
    /// List directories that have no index.html
    #[arg(long, help_heading = "Site")]
    pub(super) listing: bool,
    /// Serve files whose names start with a dot
    ///
    /// Files in .well-known are served without this option.
    #[arg(long, help_heading = "Site", hide = true)]
    pub(super) hidden: bool,
    /// Serve objects by size (/32k), /delay/ and /status/ beside the directory
    ///
    /// For tests only: any client can request any number of bytes.
    #[arg(long, help_heading = "Site", conflicts_with = "proxy")]
    pub(super) generated: bool,
    /// Time before a cached file is looked up again; 0s to disable the cache
    ///
    /// A file that is replaced or changed is noticed after this time at the latest. Files of up to 64 KiB are kept in memory.
    #[arg(long, value_name = "SPAN", default_value = "1s", value_parser = units::span, help_heading = "Site", hide = true)]
    pub(super) file_cache: Duration,
    /// Serve the pages of a corpus, with generated bodies, to browsers
    ///
    /// The document of page N, from 0, is /N/0. Requests for any host are answered. For tests only: docs/compare.md.
    #[arg(long, value_name = "FILE", help_heading = "Site", conflicts_with_all = ["proxy", "directory", "generated"])]
    pub(super) pages: Option<PathBuf>,
    /// Send 103 Early Hints before documents of --pages that have hints (HTTP/2 and 3)
    #[arg(long, help_heading = "Site", requires = "pages")]
    pub(super) early_hints: bool,
    /// Add a field to responses to GET and HEAD: 'cache-control: max-age=60'
    #[arg(long, value_name = "FIELD", help_heading = "Site", value_parser = field)]
    pub(super) header: Vec<(String, String)>,
    /// Answer requests for HOST/PATH by another target: 'www.example.com=/srv/www'; repeatable
    ///
    /// A target is a directory, the URL of an upstream server, `sink` (receives uploads) or `generated` (objects by size):
    /// `www.example.com=/srv/www`, `*.example.com/api=http://127.0.0.1:8080`, `/upload=sink`. The path is not removed.
    #[arg(long, value_name = "ROUTE", help_heading = "Site")]
    pub(super) route: Vec<Route>,
    /// Send a link as 103 Early Hints: '/=</app.css>; rel=preload; as=style'
    ///
    /// Over HTTP/2 and 3, before responses of upstream servers and delayed ones; others have the field themselves. Repeatable.
    #[arg(long, value_name = "LINK", help_heading = "Site", value_parser = hint)]
    pub(super) hint: Vec<(String, String)>,
    /// Send 103 Early Hints over HTTP/1.1 as well, also those of upstream servers
    ///
    /// Some clients of HTTP/1.1 take a 103 for the response (RFC 8297 §3).
    #[arg(long, help_heading = "Site", hide = true)]
    pub(super) http1_hints: bool,
    /// Responses with `Server-Timing`: `all`, or of requests with a field: 'x-timing: 4711'
    ///
    /// It has the time until the header of the response in milliseconds, that of the upstream server, and the route.
    #[arg(long, value_name = "FIELD", help_heading = "Site", value_parser = server_timing, hide = true)]
    pub(super) server_timing: Option<Asks>,
    /// Forward all requests to this upstream server
    ///
    /// `http://127.0.0.1:8080`, `https://…`, `h2c://…` for HTTP/2 without TLS, or `unix:/run/app.sock`; several with commas between them.
    #[arg(long, value_name = "URL", help_heading = "Proxy")]
    pub(super) proxy: Option<Upstream>,
    /// CA certificates for the upstream server (PEM) [default: the system's]
    #[arg(long, value_name = "FILE", help_heading = "Proxy")]
    pub(super) proxy_ca: Option<PathBuf>,
    /// Time limit for connecting to the upstream server
    #[arg(long, value_name = "SPAN", default_value = "5s", value_parser = values::time_limit, help_heading = "Proxy", hide = true)]
    proxy_connect_timeout: Duration,
    /// Time limit for the response header, and for each pause in a body
    #[arg(long, value_name = "SPAN", default_value = "60s", value_parser = values::time_limit, help_heading = "Proxy")]
    proxy_timeout: Duration,
    /// HTTP version for an `https` upstream; 2 falls back to 1.1
    #[arg(long, value_name = "V", default_value = "1.1", value_parser = ["1.1", "2"], help_heading = "Proxy")]
    proxy_http: String,
    /// Maximum requests in flight to the upstream server
    ///
    /// Over HTTP/1.1, each request uses a connection. At the limit, new requests replace those of stalled clients.
    #[arg(long, value_name = "N", default_value_t = proxy::Limits::default().requests, value_parser = values::count::<usize>(1..=1_000_000), help_heading = "Proxy", hide = true)]
    proxy_requests: usize,
    /// Maximum requests in flight to one of several upstream servers [default: no limit]
    ///
    /// At the limit, another server receives the request.
    #[arg(long, value_name = "N", value_parser = values::count::<usize>(1..=1_000_000), help_heading = "Proxy", hide = true)]
    proxy_server_requests: Option<usize>,
    /// Time in which the share of an upstream server that came back grows; 0s for at once
    #[arg(long, value_name = "SPAN", default_value = "0s", value_parser = units::span, help_heading = "Proxy", hide = true)]
    proxy_slow_start: Duration,
    /// Maximum streams per HTTP/2 connection to the upstream server
    #[arg(long, value_name = "N", default_value_t = proxy::Limits::default().streams, value_parser = values::count::<u32>(1..=1000), help_heading = "Proxy", hide = true)]
    proxy_streams: u32,
    /// Forward request fields whose names contain `_`
    ///
    /// Many applications read `_` as `-`.
    #[arg(long, help_heading = "Proxy", hide = true)]
    pub(super) proxy_underscores: bool,
    /// Path of GET requests that check upstream servers: `/healthz`, or of a route, `/api=/healthz`
    ///
    /// A status of 2xx or 3xx passes; a server that is out gets no request before that. Repeatable.
    #[arg(long, value_name = "PATH", value_parser = health, help_heading = "Proxy", hide = true)]
    proxy_health: Vec<HealthPath>,
    /// Time from the end of a check to the next; at least 1s
    #[arg(long, value_name = "INTERVAL", default_value = "5s", value_parser = values::interval, help_heading = "Proxy", hide = true)]
    proxy_health_interval: Duration,
    /// Time limit of a check, with the time to connect
    #[arg(long, value_name = "SPAN", default_value = "2s", value_parser = values::time_limit, help_heading = "Proxy", hide = true)]
    proxy_health_timeout: Duration,
    /// Consecutive checks that failed after which a server gets no requests
    #[arg(long, value_name = "N", default_value = "2", value_parser = values::count::<u32>(1..=100), help_heading = "Proxy", hide = true)]
    proxy_health_failures: u32,
    /// Lifetime of the Alt-Svc advertisement of HTTP/3; 0s to disable it
    #[arg(long, value_name = "SPAN", default_value = "86400s", value_parser = units::span, help_heading = "Site")]
    pub(super) alt_svc: Duration,
    /// Congestion control: a spec such as rapid-start, cubic or bbr
    ///
    /// `lastbyte specs` lists presets and keys. The default starts with the 10 packets of RFC 9002; presets named alone
    /// start with 30.
    #[arg(
        long,
        value_name = "SPEC",
        default_value = CONGESTION,
        help_heading = "Transport"
    )]
    pub(super) congestion: String,
    /// Congestion control of the kernel for HTTP/1.1 and 2: cubic, bbr [default: the system's]
    #[arg(long, value_name = "NAME", help_heading = "Transport")]
    pub(super) tcp_congestion: Option<String>,
    /// Assign each connection to an arm of this experiment: a file, `four-arms`, or `off`
    #[arg(long, value_name = "EXP", help_heading = "Transport")]
    pub(super) experiment: Option<String>,
    /// Derive a connection's arm from the client's address
    ///
    /// All connections from an IPv4 address or an IPv6 /64 are in one arm.
    #[arg(long, help_heading = "Transport")]
    pub(super) sticky: bool,
    /// When to validate client addresses with Retry packets
    #[arg(long, value_enum, default_value_t = Retry::Load, help_heading = "Transport")]
    pub(super) retry: Retry,
    /// Reject 0-RTT
    #[arg(long, help_heading = "Transport")]
    pub(super) no_0rtt: bool,
    /// Library that protects packets and TLS records with AES-GCM
    ///
    /// The handshake uses aws-lc.
    #[arg(long, value_enum, default_value_t = Aead::Auto, help_heading = "Transport")]
    pub(super) aead: Aead,
    /// QUIC versions, in order of preference
    #[arg(long, value_name = "V,...", value_delimiter = ',', default_value = "1,2", value_parser = version, help_heading = "Transport")]
    pub(super) quic_version: Vec<Version>,
    /// Maximum UDP payload to probe for, in bytes
    #[arg(long, value_name = "BYTES", default_value = "1472", value_parser = values::size::<u16>(1200..=65_000), help_heading = "Transport")]
    pub(super) mtu: u16,
    /// UDP payload to start with, in bytes
    ///
    /// Initial windows are counted in packets of this size. More than 1200 fails on paths with a smaller MTU.
    #[arg(long, value_name = "BYTES", default_value = "1200", value_parser = values::size::<u16>(1200..=65_000), help_heading = "Transport")]
    pub(super) initial_mtu: u16,
    /// Number in connection IDs by which a load balancer routes to this server
    ///
    /// 0 to 255, or a server of the --lb-config. Without it, stateless resets are bound to the host (its name and machine ID).
    #[arg(long, value_name = "N", value_parser = values::count::<u64>(0..=u64::MAX), help_heading = "Transport")]
    pub(super) server_id: Option<u64>,
    /// Issue connection IDs for the load balancer with this configuration file
    ///
    /// The file of `lastbyte lb`: the first of its [[ids]] is used, and [retry]. Requires --server-id.
    #[arg(long, value_name = "FILE", help_heading = "Transport")]
    pub(super) lb_config: Option<PathBuf>,
    /// Append a line per connection to FILE
    #[arg(long, value_name = "FILE", value_parser = values::log(), help_heading = "Logs")]
    pub(super) log: Option<PathBuf>,
    /// Append a line per request to FILE
    #[arg(long, value_name = "FILE", value_parser = values::log(), help_heading = "Logs")]
    pub(super) access_log: Option<PathBuf>,
    /// Format of the access log
    #[arg(long, value_enum, default_value_t = AccessFormat::Ndjson, help_heading = "Logs", hide = true)]
    access_format: AccessFormat,
    /// Site in the logs: fra1, or by host or path: a.example=fra1-a
    #[arg(long, value_name = "SITE", value_parser = site, help_heading = "Logs")]
    pub(super) site: Vec<SiteName>,
    /// Rotate a log to FILE.1 when it reaches this size: 1GB
    #[arg(long, value_name = "BYTES", value_parser = values::size::<u64>(LOG_ROTATE_MIN..=u64::MAX), help_heading = "Logs")]
    pub(super) log_rotate: Option<u64>,
    /// Number of rotated logs to keep
    #[arg(long, value_name = "N", default_value = "10", value_parser = values::count::<u32>(0..=1_000_000), help_heading = "Logs", hide = true)]
    pub(super) log_keep: u32,
    /// Compress rotated logs: gzip, zstd, none
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "none",
        help_heading = "Logs",
        hide = true
    )]
    pub(super) log_compress: Packing,
    /// Write a qlog file for each connection to DIR
    #[arg(long, value_name = "DIR", help_heading = "Logs")]
    pub(super) qlog: Option<PathBuf>,
    /// Append TLS secrets to FILE, for Wireshark, as SSLKEYLOGFILE does
    #[arg(long, value_name = "FILE", help_heading = "Logs")]
    pub(super) keylog: Option<PathBuf>,
    /// Grace period for in-flight requests on shutdown
    #[arg(long, value_name = "SPAN", default_value = "5s", value_parser = units::span, help_heading = "Limits")]
    pub(super) drain: Duration,
    /// Maximum TCP connections, those of --http-listen included
    #[arg(long, value_name = "N", default_value_t = tcp::Limits::default().connections, value_parser = values::count::<usize>(1..=1_000_000_000), help_heading = "Limits", hide = true)]
    tcp_connections: usize,
    /// Maximum TCP connections from an IPv4 address or IPv6 /56
    ///
    /// No address has more than there is room left; connections above the limit are closed.
    #[arg(long, value_name = "N", default_value_t = tcp::Limits::default().connections_per_prefix, value_parser = values::count::<usize>(1..=1_000_000_000), help_heading = "Limits", hide = true)]
    tcp_connections_per_prefix: usize,
    /// Maximum QUIC connections per worker
    #[arg(long, value_name = "N", default_value_t = QUIC.connections, value_parser = values::count::<usize>(1..=1_000_000_000), help_heading = "Limits")]
    max_connections: usize,
    /// Maximum QUIC handshakes in progress per worker
    #[arg(long, value_name = "N", default_value_t = QUIC.handshakes, value_parser = values::count::<usize>(1..=1_000_000_000), help_heading = "Limits", hide = true)]
    max_handshakes: usize,
    /// Maximum handshakes of validated clients per IPv4 address or IPv6 /56
    ///
    /// In progress, over QUIC, per worker.
    #[arg(long, value_name = "N", default_value_t = QUIC.handshakes_per_prefix, value_parser = values::count::<usize>(1..=1_000_000_000), help_heading = "Limits", hide = true)]
    max_handshakes_per_prefix: usize,
    /// Maximum handshakes of clients whose address is not validated
    ///
    /// In progress, over QUIC, per worker.
    #[arg(long, value_name = "N", default_value_t = QUIC.unvalidated, value_parser = values::count::<usize>(1..=1_000_000_000), help_heading = "Limits", hide = true)]
    max_unvalidated: usize,
    /// Maximum stateless resets per second and worker; 0 disables them
    #[arg(long, value_name = "N", default_value_t = QUIC.resets.per_second, value_parser = values::count::<u32>(0..=1_000_000_000), help_heading = "Limits", hide = true)]
    max_resets: u32,
    /// Maximum Version Negotiation packets per second and worker; 0 disables them
    #[arg(long, value_name = "N", default_value_t = QUIC.version_negotiations.per_second, value_parser = values::count::<u32>(0..=1_000_000_000), help_heading = "Limits", hide = true)]
    max_version_negotiations: u32,
    /// Maximum refused clients that get an answer per second and worker; 0 disables them
    #[arg(long, value_name = "N", default_value_t = QUIC.refusals.per_second, value_parser = values::count::<u32>(0..=1_000_000_000), help_heading = "Limits", hide = true)]
    max_refusals: u32,
    /// Maximum queued packets without a connection per worker
    ///
    /// Retry, Version Negotiation, stateless resets and refusals.
    #[arg(long, value_name = "N", default_value_t = QUIC.answers, value_parser = values::count::<usize>(1..=1_000_000_000), help_heading = "Limits", hide = true)]
    max_pending_answers: usize,
    /// Time limit for handshakes, QUIC and TLS over TCP
    #[arg(long, value_name = "SPAN", default_value = "10s", value_parser = values::time_limit, help_heading = "Limits", hide = true)]
    handshake_timeout: Duration,
    /// Time limit for an HTTP/1.1 request header, from the end of the previous request
    #[arg(long, value_name = "SPAN", default_value = "30s", value_parser = values::time_limit, help_heading = "Limits", hide = true)]
    head_timeout: Duration,
    /// Time limit for an HTTP/2 connection without requests
    #[arg(long, value_name = "SPAN", default_value = "60s", value_parser = values::time_limit, help_heading = "Limits", hide = true)]
    idle_timeout: Duration,
    /// Period in which a request has to transfer 3000 bytes (key `stall-bytes`)
    ///
    /// Applies to responses that a client reads too slowly and to request bodies that it sends too slowly.
    #[arg(long, value_name = "SPAN", default_value = "30s", value_parser = values::time_limit, help_heading = "Limits")]
    stall_timeout: Duration,
    /// Minimum bytes per stall-timeout; slower requests are aborted
    #[arg(long, value_name = "BYTES", default_value = "3000", value_parser = units::bytes, help_heading = "Limits", hide = true)]
    stall_bytes: u64,
    /// Memory for buffered bodies of all connections
    ///
    /// At the limit, handlers and upstream servers are not read from. As much again for windows of request bodies.
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = values::size::<u64>(1_048_576..=1_099_511_627_776), help_heading = "Limits", hide = true)]
    pub(super) buffer_memory: u64,
    /// Maximum flow-control window for request bodies, per connection
    ///
    /// Windows grow to four times what arrives in a round trip.
    #[arg(long, value_name = "SIZE", default_value = "16MiB", value_parser = values::size::<u64>(65_536..=1_073_741_824), help_heading = "Limits", hide = true)]
    pub(super) upload_window: u64,
    /// Maximum size of a request header
    #[arg(long, value_name = "BYTES", default_value = "64KiB", value_parser = values::size::<u32>(1024..=1_048_576), help_heading = "Limits", hide = true)]
    pub(super) head_size: u32,
    /// Maximum concurrent requests per HTTP/2 connection
    #[arg(long, value_name = "N", default_value_t = tcp::Limits::default().streams, value_parser = values::count::<u32>(1..=u64::from(u32::MAX)), help_heading = "Limits", hide = true)]
    http2_streams: u32,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Retry {
    /// Always
    Always,
    /// From 500 concurrent handshakes on
    Load,
    /// Never
    Never,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum AccessFormat {
    /// One JSON object per line
    Ndjson,
    /// Common Log Format
    Common,
    /// Combined Log Format (with referer and user agent)
    Combined,
}

/// A smaller log would hold a few lines only.
const LOG_ROTATE_MIN: u64 = 4096;

/// Default congestion control of `serve`: Rapid Start's growth from the initial window of RFC 9002 §7.2, without a jump.
pub(super) const CONGESTION: &str = "rapid-no-jump:initial-window=10p";

/// Parses an address and a port, or a port of 127.0.0.1.
fn version(text: &str) -> Result<Version, String> {
    match text {
        "1" | "v1" => Ok(Version::V1),
        "2" | "v2" => Ok(Version::V2),
        _ => Err("unknown version of QUIC (expected 1 or 2)".into()),
    }
}

/// The name of a site, and whose: without a place, of all requests that have no other.
type SiteName = (Option<Place>, Arc<str>);

/// Parses `NAME` or `PLACE=NAME`.
fn site(text: &str) -> Result<SiteName, String> {
    let (place, name) = match text.split_once('=') {
        Some((place, name)) => (Some(place), name),
        None => (None, text),
    };
    let is_short = (1..=64).contains(&name.len());
    if !is_short || name.chars().any(char::is_control) {
        return Err("expected a name of 1 to 64 bytes without control characters".into());
    }
    let place = place.map(str::parse).transpose();
    let place = place.map_err(|error: PlaceError| error.to_string())?;
    Ok((place, name.into()))
}

/// Parses a header field, as `name: value`.
fn field(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once(':')
        .ok_or("missing colon (expected `name: value`)")?;
    let name = name.trim().to_ascii_lowercase();
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    if name.is_empty() || !name.chars().all(is_token) {
        return Err(format!("invalid header field name `{name}`"));
    }
    if matches!(
        name.as_str(),
        "connection" | "content-length" | "keep-alive" | "transfer-encoding" | "upgrade"
    ) {
        return Err(format!("header field `{name}` is set by the server"));
    }
    let value = value.trim();
    if value.chars().any(char::is_control) {
        return Err("control character in the value of a header field".into());
    }
    Ok((name, value.to_owned()))
}

/// Parses `all`, or a header field.
fn server_timing(text: &str) -> Result<Asks, String> {
    match text {
        "all" => Ok(Asks::All),
        _ => match field(text)? {
            (_, value) if value.is_empty() => Err("no value (expected `name: value`)".into()),
            (name, value) => Ok(Asks::Field(name, value)),
        },
    }
}

impl Arguments {
    /// Checks that there is one certificate.
    pub(super) fn validate_certificate(&self) -> Result<(), Failure> {
        let wrong = |text: &str| Err(Failure::Usage(text.into()));
        let (certificates, keys) = (self.cert.len(), self.key.len());
        let has_files = certificates + keys > 0;
        if self.self_signed && has_files {
            return wrong("--self-signed cannot be combined with --cert and --key");
        }
        if certificates != keys {
            return Err(Failure::Usage(format!(
                "--cert and --key require each other: {certificates} --cert, {keys} --key (expected as many)"
            )));
        }
        let has_acme = !self.acme.is_empty();
        if has_acme && (has_files || self.self_signed) {
            return wrong("--acme cannot be combined with --cert, --key or --self-signed");
        }
        if !has_acme && (!self.acme_contact.is_empty() || self.acme_ca.is_some()) {
            return wrong("`acme-contact` and `acme-ca` require `acme`");
        }
        if has_acme && !cfg!(feature = "acme") {
            return wrong(
                "this build has no ACME client (compile it with `--features acme`, as in `cargo build --release --features acme`)",
            );
        }
        if !self.self_signed && !has_files && !has_acme {
            return wrong(
                "no certificate (expected --cert FILE --key FILE, --acme NAME, or --self-signed to generate one)",
            );
        }
        Ok(())
    }

    /// Checks combinations of options, except for the certificate.
    pub(super) fn validate(&self) -> Result<(), Failure> {
        let wrong = |text: &str| Err(Failure::Usage(text.into()));
        if self.experiment.is_some() && self.congestion != CONGESTION {
            return wrong(
                "--experiment cannot be combined with --congestion: its arms set the congestion control",
            );
        }
        if self.initial_mtu > self.mtu {
            return Err(Failure::Usage(format!(
                "--initial-mtu: {} (expected at most the --mtu, {})",
                self.initial_mtu, self.mtu
            )));
        }
        if self.lb_config.is_some() && self.server_id.is_none() {
            return wrong("--lb-config requires --server-id");
        }
        if self.sticky && self.experiment.is_none() {
            return wrong("--sticky requires --experiment");
        }
        if self.log.is_some() && self.log == self.access_log {
            return wrong("--log and --access-log cannot be the same file");
        }
        if self.log_rotate.is_some() && self.log.is_none() && self.access_log.is_none() {
            return wrong("--log-rotate requires --log or --access-log");
        }
        if self.log_compress != Packing::None && self.log_rotate.is_none() {
            return wrong("`log-compress` requires --log-rotate BYTES: it compresses rotated logs");
        }
        let has_site_options = self.listing || self.hidden || !self.header.is_empty();
        let has_sites = self.route.iter().any(|route| route.upstream().is_none());
        if self.proxy.is_some() && (self.directory.is_some() || (has_site_options && !has_sites)) {
            return wrong(
                "--proxy cannot be combined with a directory, --listing, --header or the key `hidden`",
            );
        }
        let is_secure = self.upstreams().any(|server| server.is_secure);
        if self.proxy_ca.is_some() && !is_secure {
            return wrong("--proxy-ca requires a --proxy with https");
        }
        if self.has_proxy_http2() && !is_secure {
            return wrong(
                "--proxy-http 2 requires a --proxy with https (use `h2c://` for HTTP/2 without TLS)",
            );
        }
        if self
            .site
            .iter()
            .filter(|(place, _)| place.is_none())
            .count()
            > 1
        {
            return wrong("--site: two names without a place (expected one; others as PLACE=NAME)");
        }
        for (name, count) in [
            ("route", self.route.len()),
            ("hint", self.hint.len()),
            ("site", self.site.len()),
            ("proxy-health", self.proxy_health.len()),
        ] {
            if count > ROUTES_MAX {
                return Err(Failure::Usage(format!(
                    "--{name}: {count} values (expected at most {ROUTES_MAX})"
                )));
            }
        }
        let routes: Vec<&Place> = self.route.iter().map(|it| &it.place).collect();
        let sites: Vec<&Place> = self.site.iter().filter_map(|it| it.0.as_ref()).collect();
        let checked = self.proxy_health.iter().filter_map(|it| it.0.as_ref());
        let checked: Vec<&Place> = checked.collect();
        self.validate_health(&checked)?;
        for (name, places) in [
            ("route", routes),
            ("site", sites),
            ("proxy-health", checked),
        ] {
            let mut rest = places.as_slice();
            while let [place, others @ ..] = rest {
                if others.contains(place) {
                    return Err(Failure::Usage(format!(
                        "--{name}: `{place}` is given twice (expected once)"
                    )));
                }
                rest = others;
            }
        }
        if self.pages.is_some() && self.listen.port() == 0 {
            return wrong("--pages requires a port other than 0 in --listen: pages contain it");
        }
        Ok(())
    }

    /// Checks that each path of health checks belongs to an upstream.
    fn validate_health(&self, places: &[&Place]) -> Result<(), Failure> {
        let wrong = |text: String| Err(Failure::Usage(format!("`proxy-health`: {text}")));
        if self.proxy_health.len() > places.len() + 1 {
            return wrong("two paths without a place (expected one; others as PLACE=PATH)".into());
        }
        let is_upstream = |place: &Place| {
            let mut routes = self.route.iter();
            routes.any(|route| route.place == *place && route.upstream().is_some())
        };
        if let Some(place) = places.iter().find(|place| !is_upstream(place)) {
            return wrong(format!("`{place}` is no route to an upstream server"));
        }
        if !self.proxy_health.is_empty() && self.upstreams().next().is_none() {
            return wrong("there is no upstream server (expected `proxy` or `route`)".into());
        }
        Ok(())
    }

    /// The health checks of the upstream of a route, or of `--proxy`.
    pub(super) fn checks(&self, place: Option<&Place>) -> Option<Checks> {
        let of = |place: Option<&Place>| {
            let mut paths = self.proxy_health.iter();
            paths.find(|(of, _)| of.as_ref() == place)
        };
        let (_, path) = of(place).or_else(|| of(None))?;
        Some(Checks {
            path: path.clone(),
            interval: self.proxy_health_interval,
            timeout: self.proxy_health_timeout,
            failures_max: self.proxy_health_failures,
        })
    }

    /// The names of the sites.
    pub(super) fn sites(&self) -> Sites {
        let (mut fallback, mut places) = (None, Vec::new());
        for (place, name) in self.site.iter().cloned() {
            match place {
                Some(place) => places.push((place, name)),
                None => fallback = Some(name),
            }
        }
        Sites::new(fallback, places)
    }

    pub(super) fn versions(&self) -> Versions {
        let has = |version: &str| self.http.iter().any(|known| known == version);
        Versions {
            http1: has("1.1"),
            http2: has("2"),
            http3: has("3"),
        }
    }

    pub(super) const fn access_format(&self) -> Format {
        match self.access_format {
            AccessFormat::Ndjson => Format::Ndjson,
            AccessFormat::Common => Format::Common,
            AccessFormat::Combined => Format::Combined,
        }
    }

    /// The upstream servers.
    pub(super) fn upstreams(&self) -> impl Iterator<Item = &Upstream> {
        let routed = self.route.iter().filter_map(Route::upstream);
        self.proxy.iter().chain(routed)
    }

    /// The directories.
    pub(super) fn directories(&self) -> impl Iterator<Item = &Path> {
        let routed = self.route.iter().filter_map(Route::directory);
        self.directory.as_deref().into_iter().chain(routed)
    }

    /// Whether HTTP/2 is offered to an `https` upstream.
    pub(super) fn has_proxy_http2(&self) -> bool {
        self.proxy_http == "2"
    }

    pub(super) fn proxy_limits(&self, descriptors: Option<u64>) -> proxy::Limits {
        proxy::Limits {
            connect: self.proxy_connect_timeout,
            response: self.proxy_timeout,
            stall: self.proxy_timeout,
            requests: descriptors::for_upstream(descriptors, self.proxy_requests),
            server_requests: self.proxy_server_requests.unwrap_or(usize::MAX),
            slow_start: self.proxy_slow_start,
            streams: self.proxy_streams,
            ..proxy::Limits::default()
        }
    }

    pub(super) fn quic_limits(&self) -> endpoint::Limits {
        endpoint::Limits {
            connections: self.max_connections,
            handshakes: self.max_handshakes,
            handshakes_per_prefix: self.max_handshakes_per_prefix,
            unvalidated: self.max_unvalidated,
            handshake_timeout: self.handshake_timeout,
            answers: self.max_pending_answers,
            resets: RateLimit::of(self.max_resets),
            version_negotiations: RateLimit::of(self.max_version_negotiations),
            refusals: RateLimit::of(self.max_refusals),
        }
    }

    pub(super) const fn stall_limit(&self) -> StallLimit {
        StallLimit {
            timeout: self.stall_timeout,
            bytes: self.stall_bytes,
        }
    }

    pub(super) fn budget(&self) -> budget::Limits {
        budget::Limits {
            process: usize::try_from(self.buffer_memory).unwrap_or(usize::MAX),
            ..budget::Limits::default()
        }
    }

    pub(super) fn tcp_limits(&self) -> tcp::Limits {
        tcp::Limits {
            connections: self.tcp_connections,
            handshake: self.handshake_timeout,
            connections_per_prefix: self.tcp_connections_per_prefix,
            head: self.head_timeout,
            idle: self.idle_timeout,
            stall: self.stall_timeout,
            stall_bytes: self.stall_bytes,
            head_size: self.head_size as usize,
            streams: self.http2_streams,
            upload_window: u32::try_from(self.upload_window).unwrap_or(u32::MAX),
        }
    }
}
