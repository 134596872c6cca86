//! The result of a simulation.

use core::time::Duration;

use lastbyte_congestion::{State, Time};
use lastbyte_link::{Count, DropReason, Statistics as LinkStatistics};
use lastbyte_quic::{close::CloseReason, recovery::RecoveryStatistics, stream};
use lastbyte_record::connection_log::Snapshot;
use lastbyte_units::Direction;

/// The result of a simulation.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The result of each flow, in the order of the scenario.
    pub flows: Vec<FlowOutcome>,
    /// The result of each cross traffic that arrives at random, in the order of the scenario.
    pub arrivals: Vec<ArrivalsOutcome>,
    /// Direction of the bottleneck: that of the first flow's data.
    pub direction: Direction,
    /// Use of the bottleneck, from the first data to the end of the last response.
    pub bottleneck: BottleneckOutcome,
    /// Counters of the downlink.
    pub down: LinkStatistics,
    /// Counters of the uplink.
    pub up: LinkStatistics,
    /// Datagrams sent by all endpoints.
    pub datagrams: u64,
    /// When it ended: when all data was acknowledged and the horizon had passed, or at the time limit.
    pub ended_at: Time,
}

impl Outcome {
    /// Counters of the bottleneck link.
    pub const fn bottleneck_link(&self) -> &LinkStatistics {
        match self.direction {
            Direction::Down => &self.down,
            Direction::Up => &self.up,
        }
    }
}

/// The result of transfers that arrive at random.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArrivalsOutcome {
    /// Those that were complete, in the order of their ends.
    pub completions: Vec<Completion>,
    /// Transfers that were not complete at the end of the simulation.
    pub open: u64,
    /// Transfers that were refused because too many were open.
    pub refused: u64,
}

/// A complete transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Its size, in bytes.
    pub bytes: u64,
    /// The flow-completion time: from the client's first datagram, before the handshake, until all data had arrived.
    pub time: Duration,
    /// What it takes over the empty path at least: the handshake, the way of the data, and its bytes at the rate of the bottleneck.
    pub alone: Duration,
}

/// The result of a flow.
#[derive(Clone, Debug)]
pub struct FlowOutcome {
    /// When the client sent its first datagram.
    pub started_at: Time,
    /// The round-trip time of its path without queueing and serialisation delay.
    pub path_rtt: Duration,
    /// Duration of the client's handshake; `None` if it did not complete.
    pub handshake: Option<Duration>,
    /// From the client's first datagram to its first request; `None` if none was sent.
    pub first_request: Option<Duration>,
    /// The number of requests in the scenario.
    pub planned: usize,
    /// The result of each request that was sent.
    pub responses: Vec<ResponseOutcome>,
    /// Progress of the first response, from [`FlowOutcome::started_at`] on.
    pub progress: Vec<Progress>,
    /// Statistics of the sender of the data, until all data was acknowledged: the server, or the client of an upload.
    pub server: Option<SenderOutcome>,
    /// Its packets that the link of its data dropped, in order.
    pub drops: Vec<Drop>,
    /// Why the connection ended early, if it did.
    pub failure: Option<CloseReason>,
}

impl FlowOutcome {
    /// Whether all responses arrived.
    pub fn is_complete(&self) -> bool {
        self.last_byte().is_some()
    }

    /// From the client's first datagram to the end of the last response; `None` if a response is incomplete.
    pub fn last_byte(&self) -> Option<Duration> {
        let ends = self.responses.iter();
        let ends = ends.map(|one| Some((one.requested_at + one.last_byte?).since(self.started_at)));
        let ends: Vec<Duration> = ends.collect::<Option<_>>()?;
        ends.into_iter()
            .max()
            .filter(|_| self.responses.len() == self.planned)
    }
}

/// A packet that a link dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drop {
    /// The time.
    pub at: Time,
    /// The reason.
    pub reason: DropReason,
}

/// The result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseOutcome {
    /// Size of the response, or of the upload, in bytes.
    pub size: u64,
    /// The start of its times: the client's first datagram for the first requests, as a user perceives it; for later ones, when the
    /// request was sent.
    pub requested_at: Time,
    /// From [`ResponseOutcome::requested_at`] to the first byte.
    pub first_byte: Option<Duration>,
    /// From [`ResponseOutcome::requested_at`] until all bytes had arrived.
    pub last_byte: Option<Duration>,
}

/// When a number of bytes had arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The number of bytes, in order.
    pub bytes: u64,
    /// Time since the flow's start; `None` if they never arrived.
    pub after: Option<Duration>,
}

/// Statistics of a sender.
#[derive(Clone, Debug)]
pub struct SenderOutcome {
    /// Counters of packets and bytes.
    pub recovery: RecoveryStatistics,
    /// Counters of stream bytes.
    pub streams: stream::Statistics,
    /// The state of congestion control at the end.
    pub congestion: State,
    /// The minimum round-trip time.
    pub rtt_min: Duration,
    /// The smoothed round-trip time at the end.
    pub rtt_smoothed: Duration,
    /// When the first request arrived, or the first upload started; `None` if none did.
    pub requested_at: Option<Time>,
    /// When all data was acknowledged; `None` if it was not.
    pub acked_at: Option<Time>,
    /// The values of the connection log.
    pub snapshot: Box<Snapshot>,
}

/// Use of the bottleneck, from the start of the first response to the end of the last.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BottleneckOutcome {
    /// Length of this span.
    pub span: Duration,
    /// Packets and bytes that the bottleneck sent in it.
    pub served: Count,
    /// The bytes of `served` as a share of what it could send in the span, 0 to 1 ([`Capacity::bytes_between`]); `None` without a
    /// rate, and if the transfer did not end.
    ///
    /// [`Capacity::bytes_between`]: lastbyte_link::Capacity::bytes_between
    pub utilisation: Option<f64>,
    /// The longest time without a packet to send, from the start of the first packet in the span.
    pub idle_gap_max: Duration,
}
