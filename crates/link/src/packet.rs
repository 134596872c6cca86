//! What travels over a link.

/// The ECN field of a packet's IP header (RFC 3168 §5, RFC 9331 §4).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Ecn {
    /// The sender does not understand marks (00): the packet is dropped where others are marked.
    #[default]
    NotEct,
    /// Capable, and of the L4S service (01).
    Ect1,
    /// Capable (10).
    Ect0,
    /// Congestion was experienced on the way (11).
    Ce,
}

impl Ecn {
    /// Whether the packet may be marked instead of dropped.
    #[must_use]
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotEct)
    }
}

/// A packet: what the link needs to know of it, and whatever the caller wants to get back at the other end.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Packet<T> {
    /// What the link must carry, in bytes. Whether this counts the headers of IP and UDP is the caller's choice; rates and
    /// limits mean the same bytes.
    pub bytes: u32,
    /// The ECN field, as it is when the packet is handed in, and as it comes out.
    pub ecn: Ecn,
    /// Which flow it belongs to: fair queueing hashes this. Any number will do.
    pub flow: u32,
    /// The caller's own. Cloned only to duplicate the packet; best small.
    pub payload: T,
}

impl<T> Packet<T> {
    /// A packet of a flow 0 that is not capable of ECN.
    #[must_use]
    pub const fn new(bytes: u32, payload: T) -> Self {
        Self {
            bytes,
            ecn: Ecn::NotEct,
            flow: 0,
            payload,
        }
    }

    /// The same, with this ECN field.
    #[must_use]
    pub fn with_ecn(self, ecn: Ecn) -> Self {
        Self { ecn, ..self }
    }

    /// The same, of this flow.
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
    /// The how manyth packet handed in it was, from zero. A duplicate has the number of its original.
    pub number: u64,
    /// The packet, with its ECN field as the link left it.
    pub packet: Packet<T>,
}

/// A packet inside of a link.
#[derive(Clone, Debug)]
pub(crate) struct Item<T> {
    pub(crate) packet: Packet<T>,
    /// The how manyth handed in. The highest bit tells a duplicate.
    pub(crate) tag: u64,
    /// When it joined the queue.
    pub(crate) queued_at: crate::Time,
}

pub(crate) const DUPLICATE: u64 = 1 << 63;

impl<T> Item<T> {
    pub(crate) const fn number(&self) -> u64 {
        self.tag & !DUPLICATE
    }
}
