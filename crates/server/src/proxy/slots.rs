//! The limit on requests in flight to the upstream.
//!
//! Owns the limit, and which request is cancelled when all slots are in use: the one whose client has been stalled
//! longest. So stalled clients occupy slots only while no other request needs them.
//!
//! A tunnel may be idle and yet needed, so none is cancelled. Instead, the tunnels of n address prefixes leave one part in
//! n + 1 of the slots to others ([`FairShare`](lastbyte_units::FairShare)), as connections do; a prefix may always have one.
//!
//! A slot is an entry of the list and a permit. Both are held by the task of the request and end with it, however it
//! ends: the response is complete or truncated, the upstream failed, the client left, a limit of time was exceeded, or
//! the proxy stops. The entry of a request that gives way is removed before its task ends.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore},
    time::{Instant, sleep, timeout},
};

use crate::{
    exchange::ExchangeAborted,
    tcp::admission::{Counted, Prefixes},
};

/// A client that has made no progress for this long is stalled.
const STALLED: Duration = Duration::from_secs(1);
/// Interval between two searches for a stalled request while all slots are taken, and for the share of a tunnel.
const PAUSE: Duration = Duration::from_millis(100);

/// All slots.
#[derive(Debug)]
pub(super) struct Slots {
    free: Arc<Semaphore>,
    began: Instant,
    taken: Mutex<Taken>,
    count: usize,
    /// Of the slots, those of tunnels.
    tunnels: Prefixes,
}

#[derive(Debug, Default)]
struct Taken {
    next: u64,
    slots: BTreeMap<u64, Arc<Client>>,
}

/// The side that waits for a client.
#[derive(Clone, Copy, Debug)]
pub(super) enum Side {
    /// The upstream waits for more of the request.
    Request,
    /// More of the response waits to be read.
    Response,
}

/// The client of a request that has a slot.
#[derive(Debug)]
pub(super) struct Client {
    began: Instant,
    /// By [`Side`]: since when the client is waited for, in milliseconds from `began`, plus 1; 0 if it is not.
    waits: [AtomicU64; 2],
    revoked: Notify,
}

impl Client {
    fn waits(&self, side: Side) -> &AtomicU64 {
        let [request, response] = &self.waits;
        match side {
            Side::Request => request,
            Side::Response => response,
        }
    }

    /// The client is waited for from now on, unless it has been already.
    pub(super) fn on_wait(&self, side: Side) {
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let _ = self.waits(side).compare_exchange(
            0,
            now.saturating_add(1),
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
    }

    /// The client made progress.
    pub(super) fn on_progress(&self, side: Side) {
        self.waits(side).store(0, Ordering::Relaxed);
    }

    /// Waits until there is room for a part of the response, as long as the client takes to make some.
    pub(super) async fn sent(
        &self,
        limit: Duration,
        sending: impl Future<Output = Result<(), ExchangeAborted>>,
    ) -> Result<(), ExchangeAborted> {
        self.on_wait(Side::Response);
        let sent = timeout(limit, sending).await;
        self.on_progress(Side::Response);
        sent.unwrap_or(Err(ExchangeAborted))
    }

    fn waiting_since(&self) -> Option<u64> {
        let since = self.waits.iter().map(|since| since.load(Ordering::Relaxed));
        since.filter(|since| *since > 0).min()
    }

    /// Waits until the slot is taken away.
    pub(super) async fn revoked(&self) {
        self.revoked.notified().await;
    }
}

/// A slot, until it is dropped.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) client: Arc<Client>,
    slots: Arc<Slots>,
    number: u64,
    _permit: OwnedSemaphorePermit,
    tunnel: Option<Counted>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slots.taken().slots.remove(&self.number);
    }
}

impl Slots {
    pub(super) fn new(count: usize) -> Arc<Self> {
        let count = count.clamp(1, Semaphore::MAX_PERMITS);
        Arc::new(Self {
            free: Arc::new(Semaphore::new(count)),
            began: Instant::now(),
            taken: Mutex::default(),
            count,
            tunnels: Prefixes::new(count),
        })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A slot; `None` if none becomes free within `limit`.
    pub(super) async fn take(self: &Arc<Self>, limit: Duration) -> Option<Slot> {
        let permit = match Arc::clone(&self.free).try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => timeout(limit, self.wait()).await.ok()??,
        };
        let client = Arc::new(Client {
            began: self.began,
            waits: Default::default(),
            revoked: Notify::new(),
        });
        let mut taken = self.taken();
        let number = taken.next;
        taken.next += 1;
        taken.slots.insert(number, Arc::clone(&client));
        drop(taken);
        Some(Slot {
            client,
            slots: Arc::clone(self),
            number,
            _permit: permit,
            tunnel: None,
        })
    }

    /// A slot for a tunnel of this address; `None` if none becomes free within `limit`, or its prefix has its share.
    pub(super) async fn take_for_tunnel(
        self: &Arc<Self>,
        address: IpAddr,
        limit: Duration,
    ) -> Option<Slot> {
        let began = Instant::now();
        let counted = timeout(limit, self.share(address)).await.ok()?;
        let mut slot = self.take(limit.saturating_sub(began.elapsed())).await?;
        slot.tunnel = Some(counted);
        Some(slot)
    }

    /// Waits until the prefix of this address may have one more tunnel.
    async fn share(&self, address: IpAddr) -> Counted {
        loop {
            let left = self.count.saturating_sub(self.tunnels.held());
            if let Some(counted) = self.tunnels.count(address, left) {
                return counted;
            }
            sleep(PAUSE).await;
        }
    }

    async fn wait(&self) -> Option<OwnedSemaphorePermit> {
        loop {
            self.give_up_one();
            let permit = Arc::clone(&self.free).acquire_owned();
            if let Ok(permit) = timeout(PAUSE, permit).await {
                return permit.ok();
            }
        }
    }

    /// Cancels the request whose client has been stalled longest, if one is stalled.
    fn give_up_one(&self) {
        let now = self.began.elapsed();
        let mut taken = self.taken();
        let stalled = taken
            .slots
            .iter()
            .filter_map(|(number, client)| Some((client.waiting_since()?, *number)))
            .min();
        if let Some((since, number)) = stalled
            && now.saturating_sub(Duration::from_millis(since)) >= STALLED
            // Removed from the list at once: the next waiting request cancels another.
            && let Some(client) = taken.slots.remove(&number)
        {
            client.revoked.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        net::IpAddr,
        sync::{Arc, atomic::Ordering},
        time::Duration,
    };

    use tokio::{runtime, time::Instant};

    use super::{Side, Slots};

    /// Slots that have been used for 10 s.
    fn slots(count: usize) -> Arc<Slots> {
        let mut slots = Arc::try_unwrap(Slots::new(count)).expect("the only one");
        slots.began = Instant::now() - Duration::from_secs(10);
        Arc::new(slots)
    }

    fn run(test: impl Future<Output = ()>) {
        let runtime = runtime::Builder::new_current_thread().enable_time().build();
        runtime.expect("a runtime").block_on(test);
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn the_request_stalled_longest_is_aborted_for_a_new_one() {
        run(async {
            let slots = slots(3);
            let moving = slots.take(LONG).await.expect("a slot");
            let second = slots.take(LONG).await.expect("a slot");
            let first = slots.take(LONG).await.expect("a slot");
            let since = |slot: &super::Slot, side, at| {
                slot.client.waits(side).store(at, Ordering::Relaxed);
            };
            since(&first, Side::Response, 5000);
            since(&second, Side::Request, 6000);
            since(&moving, Side::Response, 1000);
            moving.client.on_progress(Side::Response);
            let gives_up = async {
                first.client.revoked().await;
                drop(first);
            };
            let (taken, ()) = tokio::join!(slots.take(LONG), gives_up);
            assert!(taken.is_some());
            assert_eq!(slots.taken().slots.len(), 3);
        });
    }

    #[test]
    fn idle_tunnels_of_one_address_leave_half_of_the_slots_to_others() {
        run(async {
            let slots = slots(8);
            let [one, other] = [1, 2].map(|last| IpAddr::from([192, 0, 2, last]));
            let mut held = Vec::new();
            while let Some(slot) = slots.take_for_tunnel(one, Duration::ZERO).await {
                held.push(slot);
            }
            assert_eq!(held.len(), 4);
            let others = slots.take_for_tunnel(other, Duration::ZERO).await;
            assert!(others.is_some() && slots.take(Duration::ZERO).await.is_some());
            // One that waits gets the place of one that ends.
            let ends = async {
                tokio::task::yield_now().await;
                held.clear();
            };
            let (taken, ()) = tokio::join!(slots.take_for_tunnel(one, LONG), ends);
            assert!(taken.is_some());
            drop((taken, others));
            assert_eq!(slots.tunnels.held(), 0);
        });
    }

    #[test]
    fn clients_that_read_or_have_just_stalled_are_not_aborted() {
        run(async {
            let slots = slots(1);
            let slot = slots.take(LONG).await.expect("a slot");
            assert!(slots.take(Duration::ZERO).await.is_none());
            slot.client.on_wait(Side::Response);
            assert!(slots.take(Duration::ZERO).await.is_none());
            assert_eq!(slots.taken().slots.len(), 1);
            drop(slot);
            assert_eq!(slots.taken().slots.len(), 0);
            assert!(slots.take(LONG).await.is_some());
        });
    }
}
