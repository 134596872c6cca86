//! What `lastbyte serve` can be told, on the command line and in a file: the names are the same.

use std::{
    net::{Ipv4Addr, SocketAddr},
    num::NonZeroUsize,
    path::PathBuf,
    time::Duration,
};

use clap::{Args, ValueEnum};
use lastbyte_http3::StallLimit;
use lastbyte_quic::endpoint::{self, RateLimit};
use lastbyte_record::packed::Packing;
use lastbyte_server::{
    Versions,
    access::Format,
    budget,
    proxy::{self, Upstream},
    tcp,
};
use lastbyte_sim::units;
use lastbyte_wire::packet::Version;

use super::descriptors;
use crate::{commands::values, failure::Failure};

/// The defaults over QUIC.
const QUIC: endpoint::Limits = endpoint::Limits::DEFAULT;

const EXAMPLES: &str = "\
Examples:
  # A directory, with a new certificate; prints how to trust it.
  lastbyte serve --self-signed public/
  # Objects by size (/400kB, /1MiB), two workers, every connection in an arm
  # of the experiment, a line for each.
  lastbyte serve --self-signed --workers 2 --experiment four-arms \\
    --log conns.ndjson
  # In front of another server.
  lastbyte serve --listen '[::]:443' --cert chain.pem --key key.pem \\
    --proxy http://127.0.0.1:8080
  # In production.
  lastbyte serve --listen '[::]:443' --http-listen '[::]:80' \\
    --cert chain.pem --key key.pem --metrics 127.0.0.1:9100 \\
    --access-log access.ndjson --congestion rapid-start /srv/www
  # The same from a file, checked before it is used.
  lastbyte serve --config serve.toml --check
  # All that happens on a connection, for qvis and Wireshark.
  lastbyte serve --self-signed --qlog qlogs/ --keylog keys.txt

The log has a line for each connection, over QUIC with H2O's keys; `lastbyte query` and `lastbyte report` read it. On Ctrl-C or SIGTERM no more requests are accepted (GOAWAY), and pending ones are answered for at most --drain. On SIGHUP, certificate, ticket keys and arms are read again.";

/// Serves a directory, or objects by their size, over HTTP/1.1, 2 and 3.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The directory; without one, there are only objects by size
    #[arg(value_name = "DIR")]
    pub(super) directory: Option<PathBuf>,
    /// Read flags from this file, in TOML: `listen = "[::]:443"`. Those of the command line go before
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// Say whether all this can be, and serve nothing
    #[arg(long)]
    pub(super) check: bool,
    /// Where to listen: an address and a port of UDP and TCP, 0 for any that is free. An address of all of IPv6 takes IPv4
    /// too
    #[arg(long, value_name = "ADDR:PORT", default_value = "[::]:4433")]
    pub(super) listen: SocketAddr,
    /// Versions of HTTP to speak: 1.1 and 2 over TCP, 3 over UDP
    #[arg(long, value_name = "V,...", value_delimiter = ',', default_values = ["1.1", "2", "3"], value_parser = ["1.1", "2", "3"])]
    http: Vec<String>,
    /// Where to listen in clear text, and lead clients to https
    #[arg(long, value_name = "ADDR:PORT")]
    pub(super) http_listen: Option<SocketAddr>,
    /// Address for the Prometheus metrics (/metrics) and health (/healthz) endpoints, in clear text; a port alone is one of
    /// 127.0.0.1
    #[arg(long, value_name = "[ADDR:]PORT", value_parser = loopback_by_default)]
    pub(super) metrics: Option<SocketAddr>,
    /// Certificate chain, in PEM
    #[arg(long, value_name = "FILE")]
    pub(super) cert: Option<PathBuf>,
    /// Its key, in PEM
    #[arg(long, value_name = "FILE")]
    pub(super) key: Option<PathBuf>,
    /// Make a certificate for localhost, good for two weeks
    #[arg(long)]
    pub(super) self_signed: bool,
    /// Names and addresses in the certificate that is made
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_values = ["localhost", "127.0.0.1", "::1"])]
    pub(super) name: Vec<String>,
    /// Ticket keys that servers share, so that clients of one can resume at another: a secret of 64 hexadecimal digits a
    /// line, the newest first
    #[arg(long, value_name = "FILE")]
    pub(super) ticket_keys: Option<PathBuf>,
    /// Threads that serve HTTP/3, and as many for HTTP/1.1 and 2, up to 255. Default: one a core
    #[arg(long, value_name = "N", value_parser = values::positive(255))]
    pub(super) workers: Option<NonZeroUsize>,
    /// List directories that have no index.html
    #[arg(long, help_heading = "Site")]
    pub(super) listing: bool,
    /// Serve files whose names begin with a dot, too (.well-known is always there)
    #[arg(long, help_heading = "Site")]
    pub(super) hidden: bool,
    /// Beside the directory, serve objects by size (/32k), /delay/ and /status/: for tests only, as any client may have any
    /// number of bytes
    #[arg(long, help_heading = "Site", conflicts_with = "proxy")]
    pub(super) generated: bool,
    /// Serve the directory alone: the default
    #[arg(long, help_heading = "Site", conflicts_with = "generated")]
    pub(super) no_generated: bool,
    /// Add a field to all answers to GET and HEAD: 'cache-control: max-age=60'
    #[arg(long, value_name = "FIELD", help_heading = "Site", value_parser = field)]
    pub(super) header: Vec<(String, String)>,
    /// Pass all requests on to this server, in place of a directory: `http://127.0.0.1:8080`, `https://…`, or `h2c://…` for HTTP/2 in clear text
    #[arg(long, value_name = "URL", help_heading = "Proxy")]
    pub(super) proxy: Option<Upstream>,
    /// Who vouches for it, in PEM. Default: whom the system trusts
    #[arg(long, value_name = "FILE", help_heading = "Proxy")]
    pub(super) proxy_ca: Option<PathBuf>,
    /// How long it may take to connect to it
    #[arg(long, value_name = "SPAN", default_value = "5s", value_parser = units::span, help_heading = "Proxy")]
    proxy_connect_timeout: Duration,
    /// How long it may take to begin a response, and how long a body may say nothing
    #[arg(long, value_name = "SPAN", default_value = "60s", value_parser = units::span, help_heading = "Proxy")]
    proxy_timeout: Duration,
    /// Version of HTTP to speak with an `https` upstream: 2 falls back to 1.1
    #[arg(long, value_name = "V", default_value = "1.1", value_parser = ["1.1", "2"], help_heading = "Proxy")]
    proxy_http: String,
    /// Requests in flight to the upstream, which over HTTP/1.1 is connections; beyond, stalled clients give way
    #[arg(long, value_name = "N", default_value_t = proxy::Limits::default().requests, value_parser = values::count::<usize>(1..=1_000_000), help_heading = "Proxy")]
    proxy_requests: usize,
    /// Streams of a connection of HTTP/2 to the upstream; beyond, another is opened
    #[arg(long, value_name = "N", default_value_t = proxy::Limits::default().streams, value_parser = values::count::<u32>(1..=1000), help_heading = "Proxy")]
    proxy_streams: u32,
    /// Pass on request fields with `_` in their names, which many applications read as `-`
    #[arg(long, help_heading = "Proxy")]
    pub(super) proxy_underscores: bool,
    /// How long clients over TCP may remember that there is HTTP/3; 0s for not telling them
    #[arg(long, value_name = "SPAN", default_value = "86400s", value_parser = units::span, help_heading = "Site")]
    pub(super) alt_svc: Duration,
    /// Congestion control spec: rapid-start, cubic, bbr, rapid-start:congestion=newreno; `lastbyte sim --help` has them all.
    /// The default starts with the 10 packets of RFC 9002; presets by their names alone start with 30
    #[arg(
        long,
        value_name = "SPEC",
        default_value = CONGESTION,
        help_heading = "Transport"
    )]
    pub(super) congestion: String,
    /// How to start, in place of the spec's own way: slow-start, hystart, jumpstart, rapid-start, ... Without --congestion,
    /// with 10 packets
    #[arg(long, value_name = "NAME", help_heading = "Transport")]
    pub(super) startup: Option<String>,
    /// Draw each connection into an arm of this experiment: a file, or `four-arms`
    #[arg(long, value_name = "EXP", help_heading = "Transport")]
    pub(super) experiment: Option<String>,
    /// Let a client's address decide its arm (IPv6: the first 64 bits), so that it stays in one
    #[arg(long, help_heading = "Transport")]
    pub(super) sticky: bool,
    /// When clients have to prove their address before anything is kept for them
    #[arg(long, value_enum, default_value_t = Retry::Load, help_heading = "Transport")]
    pub(super) retry: Retry,
    /// Refuse 0-RTT
    #[arg(long, help_heading = "Transport")]
    pub(super) no_0rtt: bool,
    /// Versions of QUIC, the one that is liked best first
    #[arg(long, value_name = "V,...", value_delimiter = ',', default_values = ["1", "2"], value_parser = version, help_heading = "Transport")]
    pub(super) quic_version: Vec<Version>,
    /// The largest UDP payload that is tried, in bytes
    #[arg(long, value_name = "BYTES", default_value = "1472", value_parser = values::size::<u16>(1200..=65_000), help_heading = "Transport")]
    pub(super) mtu: u16,
    /// The UDP payload to begin with, in bytes, which initial windows count in too. More than 1200 fails on paths that carry less
    #[arg(long, value_name = "BYTES", default_value = "1200", value_parser = values::size::<u16>(1200..=65_000), help_heading = "Transport")]
    pub(super) initial_mtu: u16,
    /// Byte of connection IDs by which a load balancer finds this server. Without it, stateless resets are bound to the host
    /// (its name and machine ID)
    #[arg(long, value_name = "0..255", help_heading = "Transport")]
    pub(super) server_id: Option<u8>,
    /// Append a line for each connection over QUIC to this file
    #[arg(long, value_name = "FILE", help_heading = "Logs")]
    pub(super) log: Option<PathBuf>,
    /// Append a line for each request to this file
    #[arg(long, value_name = "FILE", help_heading = "Logs")]
    pub(super) access_log: Option<PathBuf>,
    /// How its lines look
    #[arg(long, value_enum, default_value_t = AccessFormat::Ndjson, help_heading = "Logs")]
    access_format: AccessFormat,
    /// Put each log away as FILE.1 and begin a new one from this size on: 1GB
    #[arg(long, value_name = "BYTES", value_parser = values::size::<u64>(LOG_ROTATE_MIN..=u64::MAX), help_heading = "Logs")]
    pub(super) log_rotate: Option<u64>,
    /// How many logs that were put away are kept
    #[arg(long, value_name = "N", default_value = "10", value_parser = values::count::<u32>(0..=1_000_000), help_heading = "Logs")]
    pub(super) log_keep: u32,
    /// Pack logs that were put away: gzip, zstd, none
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "none",
        help_heading = "Logs"
    )]
    pub(super) log_compress: Packing,
    /// Write a qlog file for each connection into this folder
    #[arg(long, value_name = "DIR", help_heading = "Logs")]
    pub(super) qlog: Option<PathBuf>,
    /// Append TLS secrets to this file, for Wireshark; as SSLKEYLOGFILE does
    #[arg(long, value_name = "FILE", help_heading = "Logs")]
    pub(super) keylog: Option<PathBuf>,
    /// How long requests at hand may last after Ctrl-C
    #[arg(long, value_name = "SPAN", default_value = "5s", value_parser = units::span, help_heading = "Limits")]
    pub(super) drain: Duration,
    /// Connections over TCP at a time; more wait
    #[arg(long, value_name = "N", default_value_t = tcp::Limits::default().connections, value_parser = values::count::<usize>(0..=1_000_000_000), help_heading = "Limits")]
    tcp_connections: usize,
    /// Connections over TCP at a time from one address (IPv6: one /64), at most half of those that fit; more are closed
    #[arg(long, value_name = "N", default_value_t = tcp::Limits::default().connections_per_prefix, value_parser = values::count::<usize>(1..=1_000_000_000), help_heading = "Limits")]
    tcp_connections_per_prefix: usize,
    /// QUIC connections at each worker
    #[arg(long, value_name = "N", default_value_t = QUIC.connections, value_parser = values::count::<usize>(1..=1_000_000_000), help_heading = "Limits")]
    max_connections: usize,
    /// QUIC handshakes in progress at each worker
    #[arg(long, value_name = "N", default_value_t = QUIC.handshakes, value_parser = values::count::<usize>(1..=1_000_000_000), help_heading = "Limits")]
    max_handshakes: usize,
    /// QUIC handshakes in progress at each worker of validated clients from one IPv4 address or IPv6 /56
    #[arg(long, value_name = "N", default_value_t = QUIC.handshakes_per_prefix, value_parser = values::count::<usize>(1..=1_000_000_000), help_heading = "Limits")]
    max_handshakes_per_prefix: usize,
    /// QUIC handshakes in progress at each worker of clients whose address is not validated
    #[arg(long, value_name = "N", default_value_t = QUIC.unvalidated, value_parser = values::count::<usize>(1..=1_000_000_000), help_heading = "Limits")]
    max_unvalidated: usize,
    /// Stateless resets a second from each worker; 0 for none
    #[arg(long, value_name = "N", default_value_t = QUIC.resets.per_second, value_parser = values::count::<u32>(0..=1_000_000_000), help_heading = "Limits")]
    max_resets: u32,
    /// Version Negotiation packets a second from each worker; 0 for none
    #[arg(long, value_name = "N", default_value_t = QUIC.version_negotiations.per_second, value_parser = values::count::<u32>(0..=1_000_000_000), help_heading = "Limits")]
    max_version_negotiations: u32,
    /// Refused QUIC clients a second that get an answer from each worker; 0 for none
    #[arg(long, value_name = "N", default_value_t = QUIC.refusals.per_second, value_parser = values::count::<u32>(0..=1_000_000_000), help_heading = "Limits")]
    max_refusals: u32,
    /// Answers without a connection (Retry, reset, refusal, ...) that wait to be sent at each worker
    #[arg(long, value_name = "N", default_value_t = QUIC.answers, value_parser = values::count::<usize>(1..=1_000_000_000), help_heading = "Limits")]
    max_pending_answers: usize,
    /// How long a handshake may take, over QUIC and of TLS over TCP
    #[arg(long, value_name = "SPAN", default_value = "10s", value_parser = units::span, help_heading = "Limits")]
    handshake_timeout: Duration,
    /// How long the head of a request of HTTP/1.1 may take, from the end of the one before
    #[arg(long, value_name = "SPAN", default_value = "30s", value_parser = units::span, help_heading = "Limits")]
    head_timeout: Duration,
    /// How long a connection of HTTP/2 may have no request
    #[arg(long, value_name = "SPAN", default_value = "60s", value_parser = units::span, help_heading = "Limits")]
    idle_timeout: Duration,
    /// How long a client may take too little of a response, or send too little of a body that is waited for
    #[arg(long, value_name = "SPAN", default_value = "30s", value_parser = units::span, help_heading = "Limits")]
    stall_timeout: Duration,
    /// How many bytes are enough in that time
    #[arg(long, value_name = "BYTES", default_value = "3000", value_parser = units::bytes, help_heading = "Limits")]
    stall_bytes: u64,
    /// Memory for bodies that wait, of all connections together; beyond, handlers and upstream servers are not read
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = values::size::<u64>(1_048_576..=1_099_511_627_776), help_heading = "Limits")]
    buffer_memory: u64,
    /// How much of request bodies a connection of HTTP/3 may send ahead of their being read
    #[arg(long, value_name = "SIZE", default_value = "1MiB", value_parser = values::size::<u64>(65_536..=1_073_741_824), help_heading = "Limits")]
    pub(super) upload_window: u64,
    /// The largest head of a request, in bytes
    #[arg(long, value_name = "BYTES", default_value = "64KiB", value_parser = values::size::<u32>(1024..=1_048_576), help_heading = "Limits")]
    pub(super) head_size: u32,
    /// Requests at a time on a connection of HTTP/2
    #[arg(long, value_name = "N", default_value_t = tcp::Limits::default().streams, value_parser = values::count::<u32>(1..=u64::from(u32::MAX)), help_heading = "Limits")]
    http2_streams: u32,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Retry {
    /// All of them
    Always,
    /// From 500 handshakes at a time on
    Load,
    /// Never
    Never,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum AccessFormat {
    /// A JSON object a line
    Ndjson,
    /// Common Log Format
    Common,
    /// Common Log Format with referer and user agent
    Combined,
}

/// A log that is rotated at less holds a few lines.
const LOG_ROTATE_MIN: u64 = 4096;

/// The congestion control of `serve`: Rapid Start's growth from the initial window of RFC 9002 §7.2, without a jump.
pub(super) const CONGESTION: &str = "rapid-no-jump:initial-window=10p";

/// An address and a port, or a port of loopback.
fn loopback_by_default(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix(':').unwrap_or(text);
    match port.parse::<u16>() {
        Ok(port) => Ok((Ipv4Addr::LOCALHOST, port).into()),
        Err(_) => text
            .parse()
            .map_err(|_| "expected ADDR:PORT, such as 127.0.0.1:9100, or a port".into()),
    }
}

fn version(text: &str) -> Result<Version, String> {
    match text {
        "1" | "v1" => Ok(Version::V1),
        "2" | "v2" => Ok(Version::V2),
        _ => Err("versions are 1 and 2".into()),
    }
}

/// A field, as `name: value`.
fn field(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once(':')
        .ok_or("a field is `name: value`, with a colon")?;
    let name = name.trim().to_ascii_lowercase();
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    if name.is_empty() || !name.chars().all(is_token) {
        return Err(format!("`{name}` is no name of a field"));
    }
    if matches!(
        name.as_str(),
        "connection" | "content-length" | "keep-alive" | "transfer-encoding" | "upgrade"
    ) {
        return Err(format!("`{name}` is set by the server itself"));
    }
    let value = value.trim();
    if value.chars().any(char::is_control) {
        return Err("a value has no control characters".into());
    }
    Ok((name, value.to_owned()))
}

impl Arguments {
    /// What no flag by itself can be wrong about.
    pub(super) fn validate(&self) -> Result<(), Failure> {
        let wrong = |text: &str| Err(Failure::Usage(text.into()));
        let has_files = self.cert.is_some() || self.key.is_some();
        if self.self_signed && has_files {
            return wrong("--self-signed makes a certificate: leave out --cert and --key, or it");
        }
        if self.cert.is_some() != self.key.is_some() {
            return wrong("--cert and --key belong together: give both");
        }
        if !self.self_signed && !has_files {
            return wrong(
                "a server needs a certificate: --cert FILE --key FILE, or --self-signed to make one",
            );
        }
        if self.experiment.is_some() && (self.startup.is_some() || self.congestion != CONGESTION) {
            return wrong(
                "an --experiment says itself which congestion control its arms have: leave out --congestion and --startup",
            );
        }
        if self.initial_mtu > self.mtu {
            return Err(Failure::Usage(format!(
                "--initial-mtu: {} (expected at most the --mtu, {})",
                self.initial_mtu, self.mtu
            )));
        }
        if self.sticky && self.experiment.is_none() {
            return wrong("--sticky is about the arms of an --experiment, and there is none");
        }
        if self.log.is_some() && self.log == self.access_log {
            return wrong("--log and --access-log need a file each");
        }
        if self.log_rotate.is_some() && self.log.is_none() && self.access_log.is_none() {
            return wrong("--log-rotate is for a --log or an --access-log");
        }
        if self.log_compress != Packing::None && self.log_rotate.is_none() {
            return wrong(
                "--log-compress packs logs that were put away: say from which size on by --log-rotate BYTES",
            );
        }
        if self.proxy.is_some()
            && (self.directory.is_some() || self.listing || self.hidden || !self.header.is_empty())
        {
            return wrong(
                "a --proxy answers everything: leave out the directory, --listing, --hidden and --header",
            );
        }
        if self.proxy_ca.is_some() && !self.proxy.as_ref().is_some_and(|server| server.is_secure) {
            return wrong("--proxy-ca is for a --proxy with https");
        }
        if self.has_proxy_http2() && !self.proxy.as_ref().is_some_and(|server| server.is_secure) {
            return wrong(
                "--proxy-http 2 is for a --proxy with https (expected `h2c://` for HTTP/2 in clear text)",
            );
        }
        if self.directory.is_none() && self.no_generated {
            return wrong(
                "without a directory, and with --no-generated, there is nothing to serve",
            );
        }
        Ok(())
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
        }
    }
}
