//! Configuration of a connection.

use core::{
    net::{SocketAddrV4, SocketAddrV6},
    time::Duration,
};
use std::sync::Arc;

use lastbyte_congestion::{ControllerFactory, Spec};
use lastbyte_wire::packet::Version;

use crate::{ack::AckDecimation, path::MtuConfig, recovery::LossThresholds, stream};

/// Configuration of a connection, shared by many connections.
#[derive(Clone, Debug)]
pub struct Config {
    /// Stream limits.
    pub streams: stream::Config,
    /// Congestion control: creates a controller for each path.
    pub congestion: Arc<dyn ControllerFactory>,
    /// Reordering thresholds. Default: those of RFC 9002, raised when the path reorders.
    pub thresholds: LossThresholds,
    /// Idle timeout; zero for none. Default: 30 s.
    pub max_idle_timeout: Duration,
    /// Interval after which an idle connection sends a PING to stay alive. Default: never.
    pub keep_alive: Option<Duration>,
    /// Maximum delay of an acknowledgment: `max_ack_delay`. Default: 25 ms; below 2^14 ms.
    pub max_ack_delay: Duration,
    /// Fewer acknowledgments after the first packets of the connection, as Chromium sends. Default: none, which is every
    /// second packet (RFC 9000 §13.2.2).
    pub ack_decimation: Option<AckDecimation>,
    /// Datagram sizes. Default: start at 1200 bytes and probe up to 1472.
    pub mtu: MtuConfig,
    /// Whether packets are marked ECT(0), or ECT(1) if congestion control is scalable (RFC 9331), as long as the path preserves
    /// the marks. Default: yes.
    pub ecn: bool,
    /// Whether the fixed bit may vary, if the peer supports it (RFC 9287). Default: yes.
    pub grease: bool,
    /// Whether the peer may request less frequent acknowledgments, and receives such a request once our window is large
    /// (draft-ietf-quic-ack-frequency). Default: yes.
    pub ack_frequency: bool,
    /// Whether the peer may migrate to another address. NAT rebinding is always accepted. Default: yes.
    pub allows_migration: bool,
    /// A server's preferred address (RFC 9000 §9.6). Default: none.
    pub preferred_address: PreferredAddresses,
    /// Whether a client migrates to the server's preferred address. Default: yes.
    pub follows_preferred_address: bool,
    /// Supported versions in order of preference; a client starts with the first. Default: 1, then 2.
    pub versions: Vec<Version>,
}

/// A server's preferred addresses, one per address family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PreferredAddresses {
    /// IPv4.
    pub ipv4: Option<SocketAddrV4>,
    /// IPv6.
    pub ipv6: Option<SocketAddrV6>,
}

impl Config {
    /// The defaults, with the congestion control of a spec.
    #[must_use]
    pub fn new(congestion: Spec) -> Self {
        Self::with_controllers(Arc::new(congestion))
    }

    /// The defaults, with a given controller factory.
    #[must_use]
    pub fn with_controllers(congestion: Arc<dyn ControllerFactory>) -> Self {
        Self {
            streams: stream::Config::default(),
            congestion,
            thresholds: LossThresholds::adaptive(),
            max_idle_timeout: Duration::from_secs(30),
            keep_alive: None,
            max_ack_delay: Duration::from_millis(25),
            ack_decimation: None,
            mtu: MtuConfig::default(),
            ecn: true,
            grease: true,
            ack_frequency: true,
            allows_migration: true,
            preferred_address: PreferredAddresses::default(),
            follows_preferred_address: true,
            versions: vec![Version::V1, Version::V2],
        }
    }
}
