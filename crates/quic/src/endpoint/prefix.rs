//! Connections by address prefix: those whose handshakes are in progress, and those that are established.
//!
//! Owns a count for each prefix. Clients whose address is not validated are not counted, since it may be another's.
//!
//! # Decisions
//!
//! - *A prefix is a whole IPv4 address, or the first 56 bits of an IPv6 address.* Hosts are assigned 64 bits there,
//!   sites 56 or 48; an IPv4 address is shared by a site or more.
//! - *n prefixes leave one part in n + 1 to others* ([`FairShare`]), of connections and of handshakes in progress. If a
//!   prefix could only not have more than there is room left, 17 prefixes, one after the other, would fill 100,000.

use core::net::SocketAddr;

use lastbyte_units::{FairShare, SipHash};

use super::{
    demux::address_bytes,
    table::{Key, Table},
};

/// The part of an address that may be shared by one client's addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Prefix([u8; 16]);

impl Prefix {
    pub(super) fn of(remote: SocketAddr) -> Self {
        let bytes = address_bytes(remote);
        let mut prefix = [0; 16];
        let len = if remote.ip().to_canonical().is_ipv4() {
            16
        } else {
            PREFIX_LEN
        };
        for (byte, of_address) in prefix.iter_mut().zip(bytes).take(len) {
            *byte = of_address;
        }
        Self(prefix)
    }
}

impl Key for Prefix {
    fn hash(&self, hash: &SipHash) -> u64 {
        hash.hash(&self.0)
    }
}

/// Connections by prefix.
pub(super) struct Prefixes {
    counts: Table<Prefix, usize>,
    shares: FairShare,
}

impl Prefixes {
    pub(super) const fn new(hash: SipHash) -> Self {
        Self {
            counts: Table::new(hash),
            shares: FairShare::new(),
        }
    }

    pub(super) fn count(&self, prefix: &Prefix) -> usize {
        self.counts.get(prefix).unwrap_or(0)
    }

    /// Whether a prefix may have one more, if there is room for `room`.
    pub(super) fn permits(&self, prefix: &Prefix, room: usize) -> bool {
        self.shares.permits(self.count(prefix), room)
    }

    pub(super) fn begin(&mut self, prefix: Prefix) {
        let before = self.count(&prefix);
        self.shares.on_change(before, before + 1);
        match self.counts.get_mut(&prefix) {
            Some(count) => *count += 1,
            None => {
                self.counts.insert(prefix, 1);
            }
        }
    }

    pub(super) fn end(&mut self, prefix: &Prefix) {
        let before = self.count(prefix);
        self.shares.on_change(before, before.saturating_sub(1));
        if !self.counts.remove_if(prefix, |count| *count <= 1)
            && let Some(count) = self.counts.get_mut(prefix)
        {
            *count -= 1;
        }
    }

    #[cfg(test)]
    pub(super) const fn len(&self) -> usize {
        self.counts.len()
    }
}

/// Bytes of an IPv6 address.
const PREFIX_LEN: usize = 7;
