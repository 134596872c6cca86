//! The application protocols of a flow: HTTP/3, or requests and responses without HTTP.
//!
//! Defines the traits between client and protocol. [`crate::client`] decides what is requested and when, and measures. The server of
//! HTTP/3 is that of [`lastbyte_origin`].
//!
//! | file | protocol |
//! |---|---|
//! | [`http3`] | HTTP/3 (RFC 9114), with `lastbyte_http3` |
//! | [`raw`] | a request and a response as they are on a QUIC stream, as in quicly's simulator |

use lastbyte_congestion::Time;
use lastbyte_engine::Datagram;
use lastbyte_quic::connection::{Connection, Event};
use lastbyte_units::Direction;

use lastbyte_scenario::{Protocol, Transport};
use lastbyte_wire::StreamId;

use crate::{measures::Measures, server::ServerSettings};

pub(crate) mod http3;
pub(crate) mod raw;

/// The server's stream limit permits no further request now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoStreamCredit;

/// The application at a client [`Node`](crate::node::Node).
pub(crate) trait ClientApplication {
    /// When it must run next, if no event happens before.
    fn deadline(&self) -> Option<Time>;

    /// Returns whether it is time to connect or to send requests, and clears the timer.
    fn take_wakeup(&mut self, now: Time) -> bool;

    /// Called when the connection starts. With 0-RTT, requests are sent at once.
    fn on_connection_started(&mut self, now: Time, connection: &mut Connection);

    /// Sends the requests that are due.
    fn send_requests(&mut self, now: Time, connection: &mut Connection);

    /// Passes a datagram to the connection.
    fn receive(&mut self, now: Time, connection: &mut Connection, datagram: Datagram<'_>);

    /// Handles an event of the connection.
    fn on_event(&mut self, now: Time, connection: &mut Connection, event: &Event);

    /// Processes what has arrived.
    fn process_events(&mut self, now: Time, connection: &mut Connection);
}

/// The client's side of a protocol.
pub(crate) trait ClientProtocol {
    /// Sends a request: a download or an upload of `size` bytes.
    fn send_request(
        &mut self,
        connection: &mut Connection,
        size: u64,
        direction: Direction,
    ) -> Result<StreamId, NoStreamCredit>;

    /// Passes a datagram to the connection, and measures the response data in it.
    fn receive(
        &mut self,
        now: Time,
        connection: &mut Connection,
        datagram: Datagram<'_>,
        measures: &mut Measures,
    );

    /// Processes pending events.
    fn process_events(&mut self, connection: &mut Connection, now: Time, measures: &mut Measures);

    /// The server rejected 0-RTT; the transport retransmits the data.
    fn on_zero_rtt_rejected(&mut self) {}

    /// When [`ClientProtocol::process_events`] must be called next, if no event happens before.
    fn deadline(&self) -> Option<Time> {
        None
    }
}

/// The ALPN identifier (RFC 7301).
pub(crate) const fn alpn(protocol: Protocol) -> &'static [u8] {
    match protocol {
        Protocol::Http3 => lastbyte_http3::ALPN,
        Protocol::Raw => raw::ALPN,
    }
}

/// Creates the client's side. With resumption it remembers the server's settings of the earlier connection.
pub(crate) fn client_side(
    transport: &Transport,
    server: &ServerSettings,
) -> Box<dyn ClientProtocol> {
    match transport.protocol {
        Protocol::Http3 => Box::new(http3::Client::new(transport.handshake, server)),
        Protocol::Raw => Box::new(raw::Client),
    }
}
