//! Names of events and values.

use lastbyte_congestion::Phase;
use lastbyte_quic::space::Space;
use lastbyte_wire::packet::PacketType;

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    PacketSent,
    PacketReceived,
    PacketDropped,
    PacketBuffered,
    PacketLost,
    MetricsUpdated,
    CongestionStateUpdated,
    TimerUpdated,
    ConnectionStateUpdated,
    ConnectionClosed,
    KeyUpdated,
    KeyDiscarded,
    MtuUpdated,
    MigrationStateUpdated,
    ParametersSet,
    Http3FrameCreated,
    Http3FrameParsed,
    Http3ParametersSet,
}

impl Name {
    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::PacketSent => "transport:packet_sent",
            Self::PacketReceived => "transport:packet_received",
            Self::PacketDropped => "transport:packet_dropped",
            Self::PacketBuffered => "transport:packet_buffered",
            Self::PacketLost => "recovery:packet_lost",
            Self::MetricsUpdated => "recovery:metrics_updated",
            Self::CongestionStateUpdated => "recovery:congestion_state_updated",
            Self::TimerUpdated => "recovery:loss_timer_updated",
            Self::ConnectionStateUpdated => "connectivity:connection_state_updated",
            Self::ConnectionClosed => "connectivity:connection_closed",
            Self::KeyUpdated => "security:key_updated",
            Self::KeyDiscarded => "security:key_discarded",
            Self::MtuUpdated => "connectivity:mtu_updated",
            Self::MigrationStateUpdated => "connectivity:migration_state_updated",
            Self::ParametersSet => "transport:parameters_set",
            Self::Http3FrameCreated => "http:frame_created",
            Self::Http3FrameParsed => "http:frame_parsed",
            Self::Http3ParametersSet => "http:parameters_set",
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
