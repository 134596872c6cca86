//! The addresses of clients after the changes of a path.

use core::net::SocketAddr;
use lastbyte_scenario::{Move, MoveKind};

#[cfg(test)]
mod tests;

fn count(past: &[Move], kind: MoveKind) -> u8 {
    // At most 100: `Move::parse_all`.
    past.iter().filter(|one| one.kind == kind).count() as u8
}

/// The client's local address after these moves, starting with `first`.
pub(crate) fn local(first: SocketAddr, past: &[Move]) -> SocketAddr {
    let mut address = first;
    if let SocketAddr::V4(v4) = &mut address {
        let [a, b, c, d] = v4.ip().octets();
        v4.set_ip([a + count(past, MoveKind::Network), b, c, d].into());
    }
    address
}

/// The client's address as the server sees it.
pub(crate) fn external(first: SocketAddr, past: &[Move]) -> SocketAddr {
    let mut address = local(first, past);
    address.set_port(address.port() + u16::from(count(past, MoveKind::Nat)));
    address
}
