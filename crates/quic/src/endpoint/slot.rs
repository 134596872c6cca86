//! The life of a connection within the endpoint: from its first entry in the tables to its last.
//!
//! Owns the endpoint's state of each connection, and the totals of clients' handshakes.

use core::mem;

use lastbyte_congestion::Time;
use lastbyte_units::AddressPrefix;
use lastbyte_wire::Side;

use super::{Endpoint, Handle, closing::Closing, demux::Routes, prefix::Prefixes};
use crate::{
    close::CloseState,
    connection::{Connection, NetworkPath, Stage, Transmit},
    crypto::token::TokenPath,
};

/// Totals of clients' handshakes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Load {
    /// Handshakes in progress.
    pub(super) handshakes: usize,
    /// Of those, handshakes of clients whose address is not validated.
    pub(super) unvalidated: usize,
}

/// A connection, and the endpoint's state of it.
pub(super) struct Slot<D> {
    pub(super) content: Content<D>,
    side: Side,
    pub(super) routes: Routes,
    pub(super) is_ready: bool,
    pub(super) is_touched: bool,
    /// Until the handshake is complete.
    pub(super) handshake: Option<Handshake>,
    /// The client's address when the handshake was completed.
    established: Option<AddressPrefix>,
    /// Whether the client has yet to receive a token for its next connection.
    owes_token: bool,
    /// Of a server's connection that saves its path: [`TokenPath::connection`].
    path_identity: Option<u64>,
}

/// A connection, or its remaining state.
pub(super) enum Content<D> {
    /// The connection, and the application's data.
    Connection(Box<Connection>, D),
    /// The connection is closing or draining, and was returned to the caller.
    Closing(Box<Closing>),
}

impl<D> Slot<D> {
    pub(super) fn connection(&self) -> Option<&Connection> {
        match &self.content {
            Content::Connection(connection, _) => Some(connection),
            Content::Closing(_) => None,
        }
    }

    /// Writes the next datagram. Returns also whether the connection is not needed any longer: it is draining, or this
    /// is its `CONNECTION_CLOSE`. A connection that cannot send that yet is.
    pub(super) fn poll_transmit(
        &mut self,
        now: Time,
        buffer: &mut [u8],
    ) -> (Option<Transmit>, bool) {
        match &mut self.content {
            Content::Connection(connection, _) => {
                let state = connection.close_state().state();
                let transmit = connection.poll_transmit(now, buffer);
                let is_closed = match state {
                    CloseState::Closing => transmit.is_some(),
                    CloseState::Draining => true,
                    CloseState::Open | CloseState::Over => false,
                };
                (transmit, is_closed)
            }
            Content::Closing(closing) => (closing.poll_transmit(buffer), false),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Handshake {
    pub(super) deadline: Time,
    /// The client's address, if it is validated.
    pub(super) validated: Option<AddressPrefix>,
}

/// A closed connection: its last events can be read. Late packets of it are not passed to it any longer
/// ([`Route::Closed`](super::Route::Closed)).
#[derive(Debug)]
pub struct Closed<D = ()> {
    /// Its former handle.
    pub handle: Handle,
    /// The connection. [`Connection::close_reason`] says why it closed.
    pub connection: Box<Connection>,
    /// The application's data.
    pub data: D,
    /// Whether it was dropped because its handshake took too long
    /// ([`Limits::handshake_timeout`](super::Limits::handshake_timeout)); then it has no close reason.
    pub is_handshake_timeout: bool,
}

impl<D> Endpoint<D> {
    pub(super) fn add(
        &mut self,
        connection: Connection,
        side: Side,
        handshake: Handshake,
        make: impl FnOnce(Handle, &mut Connection) -> D,
    ) -> Handle {
        let handle = self.slots.next_handle();
        let mut connection = Box::new(connection);
        let data = make(handle, &mut connection);
        let mut routes = Routes::default();
        self.demux.sync(handle, &mut routes, &connection);
        let slot = Slot {
            content: Content::Connection(connection, data),
            side,
            routes,
            is_ready: true,
            is_touched: false,
            handshake: Some(handshake),
            established: None,
            owes_token: side == Side::Server,
            path_identity: None,
        };
        self.load.begin(side, &handshake, &mut self.prefixes);
        self.ready.push_back(handle);
        self.slots.insert(slot)
    }

    /// Notes that a connection may have events.
    pub(super) fn touch(&mut self, handle: Handle) {
        if let Some(slot) = self.slots.get_mut(handle)
            && !mem::replace(&mut slot.is_touched, true)
        {
            self.touched.push_back(handle);
        }
    }

    /// Handles a datagram with an ID of this connection if it has been closed. Returns whether it has.
    pub(super) fn answer_closing(
        &mut self,
        handle: Handle,
        path: &NetworkPath,
        bytes: usize,
    ) -> bool {
        let Some(slot) = self.slots.get_mut(handle) else {
            return false;
        };
        let Content::Closing(closing) = &mut slot.content else {
            return false;
        };
        if closing.on_datagram(path, bytes) && !mem::replace(&mut slot.is_ready, true) {
            self.ready.push_back(handle);
        }
        true
    }

    /// Returns a connection that is closing or draining to the caller, and keeps this last datagram of it.
    pub(super) fn release(&mut self, handle: Handle, datagram: &[u8]) {
        let Some(slot) = self.slots.get_mut(handle) else {
            return;
        };
        let Some(connection) = slot.connection() else {
            return;
        };
        let closing = Closing::new(
            connection.close_state().clone(),
            connection.network(),
            datagram,
        );
        let content = mem::replace(&mut slot.content, Content::Closing(Box::new(closing)));
        if mem::take(&mut slot.is_touched) {
            self.touched.retain(|touched| *touched != handle);
        }
        self.return_closed(handle, content, false);
    }

    fn return_closed(&mut self, handle: Handle, content: Content<D>, is_handshake_timeout: bool) {
        if let Content::Connection(connection, data) = content {
            self.statistics.closed += 1;
            self.closed.push_back(Closed {
                handle,
                connection,
                data,
                is_handshake_timeout,
            });
        }
    }

    /// Processes the changes of a connection that has nothing more to send.
    pub(super) fn settle(&mut self, handle: Handle) {
        let Some(slot) = self.slots.get_mut(handle) else {
            return;
        };
        let connection = match &slot.content {
            Content::Connection(connection, _) => connection,
            Content::Closing(closing) => {
                self.timers.set(handle.index(), closing.deadline());
                return;
            }
        };
        if connection.is_over() {
            self.remove(handle, false);
            return;
        }
        if connection.stage() != Stage::Handshaking
            && let Some(handshake) = slot.handshake.take()
        {
            self.load.end(slot.side, &handshake, &mut self.prefixes);
            if slot.side == Side::Server {
                let prefix = AddressPrefix::of(connection.network().remote.ip());
                slot.established = Some(prefix);
                self.established.begin(prefix);
            }
        }
        self.demux.sync(handle, &mut slot.routes, connection);
        let give_up = slot.handshake.map(|handshake| handshake.deadline);
        let deadline = Time::earlier(connection.deadline(), give_up);
        self.timers.set(handle.index(), deadline);
    }

    /// Once the handshake is confirmed, issues a token to the client if configured, in the packet that confirms it; and another
    /// one whenever congestion control has measured a path that is worth saving.
    pub(super) fn issue_owed_token(&mut self, now: Time, handle: Handle) {
        let Some(slot) = self.slots.get_mut(handle) else {
            return;
        };
        let Content::Connection(connection, _) = &mut slot.content else {
            return;
        };
        if slot.side != Side::Server
            || connection.stage() != Stage::Confirmed
            || connection.is_closing()
        {
            return;
        }
        let saved = connection.take_path_to_save(now);
        if !slot.owes_token && saved.is_none() {
            return;
        }
        slot.owes_token = false;
        let path = saved.map(|saved| TokenPath {
            saved,
            connection: *slot
                .path_identity
                .get_or_insert_with(|| self.random.number()),
        });
        let is_wanted = self
            .server
            .as_ref()
            .is_some_and(|server| server.config.sends_new_tokens);
        let remote = self.peek(handle).map(|peer| peer.network().remote);
        if is_wanted
            && let Some(remote) = remote
            && let Some(token) = self.seal_token(now, remote, path)
            && let Some(connection) = self.connection(handle)
        {
            connection.send_new_token(token);
        }
    }

    pub(super) fn remove(&mut self, handle: Handle, is_handshake_timeout: bool) {
        let Some(slot) = self.slots.remove(handle) else {
            return;
        };
        if let Some(handshake) = &slot.handshake {
            self.load.end(slot.side, handshake, &mut self.prefixes);
        }
        if let Some(prefix) = &slot.established {
            self.established.end(prefix);
        }
        if slot.is_touched {
            self.touched.retain(|touched| *touched != handle);
        }
        self.timers.set(handle.index(), None);
        self.demux.remove(handle, slot.routes);
        self.return_closed(handle, slot.content, is_handshake_timeout);
    }
}

impl Load {
    fn begin(&mut self, side: Side, handshake: &Handshake, prefixes: &mut Prefixes) {
        if side == Side::Server {
            self.handshakes += 1;
            match handshake.validated {
                Some(prefix) => prefixes.begin(prefix),
                None => self.unvalidated += 1,
            }
        }
    }

    fn end(&mut self, side: Side, handshake: &Handshake, prefixes: &mut Prefixes) {
        if side == Side::Server {
            self.handshakes -= 1;
            match &handshake.validated {
                Some(prefix) => prefixes.end(prefix),
                None => self.unvalidated -= 1,
            }
        }
    }
}
