//! Trace events of a connection, for qlog, plots and the connection log.
//!
//! A connection without a listener asks once an event whether there is one, and computes nothing for it. A listener gets
//! the frames of a packet as bytes: [`lastbyte_wire::frame::Frames`] reads them.

use core::time::Duration;

use lastbyte_congestion::{Bandwidth, State, Time};
use lastbyte_wire::packet::PacketType;

use crate::{NetworkPath, Stage, ack::EcnCodepoint, close::CloseReason, space::Space};

/// Hears of a connection.
pub trait Trace: Send {
    /// Something happened.
    fn on_event(&mut self, now: Time, event: &Event<'_>);
}

/// What happened.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A packet left.
    PacketSent(Packet<'a>),
    /// A packet came, and was opened.
    PacketReceived(Packet<'a>),
    /// A packet came, and was not used.
    PacketDropped {
        /// Its type, if that could be told.
        packet_type: Option<PacketType>,
        /// Its size, in bytes.
        len: usize,
        /// Why.
        reason: DropReason,
    },
    /// A packet was acknowledged.
    PacketAcked {
        /// Its space.
        space: Space,
        /// Its number.
        number: u64,
        /// Its size, in bytes of UDP payload.
        len: u16,
        /// Whether it had been declared lost.
        is_late: bool,
    },
    /// A packet was declared lost.
    PacketLost {
        /// Its space.
        space: Space,
        /// Its number.
        number: u64,
        /// Its size, in bytes of UDP payload.
        len: u16,
        /// By which rule.
        trigger: LossTrigger,
    },
    /// A probe timeout expired in a space (RFC 9002 §6.2).
    ProbeTimeout(Space),
    /// What recovery and congestion control know has changed.
    Metrics(&'a Metrics),
    /// The handshake came so far.
    Stage(Stage),
    /// Keys of a space are there.
    KeysInstalled(PacketType),
    /// Keys of a space are gone.
    KeysDiscarded(PacketType),
    /// The 1-RTT keys are of this generation now (RFC 9001 §6).
    KeysUpdated(u64),
    /// The datagram size changed to this many bytes.
    DatagramSize(u16),
    /// What became of a path.
    Path(NetworkPath, PathEvent),
    /// The connection ends.
    Closed(CloseReason),
}

/// A packet with its frames.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// Its type.
    pub packet_type: PacketType,
    /// Its number.
    pub number: u64,
    /// Its size, in bytes of UDP payload.
    pub len: usize,
    /// Its frames.
    pub payload: &'a [u8],
    /// The mark of its datagram.
    pub ecn: EcnCodepoint,
    /// Whether it probes for a larger datagram size.
    pub is_mtu_probe: bool,
}

/// Why a packet was not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// It is none.
    Malformed,
    /// There are no keys for it, nor room to keep it until there are.
    NoKeys,
    /// It is kept until there are keys.
    Buffered,
    /// It is not authentic.
    DecryptionFailed,
    /// It came before.
    Duplicate,
    /// It came from an address that it may not come from.
    UnknownPath,
    /// It is a Retry or Version Negotiation packet that may not be taken.
    Unexpected,
}

/// By which rule a packet was declared lost (RFC 9002 §6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossTrigger {
    /// Enough later packets were acknowledged (§6.1.1).
    ReorderingThreshold,
    /// Enough time had passed (§6.1.2).
    TimeThreshold,
}

/// What became of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathEvent {
    /// It is known of.
    Created,
    /// The peer answered there.
    Validated,
    /// The peer did not.
    Failed,
    /// It is the one in use.
    Promoted,
}

/// What recovery and congestion control know.
#[derive(Clone, Debug, PartialEq)]
pub struct Metrics {
    /// The congestion window, in bytes.
    pub window: u64,
    /// Bytes in flight.
    pub in_flight: u64,
    /// The pacing rate; infinite for no pacing.
    pub pacing_rate: Bandwidth,
    /// Round-trip times; `None` before the first sample.
    pub rtt: Option<RttMetrics>,
    /// What the controller says of itself.
    pub state: State,
}

/// What is known of the round-trip time (RFC 9002 §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RttMetrics {
    /// The smoothed one.
    pub smoothed: Duration,
    /// The least.
    pub min: Duration,
    /// The latest.
    pub latest: Duration,
    /// The mean deviation.
    pub variance: Duration,
}
