//! Stateless tickets with 0-RTT for servers, and persistent sessions for clients (RFC 8446 §2.2, §4.6.1, §8; RFC 9001
//! §4.5, §4.6).
//!
//! Owns tickets sealed with keys that servers share; their lifetime; whether 0-RTT is accepted; in [`client`] a client's
//! sessions as bytes. It reads no clock, file or environment, leaves the TLS handshake itself to rustls, and does not decide
//! which requests are acceptable in 0-RTT.
//!
//! # Why here
//!
//! rustls accepts 0-RTT only for sessions in a server-side store, not for tickets that contain the session. So it is
//! given a store and no ticketer. QUIC passes us handshake messages in plaintext, and `NewSessionTicket` is not part of
//! a transcript. A session that rustls stores is kept until the message with its name is sent, then sealed, and put
//! into the message in place of the name ([`ticket_store`]). When a client offers the ticket, the store returns the
//! session from the ticket itself.
//!
//! | module | holds |
//! |---|---|
//! | [`keys`] | keys, sealing and opening, the text of the shared file |
//! | [`contents`] | what we write into a ticket |
//! | [`message`] | `NewSessionTicket`, read and written |
//! | [`ticket_store`] | the store of one connection, and the rewriting |
//! | [`replay_filter`] | the `ClientHello`s already accepted with 0-RTT |
//! | [`clock`] | the time of day, as an argument |
//! | [`client`] | a client's sessions: saved, stored, restored |
//!
//! # Guarantees
//!
//! - *Resumption*: any server with the key that sealed a ticket, the same version of this program, the same cipher
//!   suites in the same order and the same name resumes it, for [`LIFETIME_MAX`] after it was issued. Any other ticket leads
//!   to a full handshake, never to an error. The one exception is required by RFC 8446: a valid ticket with a wrong binder
//!   aborts the handshake (§4.2.11).
//! - *Refused 0-RTT*: the session is resumed anyway, at the cost of a round trip.
//! - *No replay filter accepts a `ClientHello` with 0-RTT twice*, and so no process does, as its connections share one.
//! - *Not guaranteed: that other servers do not accept it too.* Each server of a fleet accepts the same `ClientHello`
//!   once ([`ZeroRtt::AnyServer`]). Requests in 0-RTT must therefore be safe to replay: in HTTP, safe methods only (RFC
//!   8470 §4), which the layer above must enforce.
//! - *Forward secrecy* of 0-RTT data, and only of that, depends on the ticket key: with the key, recorded 0-RTT data can
//!   be decrypted (RFC 8446 §8). Keys should therefore be rotated and deleted.
//! - *A chain of resumptions is not limited*: each new ticket is valid for the whole lifetime. A client's certificate
//!   is not verified again when it resumes; a server's is, by [`client`].
//!
//! # Decisions
//!
//! - *A store for each connection*, in a copy of the configuration, and not one for all with thread-local state:
//!   handshakes on one thread cannot be confused, nor can one that moves to another thread. It costs copying some
//!   twenty reference counts.
//! - *To refuse 0-RTT, and resume*, the offset at the end of the session's encoding is changed: the ticket's age is
//!   then wrong by 24 days, and rustls resumes without 0-RTT. It offers no other way once it has requested the session.
//! - *A ticket is bound to its version of QUIC* (RFC 9369 §5).

use std::{
    fmt,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard},
    time::Duration,
};

pub mod client;
pub mod clock;
mod contents;
pub mod keys;
mod message;
pub mod replay_filter;
mod ticket_store;

use clock::WallClock;
use keys::TicketKeys;
use replay_filter::{ReplayFilter, Strike};
pub(super) use ticket_store::ServerTickets;

use crate::WallTime;

/// The version of rustls whose encoding of sessions is used in tickets and saved sessions. A test compares it with
/// `Cargo.lock`.
pub const RUSTLS_VERSION: &str = "0.23.46";
/// Ticket lifetime: the longest of RFC 8446 §4.6.1.
pub const LIFETIME_MAX: Duration = Duration::from_secs(7 * 24 * 60 * 60);

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

/// A server's settings for issuing and accepting tickets. Shared by all of its connections.
pub struct Tickets {
    keys: RwLock<TicketKeys>,
    clock: Arc<dyn WallClock>,
    zero_rtt: ZeroRtt,
}

/// Whether a server takes 0-RTT, and which.
///
/// The TLS library has conditions of its own: the client's claim of the ticket's age is off by 60 s at most, ticket and
/// connection agree on the application protocol, the ticket is the first offered, and no second `ClientHello` was requested.
#[derive(Clone, Debug)]
pub enum ZeroRtt {
    /// None: tickets do not permit it, so clients do not attempt it.
    Off,
    /// With a ticket of any server that shares the keys. Each of them accepts the same `ClientHello` once.
    AnyServer(Arc<ReplayFilter>),
}

/// Why a server refused the 0-RTT of a session that it resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It accepts none.
    Off,
    /// A limit in its transport parameters is lower than when the ticket was issued (RFC 9000 §7.4.1), or the former
    /// ones are not known.
    Reduced,
    /// The `ClientHello` was received before.
    Replayed,
    /// The replay filter is full.
    RegisterFull,
    /// The replay filter does not cover the time before.
    RegisterBlind,
    /// The ticket was not the first one offered (RFC 8446 §4.2.10), or the `ClientHello` was a second one.
    NotFirst,
}

impl Refusal {
    /// All of them, in their order.
    pub const ALL: [Self; 6] = [
        Self::Off,
        Self::Reduced,
        Self::Replayed,
        Self::RegisterFull,
        Self::RegisterBlind,
        Self::NotFirst,
    ];

    /// Its name in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Reduced => "reduced_limits",
            Self::Replayed => "replayed",
            Self::RegisterFull => "filter_full",
            Self::RegisterBlind => "filter_blind",
            Self::NotFirst => "not_first",
        }
    }
}

/// The server's own data in the ticket that a client resumed with. It is authentic: only servers with the key can
/// create it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResumedTicket {
    /// When it was issued, in whole seconds.
    pub issued: WallTime,
    /// Why 0-RTT was refused. `None`: not by this module, but perhaps by the TLS library.
    pub refusal: Option<Refusal>,
}

impl Tickets {
    /// Tickets sealed with these keys, valid for seven days, without 0-RTT, of server 0.
    #[must_use]
    pub fn new(keys: TicketKeys, clock: Arc<dyn WallClock>) -> Self {
        Self {
            keys: RwLock::new(keys),
            clock,
            zero_rtt: ZeroRtt::Off,
        }
    }

    /// Which 0-RTT is accepted. Default: none.
    #[must_use]
    pub fn with_zero_rtt(self, zero_rtt: ZeroRtt) -> Self {
        Self { zero_rtt, ..self }
    }

    /// Replaces the keys, in all connections. If one of them was not held before, 0-RTT is refused for
    /// [`replay_filter::DEPTH`], as after a start: another process may have held it, such as the previous one, and what
    /// that accepted is not known here (RFC 8446 §8.2).
    pub fn set_keys(&self, keys: TicketKeys) {
        let mut held = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        if let ZeroRtt::AnyServer(replay_filter) = &self.zero_rtt
            && !held.hold_all_of(&keys)
        {
            replay_filter.on_foreign_keys(self.clock.now());
        }
        *held = keys;
    }

    /// Whether 0-RTT is enabled.
    pub(super) const fn takes_zero_rtt(&self) -> bool {
        !matches!(self.zero_rtt, ZeroRtt::Off)
    }

    /// The clock, for the TLS library.
    pub(super) fn clock(&self) -> Arc<dyn WallClock> {
        Arc::clone(&self.clock)
    }

    /// A thread that panicked did not leave the keys half replaced.
    fn keys(&self) -> RwLockReadGuard<'_, TicketKeys> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Tickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tickets")
            .field("keys", &self.keys())
            .field("zero_rtt", &self.zero_rtt)
            .finish_non_exhaustive()
    }
}
