//! What `lastbyte sim` can be told.

use std::{num::NonZeroUsize, path::PathBuf, time::Duration};

use clap::{Args, ValueEnum, value_parser};
use lastbyte_congestion::Spec;
use lastbyte_link::Rate;
use lastbyte_sim::{CrossKind, Handshake, Protocol, units};

use crate::commands::path::PathArguments;

const EXAMPLES: &str = "\
Examples:
  # The path of the talk on Rapid Start: four ways to start, side by side.
  lastbyte sim --network vdsl --size 1.6MB
  # A path of your own, two arms, and a picture to zoom into.
  lastbyte sim --rate 55mbit --rtt 39ms --arm slow-start --arm rapid-start --plot start.html
  # When do the first 200 and 400 kB arrive of a long transfer, over 20 seeds with 1 % random loss?
  lastbyte sim --network lte --loss 1% --size 10MB --progress 200kB,400kB --runs 20
  # Two flows share a bottleneck, the second 300 ms later.
  lastbyte sim --network dsl --size 20MB --flows 2 --stagger 300ms --arm cubic --arm bbr
  # What a handshake costs before the first byte: the column TTFB RTT says 2, 2 and 1 round trips.
  lastbyte sim --rate 10gbit --rtt 200ms --arm rapid-start --size 20kB --handshake full,resumed,0rtt --tls
  # Everything that happens, for jq and qvis.
  lastbyte sim --arm rapid-start --trace events.ndjson --qlog qlogs/

Networks: dsl, vdsl, home-wifi, public-wifi, corporate-wifi, lte, 5g, leo, geo, congested, bdp20, bdp40; or a file of the
same form (see networks/*.toml). Settings on the command line take the place of the network's.

An arm is a congestion control spec: a preset (slow-start, jumpstart, rapid-no-jump, rapid-start, hystart, newreno, cubic,
pico, bbr), with keys changed after a colon: rapid-start:congestion=newreno,startup-beta=0.7.

Times count from the client's first datagram. TTLB: until the last byte had arrived, and all before it. TTFB: until the first
byte of the response's body had; TTFB RTT: the same in round trips of the path without queues.

Handshakes of HTTP/3 take so many round trips until the client asks, and until the first byte: full 1 and 2 (a certificate
chain that is longer than three times the client's first datagram: one more), resumed 1 and 2, 0rtt 0 and 1.";

/// Simulates transfers over a path, arm by arm.
///
/// Client and server are the real QUIC endpoints with HTTP/3 on them, in virtual time; only TLS is replaced by a twin of the
/// same sizes and round trips, unless --tls says otherwise. The same seed gives the same figures, to the byte.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) path: PathArguments,

    /// How much is transferred: 1.6MB; may be repeated, one transfer each
    #[arg(long, default_value = "1.6MB", value_delimiter = ',', value_parser = units::bytes, help_heading = "Transfer")]
    pub(crate) size: Vec<u64>,
    /// Also report when so many bytes had arrived in order: 200kB,400kB
    #[arg(long, value_name = "BYTES,…", value_delimiter = ',', value_parser = units::bytes, help_heading = "Transfer")]
    pub(crate) progress: Vec<u64>,
    /// Requests on each connection, one after the other, all of the same size
    #[arg(long, value_name = "N", default_value_t = NonZeroUsize::MIN, help_heading = "Transfer")]
    pub(crate) requests: NonZeroUsize,
    /// Idle time between requests
    #[arg(long, value_name = "SPAN", default_value = "0", value_parser = units::span, help_heading = "Transfer")]
    pub(crate) pause: Duration,
    /// Flows of the same arm that share the path
    #[arg(long, value_name = "N", default_value_t = NonZeroUsize::MIN, help_heading = "Transfer")]
    pub(crate) flows: NonZeroUsize,
    /// How much later each flow begins than the one before
    #[arg(long, value_name = "SPAN", default_value = "0", value_parser = units::span, help_heading = "Transfer")]
    pub(crate) stagger: Duration,
    /// Other traffic in the way: a spec, for a QUIC flow without end, or cbr:5mbit for packets at that rate; may be repeated
    #[arg(long, value_name = "SPEC", value_parser = cross, help_heading = "Transfer")]
    pub(crate) cross: Vec<CrossKind>,

    /// A way to start and go on; may be repeated. Default: slow-start, jumpstart, rapid-no-jump, rapid-start
    #[arg(long, value_name = "SPEC", value_parser = arm, help_heading = "Endpoints")]
    pub(crate) arm: Vec<Arm>,
    /// What client and server speak: h3, or raw for a request and a response without HTTP, as in quicly's simulator
    #[arg(
        long,
        value_name = "NAME",
        default_value = "h3",
        help_heading = "Endpoints"
    )]
    pub(crate) protocol: Protocol,
    /// How they shake hands: full, resumed (the client was here before), 0rtt (and asks at once); one transfer each
    #[arg(
        long,
        value_name = "KIND,…",
        value_delimiter = ',',
        default_value = "full",
        help_heading = "Endpoints"
    )]
    pub(crate) handshake: Vec<Handshake>,
    /// Real TLS in place of its twin: the same figures, but for some bytes, at a higher cost
    #[arg(long, help_heading = "Endpoints")]
    pub(crate) tls: bool,
    /// UDP payload of full datagrams, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1280, value_parser = value_parser!(u16).range(1200..=65_000), help_heading = "Endpoints")]
    pub(crate) mtu: u16,
    /// Mark packets as capable of ECN
    #[arg(long, help_heading = "Endpoints")]
    pub(crate) ecn: bool,
    /// Let loss detection learn from reordering, as quicly does
    #[arg(long, help_heading = "Endpoints")]
    pub(crate) adaptive_thresholds: bool,
    /// Let the server ask for rarer acknowledgments (draft-ietf-quic-ack-frequency)
    #[arg(long, help_heading = "Endpoints")]
    pub(crate) ack_frequency: bool,
    /// How long a client holds back acknowledgments at most
    #[arg(long, value_name = "SPAN", default_value = "25ms", value_parser = units::span, help_heading = "Endpoints")]
    pub(crate) max_ack_delay: Duration,
    /// What a client lets the server send ahead on a stream
    #[arg(long, value_name = "BYTES", default_value = "6MiB", value_parser = units::bytes, help_heading = "Endpoints")]
    pub(crate) window: u64,
    /// Length of the server's certificate chain
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = 2400,
        help_heading = "Endpoints"
    )]
    pub(crate) certificate_chain: u16,

    /// Where all chance comes from
    #[arg(long, default_value_t = 1, help_heading = "Simulation")]
    pub(crate) seed: u64,
    /// Simulations of each, with seeds counting up; the table has their medians
    #[arg(long, value_name = "N", default_value_t = NonZeroUsize::MIN, help_heading = "Simulation")]
    pub(crate) runs: NonZeroUsize,
    /// Virtual time after which a simulation is given up
    #[arg(long, value_name = "SPAN", default_value = "1000s", value_parser = units::span, help_heading = "Simulation")]
    pub(crate) time_limit: Duration,
    /// Simulations at a time. Default: one a core
    #[arg(long, value_name = "N", help_heading = "Simulation")]
    pub(crate) threads: Option<NonZeroUsize>,

    /// JSON in place of a table: an array with an object for each transfer
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// Draw the transfer over time, the arms side by side: .html (zooms and hovers), .svg or .png; may be repeated
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) plot: Vec<PathBuf>,
    /// Write all that happens, one JSON object a line
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) trace: Option<PathBuf>,
    /// Write qlog files for both ends of each connection into a folder
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(crate) qlog: Option<PathBuf>,
    /// Which qlog: 0.3, which qvis loads, or that of the current drafts
    #[arg(
        long,
        value_name = "DIALECT",
        default_value = "0.3",
        help_heading = "Output"
    )]
    pub(crate) qlog_dialect: QlogDialect,
}

/// Which qlog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum QlogDialect {
    /// Version 0.3.
    #[value(name = "0.3")]
    V03,
    /// The current drafts.
    #[value(name = "draft")]
    Draft,
}

/// An arm, as it was written and what it means.
#[derive(Clone, Debug)]
pub(crate) struct Arm {
    pub(crate) label: String,
    pub(crate) spec: Spec,
}

fn arm(text: &str) -> Result<Arm, String> {
    let spec = text.parse::<Spec>().map_err(|error| error.to_string())?;
    Ok(Arm {
        label: text.to_owned(),
        spec,
    })
}

fn cross(text: &str) -> Result<CrossKind, String> {
    if let Some(rate) = text.strip_prefix("cbr:") {
        let rate: Rate = units::rate(rate).map_err(|error| error.to_string())?;
        return Ok(CrossKind::Constant(rate));
    }
    let spec = text.parse::<Spec>().map_err(|error| error.to_string())?;
    Ok(CrossKind::Bulk(spec))
}

/// The arms of the experiment in which Rapid Start was measured.
const FOUR_ARMS: [&str; 4] = ["slow-start", "jumpstart", "rapid-no-jump", "rapid-start"];

impl Arguments {
    /// The arms that were asked for, or the four.
    pub(crate) fn arms(&self) -> Result<Vec<Arm>, String> {
        if self.arm.is_empty() {
            FOUR_ARMS.into_iter().map(arm).collect()
        } else {
            Ok(self.arm.clone())
        }
    }

    /// Whether packets are marked as capable of ECN.
    pub(crate) fn uses_ecn(&self) -> bool {
        self.ecn || self.path.marks()
    }
}
