//! Names to addresses, by the system's resolver.
//!
//! The resolver can only be waited for, so it is asked in a thread of its own, and left behind if it takes too long.

use core::{net::SocketAddr, time::Duration};
use std::{
    net::{IpAddr, ToSocketAddrs},
    sync::mpsc,
    thread,
};

use crate::{Failure, Origin};

/// Which kinds of addresses are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Family {
    /// IPv6 and IPv4.
    #[default]
    Any,
    /// IPv4 only.
    Ipv4,
    /// IPv6 only.
    Ipv6,
}

impl Family {
    fn has(self, address: &SocketAddr) -> bool {
        match self {
            Self::Any => true,
            Self::Ipv4 => address.is_ipv4(),
            Self::Ipv6 => address.is_ipv6(),
        }
    }
}

/// An origin's addresses, as said beforehand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// Whose.
    pub origin: Origin,
    /// Where it is.
    pub addresses: Vec<IpAddr>,
}

/// The addresses of an origin, the best first, the families in turn (RFC 8305 §4).
pub(crate) fn resolve(
    origin: &Origin,
    family: Family,
    overrides: &[Override],
    timeout: Duration,
) -> Result<Vec<SocketAddr>, Failure> {
    let said = overrides.iter().find(|said| said.origin == *origin);
    let found = match said {
        Some(said) => {
            let ips = said.addresses.iter();
            ips.map(|ip| SocketAddr::new(*ip, origin.port)).collect()
        }
        None => ask(origin, timeout)?,
    };
    let addresses = in_turn(found.into_iter().filter(|address| family.has(address)));
    if addresses.is_empty() {
        let which = match family {
            Family::Any => "address",
            Family::Ipv4 => "IPv4 address",
            Family::Ipv6 => "IPv6 address",
        };
        return Err(Failure::Resolve(format!(
            "could not resolve host `{}`: it has no {which}",
            origin.host
        )));
    }
    Ok(addresses)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the resolver blocks, and a thread that waits for it may be left behind"
)]
fn ask(origin: &Origin, timeout: Duration) -> Result<Vec<SocketAddr>, Failure> {
    let (sender, receiver) = mpsc::channel();
    let wanted = (origin.host.clone(), origin.port);
    thread::spawn(move || {
        let found = wanted.to_socket_addrs().map(Iterator::collect);
        // Nobody waits any more.
        let _ = sender.send(found);
    });
    match receiver.recv_timeout(timeout) {
        Ok(Ok(found)) => Ok(found),
        Ok(Err(error)) => Err(Failure::Resolve(format!(
            "could not resolve host `{}`: {error}",
            origin.host
        ))),
        Err(_) => Err(Failure::ConnectTimeout(timeout)),
    }
}

/// Each address once, IPv6 and IPv4 by turns, beginning with what the system put first.
fn in_turn(found: impl Iterator<Item = SocketAddr>) -> Vec<SocketAddr> {
    let mut rest: Vec<SocketAddr> = Vec::new();
    for address in found {
        if !rest.contains(&address) {
            rest.push(address);
        }
    }
    let mut sorted: Vec<SocketAddr> = Vec::new();
    while !rest.is_empty() {
        let last = sorted.last().map(SocketAddr::is_ipv6);
        let next = rest
            .iter()
            .position(|address| last.is_none_or(|is_ipv6| address.is_ipv6() != is_ipv6));
        sorted.push(rest.remove(next.unwrap_or(0)));
    }
    sorted
}

#[cfg(test)]
mod tests;
