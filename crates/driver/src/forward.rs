//! Forwarding of datagrams that arrived at another worker than the one that owns their connection.
//!
//! Holds the rule that maps a connection ID to its worker, and the bounded queues between workers. A datagram is forwarded at
//! most once: the worker that receives it keeps it.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use lastbyte_quic::{ack::Ecn, connection::NetworkPath};
use lastbyte_udp::Waker;

#[cfg(test)]
mod tests;

/// Maximum number of datagrams that wait for a worker: a few milliseconds at full rate. Further ones are dropped, as on
/// a congested path, and counted.
const QUEUE_MAX: usize = 1024;

/// The rule that maps a datagram to the worker that owns its connection. The kernel applies the same rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SteeringRule {
    /// The index of the byte of the destination connection ID that selects the worker, modulo the number of workers.
    pub byte: u8,
    /// The number of workers.
    pub workers: usize,
}

impl SteeringRule {
    /// The index of the worker that owns a datagram. `None` if the worker that received it keeps it: it is too short to be a
    /// packet, or has a long header. Packets with long headers are steered by the client's address, since the connection ID
    /// of a client's first packets is the client's choice; only short headers carry an ID that the server chose.
    pub fn of(&self, datagram: &[u8]) -> Option<usize> {
        let (first, rest) = datagram.split_first()?;
        let is_long = first & 0x80 != 0;
        let byte = rest.get(usize::from(self.byte)).filter(|_| !is_long)?;
        Some(usize::from(*byte) % self.workers.max(1))
    }
}

/// A datagram in the queue to another worker.
#[derive(Debug)]
pub(crate) struct Forwarded {
    pub(crate) path: NetworkPath,
    pub(crate) ecn: Ecn,
    pub(crate) bytes: Vec<u8>,
}

/// A worker's sending ends to all other workers.
#[derive(Debug)]
pub(crate) struct Forwarder {
    steering: SteeringRule,
    own: usize,
    others: Senders,
}

/// The sending ends to all workers, by index.
pub(crate) type Senders = Vec<(SyncSender<Forwarded>, Waker)>;

/// A worker's receiving end: datagrams of its connections that other workers received.
#[derive(Debug)]
pub(crate) struct ForwardedQueue {
    datagrams: Receiver<Forwarded>,
}

/// Connects workers by queues: a forwarder and a queue per worker, in the order of `wakers`; and the sending ends for a
/// thread that is no worker.
pub(crate) fn connect(
    steering: SteeringRule,
    wakers: &[Waker],
) -> (Vec<(Forwarder, ForwardedQueue)>, Senders) {
    let (senders, receivers): (Vec<_>, Vec<_>) =
        wakers.iter().map(|_| sync_channel(QUEUE_MAX)).unzip();
    let all: Senders = senders.into_iter().zip(wakers.iter().cloned()).collect();
    let forwarder = |own| Forwarder {
        steering,
        own,
        others: all.clone(),
    };
    let links = receivers
        .into_iter()
        .enumerate()
        .map(|(own, datagrams)| (forwarder(own), ForwardedQueue { datagrams }))
        .collect();
    (links, all)
}

/// The result of [`Forwarder::forward`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The datagram belongs to this worker.
    Kept,
    /// It was queued for its owner.
    Queued,
    /// It was dropped: the owner's queue is full, or the owner has ended.
    Dropped,
}

impl Forwarder {
    /// Queues a datagram for the worker that owns it, if that is another one.
    pub(crate) fn forward(&self, path: &NetworkPath, ecn: Ecn, bytes: &[u8]) -> Outcome {
        let owner = self.steering.of(bytes).filter(|owner| *owner != self.own);
        let Some((sender, waker)) = owner.and_then(|owner| self.others.get(owner)) else {
            return Outcome::Kept;
        };
        let datagram = Forwarded {
            path: *path,
            ecn,
            bytes: bytes.to_vec(),
        };
        match sender.try_send(datagram) {
            Ok(()) => {
                waker.wake();
                Outcome::Queued
            }
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => Outcome::Dropped,
        }
    }
}

impl ForwardedQueue {
    pub(crate) fn next(&self) -> Option<Forwarded> {
        self.datagrams.try_recv().ok()
    }
}
