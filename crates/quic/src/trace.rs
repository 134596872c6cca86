//! Trace events of a connection, for qlog, plots and the connection log.
//!
//! A connection without a listener checks once per event whether there is one, and computes nothing for it. A listener
//! receives the frames of a packet as bytes, which [`lastbyte_wire::frame::Frames`] parses.

use core::time::Duration;

use lastbyte_congestion::{Bandwidth, State, Time};
use lastbyte_wire::{
    ConnectionId, StreamId, packet::PacketType, transport_parameters::TransportParameters,
};

use crate::{NetworkPath, Stage, ack::Ecn, close::CloseReason, space::Space};

/// Receives the trace events of a connection.
pub trait Trace: Send {
    /// An event occurred.
    fn on_event(&mut self, now: Time, event: &Event<'_>);
}

/// A trace event.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The connection has started. The first event, if the listener is set before the handshake is confirmed.
    Started {
        /// The destination connection ID of the client's first packet, which both ends know.
        original_destination: ConnectionId,
    },
    /// A packet was sent.
    PacketSent(Packet<'a>),
    /// A packet was received and opened.
    PacketReceived(Packet<'a>),
    /// A packet was received and dropped.
    PacketDropped {
        /// Its type, if it could be determined.
        packet_type: Option<PacketType>,
        /// Its size, in bytes.
        len: usize,
        /// The reason.
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
        /// The rule.
        trigger: LossTrigger,
    },
    /// A probe timeout expired in a space (RFC 9002 §6.2).
    ProbeTimeout(Space),
    /// Metrics of recovery or congestion control have changed.
    Metrics(&'a Metrics),
    /// The handshake reached this stage.
    Stage(Stage),
    /// Keys of a space were installed.
    KeysInstalled(PacketType),
    /// Keys of a space were discarded.
    KeysDiscarded(PacketType),
    /// The key generation of 1-RTT packets is now this one (RFC 9001 §6).
    KeysUpdated(u64),
    /// The datagram size changed to this many bytes.
    DatagramSize(u16),
    /// The transport parameters of this endpoint or of its peer apply from now on.
    Parameters {
        /// Whether they are of this endpoint.
        is_local: bool,
        /// The parameters.
        parameters: &'a TransportParameters,
    },
    /// The state of a path changed.
    Path(NetworkPath, PathEvent),
    /// The application protocol created or parsed a frame of its own, such as one of HTTP/3.
    ApplicationFrame(ApplicationFrame<'a>),
    /// The connection is closing.
    Closed(CloseReason),
}

/// A frame of the application protocol, without its data.
#[derive(Clone, Copy, Debug)]
pub struct ApplicationFrame<'a> {
    /// Its stream.
    pub stream: StreamId,
    /// Whether this endpoint created it; otherwise it parsed it.
    pub is_local: bool,
    /// The name of its type in qlog.
    pub name: &'static str,
    /// The length of its payload, in bytes.
    pub len: u64,
    /// Its integers, with their names in qlog.
    pub values: &'a [(&'static str, u64)],
    /// Its text, with its name: a priority, or the method or the status of a field section.
    pub text: Option<(&'static str, &'a str)>,
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
    /// The ECN mark of its datagram.
    pub ecn: Ecn,
    /// Whether it is an MTU probe.
    pub is_mtu_probe: bool,
}

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// It is not a valid packet.
    Malformed,
    /// There are no keys for it, and the buffer of such packets is full.
    NoKeys,
    /// It is buffered until keys are available.
    Buffered,
    /// It failed authentication.
    DecryptionFailed,
    /// It is a duplicate.
    Duplicate,
    /// It came from an address that is not acceptable.
    UnknownPath,
    /// It is a Retry or Version Negotiation packet that is not acceptable.
    Unexpected,
}

/// The rule by which a packet was declared lost (RFC 9002 §6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossTrigger {
    /// Packet threshold (§6.1.1).
    ReorderingThreshold,
    /// Time threshold (§6.1.2).
    TimeThreshold,
}

/// The state of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathEvent {
    /// It was registered.
    Created,
    /// It is validated.
    Validated,
    /// Its validation failed.
    Failed,
    /// It is in use.
    Promoted,
}

/// Metrics of recovery and congestion control.
#[derive(Clone, Debug, PartialEq)]
pub struct Metrics {
    /// The congestion window, in bytes.
    pub window: u64,
    /// Bytes in flight.
    pub in_flight: u64,
    /// The pacing rate; infinite without pacing.
    pub pacing_rate: Bandwidth,
    /// Round-trip times; `None` before the first sample.
    pub rtt: Option<RttMetrics>,
    /// The controller's state.
    pub state: State,
}

/// The round-trip time (RFC 9002 §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RttMetrics {
    /// The smoothed RTT.
    pub smoothed: Duration,
    /// The minimum RTT.
    pub min: Duration,
    /// The latest RTT.
    pub latest: Duration,
    /// The RTT variation.
    pub variance: Duration,
}
