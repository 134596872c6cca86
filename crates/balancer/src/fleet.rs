//! The configuration: servers, and layouts of connection IDs.
//!
//! This module owns the types and their validation. It does not read files, and does not know which servers are healthy.

use std::net::SocketAddr;

use lastbyte_quic::{
    cid::{QuicLb, QuicLbConfig, QuicLbError},
    endpoint::RetryBalancers,
};

#[cfg(test)]
mod tests;

/// Servers, and the connection IDs that lead to them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fleet {
    /// The layouts of connection IDs, up to 7, each with a configuration ID of its own. During a change of the key there
    /// are two.
    pub ids: Vec<QuicLbConfig>,
    /// The servers: 1 to [`SERVERS_MAX`].
    pub servers: Vec<Server>,
    /// The key of the consistent hash. Balancers that share an address need the same one.
    pub hash_key: [u8; 16],
    /// The keys of Retry packets that balancers send, and the addresses of balancers. Default: none, and then balancers send
    /// none.
    pub retry: Option<RetryBalancers>,
}

/// A server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// The server ID. In connection IDs it is big-endian, in the length of the layout.
    pub id: u64,
    /// The address to which packets are forwarded.
    pub address: SocketAddr,
    /// The share of new connections, relative to the weights of the other servers: 0 to [`WEIGHT_MAX`]. Default: 1.
    pub weight: u32,
    /// Whether it gets no new connections. Packets of its connections are still forwarded. Default: `false`.
    pub drain: bool,
}

impl Server {
    /// A server of weight 1.
    #[must_use]
    pub const fn new(id: u64, address: SocketAddr) -> Self {
        Self {
            id,
            address,
            weight: 1,
            drain: false,
        }
    }
}

/// Maximum number of servers. It bounds the time to construct a [`Table`](crate::Table).
pub const SERVERS_MAX: usize = 1024;
/// Maximum weight.
pub const WEIGHT_MAX: u32 = 1000;
/// Maximum number of keys of Retry packets. Each attempt to open a token compares it with all.
pub const RETRY_KEYS_MAX: usize = 4;
/// Maximum number of addresses of balancers.
pub const BALANCERS_MAX: usize = 64;

/// Why a configuration is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FleetError {
    /// There are no servers, or more than [`SERVERS_MAX`].
    #[error("{0} servers (expected 1 to {SERVERS_MAX})")]
    ServerCount(usize),
    /// There is no layout of connection IDs.
    #[error("no layout of connection IDs (expected 1 to 7)")]
    NoIds,
    /// A layout is invalid.
    #[error("connection IDs {0}: {1}")]
    Ids(u8, QuicLbError),
    /// Two layouts have this configuration ID.
    #[error("two layouts of connection IDs have the number {0}")]
    SameRotation(u8),
    /// Two servers have this ID.
    #[error("two servers have the ID {0}")]
    SameServer(u64),
    /// This server ID does not fit into the length of the layout with this configuration ID.
    #[error("server ID {0} does not fit into the server-id-length of connection IDs {1}")]
    ServerIdTooLarge(u64, u8),
    /// The weight of this server exceeds [`WEIGHT_MAX`].
    #[error("server {0}: invalid weight {1} (expected 0 to {WEIGHT_MAX})")]
    Weight(u64, u32),
    /// There is no key of Retry packets, or more than [`RETRY_KEYS_MAX`].
    #[error("{0} keys of Retry (expected 1 to {RETRY_KEYS_MAX})")]
    RetryKeys(usize),
    /// There is no address of a balancer, or more than [`BALANCERS_MAX`].
    #[error("{0} balancers (expected 1 to {BALANCERS_MAX})")]
    Balancers(usize),
}

impl Fleet {
    /// Checks all that can be checked without sockets, and returns the codecs of the layouts, by configuration ID.
    ///
    /// # Errors
    ///
    /// Returns the first [`FleetError`] found.
    pub fn validate(&self) -> Result<[Option<QuicLb>; 7], FleetError> {
        if self.ids.is_empty() {
            return Err(FleetError::NoIds);
        }
        if !(1..=SERVERS_MAX).contains(&self.servers.len()) {
            return Err(FleetError::ServerCount(self.servers.len()));
        }
        if let Some(retry) = &self.retry {
            let (keys, balancers) = (retry.secrets.len(), retry.addresses.len());
            if !(1..=RETRY_KEYS_MAX).contains(&keys) {
                return Err(FleetError::RetryKeys(keys));
            }
            if !(1..=BALANCERS_MAX).contains(&balancers) {
                return Err(FleetError::Balancers(balancers));
            }
        }
        let mut codecs: [Option<QuicLb>; 7] = Default::default();
        for config in &self.ids {
            let rotation = config.rotation;
            let codec =
                QuicLb::new(config.clone()).map_err(|error| FleetError::Ids(rotation, error))?;
            let place = codecs
                .get_mut(usize::from(rotation))
                .ok_or(FleetError::Ids(rotation, QuicLbError::Rotation))?;
            if place.replace(codec).is_some() {
                return Err(FleetError::SameRotation(rotation));
            }
        }
        let mut ids: Vec<u64> = self.servers.iter().map(|server| server.id).collect();
        ids.sort_unstable();
        if let Some(pair) = ids.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(FleetError::SameServer(pair[0]));
        }
        for server in &self.servers {
            if server.weight > WEIGHT_MAX {
                return Err(FleetError::Weight(server.id, server.weight));
            }
            let too_short =
                |config: &&QuicLbConfig| server_id_bytes(server.id, config.server_id_len).is_none();
            if let Some(config) = self.ids.iter().find(too_short) {
                return Err(FleetError::ServerIdTooLarge(server.id, config.rotation));
            }
        }
        Ok(codecs)
    }
}

/// A server ID as it is encoded in connection IDs; `None` if it does not fit into `len` bytes.
pub fn server_id_bytes(id: u64, len: usize) -> Option<Vec<u8>> {
    let bytes = id.to_be_bytes();
    let mut padded = vec![0; len.saturating_sub(bytes.len())];
    let (leading, rest) = bytes.split_at(bytes.len().saturating_sub(len));
    padded.extend_from_slice(rest);
    leading.iter().all(|byte| *byte == 0).then_some(padded)
}

/// The number of an encoded server ID; `None` if it exceeds 64 bits.
pub fn server_id_number(bytes: &[u8]) -> Option<u64> {
    let (leading, rest) = bytes.split_at(bytes.len().saturating_sub(8));
    let number = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
    leading
        .iter()
        .all(|byte| *byte == 0)
        .then(|| rest.iter().fold(0, number))
}
