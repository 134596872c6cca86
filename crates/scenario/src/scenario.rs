//! The input of a simulation: a path, its flows, and what they transfer.

use core::time::Duration;

use lastbyte_congestion::{SavedPath, Spec};
use lastbyte_link as link;
use lastbyte_units::Direction;
use lastbyte_wire::AckDecimation;

use crate::{
    client_acks::ClientAcks,
    cross::{CrossKind, CrossTraffic},
    moves::Move,
    setting::SettingError,
};

/// A path, and the traffic on it.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The path that all flows share.
    pub path: Path,
    /// The transfers that are measured.
    pub flows: Vec<FlowPlan>,
    /// Cross traffic, until all flows are complete.
    pub cross: Vec<CrossTraffic>,
    /// Settings of the endpoints.
    pub transport: Transport,
    /// Random seed.
    pub seed: u64,
    /// When the simulation ends at the latest, from its start. Default: 1000 s.
    pub time_limit: Duration,
    /// The simulation continues at least until then, from its start, even if all flows are complete, so that cross traffic is
    /// observed for the same time in each arm. Default: 0.
    pub horizon: Duration,
}

/// Both directions of a path.
#[derive(Clone, Debug, Default)]
pub struct Path {
    /// From the server to clients, where the bottleneck mostly is.
    pub down: link::Config,
    /// From clients to the server.
    pub up: link::Config,
    /// Overhead of a packet beside its UDP payload, in bytes, which the links carry too: 28 for IPv4 and UDP. Default: 0, so that
    /// rates are rates of UDP payload, as in quicly's simulator.
    pub overhead: u32,
    /// How its clients acknowledge, if the path's file specifies it: an input of the caller's [`Transport`]. Default: none.
    pub client_acks: Option<ClientAcks>,
    /// Traffic that belongs to the path's description, beside that of a scenario.
    pub cross: Vec<CrossTraffic>,
    /// Address changes of the measured clients, ordered by time. Default: none.
    pub moves: Vec<Move>,
}

impl Path {
    /// The round-trip time without queues.
    pub fn rtt(&self) -> Duration {
        self.down.total_delay() + self.up.total_delay()
    }

    /// The link of this direction.
    pub const fn link(&self, direction: Direction) -> &link::Config {
        match direction {
            Direction::Down => &self.down,
            Direction::Up => &self.up,
        }
    }

    /// Prepares the path for uploads. If the uplink has no rate, the links swap places, with the cross traffic on them except
    /// whole connections, whose data always go down. Acknowledgments are not batched on the downlink. Returns whether the links
    /// were swapped.
    pub fn turn_for_uploads(&mut self) -> bool {
        if !matches!(self.up.bottleneck().1.capacity, link::Capacity::Unlimited) {
            return false;
        }
        core::mem::swap(&mut self.down, &mut self.up);
        for cross in &mut self.cross {
            if !matches!(cross.kind, CrossKind::Stack(_)) {
                cross.direction = match cross.direction {
                    Direction::Down => Direction::Up,
                    Direction::Up => Direction::Down,
                };
            }
        }
        // The client's radio is at its own end of the path.
        self.up.wake_up = self.down.wake_up.take();
        self.down.release = None;
        true
    }
}

/// One client with one connection to the server.
#[derive(Clone, Debug)]
pub struct FlowPlan {
    /// The server's congestion control.
    pub congestion: Spec,
    /// When the client sends its first datagram, from the start of the simulation.
    pub start: Duration,
    /// Its round-trip time without queues. `None`: that of the path, which is also the minimum. The excess is added between the link
    /// up and the server.
    pub rtt: Option<Duration>,
    /// Direction of the data: down in responses, or up in requests (uploads). The link of the first flow's data has the
    /// bottleneck.
    pub direction: Direction,
    /// Its requests, in order. At least one.
    pub requests: Vec<Request>,
    /// Numbers of bytes of the first response whose arrival in order is recorded. Ascending.
    pub progress: Vec<u64>,
}

/// One request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Pause between the end of the previous response and this request. For the first: after the handshake, or in 0-RTT after the
    /// client's start.
    pub pause: Duration,
    /// Size of the response, or of the upload, in bytes.
    pub size: u64,
    /// Whether it is sent together with the previous request, instead of after its response.
    pub is_parallel: bool,
}

impl Request {
    /// A request without a pause before it.
    #[must_use]
    pub const fn of(size: u64) -> Self {
        Self {
            pause: Duration::ZERO,
            size,
            is_parallel: false,
        }
    }
}

/// The kind of handshake of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Handshake {
    /// A full handshake, with certificates.
    #[default]
    Full,
    /// The client resumes an earlier connection, and sends requests after the handshake. It has the server's token of that connection
    /// (RFC 9000 §8.1.3), so its address is validated.
    Resumed,
    /// Resumption with requests in 0-RTT (RFC 9001 §4.6).
    ZeroRtt,
}

impl Handshake {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Full, Self::Resumed, Self::ZeroRtt];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Resumed => "resumed",
            Self::ZeroRtt => "0rtt",
        }
    }
}

impl core::str::FromStr for Handshake {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<Self, SettingError> {
        SettingError::named(&Self::ALL, Self::name, "handshake", text)
    }
}

/// Packet protection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Security {
    /// Simulated TLS without cryptography: the same lengths and round trips, and the same bytes for the same seed.
    #[default]
    Simulated,
    /// Real TLS with random keys: the same seed gives the same times and sizes, but not the same bytes.
    Tls,
}

/// Settings of the endpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transport {
    /// Handshake of the measured flows; other flows use a full handshake. Default: full.
    pub handshake: Handshake,
    /// Path measurements from an earlier connection of the measured flows' clients, which have the server's token of that connection
    /// (RFC 9959). Default: none.
    pub saved_path: Option<SavedPath>,
    /// Packet protection. Default: simulated TLS.
    pub security: Security,
    /// UDP payload of a full datagram, in bytes, 1200 or more. Default: 1280.
    pub datagram_size: u16,
    /// Whether the reordering thresholds of loss detection adapt to the path, instead of the constants of RFC 9002. Default: yes.
    pub adapts_to_reordering: bool,
    /// Whether the server may request less frequent acknowledgments (draft-ietf-quic-ack-frequency). Default: no, as with the
    /// browsers of today.
    pub ack_frequency: bool,
    /// Whether packets are marked ECT(0). Default: no.
    pub ecn: bool,
    /// Maximum delay of a client's acknowledgments. Default: 25 ms.
    pub max_ack_delay: Duration,
    /// Fewer acknowledgments of a client after its first packets. Default: none.
    pub ack_decimation: Option<AckDecimation>,
    /// Initial receive window of a stream at a client, in bytes; that of a connection is 2.5 times as large. Default: 6 MiB, as in
    /// Chromium.
    pub stream_window: u64,
    /// Whether a client keeps these windows instead of tuning them to the path (up to 16 MiB). Default: no.
    pub has_fixed_windows: bool,
    /// Length of the server's certificate chain, in bytes. Default: 2400.
    pub certificate_chain: u16,
}

impl Default for Transport {
    fn default() -> Self {
        Self {
            handshake: Handshake::default(),
            saved_path: None,
            security: Security::default(),
            datagram_size: 1280,
            adapts_to_reordering: true,
            ack_frequency: false,
            ecn: false,
            max_ack_delay: Duration::from_millis(25),
            ack_decimation: None,
            stream_window: 6 << 20,
            has_fixed_windows: false,
            certificate_chain: 2400,
        }
    }
}

impl Scenario {
    /// Direction of the first flow's data, whose link counts as the bottleneck.
    pub fn direction(&self) -> Direction {
        self.flows
            .first()
            .map_or(Direction::Down, |flow| flow.direction)
    }

    /// The hop that counts as the bottleneck: of the link of the first flow's data, the one with the lowest rate.
    pub fn bottleneck(&self) -> &link::Config {
        self.path.link(self.direction()).bottleneck().1
    }

    /// A scenario with one transfer of `size` bytes, and defaults.
    #[must_use]
    pub fn transfer(path: Path, congestion: Spec, size: u64) -> Self {
        Self {
            path,
            flows: vec![FlowPlan {
                congestion,
                start: Duration::ZERO,
                rtt: None,
                direction: Direction::Down,
                requests: vec![Request::of(size)],
                progress: Vec::new(),
            }],
            cross: Vec::new(),
            transport: Transport::default(),
            seed: 1,
            time_limit: Duration::from_secs(1000),
            horizon: Duration::ZERO,
        }
    }
}
