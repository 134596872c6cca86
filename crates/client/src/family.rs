//! Address families: IPv6, IPv4, or both.

use core::net::IpAddr;

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
