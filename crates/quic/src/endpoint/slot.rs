//! The life of a connection within the endpoint: from its first entry in the tables to its last.
//!
//! Owns the endpoint's state of each connection, and the totals of clients' handshakes.

use core::mem;

use lastbyte_congestion::Time;
use lastbyte_wire::Side;

use super::{
    Endpoint, Handle,
    demux::Routes,
    prefix::{Prefix, Prefixes},
};
use crate::connection::{Connection, Stage};

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
    pub(super) connection: Box<Connection>,
    pub(super) data: D,
    side: Side,
    pub(super) routes: Routes,
    pub(super) is_ready: bool,
    pub(super) is_touched: bool,
    /// Until the handshake is complete.
    pub(super) handshake: Option<Handshake>,
    /// The client's address when the handshake was completed.
    established: Option<Prefix>,
    /// The extra data of the token of an earlier connection.
    pub(super) token_extra: Vec<u8>,
    /// Whether the client has yet to receive a token for its next connection.
    owes_token: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Handshake {
    pub(super) deadline: Time,
    /// The client's address, if it is validated.
    pub(super) validated: Option<Prefix>,
}

/// A closed connection, which is no longer routed to: its last events can be read.
#[derive(Debug)]
pub struct Closed<D = ()> {
    /// Its former handle.
    pub handle: Handle,
    /// The connection. [`Connection::close_reason`] says why it closed.
    pub connection: Box<Connection>,
    /// The application's data.
    pub data: D,
    /// Whether it was dropped because its handshake took too long
    /// ([`Limits::handshake_timeout`](super::Limits::handshake_timeout)); then it has no reason of its own.
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
        let mut slot = Slot {
            data: make(handle, &mut connection),
            connection,
            side,
            routes: Routes::default(),
            is_ready: true,
            is_touched: false,
            handshake: Some(handshake),
            established: None,
            token_extra: Vec::new(),
            owes_token: side == Side::Server,
        };
        self.load.begin(side, &handshake, &mut self.prefixes);
        self.demux.sync(handle, &mut slot.routes, &slot.connection);
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

    /// Processes the changes of a connection that has nothing more to send.
    pub(super) fn settle(&mut self, handle: Handle) {
        let Some(slot) = self.slots.get_mut(handle) else {
            return;
        };
        if slot.connection.is_over() {
            self.remove(handle, false);
            return;
        }
        if slot.connection.stage() != Stage::Handshaking
            && let Some(handshake) = slot.handshake.take()
        {
            self.load.end(slot.side, &handshake, &mut self.prefixes);
            if slot.side == Side::Server {
                let prefix = Prefix::of(slot.connection.network().remote);
                slot.established = Some(prefix);
                self.established.begin(prefix);
            }
        }
        self.demux.sync(handle, &mut slot.routes, &slot.connection);
        let give_up = slot.handshake.map(|handshake| handshake.deadline);
        let deadline = slot.connection.deadline().into_iter().chain(give_up).min();
        self.timers.set(handle.index(), deadline);
    }

    /// Once the handshake is confirmed, issues a token to the client if configured, in the packet that confirms it.
    pub(super) fn give_owed_token(&mut self, now: Time, handle: Handle) {
        let Some(slot) = self.slots.get_mut(handle) else {
            return;
        };
        if !slot.owes_token || slot.connection.stage() != Stage::Confirmed {
            return;
        }
        slot.owes_token = false;
        let is_wanted = self
            .server
            .as_ref()
            .is_some_and(|server| server.config.sends_new_tokens);
        let remote = self.peek(handle).map(|peer| peer.network().remote);
        if is_wanted
            && let Some(remote) = remote
            && let Some(token) = self.new_token(now, remote, &[])
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
        self.statistics.closed += 1;
        self.closed.push_back(Closed {
            handle,
            connection: slot.connection,
            data: slot.data,
            is_handshake_timeout,
        });
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
