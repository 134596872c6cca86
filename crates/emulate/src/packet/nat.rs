//! The ports of clients as a server sees them, behind a NAT that restarts.
//!
//! Nothing is stored per packet. A binding is a client's port that has sent since the last restart, so there are at most 65 536
//! of each protocol and IP version.

use std::collections::BTreeSet;

use super::{Flow, Layout, TCP, UDP, Version, plus, quoted};
use lastbyte_units::Direction;

/// The bits of a port that a restart changes: ports of clients stay above the reserved ones.
const KEYS: u16 = 1023;

/// A NAT between the path and the server.
#[derive(Clone, Debug, Default)]
pub struct Nat {
    restarts: u16,
    /// What the ports of all clients differ by on both sides.
    key: u16,
    /// The ports of clients that the NAT knows: IP version, protocol, port.
    bound: BTreeSet<(bool, u8, u16)>,
}

/// The place of a client's port in a packet.
struct Place {
    is_v6: bool,
    /// TCP or UDP.
    protocol: u8,
    /// Whether the port is in a packet that an ICMP error quotes.
    is_error: bool,
    /// The offset of the port.
    port: usize,
    /// The offset of the checksum.
    sum: usize,
}

impl Place {
    /// `None` without a port: another protocol, or a fragment. Of an ICMP error, the port in the packet that it quotes,
    /// which had the opposite direction, and its own checksum.
    fn of(packet: &[u8], direction: Direction) -> Option<Self> {
        let layout = Layout::of(packet)?;
        let payload = layout.payload?;
        let quoted = quoted(packet, &layout);
        let (from, inner) = match quoted {
            Some(at) => (at, Layout::of(packet.get(at..)?)?),
            None => (0, layout),
        };
        let is_source = (direction == Direction::Up) != quoted.is_some();
        let sum = match inner.protocol {
            TCP | UDP if quoted.is_some() => payload + 2,
            TCP => payload + 16,
            UDP => payload + 6,
            _ => return None,
        };
        let place = Self {
            is_v6: layout.version == Version::V6,
            protocol: inner.protocol,
            is_error: quoted.is_some(),
            port: from + inner.payload? + if is_source { 0 } else { 2 },
            sum,
        };
        let end = place.port.max(place.sum) + 2;
        (end <= packet.len()).then_some(place)
    }

    fn port(&self, packet: &[u8]) -> u16 {
        word(packet, self.port)
    }

    /// Replaces the port, and updates the checksum (RFC 1624 §3).
    fn set_port(&self, packet: &mut [u8], port: u16) {
        let (old, sum) = (self.port(packet), word(packet, self.sum));
        packet[self.port..self.port + 2].copy_from_slice(&port.to_be_bytes());
        // A datagram may have none, which is zero.
        let is_optional = self.protocol == UDP && !self.is_error;
        if is_optional && sum == 0 {
            return;
        }
        let mut sum = !plus(plus(!sum, !old), port);
        if is_optional && sum == 0 {
            sum = u16::MAX;
        }
        packet[self.sum..self.sum + 2].copy_from_slice(&sum.to_be_bytes());
    }
}

fn word(packet: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([packet[at], packet[at + 1]])
}

impl Nat {
    /// Forgets all bindings. The next packet of a client makes one, with another port.
    pub fn restart(&mut self) {
        self.restarts = self.restarts.wrapping_add(1);
        self.key = 1 + self.restarts.wrapping_mul(389) % KEYS;
        self.bound.clear();
    }

    /// The port on the other side. No port becomes zero.
    const fn other(&self, port: u16) -> u16 {
        if port == self.key {
            port
        } else {
            port ^ self.key
        }
    }

    /// Gives a packet from a client the port that the server sees.
    pub fn send(&mut self, packet: &mut [u8]) {
        if let Some(place) = Place::of(packet, Direction::Up) {
            let port = place.port(packet);
            if !place.is_error {
                self.bound.insert((place.is_v6, place.protocol, port));
            }
            place.set_port(packet, self.other(port));
        }
    }

    /// Gives a packet from the server the client's port, and its flow. Returns `false` if the packet is lost, because the
    /// client has not sent since the last restart.
    pub fn receive(&self, packet: &mut [u8], flow: &mut Flow) -> bool {
        let Some(place) = Place::of(packet, Direction::Down) else {
            return true;
        };
        let port = self.other(place.port(packet));
        if !self.bound.contains(&(place.is_v6, place.protocol, port)) {
            return false;
        }
        place.set_port(packet, port);
        flow.client = port;
        true
    }
}
