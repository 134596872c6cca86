//! Counters of an endpoint.

/// Why a datagram was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// It is not a QUIC packet of any version, or not valid in the version it names.
    Malformed,
    /// A short header with an unknown connection ID, and no stateless reset may be sent for it.
    UnknownConnection,
    /// Its connection ID belongs to another worker or server.
    Foreign,
    /// A Version Negotiation packet without a connection: never answered (RFC 9000 §6.1).
    VersionNegotiation,
    /// A long header without a connection that is neither an Initial packet nor a 0-RTT packet to be buffered.
    NotInitial,
    /// An Initial packet, but no connections are accepted.
    NoServer,
    /// A datagram of less than 1200 bytes that would have created a connection (RFC 9000 §14.1, §6.1).
    TooSmall,
    /// The client chose a destination connection ID of less than 8 bytes (RFC 9000 §7.2).
    ShortDestination,
    /// An Initial packet that is not authentic: corrupt or forged (RFC 9001 §5.2).
    NotAuthentic,
    /// A response was due, but exceeds the rate limit or the queue.
    TooManyAnswers,
}

impl DropReason {
    /// All reasons, in the order of [`Statistics::dropped`].
    pub const ALL: [Self; 10] = [
        Self::Malformed,
        Self::UnknownConnection,
        Self::Foreign,
        Self::VersionNegotiation,
        Self::NotInitial,
        Self::NoServer,
        Self::TooSmall,
        Self::ShortDestination,
        Self::NotAuthentic,
        Self::TooManyAnswers,
    ];

    /// The name in logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::UnknownConnection => "unknown_connection",
            Self::Foreign => "foreign",
            Self::VersionNegotiation => "version_negotiation",
            Self::NotInitial => "not_initial",
            Self::NoServer => "no_server",
            Self::TooSmall => "too_small",
            Self::ShortDestination => "short_destination",
            Self::NotAuthentic => "not_authentic",
            Self::TooManyAnswers => "too_many_answers",
        }
    }
}

/// Counters of an endpoint, since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Datagrams received.
    pub datagrams: u64,
    /// Of those, datagrams of known connections.
    pub routed: u64,
    /// Of those, dropped datagrams, in the order of [`DropReason::ALL`].
    pub dropped: [u64; DropReason::ALL.len()],
    /// Datagrams of 0-RTT packets that were buffered for a future connection.
    pub early_kept: u64,
    /// Of those, datagrams passed to that connection.
    pub early_used: u64,
    /// Client connections created.
    pub connected: u64,
    /// Connections accepted.
    pub accepted: u64,
    /// Of those, connections whose client had validated its address with a Retry token.
    pub accepted_after_retry: u64,
    /// Of those, connections whose client had validated its address with a token of an earlier connection.
    pub accepted_with_token: u64,
    /// Tokens of earlier connections that were repeated, and ignored.
    pub tokens_replayed: u64,
    /// Clients refused, because of a limit or an invalid token.
    pub refused: u64,
    /// Of those, clients with an invalid token.
    pub refused_tokens: u64,
    /// Retry packets sent.
    pub retries: u64,
    /// Version Negotiation packets sent.
    pub version_negotiations: u64,
    /// Stateless resets sent.
    pub resets_sent: u64,
    /// Connections ended by a stateless reset of the peer.
    pub resets_received: u64,
    /// Handshakes that exceeded the time limit.
    pub handshake_timeouts: u64,
    /// Connections closed.
    pub closed: u64,
}

impl Statistics {
    /// Number of datagrams dropped for this reason.
    pub fn dropped_for(&self, reason: DropReason) -> u64 {
        self.dropped
            .get(reason as usize)
            .copied()
            .unwrap_or_default()
    }

    /// Adds the counters of another endpoint.
    pub fn add(&mut self, other: &Self) {
        for (sum, more) in self.dropped.iter_mut().zip(other.dropped) {
            *sum += more;
        }
        for (sum, more) in [
            (&mut self.datagrams, other.datagrams),
            (&mut self.routed, other.routed),
            (&mut self.early_kept, other.early_kept),
            (&mut self.early_used, other.early_used),
            (&mut self.connected, other.connected),
            (&mut self.accepted, other.accepted),
            (&mut self.accepted_after_retry, other.accepted_after_retry),
            (&mut self.accepted_with_token, other.accepted_with_token),
            (&mut self.tokens_replayed, other.tokens_replayed),
            (&mut self.refused, other.refused),
            (&mut self.refused_tokens, other.refused_tokens),
            (&mut self.retries, other.retries),
            (&mut self.version_negotiations, other.version_negotiations),
            (&mut self.resets_sent, other.resets_sent),
            (&mut self.resets_received, other.resets_received),
            (&mut self.handshake_timeouts, other.handshake_timeouts),
            (&mut self.closed, other.closed),
        ] {
            *sum += more;
        }
    }

    pub(super) fn count_drop(&mut self, reason: DropReason) {
        if let Some(count) = self.dropped.get_mut(reason as usize) {
            *count += 1;
        }
    }
}
