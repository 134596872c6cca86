//! Events of a link, and the trait to observe them.

use core::time::Duration;

use crate::{Packet, Time};

/// The reason for which a packet was dropped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum DropReason {
    /// The packet exceeds the MTU and was silently dropped ([`BlackHole`](crate::BlackHole)).
    BlackHole,
    /// The token bucket had too few tokens ([`Policer`](crate::Policer)).
    Policer,
    /// A loss model dropped the packet ([`Loss`](crate::Loss)).
    Loss,
    /// The queue was full. FQ-CoDel drops packets of the flow with the most queued bytes, which may be a different
    /// packet than the one that arrived.
    QueueFull,
    /// `CoDel` dropped the packet from the head of the queue (RFC 8289 §5).
    CoDel,
    /// PIE, `DualPI2` or COBALT dropped the packet.
    Aqm,
}

impl DropReason {
    /// All reasons, in the order in which a packet passes the components.
    pub const ALL: [Self; 6] = [
        Self::BlackHole,
        Self::Policer,
        Self::Loss,
        Self::QueueFull,
        Self::CoDel,
        Self::Aqm,
    ];

    /// The name used in logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::BlackHole => "black-hole",
            Self::Policer => "policer",
            Self::Loss => "loss",
            Self::QueueFull => "queue-full",
            Self::CoDel => "codel",
            Self::Aqm => "aqm",
        }
    }
}

/// An event in the life of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Event {
    /// The packet was duplicated. The copy follows it and has the same number.
    Duplicated,
    /// The packet entered the queue; the depth includes it. A packet that finds the bottleneck idle also enters the
    /// queue, and leaves it at the same time.
    Queued,
    /// The ECN field of the packet was changed to CE.
    Marked,
    /// The packet was dropped.
    Dropped(DropReason),
    /// The bottleneck started to transmit the packet; the depth no longer includes it.
    ServiceStarted {
        /// The time the packet spent in the queue.
        waited: Duration,
    },
    /// The bottleneck transmitted the last bit of the packet.
    ServiceEnded {
        /// When it transmitted the first bit. With a trace, both are times of delivery opportunities.
        started: Time,
    },
}

/// A count of packets and their bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Count {
    /// The number of packets.
    pub packets: u64,
    /// The sum of their sizes in bytes.
    pub bytes: u64,
}

impl Count {
    pub(crate) const fn add(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += bytes as u64;
    }

    pub(crate) const fn plus(self, other: Self) -> Self {
        Self {
            packets: self.packets + other.packets,
            bytes: self.bytes + other.bytes,
        }
    }

    pub(crate) const fn take(&mut self, bytes: u32) {
        self.packets -= 1;
        self.bytes -= bytes as u64;
    }
}

/// An event with its context.
#[derive(Debug)]
pub struct Observation<'a, T> {
    /// When the event happened. Does not decrease from one observation to the next. May be earlier than the `now` of
    /// the call that reports it, because a link catches up when it is called (see
    /// [`Link::next_event`](crate::Link::next_event)).
    pub at: Time,
    /// The number of the hop where it happened, from 0.
    pub hop: u8,
    /// The event.
    pub event: Event,
    /// The packet number, counted from 0 in the order of sending on the link.
    pub number: u64,
    /// The packet after the event.
    pub packet: &'a Packet<T>,
    /// The depth of the hop's queue after the event, without the packet in service.
    pub queue: Count,
}

/// Receives the events of a link. `()` ignores them at no cost.
pub trait Observer<T> {
    /// Called for each event.
    fn on_event(&mut self, observation: &Observation<'_, T>);
}

impl<T> Observer<T> for () {
    #[inline]
    fn on_event(&mut self, _: &Observation<'_, T>) {}
}
