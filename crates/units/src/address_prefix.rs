//! The part of an address by which clients are counted.

use core::net::IpAddr;

/// Bytes of an IPv6 address.
const V6_LEN: usize = 7;

/// The part of an address that may be shared by one client's addresses: a whole IPv4 address, or the first 56 bits of an
/// IPv6 address.
///
/// An IPv6 host has 64 bits, and can be any address of its network; a site has 56 or 48. An IPv4 address is shared by a
/// site or more.
///
/// ```
/// use lastbyte_units::AddressPrefix;
///
/// let prefix = |text: &str| text.parse().map(AddressPrefix::of);
/// assert_eq!(prefix("2001:db8:0:100::1"), prefix("2001:db8:0:1ff:2:3:4:5"));
/// assert_ne!(prefix("2001:db8:0:100::1"), prefix("2001:db8:0:200::1"));
/// assert_eq!(prefix("192.0.2.1"), prefix("::ffff:192.0.2.1"));
/// assert_ne!(prefix("192.0.2.1"), prefix("192.0.2.2"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AddressPrefix([u8; 16]);

impl AddressPrefix {
    /// The prefix of an address.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        let (octets, len) = match address.to_canonical() {
            IpAddr::V4(v4) => (v4.to_ipv6_mapped().octets(), 16),
            IpAddr::V6(v6) => (v6.octets(), V6_LEN),
        };
        let mut prefix = [0; 16];
        for (byte, octet) in prefix.iter_mut().zip(octets).take(len) {
            *byte = octet;
        }
        Self(prefix)
    }

    /// Its bytes, followed by zeros; of an IPv4 address, those of the IPv4-mapped IPv6 address.
    pub const fn bytes(&self) -> &[u8; 16] {
        &self.0
    }
}
