//! Detection of closed UDP ports.
//!
//! The kernel reports ICMP errors only to connected sockets, and the client's QUIC socket is not connected. If an address
//! has not responded for a while, a connected socket sends it one datagram that QUIC servers must drop.
//!
//! # Decisions
//!
//! - *`IP_RECVERR` is not used*, by which Linux would report the error of the Initial packet itself: with it, the next call on
//!   the client's socket fails with the error of any destination (ip(7)), and this socket also sends to the other addresses of the
//!   race and to the servers of other connections.

#![expect(
    clippy::disallowed_types,
    reason = "a connected socket, which the `udp` crate does not have"
)]

use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
};

/// A long header with a version that is reserved (RFC 9000 §15) and without connection IDs. It is too short for Version
/// Negotiation, so servers drop it (§5.2.2). Some fail to decode an empty datagram.
const DATAGRAM: [u8; 7] = [0xc0, 0x1a, 0x2a, 0x3a, 0x4a, 0, 0];

/// A probe of one address.
#[derive(Debug)]
pub struct ReachabilityProbe(UdpSocket);

impl ReachabilityProbe {
    /// Sends the probe.
    ///
    /// # Errors
    ///
    /// Returns the system's error if there is no route to the address.
    pub fn send(remote: SocketAddr) -> io::Result<Self> {
        let local: SocketAddr = if remote.is_ipv6() {
            (Ipv6Addr::UNSPECIFIED, 0).into()
        } else {
            (Ipv4Addr::UNSPECIFIED, 0).into()
        };
        let socket = UdpSocket::bind(local)?;
        socket.connect(remote)?;
        socket.set_nonblocking(true)?;
        socket.send(&DATAGRAM)?;
        Ok(Self(socket))
    }

    /// The ICMP error, if one has been received.
    pub fn answer(&self) -> Option<io::Error> {
        let answer = self.0.recv(&mut [0; 1]).err()?;
        (answer.kind() != io::ErrorKind::WouldBlock).then_some(answer)
    }
}

#[cfg(test)]
mod tests {
    use lastbyte_wire::packet::{Invariant, LongInvariant};

    use super::*;

    #[test]
    fn rfc9000_5_2_2_the_datagram_is_one_that_servers_drop() {
        let server = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let remote = server.local_addr().expect("an address");
        let _probe = ReachabilityProbe::send(remote).expect("a route");
        let mut bytes = [0; 100];
        let (len, _) = server.recv_from(&mut bytes).expect("a datagram");
        let header = Invariant::decode(&bytes[..len]);
        let Ok(Invariant::Long(LongInvariant { version, .. })) = header else {
            panic!("{header:?}");
        };
        assert!(version.is_reserved());
    }
}
