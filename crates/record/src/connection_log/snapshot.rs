//! The values of a connection for its line.

use core::time::Duration;

use lastbyte_congestion::{Bandwidth, SavedPath, State, Time};
use lastbyte_quic::{
    anatomy::Anatomy,
    connection::Connection,
    recovery::{DeliveryRate, EcnState, FirstFlight, LossThresholds, RecoveryStatistics},
    statistics::Statistics,
    stream,
};

/// The statistics of a connection at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub(super) statistics: Statistics,
    pub(super) recovery: RecoveryStatistics,
    pub(super) streams: stream::Statistics,
    pub(super) state: State,
    pub(super) thresholds: LossThresholds,
    pub(super) ecn: EcnState,
    /// Packets that the peer reported with ECT(0), with ECT(1), and with CE.
    pub(super) ecn_reported: [u64; 3],
    pub(super) rtt: Option<Rtt>,
    pub(super) is_paced: bool,
    pub(super) crypto_sent: u64,
    pub(super) anatomy: Option<Anatomy>,
    /// Path measurements saved in the last token for a later connection, and the time since the start.
    pub(super) token_sent: Option<(Duration, SavedPath)>,
    pub(super) delivery_rate: Option<DeliveryRate>,
    pub(super) first_flight: Option<FirstFlight>,
    pub(super) in_flight_at_first_loss: Option<u64>,
    pub(super) time_to_idle: Option<Duration>,
}

/// Round-trip times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rtt {
    pub(super) minimum: Duration,
    pub(super) maximum: Duration,
    pub(super) smoothed: Duration,
    pub(super) variance: Duration,
    pub(super) latest: Duration,
}

impl Snapshot {
    /// The current statistics of a connection.
    #[must_use]
    pub fn of(connection: &Connection) -> Self {
        let recovery = connection.recovery();
        let rtt = recovery.rtt();
        let path = recovery.measurements();
        Self {
            statistics: connection.statistics().clone(),
            recovery: *connection.recovery_statistics(),
            streams: connection.stream_statistics(),
            state: recovery.congestion(),
            thresholds: *recovery.thresholds(),
            ecn: recovery.ecn().state(),
            ecn_reported: recovery.ecn().reported(),
            rtt: rtt.has_sample().then(|| Rtt {
                minimum: rtt.min(),
                maximum: rtt.max(),
                smoothed: rtt.smoothed(),
                variance: rtt.variance(),
                latest: rtt.latest(),
            }),
            is_paced: !recovery.pacing().rate.is_unlimited(),
            crypto_sent: connection.crypto_sent(),
            anatomy: connection.anatomy(),
            token_sent: connection.path_saved(),
            delivery_rate: path.delivery_rate(),
            first_flight: path.first_flight(),
            in_flight_at_first_loss: path.in_flight_at_first_loss(),
            time_to_idle: connection.time_to_idle(),
        }
    }

    /// Where the time of the transfer went, if that was measured.
    pub const fn anatomy(&self) -> Option<Anatomy> {
        self.anatomy
    }

    /// A part of that in milliseconds.
    pub(super) fn part_ms(&self, of: fn(&Anatomy) -> Duration) -> Option<f64> {
        self.anatomy.as_ref().map(|parts| exact_ms(of(parts)))
    }

    /// The name of the growth rule of the startup phase.
    pub const fn startup(&self) -> &'static str {
        self.state.startup
    }

    /// The name of the congestion avoidance algorithm, or of the whole algorithm if it has no separate phases.
    pub fn congestion(&self) -> &'static str {
        self.state.avoidance.unwrap_or(self.state.startup)
    }

    /// Bytes per second that an earlier connection saved, or 0.
    pub(super) fn saved_rate(&self) -> u64 {
        self.state.statistics.saved_path.map_or(0, rate)
    }

    /// Bytes per second that were saved for a later connection, or 0.
    pub(super) fn token_rate(&self) -> u64 {
        self.token_sent.map_or(0, |(_, saved)| rate(saved))
    }

    /// Whether more was sent than the initial window, so that a jump could have an effect.
    pub(super) const fn is_jump_applicable(&self) -> bool {
        self.streams.data_sent > self.state.statistics.initial_window
    }

    /// A delivery rate, or 0 if none was measured.
    pub(super) fn delivery_rate(&self, of: fn(&DeliveryRate) -> u64) -> u64 {
        self.delivery_rate.as_ref().map_or(0, of)
    }

    /// Whether the window grows as in Rapid Start.
    pub(super) fn has_rapid_growth(&self) -> bool {
        self.state.startup == "rapid"
    }

    /// A round-trip time in rounded milliseconds, or `none` before the first sample.
    pub(super) fn rtt_ms(&self, of: fn(&Rtt) -> Duration, none: u64) -> u64 {
        self.rtt.as_ref().map_or(none, |rtt| millis(of(rtt)))
    }

    pub(super) fn time_ms(time: Option<Time>, none: u64) -> u64 {
        time.map_or(none, |time| millis(time.since(Time::ZERO)))
    }
}

/// A saved window in its round-trip time, in bytes per second.
fn rate(saved: SavedPath) -> u64 {
    Bandwidth::from_delivery(saved.window, saved.rtt).bytes_per_second()
}

/// Milliseconds with fractions.
pub(super) fn exact_ms(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}

/// Milliseconds, rounded half up.
pub(super) fn millis(span: Duration) -> u64 {
    u64::try_from((span.as_nanos() + 500_000) / 1_000_000).unwrap_or(u64::MAX)
}
