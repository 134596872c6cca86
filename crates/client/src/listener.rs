//! Who hears of what happens, and takes the bodies.

use core::{net::SocketAddr, time::Duration};
use std::io;

use lastbyte_http3::{Fields, Request};
use lastbyte_quic::{Time, trace::Trace};
use lastbyte_wire::packet;

use crate::{
    failure::Failure,
    fetch::Outcome,
    head::{Head, Version},
    resolve::Lookup,
    url::Origin,
};

/// What carries a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// QUIC of this version, over UDP.
    Quic(packet::Version),
    /// TCP.
    Tcp,
}

/// What a handshake came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handshake {
    /// Who is at the other end.
    pub remote: SocketAddr,
    /// The version of HTTP that is spoken.
    pub version: Version,
    /// What carries it.
    pub transport: Transport,
    /// What a proxy answered that was asked to connect to the server (RFC 9110 §9.3.6), if one was.
    pub tunnel_status: Option<u16>,
    /// The version of TLS, as `TLS 1.3`; `None` in clear text.
    pub tls: Option<&'static str>,
    /// The cipher suite.
    pub cipher_suite: Option<&'static str>,
    /// Whether an earlier session was resumed.
    pub is_resumed: bool,
    /// Whether requests were sent early, and whether the server took them.
    pub early_data: Option<bool>,
    /// The server's own certificate, in DER; servers do not show it again when a session is resumed.
    pub certificate: Option<Vec<u8>>,
}

/// Hears of what happens. Fetches are named by their place in the list that was given, connections by a number that
/// counts from 0. All methods but [`Listener::on_body`] do nothing by themselves.
///
/// An error of one that takes content ends the fetch with [`Failure::Write`](crate::failure::Failure::Write); others go on.
pub trait Listener {
    /// Body, in order, each byte once. It is at hand only now, in the packet that it came in.
    ///
    /// # Errors
    ///
    /// It cannot be kept.
    fn on_body(&mut self, fetch: usize, bytes: &[u8]) -> io::Result<()>;

    /// The head of a final response, or of one that leads elsewhere and is followed.
    ///
    /// # Errors
    ///
    /// It cannot be kept.
    fn on_head(&mut self, fetch: usize, head: &Head<'_>) -> io::Result<()> {
        let _ = (fetch, head);
        Ok(())
    }

    /// An interim response, such as 103 Early Hints.
    ///
    /// # Errors
    ///
    /// It cannot be kept.
    fn on_interim(&mut self, fetch: usize, head: &Head<'_>) -> io::Result<()> {
        let _ = (fetch, head);
        Ok(())
    }

    /// Trailers.
    ///
    /// # Errors
    ///
    /// They cannot be kept.
    fn on_trailers(&mut self, fetch: usize, fields: &Fields) -> io::Result<()> {
        let _ = (fetch, fields);
        Ok(())
    }

    /// All has arrived; what is buffered is to be written now.
    ///
    /// # Errors
    ///
    /// It cannot be kept.
    fn on_end(&mut self, fetch: usize) -> io::Result<()> {
        let _ = fetch;
        Ok(())
    }

    /// A fetch is begun again after this pause ([`Retry`](crate::retry::Retry)): what was taken of it is to be forgotten. `failure` is why,
    /// if it is not the status in `outcome`.
    ///
    /// # Errors
    ///
    /// It cannot be forgotten.
    fn on_retry(
        &mut self,
        fetch: usize,
        pause: Duration,
        outcome: &Outcome,
        failure: Option<&Failure>,
    ) -> io::Result<()> {
        let _ = (fetch, pause, outcome, failure);
        Ok(())
    }

    /// A fetch is over, well or not: the last that is heard of it.
    fn on_done(&mut self, fetch: usize, outcome: &Outcome) {
        let _ = (fetch, outcome);
    }

    /// A request is sent, for the first time or again.
    fn on_request(&mut self, fetch: usize, connection: usize, version: Version, request: &Request) {
        let _ = (fetch, connection, version, request);
    }

    /// It is known where an origin is.
    fn on_resolved(&mut self, lookup: &Lookup) {
        let _ = lookup;
    }

    /// A QUIC connection is begun.
    fn on_quic_connecting(&mut self, connection: usize, origin: &Origin, remote: SocketAddr) {
        let _ = (connection, origin, remote);
    }

    /// A connection over TCP is begun, to the first of these addresses that answers.
    fn on_tcp_connecting(&mut self, connection: usize, origin: &Origin, addresses: &[SocketAddr]) {
        let _ = (connection, origin, addresses);
    }

    /// A handshake is complete.
    fn on_connected(&mut self, connection: usize, handshake: &Handshake) {
        let _ = (connection, handshake);
    }

    /// A connection is over, or not to be used for more.
    fn on_disconnected(&mut self, connection: usize, why: &str) {
        let _ = (connection, why);
    }

    /// Who listens to the packets of a connection.
    fn trace(&mut self, now: Time, connection: usize) -> Option<Box<dyn Trace>> {
        let _ = (now, connection);
        None
    }

    /// Ten times a second. Whether to go on.
    fn on_tick(&mut self) -> bool {
        true
    }
}
