//! What came of a simulation.

use core::time::Duration;

use lastbyte_congestion::{State, Time};
use lastbyte_link::{Count, DropReason, Statistics as LinkStatistics};
use lastbyte_quic::{close::CloseReason, recovery::RecoveryStatistics, stream};
use lastbyte_record::connection_log::Snapshot;

use crate::listener::Way;

/// What came of a simulation.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What came of each flow, in the order of the scenario.
    pub flows: Vec<FlowOutcome>,
    /// The link that counts as the bottleneck: that of the first flow's data.
    pub way: Way,
    /// This link: from the begin of the first data until the last response had arrived.
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

impl Outcome {
    /// What the bottleneck counted until the end.
    #[must_use]
    pub const fn bottleneck_link(&self) -> &LinkStatistics {
        match self.way {
            Way::Down => &self.down,
            Way::Up => &self.up,
        }
    }
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
    /// The number of requests in the scenario.
    pub planned: usize,
    /// What came of each request, as far as it came.
    pub responses: Vec<ResponseOutcome>,
    /// Of the first response: when each number of bytes had arrived in order, from [`FlowOutcome::started_at`] on.
    pub progress: Vec<Progress>,
    /// How the sender of the data fared, from the handshake until it knew that all had arrived: the server, or the client that
    /// uploads.
    pub server: Option<SenderOutcome>,
    /// Its packets that the bottleneck dropped, in order, until the simulation ended.
    pub drops: Vec<Drop>,
    /// Why the connection ended before that, if it did.
    pub failure: Option<CloseReason>,
}

impl FlowOutcome {
    /// Whether all responses arrived.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.last_byte().is_some()
    }

    /// How long after the client's first datagram the last response had arrived; `None` if not all did.
    #[must_use]
    pub fn last_byte(&self) -> Option<Duration> {
        let ends = self.responses.iter();
        let ends = ends.map(|one| Some((one.asked_at + one.last_byte?).since(self.started_at)));
        let ends: Vec<Duration> = ends.collect::<Option<_>>()?;
        ends.into_iter()
            .max()
            .filter(|_| self.responses.len() == self.planned)
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
    /// How many bytes were asked for, or uploaded.
    pub size: u64,
    /// From when times count: for the first requests the client's first datagram, as a user feels it; for those after a response
    /// when the request was made.
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
    /// When the first request came, or the first upload began; `None` if none did.
    pub asked_at: Option<Time>,
    /// When all data had been acknowledged; `None` if it was not.
    pub acked_at: Option<Time>,
    /// All that the connection log wants to know.
    pub snapshot: Box<Snapshot>,
}

/// How the bottleneck was used, from the first response's begin until the last response had arrived.
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
