//! What the ends of a flow speak over their connection: HTTP/3, or next to nothing.
//!
//! Owns: the traits by which client and server use a protocol, and an end uses its client; who speaks which. Never: decides what is asked for and
//! when, or measures; that is for [`crate::client`] and [`crate::server`].
//!
//! | file | speaks |
//! |---|---|
//! | [`http3`] | HTTP/3 (RFC 9114), by the crate that server and client of `lastbyte` run |
//! | [`raw`] | a request and a response as they are on a QUIC stream, as in quicly's simulator |

use lastbyte_congestion::Time;
use lastbyte_quic::{
    ack::EcnCodepoint,
    connection::{Connection, Event, NetworkPath},
};

use lastbyte_wire::StreamId;

use crate::{
    client::Measures,
    listener::Way,
    scenario::{Handshake, Protocol},
    server::Messages,
};

pub(crate) mod http3;
mod raw;

/// A datagram that has come.
pub(crate) struct Incoming<'a> {
    pub(crate) now: Time,
    pub(crate) path: &'a NetworkPath,
    pub(crate) ecn: EcnCodepoint,
    pub(crate) bytes: &'a mut [u8],
}

/// A request cannot be sent: the server permits no further stream now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CannotAsk;

/// The application of a client's end.
pub(crate) trait ClientSide {
    /// When it wants to be attended to, if nothing happens before.
    fn deadline(&self) -> Option<Time>;

    /// Whether it is time to connect, or to ask: once.
    fn takes_wake(&mut self, now: Time) -> bool;

    /// Its connection has begun. In 0-RTT it asks at once.
    fn on_begun(&mut self, now: Time, connection: &mut Connection);

    /// Sends what it has to ask for now.
    fn ask(&mut self, now: Time, connection: &mut Connection);

    /// Gives the connection a datagram.
    fn receive(&mut self, connection: &mut Connection, incoming: Incoming<'_>);

    /// Something happened to the connection.
    fn on_event(&mut self, now: Time, connection: &mut Connection, event: &Event);

    /// Deals with what has arrived.
    fn attend(&mut self, now: Time, connection: &mut Connection);
}

/// A client's end.
pub(crate) trait Asks {
    /// Sends a request for this many bytes, or with them.
    fn ask(
        &mut self,
        connection: &mut Connection,
        size: u64,
        way: Way,
    ) -> Result<StreamId, CannotAsk>;

    /// Gives the connection a datagram, and measures what of the response was in it.
    fn receive(
        &mut self,
        connection: &mut Connection,
        incoming: Incoming<'_>,
        measures: &mut Measures,
    );

    /// Deals with what has happened.
    fn attend(&mut self, connection: &mut Connection, now: Time, measures: &mut Measures);

    /// The server did not take what was sent as 0-RTT; the transport sends it again.
    fn on_zero_rtt_rejected(&mut self) {}

    /// When [`Asks::attend`] wants to be called, if nothing happens before.
    fn deadline(&self) -> Option<Time> {
        None
    }
}

/// A server's end.
pub(crate) trait Responds {
    /// Gives the connection a datagram.
    fn receive(&mut self, connection: &mut Connection, incoming: Incoming<'_>);

    /// Answers what was asked for, and tells what is acknowledged.
    fn attend(&mut self, connection: &mut Connection, now: Time, answers: &mut Messages);

    /// When [`Responds::attend`] wants to be called, if nothing happens before.
    fn deadline(&self) -> Option<Time> {
        None
    }
}

impl Protocol {
    /// Its name in the handshake (RFC 7301).
    pub(crate) const fn alpn(self) -> &'static [u8] {
        match self {
            Self::Http3 => lastbyte_http3::ALPN,
            Self::Raw => raw::ALPN,
        }
    }

    /// A client's end of it. One that resumes an earlier connection remembers what the server said of itself then.
    pub(crate) fn client(self, handshake: Handshake) -> Box<dyn Asks> {
        match self {
            Self::Http3 => Box::new(http3::Client::new(handshake)),
            Self::Raw => Box::new(raw::Client),
        }
    }

    /// A server's end of it.
    pub(crate) fn server(self) -> Box<dyn Responds> {
        match self {
            Self::Http3 => Box::new(http3::Server::new()),
            Self::Raw => Box::new(raw::Server::default()),
        }
    }
}
