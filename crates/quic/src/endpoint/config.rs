//! Configuration of an endpoint.

use core::{fmt, net::SocketAddr, time::Duration};
use std::sync::Arc;

use lastbyte_wire::packet::Version;

use super::{RateLimit, TokenStore};
use crate::{
    cid::{ConnectionIds, RandomIds},
    connection,
    crypto::{ServerCrypto, token::Lifetimes},
};

/// Configuration of an endpoint.
#[derive(Debug)]
pub struct EndpointConfig {
    /// Generates the connection IDs of this endpoint. Default: 8 random bytes.
    pub ids: Box<dyn ConnectionIds>,
    /// The key of stateless reset tokens: random, secret, and the same on all servers that may receive each other's
    /// packets (RFC 9000 §10.3.2). Without one, a key is used that is lost on restart, and no stateless reset is ever
    /// sent. Default: none.
    pub reset_key: Option<ResetSecret>,
    /// The server part; `None` if no connections are accepted.
    pub server: Option<ServerConfig>,
    /// Resource limits.
    pub limits: Limits,
}

/// The bytes of a reset key, hidden in debug output.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ResetSecret(pub [u8; 32]);

impl fmt::Debug for ResetSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResetSecret(..)")
    }
}

/// Configuration of a server.
#[derive(Debug)]
pub struct ServerConfig {
    /// The configuration of each connection. Its versions are those that the server supports.
    pub connection: Arc<connection::Config>,
    /// A function that selects the configuration of each connection in place of [`Self::connection`], for experiments.
    /// Default: none.
    pub choose: Option<Arc<dyn ChooseConfig>>,
    /// The source of TLS sessions.
    pub crypto: Arc<dyn ServerCrypto>,
    /// When clients must validate their address before any state is kept for them (RFC 9000 §8.1.2). Default: from 500
    /// handshakes in progress on.
    pub retry: RetryPolicy,
    /// Token keys and the record of used tokens: shared by all endpoints of a process, with keys shared by all servers
    /// that a client may reach. Without it, this endpoint uses a random key of its own. Default: none.
    pub tokens: Option<Arc<TokenStore>>,
    /// Token lifetimes. Default: 15 seconds for Retry, 7 days for others.
    pub token_lifetimes: Lifetimes,
    /// Whether each client receives a token for its next connection, once the handshake is confirmed (RFC 9000 §8.1.3).
    /// Default: yes.
    pub sends_new_tokens: bool,
}

/// Selects the configuration of a client's connection.
pub trait ChooseConfig: fmt::Debug + Send + Sync {
    /// The configuration for a client at this address. `random` is drawn for each.
    fn choose(&self, remote: SocketAddr, random: u64) -> Arc<connection::Config>;
}

/// When a server responds with a Retry packet (RFC 9000 §8.1.2). A client with a valid token never receives a second
/// one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryPolicy {
    /// Never. Beyond [`Limits::unvalidated`], clients are refused.
    Never,
    /// Always.
    Always,
    /// From this many handshakes in progress on, and always beyond [`Limits::unvalidated`].
    UnderLoad {
        /// Limits on handshakes of clients.
        handshakes: usize,
    },
}

/// Resource limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections, including closed ones that were not taken yet; beyond, new clients are refused, and so are those of
    /// an address prefix with more connections than there is room left. Default: 100 000.
    pub connections: usize,
    /// Handshakes of clients in progress; beyond, new clients are refused. Default: 10 000.
    pub handshakes: usize,
    /// Handshakes of clients with a validated address, per prefix: an IPv4 address, or 56 bits of an IPv6 address.
    /// Beyond, new clients of the prefix are refused; and so they are if it has more handshakes than there is room
    /// left. Default: 1000.
    pub handshakes_per_prefix: usize,
    /// Handshakes in progress of clients whose address is not validated, for which any host could make us keep state.
    /// Beyond, clients receive a Retry, or are refused if the policy is never to send one. Those in progress are kept:
    /// to replace them by new ones would favour the host that sends most. Default: 1000.
    pub unvalidated: usize,
    /// Time limit for a handshake, also as a client, after which the connection is silently dropped. Default: 10 s.
    pub handshake_timeout: Duration,
    /// Pending stateless responses; beyond, none is created. Default: 64.
    pub answers: usize,
    /// Stateless resets. Default: 100 a second, 50 at once.
    pub resets: RateLimit,
    /// Version Negotiation packets. Default: 100 a second, 50 at once.
    pub version_negotiations: RateLimit,
    /// Initial packets that refuse a client. Default: 1000 a second, 500 at once.
    pub refusals: RateLimit,
}

impl Limits {
    /// The defaults; `docs/security.md` gives the reasons.
    pub const DEFAULT: Self = Self {
        connections: 100_000,
        handshakes: 10_000,
        handshakes_per_prefix: 1000,
        unvalidated: 1000,
        handshake_timeout: Duration::from_secs(10),
        answers: 64,
        resets: RateLimit::of(100),
        version_negotiations: RateLimit::of(100),
        refusals: RateLimit::of(1000),
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl EndpointConfig {
    /// The defaults of an endpoint that only creates client connections.
    #[must_use]
    pub fn client() -> Self {
        Self {
            ids: Box::new(RandomIds::default()),
            reset_key: None,
            server: None,
            limits: Limits::default(),
        }
    }

    /// The defaults of an endpoint that accepts connections. It can also create client connections.
    #[must_use]
    pub fn server(connection: Arc<connection::Config>, crypto: Arc<dyn ServerCrypto>) -> Self {
        let server = ServerConfig {
            connection,
            choose: None,
            crypto,
            retry: RetryPolicy::UnderLoad { handshakes: 500 },
            tokens: None,
            token_lifetimes: Lifetimes::default(),
            sends_new_tokens: true,
        };
        Self {
            server: Some(server),
            ..Self::client()
        }
    }
}

impl ServerConfig {
    /// Whether the server supports a version.
    pub(super) fn speaks(&self, version: Version) -> bool {
        self.connection.versions.contains(&version)
    }
}

/// Why an endpoint cannot be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointConfigError {
    /// A server needs connection IDs to distinguish its connections; these are empty, or longer than 20 bytes.
    #[error("a server's connection IDs have 1 to 20 bytes, a client's 20 at most")]
    IdLength,
    /// The cipher rejects a key, which does not happen.
    #[error("the cipher refuses a key")]
    Key,
}
