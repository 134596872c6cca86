//! Counters of an endpoint.

/// Why a datagram was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// It is no QUIC packet of any version, or not one of the version it names.
    Malformed,
    /// A short header whose connection ID leads nowhere, and no stateless reset may be sent for it.
    UnknownConnection,
    /// Its connection ID says that it belongs to another worker or server.
    Foreign,
    /// A Version Negotiation packet that leads nowhere: never answered (RFC 9000 §6.1).
    VersionNegotiation,
    /// A long header that leads nowhere, and neither an Initial packet nor a 0-RTT packet to be kept: nothing can be made of
    /// it.
    NotInitial,
    /// An Initial packet, and no connections are accepted here.
    NoServer,
    /// A datagram of less than 1200 bytes that could have begun a connection (RFC 9000 §14.1, §6.1).
    TooSmall,
    /// A client chose a destination connection ID of less than 8 bytes (RFC 9000 §7.2).
    ShortDestination,
    /// An Initial packet that does not open: damaged, or made up (RFC 9001 §5.2).
    NotAuthentic,
    /// It would have been answered, but too much was, or too much waits.
    TooManyAnswers,
}

impl DropReason {
    /// All of them, in the order of [`Statistics::dropped`].
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

    /// A word for logs.
    #[must_use]
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
    /// Of those, the ones that led to a connection.
    pub routed: u64,
    /// Of those, the dropped ones, in the order of [`DropReason::ALL`].
    pub dropped: [u64; DropReason::ALL.len()],
    /// Datagrams of 0-RTT packets that were kept for a connection that had yet to begin.
    pub early_kept: u64,
    /// Of those, the ones that were given to it.
    pub early_used: u64,
    /// Connections made.
    pub connected: u64,
    /// Connections accepted.
    pub accepted: u64,
    /// Of those, the ones whose client had shown its address with a token of a Retry.
    pub accepted_after_retry: u64,
    /// Of those, the ones whose client had shown its address with a token of an earlier connection.
    pub accepted_with_token: u64,
    /// Tokens of earlier connections that came a second time, and did not count.
    pub tokens_replayed: u64,
    /// Clients refused, for want of room or for an invalid token.
    pub refused: u64,
    /// Retry packets made.
    pub retries: u64,
    /// Version Negotiation packets made.
    pub version_negotiations: u64,
    /// Stateless resets made.
    pub resets_sent: u64,
    /// Connections ended by a stateless reset of the peer's.
    pub resets_received: u64,
    /// Handshakes that took too long.
    pub handshake_timeouts: u64,
    /// Connections that are over.
    pub closed: u64,
}

impl Statistics {
    /// How many datagrams were dropped for this reason.
    #[must_use]
    pub fn dropped_for(&self, reason: DropReason) -> u64 {
        self.dropped
            .get(reason as usize)
            .copied()
            .unwrap_or_default()
    }

    pub(super) fn count_drop(&mut self, reason: DropReason) {
        if let Some(count) = self.dropped.get_mut(reason as usize) {
            *count += 1;
        }
    }
}
