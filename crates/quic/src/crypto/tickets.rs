//! Stateless tickets with 0-RTT for servers, and sessions that outlive the process for clients (RFC 8446 §2.2, §4.6.1, §8;
//! RFC 9001 §4.5, §4.6).
//!
//! Owns: tickets sealed under keys that servers share, with data of their own inside; their life; whether 0-RTT may be
//! taken; in [`client`] a client's sessions as bytes. Never: reads a clock, a file or the environment; touches the TLS
//! handshake itself; decides which requests may come in 0-RTT.
//!
//! # Why here
//!
//! rustls takes 0-RTT only of sessions that it finds in a store of the server, and not of tickets that carry the session.
//! So it is given a store, and gets no tickets to make. QUIC hands handshake messages to us in the clear, and
//! `NewSessionTicket` is part of no transcript. What rustls wants to be stored is kept until the message with its name
//! comes by, sealed, and put into the message instead of the name ([`ticket_store`]). When a client offers it, the store "finds"
//! the session in the ticket itself.
//!
//! | module | holds |
//! |---|---|
//! | [`keys`] | keys, sealing and opening, the text of the shared file |
//! | [`contents`] | what we write into a ticket |
//! | [`message`] | `NewSessionTicket`, read and written |
//! | [`ticket_store`] | the store of one connection, and the rewriting |
//! | [`replay_filter`] | which `ClientHello`s came with 0-RTT already |
//! | [`clock`] | the time of day, as an argument |
//! | [`client`] | a client's sessions: saved, kept, restored |
//!
//! # What is promised
//!
//! - *Resumption*: any server with the key that sealed a ticket, the same version of this program, the same cipher suites
//!   in the same order and the same name resumes it, for [`Tickets::lifetime`] after it was issued, seven days at most. A
//!   ticket that is anything else leads to a full handshake, never to an error. The one exception is RFC 8446's: a good
//!   ticket with a wrong binder ends the handshake (§4.2.11).
//! - *0-RTT is a favour*: whenever it is refused the session is resumed all the same, at the cost of a round trip.
//! - *No `ClientHello` is taken with 0-RTT twice by one replay filter*, and so not by one process, whose connections share it.
//! - *Not promised: that other servers do not take it too.* Each server of a fleet accepts the same `ClientHello` once
//!   ([`ZeroRtt::AnyServer`]). What comes in 0-RTT must therefore be safe to be repeated: in HTTP, safe methods only (RFC
//!   8470 §4), which the layer above has to see to. With [`ZeroRtt::ThisServer`] only the issuer takes it.
//! - *Forward secrecy* of 0-RTT data, and only of them, ends with the ticket key: who has it can read recorded 0-RTT
//!   (RFC 8446 §8). Hence keys are changed, and forgotten.
//! - *A chain of resumptions has no end here*: each new ticket lives for the whole lifetime again. A client's certificate
//!   is not looked at again while it resumes; a server's is, by [`client`].
//!
//! # Decisions
//!
//! - *A store for each connection*, in a copy of the configuration, and not one for all with a hand-over through the
//!   thread: handshakes on one thread cannot be mixed up, nor can a handshake that moves to another. It costs a copy of
//!   some twenty reference counts.
//! - *To refuse 0-RTT, and resume*, the offset that ends the session's encoding is changed: the ticket's age is then off
//!   by 24 days, and rustls resumes without 0-RTT. It offers no other way once it has asked for the session.
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

/// The version of rustls whose encoding of sessions is inside of tickets and saved sessions. It is that of `Cargo.lock`, as
/// a test sees to.
pub const RUSTLS_VERSION: &str = "0.23.46";
/// The longest life of a ticket, in seconds: RFC 8446 §4.6.1.
pub const LIFETIME_MAX: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// The most bytes of the application's in a ticket.
pub const APPLICATION_MAX: usize = 96;

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

/// How a server gives out tickets, and what it takes them for. One for all of its connections.
pub struct Tickets {
    keys: RwLock<TicketKeys>,
    clock: Arc<dyn WallClock>,
    lifetime: Duration,
    zero_rtt: ZeroRtt,
    server_id: u64,
    application: Vec<u8>,
}

/// Whether a server takes 0-RTT, and which.
///
/// The TLS library has conditions of its own: the client's claim of the ticket's age is off by 60 s at most, ticket and
/// connection agree on the application protocol, the ticket is the first offered, and no second `ClientHello` was asked for.
#[derive(Clone, Debug)]
pub enum ZeroRtt {
    /// None: tickets say so, and clients do not try.
    Off,
    /// With a ticket of any server that shares the keys. Each of them takes the same `ClientHello` once.
    AnyServer(Arc<ReplayFilter>),
    /// Only with a ticket of this server, by [`Tickets::with_server_id`].
    ThisServer(Arc<ReplayFilter>),
}

/// Why a server refused the 0-RTT of a session that it resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It takes none.
    Off,
    /// The ticket is another server's.
    OtherServer,
    /// A limit in its transport parameters is lower than when the ticket was issued (RFC 9000 §7.4.1), or what they were
    /// then is not known.
    Reduced,
    /// The `ClientHello` was here before.
    Replayed,
    /// The replay filter has no room.
    RegisterFull,
    /// The replay filter cannot know what came before.
    RegisterBlind,
    /// The ticket was not the first that the client offered (RFC 8446 §4.2.10), or the `ClientHello` not its first.
    NotFirst,
}

/// What a server told itself by the ticket that a client resumed with. It is authentic: only servers with the key write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResumedTicket {
    /// When it was issued, in whole seconds.
    pub issued: WallTime,
    /// Which server issued it.
    pub server_id: u64,
    /// What the application wanted to know again.
    pub application: Vec<u8>,
    /// Why 0-RTT was refused with it. `None`: not here, though perhaps by the TLS library.
    pub refusal: Option<Refusal>,
}

/// The application's data are longer than [`APPLICATION_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApplicationDataTooLong;

impl fmt::Display for ApplicationDataTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a ticket holds {APPLICATION_MAX} bytes of the application's at most"
        )
    }
}

impl std::error::Error for ApplicationDataTooLong {}

impl Tickets {
    /// Tickets under these keys, good for seven days, without 0-RTT, of server 0, with nothing of the application's.
    #[must_use]
    pub fn new(keys: TicketKeys, clock: Arc<dyn WallClock>) -> Self {
        Self {
            keys: RwLock::new(keys),
            clock,
            lifetime: LIFETIME_MAX,
            zero_rtt: ZeroRtt::Off,
            server_id: 0,
            application: Vec::new(),
        }
    }

    /// How long tickets are good for, in whole seconds, from one to [`LIFETIME_MAX`]: what is outside counts as the nearer
    /// end. A shorter life holds for tickets that are out already, too.
    #[must_use]
    pub fn with_lifetime(self, lifetime: Duration) -> Self {
        let seconds = lifetime.as_secs().clamp(1, LIFETIME_MAX.as_secs());
        let lifetime = Duration::from_secs(seconds);
        Self { lifetime, ..self }
    }

    /// Which 0-RTT is taken. Default: none.
    #[must_use]
    pub fn with_zero_rtt(self, zero_rtt: ZeroRtt) -> Self {
        Self { zero_rtt, ..self }
    }

    /// A number for this server, which its tickets bear. Default: 0.
    #[must_use]
    pub fn with_server_id(self, server_id: u64) -> Self {
        Self { server_id, ..self }
    }

    /// What the application wants to know again when a client resumes, for connections that do not say it themselves
    /// ([`super::Session::set_ticket_data`]). Default: nothing.
    ///
    /// # Errors
    ///
    /// It is longer than [`APPLICATION_MAX`].
    pub fn with_application(self, application: Vec<u8>) -> Result<Self, ApplicationDataTooLong> {
        if application.len() > APPLICATION_MAX {
            return Err(ApplicationDataTooLong);
        }
        Ok(Self {
            application,
            ..self
        })
    }

    /// From now on seals and opens with these keys, in all connections. If there is one among them that was not held till
    /// now, 0-RTT is refused for [`replay_filter::DEPTH`], as after a start: another process may have held it, such as the one
    /// before this, and what that accepted is not known here (RFC 8446 §8.2).
    pub fn set_keys(&self, keys: TicketKeys) {
        let mut held = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        if let ZeroRtt::AnyServer(replay_filter) | ZeroRtt::ThisServer(replay_filter) =
            &self.zero_rtt
            && !held.hold_all_of(&keys)
        {
            replay_filter.on_foreign_keys(self.clock.now());
        }
        *held = keys;
    }

    /// How long tickets are good for.
    #[must_use]
    pub const fn lifetime(&self) -> Duration {
        self.lifetime
    }

    /// Whether there is 0-RTT at all.
    pub(super) const fn takes_zero_rtt(&self) -> bool {
        !matches!(self.zero_rtt, ZeroRtt::Off)
    }

    /// The clock, for the TLS library.
    pub(super) fn clock(&self) -> Arc<dyn WallClock> {
        Arc::clone(&self.clock)
    }

    /// A thread that panicked left no keys half set.
    fn keys(&self) -> RwLockReadGuard<'_, TicketKeys> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Tickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tickets")
            .field("keys", &self.keys())
            .field("lifetime", &self.lifetime)
            .field("zero_rtt", &self.zero_rtt)
            .field("server_id", &self.server_id)
            .finish_non_exhaustive()
    }
}
