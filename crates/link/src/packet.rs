//! Packets on a link.

use core::ops::RangeInclusive;

pub use lastbyte_units::Ecn;

/// A packet: the properties that the link uses, and a payload of the caller.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Packet<T> {
    /// The size in bytes. The caller decides whether it includes IP and UDP headers; rates and limits use the same
    /// measure.
    pub bytes: u32,
    /// The ECN field. The link may change it to CE.
    pub ecn: Ecn,
    /// The number of the first hop that it passes, from 0; above the last hop's, the last. Default: 0.
    pub enters: u8,
    /// The number of the last hop that it passes; above the last hop's, the last. If it is below `enters`, the packet
    /// passes one hop. Default: the last.
    pub leaves: u8,
    /// The flow, which fair queueing hashes. Any number is valid.
    pub flow: u32,
    /// The caller's payload. It is cloned only to duplicate the packet, and should be small.
    pub payload: T,
}

impl<T> Packet<T> {
    /// Creates a packet of flow 0 with the ECN field Not-ECT, which passes all hops.
    #[must_use]
    pub const fn new(bytes: u32, payload: T) -> Self {
        Self {
            bytes,
            ecn: Ecn::NotEct,
            enters: 0,
            leaves: u8::MAX,
            flow: 0,
            payload,
        }
    }

    /// Sets the ECN field.
    #[must_use]
    pub fn with_ecn(self, ecn: Ecn) -> Self {
        Self { ecn, ..self }
    }

    /// Sets the first and the last hop that it passes, numbered from 0: cross traffic on a part of the path.
    #[must_use]
    pub fn through(self, hops: RangeInclusive<u8>) -> Self {
        Self {
            enters: *hops.start(),
            leaves: *hops.end(),
            ..self
        }
    }

    /// Sets the flow.
    #[must_use]
    pub fn with_flow(self, flow: u32) -> Self {
        Self { flow, ..self }
    }
}

/// A packet that arrived at the far end.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Delivery<T> {
    /// When it arrived.
    pub at: crate::Time,
    /// The packet number, counted from 0 in the order of sending. A duplicate has the number of its original.
    pub number: u64,
    /// The packet, with the ECN field as changed by the link.
    pub packet: Packet<T>,
}

/// A packet inside a link.
#[derive(Clone, Debug)]
pub(crate) struct Item<T> {
    pub(crate) packet: Packet<T>,
    /// The packet number. The most significant bit marks duplicates.
    pub(crate) tag: u64,
    /// When the packet entered the queue.
    pub(crate) queued_at: crate::Time,
}

pub(crate) const DUPLICATE: u64 = 1 << 63;

impl<T> Item<T> {
    pub(crate) const fn number(&self) -> u64 {
        self.tag & !DUPLICATE
    }
}
