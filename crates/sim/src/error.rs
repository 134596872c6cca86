//! Why a scenario cannot be simulated.

use core::{fmt, time::Duration};

use lastbyte_link::ConfigError;
use lastbyte_quic::endpoint::{ConnectError, EndpointConfigError};
use lastbyte_scenario::SettingError;
use lastbyte_units::{self as units, Direction};

/// Why a scenario cannot be simulated.
#[derive(Clone, Debug, PartialEq)]
pub enum SimError {
    /// There is no flow, or a flow without a request.
    NothingToDo,
    /// A datagram size is below 1200 bytes (RFC 9000 §14) or above 65527.
    DatagramSize(u16),
    /// A link has an invalid configuration.
    Link(Direction, ConfigError),
    /// An endpoint has an invalid configuration.
    Endpoint(EndpointConfigError),
    /// A connection cannot be started.
    Connect(ConnectError),
    /// The handshake cannot be prepared.
    Handshake(String),
    /// A page is not valid.
    Page(String),
    /// Cross traffic names a hop that the path does not have.
    Cross(SettingError),
    /// A flow or cross traffic has a shorter round-trip time than the path.
    RoundTrip {
        /// The round-trip time of the flow.
        flow: Duration,
        /// The round-trip time of the path, or of its hops that the data pass.
        path: Duration,
    },
}

impl fmt::Display for SimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NothingToDo => f.write_str("no flow, or a flow without requests"),
            Self::DatagramSize(size) => write!(
                f,
                "datagrams of {size} bytes: QUIC needs 1200 at least (RFC 9000, section 14), and UDP carries 65527"
            ),
            Self::Link(direction, error) => write!(f, "the {}: {error}", direction.name()),
            Self::Endpoint(error) => error.fmt(f),
            Self::Connect(error) => error.fmt(f),
            Self::Cross(error) => error.fmt(f),
            Self::Handshake(reason) | Self::Page(reason) => f.write_str(reason),
            Self::RoundTrip { flow, path } => write!(
                f,
                "a flow with a round trip of {} (expected at least that of the path, {})",
                units::show_span(*flow),
                units::show_span(*path)
            ),
        }
    }
}

impl std::error::Error for SimError {}
