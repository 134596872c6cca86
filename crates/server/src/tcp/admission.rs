//! The number of connections, in all and for each address.
//!
//! Owns a counter for each prefix with connections: an IPv4 address, or an IPv6 /56 ([`AddressPrefix`]). There are never more
//! entries than connections: one is removed with the last connection of its prefix, however that ends.
//!
//! # Decisions
//!
//! - *n prefixes leave one part in n + 1 to others* ([`FairShare`]), as over QUIC. A single one has half.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use lastbyte_units::{AddressPrefix, FairShare};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Limits the connections of one or more listeners. Clones count together.
#[derive(Clone, Debug)]
pub struct Admission {
    free: Arc<Semaphore>,
    prefixes: Prefixes,
}

/// One admitted connection, until it is dropped.
#[derive(Debug)]
pub struct Admitted {
    _permit: OwnedSemaphorePermit,
    _counted: Counted,
}

impl Admission {
    /// Limits on connections, in total and for each prefix.
    #[must_use]
    pub fn new(connections: usize, per_prefix: usize) -> Self {
        let connections = connections.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            free: Arc::new(Semaphore::new(connections)),
            prefixes: Prefixes::new(per_prefix),
        }
    }

    /// Admits a connection of this address; `None` if the address has reached its limit. The first one of an address
    /// waits for room.
    pub async fn admit(&self, address: IpAddr) -> Option<Admitted> {
        let free = self.free.available_permits();
        let counted = self.prefixes.count(address, free)?;
        let permit = Arc::clone(&self.free).acquire_owned().await.ok()?;
        Some(Admitted {
            _permit: permit,
            _counted: counted,
        })
    }
}

/// What the prefixes of clients hold of a resource.
#[derive(Clone, Debug)]
pub(crate) struct Prefixes {
    limit: usize,
    counts: Arc<Mutex<Counts>>,
}

#[derive(Debug, Default)]
struct Counts {
    by_prefix: BTreeMap<AddressPrefix, usize>,
    shares: FairShare,
}

/// A connection, or another unit, that is counted for its prefix.
#[derive(Debug)]
pub(crate) struct Counted {
    prefix: AddressPrefix,
    prefixes: Prefixes,
}

impl Prefixes {
    /// With a limit for each prefix.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            counts: Arc::default(),
        }
    }

    /// What all prefixes hold.
    pub(crate) fn held(&self) -> usize {
        self.counts().by_prefix.values().sum()
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts one more connection of this address; `None` if it has reached the limit, or its share while there is room for
    /// `free`.
    pub(crate) fn count(&self, address: IpAddr, free: usize) -> Option<Counted> {
        let prefix = AddressPrefix::of(address);
        let counts = &mut *self.counts();
        let count = counts.by_prefix.entry(prefix).or_default();
        let is_permitted = *count < self.limit && counts.shares.permits(*count, free);
        if *count > 0 && !is_permitted {
            return None;
        }
        counts.shares.on_change(*count, *count + 1);
        *count += 1;
        Some(Counted {
            prefix,
            prefixes: self.clone(),
        })
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let counts = &mut *self.prefixes.counts();
        if let Some(count) = counts.by_prefix.get_mut(&self.prefix) {
            counts.shares.on_change(*count, *count - 1);
            *count -= 1;
            if *count == 0 {
                counts.by_prefix.remove(&self.prefix);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        task::{Context, Waker},
    };

    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    /// Whether a connection of an address is admitted at once.
    fn admit(admission: &Admission, text: &str) -> Option<Admitted> {
        let mut context = Context::from_waker(Waker::noop());
        let mut admitted = pin!(admission.admit(address(text)));
        match admitted.as_mut().poll(&mut context) {
            std::task::Poll::Ready(admitted) => admitted,
            std::task::Poll::Pending => None,
        }
    }

    #[test]
    fn each_address_prefix_has_its_own_connection_limit() {
        let admission = Admission::new(100, 2);
        let one = admit(&admission, "192.0.2.1");
        let two = admit(&admission, "::ffff:192.0.2.1");
        assert!(one.is_some() && two.is_some());
        assert!(admit(&admission, "192.0.2.1").is_none());
        assert!(admit(&admission, "192.0.2.2").is_some());
        drop(one);
        assert!(admit(&admission, "192.0.2.1").is_some());
        let six =
            ["2001:db8::1", "2001:db8::2:3", "2001:db8::4"].map(|text| admit(&admission, text));
        assert_eq!(six.each_ref().map(Option::is_some), [true, true, false]);
        assert!(admit(&admission, "2001:db8:0:ff::1").is_none());
        assert!(admit(&admission, "2001:db8:0:100::1").is_some());
        drop((two, six));
        assert!(admission.prefixes.counts().by_prefix.is_empty());
    }

    #[test]
    fn prefixes_leave_a_share_to_others() {
        let admission = Admission::new(100, usize::MAX);
        let mut held = Vec::new();
        for (host, expected) in [(1, 50), (2, 67), (3, 76), (1, 76)] {
            let text = format!("192.0.2.{host}");
            while let Some(admitted) = admit(&admission, &text) {
                held.push(admitted);
            }
            assert_eq!(held.len(), expected);
        }
        assert!(admit(&admission, "192.0.2.100").is_some());
    }

    /// A site has a /56 or more.
    #[test]
    fn networks_of_one_site_leave_half_to_others() {
        let admission = Admission::new(500, usize::MAX);
        let mut held = Vec::new();
        for round in 0..4 {
            for network in 0..256 {
                let text = format!("2001:db8:0:{network:x}::{round}");
                held.extend(admit(&admission, &text));
            }
        }
        assert_eq!(held.len(), 250);
        assert!(admit(&admission, "2001:db8:0:100::1").is_some());
        assert!(admit(&admission, "192.0.2.1").is_some());
    }

    #[test]
    fn the_first_connection_of_an_address_waits_for_room() {
        let admission = Admission::new(1, usize::MAX);
        let held = admit(&admission, "192.0.2.1").expect("room");
        let mut context = Context::from_waker(Waker::noop());
        let mut waiting = Box::pin(admission.admit(address("192.0.2.2")));
        assert!(waiting.as_mut().poll(&mut context).is_pending());
        assert!(admit(&admission, "192.0.2.1").is_none(), "refused");
        drop(held);
        assert!(waiting.as_mut().poll(&mut context).is_ready());
    }
}
