//! Address translation for IP packets between a client and a server on the same host, so that they leave the host
//! through a device.
//!
//! This module determines the direction, flow and translated addresses of a packet. It does not access a device.
//!
//! The kernel delivers packets to an address of the host locally. A [`Network`] therefore has three addresses: the
//! *host*'s, the only one assigned to the host; the *server*'s, to which clients connect; and the *client*'s, which
//! servers see as the peer. Packets to the latter two are routed to the device, and the destination determines their
//! direction. Both addresses are replaced before the packet returns to the host:
//!
//! ```text
//! client  host -> server  ==path==>  client -> host  server
//!         server -> host  <==path==  host -> client
//! ```
//!
//! The server and client addresses are chosen such that their 16-bit words have the same sum. The checksums of IP, TCP,
//! UDP and all other protocols with the Internet checksum (RFC 1071) therefore stay valid, for complete packets and for
//! fragments.

use core::net::{Ipv4Addr, Ipv6Addr};

use lastbyte_units::{Direction, Ecn};

pub use self::nat::Nat;

mod nat;
#[cfg(test)]
mod tests;

/// The addresses of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    v4: Addresses<4>,
    v6: Addresses<16>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Addresses<const N: usize> {
    host: [u8; N],
    server: [u8; N],
    client: [u8; N],
}

/// The network cannot be used for a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid network (expected the first address of a unicast /15, such as 198.18.0.0/15 or 10.76.0.0/15)"
)]
pub struct NetworkError;

/// The networks reserved for benchmarking network devices (RFC 2544 Appendix C.2.2, RFC 5180 §8), which are not
/// otherwise in use.
impl Default for Network {
    fn default() -> Self {
        Self::with_v4([198, 18])
    }
}

impl Network {
    /// The prefix length of the IPv4 network in bits. Server and client address differ in the 16th bit, and in a lower
    /// word that compensates for the checksum.
    pub const PREFIX_V4: u8 = 15;
    /// The prefix length of the IPv6 network in bits.
    pub const PREFIX_V6: u8 = 64;

    /// Creates a network with IPv4 addresses from the /15 that starts at `first`, and IPv6 addresses from
    /// `2001:2::/48`.
    ///
    /// # Errors
    ///
    /// Returns [`NetworkError`] if `first` is not the first address of a /15, or if the network is reserved for a
    /// special use in which hosts have no addresses.
    pub const fn new(first: Ipv4Addr) -> Result<Self, NetworkError> {
        let [one, two, 0, 0] = first.octets() else {
            return Err(NetworkError);
        };
        if two % 2 != 0 || matches!(one, 0 | 127 | 224..) {
            return Err(NetworkError);
        }
        Ok(Self::with_v4([one, two]))
    }

    const fn with_v4([one, two]: [u8; 2]) -> Self {
        Self {
            v4: Addresses {
                host: [one, two, 0, 1],
                server: [one, two, 0, 2],
                client: [one, two + 1, 0, 1],
            },
            v6: Addresses {
                host: v6([one, two], 0, 1),
                server: v6([one, two], 0, 2),
                client: v6([one, two], 1, 1),
            },
        }
    }

    /// The host's addresses, on which servers may listen.
    pub fn host(&self) -> (Ipv4Addr, Ipv6Addr) {
        (self.v4.host.into(), self.v6.host.into())
    }

    /// The server's addresses, to which clients connect.
    pub fn server(&self) -> (Ipv4Addr, Ipv6Addr) {
        (self.v4.server.into(), self.v6.server.into())
    }

    /// The client's addresses, which servers see as the peer.
    pub fn client(&self) -> (Ipv4Addr, Ipv6Addr) {
        (self.v4.client.into(), self.v6.client.into())
    }

    /// Translates the addresses of a packet read from the device, and returns its direction and flow. Returns `None`,
    /// and leaves the packet unchanged, if it is not an IP packet between client and server.
    pub fn translate(&self, packet: &mut [u8]) -> Option<Translated> {
        let layout = Layout::of(packet)?;
        let direction = match layout.version {
            Version::V4 => self.v4.translate(packet, layout.addresses),
            Version::V6 => self.v6.translate(packet, layout.addresses),
        }?;
        let mut flow = Flow::of(packet, &layout, direction);
        // An ICMP error quotes the packet as delivered, but its sender knows it by the addresses before translation.
        if let Some(at) = quoted(packet, &layout)
            && let Some(quoted) = packet.get_mut(at..)
            && let Some(inner) = Layout::of(quoted)
        {
            let is_restored = match inner.version {
                Version::V4 => self.v4.restore_quoted(quoted, inner.addresses, direction),
                Version::V6 => self.v6.restore_quoted(quoted, inner.addresses, direction),
            };
            if is_restored {
                flow = Flow::of(quoted, &inner, direction.opposite());
            }
        }
        Some(Translated {
            direction,
            flow,
            ecn: layout.ecn(packet),
        })
    }
}

/// The IPv6 subnet that belongs to an IPv4 network.
const fn v6(subnet: [u8; 2], word: u16, last: u16) -> [u8; 16] {
    let subnet = u16::from_be_bytes(subnet);
    Ipv6Addr::new(0x2001, 2, 0, subnet, 0, 0, word, last).octets()
}

impl<const N: usize> Addresses<N> {
    fn translate(&self, packet: &mut [u8], at: usize) -> Option<Direction> {
        let addresses = packet.get_mut(at..at + 2 * N)?;
        let (source, destination) = addresses.split_at_mut(N);
        if *source != self.host {
            return None;
        }
        let (direction, seen) = if *destination == self.server {
            (Direction::Up, self.client)
        } else if *destination == self.client {
            (Direction::Down, self.server)
        } else {
            return None;
        };
        source.copy_from_slice(&seen);
        destination.copy_from_slice(&self.host);
        Some(direction)
    }

    /// Reverts the translation of a quoted packet, if it came in the opposite direction.
    fn restore_quoted(&self, packet: &mut [u8], at: usize, direction: Direction) -> bool {
        let Some(addresses) = packet.get_mut(at..at + 2 * N) else {
            return false;
        };
        let (source, destination) = addresses.split_at_mut(N);
        let (seen, sent_to) = match direction {
            Direction::Up => (self.server, self.client),
            Direction::Down => (self.client, self.server),
        };
        if *source != seen || *destination != self.host {
            return false;
        }
        source.copy_from_slice(&self.host);
        destination.copy_from_slice(&sent_to);
        true
    }
}

/// The properties of a translated packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Translated {
    /// The direction of the packet.
    pub direction: Direction,
    /// The flow to which the packet belongs.
    pub flow: Flow,
    /// The ECN field.
    pub ecn: Ecn,
}

/// Identifies the packets of a connection, in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Flow {
    /// Whether the flow uses IPv6.
    pub is_v6: bool,
    /// The IP protocol number: 6 TCP, 17 UDP, 1 and 58 ICMP.
    pub protocol: u8,
    /// The client's port, or the identifier of an ICMP echo. Zero for fragments and protocols without ports.
    pub client: u16,
    /// The server's port, or zero.
    pub server: u16,
}

impl Flow {
    /// The flow number for fair queueing, equal for all packets of the flow (FNV-1a).
    pub fn number(&self) -> u32 {
        let [a, b] = self.client.to_be_bytes();
        let [c, d] = self.server.to_be_bytes();
        let all = [u8::from(self.is_v6), self.protocol, a, b, c, d];
        all.iter().fold(0x811c_9dc5, |hash: u32, byte| {
            (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
        })
    }

    fn of(packet: &[u8], layout: &Layout, direction: Direction) -> Self {
        let header = layout.payload.and_then(|at| packet.get(at..));
        let word = |at: usize| {
            let bytes = header?.get(at..at + 2)?;
            Some(u16::from_be_bytes([bytes[0], bytes[1]]))
        };
        let (source, destination) = match layout.protocol {
            TCP | UDP | DCCP | SCTP | UDP_LITE => (word(0), word(2)),
            ICMP | ICMP_V6 => {
                let identifier = header
                    .and_then(|header| header.first())
                    .filter(|kind| matches!(**kind, 0 | 8 | 128 | 129))
                    .and_then(|_| word(4));
                match direction {
                    Direction::Up => (identifier, None),
                    Direction::Down => (None, identifier),
                }
            }
            _ => (None, None),
        };
        let (client, server) = match direction {
            Direction::Up => (source, destination),
            Direction::Down => (destination, source),
        };
        Self {
            is_v6: layout.version == Version::V6,
            protocol: layout.protocol,
            client: client.unwrap_or(0),
            server: server.unwrap_or(0),
        }
    }
}

const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const DCCP: u8 = 33;
const ICMP_V6: u8 = 58;
const SCTP: u8 = 132;
const UDP_LITE: u8 = 136;

/// Sets the ECN field of an IP packet, and updates the header checksum of IPv4 (RFC 1624 §3).
pub fn set_ecn(packet: &mut [u8], ecn: Ecn) {
    let Some(layout) = Layout::of(packet) else {
        return;
    };
    let bits = ecn.bits();
    match layout.version {
        Version::V4 => {
            let old = u16::from_be_bytes([packet[0], packet[1]]);
            packet[1] = packet[1] & !3 | bits;
            let new = u16::from_be_bytes([packet[0], packet[1]]);
            let sum = u16::from_be_bytes([packet[10], packet[11]]);
            let sum = !plus(plus(!sum, !old), new);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        Version::V6 => packet[1] = packet[1] & !0x30 | bits << 4,
    }
}

/// Ones' complement addition.
const fn plus(one: u16, other: u16) -> u16 {
    let (sum, carry) = one.overflowing_add(other);
    sum + carry as u16
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    V4,
    V6,
}

/// The offsets of the fields in a packet, or in the part of a packet quoted by an ICMP error.
#[derive(Clone, Copy, Debug)]
struct Layout {
    version: Version,
    protocol: u8,
    /// The offset of the source address, which the destination follows.
    addresses: usize,
    /// The offset of the transport header. `None` for all fragments, including the first, so that they belong to the
    /// same flow, and for IPv6 packets with extension headers.
    payload: Option<usize>,
}

impl Layout {
    fn of(packet: &[u8]) -> Option<Self> {
        match packet.first()? >> 4 {
            4 => {
                let len = 4 * usize::from(packet[0] & 15);
                if len < 20 || packet.len() < len {
                    return None;
                }
                // The More Fragments flag, or a non-zero fragment offset.
                let is_fragment = u16::from_be_bytes([packet[6], packet[7]]) & 0x3fff != 0;
                Some(Self {
                    version: Version::V4,
                    protocol: packet[9],
                    addresses: 12,
                    payload: (!is_fragment).then_some(len),
                })
            }
            6 => {
                let protocol = *packet.get(..40)?.get(6)?;
                let is_last = matches!(protocol, TCP | UDP | DCCP | ICMP_V6 | SCTP | UDP_LITE);
                Some(Self {
                    version: Version::V6,
                    protocol,
                    addresses: 8,
                    payload: is_last.then_some(40),
                })
            }
            _ => None,
        }
    }

    const fn ecn(&self, packet: &[u8]) -> Ecn {
        let bits = match self.version {
            Version::V4 => packet[1],
            Version::V6 => packet[1] >> 4,
        };
        Ecn::from_bits(bits)
    }
}

/// The offset of the packet quoted by an ICMP error (RFC 792, RFC 4443 §3).
fn quoted(packet: &[u8], layout: &Layout) -> Option<usize> {
    let at = layout.payload?;
    let kind = *packet.get(at)?;
    let is_error = match layout.protocol {
        ICMP => matches!(kind, 3..=5 | 11 | 12),
        ICMP_V6 => kind < 128,
        _ => false,
    };
    is_error.then_some(at + 8)
}
