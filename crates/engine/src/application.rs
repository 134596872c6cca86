//! The trait that a server, a client or a load generator implements to run on an engine.

use std::io;

use lastbyte_congestion::Time;
use lastbyte_quic::{
    ack::Ecn,
    connection::{Connection, NetworkPath},
    endpoint::{Closed, Endpoint, Handle},
    stream::KeepAll,
};

/// A received datagram for a connection.
#[derive(Debug)]
pub struct Datagram<'a> {
    /// The addresses it was received on and from.
    pub path: NetworkPath,
    /// The ECN codepoint of its IP header.
    pub ecn: Ecn,
    /// Its packets. They are decrypted in place.
    pub bytes: &'a mut [u8],
}

/// When the next turn is due, and whether there is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Next {
    /// The latest time of the next turn; `None` if it is needed only after an event.
    pub deadline: Option<Time>,
    /// Whether there is a next turn.
    pub status: Status,
}

/// Whether an application goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Status {
    /// It has something to do, or waits for it.
    #[default]
    Running,
    /// It has nothing left to do. The shell may go on for a reason of its own, and then the application has further turns.
    Finished,
    /// It ends now, and has no further turns, unless [`Engine::resume`](crate::Engine::resume) is called. While the last
    /// packets are sent, its connections may still have events, and no more are accepted.
    Stopped,
}

impl Status {
    /// [`Status::Stopped`] if the application is done, otherwise [`Status::Running`].
    #[must_use]
    pub const fn stopped_if(is_done: bool) -> Self {
        if is_done {
            Self::Stopped
        } else {
            Self::Running
        }
    }
}

/// What runs on an engine: a server, a client, a load generator. The methods are called one at a time.
///
/// They may write to the connection they receive. The resulting datagrams are sent at the end of the turn.
pub trait Application {
    /// Commands from the outside.
    type Command;
    /// The application's data of a connection. The endpoint stores it beside the connection.
    type Data;

    /// Called when a client has opened a connection, before its first datagram is passed to
    /// [`on_datagram`](Self::on_datagram). Returns the data of the connection.
    fn on_accepted(&mut self, now: Time, handle: Handle, connection: &mut Connection)
    -> Self::Data;

    /// Passes a received datagram to its connection. Override it only to receive stream data in a sink of your own as it
    /// arrives; call [`Connection::handle_datagram`] exactly once.
    fn on_datagram(
        &mut self,
        now: Time,
        handle: Handle,
        connection: &mut Connection,
        data: &mut Self::Data,
        datagram: Datagram<'_>,
    ) {
        let _ = (&self, handle, data);
        let Datagram { path, ecn, bytes } = datagram;
        connection.handle_datagram(now, &path, ecn, bytes, &mut KeepAll);
    }

    /// Called after datagrams arrived for a connection or a timer of it expired: it may have events to poll.
    fn on_ready(
        &mut self,
        now: Time,
        handle: Handle,
        connection: &mut Connection,
        data: &mut Self::Data,
    );

    /// Called when a connection has ended. Its last events can still be polled.
    fn on_closed(&mut self, now: Time, closed: Closed<Self::Data>);

    /// Called for each command.
    fn on_command(
        &mut self,
        now: Time,
        endpoint: &mut Endpoint<Self::Data>,
        command: Self::Command,
    );

    /// Called once per turn, after all other events and before anything is sent.
    fn on_turn(&mut self, now: Time, endpoint: &mut Endpoint<Self::Data>) -> Next;

    /// Called when datagrams could not be sent for a reason that may be temporary. Loss recovery retransmits their data.
    fn on_send_error(&mut self, now: Time, path: &NetworkPath, error: &io::Error) {
        let _ = (&self, now, path, error);
    }
}
