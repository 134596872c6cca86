//! The session store of one server connection, and the rewriting of its tickets.
//!
//! Owns the sessions that rustls stores, until they are sealed; which `ClientHello` is being read; whether a ticket and
//! its 0-RTT are accepted. It lives as long as its connection, and never fails it: an error here costs a ticket or a
//! round trip.
//!
//! The order of events, all within one call of [`super::super::Session::read_crypto`]:
//!
//! 1. [`ServerTickets::on_initial`] hashes the `ClientHello`, which may arrive in pieces, up to the piece that
//!    completes it.
//! 2. rustls reads it, and asks the store for each ticket offered, in order, until it accepts one
//!    ([`StoresServerSessions::take`]). Here a ticket is opened, and 0-RTT accepted or refused. *After* that it checks
//!    the binder, so an attacker that copies a ticket can fill the replay filter, but does not block the real client,
//!    whose `ClientHello` differs.
//! 3. After the client's Finished rustls stores a session for each ticket it sends ([`StoresServerSessions::put`]),
//!    under a random name, and [`ServerTickets::rewrite`] replaces the name by the sealed session.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use aws_lc_rs::{
    aead::NONCE_LEN,
    digest::{Context, SHA256},
};
use lastbyte_wire::{Side, packet::Version, transport_parameters::TransportParameters};
use rustls::{crypto::SecureRandom, server::StoresServerSessions};

use super::{
    LIFETIME_MAX, Refusal, ResumedTicket, Strike, Tickets, ZeroRtt,
    contents::Contents,
    message::{HEADER_LEN, Messages, NEW_SESSION_TICKET, NewSessionTicket, body_len},
};
use crate::{WallTime, crypto::CRYPTO_OUT_MAX};

#[cfg(test)]
mod tests;

/// Maximum lead of another server's clock.
const CLOCK_SKEW: Duration = Duration::from_secs(60);
/// Maximum number of tickets tried for one `ClientHello`.
const OFFERS_MAX: usize = 4;
/// Maximum number of sessions kept until they are sealed: rustls' tickets of one handshake.
const STORED_MAX: usize = 16;
/// The encoding of a session ends with the offset of its ticket's age.
const AGE_OFFSET_LEN: usize = 4;

/// The tickets of one connection.
pub(in crate::crypto) struct ServerTickets {
    store: Arc<TicketStore>,
    /// Output of rustls that was not a complete message yet.
    outgoing: Messages,
    resumed: Option<ResumedTicket>,
}

/// The store as rustls sees it.
pub(in crate::crypto) struct TicketStore {
    tickets: Arc<Tickets>,
    random: &'static dyn SecureRandom,
    first: Version,
    version: Version,
    /// The remembered parameters. `None` if they cannot be decoded, which prevents 0-RTT.
    parameters: Option<TransportParameters>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    hello: Hello,
    /// Number of tickets of this `ClientHello` tried.
    offers: usize,
    /// By the names that rustls chose; at most [`STORED_MAX`].
    stored: Vec<(Vec<u8>, Vec<u8>)>,
    /// The last one that was opened.
    opened: Option<ResumedTicket>,
}

/// The `ClientHello` being received.
#[derive(Default)]
struct Hello {
    /// Number of complete hellos. A second one follows a `HelloRetryRequest`.
    count: usize,
    header: Vec<u8>,
    /// Missing bytes of the body, and the hash so far.
    body: Option<(usize, Context)>,
    /// SHA-256 of the last complete one.
    hash: Option<[u8; 32]>,
}

impl Hello {
    fn read(&mut self, mut data: &[u8]) {
        while !data.is_empty() {
            let Some((missing, hash)) = &mut self.body else {
                let (head, rest) = data.split_at(data.len().min(HEADER_LEN - self.header.len()));
                self.header.extend_from_slice(head);
                data = rest;
                if let Some([_, length @ ..]) = self.header.first_chunk::<HEADER_LEN>() {
                    let mut hash = Context::new(&SHA256);
                    hash.update(&self.header);
                    self.body = Some((body_len(*length), hash));
                }
                continue;
            };
            let (part, rest) = data.split_at(data.len().min(*missing));
            hash.update(part);
            *missing -= part.len();
            data = rest;
            if *missing == 0
                && let Some((_, hash)) = self.body.take()
            {
                self.header.clear();
                self.count += 1;
                self.hash = hash.finish().as_ref().try_into().ok();
            }
        }
    }
}

impl ServerTickets {
    /// The tickets of a connection whose server has these transport parameters. Tickets of the first version are
    /// accepted, and those issued are of the second: the one in which the connection continues (RFC 9369 §5).
    pub(in crate::crypto) fn new(
        tickets: &Arc<Tickets>,
        random: &'static dyn SecureRandom,
        (first, version): (Version, Version),
        parameters: &[u8],
    ) -> Self {
        let parameters = TransportParameters::decode(parameters, Side::Server);
        Self {
            store: Arc::new(TicketStore {
                tickets: Arc::clone(tickets),
                random,
                first,
                version,
                parameters: parameters.ok().map(|parameters| parameters.remembered()),
                state: Mutex::default(),
            }),
            outgoing: Messages::default(),
            resumed: None,
        }
    }

    /// The store for rustls.
    pub(in crate::crypto) fn store(&self) -> Arc<TicketStore> {
        Arc::clone(&self.store)
    }

    /// Observes CRYPTO data of Initial packets before rustls reads it.
    pub(in crate::crypto) fn on_initial(&mut self, data: &[u8]) {
        let mut state = self.store.state();
        state.hello.read(data);
        state.offers = 0;
    }

    /// The `ClientHello` was answered; the session in the ticket opened last was resumed or not. Has no effect once it
    /// was called.
    pub(in crate::crypto) fn on_answered(&mut self, is_resumed: bool) {
        let opened = self.store.state().opened.take();
        if let Some(opened) = opened.filter(|_| is_resumed) {
            self.resumed = Some(opened);
        }
    }

    /// The ticket with which the session was resumed.
    pub(in crate::crypto) const fn resumed(&self) -> Option<&ResumedTicket> {
        self.resumed.as_ref()
    }

    /// As [`Self::resumed`], when it is the last call here.
    pub(in crate::crypto) const fn take_resumed(&mut self) -> Option<ResumedTicket> {
        self.resumed.take()
    }

    /// The output to send in place of what rustls wrote for 1-RTT packets: `written` from `start` on.
    pub(in crate::crypto) fn rewrite(&mut self, written: &mut Vec<u8>, start: usize) {
        let start = start.min(written.len());
        self.outgoing.push(&written[start..]);
        written.truncate(start);
        while let Some(message) = self.outgoing.next() {
            if message.first() == Some(&NEW_SESSION_TICKET) {
                // Without its session it would be useless, so it is not sent.
                let sealed = self.store.sealed(&message).unwrap_or_default();
                if written.len() + sealed.len() <= CRYPTO_OUT_MAX {
                    written.extend(sealed);
                }
            } else {
                written.extend(message);
            }
        }
        if self.outgoing.is_overlong() {
            written.extend(self.outgoing.take_rest());
        }
    }
}

impl TicketStore {
    /// A thread that panicked left no state that matters: at worst a ticket is missing.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The message with its sealed session.
    fn sealed(&self, message: &[u8]) -> Option<Vec<u8>> {
        let message = NewSessionTicket::decode(message)?;
        let mut state = self.state();
        let index = state
            .stored
            .iter()
            .position(|(name, _)| name == message.ticket)?;
        let (_, session) = state.stored.swap_remove(index);
        let parameters = self.parameters.as_ref().map(TransportParameters::to_vec);
        let contents = Contents {
            issued: self.tickets.clock.now(),
            version: self.version.number().get(),
            parameters: &parameters.unwrap_or_default(),
            session: &session,
        }
        .encode()?;
        let mut nonce = [0; NONCE_LEN];
        self.random.fill(&mut nonce).ok()?;
        let ticket = self.tickets.keys().seal(nonce, &contents)?;
        let lifetime_s = u32::try_from(LIFETIME_MAX.as_secs()).ok()?;
        NewSessionTicket {
            lifetime_s,
            ticket: &ticket,
            ..message
        }
        .encode()
    }

    /// Why 0-RTT is refused with this ticket.
    fn refusal(&self, state: &State, contents: &Contents<'_>, now: WallTime) -> Option<Refusal> {
        let ZeroRtt::AnyServer(replay_filter) = &self.tickets.zero_rtt else {
            return Some(Refusal::Off);
        };
        if state.offers != 1 || state.hello.count != 1 {
            return Some(Refusal::NotFirst);
        }
        if !self.keeps_promises(contents) {
            return Some(Refusal::Reduced);
        }
        // Last, so that only acceptable ones use its room.
        match state
            .hello
            .hash
            .map(|hash| replay_filter.strike(&hash, now))
        {
            Some(Strike::New) => None,
            Some(Strike::Full) => Some(Refusal::RegisterFull),
            Some(Strike::Blind) => Some(Refusal::RegisterBlind),
            Some(Strike::Seen) | None => Some(Refusal::Replayed),
        }
    }

    /// Whether no limit is lower than the one that the client remembers (RFC 9000 §7.4.1).
    fn keeps_promises(&self, contents: &Contents<'_>) -> bool {
        let remembered = TransportParameters::decode(contents.parameters, Side::Server);
        match (&self.parameters, remembered) {
            (Some(ours), Ok(remembered)) => remembered.check_not_reduced(ours).is_ok(),
            _ => false,
        }
    }
}

impl StoresServerSessions for TicketStore {
    fn put(&self, name: Vec<u8>, session: Vec<u8>) -> bool {
        let mut state = self.state();
        let has_room = state.stored.len() < STORED_MAX;
        if has_room {
            state.stored.push((name, session));
        }
        has_room
    }

    /// Only TLS 1.2 requests it.
    fn get(&self, _name: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn take(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let mut state = self.state();
        state.offers += 1;
        if state.offers > OFFERS_MAX {
            return None;
        }
        let opened = self.tickets.keys().open(ticket)?;
        let contents = Contents::decode(&opened).ok()?;
        let now = self.tickets.clock.now();
        // rustls' server does not request the age of a session.
        let is_alive =
            now.since(contents.issued) <= LIFETIME_MAX && contents.issued <= now + CLOCK_SKEW;
        if !is_alive || !contents.is_of(self.first) {
            return None;
        }
        let refusal = self.refusal(&state, &contents, now);
        let mut session = contents.session.to_vec();
        if refusal.is_some() {
            make_stale(&mut session)?;
        }
        state.opened = Some(ResumedTicket {
            issued: contents.issued,
            refusal,
        });
        Some(session)
    }

    fn can_cache(&self) -> bool {
        true
    }
}

/// Makes rustls conclude that the client's claim of the ticket's age is wrong by 2^31 ms.
fn make_stale(session: &mut [u8]) -> Option<()> {
    let offset = session.len().checked_sub(AGE_OFFSET_LEN)?;
    *session.get_mut(offset)? ^= 0x80;
    Some(())
}

impl fmt::Debug for ServerTickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTickets")
            .field("resumed", &self.resumed)
            .finish_non_exhaustive()
    }
}

/// Sessions are secret.
impl fmt::Debug for TicketStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TicketStore")
            .field("tickets", &self.tickets)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}
