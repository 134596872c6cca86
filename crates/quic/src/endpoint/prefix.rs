//! Connections by address prefix: those whose handshakes are in progress, and those that are established.
//!
//! Owns a count for each prefix. Clients whose address is not validated are not counted, since it may be another's.
//!
//! # Decisions
//!
//! - *A prefix is an [`AddressPrefix`]*, as for TCP connections and for load balancers.
//! - *n prefixes leave one part in n + 1 to others* ([`FairShare`]), of connections and of handshakes in progress. If a
//!   prefix could only not have more than there is room left, 17 prefixes, one after the other, would fill 100,000.

use lastbyte_units::{AddressPrefix, FairShare, SipHash};

use super::table::{Key, Table};

impl Key for AddressPrefix {
    fn hash(&self, hash: &SipHash) -> u64 {
        hash.hash(self.bytes())
    }
}

/// Connections by prefix.
pub(super) struct Prefixes {
    pub(super) counts: Table<AddressPrefix, usize>,
    shares: FairShare,
}

impl Prefixes {
    pub(super) const fn new(hash: SipHash) -> Self {
        Self {
            counts: Table::new(hash),
            shares: FairShare::new(),
        }
    }

    pub(super) fn count(&self, prefix: &AddressPrefix) -> usize {
        self.counts.get(prefix).unwrap_or(0)
    }

    /// Whether a prefix may have one more, if there is room for `room`.
    pub(super) fn permits(&self, prefix: &AddressPrefix, room: usize) -> bool {
        self.shares.permits(self.count(prefix), room)
    }

    pub(super) fn begin(&mut self, prefix: AddressPrefix) {
        let before = self.count(&prefix);
        self.shares.on_change(before, before + 1);
        match self.counts.get_mut(&prefix) {
            Some(count) => *count += 1,
            None => {
                self.counts.insert(prefix, 1);
            }
        }
    }

    pub(super) fn end(&mut self, prefix: &AddressPrefix) {
        let before = self.count(prefix);
        self.shares.on_change(before, before.saturating_sub(1));
        if !self.counts.remove_if(prefix, |count| *count <= 1)
            && let Some(count) = self.counts.get_mut(prefix)
        {
            *count -= 1;
        }
    }
}
