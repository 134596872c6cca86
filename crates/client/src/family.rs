//! Address families: IPv6, IPv4, or both.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::io;

use lastbyte_udp::{Options, Socket};

/// The address families that are used.
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
    /// The individual families.
    pub(crate) const fn parts(self) -> &'static [Self] {
        match self {
            Self::Any => &[Self::Ipv6, Self::Ipv4],
            Self::Ipv4 => &[Self::Ipv4],
            Self::Ipv6 => &[Self::Ipv6],
        }
    }

    /// Whether an address is of this family.
    pub(crate) fn has(self, address: &IpAddr) -> bool {
        match self {
            Self::Any => true,
            Self::Ipv4 => address.is_ipv4(),
            Self::Ipv6 => address.is_ipv6(),
        }
    }
}

impl Family {
    /// Binds a socket for the address families. For both families, falls back to IPv4 if IPv6 is not available.
    pub(crate) fn bind(self) -> io::Result<Socket> {
        let options = Options::default();
        let ipv4 = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0);
        let ipv6 = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), 0);
        match self {
            Self::Ipv4 => Socket::bind(ipv4, &options),
            Self::Ipv6 => Socket::bind(ipv6, &options),
            Self::Any => Socket::bind(ipv6, &options).or_else(|_| Socket::bind(ipv4, &options)),
        }
    }
}
