//! What can be set for a connection.

use core::{
    net::{SocketAddrV4, SocketAddrV6},
    time::Duration,
};
use std::sync::Arc;

use lastbyte_congestion::{ControllerFactory, Spec};
use lastbyte_wire::packet::Version;

use crate::{ack::AckDecimation, path::MtuConfig, recovery::LossThresholds, stream};

/// What can be set for a connection. Many share one.
#[derive(Clone, Debug)]
pub struct Config {
    /// Limits of its streams.
    pub streams: stream::Config,
    /// Its congestion control: makes a controller for each path.
    pub congestion: Arc<dyn ControllerFactory>,
    /// Its reordering thresholds. Default: those of RFC 9002, relaxed when the path reorders.
    pub thresholds: LossThresholds,
    /// After how long without a packet it is over; zero for never. Default: 30 s.
    pub max_idle_timeout: Duration,
    /// How long nothing may happen before a PING keeps it alive. Default: never.
    pub keep_alive: Option<Duration>,
    /// How long an acknowledgment is held back at most: `max_ack_delay`. Default: 25 ms; below 2^14 ms.
    pub max_ack_delay: Duration,
    /// Fewer acknowledgments after the first packets of the connection, as Chromium sends. Default: none, which is every
    /// second packet (RFC 9000 §13.2.2).
    pub ack_decimation: Option<AckDecimation>,
    /// The sizes of its datagrams. Default: from 1200 bytes, up to what the path is found to carry, 1472 at most.
    pub mtu: MtuConfig,
    /// Whether packets are marked ECT(0), as long as the path carries the marks. Default: yes.
    pub ecn: bool,
    /// Whether the fixed bit of packets may vary, where the peer agrees (RFC 9287). Default: yes.
    pub grease: bool,
    /// Whether the peer may ask for rarer acknowledgments, and is asked for them itself once its window is large
    /// (draft-ietf-quic-ack-frequency). Default: yes.
    pub ack_frequency: bool,
    /// The largest DATAGRAM frame that is taken, in bytes; 0 for none (RFC 9221). Default: 0.
    pub max_datagram_frame_size: u16,
    /// Whether the peer may move to another address. A NAT that does is borne in any case. Default: yes.
    pub allows_migration: bool,
    /// Where a server would rather be spoken to (RFC 9000 §9.6). Default: nowhere else.
    pub preferred_address: PreferredAddresses,
    /// Whether a client follows a server to the address that this prefers. Default: yes.
    pub follows_preferred_address: bool,
    /// The versions it speaks, the one it likes best first; a client begins with that. Default: 1, then 2.
    pub versions: Vec<Version>,
}

/// The addresses that a server prefers, of each family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PreferredAddresses {
    /// By IPv4.
    pub ipv4: Option<SocketAddrV4>,
    /// By IPv6.
    pub ipv6: Option<SocketAddrV6>,
}

impl Config {
    /// The defaults, with the congestion control of a spec.
    #[must_use]
    pub fn new(congestion: Spec) -> Self {
        Self::with_controllers(Arc::new(congestion))
    }

    /// The defaults, with any congestion control.
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
            max_datagram_frame_size: 0,
            allows_migration: true,
            preferred_address: PreferredAddresses::default(),
            follows_preferred_address: true,
            versions: vec![Version::V1, Version::V2],
        }
    }
}
