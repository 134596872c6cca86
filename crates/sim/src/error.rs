//! Why a scenario cannot be simulated.

use core::time::Duration;

use lastbyte_link::ConfigError;
use lastbyte_quic::endpoint::{ConnectError, EndpointConfigError};
use lastbyte_scenario::SettingError;
use lastbyte_units::{self as units, Direction};

/// Why a scenario cannot be simulated.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SimError {
    /// The listener cancelled the simulation.
    #[error("cancelled")]
    Cancelled,
    /// There is no flow, or a flow without a request.
    #[error("no flow, or a flow without requests")]
    NothingToDo,
    /// A datagram size is below 1200 bytes (RFC 9000 §14) or above 65527.
    #[error(
        "datagrams of {0} bytes: QUIC needs 1200 at least (RFC 9000, section 14), and UDP carries 65527"
    )]
    DatagramSize(u16),
    /// A link has an invalid configuration.
    #[error("the {way}: {1}", way = .0.name())]
    Link(Direction, ConfigError),
    /// An endpoint has an invalid configuration.
    #[error("{0}")]
    Endpoint(EndpointConfigError),
    /// A connection cannot be started.
    #[error("{0}")]
    Connect(ConnectError),
    /// The handshake cannot be prepared.
    #[error("{0}")]
    Handshake(String),
    /// A page is not valid.
    #[error("{0}")]
    Page(String),
    /// Cross traffic names a hop that the path does not have.
    #[error("{0}")]
    Cross(SettingError),
    /// A flow or cross traffic has a shorter round-trip time than the path.
    #[error("a flow with a round trip of {} (expected at least that of the path, {})", units::show_span(*.flow), units::show_span(*.path))]
    RoundTrip {
        /// The round-trip time of the flow.
        flow: Duration,
        /// The round-trip time of the path, or of its hops that the data pass.
        path: Duration,
    },
}
