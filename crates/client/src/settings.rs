//! The settings of a run.

use core::{fmt, time::Duration};
use std::sync::Arc;

use lastbyte_http3 as http3;
use lastbyte_quic::{connection, crypto::AeadProvider, stream::WindowSize};

use crate::{
    family::Family,
    resolve::{ConnectTo, Override},
    trust::{Identity, Trust},
};

/// The most fields in the head of a response.
pub(crate) const FIELDS_MAX: u16 = 500;

/// The versions of HTTP that may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Versions {
    /// HTTP/3, with HTTP/2 or HTTP/1.1 tried in parallel after [`Settings::head_start`]. Without TLS, HTTP/1.1.
    #[default]
    Any,
    /// HTTP/3 only.
    Http3,
    /// HTTP/2, or HTTP/1.1 if the server does not support it. Without TLS, HTTP/1.1.
    Http2,
    /// HTTP/2 only. Without TLS, with prior knowledge (RFC 9113 §3.3).
    Http2Only,
    /// HTTP/1.1 only.
    Http11,
}

impl Versions {
    /// Whether QUIC is tried.
    pub(crate) const fn has_quic(self) -> bool {
        matches!(self, Self::Any | Self::Http3)
    }

    /// Whether TCP is tried.
    pub(crate) const fn has_tcp(self) -> bool {
        !matches!(self, Self::Http3)
    }

    /// The protocols offered over TCP (ALPN, RFC 7301).
    pub(crate) fn alpn(self) -> Vec<Vec<u8>> {
        let names: &[&[u8]] = match self {
            Self::Any | Self::Http3 | Self::Http2 => &[b"h2", b"http/1.1"],
            Self::Http2Only => &[b"h2"],
            Self::Http11 => &[b"http/1.1"],
        };
        names.iter().map(|name| name.to_vec()).collect()
    }
}

/// The settings of a run.
#[derive(Clone)]
pub struct Settings {
    /// QUIC.
    pub transport: connection::Config,
    /// HTTP/3.
    pub http3: http3::Config,
    /// The versions of HTTP that may be used. Default: all.
    pub versions: Versions,
    /// The time for which only HTTP/3 is tried, if other versions may be used too. Default: 200 ms.
    pub head_start: Duration,
    /// The trusted certificate authorities. Default: those of the system.
    pub trust: Trust,
    /// Pinned keys: SHA-256 hashes of public keys (`SubjectPublicKeyInfo`) in Base64. If there are any, the key of the
    /// server must match one of them. Default: none.
    pub pins: Vec<String>,
    /// The client certificate for servers that request one. Default: none.
    pub identity: Option<Identity>,
    /// The library for AES-GCM in TLS 1.3 and QUIC. Default: aws-lc; `lastbyte_driver::AeadChoice` measures which is faster.
    pub aead: AeadProvider,
    /// Receives the TLS secrets, for decryption of packet captures. Default: none.
    pub key_log: Option<Arc<dyn rustls::KeyLog>>,
    /// Whether safe requests are sent in 0-RTT when a session is resumed (RFC 8470). Default: no.
    pub early_data: bool,
    /// The address families. Default: IPv6 and IPv4.
    pub family: Family,
    /// Fixed addresses of hosts, used instead of the resolver. Default: none.
    pub overrides: Vec<Override>,
    /// Hosts and ports to connect to instead of those in the URL. Default: none.
    pub connect_to: Vec<ConnectTo>,
    /// DNS servers that resolve names. Default: none; the system's resolver is used.
    pub dns_servers: Vec<core::net::SocketAddr>,
    /// Whether to query HTTPS records (RFC 9460) if `versions` is [`Versions::Any`]. Default: yes.
    pub https_records: bool,
    /// The time limit for name resolution, and for connecting to any of the addresses. Default: 10 s.
    pub connect_timeout: Duration,
    /// The delay before the next address is tried while earlier attempts continue. Default: 250 ms (RFC 8305 §5).
    pub attempt_delay: Duration,
    /// The time limit of a fetch. Default: none.
    pub time_limit: Option<Duration>,
    /// Whether TLS 1.3 is offered besides TLS 1.2. Without it, QUIC is not used. Default: yes.
    pub tls13: bool,
    /// The largest number of concurrent fetches. Default: 100; at least 1.
    pub parallel: usize,
    /// Whether an open connection is reused for another origin which has the same address and is covered by the same
    /// certificate (RFC 9114 §3.3). Default: yes.
    pub coalesces: bool,
    /// The largest number of HTTP/1.1 connections to one server. Default: 6; at least 1.
    pub connections_per_host: usize,
    /// How often a request is sent again if the server did not process it (RFC 9114 §4.1.1), or if it is safe to repeat and
    /// the connection failed. Default: 3.
    pub retries: u32,
    /// How long to wait at the end of the run for a session ticket, which the next run needs for 0-RTT. Default: zero.
    pub ticket_wait: Duration,
}

/// The receive window of a stream; the same as Chromium's. Received data is passed on at once, so the window does not
/// determine memory use. A smaller window would limit the first flights of a server with a fast startup.
const STREAM_WINDOW: WindowSize = WindowSize {
    initial: 6 << 20,
    maximum: 24 << 20,
};
/// The receive window of a connection.
const CONNECTION_WINDOW: WindowSize = WindowSize {
    initial: 15 << 20,
    maximum: 48 << 20,
};

impl Settings {
    /// The defaults for this transport configuration, whose receive windows are set to those of browsers.
    #[must_use]
    pub fn new(mut transport: connection::Config) -> Self {
        transport.streams.stream_window = STREAM_WINDOW;
        transport.streams.connection_window = CONNECTION_WINDOW;
        Self {
            transport,
            http3: http3::Config {
                fields_max: FIELDS_MAX,
                ..http3::Config::default()
            },
            versions: Versions::default(),
            head_start: Duration::from_millis(200),
            trust: Trust::default(),
            pins: Vec::new(),
            identity: None,
            aead: AeadProvider::default(),
            key_log: None,
            early_data: false,
            family: Family::default(),
            overrides: Vec::new(),
            connect_to: Vec::new(),
            dns_servers: Vec::new(),
            https_records: true,
            connect_timeout: Duration::from_secs(10),
            attempt_delay: Duration::from_millis(250),
            time_limit: None,
            tls13: true,
            parallel: 100,
            coalesces: true,
            connections_per_host: 6,
            retries: 3,
            ticket_wait: Duration::ZERO,
        }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("trust", &self.trust)
            .field("early_data", &self.early_data)
            .field("parallel", &self.parallel)
            .finish_non_exhaustive()
    }
}
