//! Detection of closed UDP ports.
//!
//! The kernel reports ICMP errors only to connected sockets, and the client's QUIC socket is not connected. If an address
//! has not responded for a while, a connected socket sends it one empty datagram, which QUIC servers drop.

#![expect(
    clippy::disallowed_types,
    reason = "a connected socket, which the `udp` crate does not have"
)]

use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
};

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
        socket.send(&[])?;
        Ok(Self(socket))
    }

    /// The ICMP error, if one has been received.
    #[must_use]
    pub fn answer(&self) -> Option<io::Error> {
        let answer = self.0.recv(&mut [0; 1]).err()?;
        (answer.kind() != io::ErrorKind::WouldBlock).then_some(answer)
    }
}
