//! What can be set for an endpoint.

use core::{fmt, net::SocketAddr, time::Duration};
use std::sync::Arc;

use lastbyte_wire::packet::Version;

use super::{RateLimit, TokenStore};
use crate::{
    cid::{ConnectionIds, RandomIds},
    connection,
    crypto::{ServerCrypto, token::Lifetimes},
};

/// What can be set for an endpoint.
#[derive(Debug)]
pub struct EndpointConfig {
    /// The connection IDs it gives out. Default: 8 random bytes.
    pub ids: Box<dyn ConnectionIds>,
    /// What stateless reset tokens are made with: random, secret, and the same for all servers that may receive each
    /// other's packets (RFC 9000 §10.3.2). Without one, tokens are made with a key that is lost on restart, and
    /// no stateless reset is ever sent. Default: none.
    pub reset_key: Option<ResetSecret>,
    /// What a server needs; `None` if no connections are accepted.
    pub server: Option<ServerConfig>,
    /// How much of anything there may be.
    pub limits: Limits,
}

/// The bytes of a reset key, which do not show.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ResetSecret(pub [u8; 32]);

impl fmt::Debug for ResetSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResetSecret(..)")
    }
}

/// What a server needs.
#[derive(Debug)]
pub struct ServerConfig {
    /// What can be set for each connection. Its versions are those that the server speaks.
    pub connection: Arc<connection::Config>,
    /// A function that selects the configuration of each connection in place of [`Self::connection`], for experiments.
    /// Default: none.
    pub choose: Option<Arc<dyn ChooseConfig>>,
    /// Where sessions come from.
    pub crypto: Arc<dyn ServerCrypto>,
    /// When clients have to show where they are before anything is kept for them (RFC 9000 §8.1.2). Default: from 500
    /// handshakes in progress on.
    pub retry: RetryPolicy,
    /// What tokens are sealed with, and which were used: the same for all endpoints of a process, under keys that all
    /// servers share which clients may come to. Without it, a random key of this endpoint alone. Default: none.
    pub tokens: Option<Arc<TokenStore>>,
    /// How long tokens are good for. Default: 15 seconds those of a Retry, 7 days others.
    pub token_lifetimes: Lifetimes,
    /// Whether each client gets a token for its next connection, once the handshake is confirmed (RFC 9000 §8.1.3).
    /// Default: yes.
    pub sends_new_tokens: bool,
}

/// Says what is set for a client's connection.
pub trait ChooseConfig: fmt::Debug + Send + Sync {
    /// The configuration for a client at this address. `random` is drawn for each.
    fn choose(&self, remote: SocketAddr, random: u64) -> Arc<connection::Config>;
}

/// When a server answers with a Retry packet (RFC 9000 §8.1.2). A client with a good token is never asked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryPolicy {
    /// Never. Beyond [`Limits::unvalidated`], clients are refused.
    Never,
    /// Always.
    Always,
    /// From this many handshakes in progress on; and always beyond [`Limits::unvalidated`].
    UnderLoad {
        /// How many clients' handshakes.
        handshakes: usize,
    },
}

/// How much of anything there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections, those that were closed and not yet taken among them; beyond, new clients are refused, and so they are if
    /// there are more connections from their prefix than there is room for others. Default: 100 000.
    pub connections: usize,
    /// Clients' handshakes in progress; beyond, new clients are refused. Default: 10 000.
    pub handshakes: usize,
    /// Of those, handshakes of clients that have shown where they are, from one prefix: an IPv4 address, or 56 bits of an
    /// IPv6 address. Beyond, new clients from there are refused; and so they are if there are more handshakes from there than
    /// there is room for others. Default: 1000.
    pub handshakes_per_prefix: usize,
    /// Handshakes in progress of clients whose address is not validated, whose state any host could make us keep.
    /// Beyond, clients are sent a Retry, or refused where the policy is never to. Those in progress stay: to drop them for
    /// new ones would favour the host that sends most. Default: 1000.
    pub unvalidated: usize,
    /// How long a handshake may take, ours as a client too, before the connection is dropped without a word. Default:
    /// 10 s.
    pub handshake_timeout: Duration,
    /// Answers without a connection that wait to be sent; beyond, none is made. Default: 64.
    pub answers: usize,
    /// Stateless resets. Default: 100 a second, 50 at once.
    pub resets: RateLimit,
    /// Version Negotiation packets. Default: 100 a second, 50 at once.
    pub version_negotiations: RateLimit,
    /// Initial packets that refuse a client. Default: 1000 a second, 500 at once.
    pub refusals: RateLimit,
}

impl Limits {
    /// The defaults. `docs/security.md` says why.
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
    /// The defaults of an endpoint that only makes connections.
    #[must_use]
    pub fn client() -> Self {
        Self {
            ids: Box::new(RandomIds::default()),
            reset_key: None,
            server: None,
            limits: Limits::default(),
        }
    }

    /// The defaults of an endpoint that accepts connections. It can make some too.
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
    /// Whether the server speaks a version.
    pub(super) fn speaks(&self, version: Version) -> bool {
        self.connection.versions.contains(&version)
    }
}

/// An endpoint that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointConfigError {
    /// A server needs connection IDs to tell its connections apart; these are empty, or longer than 20 bytes.
    IdLength,
    /// The cipher refuses a key, which it has no reason to.
    Key,
}

impl fmt::Display for EndpointConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::IdLength => "a server's connection IDs have 1 to 20 bytes, a client's 20 at most",
            Self::Key => "the cipher refuses a key",
        })
    }
}

impl std::error::Error for EndpointConfigError {}
