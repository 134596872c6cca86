//! The server of a packet.
//!
//! This module owns decoding of connection IDs (draft-ietf-quic-load-balancers §3 to §5), and the consistent hash for
//! packets that are not routable (§4.2). It has no state and cannot be changed: a new configuration or a change of
//! health makes a new table.

use std::net::{IpAddr, SocketAddr};

use lastbyte_quic::{cid::QuicLb, crypto::token::TokenKeys, endpoint::RetryBalancers};
use lastbyte_wire::packet::Invariant;

use lastbyte_units::SipHash;

use crate::fleet::{Fleet, FleetError, Server, server_id_number};

#[cfg(test)]
mod tests;

/// The index of a server in the fleet from which a [`Table`] was made.
pub type ServerIndex = usize;

/// The destination of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route<'a> {
    /// To the server that issued its connection ID.
    ConnectionId(ServerIndex),
    /// To a server of the hash's choice, since its connection ID names no server: the client chose it, or its
    /// configuration or server is unknown.
    Hash {
        /// Whether it has a long header.
        is_long: bool,
        /// The destination connection ID. Of a packet with a short header, the first bytes of it.
        destination: &'a [u8],
    },
}

/// The servers of packets.
#[derive(Debug)]
pub struct Table {
    servers: Vec<Server>,
    /// By configuration ID.
    codecs: [Option<QuicLb>; 7],
    /// Server IDs and indices, sorted.
    by_id: Vec<(u64, ServerIndex)>,
    /// Sorted, to recognize packets of servers.
    addresses: Vec<SocketAddr>,
    /// The server of each slot of the hash. Empty if no server takes new connections.
    slots: Vec<u16>,
    hash_key: [u8; 16],
    retry: Option<RetryBalancers>,
}

/// Slots of the consistent hash. With the maximum number of servers, each has 64.
const SLOTS: usize = 1 << 16;
/// The bytes of a short header's connection ID that distinguish unroutable packets.
const SHORT_ID_LEN: usize = 8;
/// The header form in the first byte (RFC 8999 §5).
const LONG_HEADER: u8 = 0x80;

impl Table {
    /// The table of a fleet. Servers for which `is_up` is false get no new connections, unless it is false for all.
    ///
    /// # Errors
    ///
    /// Returns a [`FleetError`] if the fleet is invalid.
    pub fn new(fleet: &Fleet, is_up: impl Fn(&Server) -> bool) -> Result<Self, FleetError> {
        let codecs = fleet.validate()?;
        let servers = fleet.servers.clone();
        let mut by_id: Vec<_> = servers
            .iter()
            .enumerate()
            .map(|(index, server)| (server.id, index))
            .collect();
        by_id.sort_unstable();
        let mut addresses: Vec<_> = servers.iter().map(|server| server.address).collect();
        addresses.sort_unstable();
        let takes_new = |server: &&Server| server.weight > 0 && !server.drain;
        // If the health check fails everywhere, it is more likely to be wrong than every server.
        let any_up = servers.iter().filter(takes_new).any(&is_up);
        let chosen: Vec<(usize, &Server)> = servers
            .iter()
            .enumerate()
            .filter(|(_, server)| takes_new(server) && (!any_up || is_up(server)))
            .collect();
        let slots = slots(&fleet.hash_key, &chosen);
        Ok(Self {
            servers,
            codecs,
            by_id,
            addresses,
            slots,
            hash_key: fleet.hash_key,
            retry: fleet.retry.clone(),
        })
    }

    /// The destination of a packet; `None` if it is too short to be one.
    pub fn route<'a>(&self, packet: &'a [u8]) -> Option<Route<'a>> {
        let (is_long, id) = match Invariant::decode(packet).ok()? {
            Invariant::Long(long) => (true, long.destination),
            Invariant::Short(short) => (false, short.rest),
        };
        if let Some(server) = self.by_connection_id(id) {
            return Some(Route::ConnectionId(server));
        }
        let destination = if is_long { id } else { id.get(..SHORT_ID_LEN)? };
        Some(Route::Hash {
            is_long,
            destination,
        })
    }

    /// Whether two packets with short headers have the same connection ID of a known configuration, and therefore the
    /// same route. This costs less than to decode both.
    pub fn is_same_destination(&self, one: &[u8], other: &[u8]) -> bool {
        let (Some([first, id, ..]), Some(second)) = (one.get(..), other.first()) else {
            return false;
        };
        let codec = self.codecs.get(usize::from(id >> 5));
        let Some(codec) = codec.and_then(Option::as_ref) else {
            return false;
        };
        let end = 1 + codec.id_len();
        let (one, other) = (one.get(1..end), other.get(1..end));
        (first | second) & LONG_HEADER == 0 && one.is_some() && one == other
    }

    /// The server that issued a connection ID. For a short header, `id` may have further bytes.
    pub fn by_connection_id(&self, id: &[u8]) -> Option<ServerIndex> {
        let rotation = id.first()? >> 5;
        let codec = self.codecs.get(usize::from(rotation))?.as_ref()?;
        let number = server_id_number(codec.decode(id)?.server_id())?;
        self.by_server_id(number)
    }

    /// The server with this ID.
    pub fn by_server_id(&self, id: u64) -> Option<ServerIndex> {
        let at = self.by_id.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        self.by_id.get(at).map(|(_, index)| *index)
    }

    /// The server that the consistent hash selects for these addresses. `None` if no server takes new connections.
    pub fn by_addresses(&self, client: SocketAddr, local: SocketAddr) -> Option<ServerIndex> {
        let mut bytes = [0; 36];
        let (of_client, of_local) = bytes.split_at_mut(18);
        write_address(of_client, client);
        write_address(of_local, local);
        let slot = SipHash::from_bytes(&self.hash_key).hash_2_4(&bytes) as usize % SLOTS;
        self.slots.get(slot).map(|index| usize::from(*index))
    }

    /// A hash of a connection ID that clients cannot predict.
    pub fn id_hash(&self, id: &[u8]) -> u64 {
        SipHash::from_bytes(&self.hash_key).hash_2_4(id)
    }

    /// A server.
    pub fn server(&self, index: ServerIndex) -> Option<&Server> {
        self.servers.get(index)
    }

    /// All servers, in the order of the fleet.
    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// The secrets of Retry tokens. Empty if balancers send no Retry packets.
    pub fn retry_secrets(&self) -> &[[u8; TokenKeys::SECRET_LEN]] {
        self.retry.as_ref().map_or(&[], |retry| &retry.secrets)
    }

    /// Whether a server has this address.
    pub fn has_address(&self, address: SocketAddr) -> bool {
        self.addresses.binary_search(&address).is_ok()
    }

    /// The share of new connections that a server gets, in 65,536ths.
    pub fn share(&self, index: ServerIndex) -> usize {
        let slots = self.slots.iter();
        slots.filter(|slot| usize::from(**slot) == index).count()
    }
}

fn write_address(to: &mut [u8], address: SocketAddr) {
    let ip = match address.ip() {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    };
    let (of_ip, of_port) = to.split_at_mut(16);
    of_ip.copy_from_slice(&ip.octets());
    of_port.copy_from_slice(&address.port().to_be_bytes());
}

/// The owner of each slot: the server with the lowest score -ln(u) / weight, where u is uniform in (0, 1) and depends on
/// the slot and the server only (weighted rendezvous hashing). The minimum of such scores belongs to each server with a
/// probability in proportion to its weight.
fn slots(key: &[u8; 16], servers: &[(usize, &Server)]) -> Vec<u16> {
    if servers.is_empty() {
        return Vec::new();
    }
    (0..SLOTS)
        .map(|slot| {
            let score = |server: &Server| {
                let mut bytes = [0; 16];
                let (of_server, of_slot) = bytes.split_at_mut(8);
                of_server.copy_from_slice(&server.id.to_be_bytes());
                of_slot.copy_from_slice(&(slot as u64).to_be_bytes());
                // 53 bits: all that a double distinguishes, and never 0.
                let uniform = ((SipHash::from_bytes(key).hash_2_4(&bytes) >> 11) as f64 + 0.5)
                    / (1_u64 << 53) as f64;
                -libm::log(uniform) / f64::from(server.weight)
            };
            let mut best = (f64::INFINITY, 0);
            for (index, server) in servers {
                let score = score(server);
                if score < best.0 {
                    best = (score, *index);
                }
            }
            best.1 as u16
        })
        .collect()
}
