//! What came of a simulation.

use core::time::Duration;

use lastbyte_congestion::{State, Time};
use lastbyte_link::{Count, DropReason, Statistics as LinkStatistics};
use lastbyte_quic::{close::CloseReason, recovery::RecoveryStatistics, stream};
use lastbyte_record::connection_log::Snapshot;

/// What came of a simulation.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What came of each flow, in the order of the scenario.
    pub flows: Vec<FlowOutcome>,
    /// The way down: from the first response's begin until the last response had arrived.
    pub bottleneck: BottleneckOutcome,
    /// What the link down counted until the end.
    pub down: LinkStatistics,
    /// What the link up counted until the end.
    pub up: LinkStatistics,
    /// The round-trip time of the path without queues, and without the time that packets take on the wire.
    pub path_rtt: Duration,
    /// Datagrams sent by all endpoints.
    pub datagrams: u64,
    /// When it ended: once the server knew that all had arrived and the horizon was over, or at the time limit.
    pub ended_at: Time,
}

/// What came of a flow.
#[derive(Clone, Debug)]
pub struct FlowOutcome {
    /// When the client sent its first datagram.
    pub started_at: Time,
    /// How long the client's handshake took; `None` if it never was complete.
    pub handshake: Option<Duration>,
    /// How long after the client's first datagram its first request was sent; `None` if it never was.
    pub first_asked: Option<Duration>,
    /// What came of each request, as far as it came.
    pub responses: Vec<ResponseOutcome>,
    /// Of the first response: when each number of bytes had arrived in order, from [`FlowOutcome::started_at`] on.
    pub progress: Vec<Progress>,
    /// How the server fared, from the handshake until it knew that all had arrived.
    pub server: Option<SenderOutcome>,
    /// Its packets that the way down dropped, in order, until the simulation ended.
    pub drops: Vec<Drop>,
    /// Why the connection ended before that, if it did.
    pub failure: Option<CloseReason>,
}

impl FlowOutcome {
    /// Whether all responses arrived.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        !self.responses.is_empty() && self.responses.iter().all(|one| one.last_byte.is_some())
    }
}

/// A packet that a link dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drop {
    /// When.
    pub at: Time,
    /// Why.
    pub reason: DropReason,
}

/// What came of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseOutcome {
    /// How many bytes were asked for.
    pub size: u64,
    /// From when times count: for the first request the client's first datagram, as a user feels it; for others when the
    /// request was made.
    pub asked_at: Time,
    /// How long after that the first byte arrived.
    pub first_byte: Option<Duration>,
    /// How long after that the last byte had arrived, and all before it.
    pub last_byte: Option<Duration>,
}

/// When this much had arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The number of bytes, in order.
    pub bytes: u64,
    /// Since the flow's start; `None` if they never were there.
    pub after: Option<Duration>,
}

/// How a sender fared.
#[derive(Clone, Debug)]
pub struct SenderOutcome {
    /// Packets and bytes.
    pub recovery: RecoveryStatistics,
    /// Bytes of streams.
    pub streams: stream::Statistics,
    /// What congestion control says of itself at the end.
    pub congestion: State,
    /// The least round-trip time.
    pub rtt_min: Duration,
    /// The smoothed round-trip time at the end.
    pub rtt_smoothed: Duration,
    /// When the first request came; `None` if none did.
    pub asked_at: Option<Time>,
    /// When all of the first response had been acknowledged; `None` if it was not.
    pub acked_at: Option<Time>,
    /// All that the connection log wants to know.
    pub snapshot: Box<Snapshot>,
}

/// How the way down was used, from the first response's begin until the last response had arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BottleneckOutcome {
    /// How long that was.
    pub span: Duration,
    /// What the bottleneck sent meanwhile.
    pub served: Count,
    /// The share of its rate that it used; `None` without a rate.
    pub utilisation: Option<f64>,
    /// The longest time that it had nothing to send. Counts from the begin of the first packet within the span.
    pub idle_gap_max: Duration,
}
