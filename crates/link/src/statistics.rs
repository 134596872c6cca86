//! What a link counts.

use core::time::Duration;

use crate::{Count, DropReason};

/// Counts since the link was made. Always:
/// `sent + duplicated = delivered + dropped + inside`, with [`Link::inside`](crate::Link::inside).
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Statistics {
    /// Handed to the link.
    pub sent: Count,
    /// Made by the link, as copies.
    pub duplicated: Count,
    /// Handed out at the far end.
    pub delivered: Count,
    /// Changed to CE, whatever became of them then.
    pub marked: Count,
    /// Sent by the bottleneck to the last bit.
    pub served: Count,
    /// For how long the bottleneck had something to send, up to the end of the last packet served. At a constant rate this
    /// is the time it spent sending; divided by the time that passed, it is the utilisation.
    pub busy: Duration,
    /// The most bytes that ever waited in the queue at once. The packet in service does not count.
    pub queue_peak_bytes: u64,
    /// The most packets that ever waited in the queue at once.
    pub queue_peak_packets: u64,
    pub(crate) dropped: [Count; DropReason::ALL.len()],
}

impl Statistics {
    /// What was dropped for this reason.
    #[must_use]
    pub const fn dropped(&self, reason: DropReason) -> Count {
        self.dropped[reason as usize]
    }

    /// What was dropped, for any reason.
    #[must_use]
    pub fn dropped_in_all(&self) -> Count {
        self.dropped
            .iter()
            .fold(Count::default(), |sum, count| Count {
                packets: sum.packets + count.packets,
                bytes: sum.bytes + count.bytes,
            })
    }
}
