//! Callbacks for the events of a run and the bodies of responses.

use core::net::{IpAddr, SocketAddr};
use std::io;

use lastbyte_http3::{Fields, Request};
use lastbyte_quic::{Time, trace::Trace};
use lastbyte_wire::packet;

use crate::{
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

/// The result of a handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handshake {
    /// The address of the peer.
    pub remote: SocketAddr,
    /// The HTTP version of the connection.
    pub version: Version,
    /// The transport protocol.
    pub transport: Transport,
    /// The TLS version, such as `TLS 1.3`; `None` without TLS.
    pub tls: Option<&'static str>,
    /// The cipher suite.
    pub cipher_suite: Option<&'static str>,
    /// Whether an earlier session was resumed.
    pub is_resumed: bool,
    /// Whether the server accepted early data; `None` if none was sent.
    pub early_data: Option<bool>,
    /// The server's end-entity certificate in DER. Servers do not send it when a session is resumed.
    pub certificate: Option<Vec<u8>>,
}

/// A step of a connection's move to another local address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Move {
    /// Packets to the server have this source address now. The connection tries it.
    Started(IpAddr),
    /// The connection uses this address now.
    Done(IpAddr),
    /// The connection does not move to this address, for this reason.
    Failed(IpAddr, String),
}

/// Receives the events of a run. A fetch is identified by its index in the list, a connection by a number that counts
/// from 0. All methods except [`Listener::on_body`] have an empty default.
///
/// If a method returns an error, its fetch fails with [`Failure::Write`](crate::failure::Failure::Write); other fetches
/// continue.
pub trait Listener {
    /// A part of the body, in order and without repetition. The slice points into the received packet.
    ///
    /// # Errors
    ///
    /// Any error that prevents the listener from processing the bytes.
    fn on_body(&mut self, fetch: usize, bytes: &[u8]) -> io::Result<()>;

    /// The head of a final response, or of a redirect that is followed.
    ///
    /// # Errors
    ///
    /// Any error that prevents the listener from processing the head.
    fn on_head(&mut self, fetch: usize, head: &Head<'_>) -> io::Result<()> {
        let _ = (fetch, head);
        Ok(())
    }

    /// An interim response, such as 103 Early Hints.
    ///
    /// # Errors
    ///
    /// Any error that prevents the listener from processing the head.
    fn on_interim(&mut self, fetch: usize, head: &Head<'_>) -> io::Result<()> {
        let _ = (fetch, head);
        Ok(())
    }

    /// The trailer fields.
    ///
    /// # Errors
    ///
    /// Any error that prevents the listener from processing the fields.
    fn on_trailers(&mut self, fetch: usize, fields: &Fields) -> io::Result<()> {
        let _ = (fetch, fields);
        Ok(())
    }

    /// The response is complete. The listener flushes its buffers.
    ///
    /// # Errors
    ///
    /// Any error that prevents the listener from flushing its buffers.
    fn on_end(&mut self, fetch: usize) -> io::Result<()> {
        let _ = fetch;
        Ok(())
    }

    /// A fetch has succeeded or failed. No other method is called for it afterwards.
    fn on_done(&mut self, fetch: usize, outcome: &Outcome) {
        let _ = (fetch, outcome);
    }

    /// A request is sent, for the first time or again.
    fn on_request(&mut self, fetch: usize, connection: usize, version: Version, request: &Request) {
        let _ = (fetch, connection, version, request);
    }

    /// The addresses of an origin have been resolved.
    fn on_resolved(&mut self, lookup: &Lookup) {
        let _ = lookup;
    }

    /// A QUIC connection attempt starts.
    fn on_quic_connecting(&mut self, connection: usize, origin: &Origin, remote: SocketAddr) {
        let _ = (connection, origin, remote);
    }

    /// A TCP connection attempt starts. The first of these addresses that accepts is used.
    fn on_tcp_connecting(&mut self, connection: usize, origin: &Origin, addresses: &[SocketAddr]) {
        let _ = (connection, origin, addresses);
    }

    /// A handshake is complete.
    fn on_connected(&mut self, connection: usize, handshake: &Handshake) {
        let _ = (connection, handshake);
    }

    /// A connection has ended, or accepts no more requests. `why` is the reason, for log output.
    fn on_disconnected(&mut self, connection: usize, why: &str) {
        let _ = (connection, why);
    }

    /// The local address changed, and a QUIC connection follows (RFC 9000 §9).
    fn on_move(&mut self, connection: usize, step: &Move) {
        let _ = (connection, step);
    }

    /// Returns a receiver for trace events of a QUIC connection, such as a qlog writer. Default: `None`.
    fn trace(&mut self, now: Time, connection: usize) -> Option<Box<dyn Trace>> {
        let _ = (now, connection);
        None
    }

    /// Called ten times per second. Returns `false` to interrupt the run. Default: `true`.
    fn on_tick(&mut self) -> bool {
        true
    }
}
