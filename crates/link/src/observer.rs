//! What a link tells whoever wants to know, as it happens.

use core::time::Duration;

use crate::{Packet, Time};

/// Why a packet was dropped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum DropReason {
    /// It is larger than what the path carries, and vanishes without a word ([`BlackHole`](crate::BlackHole)).
    BlackHole,
    /// The policer's bucket had no tokens for it ([`Policer`](crate::Policer)).
    Policer,
    /// A loss model took it ([`Loss`](crate::Loss)).
    Loss,
    /// The queue had no room for it; or, by FQ-CoDel, for another, and this one was of the flow with most bytes.
    QueueFull,
    /// `CoDel`'s control law took it from the head of the queue (RFC 8289 §5).
    CoDel,
}

impl DropReason {
    /// All reasons, in the order in which a packet meets them.
    pub const ALL: [Self; 5] = [
        Self::BlackHole,
        Self::Policer,
        Self::Loss,
        Self::QueueFull,
        Self::CoDel,
    ];

    /// A short name for logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::BlackHole => "black-hole",
            Self::Policer => "policer",
            Self::Loss => "loss",
            Self::QueueFull => "queue-full",
            Self::CoDel => "codel",
        }
    }
}

/// What happened to a packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Event {
    /// It was cloned; the clone follows it, with the same number.
    Duplicated,
    /// It joined the queue; the depth counts it. A packet that finds the bottleneck idle joins the queue, too, and leaves
    /// it at the same instant.
    Queued,
    /// Its ECN field was changed to CE.
    Marked,
    /// It was dropped.
    Dropped(DropReason),
    /// The bottleneck began to send it; the depth does not count it any more.
    ServiceBegan {
        /// How long it was in the queue.
        waited: Duration,
    },
    /// The bottleneck sent its last bit.
    ServiceEnded {
        /// When it sent the first. Over a trace, both are the instants of delivery opportunities.
        began: Time,
    },
}

/// A number of packets, and their bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Count {
    /// How many packets.
    pub packets: u64,
    /// The sum of their bytes.
    pub bytes: u64,
}

impl Count {
    pub(crate) const fn add(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += bytes as u64;
    }

    pub(crate) const fn take(&mut self, bytes: u32) {
        self.packets -= 1;
        self.bytes -= bytes as u64;
    }
}

/// One thing that happened, and what surrounded it.
#[derive(Debug)]
pub struct Observation<'a, T> {
    /// When it happened. Never decreases from one observation of a link to the next; may lie before the `now` of the call
    /// that brings it, since a link catches up when it is called (see [`Link::next_event`](crate::Link::next_event)).
    pub at: Time,
    /// What happened.
    pub event: Event,
    /// The how manyth packet handed in it was, from zero.
    pub number: u64,
    /// The packet, after the event.
    pub packet: &'a Packet<T>,
    /// What waits in the queue after the event, without the packet in service.
    pub queue: Count,
}

/// Is told what happens inside of a link. `()` listens to nothing, and costs nothing.
pub trait Observer<T> {
    /// Something happened.
    fn on_event(&mut self, observation: &Observation<'_, T>);
}

impl<T> Observer<T> for () {
    #[inline]
    fn on_event(&mut self, _: &Observation<'_, T>) {}
}
