//! What can be set, and what is remembered from one connection to the next.

use core::{fmt, time::Duration};
use std::sync::Arc;

use lastbyte_http3 as http3;
use lastbyte_quic::{connection, flow::WindowSize};

use crate::{
    family::Family,
    proxy::Proxies,
    resolve::{ConnectTo, Override},
    trust::{Identity, Trust},
};

/// Which versions of HTTP are spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Versions {
    /// HTTP/3 first, and HTTP/2 or 1.1 a little later, whichever is there first; without TLS HTTP/1.1.
    #[default]
    Any,
    /// Only HTTP/3.
    Http3,
    /// HTTP/2, or 1.1 where the server does not speak it; without TLS HTTP/1.1.
    Http2,
    /// Only HTTP/2, without asking the server, without TLS too (RFC 9113 §3.3).
    Http2Only,
    /// Only HTTP/1.1.
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

    /// What is offered over TCP (RFC 7301).
    pub(crate) fn alpn(self) -> Vec<Vec<u8>> {
        let names: &[&[u8]] = match self {
            Self::Any | Self::Http3 | Self::Http2 => &[b"h2", b"http/1.1"],
            Self::Http2Only => &[b"h2"],
            Self::Http11 => &[b"http/1.1"],
        };
        names.iter().map(|name| name.to_vec()).collect()
    }
}

/// What can be set for a run.
#[derive(Clone)]
pub struct Settings {
    /// The transport.
    pub transport: connection::Config,
    /// HTTP/3.
    pub http3: http3::Config,
    /// Which versions of HTTP are spoken. Default: all.
    pub versions: Versions,
    /// How long HTTP/3 is tried alone, if others may be tried, too. Default: 200 ms.
    pub head_start: Duration,
    /// Whom to trust.
    pub trust: Trust,
    /// Which servers to trust, of those that are trusted: the SHA-256 of their public keys (`SubjectPublicKeyInfo`), in
    /// Base64; one of them is to be the server's. Default: all.
    pub pins: Vec<String>,
    /// Who we are, to servers that ask. Default: nobody.
    pub identity: Option<Identity>,
    /// Where secrets go, for debuggers. Default: nowhere.
    pub key_log: Option<Arc<dyn rustls::KeyLog>>,
    /// Whether safe requests are sent early where a session is resumed (RFC 8470). Default: no.
    pub early_data: bool,
    /// Which kinds of addresses are used. Default: all.
    pub family: Family,
    /// Where hosts are that the resolver need not be asked for. Default: none.
    pub overrides: Vec<Override>,
    /// Who is asked in place of servers: over TCP alone, whatever the versions. Default: nobody.
    pub proxies: Proxies,
    /// Where to connect in place of hosts. Default: nowhere.
    pub connect_to: Vec<ConnectTo>,
    /// DNS servers that are asked for names. Default: none, and the system is.
    pub dns_servers: Vec<core::net::SocketAddr>,
    /// Whether DNS is asked for HTTPS records (RFC 9460), where the versions are [`Versions::Any`]. Default: yes.
    pub https_records: bool,
    /// How long it may take to resolve a name and to connect, all addresses together. Default: 10 s.
    pub connect_timeout: Duration,
    /// After how long without a handshake the next address is tried beside the last. Default: 250 ms (RFC 8305 §5).
    pub attempt_delay: Duration,
    /// How long a fetch may take. Default: for ever.
    pub time_limit: Option<Duration>,
    /// A fetch of which less than so many bytes a second move, for so long, is ended. Default: none is.
    pub speed_limit: Option<(u64, Duration)>,
    /// Whether TLS 1.2 is spoken, over TCP. Default: yes.
    pub tls12: bool,
    /// Whether TLS 1.3 is spoken, without which there is no QUIC. Default: yes.
    pub tls13: bool,
    /// How many fetches are under way at a time. Default: 100; at least 1.
    pub parallel: usize,
    /// Whether requests to one server go over an open connection to another, where both have the address and the certificate
    /// in common (RFC 9114 §3.3). Default: yes.
    pub coalesces: bool,
    /// How many connections there are to a server that takes one request at a time (HTTP/1.1). Default: 6; at least 1.
    pub connections_per_host: usize,
    /// How often a request is sent again that the server refused, or may not have heard (RFC 9114 §4.1.1). Default: 3.
    pub retries: u32,
    /// How long to wait at the end for a ticket, if none has come. Default: zero. For the next run's 0-RTT.
    pub ticket_wait: Duration,
}

/// What a server may send ahead of what was read, on one stream to begin with and at most. What comes is handed on at once,
/// so this is not about memory; a smaller window would hold up the very first flights of a server that starts fast. As
/// Chromium has it.
const STREAM_WINDOW: WindowSize = WindowSize {
    initial: 6 << 20,
    maximum: 24 << 20,
};
/// The same of all streams together.
const CONNECTION_WINDOW: WindowSize = WindowSize {
    initial: 15 << 20,
    maximum: 48 << 20,
};

impl Settings {
    /// The defaults, for this transport, with receive windows as browsers have them.
    #[must_use]
    pub fn new(mut transport: connection::Config) -> Self {
        transport.streams.stream_window = STREAM_WINDOW;
        transport.streams.connection_window = CONNECTION_WINDOW;
        Self {
            transport,
            http3: http3::Config::default(),
            versions: Versions::default(),
            head_start: Duration::from_millis(200),
            trust: Trust::default(),
            pins: Vec::new(),
            identity: None,
            key_log: None,
            early_data: false,
            family: Family::default(),
            overrides: Vec::new(),
            proxies: Proxies::default(),
            connect_to: Vec::new(),
            dns_servers: Vec::new(),
            https_records: true,
            connect_timeout: Duration::from_secs(10),
            attempt_delay: Duration::from_millis(250),
            time_limit: None,
            speed_limit: None,
            tls12: true,
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
