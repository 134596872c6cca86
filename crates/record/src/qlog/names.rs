//! Names of events and values in both versions of qlog.

use lastbyte_congestion::Phase;
use lastbyte_quic::space::Space;
use lastbyte_wire::packet::PacketType;

/// A version of qlog.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// Version 0.3, which qvis loads.
    #[default]
    V03,
    /// The current drafts.
    Draft,
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    PacketSent,
    PacketReceived,
    PacketDropped,
    PacketLost,
    MetricsUpdated,
    CongestionStateUpdated,
    TimerUpdated,
    ConnectionStarted,
    ConnectionStateUpdated,
    ConnectionClosed,
    KeyUpdated,
    KeyDiscarded,
    MtuUpdated,
    MigrationStateUpdated,
    ParametersSet,
}

impl Name {
    pub(super) const fn in_dialect(self, dialect: Dialect) -> &'static str {
        let (v03, draft) = match self {
            Self::PacketSent => ("transport:packet_sent", "quic:packet_sent"),
            Self::PacketReceived => ("transport:packet_received", "quic:packet_received"),
            Self::PacketDropped => ("transport:packet_dropped", "quic:packet_dropped"),
            Self::PacketLost => ("recovery:packet_lost", "quic:packet_lost"),
            Self::MetricsUpdated => ("recovery:metrics_updated", "quic:recovery_metrics_updated"),
            Self::CongestionStateUpdated => (
                "recovery:congestion_state_updated",
                "quic:congestion_state_updated",
            ),
            Self::TimerUpdated => ("recovery:loss_timer_updated", "quic:timer_updated"),
            Self::ConnectionStarted => {
                ("connectivity:connection_started", "quic:connection_started")
            }
            Self::ConnectionStateUpdated => (
                "connectivity:connection_state_updated",
                "quic:connection_state_updated",
            ),
            Self::ConnectionClosed => ("connectivity:connection_closed", "quic:connection_closed"),
            Self::KeyUpdated => ("security:key_updated", "quic:key_updated"),
            Self::KeyDiscarded => ("security:key_discarded", "quic:key_discarded"),
            Self::MtuUpdated => ("connectivity:mtu_updated", "quic:mtu_updated"),
            Self::MigrationStateUpdated => (
                "connectivity:migration_state_updated",
                "quic:migration_state_updated",
            ),
            Self::ParametersSet => ("transport:parameters_set", "quic:parameters_set"),
        };
        match dialect {
            Dialect::V03 => v03,
            Dialect::Draft => draft,
        }
    }
}

pub(super) const fn packet_type_name(packet_type: PacketType) -> &'static str {
    match packet_type {
        PacketType::Initial => "initial",
        PacketType::ZeroRtt => "0RTT",
        PacketType::Handshake => "handshake",
        PacketType::OneRtt => "1RTT",
    }
}

pub(super) const fn space_packet_type(space: Space) -> &'static str {
    match space {
        Space::Initial => "initial",
        Space::Handshake => "handshake",
        Space::Application => "1RTT",
    }
}

/// The phase of a controller. For the startup phase it is the name of the startup algorithm; Conservative Slow Start has the
/// name that other stacks write.
pub(super) const fn phase_name(phase: Phase, startup: &'static str) -> &'static str {
    match phase {
        Phase::Startup => startup,
        Phase::ConservativeSlowStart => "conservative_slow_start",
        other => other.name(),
    }
}
