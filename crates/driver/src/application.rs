//! The trait that a server, a client or a load generator implements to run on a worker, and the steps of a turn that all event
//! loops share.

use std::io;

use lastbyte_congestion::Time;
use lastbyte_quic::{
    ack::EcnCodepoint,
    connection::{Connection, NetworkPath},
    endpoint::{Closed, Endpoint, Handle, Route},
    stream::KeepAll,
};

use lastbyte_udp::Socket;

use super::{relay::Predecessor, statistics::Statistics};

/// A received datagram for a connection.
#[derive(Debug)]
pub struct Datagram<'a> {
    /// The addresses it was received on and from.
    pub path: NetworkPath,
    /// The ECN codepoint of its IP header.
    pub ecn: EcnCodepoint,
    /// Its packets. They are decrypted in place.
    pub bytes: &'a mut [u8],
}

/// Requests of an application to the event loop after its turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// The latest time of its next turn; `None` if it needs one only after an event.
    pub deadline: Option<Time>,
    /// Whether the application has finished: the loop returns.
    pub is_done: bool,
}

/// What runs on a worker: a server, a client, a load generator. All methods are called from the worker's thread, one at a time.
///
/// Methods may write to the connection they receive. The worker sends the resulting datagrams at the end of the turn.
pub trait Application {
    /// Commands from other threads, sent by a [`Remote`](crate::Remote).
    type Command: Send + 'static;
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

    /// Called with the worker's counters before commands are delivered, so that a command can ask for them.
    fn on_statistics(&mut self, statistics: &Statistics) {
        let _ = (&self, statistics);
    }

    /// Called for each command from another thread.
    fn on_command(
        &mut self,
        now: Time,
        endpoint: &mut Endpoint<Self::Data>,
        command: Self::Command,
    );

    /// Called once per turn, after all other events and before anything is sent.
    fn on_turn(&mut self, now: Time, endpoint: &mut Endpoint<Self::Data>) -> Turn;

    /// Called once per turn, after [`on_turn`](Self::on_turn): a socket that takes the place of the current one, on another
    /// port. Connections that have not moved there keep the current one, until it is replaced a second time.
    fn take_socket(&mut self) -> Option<Socket> {
        None
    }

    /// Whether the worker reads its socket. If not, another process reads it; the worker sends over it all the same, and
    /// receives the datagrams that this process forwards ([`WorkerPool::inlet`](crate::WorkerPool::inlet)).
    fn is_receiving(&self) -> bool {
        true
    }

    /// Called once, when the worker starts: the link to an earlier process that finishes connections on the same address.
    /// Datagrams that belong to none of the connections here are forwarded to it, until it ends.
    fn take_predecessor(&mut self) -> Option<Predecessor> {
        None
    }

    /// Called when datagrams could not be sent for a reason that may be temporary. Loss recovery retransmits their data.
    fn on_send_error(&mut self, now: Time, path: &NetworkPath, error: &io::Error) {
        let _ = (&self, now, path, error);
    }
}

/// The step of a turn that passes a received datagram to its connection, which may be new.
pub fn receive<A: Application>(
    application: &mut A,
    endpoint: &mut Endpoint<A::Data>,
    now: Time,
    datagram: Datagram<'_>,
) {
    let Datagram { path, ecn, bytes } = datagram;
    let route = endpoint.route_with(now, &path, bytes, |handle, connection| {
        application.on_accepted(now, handle, connection)
    });
    if let Route::Connection(handle) | Route::Accepted(handle) = route
        && let Some((connection, data)) = endpoint.entry(handle)
    {
        let datagram = Datagram { path, ecn, bytes };
        application.on_datagram(now, handle, connection, data, datagram);
    }
}

/// The step of a turn that calls the application once for each connection that may have events.
pub fn notify_ready<A: Application>(
    application: &mut A,
    endpoint: &mut Endpoint<A::Data>,
    now: Time,
) {
    while let Some(handle) = endpoint.poll_touched() {
        if let Some((connection, data)) = endpoint.entry(handle) {
            application.on_ready(now, handle, connection, data);
        }
    }
}
