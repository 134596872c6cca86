//! The counters of a link.

use core::time::Duration;

use crate::{Count, DropReason};

/// Counters since the link was created. The invariant is
/// `sent + duplicated = delivered + dropped + inside`, with [`Link::inside`](crate::Link::inside).
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Statistics {
    /// Packets sent.
    pub sent: Count,
    /// Copies created by the link.
    pub duplicated: Count,
    /// Packets delivered, including copies.
    pub delivered: Count,
    /// Packets marked CE, including those dropped later.
    pub marked: Count,
    /// Packets transmitted completely by the bottleneck.
    pub served: Count,
    /// The time during which the bottleneck had packets to send, up to the end of the last transmission. At a constant
    /// rate, this divided by the elapsed time is the utilization.
    pub busy: Duration,
    /// The maximum queue depth in bytes, without the packet in service.
    pub queue_peak_bytes: u64,
    /// The maximum queue depth in packets, without the packet in service.
    pub queue_peak_packets: u64,
    pub(crate) dropped: [Count; DropReason::ALL.len()],
}

impl Statistics {
    /// The packets dropped for this reason.
    pub const fn dropped(&self, reason: DropReason) -> Count {
        self.dropped[reason as usize]
    }

    /// All packets dropped.
    pub fn dropped_total(&self) -> Count {
        self.dropped
            .iter()
            .fold(Count::default(), |sum, count| sum.plus(*count))
    }

    /// Sets the packets duplicated, marked and dropped to the sums over all hops.
    pub(crate) fn sum_up<'a>(&mut self, hops: impl Iterator<Item = &'a Self>) {
        self.duplicated = Count::default();
        self.marked = Count::default();
        self.dropped = <[Count; DropReason::ALL.len()]>::default();
        for hop in hops {
            self.duplicated = self.duplicated.plus(hop.duplicated);
            self.marked = self.marked.plus(hop.marked);
            for (sum, count) in self.dropped.iter_mut().zip(hop.dropped) {
                *sum = sum.plus(count);
            }
        }
    }
}
