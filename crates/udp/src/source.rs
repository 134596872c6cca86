//! Which local address packets to a peer have.
//!
//! This module asks the system's routing table, by sockets that send nothing.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use socket2::{Domain, Protocol, Socket, Type};

/// The local address from which the system sends to a peer, by its routes. Sends nothing.
///
/// # Errors
///
/// Returns the system's error if there is no route to the peer.
pub fn source_address(remote: SocketAddr) -> io::Result<IpAddr> {
    let socket = Socket::new(
        Domain::for_address(remote),
        Type::DGRAM,
        Some(Protocol::UDP),
    )?;
    socket.connect(&remote.into())?;
    let local = socket.local_addr()?.as_socket();
    let unspecified = match remote {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    Ok(local.map_or(unspecified, |local| local.ip()))
}

/// Whether this host has an address.
pub fn has_address(address: IpAddr) -> bool {
    let address = SocketAddr::new(address, 0);
    Socket::new(Domain::for_address(address), Type::DGRAM, None)
        .and_then(|socket| socket.bind(&address.into()))
        .is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_to_the_loopback_address_come_from_it() {
        for ip in [IpAddr::V4(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()] {
            if ip.is_ipv4() || has_address(ip) {
                assert_eq!(source_address(SocketAddr::new(ip, 443)).ok(), Some(ip));
            }
        }
        assert!(has_address(Ipv4Addr::LOCALHOST.into()));
        // Reserved for documentation (RFC 5737).
        assert!(!has_address(Ipv4Addr::new(192, 0, 2, 1).into()));
    }
}
