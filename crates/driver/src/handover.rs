//! Datagrams that came to the wrong worker.
//!
//! Owns: whose a datagram is by its connection ID, the queues between workers, and the count of what did not fit. Never:
//! hands a datagram over twice: who gets one keeps it.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
    mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
};

use lastbyte_quic::{ack::EcnCodepoint, connection::NetworkPath};
use lastbyte_udp::Waker;

#[cfg(test)]
mod tests;

/// How many datagrams wait for a worker at most: what comes in a few milliseconds at full speed. Beyond, they are lost like
/// on the way, and counted.
const QUEUE_MAX: usize = 1024;

/// Whose a datagram is: the rule that the kernel goes by too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owners {
    /// The byte of the destination connection ID that tells, modulo the number of workers.
    pub byte: u8,
    /// How many workers there are.
    pub workers: usize,
}

impl Owners {
    /// The worker that a datagram belongs to. `None` for the one that has it: it is not a packet, or one with a long header.
    /// Those come to where the client's address leads, and their connection with them, until the client uses an ID of ours
    /// in short headers; the ID in a client's first packets is its own choice.
    #[must_use]
    pub fn of(&self, datagram: &[u8]) -> Option<usize> {
        let (first, rest) = datagram.split_first()?;
        let is_long = first & 0x80 != 0;
        let byte = rest.get(usize::from(self.byte)).filter(|_| !is_long)?;
        Some(usize::from(*byte) % self.workers.max(1))
    }
}

/// A datagram on its way to another worker.
#[derive(Debug)]
pub(crate) struct Parcel {
    pub(crate) path: NetworkPath,
    pub(crate) ecn: EcnCodepoint,
    pub(crate) bytes: Vec<u8>,
}

/// Where a worker puts what belongs to others.
#[derive(Debug)]
pub(crate) struct Outlets {
    owners: Owners,
    own: usize,
    others: Vec<(SyncSender<Parcel>, Waker)>,
    lost: Arc<AtomicU64>,
}

/// Where a worker finds what others had of its.
#[derive(Debug)]
pub(crate) struct Inlet {
    parcels: Receiver<Parcel>,
}

/// One inlet and the outlets for each worker, whose wakers these are.
pub(crate) fn connect(owners: Owners, wakers: &[Waker]) -> Vec<(Outlets, Inlet)> {
    let (senders, receivers): (Vec<_>, Vec<_>) =
        wakers.iter().map(|_| sync_channel(QUEUE_MAX)).unzip();
    let lost = Arc::new(AtomicU64::new(0));
    let outlets = |own| Outlets {
        owners,
        own,
        others: senders
            .iter()
            .cloned()
            .zip(wakers.iter().cloned())
            .collect(),
        lost: Arc::clone(&lost),
    };
    receivers
        .into_iter()
        .enumerate()
        .map(|(own, parcels)| (outlets(own), Inlet { parcels }))
        .collect()
}

/// What became of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handed {
    /// It is this worker's.
    Kept,
    /// It is on its way.
    Over,
    /// The other has too many already, or is gone.
    Lost,
}

impl Outlets {
    /// Hands a datagram to its worker, if that is another.
    pub(crate) fn hand_over(&self, path: &NetworkPath, ecn: EcnCodepoint, bytes: &[u8]) -> Handed {
        let owner = self.owners.of(bytes).filter(|owner| *owner != self.own);
        let Some((sender, waker)) = owner.and_then(|owner| self.others.get(owner)) else {
            return Handed::Kept;
        };
        let parcel = Parcel {
            path: *path,
            ecn,
            bytes: bytes.to_vec(),
        };
        match sender.try_send(parcel) {
            Ok(()) => {
                waker.wake();
                Handed::Over
            }
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                self.lost.fetch_add(1, Ordering::Relaxed);
                Handed::Lost
            }
        }
    }
}

impl Inlet {
    pub(crate) fn next(&self) -> Option<Parcel> {
        self.parcels.try_recv().ok()
    }
}
