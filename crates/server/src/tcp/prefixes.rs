//! The number of connections per address.
//!
//! Owns a counter for each address with connections; for IPv6, for each /64, which is what one customer has. There are
//! never more entries than connections.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// All counters.
#[derive(Clone, Debug)]
pub(super) struct Prefixes {
    limit: usize,
    counts: Arc<Mutex<BTreeMap<IpAddr, usize>>>,
}

/// One connection, as long as it lives.
#[derive(Debug)]
pub(super) struct Counted {
    prefix: IpAddr,
    prefixes: Prefixes,
}

impl Prefixes {
    /// With this limit per prefix.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            counts: Arc::default(),
        }
    }

    fn counts(&self) -> MutexGuard<'_, BTreeMap<IpAddr, usize>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts one more connection of this address; `None` if it has reached the limit.
    pub(super) fn count(&self, address: IpAddr) -> Option<Counted> {
        let prefix = prefix(address);
        let mut counts = self.counts();
        let count = counts.entry(prefix).or_default();
        if *count >= self.limit.max(1) {
            return None;
        }
        *count += 1;
        Some(Counted {
            prefix,
            prefixes: self.clone(),
        })
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut counts = self.prefixes.counts();
        if let Some(count) = counts.get_mut(&self.prefix) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.prefix);
            }
        }
    }
}

/// The part of an address that one customer's addresses share.
fn prefix(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => {
            let network = address.to_bits() & !u128::from(u64::MAX);
            Ipv6Addr::from_bits(network).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_prefix_has_its_own_connection_limit() {
        let prefixes = Prefixes::new(2);
        let address = |text: &str| text.parse::<IpAddr>().expect("an address");
        let one = prefixes.count(address("192.0.2.1"));
        let two = prefixes.count(address("::ffff:192.0.2.1"));
        assert!(one.is_some() && two.is_some());
        assert!(prefixes.count(address("192.0.2.1")).is_none());
        assert!(prefixes.count(address("192.0.2.2")).is_some());
        drop(one);
        assert!(prefixes.count(address("192.0.2.1")).is_some());
        let six: Vec<_> = ["2001:db8::1", "2001:db8::2:3", "2001:db8::4"]
            .map(|text| prefixes.count(address(text)))
            .into_iter()
            .map(|counted| (counted.is_some(), counted))
            .collect();
        assert!(six[0].0 && six[1].0 && !six[2].0, "one /64");
        assert!(prefixes.count(address("2001:db8:0:1::1")).is_some());
        drop((two, six));
        assert!(prefixes.counts().is_empty());
    }
}
