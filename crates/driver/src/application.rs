//! What runs on a worker.

use std::io;

use lastbyte_congestion::Time;
use lastbyte_quic::{
    ack::EcnCodepoint,
    connection::{Connection, NetworkPath},
    endpoint::{Closed, Endpoint, Handle},
    stream::KeepAll,
};

use super::worker::Statistics;

/// A datagram for a connection.
#[derive(Debug)]
pub struct Datagram<'a> {
    /// The way it came.
    pub path: NetworkPath,
    /// Its mark.
    pub ecn: EcnCodepoint,
    /// Its packets, which are opened in place.
    pub bytes: &'a mut [u8],
}

/// What an application wants of the loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// When it wants to be called again at the latest; `None` for when something happens.
    pub deadline: Option<Time>,
    /// Whether it is done: the loop ends.
    pub is_done: bool,
}

/// What runs on a worker: a server, a client, a load generator. All calls come from the worker's thread, one at a time.
///
/// A connection that is handed in may be written to at once; what is to be sent is sent at the end of the turn.
pub trait Application {
    /// What other threads say to it.
    type Command: Send + 'static;

    /// A client's connection begins. Its first datagram comes next.
    fn on_accepted(&mut self, now: Time, handle: Handle, connection: &mut Connection);

    /// A datagram, to be given to the connection. That is all there is to do here, with a sink for the data of streams if
    /// the application has one.
    fn on_datagram(
        &mut self,
        now: Time,
        handle: Handle,
        connection: &mut Connection,
        datagram: Datagram<'_>,
    ) {
        let _ = (&self, handle);
        let Datagram { path, ecn, bytes } = datagram;
        connection.handle_datagram(now, &path, ecn, bytes, &mut KeepAll);
    }

    /// Datagrams came, or a timer expired: the connection may have events.
    fn on_ready(&mut self, now: Time, handle: Handle, connection: &mut Connection);

    /// A connection is over. Its last events can be read from it.
    fn on_closed(&mut self, now: Time, closed: Closed);

    /// What the worker has counted until now: said before commands, so that one of them can ask for it.
    fn on_statistics(&mut self, statistics: &Statistics) {
        let _ = (&self, statistics);
    }

    /// Another thread says something.
    fn on_command(&mut self, now: Time, endpoint: &mut Endpoint, command: Self::Command);

    /// Once a turn, after all that happened and before anything is sent.
    fn on_turn(&mut self, now: Time, endpoint: &mut Endpoint) -> Turn;

    /// Datagrams could not be sent, for a reason that may pass. Loss recovery will send their data again.
    fn on_send_error(&mut self, now: Time, path: &NetworkPath, error: &io::Error) {
        let _ = (&self, now, path, error);
    }
}
