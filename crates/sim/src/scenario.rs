//! What is to be simulated, as plain data: a path, the flows over it, and what they transfer.

use core::time::Duration;

use lastbyte_congestion::{SavedPath, Spec};
use lastbyte_link as link;
use lastbyte_quic::ack::AckDecimation;

use crate::{client_acks::ClientAcks, cross::CrossTraffic, listener::Way, moves::Move};

/// A path, and what happens on it.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The path that all flows share.
    pub path: Path,
    /// The transfers that are measured.
    pub flows: Vec<FlowPlan>,
    /// Other traffic, which goes on until all flows are done.
    pub cross: Vec<CrossTraffic>,
    /// How the endpoints are set.
    pub transport: Transport,
    /// Where all chance comes from.
    pub seed: u64,
    /// When the simulation ends, whatever is done by then: counted from its start. Default: 1000 s.
    pub time_limit: Duration,
    /// The simulation continues at least until then, also if all flows are done, so that other traffic is observed for the same
    /// time whatever the flows do: counted from its start. Default: 0.
    pub horizon: Duration,
}

/// Both directions of a path.
#[derive(Clone, Debug, Default)]
pub struct Path {
    /// From the server to clients, where the bottleneck mostly is.
    pub down: link::Config,
    /// From clients to the server.
    pub up: link::Config,
    /// What a packet has beside its UDP payload, in bytes: the links carry it too. 28 for IPv4 and UDP. Default: 0, so
    /// that rates are those of UDP payload, as in quicly's simulator.
    pub overhead: u32,
    /// How its clients acknowledge, if the path's file specifies it: an input of the caller's [`Transport`]. Default: none.
    pub client_acks: Option<ClientAcks>,
    /// Traffic that belongs to the path's description, beside that of a scenario.
    pub cross: Vec<CrossTraffic>,
    /// When the addresses of the measured clients change, in the order of time. Default: never.
    pub moves: Vec<Move>,
}

impl Path {
    /// Prepares the path for uploads. If the link up has no rate, it becomes as the link down, whose limits the link down loses: they
    /// change places. Acknowledgments are not gathered on the way down. Returns whether the links changed places.
    pub fn turn_for_uploads(&mut self) -> bool {
        if !matches!(self.up.capacity, link::Capacity::Unlimited) {
            return false;
        }
        core::mem::swap(&mut self.down, &mut self.up);
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
    /// Its round-trip time without queues; `None` for that of the path, which is also the least. What it has beyond that is
    /// between the link up and the server.
    pub rtt: Option<Duration>,
    /// Which way the data go: down in responses, or up in requests, which are uploads then. The link that the first flow's data
    /// take counts as the bottleneck.
    pub way: Way,
    /// What it asks for, one after the other. At least one.
    pub requests: Vec<Request>,
    /// Numbers of bytes of the first response whose arrival in order is recorded. Ascending.
    pub progress: Vec<u64>,
}

/// One request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// How long after the end of the response before it is sent; of the first, after the handshake, or in 0-RTT after the
    /// client's begin.
    pub pause: Duration,
    /// How many bytes the response has, or the upload.
    pub size: u64,
    /// Whether it is sent together with the request before, in place of after its response.
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

/// What client and server speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/3 (RFC 9114).
    #[default]
    Http3,
    /// A request and a response as they are on a QUIC stream, to be compared with simulators that speak no HTTP.
    Raw,
}

impl Protocol {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Http3, Self::Raw];

    /// Its name in files and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http3 => "h3",
            Self::Raw => "raw",
        }
    }
}

impl core::str::FromStr for Protocol {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|one| one.name() == text)
            .ok_or_else(|| format!("unknown protocol `{text}` (expected `h3` or `raw`)"))
    }
}

/// How client and server of a flow shake hands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Handshake {
    /// They have not met: with certificates.
    #[default]
    Full,
    /// The client resumes an earlier connection, and waits for the server before it asks. It has the server's token of then
    /// (RFC 9000 §8.1.3), so its address counts as validated.
    Resumed,
    /// The same, and it asks at once (0-RTT: RFC 9001 §4.6).
    ZeroRtt,
}

impl Handshake {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Full, Self::Resumed, Self::ZeroRtt];

    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Resumed => "resumed",
            Self::ZeroRtt => "0rtt",
        }
    }
}

impl core::str::FromStr for Handshake {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|one| one.name() == text)
            .ok_or_else(|| {
                format!("unknown handshake `{text}` (expected `full`, `resumed` or `0rtt`)")
            })
    }
}

/// Who protects packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Security {
    /// A twin of TLS without cryptography: the same lengths, the same round trips, the same bytes for the same seed.
    #[default]
    Twin,
    /// TLS itself. It draws keys of its own: the same seed gives the same times and sizes, but not the same bytes.
    Tls,
}

/// How endpoints are set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transport {
    /// What client and server speak. Default: HTTP/3.
    pub protocol: Protocol,
    /// How the measured flows shake hands; other traffic does so in full. Default: in full.
    pub handshake: Handshake,
    /// What the server's congestion control measured on an earlier visit of the measured flows' clients, which have the server's token
    /// of then (RFC 9959). Default: none.
    pub saved_path: Option<SavedPath>,
    /// Packet protection. Default: the stand-in for TLS.
    pub security: Security,
    /// The UDP payload of a full datagram, in bytes, 1200 or more. Default: 1280.
    pub datagram_size: u16,
    /// Whether the reordering thresholds of loss detection adapt to the path, or stay those of RFC 9002. Default: they adapt.
    pub adapts_to_reordering: bool,
    /// Whether the server may ask for rarer acknowledgments (draft-ietf-quic-ack-frequency). Default: no, as with the
    /// browsers of today.
    pub ack_frequency: bool,
    /// Whether packets are marked ECT(0). Default: no.
    pub ecn: bool,
    /// How long a client holds acknowledgments back at most. Default: 25 ms.
    pub max_ack_delay: Duration,
    /// Fewer acknowledgments of a client after its first packets. Default: none.
    pub ack_decimation: Option<AckDecimation>,
    /// What a client lets a server send ahead on a stream, at first and until it has been tuned, in bytes; a connection may
    /// have 2.5 times as much. Default: 6 MiB, as Chromium's.
    pub stream_window: u64,
    /// How long the server's certificate chain is, in bytes. Default: 2400.
    pub certificate_chain: u16,
}

impl Default for Transport {
    fn default() -> Self {
        Self {
            protocol: Protocol::default(),
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
            certificate_chain: 2400,
        }
    }
}

impl Scenario {
    /// Which way the data of the first flow go, whose link counts as the bottleneck.
    #[must_use]
    pub fn way(&self) -> Way {
        self.flows.first().map_or(Way::Down, |flow| flow.way)
    }

    /// This link.
    #[must_use]
    pub fn bottleneck(&self) -> &link::Config {
        match self.way() {
            Way::Down => &self.path.down,
            Way::Up => &self.path.up,
        }
    }

    /// One transfer of this many bytes over a path, with defaults.
    #[must_use]
    pub fn transfer(path: Path, congestion: Spec, size: u64) -> Self {
        Self {
            path,
            flows: vec![FlowPlan {
                congestion,
                start: Duration::ZERO,
                rtt: None,
                way: Way::Down,
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
