//! Whether anybody listens at an address that is silent.
//!
//! The kernel tells of ICMP errors only to sockets that have one peer, and the connections' own has many. So an address
//! that has not answered for a while is sent one more datagram, an empty one, which QUIC servers drop, from a socket that
//! has no other peer.

#![expect(
    clippy::disallowed_types,
    reason = "a socket that is connected, which those of `udp` are not"
)]

use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
};

/// A datagram on its way to an address, and what came back.
#[derive(Debug)]
pub(crate) struct ReachabilityProbe(UdpSocket);

impl ReachabilityProbe {
    /// # Errors
    ///
    /// There is no way to the address.
    pub(crate) fn send(remote: SocketAddr) -> io::Result<Self> {
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

    /// What the way answered, if it is known by now that nobody is there.
    pub(crate) fn answer(&self) -> Option<io::Error> {
        let answer = self.0.recv(&mut [0; 1]).err()?;
        (answer.kind() != io::ErrorKind::WouldBlock).then_some(answer)
    }
}
