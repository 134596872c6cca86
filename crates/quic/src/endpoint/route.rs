//! Routing of datagrams (RFC 9000 §5.2).
//!
//! Owns the order of the steps. A client's first packet is handled in `accept.rs`.

use core::fmt;

use lastbyte_congestion::Time;
use lastbyte_wire::{
    ConnectionId, TransportError,
    packet::{Invariant, LongInvariant, StatelessReset, VersionNumber},
};

use super::{
    DropReason, Endpoint, Handle,
    demux::{InitialRoute, address_bytes},
    reset,
    slot::Content,
    version,
};
use crate::connection::{Connection, NetworkPath};

/// The result of routing a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the connection is to be given the datagram"]
pub enum Route {
    /// It belongs to this connection: pass it to that.
    Connection(Handle),
    /// It created this connection: pass it to that.
    Accepted(Handle),
    /// It belongs to a connection that is closed, and was returned by [`Endpoint::poll_closed`]. Nothing more is to be
    /// done with it.
    Closed(Handle),
    /// It was a stateless reset and ended this connection. Nothing more is to be done with it.
    Reset(Handle),
    /// It belongs to no connection and was answered; [`Endpoint::poll_transmit`] returns the response.
    Answered(Answer),
    /// It belongs to no connection yet: 0-RTT packets that may have arrived before their connection's first packet. A
    /// copy is passed to the connection once that is created; nothing more is to be done with it.
    Kept,
    /// It was dropped.
    Dropped(DropReason),
}

/// A stateless response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// RFC 9000 §8.1.2.
    Retry,
    /// RFC 9000 §6.1.
    VersionNegotiation,
    /// RFC 9000 §10.3.
    StatelessReset,
    /// An Initial packet with `CONNECTION_CLOSE` and this code.
    Refused(TransportError),
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Retry => f.write_str("Retry"),
            Self::VersionNegotiation => f.write_str("Version Negotiation"),
            Self::StatelessReset => f.write_str("stateless reset"),
            Self::Refused(code) => write!(f, "refused: {code}"),
        }
    }
}

impl From<DropReason> for Route {
    fn from(reason: DropReason) -> Self {
        Self::Dropped(reason)
    }
}

/// RFC 9000 §14.1: minimum size of a datagram that creates a connection.
const INITIAL_DATAGRAM_MIN: usize = 1200;

impl<D> Endpoint<D> {
    /// Finds or makes the connection of a datagram; a new one's data is the default. Otherwise as [`Endpoint::route_with`].
    pub fn route(&mut self, now: Time, path: &NetworkPath, datagram: &mut [u8]) -> Route
    where
        D: Default,
    {
        self.route_with(now, path, datagram, |_, _| D::default())
    }

    /// Routes a received datagram. If it belongs to a connection or creates one, pass it to
    /// [`Connection::handle_datagram`] of [`Endpoint::connection`]; otherwise nothing more is to be done. The datagram is not
    /// changed. `make` returns the data of a connection that it creates.
    pub fn route_with(
        &mut self,
        now: Time,
        path: &NetworkPath,
        datagram: &mut [u8],
        make: impl FnOnce(Handle, &mut Connection) -> D,
    ) -> Route {
        self.statistics.datagrams += 1;
        let mut route = self.find(now, path, datagram, make);
        if let Route::Connection(handle) = route
            && self.answer_closing(handle, path, datagram.len())
        {
            route = Route::Closed(handle);
        }
        if let Route::Connection(handle) | Route::Accepted(handle) | Route::Reset(handle) = route {
            self.touch(handle);
        }
        match route {
            Route::Connection(_) | Route::Closed(_) => self.statistics.routed += 1,
            Route::Accepted(_) => self.statistics.accepted += 1,
            Route::Reset(_) => self.statistics.resets_received += 1,
            Route::Dropped(reason) => self.statistics.count_drop(reason),
            Route::Kept => self.statistics.early_kept += 1,
            Route::Answered(Answer::Retry) => self.statistics.retries += 1,
            Route::Answered(Answer::VersionNegotiation) => {
                self.statistics.version_negotiations += 1;
            }
            Route::Answered(Answer::StatelessReset) => self.statistics.resets_sent += 1,
            Route::Answered(Answer::Refused(code)) => {
                self.statistics.refused += 1;
                let is_token = code == TransportError::INVALID_TOKEN;
                self.statistics.refused_tokens += u64::from(is_token);
            }
        }
        route
    }

    /// Whether a datagram seems to belong to a connection of another endpoint behind the same address: it belongs to no
    /// connection of this one, and cannot create one. The datagram is not changed. While another process finishes the
    /// connections of an earlier endpoint, such datagrams are to be passed there, and not to [`Endpoint::route`], which
    /// would answer some of them with a stateless reset.
    pub fn is_foreign(&mut self, path: &NetworkPath, datagram: &mut [u8]) -> bool {
        let Ok(invariant) = Invariant::decode(datagram) else {
            return false;
        };
        let (is_long, is_known) = match &invariant {
            Invariant::Short(_) => {
                let id = invariant.destination(self.ids.id_len());
                let is_known = id.is_none_or(|id| self.demux.by_id(id).is_some());
                (false, is_known)
            }
            Invariant::Long(long) => (true, self.find_long(path, long).is_some()),
        };
        let is_reset = || {
            let reset = StatelessReset::decode(datagram)?;
            self.demux.by_reset_token(path, reset.token)
        };
        if is_known || is_reset().is_some() {
            return false;
        }
        !is_long || self.continues_handshake(datagram)
    }

    fn find(
        &mut self,
        now: Time,
        path: &NetworkPath,
        datagram: &mut [u8],
        make: impl FnOnce(Handle, &mut Connection) -> D,
    ) -> Route {
        let Ok(invariant) = Invariant::decode(datagram) else {
            // It may be short and still be a stateless reset.
            return self
                .take_reset(now, path, datagram)
                .unwrap_or(DropReason::Malformed.into());
        };
        match invariant {
            Invariant::Short(_) => {
                let id = invariant
                    .destination(self.ids.id_len())
                    .and_then(ConnectionId::new);
                self.find_short(now, path, id, datagram)
            }
            Invariant::Long(long) => {
                if let Some(handle) = self.find_long(path, &long) {
                    return Route::Connection(handle);
                }
                // §10.3.1: a datagram with a long header may be a stateless reset too.
                if let Some(route) = self.take_reset(now, path, datagram) {
                    return route;
                }
                self.answer_long(now, path, datagram, make)
            }
        }
    }

    /// `id` is `None` if the datagram is too short to have one.
    fn find_short(
        &mut self,
        now: Time,
        path: &NetworkPath,
        id: Option<ConnectionId>,
        datagram: &[u8],
    ) -> Route {
        if let Some(id) = id
            && let Some(handle) = self.demux.by_id(id.as_slice())
        {
            return Route::Connection(handle);
        }
        // Before the addresses: where IDs are empty, these would route resets to their connection like everything else.
        if let Some(route) = self.take_reset(now, path, datagram) {
            return route;
        }
        if let Some(handle) = self.demux.by_path(path) {
            return Route::Connection(handle);
        }
        match id {
            Some(id) if !id.is_empty() => {
                self.on_unknown_connection(now, path, &id, datagram.len())
            }
            _ => DropReason::UnknownConnection.into(),
        }
    }

    fn find_long(&self, path: &NetworkPath, long: &LongInvariant<'_>) -> Option<Handle> {
        if let Some(handle) = self.demux.by_id(long.destination) {
            return Some(handle);
        }
        if long.destination.is_empty() {
            return self.demux.by_path(path);
        }
        let route = InitialRoute {
            remote: address_bytes(path.remote),
            destination: ConnectionId::new(long.destination)?,
        };
        self.demux.by_initial(&route)
    }

    /// Ends the connection that the reset token at the end of the datagram belongs to (RFC 9000 §10.3.1).
    fn take_reset(&mut self, now: Time, path: &NetworkPath, datagram: &[u8]) -> Option<Route> {
        let reset = StatelessReset::decode(datagram)?;
        let handle = self.demux.by_reset_token(path, reset.token)?;
        if let Content::Closing(closing) = &mut self.slots.get_mut(handle)?.content {
            closing.on_stateless_reset(now);
            return Some(Route::Closed(handle));
        }
        self.connection(handle)?.on_stateless_reset(now);
        Some(Route::Reset(handle))
    }

    /// Sends a stateless reset for a connection that is unknown (RFC 9000 §10.3).
    fn on_unknown_connection(
        &mut self,
        now: Time,
        path: &NetworkPath,
        id: &ConnectionId,
        len: usize,
    ) -> Route {
        if !self.sends_resets {
            return DropReason::UnknownConnection.into();
        }
        let id_bytes = id.as_slice();
        let earlier = self.earlier_ids.as_ref();
        if !self.ids.is_own(id_bytes) && !earlier.is_some_and(|ids| ids.is_own(id_bytes)) {
            return DropReason::Foreign.into();
        }
        let Some(len) = reset::len(len) else {
            return DropReason::UnknownConnection.into();
        };
        if self.answers.is_full() || !self.buckets.resets.take(now) {
            return DropReason::TooManyAnswers.into();
        }
        let token = self.own_ids.reset_token(id);
        let random = self.random.bytes();
        self.answered(path, Answer::StatelessReset, |buffer| {
            reset::write(buffer, len, random, token)
        })
    }

    /// A long header without a connection.
    fn answer_long(
        &mut self,
        now: Time,
        path: &NetworkPath,
        datagram: &mut [u8],
        make: impl FnOnce(Handle, &mut Connection) -> D,
    ) -> Route {
        let Ok(Invariant::Long(long)) = Invariant::decode(datagram) else {
            return DropReason::Malformed.into();
        };
        if long.version == VersionNumber::NEGOTIATION {
            return DropReason::VersionNegotiation.into();
        }
        let Some(server) = &self.server else {
            return DropReason::NoServer.into();
        };
        let version = long.version.known();
        if version.is_some_and(|version| server.config.speaks(version)) {
            return self.answer_initial(now, path, datagram, make);
        }
        if datagram.len() < INITIAL_DATAGRAM_MIN {
            return DropReason::TooSmall.into();
        }
        if self.answers.is_full() || !self.buckets.version_negotiations.take(now) {
            return DropReason::TooManyAnswers.into();
        }
        let connection = &server.config.connection;
        let random = self.random.number();
        let is_answered = self.answers.push(path, |buffer| {
            version::write(buffer, &long, &connection.versions, random)
        });
        if is_answered {
            Route::Answered(Answer::VersionNegotiation)
        } else {
            DropReason::TooManyAnswers.into()
        }
    }

    /// Queues a response, unless the queue is full.
    pub(super) fn answered(
        &mut self,
        path: &NetworkPath,
        answer: Answer,
        write: impl FnOnce(&mut [u8]) -> Option<usize>,
    ) -> Route {
        if self.answers.push(path, |buffer| write(buffer)) {
            Route::Answered(answer)
        } else {
            DropReason::TooManyAnswers.into()
        }
    }
}

/// Whether a datagram is long enough to create a connection.
pub(super) const fn is_initial_size(datagram: &[u8]) -> bool {
    datagram.len() >= INITIAL_DATAGRAM_MIN
}
